"""What a test says about tables, events and the module's settings, and what the kit finds out by itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer import Attr, Check, Event, Plan, Put, Retry, Update
from idempotent_consumer.testing import AssertIdempotent, CannotTry
from tests.kit import plans

pytestmark = pytest.mark.usefixtures("in_one_process")


def lines(event: Event) -> Plan:
    """Rows of the module's business table, whose key the plan does not name."""
    numbers = range(1, event.data["lines"] + 1)
    return Plan([Put("lines", {"order_id": event.id, "line": number}) for number in numbers])


def by_name(event: Event) -> Plan:
    return Plan([Update("names", {"name": event.data["name"]}, add={"count": 1})])


# --- tables


def test_key_of_two_attributes_is_given_as_in_the_module(assert_idempotent: AssertIdempotent) -> None:
    key = {"order_id": "S", "line": "N"}
    result = assert_idempotent(lines, [{"id": "o-1", "lines": 11}], business_key=key)
    assert [row["line"] for row in result.rows("lines")] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    result = assert_idempotent(
        lines, [{"id": "o-1", "lines": 2}], business_table="lines", business_key=("order_id", "line")
    )
    assert result.rows("lines") == [{"order_id": "o-1", "line": "1"}, {"order_id": "o-1", "line": "2"}]


def test_key_of_the_business_table_is_a_text_unless_the_option_says_otherwise(
    assert_idempotent: AssertIdempotent,
) -> None:
    seven, half = {"id": "e-1", "number": 7}, {"id": "e-2", "number": 0.5}
    assert assert_idempotent(plans.with_number_as_id, [seven]).rows("rows") == [{"id": "7"}]
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.with_number_as_id, [seven, half])
    assert str(caught.value).splitlines()[0] == (
        "e-2 would be dead-lettered as key-wrong-type: id is neither a string nor an integer"
    )
    result = assert_idempotent(plans.with_number_as_id, [seven, half], business_key={"id": "N"})
    assert result.rows("rows") == [{"id": Decimal("0.5")}, {"id": 7}]


def test_key_of_the_business_table_is_asked_for(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(lines, [{"id": "o-1", "lines": 2}])
    assert str(caught.value) == (
        "no row that the plan puts into lines has id, which is the key of the module's business table by default: "
        "pass business_key= as it is set in business_table"
    )
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(by_name, [{"id": "e-1", "name": "a"}], business_table="names")
    assert str(caught.value) == (
        "the plan names name as the key of names, which is id of the module's business table by default: pass "
        "business_key= as it is set in business_table"
    )


def test_business_table_is_asked_for_where_two_could_be_it(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(plans.without_key, [{"id": "o-1"}])
    assert str(caught.value) == (
        "Put names no key for orders and lines, which only the module's business table can do without: pass "
        "business_table= for that one, and name the key of the others in the plan, as key="
    )


def test_put_that_lacks_its_key_is_a_finding_once_the_business_table_is_known(
    assert_idempotent: AssertIdempotent,
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.without_key, [{"id": "o-1"}], business_table="orders", tables={"lines": "line"})
    assert str(caught.value).splitlines() == [
        "o-1 cannot be settled: plan-invalid",
        "  when each event comes once and nothing fails",
        "  Put('lines') names no key, which only the consumer's business table can do without",
        "likely:  the plan makes no sense to the library",
    ]


def test_rows_of_a_table_that_the_events_do_not_touch_need_its_key(assert_idempotent: AssertIdempotent) -> None:
    rows = {"customers": [{"number": 2, "name": "b"}, {"number": 1, "name": "a"}]}
    with pytest.raises(CannotTry, match=r'nothing says what the key of customers is: pass tables=\{"customers": "…"\}'):
        assert_idempotent(plans.nothing, [{"id": "e-1"}], rows=rows)
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}], rows=rows, tables={"customers": "number"})
    assert result.rows("customers") == [{"number": 1, "name": "a"}, {"number": 2, "name": "b"}]
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}], rows={"names": [{"name": "a"}]})
    assert result.rows("names") == [{"name": "a"}]


def test_types_of_keys_are_found_in_the_plan_and_in_rows(assert_idempotent: AssertIdempotent) -> None:
    events: list[dict[str, Any]] = [{"id": f"e-{n}", "name": name} for n, name in enumerate((7, 1.5, 10))]
    result = assert_idempotent(by_name, events, rows={"names": [{"name": 7.0, "count": 1}]})
    assert result.rows("names") == [
        {"name": Decimal("1.5"), "count": 1},
        {"name": 7, "count": 2},
        {"name": 10, "count": 1},
    ]


