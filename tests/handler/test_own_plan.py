"""A user's own plan through the whole consumer: what it writes is written once, and no event disturbs another."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, Inexact, getcontext
from typing import Any

import pytest

from idempotent_consumer import (
    Attr,
    Check,
    Delete,
    Event,
    Notification,
    Plan,
    Put,
    Reject,
    Retry,
    Supersede,
    Update,
    WriteMode,
)
from idempotent_consumer.plan import Planner
from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import (
    BURY,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    PUT,
    READ,
    Cloud,
    Context,
    Killed,
    cancelled,
    client_error,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]


def order(name: str, quantity: int = 1, sku: str = "A") -> dict[str, Any]:
    return {"id": name, "sku": sku, "quantity": quantity}


def batch(*orders: dict[str, Any], receive_count: int = 1) -> list[dict[str, Any]]:
    return [record(f"m-{each['id']}", each, receive_count=receive_count) for each in orders]


def deliver(cloud: Cloud, plan: Planner, *records: dict[str, Any], **changes: Any) -> Any:
    return cloud.consumer(plan, **changes).handle({"Records": list(records)}, Context(cloud))


@pytest.fixture
def shop(cloud: Cloud) -> Cloud:
    cloud.add_table("stock", "sku")
    cloud.store("stock", {"sku": {"S": "A"}, "free": {"N": "10"}})
    return cloud


def counting(event: Event) -> Plan:
    """The order's row, and a counter of what is sold."""
    return Plan(
        [
            Put("order_records", {"id": event.id}),
            Update("stock", {"sku": event.data["sku"]}, add={"sold": event.data["quantity"]}),
        ],
        Notification({"id": event.id}),
    )


def taking(event: Event) -> Plan:
    """The order's row, and as much less in stock; not below nothing."""
    quantity = event.data["quantity"]
    return Plan(
        [
            Put("order_records", {"id": event.id}),
            Update(
                "stock",
                {"sku": event.data["sku"]},
                add={"free": -quantity},
                condition=Attr("free").gte(quantity),
                otherwise=Reject("out-of-stock", "free is less than quantity"),
            ),
        ],
        Notification({"id": event.id}),
    )


# --- counters


def test_a_counter_counts_each_event_once_however_often_it_comes(shop: Cloud) -> None:
    orders = [order("o-1", 2), order("o-2", 3), order("o-1", 2)]
    for receive_count in (1, 2, 3):
        assert deliver(shop, counting, *batch(*orders, receive_count=receive_count)) == NOTHING_FAILED
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 5}]
    assert shop.statuses() == {"o-1": "sent", "o-2": "sent"}
    assert sorted(shop.notified()) == ["o-1", "o-2"]


def test_events_that_add_to_one_counter_share_a_transaction(shop: Cloud) -> None:
    assert deliver(shop, counting, *batch(*(order(f"o-{n}", n) for n in range(10)))) == NOTHING_FAILED
    assert shop.operations == [COMMIT, PUBLISH, MARK]
    (transaction,) = shop.requests(COMMIT)
    assert [next(iter(action)) for action in transaction["TransactItems"]] == ["Put", "Put", "Update", *["Put"] * 18]
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 45}]


def test_counters_of_several_rows_and_of_decimals_are_added_up_exactly(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Update("stock", {"sku": event.data["sku"]}, add={"sum": event.data["sum"], "orders": 1})])

    bodies = ['{"id":"a","sku":"A","sum":0.1}', '{"id":"b","sku":"B","sum":-5}', '{"id":"c","sku":"A","sum":0.2}']
    assert deliver(shop, plan, *(record(f"m-{n}", body) for n, body in enumerate(bodies))) == NOTHING_FAILED
    (transaction,) = shop.requests(COMMIT)
    updates = [action["Update"] for action in transaction["TransactItems"] if "Update" in action]
    assert [(each["Key"], each["ExpressionAttributeValues"]) for each in updates] == [
        ({"sku": {"S": "A"}}, {":v0": {"N": "0.3"}, ":v1": {"N": "2"}}),
        ({"sku": {"S": "B"}}, {":v0": {"N": "-5"}, ":v1": {"N": "1"}}),
    ]


@pytest.mark.parametrize("number", [10**18, -(10**18)])
def test_numbers_whose_sum_might_not_be_exact_go_one_after_the_other(shop: Cloud, number: Any) -> None:
    def plan(_event: Event) -> Plan:
        return Plan([Update("stock", {"sku": "A"}, add={"sum": number})])

    assert deliver(shop, plan, *batch(order("o-1"), order("o-2"))) == NOTHING_FAILED
    assert shop.transactions == [["o-1"], ["o-2"]]


