"""Two deliveries of one event at the same moment: one commits, and none of them is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.handler.support import (
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    Cloud,
    Killed,
    client_error,
    record,
    reported,
)

ORDER = {"id": "o-1", "amount": 10}


def at_once(*deliveries: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(deliveries)) as threads:
        return [future.result() for future in [threads.submit(delivery) for delivery in deliveries]]


@pytest.mark.case("C22")
@pytest.mark.parametrize("copies", [2, 5])
def test_one_of_several_deliveries_at_once_commits(cloud: Cloud, copies: int) -> None:
    barrier = threading.Barrier(copies)
    cloud.on(COMMIT, runs=lambda: barrier.wait(10))
    answers = at_once(*(lambda number=number: cloud.deliver(record(f"m-{number}", ORDER)) for number in range(copies)))
    assert answers == [NOTHING_FAILED] * copies
    assert cloud.count(COMMIT) == copies
    assert [what for what, _ in cloud.history].count("committed") == 1
    assert cloud.statuses() == {"o-1": "sent"}
    assert set(cloud.notified()) == {"o-1"}
    assert cloud.history[0] == ("committed", "o-1")
    assert cloud.dead_letters() == []


@pytest.mark.case("C22")
def test_same_id_with_other_content_at_once_is_one_row_and_one_conflict(cloud: Cloud) -> None:
    barrier = threading.Barrier(2)
    cloud.on(COMMIT, runs=lambda: barrier.wait(10))
    answers = at_once(
        lambda: cloud.deliver(record("m-1", ORDER)), lambda: cloud.deliver(record("m-2", {"id": "o-1", "amount": 99}))
    )
    assert answers == [NOTHING_FAILED, NOTHING_FAILED]
    assert cloud.reasons() == ["id-reused"]
    (letter,) = cloud.dead_letters()
    committed = cloud.rows()["o-1"]["amount"]["N"]
    assert (committed, letter.body) in [("10", '{"id":"o-1","amount":99}'), ("99", '{"id":"o-1","amount":10}')]
    assert cloud.notified() == ["o-1"]


@pytest.mark.case("C22", "C26")
def test_two_events_for_one_row_at_once_are_one_row_and_one_conflict(cloud: Cloud) -> None:
    barrier = threading.Barrier(2)
    cloud.on(COMMIT, runs=lambda: barrier.wait(10))
    by_event: dict[str, Any] = {"EVENT_ID": "event"}
    answers = at_once(
        lambda: cloud.deliver(record("m-1", {"id": "s-1", "event": "e-1"}), **by_event),
        lambda: cloud.deliver(record("m-2", {"id": "s-1", "event": "e-2"}), **by_event),
    )
    assert answers == [NOTHING_FAILED, NOTHING_FAILED]
    assert cloud.reasons() == ["row-exists"]
    assert len(cloud.statuses()) == 1
    assert cloud.notified() == list(cloud.statuses())


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_delivery_between_two_steps_of_another_publishes_too(cloud: Cloud, operation: str) -> None:
    cloud.on(operation, runs=lambda: cloud.deliver(record("m-2", ORDER)), calls=[1])
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.notified() == ["o-1", "o-1"]
    assert cloud.statuses() == {"o-1": "sent"}
    assert [what for what, _ in cloud.history].count("committed") == 1


def test_second_delivery_settles_what_the_first_dies_over(cloud: Cloud) -> None:
    def second() -> None:
        assert cloud.deliver(record("m-2", ORDER)) == NOTHING_FAILED

    cloud.on(PUBLISH, runs=second, raises=Killed(), calls=[1])
    with pytest.raises(Killed):
        cloud.deliver(record("m-1", ORDER))
    assert cloud.statuses() == {"o-1": "sent"}
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]


def test_slow_first_delivery_that_fails_after_the_second_is_a_duplicate_then(cloud: Cloud) -> None:
    cloud.on(
        PUBLISH,
        runs=lambda: cloud.deliver(record("m-2", ORDER)),
        raises=client_error("InternalError", PUBLISH),
        calls=[1],
    )
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]