def test_key_of_two_types_is_asked_for(assert_idempotent: AssertIdempotent) -> None:
    events: list[dict[str, Any]] = [{"id": "e-1", "name": 7}, {"id": "e-2", "name": "seven"}]
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(by_name, events)
    assert str(caught.value) == (
        'name, a key of names, is a text here and a number there: pass tables={"names": {"name": "S"}} or "N", as it is'
    )
    result = assert_idempotent(by_name, events, tables={"names": {"name": "S"}}, dead_letters=["e-1"])
    assert result.outcomes == {"e-1": "rejected", "e-2": "applied"}
    assert result.reasons == {"e-1": "refused-by-dynamodb"}


def test_other_key_in_the_plan_than_in_the_options_is_refused(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(by_name, [{"id": "e-1", "name": "a"}], tables={"names": "id"})
    assert str(caught.value) == (
        "the plan names name as the key of names, which is id elsewhere in the plan or in the options"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rows": {"names": [{"count": 1}]}}, "a row of names in rows= has no name, which is its key: {'count': 1}"),
        ({"rows": {"names": [{"name": "a", "x": {1}}]}}, "a row of names in rows= cannot be stored"),
        (
            {"rows": {"names": [{"name": 7}]}, "tables": {"names": {"name": "S"}}},
            r"the key of names is \{'name': 'S'\} here, a row in rows= is \{'name': 7\}: pass tables= as it is",
        ),
        ({"business_table": "all", "rows": {"all": [{"id": 7}]}}, "a row in rows= is .*: pass business_key= as it is"),
        ({"tables": {"names": ()}}, r"the key of names is given as \(\)"),
        ({"tables": {"names": {"name": "text"}}}, "the key of names is given as"),
        ({"business_table": "kit-processed-events"}, "is the kit's own ledger"),
        ({"envelope": "xml"}, "EVENT_ENVELOPE is 'xml', not one of raw, sns, eventbridge, s3"),
        ({"event_id": "["}, "EVENT_ID is '\\['"),
        ({"fifo": "["}, "fifo= selects the message group"),
    ],
)
def test_options_that_cannot_be_are_refused(
    assert_idempotent: AssertIdempotent, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(CannotTry, match=text):
        assert_idempotent(by_name, [{"id": "e-1", "name": "a"}], **options)


def test_plan_with_a_notification_needs_a_topic(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(AssertionError, match="the plan has a notification, but the consumer has no topic"):
        assert_idempotent(plans.announce, [{"id": "e-1", "times": 1}], topic=False)
    assert assert_idempotent(plans.announce, [{"id": "e-1", "times": 0}], topic=False).outcomes == {"e-1": "applied"}


# --- events


def test_id_is_selected_as_in_the_module(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.nothing, [{"order": {"number": 7}}], event_id="order.number")
    assert result.outcomes == {"7": "applied"}


def test_events_without_an_id_say_which_option_helps(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(CannotTry) as caught:
        assert_idempotent(plans.nothing, [{"order_id": "o-1"}])
    assert str(caught.value) == (
        'none of the events has an id that the consumer finds (id-missing: event.id "id" selects nothing). '
        "Pass event_id= and envelope= as event.id and event.envelope are set for the module; "
        "they are 'id' and 'raw' now"
    )


def test_what_is_no_event_is_an_outcome_beside_others(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}, {"no": "id"}, "poison"])
    assert result.outcomes == {"e-1": "applied", "events[1]": "rejected", "events[2]": "rejected"}
    assert result.reasons == {"events[1]": "id-missing", "events[2]": "bad-json"}


def test_event_that_is_given_twice_is_one_and_a_reused_id_is_a_conflict(assert_idempotent: AssertIdempotent) -> None:
    events = [{"id": "e-1", "n": 1}, {"n": 1.0, "id": "e-1"}, {"id": "e-1", "n": 2}]
    result = assert_idempotent(plans.nothing, events)
    assert result.outcomes == {"e-1": "applied", "e-1 (2)": "conflict"}
    assert result.reasons == {"e-1 (2)": "id-reused"}
    assert assert_idempotent(plans.nothing, events, fingerprint="id").outcomes == {"e-1": "applied"}


def test_events_may_be_texts_and_events(assert_idempotent: AssertIdempotent) -> None:
    event = Event("e-2", {"id": "e-2", "page": "home", "seconds": Decimal("0.2")}, "")
    result = assert_idempotent(plans.count_only, ['{"id": "e-1", "page": "home", "seconds": 0.10}', event])
    assert result.rows("counts") == [{"page": "home", "visits": 2, "seconds": Decimal("0.3")}]


@pytest.mark.parametrize("events", [[], {"id": "e-1"}, "text"])
def test_events_are_a_list(assert_idempotent: AssertIdempotent, events: Any) -> None:
    with pytest.raises(CannotTry, match="events is a list of one or more events"):
        assert_idempotent(plans.nothing, events)


def test_what_is_no_json_is_refused(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(
        CannotTry, match=r"events\[0\] is no JSON object, as a producer sends it: set is not a JSON type"
    ):
        assert_idempotent(plans.nothing, [{"id": "e-1", "tags": {"a"}}])


def test_sns_envelope_is_put_around_what_comes_without(assert_idempotent: AssertIdempotent) -> None:
    enveloped = {"Type": "Notification", "Message": '{"id": "e-2"}'}
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}, enveloped], envelope="sns")
    assert result.outcomes == {"e-1": "applied", "e-2": "applied"}


