"""An event that can no longer be planned but was committed before: its ledger row decides, not the new settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan
from idempotent_consumer.rejection import Rejected
from tests.handler.support import (
    BURY,
    LEDGER,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    READ,
    Cloud,
    Context,
    Notification,
    client_error,
    record,
    reported,
)

ORDER = {"id": "o-1", "amount": 10}
# Settings under which ORDER is rejected, each for another reason.
REFUSING: list[dict[str, Any]] = [
    {"EVENT_ITEM": "amount"},
    {"NOTIFICATION_MESSAGE": "missing"},
    {"NOTIFICATION_MAX_BYTES": "1"},
    {"BUSINESS_HASH_KEY": "missing"},
    {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "missing"},
]
Logged = Callable[[], list[tuple[str, str, str, str]]]


@pytest.mark.parametrize("settings", REFUSING, ids=lambda settings: next(iter(settings)))
class TestEventThatTheSettingsReject:
    def test_unknown_event_goes_to_the_dead_letter_queue(self, cloud: Cloud, settings: dict[str, Any]) -> None:
        assert cloud.deliver(record("m-1", ORDER), **settings) == NOTHING_FAILED
        assert cloud.operations == [READ, BURY]
        assert cloud.requests(READ)[0]["RequestItems"][LEDGER]["ConsistentRead"] is True
        assert len(cloud.dead_letters()) == 1
        assert cloud.ledger() == {}

    def test_pending_event_is_published_as_it_was_decided(self, cloud: Cloud, settings: dict[str, Any]) -> None:
        cloud.commit_without_publishing(record("m-0", ORDER))
        assert cloud.deliver(record("m-1", ORDER), **settings) == NOTHING_FAILED
        assert cloud.operations == [READ, PUBLISH, MARK]
        assert cloud.notifications() == [Notification('{"id":"o-1","amount":10}', {"event_id": ("String", "o-1")})]
        assert cloud.statuses() == {"o-1": "sent"}
        assert cloud.dead_letters() == []

    def test_sent_event_is_a_duplicate(self, cloud: Cloud, settings: dict[str, Any]) -> None:
        cloud.deliver(record("m-0", ORDER))
        cloud.forget()
        assert cloud.deliver(record("m-1", ORDER), **settings) == NOTHING_FAILED
        assert cloud.operations == [READ]
        assert cloud.notified() == ["o-1"]
        assert cloud.dead_letters() == []

    def test_other_content_is_a_conflict(self, cloud: Cloud, settings: dict[str, Any]) -> None:
        cloud.deliver(record("m-0", ORDER))
        assert cloud.deliver(record("m-1", {"id": "o-1", "amount": 11}), **settings) == NOTHING_FAILED
        assert cloud.reasons() == ["id-reused"]

    @pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
    def test_ledger_that_cannot_be_read_keeps_it_from_being_rejected(
        self, cloud: Cloud, settings: dict[str, Any], code: str
    ) -> None:
        cloud.on(READ, raises=client_error(code, READ))
        assert cloud.deliver(record("m-1", ORDER), **settings) == reported("m-1")
        assert cloud.dead_letters() == []

    def test_no_time_to_read_the_ledger_keeps_it_from_being_rejected(
        self, cloud: Cloud, settings: dict[str, Any]
    ) -> None:
        assert cloud.deliver(record("m-1", ORDER), context=Context(cloud, 0), **settings) == reported("m-1")
        assert cloud.operations == []


def test_row_that_the_ledger_holds_without_a_readable_notification_is_kept(cloud: Cloud, logged: Logged) -> None:
    cloud.commit_without_publishing(record("m-0", ORDER))
    row = cloud.ledger()["o-1"]
    cloud.store("orders-processed-events", {**row, "notification": {"S": "?"}})
    assert cloud.deliver(record("m-1", ORDER), EVENT_ITEM="amount") == reported("m-1")
    assert [verdict[:3] for verdict in logged()] == [("m-1", "retry", "ledger-row-unreadable")]


def test_event_without_a_usable_id_is_not_looked_up(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", {"amount": 10})) == NOTHING_FAILED
    assert cloud.operations == [BURY]


def test_planner_of_new_code_that_rejects_does_not_strand_what_old_code_committed(cloud: Cloud) -> None:
    def refuse(_event: Event) -> Plan:
        raise Rejected("no-longer-supported")

    cloud.commit_without_publishing(record("m-0", ORDER))
    consumer = cloud.consumer(planner=refuse)
    answer = consumer.handle({"Records": [record("m-1", ORDER), record("m-2", {"id": "o-2"})]}, Context(cloud))
    assert answer == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
        ('{"id":"o-2"}', "no-longer-supported")
    ]


def test_pending_event_stays_while_the_topic_is_gone_and_is_published_once_it_is_back(
    cloud: Cloud, logged: Logged
) -> None:
    cloud.commit_without_publishing(record("m-0", ORDER))
    answer = cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"}), TOPIC_ARN=None)
    assert answer == reported("m-1")
    assert logged() == [
        ("m-1", "retry", "misconfigured", "a notification is pending, but no topic is configured"),
    ]
    assert cloud.statuses() == {"o-1": "pending", "o-2": "sent"}
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]
