"""What a plan that is in order gives back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer.plan import Planner
from idempotent_consumer.testing import AssertIdempotent, Heard
from tests.kit import plans


def order(name: str, quantity: int, sku: str = "A-1") -> dict[str, Any]:
    return {"id": name, "sku": sku, "quantity": quantity}


def test_counter_row_and_notification_of_each_event(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(
        plans.take,
        [order("o-1", 3), order("o-2", 8), order("o-3", 2)],
        rows={"stock": [{"sku": "A-1", "free": 10}, {"sku": "B-1", "free": 1}]},
    )
    assert result.rows("stock") == [{"sku": "A-1", "free": 5}, {"sku": "B-1", "free": 1}]
    assert result.rows("orders") == [{"id": "o-1", "quantity": 3}, {"id": "o-3", "quantity": 2}]
    assert result.outcomes == {"o-1": "applied", "o-2": "rejected", "o-3": "applied"}
    assert result.reasons == {"o-2": "out-of-stock"}
    assert result.details == {"o-2": "free is less than quantity"}
    assert result.notifications == (
        Heard("o-1", {"order": "o-1"}, {"kind": "order-taken"}),
        Heard("o-3", {"order": "o-3"}, {"kind": "order-taken"}),
    )
    assert result.announced("o-1") == [{"order": "o-1"}]
    assert result.announced("o-2") == []
    assert result.not_tried == ()
    assert result.holds_beyond_window


def test_every_call_is_disturbed_in_each_way(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.take, [order("o-1", 3)], rows={"stock": [{"sku": "A-1", "free": 10}]})
    again = ", and what is not settled delivered again"
    calls = ["TransactWriteItems", "PublishBatch", "BatchExecuteStatement"]
    assert result.scenarios == (
        "each message comes twice in one batch",
        "each event comes in a batch of its own",
        "all events are sent once more",
        "each message is delivered again by itself, with a receive count of 2",
        *(
            text + again
            for call in calls
            for text in (
                f"the process is killed before {call} of o-1",
                f"the process is killed after {call} of o-1",
                f"the answer to {call} of o-1 is lost",
            )
        ),
        "PublishBatch is refused" + again,
    )


def test_of_many_calls_some_are_disturbed_and_the_result_says_so(assert_idempotent: AssertIdempotent) -> None:
    stock = [{"sku": "A-1", "free": 1000}]
    result = assert_idempotent(plans.take, [order(f"o-{n:02}", 1) for n in range(12)], rows={"stock": stock})
    assert result.rows("stock") == [{"sku": "A-1", "free": 988}]
    # 12 transactions, as all take from one row under a condition; two batches, each published and marked.
    assert result.not_tried == ("faults at 2 of 16 calls: with fewer events, each call is disturbed",)
    assert "the process is killed before TransactWriteItems of o-00" in result.scenarios[4]


def test_numbers_are_those_of_production(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "v-1", "page": "home", "seconds": 0.1}, {"id": "v-2", "page": "home", "seconds": 0.2}]
    result = assert_idempotent(plans.count_only, events)
    assert result.rows("counts") == [{"page": "home", "visits": 2, "seconds": Decimal("0.3")}]
    result = assert_idempotent(plans.with_decimal, [{"id": "o-1", "total": 9.95}])
    assert result.rows("rows") == [{"id": "o-1", "half": Decimal("4.975")}]


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (plans.with_float, "value-type: half: float is not a JSON type: use Decimal, from text"),
        (
            plans.with_own_name,
            "reserved-attribute: event_id is written by the consumer; select other names in event.item",
        ),
        (plans.with_missing_map, "refused-by-dynamodb: "),
        (plans.one_row_twice, "row-written-twice: "),
        (plans.many, "too-many-writes: the plan has 100 writes, a transaction takes 99"),
    ],
)
def test_event_that_is_dead_lettered_without_a_word_of_the_plans_is_a_finding(
    assert_idempotent: AssertIdempotent, plan: Planner, text: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plan, [{"id": "o-1", "total": 9.95, "times": 100}])
    headline, *likely, advice = str(caught.value).splitlines()
    assert likely == (
        [
            "likely:  a path into a map that is missing, an add to what is no number, or a key of another type than "
            "the table's"
        ]
        if plan is plans.with_missing_map
        else []
    )
    assert headline.startswith(f"o-1 would be dead-lettered as {text}")
    assert advice == (
        "instead: mend what the plan writes; if it is meant, say so: raise Reject(…) in the plan, otherwise=Reject(…) "
        "on the write that fails, or the event's id in dead_letters="
    )


def test_second_insert_of_a_row_is_a_finding_unless_the_plan_says_what_it_means(
    assert_idempotent: AssertIdempotent,
) -> None:
    events = [{"id": "e-1", "by": "a"}, {"id": "e-2", "by": "b"}, {"id": "e-3", "by": "c"}]
    exists = "a row of this key is stored that must not be overwritten"
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.one_row, events)
    assert str(caught.value).splitlines()[:2] == [
        f"e-2 would be dead-lettered as row-exists: {exists}",
        f"  e-3 would be dead-lettered as row-exists: {exists}",
    ]
    result = assert_idempotent(plans.one_row_or_taken, events)
    assert result.reasons == {"e-2": "taken", "e-3": "taken"}


def test_event_that_is_meant_to_be_dead_lettered_and_is_not_is_a_finding(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(AssertionError, match=r"^e-1 and e-9 is in dead_letters=, but is not dead-lettered$"):
        assert_idempotent(plans.nothing, [{"id": "e-1"}], dead_letters=["e-1", "e-9"])


def test_float_of_the_plan_is_rejected_as_in_production(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.with_float, [{"id": "o-1", "total": 9.95}], dead_letters=["o-1"])
    assert result.outcomes == {"o-1": "rejected"}
    assert result.reasons == {"o-1": "value-type"}
    assert result.details == {"o-1": "half: float is not a JSON type: use Decimal, from text"}


def test_several_notifications_and_none(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "e-1", "times": 2}, {"id": "e-2", "times": 0}, {"id": "e-3", "times": 1}]
    result = assert_idempotent(plans.announce, events)
    assert result.outcomes == {"e-1": "applied", "e-2": "applied", "e-3": "applied"}
    assert result.notifications == (
        Heard("e-1", "e-1/0", {"size": 0, "notification_number": 1}),
        Heard("e-1", "e-1/1", {"size": 1, "notification_number": 2}),
        Heard("e-3", "e-3/0", {"size": 0}),
    )


def test_nothing_to_do_is_a_plan(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}])
    assert result.outcomes == {"e-1": "applied"}
    assert result.notifications == ()
    with pytest.raises(KeyError, match="no table 'rows'"):
        result.rows("rows")


def test_raised_reject_is_an_outcome(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.rejecting, [order("o-1", 0), order("o-2", 1)])
    assert result.outcomes == {"o-1": "rejected", "o-2": "applied"}
    assert (result.reasons, result.details) == ({"o-1": "no-quantity"}, {"o-1": "quantity is below 1"})


def test_event_that_waits_for_a_later_one_is_applied(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "p-1", "kind": "parcel", "order": "o-1"}, {"id": "e-2", "kind": "order", "order": "o-1"}]
    result = assert_idempotent(plans.ship, events, business_table="unused", business_key="id")
    assert result.outcomes == {"p-1": "applied", "e-2": "applied"}


def test_event_that_waits_in_vain_is_an_outcome(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.ship, [{"id": "p-1", "kind": "parcel", "order": "o-1"}])
    assert result.outcomes == {"p-1": "retry"}
    assert result.reasons == {"p-1": "order-not-there"}
    assert result.rows("parcels") == []


def test_superseded_event_writes_and_announces_nothing(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "p-2", "version": 2}, {"id": "p-1", "version": 1}, {"id": "p-3", "version": 3}]
    result = assert_idempotent(plans.price, events)
    assert result.outcomes == {"p-2": "applied", "p-1": "superseded", "p-3": "applied"}
    assert result.rows("prices") == [{"sku": "A", "version": 3}]
    assert [each.event_id for each in result.notifications] == ["p-2", "p-3"]


def test_second_insert_of_a_row_is_a_conflict(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "e-1", "by": "a"}, {"id": "e-2", "by": "b"}]
    result = assert_idempotent(plans.one_row, events, dead_letters={"e-2"})
    assert result.outcomes == {"e-1": "applied", "e-2": "conflict"}
    assert result.reasons == {"e-2": "row-exists"}
    assert result.rows("rows") == [{"id": "the-one", "by": "a"}]


def test_plan_of_100_writes_is_rejected_and_99_are_not(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "e-1", "times": 100}, {"id": "e-2", "times": 99}]
    result = assert_idempotent(plans.many, events, dead_letters=["e-1"])
    assert result.outcomes == {"e-1": "rejected", "e-2": "applied"}
    assert result.reasons == {"e-1": "too-many-writes"}
    assert len(result.rows("rows")) == 99


def test_two_writes_of_one_row_are_rejected(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.one_row_twice, [{"id": "e-1"}], dead_letters=["e-1"])
    assert (result.outcomes, result.reasons) == ({"e-1": "rejected"}, {"e-1": "row-written-twice"})


def test_pure_use_of_ids_sets_and_dates_is_no_finding(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.stable, [{"id": "e-1", "tags": ["b", "a", "b"], "day": "2030-01-02"}])
    (row,) = result.rows("rows")
    assert (row["tags"], row["day"]) == (["a", "b"], "Wednesday")
    assert result.not_tried == ()


def test_rows_that_are_given_back_are_the_callers_own(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.one_row, [{"id": "e-1", "by": "a"}])
    result.rows("rows").clear()
    assert result.rows("rows") == [{"id": "the-one", "by": "a"}]


@pytest.mark.filterwarnings("ignore:assert_idempotent did not try")
def test_plan_made_inside_a_function_is_tried_but_for_the_order_of_sets(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(lambda event: plans.one_row(event), [{"id": "e-1", "by": "a"}])
    assert result.outcomes == {"e-1": "applied"}
    assert result.not_tried == (
        "the order of sets: the plan is no function of a module, so no other process can import it",
    )


def test_counter_alone_counts_again_beyond_the_window_and_only_that_is_asserted_on_request(
    assert_idempotent: AssertIdempotent,
) -> None:
    events = [{"id": "v-1", "page": "home", "seconds": 1}]
    assert not assert_idempotent(plans.count_only, events).holds_beyond_window
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.count_only, events, beyond_window=True)
    assert str(caught.value).splitlines() == [
        "the tables are not those of the run within the window",
        "  when all events are sent once more after ttl_window_days",
        "  counts 'home': visits is 2, not 1",
        "  counts 'home': seconds is 2, not 1",
        "instead: give each event a row of its own, by a Put(…) that inserts: it is known by it for as long as the row "
        "is there",
    ]


def test_row_of_its_own_tells_an_event_beyond_the_window(assert_idempotent: AssertIdempotent) -> None:
    rows = {"stock": [{"sku": "A-1", "free": 10}]}
    assert assert_idempotent(plans.take, [order("o-1", 3)], rows=rows, beyond_window=True).holds_beyond_window


def test_notification_without_a_row_is_heard_again_beyond_the_window(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(AssertionError, match="notifications are heard once more"):
        assert_idempotent(plans.announce, [{"id": "e-1", "times": 1}], beyond_window=True)


def test_tables_of_more_than_one_page_are_read_whole(assert_idempotent: AssertIdempotent) -> None:
    rows = [{"id": f"r-{n}", "text": "x" * 390_000} for n in range(4)]
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}], rows={"rows": rows}, tables={"rows": "id"})
    assert [row["id"] for row in result.rows("rows")] == ["r-0", "r-1", "r-2", "r-3"]