def test_a_counter_that_cannot_be_added_to_rejects_no_neighbour(shop: Cloud) -> None:
    """One action for two events: what is wrong with it is not said to be one event's, so each is tried alone."""

    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        sums = [action["Update"]["ExpressionAttributeValues"][":v0"]["N"] for action in request["TransactItems"][2:3]]
        if sums in (["3"], ["2"]):
            raise cancelled("None", "None", "ValidationError", *["None"] * (len(request["TransactItems"]) - 3))
        return effect()

    shop.on(COMMIT, answers=refuse)
    assert deliver(shop, counting, *batch(order("o-1", 1), order("o-2", 2))) == NOTHING_FAILED
    assert shop.statuses() == {"o-1": "sent"}
    assert shop.reasons() == ["refused-by-dynamodb"]
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 1}]


def test_conflict_on_a_shared_counter_tries_all_of_its_events_again(shop: Cloud) -> None:
    shop.on(COMMIT, raises=cancelled("None", "None", "TransactionConflict", "None", "None"), calls=[1])
    assert deliver(shop, counting, *batch(order("o-1", 1), order("o-2", 2))) == NOTHING_FAILED
    assert shop.transactions == [["o-1", "o-2"], ["o-1"], ["o-2"]]
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 3}]


def test_events_that_ask_the_same_of_one_row_share_a_transaction(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Put("order_records", {"id": event.id}), Check("stock", {"sku": "A"}, Attr("free").gt(0))])

    assert deliver(shop, plan, *batch(*(order(f"o-{n}") for n in range(3)))) == NOTHING_FAILED
    assert shop.transactions == [["o-0", "o-1", "o-2"]]
    shop.store("stock", {"sku": {"S": "A"}, "free": {"N": "0"}})
    assert deliver(shop, plan, *batch(*(order(f"p-{n}") for n in range(3)))) == NOTHING_FAILED
    assert shop.reasons() == ["condition-failed"] * 3


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_counter_survives_a_process_that_dies_at_any_call(shop: Cloud, call: int, after: bool) -> None:
    orders = [order("o-1", 2), order("o-2", 3)]
    shop.on("*", raises=Killed(), after=after, calls=[call])
    with pytest.raises(Killed):
        deliver(shop, counting, *batch(*orders))
    assert deliver(shop, counting, *batch(*orders, receive_count=2)) == NOTHING_FAILED
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 5}]
    assert set(shop.notified()) == {"o-1", "o-2"}


@pytest.mark.case("C28")
def test_a_counter_survives_an_answer_that_is_lost(shop: Cloud) -> None:
    shop.on(COMMIT, raises=client_error("InternalServerError"), after=True, calls=[1])
    assert deliver(shop, counting, *batch(order("o-1", 2), order("o-2", 3))) == NOTHING_FAILED
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 5}]


# --- what a failing condition means


def test_reject_says_why_in_the_dead_letter_and_touches_nothing(shop: Cloud, logged: Logged) -> None:
    assert deliver(shop, taking, *batch(order("o-1", 9), order("o-2", 2), order("o-3", 1))) == NOTHING_FAILED
    assert shop.table("stock") == [{"sku": "A", "free": 0}]
    (letter,) = shop.dead_letters()
    assert (letter.reason, letter.detail) == ("out-of-stock", "free is less than quantity")
    assert json.loads(letter.body) == order("o-2", 2)
    assert shop.statuses() == {"o-1": "sent", "o-3": "sent"}
    assert logged() == [("m-o-2", "rejected", "out-of-stock", "")]


def test_condition_on_a_row_that_is_missing_fails(shop: Cloud) -> None:
    assert deliver(shop, taking, *batch(order("o-1", sku="B"))) == NOTHING_FAILED
    assert shop.reasons() == ["out-of-stock"]
    assert shop.table("stock") == [{"sku": "A", "free": 10}]


def waiting_for_customer(event: Event) -> Plan:
    if event.data.get("customer"):
        return Plan([Put("stock", {"sku": event.data["customer"]}, key="sku")])
    row_is_there = Check("stock", {"sku": "c-1"}, Attr("sku").exists(), otherwise=Retry("customer-not-there"))
    return Plan([Put("order_records", {"id": event.id}), row_is_there])


