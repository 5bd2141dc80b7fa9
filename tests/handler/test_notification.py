"""A notification is rendered once, checked for all that SNS would refuse for ever, and stored as text."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idempotent_consumer.event import Event
from idempotent_consumer.json_text import loads
from idempotent_consumer.notification import RenderedNotification, render
from idempotent_consumer.plan import Notification
from idempotent_consumer.rejection import InvalidPlan, Rejected

FEW = settings(max_examples=80, deadline=None, derandomize=True, database=None)
EVENT = Event("o-1", {"id": "o-1"}, "f" * 64)
# SHA-256 of "orders", a zero byte and "o-1".
ORDERS_O_1 = "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"
BILLING_O_1 = "6cae411afa8f29976c6f622b74fa815dd2e173bccc394bd29d9c21e61b4880f4"


def rendered(
    message: Any = "text",
    max_bytes: int = 262_144,
    event: Event = EVENT,
    consumer_name: str = "orders",
    **attributes: Any,
) -> RenderedNotification:
    notification = render([Notification(message, attributes)], event, consumer_name, max_bytes)
    assert notification is not None
    return notification


def rejection(message: Any = "text", max_bytes: int = 262_144, **attributes: Any) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        rendered(message, max_bytes, **attributes)
    return caught.value.reason, caught.value.detail


def test_a_notification_is_rendered_as_it_will_be_published() -> None:
    notification = render(
        [Notification(loads('{"id":"o-1","total":19.90}'), {"kind": "order", "total": Decimal("19.90")})],
        EVENT,
        "orders",
        1_000,
    )

    assert notification == RenderedNotification(
        message='{"id":"o-1","total":19.90}',
        attributes={"kind": ("String", "order"), "total": ("Number", "19.90"), "event_id": ("String", "o-1")},
        group=ORDERS_O_1,
        deduplication_id=ORDERS_O_1,
    )


@pytest.mark.case("C41")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain text, sent as it is", "plain text, sent as it is"),
        ('{"id": "o-1"}', '{"id": "o-1"}'),
        ("tab\tline\r\nend", "tab\tline\r\nend"),
        (" ", " "),
        ("Zürich 日本 📦 \x7f\x85", "Zürich 日本 📦 \x7f\x85"),
        ({"b": 1, "a": "ü"}, '{"b":1,"a":"ü"}'),
        ({"total": Decimal("1E-7"), "large": Decimal("1E+3")}, '{"total":0.0000001,"large":1000}'),
        ([Decimal("30.40"), 1, None, True], "[30.40,1,null,true]"),
        (Decimal("19.99"), "19.99"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({}, "{}"),
        ({"note": "\x00\x1f\ufffe\uffff"}, '{"note":"\\u0000\\u001f\\ufffe\\uffff"}'),
    ],
)
def test_a_string_is_sent_as_it_is_and_all_else_as_json_without_exponents(message: Any, text: str) -> None:
    assert rendered(message).message == text


@pytest.mark.parametrize("message", [None, ""])
def test_an_empty_message_is_refused(message: Any) -> None:
    assert rejection(message) == ("notification-empty", "SNS refuses an empty message")


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\ufffe", "\uffff", "\ud83d"])
def test_a_text_with_a_character_that_no_message_may_hold_is_refused(character: str) -> None:
    assert rejection(f"a{character}b") == (
        "notification-characters",
        "the message holds a character that SQS subscribers cannot take",
    )


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("order", "String", "order"),
        ("19.99", "String", "19.99"),
        (" ", "String", " "),
        (True, "String", "true"),
        (False, "String", "false"),
        (0, "Number", "0"),
        (-7, "Number", "-7"),
        (Decimal("19.90"), "Number", "19.90"),
        (Decimal("1E-7"), "Number", "0.0000001"),
        (Decimal("1E+3"), "Number", "1000"),
        (10**38 - 1, "Number", "9" * 38),
        (Decimal("1E-128"), "Number", "0." + 127 * "0" + "1"),
        (Decimal("-1.5E-128"), "Number", "-0." + 127 * "0" + "15"),
        (Decimal("1E+125"), "Number", "1" + 125 * "0"),
        (Decimal("0.0"), "Number", "0"),
        (Decimal("-0.0"), "Number", "0"),
        (Decimal("0E-390"), "Number", "0"),
        ([], "String.Array", "[]"),
        (["web", 1, Decimal("2.50"), True, None], "String.Array", '["web",1,2.50,true,null]'),
    ],
)
def test_an_attribute_has_the_sns_type_of_its_value(value: Any, kind: str, text: str) -> None:
    assert rendered(kind=value).attributes == {"kind": (kind, text), "event_id": ("String", "o-1")}


def test_an_attribute_that_selects_nothing_is_left_out() -> None:
    assert rendered(kind=None).attributes == {"event_id": ("String", "o-1")}


@pytest.mark.parametrize("value", [{}, {"a": 1}, [["a"]], [{}], 1.5, b"a"])
def test_an_attribute_of_another_type_is_refused(value: Any) -> None:
    assert rejection(kind=value) == (
        "notification-attribute",
        "kind: neither a string, a number, a boolean nor a list of them",
    )


@pytest.mark.parametrize("value", ["", "a\x00b", "\x1f", "\ufffe", "\udc00"])
def test_an_attribute_that_is_empty_or_holds_a_control_character_is_refused(value: str) -> None:
    assert rejection(kind=value) == (
        "notification-attribute",
        "kind: empty, or with a character that SNS cannot take",
    )


@pytest.mark.parametrize("value", [10**38 + 1, Decimal("1.00000000000000000000000000000000000001"), Decimal("1E+126")])
def test_a_number_that_no_attribute_can_hold_is_refused(value: int | Decimal) -> None:
    reason, detail = rejection(kind=value)

    assert reason == "number-out-of-range"
    assert detail.startswith("kind: ")


@pytest.mark.parametrize("value", [Decimal("1E-129"), Decimal("-9.9E-129"), Decimal("1E-130")])
def test_a_number_closer_to_zero_than_sqs_takes_is_refused_though_dynamodb_takes_it(value: Decimal) -> None:
    assert rejection(kind=value) == (
        "number-out-of-range",
        "kind: SQS subscribers take no number closer to zero than 1e-128",
    )


@pytest.mark.case("C21")
def test_ten_attributes_pass_and_with_eleven_a_raw_subscriber_would_get_nothing() -> None:
    nine: dict[str, Any] = {f"a{number}": number for number in range(9)}
    assert len(rendered(**nine).attributes) == 10
    assert len(rendered(**nine, left_out=None).attributes) == 10

    assert rejection(**nine, one_more=1) == (
        "notification-attribute",
        "11 attributes: with over ten a raw SQS subscriber gets nothing",
    )


@pytest.mark.case("C61")
@pytest.mark.parametrize("name", ["event_id", "notification_number"])
def test_what_tells_a_notification_is_not_the_plan_s_to_say(name: str) -> None:
    with pytest.raises(InvalidPlan, match="event_id and notification_number are added"):
        Notification("text", {name: "another"})
    assert rendered().attributes == {"event_id": ("String", "o-1")}


@pytest.mark.parametrize(
    "name", ["order kind", "", ".a", "a.", "a..b", "AWS.x", "aws.trace", "Amazon.x", "größe", "x" * 257, "a\n", 7, None]
)
def test_an_attribute_name_that_sns_refuses_for_ever_is_refused_before_the_commit(name: Any) -> None:
    with pytest.raises(Rejected) as caught:
        render([Notification("text", {name: "value"})], EVENT, "orders", 1_000)
    assert caught.value.reason == "notification-attribute"


@pytest.mark.parametrize("name", ["kind", "a.b-c_D.9", "awsome", "x" * 256])
def test_an_attribute_name_that_sns_takes_is_taken(name: str) -> None:
    notification = render([Notification("text", {name: "value"})], EVENT, "orders", 1_000)
    assert notification is not None
    assert set(notification.attributes) == {name, "event_id"}


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1), {1}, b"x", Decimal("NaN"), float("nan"), object(), {("a",): 1}]
)
def test_a_message_that_is_no_json_is_refused(value: Any) -> None:
    assert rejection({"at": value})[0] == "notification-value"


def test_a_mapping_of_another_kind_is_an_object() -> None:
    assert rendered({"at": MappingProxyType({"a": Decimal("1.50")})}).message == '{"at":{"a":1.50}}'


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "1e401"])
def test_a_number_that_would_unfold_to_a_gigabyte_is_refused(text: str) -> None:
    assert rejection({"total": Decimal(text)})[0] == "number-out-of-range"
    assert rejection("text", totals=[Decimal(text)])[0] == "number-out-of-range"


def test_a_string_that_looks_like_a_marked_number_stays_a_string() -> None:
    """A plan may read JSON that an event holds as text, and so meet half a surrogate pair."""
    assert rejection({"name": "\ud800true,true", "total": Decimal("1.5")})[0] == "notification-characters"


def test_a_number_s_own_way_of_showing_itself_does_not_count() -> None:
    class Money(Decimal):
        def __str__(self) -> str:
            return "1.50 EUR"

        def __format__(self, _spec: str, /) -> str:  # type: ignore[override]
            return "1.50 EUR"

    assert rendered({"price": Money("1.50")}).message == '{"price":1.50}'


# --- several


def several(*messages: str) -> RenderedNotification:
    notification = render([Notification(message) for message in messages], EVENT, "orders", 1_000)
    assert notification is not None
    return notification


def test_several_notifications_are_stored_and_read_back_in_order() -> None:
    stored = RenderedNotification.from_text(several("a", "b", "c").to_text())
    assert stored == several("a", "b", "c")
    assert [each.message for each in stored.all] == ["a", "b", "c"]
    assert [each.attributes["notification_number"] for each in stored.all] == [
        ("Number", "1"),
        ("Number", "2"),
        ("Number", "3"),
    ]


def test_several_are_not_stored_as_one_that_older_code_would_publish_alone() -> None:
    assert list(json.loads(several("a", "b").to_text())) == ["notifications"]
    assert list(json.loads(several("a").to_text())) == ["message", "attributes", "group", "deduplication_id"]


@pytest.mark.parametrize("text", ['{"notifications":[]}', '{"notifications":[{}]}', '{"notifications":7}'])
def test_what_is_no_stored_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a stored notification"):
        RenderedNotification.from_text(text)


def test_all_of_several_count() -> None:
    assert several("a", "b").size == sum(each.own_size for each in several("a", "b").all)
    assert render([], EVENT, "orders", 1_000) is None


@pytest.mark.parametrize("character", ["\x00", "\x0b"])
def test_an_event_id_that_cannot_be_an_attribute_is_refused_before_the_commit(character: str) -> None:
    with pytest.raises(Rejected) as caught:
        rendered(event=Event(f"o{character}1", {}, "f"))

    assert caught.value.reason == "notification-attribute"


@pytest.mark.case("C68")
def test_a_notification_has_no_subject() -> None:
    assert set(json.loads(rendered().to_text())) == {"message", "attributes", "group", "deduplication_id"}


@pytest.mark.case("C69")
def test_a_fifo_topic_gets_the_event_s_group_and_a_deduplication_id_that_fits() -> None:
    long_id = "ü" * 1_024
    notification = rendered(event=Event(long_id, {}, "f", "customer-42"))

    assert notification.group == "customer-42"
    assert notification.deduplication_id == hashlib.sha256(b"orders\0" + long_id.encode()).hexdigest()
    assert len(notification.deduplication_id) == 64


@pytest.mark.case("C69", "C61")
def test_without_a_group_the_event_is_a_group_of_its_own_and_a_repeat_has_the_same_ids() -> None:
    first, again = rendered("first"), rendered("said otherwise")

    assert first.group == first.deduplication_id == again.deduplication_id == ORDERS_O_1


@pytest.mark.case("C69")
def test_two_consumers_of_one_event_differ_in_deduplication_id_and_default_group() -> None:
    """SNS drops the second of two messages with one deduplication id in silence, whoever sends it."""
    orders, billing = rendered(), rendered(consumer_name="billing")

    assert (orders.group, orders.deduplication_id) == (ORDERS_O_1, ORDERS_O_1)
    assert (billing.group, billing.deduplication_id) == (BILLING_O_1, BILLING_O_1)


def test_the_end_of_a_consumer_s_name_is_not_taken_for_the_beginning_of_an_id() -> None:
    one = rendered(event=Event("1", {}, "f"), consumer_name="a1")
    other = rendered(event=Event("11", {}, "f"), consumer_name="a")

    assert one.deduplication_id != other.deduplication_id


@pytest.mark.case("C66")
@pytest.mark.parametrize(
    ("message", "attributes", "size"),
    [
        ("x", {}, 1 + len("event_idStringo-1")),
        ("ü📦", {}, 6 + len("event_idStringo-1")),
        ("x", {"kind": "größe"}, 1 + len("event_idStringo-1") + len("kindString") + 7),
        ("x", {"n": 12}, 1 + len("event_idStringo-1") + len("nNumber12")),
        ("x", {"a": ["b"]}, 1 + len("event_idStringo-1") + len('aString.Array["b"]')),
        ({"a": "ü"}, {}, 10 + len("event_idStringo-1")),
    ],
)
def test_the_size_counts_the_message_and_each_attribute_s_name_type_and_value_in_bytes(
    message: Any, attributes: dict[str, Any], size: int
) -> None:
    assert rendered(message, **attributes).size == size
    assert rendered(message, size, **attributes).size == size
    assert rejection(message, size - 1, **attributes) == (
        "notification-too-large",
        f"message and attributes are {size} bytes, over {size - 1}",
    )


@pytest.mark.case("C66", "N11")
def test_a_message_at_the_limit_of_the_topic_passes_and_a_byte_more_is_refused() -> None:
    largest = 262_144 - len("event_idStringo-1")

    assert rendered("x" * largest).size == 262_144
    assert rejection("x" * (largest + 1))[0] == "notification-too-large"


@pytest.mark.case("C76")
def test_a_refusal_never_quotes_the_message() -> None:
    for message in ("marker\x00", "marker" * 1_000):
        with pytest.raises(Rejected) as caught:
            rendered(message, 100)
        assert "marker" not in f"{caught.value} {caught.value.detail}"


def test_the_stored_text_never_changes_because_rows_outlive_releases() -> None:
    notification = RenderedNotification('{"a":1}', {"kind": ("String", "ü")}, "g", "d")

    assert notification.to_text() == (
        '{"message":"{\\"a\\":1}","attributes":{"kind":["String","ü"]},"group":"g","deduplication_id":"d"}'
    )
    assert RenderedNotification.from_text(notification.to_text()) == notification


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "not json",
        '"message"',
        '{"message":"m","attributes":{},"group":"g"}',
        '{"message":"m","attributes":{},"deduplication_id":"d"}',
        '{"message":"m","group":"g","deduplication_id":"d"}',
        '{"attributes":{},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":[],"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":null,"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":["String"]},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":["String","b","c"]},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":"xy"},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":{"String":1,"b":2}},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":7},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":["Number",7]},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{"a":[null,"b"]},"group":"g","deduplication_id":"d"}',
        '{"message":7,"attributes":{},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{},"group":null,"deduplication_id":"d"}',
        '{"message":"m","attributes":{},"group":"g","deduplication_id":true}',
        '{"message":"m","message":"n","attributes":{},"group":"g","deduplication_id":"d"}',
        '{"message":"\\ud83d","attributes":{},"group":"g","deduplication_id":"d"}',
        '{"message":"m","attributes":{},"group":"g","deduplication_id":"d"',
    ],
)
def test_a_text_that_is_no_stored_notification_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a stored notification$"):
        RenderedNotification.from_text(text)


TEXTS = st.text(max_size=12)
NOTIFICATIONS = st.builds(
    RenderedNotification,
    message=TEXTS,
    attributes=st.dictionaries(
        TEXTS, st.tuples(st.sampled_from(["String", "Number", "String.Array"]), TEXTS), max_size=4
    ),
    group=TEXTS,
    deduplication_id=TEXTS,
)


@FEW
@given(NOTIFICATIONS)
def test_any_notification_survives_being_stored(notification: RenderedNotification) -> None:
    text = notification.to_text()

    assert RenderedNotification.from_text(text) == notification
    assert RenderedNotification.from_text(text).to_text() == text
    assert RenderedNotification.from_text(text).size == notification.size
