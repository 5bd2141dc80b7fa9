"""Each action of a plan becomes an action of the transaction, or is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, Inexact, localcontext
from enum import Enum
from typing import Any

import pytest

from idempotent_consumer import (
    Attr,
    Check,
    Delete,
    Event,
    InvalidPlan,
    Notification,
    Plan,
    Put,
    Reject,
    Retry,
    Supersede,
    Update,
    WriteMode,
)
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.business_row import judge_business_row
from idempotent_consumer.commit import prepare
from idempotent_consumer.plan import Action
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings
from idempotent_consumer.write import OWN_ATTRIBUTES, Write, prepare_write

NOW_MS = 1_893_553_446_789
PRINT = "a" * 64
EVENT = Event("o-1", {"id": "o-1"}, PRINT)

WRITTEN_BY = {
    "event_id": {"S": "o-1"},
    "event_fingerprint": {"S": PRINT},
    "event_consumer": {"S": "orders"},
    "event_committed_at": {"N": "1893553446789"},
}


def configured(**variables: str) -> Settings:
    return Settings.from_environment(
        {
            "CONSUMER_NAME": "orders",
            "LEDGER_TABLE": "ledger",
            "BUSINESS_TABLE": "order_records",
            "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dead-letter",
            "TOPIC_ARN": "arn:aws:sns:eu-central-1:111122223333:orders",
        }
        | variables
    )


def written(action: Action, **variables: str) -> Write:
    return prepare_write(action, EVENT, NOW_MS, configured(**variables))


def rejection(action: Action, **variables: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        written(action, **variables)
    return caught.value.reason, caught.value.detail


def rejected_plan(*writes: Action) -> str:
    with pytest.raises(Rejected) as caught:
        prepare(EVENT, Plan(writes), "m-1", NOW_MS, configured())
    return caught.value.reason


# --- Put


def test_a_put_into_another_table_carries_the_event_too() -> None:
    put = Put("lines", {"order": "o-1", "line": 3, "sku": "A"}, key=("order", "line"))
    assert written(put).action == {
        "Put": {
            "TableName": "lines",
            "Item": {"order": {"S": "o-1"}, "line": {"N": "3"}, "sku": {"S": "A"}, **WRITTEN_BY},
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": "order"},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def test_a_put_may_have_a_condition_beside_its_mode() -> None:
    put = Put("order_records", {"id": "k"}, WriteMode.UPSERT, condition=Attr("status").ne("closed"))
    action = written(put).action["Put"]
    assert action["ConditionExpression"] == (
        "(attribute_not_exists(#event_id) OR #event_id <> :event_id "
        "OR attribute_not_exists(#consumer) OR #consumer <> :consumer) AND #n0 <> :v0"
    )
    assert action["ExpressionAttributeNames"] == {
        "#event_id": "event_id",
        "#consumer": "event_consumer",
        "#n0": "status",
    }
    assert action["ExpressionAttributeValues"] == {
        ":event_id": {"S": "o-1"},
        ":consumer": {"S": "orders"},
        ":v0": {"S": "closed"},
    }


def test_a_newer_put_may_have_a_condition_too() -> None:
    put = Put("order_records", {"id": "k"}, WriteMode.NEWER, 3, condition=Attr("a").exists() | Attr("b").exists())
    action = written(put).action["Put"]
    assert action["ConditionExpression"] == (
        "(attribute_not_exists(#key) OR #version < :version) AND (attribute_exists(#n0) OR attribute_exists(#n1))"
    )
    assert action["ExpressionAttributeValues"] == {":version": {"N": "3"}}


# --- Update


def test_an_update_sets_adds_and_removes() -> None:
    update = Update(
        "stock",
        {"sku": "A-1"},
        set={"name": "Größe", "box.size": Decimal("2.50"), "status": None},
        add={"free": -2, "orders": Decimal("1")},
        remove=["note", "tags[0]"],
        condition=Attr("free").gte(2),
    )
    assert written(update).action == {
        "Update": {
            "TableName": "stock",
            "Key": {"sku": {"S": "A-1"}},
            "UpdateExpression": "SET #n0 = :v0, #n1.#n2 = :v1, #n3 = :v2 REMOVE #n4, #n5[0] ADD #n6 :v3, #n7 :v4",
            "ConditionExpression": "#n6 >= :v5",
            "ExpressionAttributeNames": {
                "#n0": "name",
                "#n1": "box",
                "#n2": "size",
                "#n3": "status",
                "#n4": "note",
                "#n5": "tags",
                "#n6": "free",
                "#n7": "orders",
            },
            "ExpressionAttributeValues": {
                ":v0": {"S": "Größe"},
                ":v1": {"N": "2.50"},
                ":v2": {"NULL": True},
                ":v3": {"N": "-2"},
                ":v4": {"N": "1"},
                ":v5": {"N": "2"},
            },
        }
    }


def test_an_update_that_only_removes_brings_no_values() -> None:
    assert written(Update("stock", {"sku": "A-1"}, remove=["note"])).action == {
        "Update": {
            "TableName": "stock",
            "Key": {"sku": {"S": "A-1"}},
            "UpdateExpression": "REMOVE #n0",
            "ExpressionAttributeNames": {"#n0": "note"},
        }
    }


@pytest.mark.parametrize("name", sorted(OWN_ATTRIBUTES))
@pytest.mark.parametrize("part", ["set", "add", "remove"])
def test_an_update_leaves_what_tells_who_wrote_a_row(name: str, part: str) -> None:
    changes: dict[str, Any] = {part: [name] if part == "remove" else {name: 1}}
    assert rejection(Update("stock", {"sku": "A-1"}, **changes))[0] == "reserved-attribute"


@pytest.mark.parametrize("changes", [{"set": {"sku": "B"}}, {"remove": ["sku.a"]}, {"add": {"sku": 1}}], ids=str)
def test_an_update_changes_no_key(changes: dict[str, Any]) -> None:
    assert rejection(Update("stock", {"sku": "A-1"}, **changes))[0] == "key-changed"


@pytest.mark.parametrize("number", ["1", None, True, [1], 1.5])
def test_only_numbers_are_added(number: Any) -> None:
    assert rejection(Update("stock", {"sku": "A-1"}, add={"free": number}))[0] == "value-type"


@pytest.mark.case("C36", "C37")
def test_a_float_is_refused_with_what_to_do() -> None:
    reason, detail = rejection(Update("stock", {"sku": "A-1"}, set={"price": 19.99}))
    assert (reason, detail) == ("value-type", "stock: price: float is not a JSON type: use Decimal, from text")


def test_what_an_update_writes_is_measured() -> None:
    assert rejection(Update("stock", {"sku": "A-1"}, set={"text": "x" * 410_000}))[0] == "item-too-large"


# --- Delete and Check


def test_a_delete_and_a_check() -> None:
    assert written(Delete("stock", {"sku": "A-1"})).action == {
        "Delete": {"TableName": "stock", "Key": {"sku": {"S": "A-1"}}}
    }
    check = Check("customers", {"tenant": "t", "number": 7}, Attr("active").eq(True))
    assert written(check).action == {
        "ConditionCheck": {
            "TableName": "customers",
            "Key": {"tenant": {"S": "t"}, "number": {"N": "7"}},
            "ConditionExpression": "#n0 = :v0",
            "ExpressionAttributeNames": {"#n0": "active"},
            "ExpressionAttributeValues": {":v0": {"BOOL": True}},
        }
    }


# --- keys


@pytest.mark.parametrize(
    "action",
    [
        Update("order_records", {"id": 7}, add={"n": 1}),
        Delete("order_records", {"id": 7}),
        Check("order_records", {"id": 7}, Attr("n").exists()),
    ],
)
def test_an_integer_is_written_in_decimal_where_the_business_table_s_key_is_a_string(action: Action) -> None:
    ((_, request),) = written(action).action.items()
    assert request["Key"] == {"id": {"S": "7"}}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"sku": ""}, "key-size"),
        ({"sku": "é" * 1025}, "key-size"),
        ({"sku": "a", "line": "é" * 513}, "key-size"),
        ({"sku": None}, "key-missing"),
        ({"sku": True}, "key-wrong-type"),
        ({"sku": ["a"]}, "key-wrong-type"),
        ({"sku": 1.5}, "key-wrong-type"),
        ({"sku": 10**38 + 1}, "number-out-of-range"),
    ],
)
@pytest.mark.case("N01", "C34")
def test_a_key_that_no_table_takes_is_rejected(key: dict[str, Any], reason: str) -> None:
    assert rejection(Delete("stock", key))[0] == reason
    assert rejection(Put("stock", key, key=tuple(key)))[0] == reason


def test_a_missing_key_of_a_put_is_rejected() -> None:
    assert rejection(Put("stock", {"free": 1}, key="sku"))[0] == "key-missing"


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Put("stock", {"sku": "A"}), "Put('stock') names no key"),
        (Put("order_records", {"id": "A"}, key="sku"), "the key of this table is id"),
        (Delete("order_records", {"sku": "A"}), "the key of this table is id"),
        (Check("order_records", {"id": "A", "line": 1}, Attr("a").exists()), "the key of this table is id"),
        (Put("ledger", {"event_id": "A"}, key="event_id"), "the ledger is written by the consumer alone"),
        (Update("ledger", {"event_id": "A"}, set={"status": "sent"}), "the ledger is written by the consumer alone"),
    ],
)
def test_a_plan_that_does_not_fit_the_tables_makes_no_sense(action: Action, text: str) -> None:
    with pytest.raises(InvalidPlan) as caught:
        written(action)
    assert text in str(caught.value)


# --- what makes no sense is refused where it is written


@pytest.mark.parametrize(
    "make",
    [
        lambda: Put("", {}),
        lambda: Put(None, {}),  # type: ignore[arg-type]
        lambda: Put("tab", [1]),  # type: ignore[arg-type]
        lambda: Put("tab", {}, "upsert"),  # type: ignore[arg-type]
        lambda: Put("tab", {}, condition=Attr("a").exists()),
        lambda: Put("ab", {}),
        lambda: Put("arn:aws:dynamodb:us-east-1:123456789012:table/stock", {}),
        lambda: Put("tab", {}, version=3),
        lambda: Put("tab", {}, WriteMode.UPSERT, 3),
        lambda: Put("tab", {}, key=()),
        lambda: Put("tab", {}, key=("a", "b", "c")),
        lambda: Put("tab", {}, key=("a", "a")),
        lambda: Put("tab", {}, key=""),
        lambda: Put("tab", {}, key=["a", 5]),  # type: ignore[list-item]
        lambda: Put("tab", {}, key=5),  # type: ignore[arg-type]
        lambda: Retry(""),
        lambda: Retry(["why"]),  # type: ignore[arg-type]
        lambda: Retry("misconfigured"),
        lambda: Retry("throttled"),
        lambda: Supersede(" "),
        lambda: Put("tab", {}, WriteMode.UPSERT, otherwise=Reject("never")),
        lambda: Update("tab", {"id": 1}),
        lambda: Update("tab", {}, add={"n": 1}),
        lambda: Update("tab", {"a": 1, "b": 2, "c": 3}, add={"n": 1}),
        lambda: Update("tab", "id", add={"n": 1}),  # type: ignore[arg-type]
        lambda: Update("tab", {"id": 1}, remove="note"),
        lambda: Update("tab", {"id": 1}, remove=(name for name in ["note"])),  # type: ignore[arg-type]
        lambda: Update("tab", {"id": 1}, add={"n": 1}, remove=None),  # type: ignore[arg-type]
        lambda: Attr("a").is_in(value for value in [1]),  # type: ignore[arg-type]
        lambda: Notification("text", None),  # type: ignore[arg-type]
        lambda: Update("tab", {"id": 1}, set=["n"]),  # type: ignore[arg-type]
        lambda: Update("tab", {"id": 1}, set={"n": 1}, add={"n": 1}),
        lambda: Update("tab", {"id": 1}, set={"n": 1}, remove=["n"]),
        lambda: Update("tab", {"id": 1}, set={"n": 1, "n.a": 1}),
        lambda: Update("tab", {"id": 1}, set={"n[0].a": 1}, remove=["n[0]"]),
        lambda: Update("tab", {"id": 1}, remove=["n", "n"]),
        lambda: Update("tab", {"id": 1}, add={"a.b": 1}),
        lambda: Update("tab", {"id": 1}, set={"a..b": 1}),
        lambda: Update("tab", {"id": 1}, add={"n": 1}, otherwise=Retry("never")),
        lambda: Update("tab", {"id": 1}, add={"n": 1}, condition=True),  # type: ignore[arg-type]
        lambda: Delete("tab", {"id": 1}, condition=Attr("a").eq(1), otherwise="why"),  # type: ignore[arg-type]
        lambda: Check("tab", {"id": 1}, None),  # type: ignore[arg-type]
        lambda: Plan(Put("tab", {})),  # type: ignore[arg-type]
        lambda: Plan([{"Put": {}}]),  # type: ignore[list-item]
        lambda: Plan(iter([Put("tab", {})])),  # type: ignore[arg-type]
        lambda: Plan(notification="text"),  # type: ignore[arg-type]
        lambda: Plan(notifications=["text"]),  # type: ignore[list-item]
        lambda: Plan(notifications=Notification("text")),  # type: ignore[arg-type]
        lambda: Plan(notification=Notification("a"), notifications=[Notification("b")]),
    ],
)
def test_misuse_is_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidPlan):
        make()


# --- a plan as a whole


def test_a_transaction_takes_99_writes_and_no_more() -> None:
    writes = [Update("stock", {"sku": f"s-{number}"}, add={"free": 1}) for number in range(100)]
    assert rejected_plan(*writes) == "too-many-writes"
    assert prepare(EVENT, Plan(writes[:99]), "m-1", NOW_MS, configured()).actions == 100


@pytest.mark.case("C30")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Put("order_records", {"id": "k"}), Put("order_records", {"id": "k", "n": 1}, WriteMode.UPSERT)),
        (Put("order_records", {"id": "7"}), Update("order_records", {"id": 7}, add={"n": 1})),
        (Update("stock", {"a": 1, "b": 2}, add={"n": 1}), Delete("stock", {"b": Decimal("2.0"), "a": 1})),
        (Update("stock", {"a": 1}, add={"n": 1}), Update("stock", {"a": 1}, add={"m": 1})),
        (Update("stock", {"a": 1}, add={"n": 1}), Update("stock", {"a": 1}, set={"n": 1})),
        (Update("stock", {"a": 1}, set={"n": 1}), Update("stock", {"a": 1}, set={"n": 1})),
        (Check("stock", {"a": 1}, Attr("n").exists()), Check("stock", {"a": 1}, Attr("m").exists())),
        (Check("stock", {"a": 1}, Attr("n").eq(1)), Check("stock", {"a": 1}, Attr("n").eq(2))),
    ],
)
def test_two_writes_of_one_row_are_refused(one: Action, other: Action) -> None:
    assert rejected_plan(one, other) == "row-written-twice"
    assert rejected_plan(other, one) == "row-written-twice"


def test_two_writes_of_one_row_that_only_add_are_one_action() -> None:
    add = Update("stock", {"sku": "A"}, add={"free": -1})
    prepare(EVENT, Plan([add, add]), "m-1", NOW_MS, configured())


@pytest.mark.parametrize(
    ("number", "is_shared"),
    [
        (0, True),
        (-5, True),
        (Decimal("0.10"), True),
        (10**18 - 1, True),
        (Decimal("1E+17"), True),
        (Decimal("1E-18"), True),
        (10**18, False),
        (-(10**18), False),
        (Decimal("1E-19"), False),
        (Decimal("1.0000000000000000000"), False),
    ],
)
def test_what_is_added_shares_an_action_where_the_sum_of_many_is_exact(number: Any, is_shared: bool) -> None:
    add = Update("stock", {"sku": "A"}, add={"free": number})
    assert (written(add).sharing is not None) is is_shared


def test_arithmetic_that_a_user_s_module_has_set_does_not_matter() -> None:
    with localcontext(prec=3) as context:
        context.traps[Inexact] = True
        assert written(Update("stock", {"sku": "A"}, add={"free": Decimal("12345.5")})).sharing == ("free",)


@pytest.mark.parametrize(
    "action",
    [
        Put("order_records", {"id": "A"}),
        Update("stock", {"sku": "A"}, set={"free": 1}),
        Update("stock", {"sku": "A"}, add={"free": 1}, set={"note": 1}),
        Update("stock", {"sku": "A"}, add={"free": 1}, remove=["note"]),
        Update("stock", {"sku": "A"}, add={"free": 1}, condition=Attr("free").exists()),
        Delete("stock", {"sku": "A"}),
    ],
)
def test_what_depends_on_the_order_shares_no_action(action: Action) -> None:
    assert written(action).sharing is None


def test_rows_of_over_4_mb_in_all_are_refused() -> None:
    writes = [Put("order_records", {"id": f"k-{number}", "text": "x" * 380_000}) for number in range(12)]
    assert rejected_plan(*writes) == "transaction-too-large"
    prepare(EVENT, Plan(writes[:11]), "m-1", NOW_MS, configured())


@pytest.mark.parametrize("plan", [None, {}, [], lambda event: Plan()])
def test_what_is_no_plan_is_refused(plan: Any) -> None:
    with pytest.raises(InvalidPlan, match="the plan is no Plan but "):
        prepare(EVENT, plan, "m-1", NOW_MS, configured())


def test_a_notification_without_a_topic_is_refused_before_it_is_committed() -> None:
    settings = configured()
    without = Settings(**{**vars(settings), "topic_arn": None})
    with pytest.raises(InvalidPlan, match="no topic"):
        prepare(EVENT, Plan(notification=Notification("hello")), "m-1", NOW_MS, without)


# --- what a failing condition means


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        (
            Delete("stock", {"sku": "A"}, condition=Attr("free").eq(0)),
            Verdict(Outcome.REJECTED, "condition-failed", "the plan's condition on a row of stock"),
        ),
        (
            Delete("stock", {"sku": "A"}, condition=Attr("free").eq(0), otherwise=Reject("not-empty", "still some")),
            Verdict(Outcome.REJECTED, "not-empty", "still some"),
        ),
        (
            Check("stock", {"sku": "A"}, Attr("sku").exists(), otherwise=Retry("sku-not-there")),
            Verdict(Outcome.RETRY, "sku-not-there"),
        ),
        (
            Put("order_records", {"id": "A"}, otherwise=Supersede("first-wins")),
            Verdict(Outcome.SUPERSEDED, "first-wins"),
        ),
        (
            Put("order_records", {"id": "A"}),
            Verdict(Outcome.CONFLICT, "row-exists", "a row of this key is stored that must not be overwritten"),
        ),
    ],
)
def test_each_action_says_what_its_refusal_means(action: Action, verdict: Verdict) -> None:
    assert written(action).otherwise == verdict


def test_paths_that_only_look_alike_do_not_meet() -> None:
    Update("tab", {"id": 1}, set={"n.a": 1, "n.b": 1, "na": 1, "n.c[1]": 1, "n.c[10]": 1}, remove=["m"])


def test_an_attribute_is_no_value() -> None:
    with pytest.raises(InvalidPlan, match="which only conditions take"):
        written(Update("stock", {"sku": "A"}, set={"free": Attr("reserved")}))


class Sku(str, Enum):  # noqa: UP042 – that StrEnum shows itself as its value is what this is not about
    A = "A"

    def __repr__(self) -> str:
        return "***"


class Count(int, Enum):
    ONE = 1


def test_values_of_a_plan_s_own_types_are_written_as_what_they_are() -> None:
    item = written(Put("order_records", {"id": Sku.A, "count": Count.ONE, Sku.A: "x"})).action["Put"]["Item"]
    assert (item["id"], item["count"], item["A"]) == ({"S": "A"}, {"N": "1"}, {"S": "x"})
    assert type(item["id"]["S"]) is str


def test_two_conditions_are_not_one_because_their_values_show_themselves_alike() -> None:
    class Secret(str):
        def __repr__(self) -> str:
            return "***"

    right, wrong = (
        written(Check("stock", {"sku": "A"}, Attr("token").eq(Secret(text)))).sharing for text in ("right", "wrong")
    )
    assert right != wrong


def test_two_rows_are_one_however_their_key_is_spelt() -> None:
    assert rejected_plan(Delete("stock", {"sku": Sku.A}), Delete("stock", {"sku": "A"})) == "row-written-twice"


@pytest.mark.parametrize("values", [{1: "x"}, {"a": {None: 1}}, {"a": {"": 1}}])
def test_a_name_is_a_text(values: Any) -> None:
    assert rejection(Put("order_records", {"id": "k"} | values))[0] == "attribute-name"


NEWER_ROW = {"event_id": {"S": "o-0"}, "event_consumer": {"S": "orders"}}


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        ({"event_version": {"N": "4"}}, Verdict(Outcome.SUPERSEDED)),
        ({"event_version": {"N": "3"}}, Verdict(Outcome.SUPERSEDED)),
        ({"event_version": {"N": "2"}}, Verdict(Outcome.REJECTED, "closed")),
        ({"event_version": {"S": "2"}}, "row-exists"),
        ({}, "row-exists"),
    ],
)
def test_a_newer_put_with_a_condition_is_refused_for_one_or_the_other(
    stored: dict[str, Any], verdict: Verdict | str
) -> None:
    open_one = Attr("closed").not_exists()
    write = written(
        Put("order_records", {"id": "k"}, WriteMode.NEWER, 3, condition=open_one, otherwise=Reject("closed"))
    )
    judged = judge_business_row({**NEWER_ROW, **stored}, EVENT, write)
    assert verdict in (judged, judged.reason)


@pytest.mark.parametrize("name", ["NaN", "NaN123", "sNaN7", "Infinity", "-Infinity"])
def test_what_is_no_number_is_not_written_as_one(name: str) -> None:
    assert rejection(Put("order_records", {"id": "k", "n": Decimal(name)}))[0] == "number-out-of-range"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("out-of-stock", "out-of-stock"), ("", "rejected"), ("  ", "rejected"), ("a\x00b", "a?b"), ("x" * 300, "x" * 256)],
)
def test_a_reason_is_one_that_a_dead_letter_can_carry(reason: str, shown: str) -> None:
    assert (Reject(reason, "d").reason, Reject(reason, "d").detail) == (shown, "d")