def test_retry_brings_the_message_back_until_the_row_is_there(shop: Cloud, logged: Logged) -> None:
    assert deliver(shop, waiting_for_customer, *batch(order("o-1"))) == reported("m-o-1")
    assert shop.operations == [COMMIT, COMMIT]
    assert logged() == [("m-o-1", "retry", "customer-not-there", "")]
    assert shop.ledger() == {}
    shop.store("stock", {"sku": {"S": "c-1"}})
    assert deliver(shop, waiting_for_customer, *batch(order("o-1"), receive_count=2)) == NOTHING_FAILED
    assert list(shop.rows()) == ["o-1"]


def test_row_that_a_later_message_of_the_batch_writes_is_waited_for(shop: Cloud) -> None:
    records = [*batch(order("o-1"), order("o-2")), record("m-3", {"id": "e-3", "customer": "c-1"})]
    assert deliver(shop, waiting_for_customer, *records) == NOTHING_FAILED
    assert shop.statuses() == dict.fromkeys(["o-1", "o-2", "e-3"], "sent")


def test_event_that_waits_does_not_hold_up_the_others(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return waiting_for_customer(event) if event.id == "o-2" else counting(event)

    assert deliver(shop, plan, *batch(order("o-1"), order("o-2"), order("o-3"))) == reported("m-o-2")
    assert shop.statuses() == {"o-1": "sent", "o-3": "sent"}


def test_supersede_settles_the_event_and_writes_nothing_of_it(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        version = event.data["quantity"]
        row = {"sku": "A", "price": version, "version": version}
        is_older = Attr("version").not_exists() | Attr("version").lt(version)
        put = Put("stock", row, WriteMode.UPSERT, key="sku", condition=is_older, otherwise=Supersede("newer-stored"))
        return Plan([put, Put("order_records", {"id": event.id})], Notification(event.id))

    for name, version in (("o-2", 2), ("o-1", 1), ("o-3", 3)):
        assert deliver(shop, plan, *batch(order(name, version))) == NOTHING_FAILED
    assert shop.statuses() == {"o-1": "sent", "o-2": "sent", "o-3": "sent"}
    assert shop.table("stock") == [{"sku": "A", "price": 3, "version": 3}]
    assert sorted(shop.rows()) == ["o-2", "o-3"]
    assert shop.notified() == ["o-2", "o-3"]
    assert shop.count(PUT) == 1


def test_first_condition_that_fails_decides(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        fails = Attr("sku").eq("never")
        checks = [
            Check("stock", {"sku": "A"}, Attr("sku").exists(), otherwise=Reject("holds")),
            Check("stock", {"sku": "B"}, fails, otherwise=Reject("first")),
            Check("stock", {"sku": "C"}, fails, otherwise=Retry("second")),
        ]
        return Plan(checks if event.id == "o-1" else [checks[0], checks[2], checks[1]])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.reasons() == ["first"]
    assert deliver(shop, plan, *batch(order("o-2"))) == reported("m-o-2")


def test_late_duplicate_is_known_by_its_row_though_its_condition_fails_by_now(shop: Cloud) -> None:
    """The window is over: the ledger has forgotten the event, which used up the stock."""
    assert deliver(shop, taking, *batch(order("o-1", 10))) == NOTHING_FAILED
    shop.expire("o-1")

    def checking_first(event: Event) -> Plan:
        plan = taking(event)
        return Plan(list(reversed(plan.writes)), plan.notification)

    for plan in (taking, checking_first):
        assert deliver(shop, plan, *batch(order("o-1", 10))) == NOTHING_FAILED
    assert shop.dead_letters() == []
    assert shop.table("stock") == [{"sku": "A", "free": 0}]
    assert shop.notified() == ["o-1"]


def test_refused_row_means_what_otherwise_says(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Put("stock", {"sku": "A"}, key="sku", otherwise=Supersede("first-wins"))])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.statuses() == {"o-1": "sent"}
    assert shop.table("stock") == [{"sku": "A", "free": 10}]
    assert (
        deliver(shop, lambda _: Plan([Put("stock", {"sku": "A"}, key="sku")]), *batch(order("o-2"))) == NOTHING_FAILED
    )
    assert shop.reasons() == ["row-exists"]


def test_first_wins_though_another_consumer_wrote_the_row_for_the_same_event(shop: Cloud) -> None:
    shop.store("stock", {"sku": {"S": "A"}, "event_id": {"S": "o-1"}, "event_consumer": {"S": "billing"}})

    def plan(event: Event) -> Plan:
        otherwise = Supersede("first-wins") if event.data["quantity"] else None
        return Plan([Put("stock", {"sku": "A"}, key="sku", otherwise=otherwise)])

    assert deliver(shop, plan, *batch(order("o-1", 0))) == NOTHING_FAILED
    assert shop.reasons() == ["row-exists"]
    assert deliver(shop, plan, *batch(order("o-1", 1))) == NOTHING_FAILED
    assert shop.statuses() == {"o-1": "sent"}


def test_plan_may_reject_by_any_word(shop: Cloud, metrics: Metrics) -> None:
    def plan(_event: Event) -> Plan:
        raise Reject("misconfigured")

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.reasons() == ["misconfigured"]
    assert metrics()["Misconfigured"] == 0


def test_delete_takes_the_row_away(shop: Cloud) -> None:
    def plan(_event: Event) -> Plan:
        return Plan([Delete("stock", {"sku": "A"}, condition=Attr("free").eq(10))])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.table("stock") == []


# --- FIFO


def test_event_that_waits_holds_up_its_group_and_no_other(fifo_cloud: Cloud) -> None:
    fifo_cloud.add_table("stock", "sku")
    records = [
        record("m-1", order("o-1"), group="g"),
        record("m-2", {"id": "o-2", "customer": "c-2"}, group="g"),
        record("m-3", {"id": "o-3", "customer": "c-3"}, group="h"),
    ]
    assert deliver(fifo_cloud, waiting_for_customer, *records) == reported("m-1", "m-2")
    assert fifo_cloud.statuses() == {"o-3": "sent"}


def test_counters_of_one_group_share_a_transaction_in_order(fifo_cloud: Cloud) -> None:
    fifo_cloud.add_table("stock", "sku")
    records = [record(f"m-{n}", order(f"o-{n}", n), group="g") for n in range(5)]
    assert deliver(fifo_cloud, counting, *records) == NOTHING_FAILED
    assert fifo_cloud.transactions == [[f"o-{n}" for n in range(5)]]
    assert fifo_cloud.table("stock") == [{"sku": "A", "sold": 10}]


# --- what a plan may also be


def test_nothing_to_do_is_a_plan(shop: Cloud) -> None:
    assert deliver(shop, lambda _: Plan(), *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.statuses() == {"o-1": "sent"}
    assert shop.operations == [COMMIT]
    assert deliver(shop, counting, *batch(order("o-1"), receive_count=2)) == NOTHING_FAILED
    assert shop.rows() == {}


def test_raised_reject_is_the_reason_of_the_dead_letter(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        if event.data["quantity"] < 1:
            raise Reject("no quantity", "quantity is below 1")
        return counting(event)

    assert deliver(shop, plan, *batch(order("o-1"), order("o-2", 0))) == NOTHING_FAILED
    (letter,) = shop.dead_letters()
    assert (letter.reason, letter.detail) == ("no quantity", "quantity is below 1")
    assert shop.statuses() == {"o-1": "sent"}


def test_new_code_that_rejects_an_old_event_does_not_strand_it(shop: Cloud) -> None:
    shop.on(PUBLISH, raises=Killed(), calls=[1])
    with pytest.raises(Killed):
        deliver(shop, counting, *batch(order("o-1", 0)))
    shop.heal()

    def rejecting(_event: Event) -> Plan:
        raise Reject("not any more")

    assert deliver(shop, rejecting, *batch(order("o-1", 0))) == NOTHING_FAILED
    assert shop.dead_letters() == []
    assert shop.notified() == ["o-1"]


def test_new_code_that_plans_an_old_event_differently_is_no_conflict(shop: Cloud) -> None:
    assert deliver(shop, counting, *batch(order("o-1"))) == NOTHING_FAILED
    assert deliver(shop, taking, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.dead_letters() == []
    assert shop.table("stock") == [{"sku": "A", "free": 10, "sold": 1}]


def test_plan_of_100_writes_is_refused_before_anything_is_written_and_99_are_not(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Put("order_records", {"id": f"{event.id}/{n}"}) for n in range(event.data["quantity"])])

    assert deliver(shop, plan, *batch(order("o-1", 100), order("o-2", 99))) == NOTHING_FAILED
    (letter,) = shop.dead_letters()
    assert (letter.reason, letter.detail) == ("too-many-writes", "the plan has 100 writes, a transaction takes 99")
    assert len(shop.rows()) == 99
    assert shop.statuses() == {"o-2": "sent"}


def test_plan_that_makes_no_sense_is_tried_again_and_says_why(shop: Cloud, logged: Logged, metrics: Metrics) -> None:
    def plan(event: Event) -> Plan:
        if event.id == "o-2":
            return Plan([Put("stock", {"sku": "secret"})])
        return counting(event)

    assert deliver(shop, plan, *batch(order("o-1"), order("o-2"))) == reported("m-o-2")
    text = "Put('stock') names no key, which only the consumer's business table can do without"
    assert logged() == [("m-o-2", "retry", "plan-invalid", text)]
    assert metrics()["Misconfigured"] == 1


def test_plan_function_that_returns_no_plan_fails_the_invocation_where_nothing_else_is_settled(shop: Cloud) -> None:
    with pytest.raises(Misconfigured):
        deliver(shop, lambda _: None, *batch(order("o-1")))  # type: ignore[arg-type,return-value]
    assert shop.operations == []


class OutOfStock(Reject):
    def __init__(self, sku: str) -> None:
        self.sku = sku  # without the constructor of Reject


def test_own_kind_of_reject_rejects(shop: Cloud) -> None:
    def plan(_event: Event) -> Plan:
        raise OutOfStock("A")

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.reasons() == ["rejected"]


@pytest.mark.parametrize("value", ["\ud800", {"a": ["\udfff"]}])
def test_half_of_a_surrogate_pair_is_rejected(shop: Cloud, value: Any) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Put("order_records", {"id": event.id, "text": value})])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.reasons() == ["bad-unicode"]


def test_plan_s_own_arithmetic_ends_with_its_event(shop: Cloud) -> None:
    def plan(event: Event) -> Plan:
        if event.id == "o-1":
            context = getcontext()
            context.prec, context.traps[Inexact] = 3, True
        return Plan([Update("stock", {"sku": "A"}, add={"sum": Decimal("12345.5")})])

    precision = getcontext().prec
    assert deliver(shop, plan, *batch(order("o-1"), order("o-2"))) == NOTHING_FAILED
    (update,) = (action["Update"] for action in shop.requests(COMMIT)[0]["TransactItems"] if "Update" in action)
    assert update["ExpressionAttributeValues"] == {":v0": {"N": "24691.0"}}
    assert getcontext().prec == precision


def test_superseding_says_why_in_the_log(shop: Cloud, logged: Logged) -> None:
    def plan(_event: Event) -> Plan:
        return Plan([Put("stock", {"sku": "A"}, key="sku", otherwise=Supersede("first-wins"))])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert logged() == [("m-o-1", "superseded", "first-wins", "")]


class Slow:
    """A plan that takes its time, and the context that tells how much is left."""

    def __init__(self, cloud: Cloud, plan_ms: int, remaining_ms: int) -> None:
        self._context = Context(cloud, remaining_ms, {COMMIT: 100, PUBLISH: 100, MARK: 100})
        self._plan_ms = plan_ms
        self.planned = 0

    def plan(self, event: Event) -> Plan:
        self.planned += 1
        return Plan([Put("order_records", {"id": event.id})])

    def get_remaining_time_in_millis(self) -> int:
        return self._context.get_remaining_time_in_millis() - self.planned * self._plan_ms


def test_slow_plan_commits_what_it_has_planned_before_the_time_is_used_up(shop: Cloud) -> None:
    slow = Slow(shop, plan_ms=600, remaining_ms=14_000)
    records = batch(*(order(f"o-{n}") for n in range(20)))
    answer = shop.consumer(slow.plan).handle({"Records": records}, slow)
    assert shop.transactions == [["o-0", "o-1"], ["o-2", "o-3"], ["o-4", "o-5"], ["o-6", "o-7"]]
    assert answer == reported(*(f"m-o-{n}" for n in range(8, 20)))
    assert set(shop.statuses()) == {f"o-{n}" for n in range(8)}


def test_no_event_is_planned_for_which_no_time_is_left(shop: Cloud) -> None:
    slow = Slow(shop, plan_ms=0, remaining_ms=8_000)
    assert shop.consumer(slow.plan).handle({"Records": batch(order("o-1"))}, slow) == reported("m-o-1")
    assert (slow.planned, shop.operations) == (0, [])


# --- several notifications


def announcing(event: Event) -> Plan:
    return Plan(
        [Put("order_records", {"id": event.id})],
        notifications=[Notification(f"{event.id}/{n}", {"kind": f"k{n}"}) for n in range(event.data["quantity"])],
    )


def heard(cloud: Cloud) -> list[tuple[str, dict[str, str]]]:
    return sorted(
        (each.message, {name: text for name, (_, text) in each.attributes.items()}) for each in cloud.notifications()
    )


def test_several_notifications_go_out_numbered(shop: Cloud) -> None:
    assert deliver(shop, announcing, *batch(order("o-1", 2), order("o-2", 1), order("o-3", 0))) == NOTHING_FAILED
    assert heard(shop) == [
        ("o-1/0", {"kind": "k0", "event_id": "o-1", "notification_number": "1"}),
        ("o-1/1", {"kind": "k1", "event_id": "o-1", "notification_number": "2"}),
        ("o-2/0", {"kind": "k0", "event_id": "o-2"}),
    ]
    assert shop.operations == [COMMIT, PUBLISH, MARK]


def test_event_is_sent_only_once_all_of_its_notifications_are(shop: Cloud) -> None:
    failed = {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}]}
    shop.on(PUBLISH, answers=failed, calls=[1])
    assert deliver(shop, announcing, *batch(order("o-1", 2))) == reported("m-o-1")
    assert shop.statuses() == {"o-1": "pending"}
    assert deliver(shop, lambda _: Plan(), *batch(order("o-1", 2), receive_count=2)) == NOTHING_FAILED
    assert [message for message, _ in heard(shop)] == ["o-1/0", "o-1/1"]
    assert shop.statuses() == {"o-1": "sent"}


