"""No AWS call starts that might not end before the function does; what is left over is reported, never dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer import intake
from idempotent_consumer.envelope import open_envelope
from idempotent_consumer.settings import Envelope
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    PUT,
    READ,
    Cloud,
    Context,
    cancelled,
    client_error,
    record,
    reported,
)

ORDERS = [record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)]
Logged = Callable[[], list[tuple[str, str, str, str]]]


@pytest.mark.case("C55")
@pytest.mark.parametrize("remaining_ms", [0, 40, 7_499])
def test_no_call_is_made_below_the_budget(cloud: Cloud, remaining_ms: int, logged: Logged) -> None:
    answer = cloud.deliver(*ORDERS, record("m-4", "{"), context=Context(cloud, remaining_ms))
    assert answer == reported("m-1", "m-2", "m-3", "m-4")
    assert cloud.operations == []
    assert ("m-1", "retry", "out-of-time", "the invocation's time is used up") in logged()


def test_nothing_is_lost_when_time_comes_back(cloud: Cloud) -> None:
    cloud.deliver(*ORDERS, context=Context(cloud, 0))
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert set(cloud.statuses().values()) == {"sent"}


@pytest.mark.alone
def test_events_for_which_no_time_is_left_are_reported_and_the_others_settled(cloud: Cloud) -> None:
    answer = cloud.deliver(*ORDERS, context=Context(cloud, 12_000, {COMMIT: 3_500}))
    assert answer == reported("m-2", "m-3")
    assert cloud.operations == [COMMIT, PUBLISH, MARK]
    assert cloud.statuses() == {"o-1": "sent"}


def test_out_of_time_before_the_publish_leaves_pending_rows(cloud: Cloud) -> None:
    answer = cloud.deliver(ORDERS[0], context=Context(cloud, 12_000, {COMMIT: 7_000}))
    assert answer == reported("m-1")
    assert cloud.operations == [COMMIT]
    assert cloud.statuses() == {"o-1": "pending"}
    assert "ttl" not in cloud.ledger()["o-1"]
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]


def test_out_of_time_before_the_marking_publishes_again(cloud: Cloud) -> None:
    answer = cloud.deliver(ORDERS[0], context=Context(cloud, 12_000, {PUBLISH: 7_000}))
    assert answer == reported("m-1")
    assert cloud.operations == [COMMIT, PUBLISH]
    assert cloud.statuses() == {"o-1": "pending"}
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    assert cloud.notified() == ["o-1", "o-1"]


def test_out_of_time_before_the_dead_letter_reports_the_poison(cloud: Cloud) -> None:
    answer = cloud.deliver(record("m-1", "{"), record("m-2", "}"), context=Context(cloud, 12_000, {BURY: 7_000}))
    assert answer == reported("m-2")
    assert cloud.operations == [BURY]
    assert [letter.body for letter in cloud.dead_letters()] == ["{"]


def test_out_of_time_before_a_deciding_read_is_no_verdict(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=cancelled("ConditionalCheckFailed", "None"))
    assert cloud.deliver(ORDERS[0], context=Context(cloud, 12_000, {COMMIT: 7_000})) == reported("m-1")
    assert cloud.operations == [COMMIT]


def test_out_of_time_before_the_ledger_row_of_a_superseded_event_is_no_verdict(cloud: Cloud) -> None:
    newer: dict[str, Any] = {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}
    stored = {"id": {"S": "o-1"}, "event_id": {"S": "o-0"}, "event_version": {"N": "9"}}
    cloud.store(BUSINESS, {**stored, "event_fingerprint": {"S": "f"}})
    event = record("m-1", {"id": "o-1", "version": 1})
    assert cloud.deliver(event, context=Context(cloud, 12_000, {READ: 7_000}), **newer) == reported("m-1")
    assert cloud.operations == [COMMIT, READ]
    assert cloud.deliver(event, **newer) == NOTHING_FAILED
    assert cloud.count(PUT) == 1


def test_out_of_time_between_two_attempts_ends_the_attempts(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(COMMIT, raises=client_error("ThrottlingException"))
    assert cloud.deliver(ORDERS[0], context=Context(cloud, 20_000, {COMMIT: 5_000})) == reported("m-1")
    assert cloud.count(COMMIT) == 3
    assert pauses == [0, 1, 2]


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_out_of_time_between_two_attempts_at_a_common_step_reports_the_rest(cloud: Cloud, operation: str) -> None:
    cloud.on(operation, raises=client_error("Throttled", operation))
    answer = cloud.deliver(*ORDERS, context=Context(cloud, 20_000, {operation: 9_000}))
    assert answer == reported("m-1", "m-2", "m-3")
    assert cloud.count(operation) == 2
    assert set(cloud.statuses().values()) == {"pending"}


@pytest.mark.alone
def test_second_call_of_a_large_publish_is_not_started_out_of_time(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(12)]
    answer = cloud.deliver(*batch, context=Context(cloud, 20_000, {PUBLISH: 12_600}))
    assert cloud.operations == [COMMIT] * 12 + [PUBLISH]
    assert answer == reported(*(f"m-{number}" for number in range(12)))
    assert set(cloud.statuses().values()) == {"pending"}


@pytest.mark.alone
def test_fifo_group_that_runs_out_of_time_is_reported_from_there_on(fifo_cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}, group="g") for number in range(5)]
    answer = fifo_cloud.deliver(*batch, context=Context(fifo_cloud, 12_000, {COMMIT: 1_000}))
    assert answer == reported("m-3", "m-4")
    assert fifo_cloud.statuses() == {"o-0": "sent", "o-1": "sent", "o-2": "sent"}
    assert fifo_cloud.operations == [COMMIT, COMMIT, COMMIT, PUBLISH, MARK]


@pytest.mark.alone
def test_large_batch_settles_its_first_part_before_it_begins_the_next(cloud: Cloud) -> None:
    """A batch that takes longer than the function may still gets on, part by part."""
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(100)]
    answer = cloud.deliver(*batch, context=Context(cloud, 30_000, {COMMIT: 300, PUBLISH: 300, MARK: 300}))
    settled = 100 - len(answer["batchItemFailures"])
    assert 25 < settled < 100
    assert answer == reported(*(f"m-{number}" for number in range(settled, 100)))
    assert cloud.statuses() == {f"o-{number}": "sent" for number in range(settled)}


@pytest.mark.parametrize("call_ms", [2_200, 2_500, 3_000, 5_000, 7_000])
def test_slow_calls_leave_time_to_settle_what_is_committed(cloud: Cloud, call_ms: int) -> None:
    """Otherwise the same batch would be committed, reported and committed again until it is dead-lettered."""
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(10)]
    slow = dict.fromkeys([COMMIT, PUBLISH, MARK], call_ms)
    left = batch
    for _ in range(10):
        answer = cloud.deliver(*left, context=Context(cloud, 30_000, slow))
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        assert len(failed) < len(left)
        left = [message for message in left if message["messageId"] in failed]
        if not left:
            break
    assert left == []
    assert set(cloud.statuses().values()) == {"sent"}
    assert len(cloud.notified()) == 10


def test_messages_are_not_opened_once_the_time_is_up(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open the rest of a large batch could take what is left for the answer."""
    opened: list[str] = []

    def watched(body: str, envelope: Envelope) -> list[Any]:
        opened.append(body)
        return open_envelope(body, envelope)

    monkeypatch.setattr(intake, "open_envelope", watched)
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(200)]
    answer = cloud.deliver(*batch, context=Context(cloud, 12_000, {MARK: 3_000}))
    assert answer == reported(*(f"m-{number}" for number in range(50, 200)))
    assert len(opened) == 50
    assert set(cloud.statuses().values()) == {"sent"}
