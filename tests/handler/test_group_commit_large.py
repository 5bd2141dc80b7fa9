"""Batches of up to 10,000 messages, which Lambda hands over where the mapping has a batching window."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from aws_xray_sdk.core import xray_recorder
from botocore.exceptions import ConnectionClosedError

from idempotent_consumer import side_by_side
from idempotent_consumer.commit import Commit
from tests.handler.support import (
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    READ,
    Killed,
    client_error,
    events_of,
    record,
    reported,
)
from tests.handler.table_model import Effect, Request, World

Record = dict[str, Any]


class Forever:
    """A context whose time does not run out."""

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def orders(numbers: range, *, receive_count: int = 1) -> list[Record]:
    return [record(f"m-{number}", {"id": f"o-{number}"}, receive_count=receive_count) for number in numbers]


def deliver(world: World, records: list[Record], **changes: str) -> Any:
    return world.consumer(**changes).handle({"Records": records}, Forever())


def statuses(world: World) -> Counter[str]:
    return Counter(row["status"]["S"] for row in world.ledger.values())


def published(request: Request) -> list[str]:
    return [entry["MessageAttributes"]["event_id"]["StringValue"] for entry in request["PublishBatchRequestEntries"]]


CALLS_OF_10_000 = {COMMIT: 200, PUBLISH: 1_000, MARK: 400}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return orders(range(10_000))


class TestTenThousandMessages:
    def test_new_ones_cost_1600_calls(self, world: World, records: list[Record]) -> None:
        assert deliver(world, records) == NOTHING_FAILED
        assert Counter(call.operation for call in world.calls) == CALLS_OF_10_000
        assert statuses(world) == {"sent": 10_000}
        assert Counter(happened.what for happened in world.history) == {
            "committed": 10_000,
            "published": 10_000,
            "marked": 10_000,
        }

    @pytest.mark.side_by_side
    def test_new_ones_cost_the_same_side_by_side(self, world: World, records: list[Record]) -> None:
        assert deliver(world, records) == NOTHING_FAILED
        assert Counter(call.operation for call in world.calls) == CALLS_OF_10_000
        assert statuses(world) == {"sent": 10_000}
        assert len({happened.event_id for happened in world.history if happened.what == "published"}) == 10_000

    def test_redelivered_ones_cost_200_calls(self, world: World, records: list[Record]) -> None:
        deliver(world, records)
        world.calls.clear()
        again = [
            {**message, "attributes": {**message["attributes"], "ApproximateReceiveCount": "2"}} for message in records
        ]
        assert deliver(world, again) == NOTHING_FAILED
        assert Counter(call.operation for call in world.calls) == {READ: 200}

    def test_their_events_are_let_go_part_by_part(self, world: World, records: list[Record]) -> None:
        alive: list[int] = []

        def count(operation: str, _request: Request, effect: Effect) -> Any:
            if operation == COMMIT and world.count(COMMIT) in (2, 200):
                alive.append(sum(isinstance(thing, Commit) for thing in gc.get_objects()))
            return effect()

        world.interfere = count
        deliver(world, records)
        in_the_second, in_the_last = alive
        assert in_the_last <= in_the_second + 50


# Among faults


def fails_for(event_id: str, error: BaseException, operation: str = PUBLISH) -> Any:
    """The calls fail that hold this event."""

    def interfere(called: str, request: Request, effect: Effect) -> Any:
        events = {PUBLISH: published, COMMIT: events_of}
        if called == operation and event_id in events[called](request):
            raise error
        return effect()

    return interfere


@pytest.mark.parametrize("at_a_time", [1, 5])
def test_one_publish_that_fails_reports_its_ten_events(
    world: World, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(side_by_side, "CALLS", at_a_time)
    world.interfere = fails_for("o-75", client_error("InternalError", PUBLISH))
    assert deliver(world, orders(range(200))) == reported(*(f"m-{number}" for number in range(70, 80)))
    assert statuses(world) == {"sent": 190, "pending": 10}


@pytest.mark.parametrize("at_a_time", [1, 5])
def test_fault_of_our_own_in_one_publish_reports_its_part(
    world: World, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(side_by_side, "CALLS", at_a_time)
    world.interfere = fails_for("o-75", TypeError("text"))
    assert deliver(world, orders(range(200))) == reported(*(f"m-{number}" for number in range(50, 100)))
    assert statuses(world) == {"sent": 150, "pending": 50}


@pytest.mark.side_by_side
def test_process_that_dies_in_a_thread_dies(world: World) -> None:
    world.interfere = fails_for("o-75", Killed())
    with pytest.raises(Killed):
        deliver(world, orders(range(200)))
    assert statuses(world) == {"sent": 50, "pending": 50}
    world.interfere = World().interfere
    assert deliver(world, orders(range(200), receive_count=2)) == NOTHING_FAILED
    assert statuses(world) == {"sent": 200}


def test_event_that_spoils_its_transaction_costs_its_part_a_dozen_calls_and_no_other(world: World) -> None:
    world.interfere = fails_for("o-110", client_error("ValidationException"), COMMIT)
    assert deliver(world, orders(range(1_000))) == NOTHING_FAILED
    assert world.count(COMMIT) == 20 + 12
    assert statuses(world) == {"sent": 999}
    assert [happened.text for happened in world.history if happened.what == "dead-lettered"] == ['{"id":"o-110"}']


def test_lost_answers_of_all_transactions_are_made_good_at_once(world: World) -> None:
    lost: set[tuple[str, ...]] = set()

    def lose(operation: str, request: Request, effect: Effect) -> Any:
        answer = effect()
        if operation == COMMIT:
            lost.add(tuple(events_of(request)))
            raise ConnectionClosedError(endpoint_url="https://aws.example")
        return answer

    world.interfere = lose
    assert deliver(world, orders(range(500))) == NOTHING_FAILED
    assert len(lost) == 10
    assert Counter(call.operation for call in world.calls) == {COMMIT: 10, READ: 10, PUBLISH: 50, MARK: 20}
    assert statuses(world) == {"sent": 500}


@dataclass
class Clock:
    """A context whose time runs out by the calls that were made."""

    world: World
    remaining_ms: int
    call_ms: int

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms - self.call_ms * len(self.world.calls)


def test_what_is_not_begun_in_time_is_reported_and_nothing_is_left_half_done(
    world: World, records: list[Record]
) -> None:
    answer = world.consumer().handle({"Records": records}, Clock(world, 100_000, 100))
    # A part makes eight calls of 100 ms; a last one begins with 8.5 s left, not with less.
    assert answer == reported(*(f"m-{number}" for number in range(115 * 50, 10_000)))
    assert statuses(world) == {"sent": 115 * 50}


# Side by side


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that are started."""
    names: list[str] = []
    start = threading.Thread.start

    def record_start(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", record_start)
    return names


@pytest.mark.side_by_side
@pytest.mark.parametrize("receive_count", [1, 2])
def test_batch_of_ten_starts_no_thread(world: World, started: list[str], receive_count: int) -> None:
    assert deliver(world, orders(range(10), receive_count=receive_count)) == NOTHING_FAILED
    assert started == []


@pytest.mark.side_by_side
def test_large_batches_share_a_few_threads(world: World, started: list[str]) -> None:
    handle = world.consumer().handle
    for first in range(0, 2_000, 500):
        assert handle({"Records": orders(range(first, first + 500))}, Forever()) == NOTHING_FAILED
    # Five that publish and two that mark at a time; one more where the one before is not quite done.
    assert 7 <= len(started) <= 10


@pytest.mark.side_by_side
def test_fifo_topic_gets_its_notifications_in_the_order_of_the_queue(world: World) -> None:
    publishing: set[threading.Thread] = set()

    def note(operation: str, _request: Request, effect: Effect) -> Any:
        if operation == PUBLISH:
            publishing.add(threading.current_thread())
        return effect()

    world.interfere = note
    topic = "arn:aws:sns:us-east-1:123456789012:orders.fifo"
    assert deliver(world, orders(range(200)), TOPIC_ARN=topic) == NOTHING_FAILED
    in_order = [happened.event_id for happened in world.history if happened.what == "published"]
    assert in_order == [f"o-{number}" for number in range(200)]
    assert publishing == {threading.current_thread()}


@pytest.fixture
def segment() -> Iterator[Any]:
    yield xray_recorder.begin_segment("orders", sampling=1)
    xray_recorder.clear_trace_entities()


@pytest.mark.side_by_side
def test_trace_shows_the_steps_of_each_part_whatever_runs_side_by_side(world: World, segment: Any) -> None:
    assert deliver(world, orders(range(75))) == NOTHING_FAILED
    assert [(step.name, step.annotations, step.in_progress) for step in segment.subsegments] == [
        ("commit", {"applied": 50}, False),
        ("publish", {"published": 50, "failed": 0}, False),
        ("mark", {"marked": 50, "failed": 0}, False),
        ("commit", {"applied": 25}, False),
        ("publish", {"published": 25, "failed": 0}, False),
        ("mark", {"marked": 25, "failed": 0}, False),
    ]
    assert xray_recorder.current_subsegment() is None