def test_more_notifications_than_a_call_takes_go_in_several(shop: Cloud) -> None:
    assert deliver(shop, announcing, *batch(order("o-1", 25))) == NOTHING_FAILED
    assert shop.operations == [COMMIT, PUBLISH, PUBLISH, PUBLISH, MARK]
    assert len(shop.notifications()) == 25


def test_notifications_that_the_ledger_row_cannot_hold_are_refused_before_anything_is_written(shop: Cloud) -> None:
    def plan(_event: Event) -> Plan:
        return Plan(notifications=[Notification("x" * 210_000), Notification("y" * 210_000)])

    assert deliver(shop, plan, *batch(order("o-1"))) == NOTHING_FAILED
    assert shop.reasons() == ["item-too-large"]
    assert shop.operations == [READ, BURY]


def test_notifications_of_an_event_differ_to_a_fifo_topic_and_keep_their_order(
    new_cloud: Callable[..., Cloud],
) -> None:
    cloud = new_cloud(fifo_queue=True, fifo_topic=True)
    assert deliver(cloud, announcing, record("m-1", order("o-1", 3), group="g")) == NOTHING_FAILED
    notifications = cloud.notifications()
    assert [each.message for each in notifications] == ["o-1/0", "o-1/1", "o-1/2"]
    assert {each.group for each in notifications} == {"g"}
    # SHA-256 of "orders", a zero byte and "o-1".
    digest = "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"
    assert [each.deduplication_id for each in notifications] == [digest, f"{digest}-2", f"{digest}-3"]


# --- I7: a right that one event lacks


def test_table_that_one_event_lacks_a_right_for_fails_no_other(shop: Cloud, logged: Logged) -> None:
    def plan(event: Event) -> Plan:
        table = "forbidden" if event.id == "o-3" else "order_records"
        return Plan([Put(table, {"id": event.id}, key="id")])

    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        if any(action["Put"]["TableName"] == "forbidden" for action in request["TransactItems"]):
            raise client_error("AccessDeniedException")
        return effect()

    shop.on(COMMIT, answers=refuse)
    assert deliver(shop, plan, *batch(*(order(f"o-{n}") for n in range(10)))) == reported("m-o-3")
    assert shop.statuses() == {f"o-{n}": "sent" for n in range(10) if n != 3}
    assert logged() == [
        ("m-o-3", "retry", "misconfigured", "TransactWriteItems: AccessDeniedException (it writes to forbidden)")
    ]


def test_right_that_all_events_lack_is_asked_for_once(shop: Cloud) -> None:
    shop.on(COMMIT, raises=client_error("AccessDeniedException"))
    with pytest.raises(Misconfigured):
        deliver(shop, counting, *batch(*(order(f"o-{n}") for n in range(10))))
    assert shop.operations == [COMMIT]
