"""Consumers that share a topic or a business table: what one did is never taken for what another has to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.handler.support import (
    BILLING,
    BILLING_LEDGER,
    COMMIT,
    NOTHING_FAILED,
    READ,
    Cloud,
    record,
)

ORDER = {"id": "o-1", "amount": 10}
UPSERT: dict[str, Any] = {"EVENT_WRITE_MODE": "upsert"}
Metrics = Callable[[], dict[str, Any]]


@pytest.mark.case("C69")
def test_two_consumers_of_one_event_are_both_heard_on_one_fifo_topic(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_topic=True)
    cloud.add_ledger(BILLING_LEDGER)
    own_rows: dict[str, Any] = {"EVENT_ITEM": "{id: join('/', ['billing', id])}"}
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.deliver(record("m-2", ORDER), **BILLING, **own_rows) == NOTHING_FAILED
    assert [notification.deduplication_id for notification in cloud.notifications()] == [
        # SHA-256 of the consumer's name, a zero byte and "o-1"
        "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38",
        "6cae411afa8f29976c6f622b74fa815dd2e173bccc394bd29d9c21e61b4880f4",
    ]
    assert cloud.statuses() == cloud.statuses(BILLING_LEDGER) == {"o-1": "sent"}


@pytest.mark.parametrize("topic", [{}, {"TOPIC_ARN": None}], ids=["topic", "no topic"])
def test_insert_into_the_row_of_another_consumer_is_a_visible_conflict(
    cloud: Cloud, metrics: Metrics, topic: dict[str, Any]
) -> None:
    cloud.add_ledger(BILLING_LEDGER)
    cloud.deliver(record("m-1", ORDER), TOPIC_ARN=None)
    row = cloud.rows()["o-1"]
    cloud.forget()
    metrics()

    assert cloud.deliver(record("m-2", ORDER), **BILLING, **topic) == NOTHING_FAILED

    assert cloud.operations[:2] == [COMMIT, READ]
    (letter,) = cloud.dead_letters()
    assert letter.reason == "row-exists"
    assert letter.body == '{"id":"o-1","amount":10}'
    assert cloud.rows() == {"o-1": row}
    assert cloud.ledger(BILLING_LEDGER) == {}
    assert cloud.notifications() == []
    counted = metrics()
    assert (counted["Conflicts"], counted["Duplicates"]) == (1, 0)


def test_upsert_overwrites_the_row_of_another_consumer_and_both_commit(cloud: Cloud) -> None:
    cloud.add_ledger(BILLING_LEDGER)
    assert cloud.deliver(record("m-1", ORDER), **UPSERT) == NOTHING_FAILED
    assert cloud.rows()["o-1"]["event_consumer"] == {"S": "orders"}
    assert cloud.deliver(record("m-2", ORDER), **BILLING, **UPSERT) == NOTHING_FAILED
    assert cloud.rows()["o-1"]["event_consumer"] == {"S": "billing"}
    assert cloud.statuses() == cloud.statuses(BILLING_LEDGER) == {"o-1": "sent"}
    assert cloud.notified() == ["o-1", "o-1"]
    assert cloud.dead_letters() == []


def test_upsert_of_a_consumer_whose_own_row_stands_is_a_duplicate_once_its_ledger_row_has_expired(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER), **UPSERT)
    cloud.expire("o-1")
    assert cloud.deliver(record("m-2", ORDER), **UPSERT) == NOTHING_FAILED
    assert cloud.ledger() == {}
    assert cloud.notified() == ["o-1"]


def test_module_that_was_renamed_while_an_event_was_pending_dead_letters_it_instead_of_losing_its_notification(
    cloud: Cloud,
) -> None:
    """The new ledger does not know the event, the row of the old consumer stands."""
    cloud.commit_without_publishing(record("m-1", ORDER))
    cloud.add_ledger(BILLING_LEDGER)
    assert cloud.deliver(record("m-1", ORDER, receive_count=2), **BILLING) == NOTHING_FAILED
    assert cloud.reasons() == ["row-exists"]
    assert cloud.notifications() == []
    assert cloud.statuses() == {"o-1": "pending"}
    assert cloud.ledger(BILLING_LEDGER) == {}
