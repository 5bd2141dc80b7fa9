"""Events whose writes share a row: one action of a transaction for all, and which of them share it at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer import Attr, Check, Delete, Event, InvalidPlan, Plan, Put, Reject, Retry, Update, WriteMode
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.business_row import judge_identity
from idempotent_consumer.cancellation import Next, Refusal, read_error, read_reasons
from idempotent_consumer.commit import Commit, prepare
from idempotent_consumer.delivery import Reading, Work
from idempotent_consumer.grouping import next_group
from idempotent_consumer.message import Message
from idempotent_consumer.plan import Action
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings
from idempotent_consumer.transaction import combine
from tests.handler.support import COMMIT, NOTHING_FAILED, Cloud, Context, cancelled, record

NOW_MS = 1_893_553_446_789
PRINT = "a" * 64
SETTINGS = Settings.from_environment(
    {
        "CONSUMER_NAME": "orders",
        "LEDGER_TABLE": "ledger",
        "BUSINESS_TABLE": "order_records",
        "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dead-letter",
    }
)

Number = int | Decimal


def commit(event_id: str, *writes: Action) -> Commit:
    return prepare(Event(event_id, {}, PRINT), Plan(writes), f"m-{event_id}", NOW_MS, SETTINGS)


def adding(sku: str = "A", **sums: Number) -> Update:
    return Update("stock", {"sku": sku}, add=sums or {"sold": 1})


def asking(sku: str = "A", least: int = 1, otherwise: Reject | Retry | None = None) -> Check:
    return Check("stock", {"sku": sku}, Attr("free").gte(least), otherwise=otherwise)


def own(event_id: str) -> Put:
    return Put("order_records", {"id": event_id})


def kinds(commits: Sequence[Commit]) -> list[str]:
    return [kind for action in combine(commits).actions for kind in action]


def keys(commits: Sequence[Commit]) -> list[str]:
    """The row of each action: ledger rows by `event_id`."""
    result = []
    for action in combine(commits).actions:
        ((_, request),) = action.items()
        values = request.get("Key") or request["Item"]
        result.append(next(values[name]["S"] for name in ("sku", "id", "event_id") if name in values))
    return result


def sums(commits: Sequence[Commit]) -> list[dict[str, str]]:
    """What each update adds, by attribute."""
    result = []
    for action in combine(commits).actions:
        if "Update" in action:
            update = action["Update"]
            pairs = (part.split() for part in update["UpdateExpression"].removeprefix("ADD ").split(", "))
            names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
            result.append({names[name]: values[value]["N"] for name, value in pairs})
    return result


# --- the actions of a transaction


def test_a_single_event_is_its_ledger_row_and_its_writes_in_the_order_of_the_plan() -> None:
    commits = [commit("a", asking("B"), own("a-row"), adding("A"))]
    transaction = combine(commits)
    assert transaction.indexes == [[0, 1, 2, 3]]
    assert keys(commits) == ["a", "B", "a-row", "A"]
    assert transaction.actions == commits[0].transaction()


def test_events_that_share_nothing_stand_behind_each_other() -> None:
    commits = [commit("a", own("r-1")), commit("b"), commit("c", own("r-3"), own("r-4"))]
    transaction = combine(commits)
    assert transaction.indexes == [[0, 1], [2], [3, 4, 5]]
    assert transaction.actions == [action for each in commits for action in each.transaction()]


def test_a_shared_row_is_the_action_of_the_first_event_that_has_it() -> None:
    commits = [commit("a", own("r-1")), commit("b", own("r-2"), adding()), commit("c", adding(), own("r-3"))]
    assert combine(commits).indexes == [[0, 1], [2, 3, 4], [5, 4, 6]]
    assert keys(commits) == ["a", "r-1", "b", "r-2", "A", "c", "r-3"]
    assert kinds(commits) == ["Put", "Put", "Put", "Put", "Update", "Put", "Put"]


def test_each_shared_row_has_an_action_of_its_own() -> None:
    commits = [commit("a", adding("A"), adding("B")), commit("b", adding("B"), adding("C"), adding("A"))]
    assert combine(commits).indexes == [[0, 1, 2], [3, 2, 4, 1]]
    assert keys(commits) == ["a", "A", "B", "b", "C"]


def test_one_key_in_two_tables_is_two_rows() -> None:
    commits = [commit("a", adding("A")), commit("b", Update("sales", {"sku": "A"}, add={"sold": 1}))]
    assert combine(commits).indexes == [[0, 1], [2, 3]]
    assert sums(commits) == [{"sold": "1"}, {"sold": "1"}]


def test_two_additions_of_one_plan_are_one_action() -> None:
    commits = [commit("a", adding(sold=2), own("r-1"), adding(sold=3)), commit("b", adding(sold=5))]
    assert combine(commits).indexes == [[0, 1, 2, 1], [3, 1]]
    assert sums(commits) == [{"sold": "10"}]


def test_what_does_not_share_a_row_is_never_made_one_action() -> None:
    """Grouping keeps them apart; were they together, DynamoDB would refuse them, and nothing would be lost."""
    assert kinds([commit("a", asking()), commit("b", adding()), commit("c", adding(money=1))]) == [
        "Put",
        "ConditionCheck",
        "Put",
        "Update",
        "Put",
        "Update",
    ]


# --- sums


def test_each_attribute_is_added_up_by_itself() -> None:
    commits = [commit("a", adding(sold=2, money=Decimal("0.10"))), commit("b", adding(sold=-7, money=Decimal("0.2")))]
    assert sums(commits) == [{"sold": "-5", "money": "0.30"}]


def test_nothing_but_the_numbers_of_a_shared_update_changes() -> None:
    (first,) = [each for each in combine([commit("a", adding(sold=1))]).actions if "Update" in each]
    (both,) = [
        each for each in combine([commit("a", adding(sold=1)), commit("b", adding())]).actions if "Update" in each
    ]
    assert first["Update"].pop("ExpressionAttributeValues") == {":v0": {"N": "1"}}
    assert both["Update"].pop("ExpressionAttributeValues") == {":v0": {"N": "2"}}
    assert both == first


def test_the_events_themselves_keep_their_numbers_for_another_try() -> None:
    commits = [commit("a", adding(sold=1)), commit("b", adding(sold=2))]
    assert sums(commits) == sums(commits) == [{"sold": "3"}]
    assert sums(commits[1:]) == [{"sold": "2"}]


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ([0, 0], "0"),
        ([5, -5], "0"),
        ([10**18 - 1] * 99, "98999999999999999901"),
        ([1 - 10**18] * 99, "-98999999999999999901"),
        ([Decimal("899999999999999999.999999999999999999")] * 99, "89099999999999999999.999999999999999901"),
        ([Decimal("1E-18"), 10**18 - 1], "999999999999999999.000000000000000001"),
        ([Decimal("0.1")] * 10, "1.0"),
        ([Decimal("1E+3"), 1], "1001"),
        ([Decimal("-0.0"), 0], "0"),
    ],
)
def test_sums_are_exact_to_the_last_of_38_digits(numbers: list[Number], total: str) -> None:
    together = [commit(f"e-{place}", adding(sold=number)) for place, number in enumerate(numbers)]
    assert sums(together) == [{"sold": total}]
    assert sums([commit("e", *(adding(sold=number) for number in numbers))]) == [{"sold": total}]
    assert len(Decimal(total).as_tuple().digits) <= 38


# --- what shares an action


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (adding(sold=1), adding(sold=2)),
        (adding(sold=1, money=2), adding(sold=2, money=Decimal("0.5"))),
        (asking(), asking()),
        (asking(otherwise=Reject("out-of-stock")), asking(otherwise=Retry("not-yet"))),
        (
            Update("shelves", {"a": 1, "b": "x"}, add={"n": 1}),
            Update("shelves", {"b": "x", "a": Decimal("1.0")}, add={"n": 1}),
        ),
    ],
)
def test_what_shares_an_action_goes_together(one: Action, other: Action) -> None:
    commits = [commit("a", one), commit("b", other)]
    assert combine(commits).indexes == [[0, 1], [2, 1]]
    assert picked(work("a", one), work("b", other)) == ["a", "b"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (adding(sold=1), adding(money=1)),
        (adding(sold=1, money=1), adding(money=1, sold=1)),
        (adding(sold=1, money=1), adding(sold=1)),
        (adding(sold=1), adding(sold=10**18)),
        (adding(sold=Decimal("1E-19")), adding(sold=1)),
        (adding(sold=1, money=10**18), adding(sold=1, money=1)),
        (adding(sold=10**18, money=1), adding(sold=10**18, money=1)),
        (adding(), asking()),
        (asking(least=1), asking(least=2)),
        (asking(), Check("stock", {"sku": "A"}, Attr("free").gt(1))),
        (asking(), Check("stock", {"sku": "A"}, Attr("held").gte(1))),
        (adding(sold=1), Update("stock", {"sku": "A"}, add={"sold": 1}, condition=Attr("sku").exists())),
        (adding(sold=1), Update("stock", {"sku": "A"}, set={"sold": 1})),
        (adding(sold=1), Update("stock", {"sku": "A"}, add={"sold": 1}, set={"note": "x"})),
        (adding(sold=1), Update("stock", {"sku": "A"}, add={"sold": 1}, remove=["note"])),
        (asking(), Delete("stock", {"sku": "A"})),
        (asking(), Put("stock", {"sku": "A"}, WriteMode.UPSERT, key="sku")),
        (Delete("stock", {"sku": "A"}), Delete("stock", {"sku": "A"})),
    ],
)
def test_what_does_not_goes_one_after_the_other(one: Action, other: Action) -> None:
    assert picked(work("a", one), work("b", other), work("c", own("r-3"))) == ["a", "c"]
    assert picked(work("a", other), work("b", one), work("c", own("r-3"))) == ["a", "c"]


# --- whose failing it is


def test_a_condition_that_events_share_fails_for_each_of_them_as_its_own_plan_says() -> None:
    commits = [
        commit("a", asking(otherwise=Reject("out-of-stock"))),
        commit("b", own("r")),
        commit("c", asking(otherwise=Retry("not-yet"))),
    ]
    reasons = [{"Code": code} for code in ("None", "ConditionalCheckFailed", "None", "None", "None")]
    assert read_reasons(commits, combine(commits).indexes, reasons) == [
        Refusal(Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "out-of-stock")),
        None,
        Refusal(Next.ONCE_MORE, Verdict(Outcome.RETRY, "not-yet")),
    ]


def test_a_conflict_on_a_shared_row_concerns_each_of_its_events() -> None:
    commits = [commit("a", adding()), commit("b", own("r")), commit("c", adding())]
    reasons = [{"Code": code} for code in ("None", "TransactionConflict", "None", "None", "None")]
    verdict = Verdict(Outcome.RETRY, "transaction-conflict", "TransactWriteItems: TransactionConflict")
    again = Refusal(Next.AGAIN, verdict)
    assert read_reasons(commits, combine(commits).indexes, reasons) == [again, None, again]


@pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
def test_a_shared_row_that_takes_the_sum_never_rejects_none_of_its_events(code: str) -> None:
    commits = [commit("a", adding()), commit("b", own("r")), commit("c", adding())]
    reasons = [{"Code": each} for each in ("None", code, "None", "None", "None")]
    assert read_reasons(commits, combine(commits).indexes, reasons) == [None, None, None]
    rejected = Refusal(
        Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "refused-by-dynamodb", f"TransactWriteItems: {code}")
    )
    assert read_reasons(commits[:1], combine(commits[:1]).indexes, reasons[:2]) == [rejected]


def test_a_row_that_one_event_alone_writes_rejects_it_beside_a_shared_one() -> None:
    commits = [commit("a", adding()), commit("b", own("r")), commit("c", adding())]
    reasons = [{"Code": each} for each in ("None", "None", "None", "ValidationError", "None")]
    rejected = Refusal(
        Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "refused-by-dynamodb", "TransactWriteItems: ValidationError")
    )
    assert read_reasons(commits, combine(commits).indexes, reasons) == [None, rejected, None]


def test_a_row_that_one_plan_writes_twice_is_that_event_s_alone() -> None:
    commits = [commit("a", adding(), adding()), commit("b", own("r"))]
    reasons = [{"Code": each} for each in ("None", "ValidationError", "None", "None")]
    rejected = Refusal(
        Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "refused-by-dynamodb", "TransactWriteItems: ValidationError")
    )
    assert read_reasons(commits, combine(commits).indexes, reasons) == [rejected, None]


def test_reasons_are_as_many_as_actions_not_as_writes() -> None:
    commits = [commit("a", adding()), commit("b", adding())]
    indexes = combine(commits).indexes
    conflict = {"Code": "TransactionConflict"}
    assert read_reasons(commits, indexes, [conflict] * 4) == [None, None]
    assert all(read_reasons(commits, indexes, [conflict] * 3))


def misconfigured(*writes: Action) -> list[bool]:
    """Whether events with one write each are all settled by a right that is missing."""
    commits = [commit(f"e-{place}", write) for place, write in enumerate(writes)]
    verdict = Verdict(Outcome.RETRY, "misconfigured", "TransactWriteItems: AccessDeniedException")
    named = Verdict(Outcome.RETRY, "misconfigured", f"{verdict.detail} (it writes to stock)")
    return [refusal == Refusal(Next.SETTLED, named) for refusal in read_error(commits, "AccessDenied", verdict)]


def test_a_missing_right_settles_those_who_all_need_the_same_rights() -> None:
    assert misconfigured(adding("A"), adding("B", money=1)) == [True, True]
    assert misconfigured(Delete("stock", {"sku": "A"})) == [True]


def test_a_missing_right_for_one_kind_of_write_is_not_taken_for_the_others() -> None:
    assert misconfigured(adding("A"), Delete("stock", {"sku": "B"})) == [False, False]
    assert misconfigured(adding("A"), Update("sales", {"sku": "A"}, add={"sold": 1})) == [False, False]


def test_a_conditional_put_that_finds_no_row_is_refused_by_its_condition() -> None:
    replacing = Put(
        "order_records", {"id": "r"}, WriteMode.UPSERT, condition=Attr("id").exists(), otherwise=Reject("no-row")
    )
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed"}]
    commits = [commit("a", replacing)]
    assert read_reasons(commits, combine(commits).indexes, reasons) == [
        Refusal(Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "no-row"))
    ]


def test_a_row_tells_a_duplicate_only_where_it_is_put() -> None:
    """What stands in a row is who put it, not who changed, deleted or looked at it."""
    row = {"event_id": {"S": "a"}, "event_fingerprint": {"S": PRINT}, "event_consumer": {"S": "orders"}}
    event = Event("a", {}, PRINT)
    (put,) = commit("a", own("a")).writes
    assert judge_identity(row, event, put) == Verdict(
        Outcome.DUPLICATE, "ledger-row-expired", "the business row carries this event"
    )
    for action in (adding(), asking(), Delete("stock", {"sku": "A"})):
        (write,) = commit("a", action).writes
        assert judge_identity(row, event, write) is None


# --- which events go together


def work(event_id: str, *writes: Action, group: str | None = None, **more: Any) -> Work:
    message = Message(f"m-{event_id}", "{}", group, NOW_MS, 1, {})
    event = Event(event_id, {}, PRINT, group)
    return Work(message, event, commit=commit(event_id, *writes), **more)


def picked(*window: Work) -> list[str]:
    return [str(each.event_id) for each in next_group(window)]


def test_a_row_that_all_share_keeps_none_back() -> None:
    window = [work(f"e-{number}", adding(), asking("B")) for number in range(40)]
    # What is shared counts for each: 33 events of three actions fill a transaction.
    assert picked(*window) == [f"e-{number}" for number in range(33)]


def test_one_that_writes_the_shared_row_alone_waits_and_so_do_those_behind_it() -> None:
    alone = Update("stock", {"sku": "A"}, set={"sold": 0})
    window = work("a", adding()), work("b", adding()), work("c", alone), work("d", adding()), work("e", adding("B"))
    assert picked(*window) == ["a", "b", "e"]
    for each in (window[0], window[1], window[4]):
        each.verdict = Verdict(Outcome.APPLIED)
    assert picked(*window) == ["c"]
    window[2].verdict = Verdict(Outcome.APPLIED)
    assert picked(*window) == ["d"]


def test_those_who_ask_and_those_who_add_take_turns_in_their_order() -> None:
    window = [work("a", asking()), work("b", adding()), work("c", asking()), work("d", adding())]
    groups = []
    while group := next_group(window):
        groups.append([each.event_id for each in group])
        for each in group:
            each.verdict = Verdict(Outcome.APPLIED)
    assert groups == [["a"], ["b"], ["c"], ["d"]]


def test_two_that_share_a_row_and_write_another_go_one_after_the_other() -> None:
    assert picked(work("a", adding(), own("r")), work("b", adding(), own("r")), work("c", adding())) == ["a", "c"]


SKIPPED: list[dict[str, Any]] = [{"attempts": 1}, {"largest_group": 1}, {"reading": Reading.NEEDED}]
SKIPPED_IDS = ["failed before", "goes alone", "has to be read"]


@pytest.mark.parametrize("skipped", SKIPPED, ids=SKIPPED_IDS)
def test_one_that_is_left_out_is_overtaken_by_those_who_share_its_row_and_by_no_others(skipped: dict[str, Any]) -> None:
    window = work("a", own("r")), work("b", adding(), **skipped), work("c", adding()), work("d", asking())
    assert picked(*window) == ["a", "c"]


@pytest.mark.parametrize("skipped", SKIPPED, ids=SKIPPED_IDS)
def test_one_that_writes_the_row_alone_and_is_left_out_is_overtaken_by_none(skipped: dict[str, Any]) -> None:
    alone = Update("stock", {"sku": "A"}, set={"sold": 0})
    window = work("a", own("r")), work("b", alone, **skipped), work("c", adding()), work("d", adding())
    assert picked(*window) == ["a"]


def test_one_that_is_left_out_between_two_who_share_ends_what_is_shared() -> None:
    window = work("a", adding()), work("b", asking(), attempts=1), work("c", adding()), work("d", asking())
    assert picked(*window) == ["a"]


def test_a_message_group_keeps_its_order_whatever_its_events_share() -> None:
    window = (
        work("a", own("r"), group="g"),
        work("b", adding(), group="h", attempts=1),
        work("c", adding(), group="h"),
        work("d", adding(), group="g"),
    )
    assert picked(*window) == ["a", "d"]


# --- one that waits for a row


def bringing(event_id: str = "A") -> Put:
    return Put("stock", {"sku": event_id}, key="sku")


def test_one_that_awaits_a_row_lets_the_one_that_writes_it_go_first() -> None:
    window = work("a", asking(), attempts=1, awaits_row=True), work("b", bringing())
    assert picked(*window) == ["b"]
    window[1].verdict = Verdict(Outcome.APPLIED)
    assert picked(*window) == ["a"]


def test_one_that_failed_without_awaiting_a_row_lets_none_go_first() -> None:
    assert picked(work("a", asking(), attempts=1), work("b", bringing())) == ["a"]


def test_one_that_awaits_a_row_keeps_it_once_it_is_its_turn() -> None:
    window = work("a", asking(), attempts=1, awaits_row=True), work("b", bringing(), attempts=1)
    assert picked(*window) == ["a"]


def test_one_that_awaits_a_row_is_not_overtaken_by_its_copy() -> None:
    waiting = work("a", asking(), attempts=1, awaits_row=True)
    copy = work("a", asking())
    assert [each is waiting for each in next_group([waiting, copy])] == [True]


def test_one_that_awaits_a_row_is_not_overtaken_in_its_message_group() -> None:
    waiting = work("a", asking(), group="g", attempts=1, awaits_row=True)
    assert picked(waiting, work("b", bringing(), group="g")) == ["a"]
    assert picked(waiting, work("b", own("r"), group="g"), work("c", bringing(), group="h")) == ["c"]


def setting(order: dict[str, Any]) -> Update:
    return Update("stock", {"sku": "A"}, set={"by": order["id"]})


def test_one_that_met_a_conflict_is_not_overtaken_by_another_of_its_row(cloud: Cloud) -> None:
    cloud.add_table("stock", "sku")
    conflict = cancelled("None", "TransactionConflict")
    cloud.on(COMMIT, raises=conflict, calls=[1])
    consumer = cloud.consumer(lambda event: Plan([setting(event.data)]))
    records = [record(f"m-{number}", {"id": f"e-{number}"}) for number in (1, 2)]
    assert consumer.handle({"Records": records}, Context(cloud)) == NOTHING_FAILED
    assert cloud.transactions == [["e-1"], ["e-1"], ["e-2"]]
    assert cloud.table("stock") == [{"sku": "A", "by": "e-2"}]


# --- what plans are made of


def test_equal_conditions_are_equal() -> None:
    """By that two plans of one event are compared."""
    assert asking() == asking()
    assert hash(Attr("a.b").size().gt(1)) == hash(Attr("a.b").size().gt(1))
    assert asking(least=1) != asking(least=2)
    assert Attr("a").eq(1) != Attr("b").eq(1)
    assert Attr("a").eq("a") != Attr("a").eq(Attr("a"))


def test_a_row_is_known_by_its_event_s_id_alone() -> None:
    event = Event("7", {}, PRINT)
    same: list[Any] = ["7", 7]
    for own_id in same:
        prepare(event, Plan([Put("order_records", {"id": "r", "event_id": own_id})]), "m", NOW_MS, SETTINGS)
    others: list[Any] = [Decimal(7), True, [7], "8"]
    for own_id in others:
        with pytest.raises(Rejected) as caught:
            prepare(event, Plan([Put("order_records", {"id": "r", "event_id": own_id})]), "m", NOW_MS, SETTINGS)
        assert caught.value.reason == "reserved-attribute"


@pytest.mark.parametrize("path", ["event_id.a", "event_version[0]"])
def test_no_update_leads_into_what_tells_who_wrote_a_row(path: str) -> None:
    for update in (Update("stock", {"sku": "A"}, set={path: 1}), Update("stock", {"sku": "A"}, remove=[path])):
        with pytest.raises(Rejected) as caught:
            commit("a", update)
        assert caught.value.reason == "reserved-attribute"


def test_a_name_that_another_one_begins_with_is_another_attribute() -> None:
    Update("stock", {"sku": "A"}, set={"no": 1, "note": 1, "lines[1]": 1}, remove=["not", "lines[11]"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Update("", {"sku": "A"}, add={"sold": 1}),
        lambda: Update(7, {"sku": "A"}, add={"sold": 1}),  # type: ignore[arg-type]
        lambda: Delete(7, {"sku": "A"}),  # type: ignore[arg-type]
        lambda: Delete("stock", {7: "A"}),  # type: ignore[dict-item]
        lambda: Update("stock", {"sku": "A"}, add=["sold"]),  # type: ignore[arg-type]
    ],
)
def test_what_names_no_table_key_or_number_makes_no_sense(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidPlan):
        make()
