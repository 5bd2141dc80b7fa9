"""The order of events is never held against a plan."""

from __future__ import annotations

from typing import Any

import pytest

from idempotent_consumer import Attr, Check, Event, Plan, Put, Reject, Retry
from idempotent_consumer.testing import AssertIdempotent
from idempotent_consumer.testing.run import Trial, play
from tests.kit import plans

pytestmark = pytest.mark.usefixtures("in_one_process")


def test_last_of_two_events_wins_in_each_scenario(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.rename, [{"id": "e-1", "name": "a"}, {"id": "e-2", "name": "b"}])
    assert result.rows("names") == [{"id": "n", "name": "b"}]


@pytest.mark.parametrize("fifo", [False, True])
def test_event_that_is_rejected_and_could_be_applied_later_is_no_finding(
    assert_idempotent: AssertIdempotent, fifo: bool
) -> None:
    """Delivered again once the third event has filled the stock, the second one is applied."""
    events = [{"id": "e-1", "quantity": 8}, {"id": "e-2", "quantity": 5}, {"id": "e-3", "quantity": -10}]
    result = assert_idempotent(plans.move, events, rows={"stock": [{"sku": "A", "free": 10}]}, fifo=fifo)
    assert result.outcomes == {"e-1": "applied", "e-2": "rejected", "e-3": "applied"}
    assert result.rows("stock") == [{"sku": "A", "free": 12, "last": "e-1"}]


def test_row_that_comes_and_goes_is_no_finding(assert_idempotent: AssertIdempotent) -> None:
    events: list[dict[str, Any]] = [
        {"id": "e-1", "row": "r"},
        {"id": "e-2", "by": "b"},
        {"id": "e-3", "row": "the-one"},
    ]

    def plan(event: Any) -> Any:
        return plans.remove(event) if "row" in event.data else plans.one_row(event)

    result = assert_idempotent(plan, events)
    assert result.outcomes == {"e-1": "rejected", "e-2": "applied", "e-3": "applied"}
    assert result.reasons == {"e-1": "condition-failed"}
    assert result.rows("rows") == []


@pytest.mark.parametrize("fifo", [False, True])
def test_event_that_waits_for_ever_accuses_nobody(assert_idempotent: AssertIdempotent, fifo: bool) -> None:
    """On FIFO the copy of the first event waits behind it, and is never delivered."""

    def plan(event: Event) -> Plan:
        is_there = Check("customers", {"name": "x"}, Attr("name").exists(), otherwise=Retry("customer-not-there"))
        return Plan([Put("orders", {"id": event.id}), *([is_there] if event.data.get("waits") else [])])

    result = assert_idempotent(plan, [{"id": "o-1"}, {"id": "o-2", "waits": True}], fifo=fifo)
    assert result.outcomes == {"o-1": "applied", "o-2": "retry"}


def test_copy_that_waits_of_an_event_that_was_rejected_accuses_nobody(assert_idempotent: AssertIdempotent) -> None:
    def plan(event: Event) -> Plan:
        if event.id == "e-2":
            return Plan([Put("flags", {"name": "open"}, key="name")])
        needs = Check("flags", {"name": "open"}, Attr("name").exists(), otherwise=Reject("closed"))
        waits = Check("stock", {"sku": "A"}, Attr("sku").exists(), otherwise=Retry("sku-not-there"))
        return Plan([needs, waits])

    result = assert_idempotent(plan, [{"id": "e-1"}, {"id": "e-2"}])
    assert result.outcomes == {"e-1": "rejected", "e-2": "applied"}


def test_tables_of_another_order_are_compared_with_what_that_order_gives(
    assert_idempotent: AssertIdempotent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that loses a write where a rejected event is applied later is found all the same."""
    replays: list[str] = []

    def losing(trial: Trial, scenario: str, *arguments: Any) -> Any:
        run = play(trial, scenario, *arguments)
        if run.history.committed == ["e-1", "e-3", "e-2"] and "comes once" not in scenario:
            replays.append(scenario)
            run.tables["stock"]["A",]["free"] = 12
        return run

    monkeypatch.setattr("idempotent_consumer.testing.scenarios.play", losing)
    events = [{"id": "e-1", "quantity": 8}, {"id": "e-2", "quantity": 5}, {"id": "e-3", "quantity": -10}]
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.move, events, rows={"stock": [{"sku": "A", "free": 10}]})
    assert str(caught.value).splitlines()[:3] == [
        "the tables are not those of the same events, each once, in the order e-1, e-3, e-2",
        f"  when {replays[0]}",
        "  stock 'A': free is 12, not 7",
    ]


def test_events_of_one_group_keep_their_order_and_wait_for_each_other(assert_idempotent: AssertIdempotent) -> None:
    events = [
        {"id": "p-1", "kind": "parcel", "order": "o-1"},
        {"id": "p-2", "kind": "order", "order": "o-2"},
        {"id": "p-3", "kind": "order", "order": "o-3"},
    ]
    result = assert_idempotent(plans.ship, events, fifo="kind")
    assert result.outcomes == {"p-1": "retry", "p-2": "applied", "p-3": "applied"}
    result = assert_idempotent(plans.ship, events, fifo=True)
    assert result.outcomes == {"p-1": "retry", "p-2": "blocked", "p-3": "blocked"}
    assert result.reasons == {"p-1": "order-not-there", "p-2": "group-blocked", "p-3": "group-blocked"}
