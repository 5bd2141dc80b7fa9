"""Which events share a transaction: DynamoDB's limits are kept, each row is written once, nothing is overtaken."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idempotent_consumer.answer import UNDECIDED, Outcome, Verdict
from idempotent_consumer.commit import Commit, prepare
from idempotent_consumer.delivery import Reading, Work
from idempotent_consumer.event import Event
from idempotent_consumer.grouping import next_group, smaller_group
from idempotent_consumer.items import check_size, number_text, to_attribute_value
from idempotent_consumer.message import Message
from idempotent_consumer.plan import Notification, Plan, Put
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings, WriteMode
from idempotent_consumer.write import Write

NOW_MS = 1_893_553_446_789
PRINT = "a" * 64
APPLIED = Verdict(Outcome.APPLIED)
MANY = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def work(
    name: str,
    *rows: Hashable,
    event: str | None = None,
    group: str | None = None,
    size: int = 0,
    attempts: int = 0,
    largest_group: int | None = None,
    reading: Reading = Reading.NONE,
    verdict: Verdict = UNDECIDED,
) -> Work:
    """A planned event. rows: what it writes beside its ledger row. event: its id, where that is not its name."""
    what = Event(event or name, {}, PRINT, group)
    writes = [Write({}, WriteMode.INSERT, None, {"S": "orders"}, row) for row in rows]
    commit = Commit(what, "ledger", {}, {}, writes, None, size)
    return Work(message(name, group), what, verdict, commit, reading, None, attempts, largest_group)


def unplanned(name: str, *, event: str | None = None, group: str | None = None) -> Work:
    return Work(message(name, group), Event(event or name, {}, PRINT, group))


def message(name: str, group: str | None) -> Message:
    return Message(name, "{}", group, NOW_MS, 1, {})


def picked(*window: Work) -> list[str]:
    return names(next_group(window))


def names(works: Sequence[Work]) -> list[str]:
    return [each.message.id for each in works]


def many(number: int, *, rows: int = 1, **more: Any) -> list[Work]:
    return [work(f"e-{n}", *(f"row-{n}-{row}" for row in range(rows)), **more) for n in range(number)]


# --- the limits of a transaction


def test_nothing_gives_no_group() -> None:
    assert next_group([]) == []


def test_events_that_fit_go_together_in_their_order() -> None:
    assert picked(work("c", "r-1"), work("a", "r-2"), work("b", "r-3")) == ["c", "a", "b"]


def test_fifty_events_of_two_actions_fill_a_transaction() -> None:
    assert names(next_group(many(51))) == [f"e-{n}" for n in range(50)]


def test_no_more_than_fifty_events_go_together_however_little_they_write() -> None:
    assert len(next_group(many(60, rows=0))) == 50


def test_a_transaction_takes_a_hundred_actions_and_not_one_more() -> None:
    fifty, one = [f"f-{n}" for n in range(49)], [f"o-{n}" for n in range(50)]
    assert picked(work("a", *fifty), work("b", *one[:49])) == ["a", "b"]
    assert picked(work("a", *fifty), work("b", *one)) == ["a"]


def test_an_event_of_a_hundred_actions_goes_alone() -> None:
    assert picked(work("a", *range(99)), work("b")) == ["a"]


def test_a_smaller_event_takes_the_place_of_one_that_has_no_room() -> None:
    large = many(4, rows=32)
    assert names(next_group([*large, work("small")])) == ["e-0", "e-1", "e-2", "small"]
    assert picked(work("a", "r-1", size=3_000_000), work("b", "r-2", size=1_000_001), work("c", "r-3", size=1)) == [
        "a",
        "c",
    ]


@pytest.mark.parametrize(
    ("size", "group"), [(2_500_000, ["a", "b"]), (2_500_001, ["a"]), (4_000_000, ["a"]), (0, ["a", "b"])]
)
def test_a_transaction_takes_four_million_bytes_and_not_one_more(size: int, group: list[str]) -> None:
    assert picked(work("a", "r-1", size=1_500_000), work("b", "r-2", size=size)) == group


def test_an_event_of_four_million_bytes_goes_alone() -> None:
    assert picked(work("a", "r-1", size=4_000_000), work("b", "r-2", size=1)) == ["a"]


@pytest.mark.parametrize("too_large", [{"rows": 100}, {"size": 4_000_001}], ids=["actions", "bytes"])
def test_an_event_that_no_transaction_can_hold_goes_alone(too_large: dict[str, int]) -> None:
    """DynamoDB says so, and the others do not wait for it for ever."""
    (large,) = many(1, **too_large)
    others = [work("a", "r-1", size=1), work("b", "r-2", size=1)]
    assert names(next_group([large, *others])) == ["e-0"]
    assert names(next_group([others[0], large, others[1]])) == ["a", "b"]
    assert names(next_group([large])) == ["e-0"]


# --- each row once


def test_copies_of_an_event_wait_for_the_first() -> None:
    first, copy, other = work("m-1", "r-1", event="e"), work("m-2", "r-2", event="e"), work("m-3", "r-3")
    assert picked(first, copy, other) == ["m-1", "m-3"]
    first.verdict = APPLIED
    assert picked(first, copy, other) == ["m-2", "m-3"]


def test_a_copy_that_is_not_planned_yet_is_waited_for_as_well() -> None:
    assert picked(unplanned("m-1", event="e"), work("m-2", event="e"), work("m-3")) == ["m-3"]


def test_two_events_of_one_row_go_one_after_the_other() -> None:
    first, second, other = work("a", "r"), work("b", "r"), work("c", "r-3")
    assert picked(first, second, other) == ["a", "c"]
    first.verdict = other.verdict = APPLIED
    assert picked(first, second, other) == ["b"]


def test_each_row_of_an_event_counts() -> None:
    assert picked(work("a", "r-1", "r-2"), work("b", "r-3", "r-2"), work("c", "r-4")) == ["a", "c"]


def test_an_event_waits_for_one_that_waits_itself() -> None:
    assert picked(work("a", "r-1"), work("b", "r-1", "r-2"), work("c", "r-2"), work("d", "r-3")) == ["a", "d"]


def test_a_decided_event_holds_up_nothing() -> None:
    assert picked(work("a", "r", verdict=APPLIED), work("b", "r"), work("c", event="a")) == ["b", "c"]
    assert picked(work("a", verdict=APPLIED), work("b", verdict=UNDECIDED), work("c", verdict=APPLIED)) == ["b"]
    assert picked(work("a", verdict=APPLIED)) == []


def test_a_body_without_an_event_is_no_part_of_it() -> None:
    broken = Work(message("m-1", "g"), None, Verdict(Outcome.REJECTED, "bad-json"))
    assert picked(broken, work("m-2", group="g")) == ["m-2"]


def configured(**variables: str) -> Settings:
    environment = {
        "CONSUMER_NAME": "orders",
        "LEDGER_TABLE": "ledger",
        "BUSINESS_TABLE": "order_records",
        "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dead-letter",
    }
    return Settings.from_environment(environment | variables)


def prepared(name: str, plan: Plan, **variables: str) -> Commit:
    return prepare(Event(name, {}, PRINT), plan, "m-1", NOW_MS, configured(**variables))


def writes(name: str, values: dict[str, Any], **variables: str) -> Work:
    commit = prepared(name, Plan([Put("order_records", values)]), **variables)
    return Work(message(name, None), commit.event, commit=commit)


N = {"BUSINESS_HASH_KEY_TYPE": "N"}
RANGE = {"BUSINESS_RANGE_KEY": "line"}
RANGE_N = {"BUSINESS_RANGE_KEY": "line", "BUSINESS_RANGE_KEY_TYPE": "N"}


@pytest.mark.parametrize(
    ("one", "other", "variables"),
    [
        ({"id": "k"}, {"id": "k", "total": 1}, {}),
        ({"id": "7"}, {"id": 7}, {}),
        ({"id": 1}, {"id": Decimal("1.0")}, N),
        ({"id": Decimal("10")}, {"id": Decimal("1E+1")}, N),
        ({"id": 0}, {"id": Decimal("-0.0")}, N),
        ({"id": "k", "line": "a"}, {"id": "k", "line": "a"}, RANGE),
        ({"id": "k", "line": 1}, {"id": "k", "line": "1"}, RANGE),
        ({"id": "k", "line": 1}, {"id": "k", "line": Decimal("1.0")}, RANGE_N),
    ],
)
def test_two_events_whose_keys_are_one_row_to_dynamodb_go_one_after_the_other(
    one: dict[str, Any], other: dict[str, Any], variables: dict[str, str]
) -> None:
    assert picked(writes("a", one, **variables), writes("b", other, **variables)) == ["a"]


@pytest.mark.parametrize(
    ("one", "other", "variables"),
    [
        ({"id": "k"}, {"id": "K"}, {}),
        ({"id": "1"}, {"id": "1.0"}, {}),
        ({"id": 1}, {"id": Decimal("1.0000000000000000000000000000000000001")}, N),
        ({"id": "k", "line": "a"}, {"id": "k", "line": "b"}, RANGE),
        ({"id": "k", "line": "a"}, {"id": "l", "line": "a"}, RANGE),
        ({"id": "a", "line": "b"}, {"id": "b", "line": "a"}, RANGE),
        ({"id": "k", "line": 1}, {"id": "k", "line": 2}, RANGE_N),
    ],
)
def test_two_events_of_different_keys_go_together(
    one: dict[str, Any], other: dict[str, Any], variables: dict[str, str]
) -> None:
    assert picked(writes("a", one, **variables), writes("b", other, **variables)) == ["a", "b"]


def test_one_key_in_two_tables_is_two_rows() -> None:
    refund = prepared("b", Plan([Put("refunds", {"id": "k"}, key="id")]))
    assert picked(writes("a", {"id": "k"}), Work(message("b", None), refund.event, commit=refund)) == ["a", "b"]


def test_an_event_id_that_is_another_event_s_key_is_another_row() -> None:
    assert picked(writes("a", {"id": "b"}), writes("b", {"id": "a"})) == ["a", "b"]


# --- the order of the queue


@pytest.mark.parametrize(
    "left_out",
    [
        {"size": 4_000_000},
        {"attempts": 1},
        {"reading": Reading.NEEDED},
        {"reading": Reading.HELPFUL},
        {"largest_group": 1},
    ],
    ids=["size", "attempts", "needs a read", "is helped by a read", "goes alone"],
)
class TestEventThatIsLeftOut:
    def test_is_not_overtaken_by_one_of_its_row(self, left_out: dict[str, Any]) -> None:
        window = work("a", "r-1", size=1), work("b", "r-2", **left_out), work("c", "r-2"), work("d", "r-3")
        assert picked(*window) == ["a", "d"]

    def test_is_not_overtaken_by_its_copy(self, left_out: dict[str, Any]) -> None:
        window = work("a", size=1), work("b", event="e", **left_out), work("c", event="e"), work("d")
        assert picked(*window) == ["a", "d"]

    def test_is_not_overtaken_in_its_message_group(self, left_out: dict[str, Any]) -> None:
        window = (
            work("a", group="g-1", size=1),
            work("b", group="g-2", **left_out),
            work("c", group="g-2"),
            work("d", group="g-1"),
            work("e", group="g-3"),
        )
        assert picked(*window) == ["a", "d", "e"]


def test_event_of_too_many_actions_is_not_overtaken() -> None:
    first, large = work("a", *range(50)), work("b", *range(100, 150), group="g")
    assert picked(first, large, work("c", 100), work("d", group="g"), work("e")) == ["a", "e"]


def test_event_that_waits_for_its_row_is_not_overtaken_in_its_message_group() -> None:
    window = work("a", "r", group="g-1"), work("b", "r", group="g-2"), work("c", "r-2", group="g-2")
    assert picked(*window) == ["a"]


def test_event_that_is_not_planned_yet_is_not_overtaken_in_its_message_group() -> None:
    assert picked(unplanned("a", group="g"), work("b", group="g"), work("c", group="h")) == ["c"]


def test_events_of_one_message_group_go_together() -> None:
    assert picked(work("a", group="g"), work("b", group="h"), work("c", group="g")) == ["a", "b", "c"]


def test_without_a_message_group_only_rows_have_an_order() -> None:
    assert picked(work("a", size=1), work("b", size=4_000_000), work("c"), work("d")) == ["a", "c", "d"]


# --- events that have failed before


def test_those_that_have_failed_least_come_first() -> None:
    window = [work("a", attempts=2), work("b", attempts=1), work("c"), work("d", attempts=1), work("e")]
    groups = []
    while group := next_group(window):
        groups.append(names(group))
        for each in group:
            each.verdict = APPLIED
    assert groups == [["c", "e"], ["b", "d"], ["a"]]


def test_one_that_others_wait_for_comes_once_nothing_else_is_ready() -> None:
    window = work("a", "r", attempts=3), work("b", "r"), work("c", "r-2", attempts=1), work("d", "r-3", attempts=3)
    assert picked(*window) == ["c"]
    window[2].verdict = APPLIED
    assert picked(*window) == ["a", "d"]


def test_one_that_its_message_group_waits_for_comes_with_the_others_of_it() -> None:
    assert picked(work("a", group="g", attempts=1), work("b", group="g"), work("c", group="g")) == ["a", "b", "c"]


def test_event_that_may_share_with_two_makes_a_group_of_three() -> None:
    assert picked(work("a"), work("b", largest_group=3), work("c"), work("d")) == ["a", "b", "c"]
    assert picked(work("a"), work("b"), work("c", largest_group=3), work("d")) == ["a", "b", "c"]


def test_event_that_goes_alone_goes_alone() -> None:
    assert picked(work("a", largest_group=1), work("b"), work("c")) == ["a"]


def test_the_member_of_the_smallest_group_limits_it() -> None:
    window = [work("a", largest_group=12), work("b", largest_group=3), work("c", largest_group=12), *many(9)]
    assert names(next_group(window)) == ["a", "b", "c"]
    assert names(next_group([*window[:1], *many(20)])) == ["a", *(f"e-{n}" for n in range(11))]


def test_event_that_finds_the_group_too_large_limits_it_not() -> None:
    assert picked(work("a"), work("b"), work("c"), work("d", largest_group=3), work("e")) == ["a", "b", "c", "e"]


def test_groups_of_fifty_shrink_to_one_in_three_steps() -> None:
    sizes = [50]
    while sizes[-1] > 1:
        sizes.append(smaller_group(sizes[-1]))
    assert sizes == [50, 12, 3, 1]


@pytest.mark.parametrize(("size", "smaller"), [(1, 1), (2, 1), (4, 1), (7, 1), (8, 2), (16, 4), (49, 12)])
def test_a_smaller_group_is_a_quarter_and_never_empty(size: int, smaller: int) -> None:
    assert smaller_group(size) == smaller


# --- whatever the batch holds


@st.composite
def windows(draw: st.DrawFn) -> list[Work]:
    message_groups = st.sampled_from([None, "g", "h"]) if draw(st.booleans()) else st.none()
    rows = st.lists(st.integers(0, 8), unique=True, max_size=3) | st.integers(20, 120).map(range)
    return [
        work(
            f"m-{number}",
            *draw(rows),
            event=f"e-{draw(st.integers(0, 12))}",
            group=draw(message_groups),
            size=draw(st.sampled_from([0, 0, 100, 399_000, 1_500_000, 4_000_000, 4_000_001])),
            attempts=draw(st.sampled_from([0, 0, 0, 1, 4])),
            largest_group=draw(st.sampled_from([None, None, None, 1, 3, 12])),
            verdict=draw(st.sampled_from([UNDECIDED, UNDECIDED, UNDECIDED, APPLIED])),
        )
        for number in range(draw(st.integers(1, 60)))
    ]


@MANY
@given(windows())
def test_groups_keep_every_limit_and_both_orders_until_nothing_is_left(window: list[Work]) -> None:
    undecided = [each for each in window if not each.is_decided]
    committed: list[Work] = []
    while len(committed) < len(undecided):
        group = next_group(window)
        assert group
        check_group(group)
        for each in group:
            each.verdict = APPLIED
        committed += group
    assert next_group(window) == []
    assert sorted(names(committed)) == sorted(names(undecided))
    assert order_by_row(committed) == order_by_row(undecided)
    assert order_by_message_group(committed) == order_by_message_group(undecided)


@MANY
@given(windows(), st.data())
def test_nothing_is_overtaken_while_others_are_unplanned_or_have_to_be_read(
    window: list[Work], data: st.DataObject
) -> None:
    ready, needs_read, needs_plan = "ready", "needs a read", "needs a plan"
    for each in window:
        state = data.draw(st.sampled_from([ready, ready, ready, needs_read, needs_plan]))
        if state != ready:
            each.reading = data.draw(st.sampled_from([Reading.HELPFUL, Reading.NEEDED]))
        if state == needs_plan:
            each.commit = None
    undecided = [each for each in window if not each.is_decided]
    group = next_group(window)
    check_group(group)
    assert all(each.reading is Reading.NONE for each in group)
    assert group or not undecided or undecided[0].reading is not Reading.NONE
    for place, each in enumerate(undecided):
        if each in group:
            left_behind = [other for other in undecided[:place] if other not in group]
            assert each.message.group is None or each.message.group not in {w.message.group for w in left_behind}
            assert set(rows_of(each)).isdisjoint(row for other in left_behind for row in rows_of(other))


def check_group(group: Sequence[Work]) -> None:
    rows = [row for each in group for row in rows_of(each)]
    assert len(group) <= 50
    assert not any(each.is_decided for each in group)
    assert len(set(rows)) == len(rows)
    if len(group) > 1:  # an event that no transaction can hold goes alone
        assert len(rows) <= 100
        assert sum(each.commit.size for each in group if each.commit) <= 4_000_000
    assert all(len(group) <= each.largest_group for each in group if each.largest_group)


def rows_of(each: Work) -> list[Hashable]:
    return [("ledger", each.event_id), *(write.key for write in (each.commit.writes if each.commit else []))]


def order_by_row(works: Sequence[Work]) -> dict[Hashable, list[str]]:
    order: dict[Hashable, list[str]] = {}
    for each in works:
        for row in rows_of(each):
            order.setdefault(row, []).append(each.message.id)
    return order


def order_by_message_group(works: Sequence[Work]) -> dict[str, list[str]]:
    order: dict[str, list[str]] = {}
    for each in works:
        if each.message.group is not None:
            order.setdefault(each.message.group, []).append(each.message.id)
    return order


# --- what an event takes of a transaction

# event_id 11, fingerprint 75, created_at 18, message_id 13; status 10, sent_at 15, ttl 9.
LEDGER_ROW = 117 + 34
# event_id 11, event_fingerprint 81, event_consumer 20, event_committed_at 26.
WRITTEN_BY = 138


def test_an_event_that_writes_nothing_is_one_action_and_its_ledger_row() -> None:
    commit = prepared("o-1", Plan())
    assert (commit.actions, len(commit.rows), commit.size) == (1, 1, LEDGER_ROW)
    assert len(commit.transaction()) == 1


def test_all_rows_of_an_event_count() -> None:
    commit = prepared(
        "o-1", Plan([Put("order_records", {"id": "a"}), Put("order_records", {"id": "bc", "total": Decimal("19.90")})])
    )
    assert (commit.actions, len(set(commit.rows))) == (3, 3)
    assert len(commit.transaction()) == 3
    assert [write.size for write in commit.writes] == [WRITTEN_BY + 3, WRITTEN_BY + 4 + 8]
    assert commit.size == LEDGER_ROW + 141 + 150


def test_the_version_of_a_row_counts() -> None:
    commit = prepared("o-1", Plan([Put("order_records", {"id": "a"}, WriteMode.NEWER, 3)]))
    # event_version: 13 and 2.
    assert commit.size == LEDGER_ROW + 141 + 15


def test_a_stored_notification_counts() -> None:
    commit = prepared("o-1", Plan(notification=Notification("hello")), TOPIC_ARN="arn:aws:sns:eu-central-1:1:orders")
    assert len(commit.ledger_item["notification"]["S"]) == 223
    # status 13, notification 12 and its text, pending_shard 15.
    assert commit.size == 117 + 13 + (12 + 223) + 15


def test_the_size_is_counted_in_bytes() -> None:
    assert prepared("ö-1", Plan()).size == LEDGER_ROW + 1
    assert prepared("o-1", Plan([Put("order_records", {"id": "größe"})])).size == LEDGER_ROW + WRITTEN_BY + 2 + 7


def test_checking_a_size_tells_it() -> None:
    assert check_size({"id": {"S": "o-1"}, "total": {"N": "19.90"}}, "the row") == 2 + 3 + 5 + 3
    assert check_size({}, "the row") == 0
    assert check_size({"n": {"S": "x" * 409_599}}, "the row") == 409_600


# --- integers, which most numbers are, are written without a look at their digits


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (1, "1"),
        (-1, "-1"),
        (100, "100"),
        (-4200, "-4200"),
        (10**18 - 1, "999999999999999999"),
        (10**18, "1000000000000000000"),
        (10**18 + 1, "1000000000000000001"),
        (1 - 10**18, "-999999999999999999"),
        (-(10**18), "-1000000000000000000"),
        (-(10**18) - 1, "-1000000000000000001"),
        (10**38 - 1, "99999999999999999999999999999999999999"),
        (1 - 10**38, "-99999999999999999999999999999999999999"),
        (10**125, "1" + 125 * "0"),
    ],
)
def test_an_integer_is_written_in_decimal(number: int, text: str) -> None:
    assert number_text(number, "n") == text
    assert to_attribute_value(number, "n") == {"N": text}


@pytest.mark.parametrize("number", [10**38 + 1, -(10**38) - 1, 10**126])
def test_an_integer_that_dynamodb_cannot_hold_is_refused(number: int) -> None:
    with pytest.raises(Rejected) as caught:
        number_text(number, "n")
    assert caught.value.reason == "number-out-of-range"


@MANY
@given(st.integers(-(10**19), 10**19))
def test_an_integer_is_written_as_the_decimal_of_the_same_value(number: int) -> None:
    assert number_text(number, "n") == number_text(Decimal(number), "n")


@pytest.mark.parametrize(("value", "stored"), [(True, {"BOOL": True}), (False, {"BOOL": False})])
def test_a_boolean_is_no_number(value: bool, stored: dict[str, bool]) -> None:
    assert to_attribute_value(value, "n") == stored
    assert to_attribute_value([value, 1], "n") == {"L": [stored, {"N": "1"}]}