def test_eventbridge_event_is_given_whole(assert_idempotent: AssertIdempotent) -> None:
    event = {"id": "e-1", "source": "shop", "detail-type": "order", "detail": {"by": "a"}}

    def plan(event: Event) -> Plan:
        return Plan([Put("rows", {"id": event.id, **event.data["detail"]})])

    result = assert_idempotent(plan, [event], envelope="eventbridge")
    assert result.rows("rows") == [{"id": "e-1", "by": "a"}]


def s3_record(key: str) -> dict[str, Any]:
    return {"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "1"}}}


def test_s3_message_may_hold_several_events(assert_idempotent: AssertIdempotent) -> None:
    def plan(event: Event) -> Plan:
        return Plan([Put("objects", {"id": event.data["s3"]["object"]["key"]})])

    body = {"Records": [s3_record("in/a+b.csv"), s3_record("c"), {"s3": {}}]}
    test_event = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}
    result = assert_idempotent(plan, [body, s3_record("d"), test_event], envelope="s3")
    assert result.outcomes == {
        "b/in/a b.csv//1": "applied",
        "b/c//1": "applied",
        "events[0]": "rejected",
        "b/d//1": "applied",
        "events[2]": "ignored",
    }
    assert [row["id"] for row in result.rows("objects")] == ["c", "d", "in/a b.csv"]


def test_event_that_shares_its_message_with_one_that_waits_is_applied_once(assert_idempotent: AssertIdempotent) -> None:
    """The message comes back to the end, and its first event is a duplicate by then."""

    def plan(event: Event) -> Plan:
        key = event.data["s3"]["object"]["key"]
        there = Check("rows", {"id": "none"}, Attr("id").exists(), otherwise=Retry("not-there"))
        return Plan([Update("counts", {"name": key}, add={"times": 1}), *([there] if key == "b" else [])])

    result = assert_idempotent(plan, [{"Records": [s3_record("a"), s3_record("b")]}], envelope="s3")
    assert result.outcomes == {"b/a//1": "applied", "b/b//1": "retry"}
    assert result.rows("counts") == [{"name": "a", "times": 1}]


def test_body_that_is_nested_without_end_is_rejected_as_in_production(assert_idempotent: AssertIdempotent) -> None:
    result = assert_idempotent(plans.nothing, [{"id": "e-1"}, "[" * 100_000])
    assert result.outcomes == {"e-1": "applied", "events[1]": "rejected"}


def test_message_of_events_that_fail_for_different_reasons_is_no_finding(assert_idempotent: AssertIdempotent) -> None:
    """One is malformed, one meets a row that is there: the message is dead-lettered once, for the worse."""

    def plan(event: Event) -> Plan:
        return Plan([Put("objects", {"id": event.data["s3"]["object"]["key"]})])

    body = {"Records": [{"s3": {}}, s3_record("a"), s3_record("b")]}
    rows = {"objects": [{"id": "a"}]}
    result = assert_idempotent(plan, [body], envelope="s3", rows=rows, dead_letters=["b/a//1"])
    assert result.outcomes == {"events[0]": "rejected", "b/a//1": "conflict", "b/b//1": "applied"}
