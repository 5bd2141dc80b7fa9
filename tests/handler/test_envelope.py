"""What a message body holds: the configured envelope is opened, nothing is guessed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer.envelope import looks_like_sns, open_envelope
from idempotent_consumer.event import read_event_id
from idempotent_consumer.expression import Expression
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope, Settings

EVENTS = Path(__file__).resolve().parents[1] / "fixtures" / "events"
ALL = list(Envelope)


def body(name: str) -> str:
    return (EVENTS / f"{name}.json").read_text("utf-8")


def default_id(envelope: Envelope) -> Expression:
    names = ("CONSUMER_NAME", "LEDGER_TABLE", "BUSINESS_TABLE", "DEAD_LETTER_QUEUE_URL")
    return Settings.from_environment(dict.fromkeys(names, "x") | {"EVENT_ENVELOPE": envelope.value}).event_id


def opened(text: str, envelope: Envelope) -> list[dict[str, Any]]:
    events = open_envelope(text, envelope)
    assert all(isinstance(event, dict) for event in events)
    return [event for event in events if isinstance(event, dict)]


def ids(text: str, envelope: Envelope) -> list[str]:
    return [read_event_id(event, default_id(envelope)) for event in opened(text, envelope)]


def rejection(text: str, envelope: Envelope) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        open_envelope(text, envelope)
    return caught.value.reason, caught.value.detail


def s3_body(*records: object) -> str:
    return json.dumps({"Records": records})


def s3_record(key: object) -> dict[str, Any]:
    return {"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "01"}}}


# --- any envelope


@pytest.mark.case("N04")
@pytest.mark.parametrize("envelope", ALL)
@pytest.mark.parametrize("text", ["[1]", "[]", "null", "7", "19.99", "true"])
def test_json_that_is_no_object_is_refused(text: str, envelope: Envelope) -> None:
    assert rejection(text, envelope) == ("not-an-object", "the body is JSON, but not an object")


@pytest.mark.case("N04")
@pytest.mark.parametrize("envelope", ALL)
def test_a_body_that_was_encoded_twice_is_named_so(envelope: Envelope) -> None:
    assert rejection(json.dumps('{"id":1}'), envelope) == (
        "not-an-object",
        "the body is a JSON string: was it encoded twice?",
    )


@pytest.mark.case("N04")
@pytest.mark.parametrize("envelope", ALL)
def test_a_byte_order_mark_is_refused(envelope: Envelope) -> None:
    assert rejection("\ufeff{}", envelope) == ("bad-json", "the body begins with a byte order mark")


@pytest.mark.parametrize("envelope", ALL)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "bad-json"),
        ("order 7001", "bad-json"),
        ('{"id":NaN}', "bad-json"),
        ('{"id":1,"id":2}', "duplicate-json-key"),
        (r'{"id":"\ud83d"}', "bad-unicode"),
        ('{"id":1e999999999999999999999}', "number-out-of-range"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(text: str, reason: str, envelope: Envelope) -> None:
    assert rejection(text, envelope)[0] == reason


# --- raw


def test_raw_takes_the_body_as_the_event() -> None:
    (event,) = opened(body("body_order"), Envelope.RAW)

    assert event["id"] == "order-7001"
    assert [str(line["price"]) for line in event["lines"]] == ["39.95", "4.20"]
    assert str(event["total"]) == "105.10"


def test_raw_does_not_open_what_looks_like_another_envelope() -> None:
    for name in ("body_sns_notification", "body_s3_put", "body_eventbridge_custom", "body_s3_test_event"):
        assert opened(body(name), Envelope.RAW) == [loads(body(name))]


# --- sns


@pytest.mark.case("C19")
@pytest.mark.parametrize(
    ("name", "event_id", "total"),
    [("body_sns_notification", "order-7001", "105.10"), ("body_sns_notification_fifo", "order-7002", "39.95")],
)
def test_sns_takes_the_json_in_the_notification(name: str, event_id: str, total: str) -> None:
    (event,) = opened(body(name), Envelope.SNS)

    assert event["id"] == event_id
    assert str(event["total"]) == total
    assert "MessageId" not in event
    assert ids(body(name), Envelope.SNS) == [event_id]


@pytest.mark.parametrize("kind", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_an_sns_confirmation_is_refused_with_what_to_do(kind: str) -> None:
    text = body("body_sns_subscription_confirmation").replace('"SubscriptionConfirmation"', f'"{kind}"')

    assert rejection(text, Envelope.SNS) == (
        "sns-confirmation",
        f"an SNS {kind}: open its SubscribeURL to answer it",
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"id":"o-1"}',
        '{"Type":"Notification"}',
        '{"Type":"Notification","Message":{"id":"o-1"}}',
        '{"Type":"Notification","Message":null}',
        '{"Message":"{}"}',
        '{"Type":["Notification"],"Message":"{}"}',
    ],
)
def test_what_is_no_sns_notification_is_refused_with_a_hint(text: str) -> None:
    assert rejection(text, Envelope.SNS) == (
        "not-an-sns-envelope",
        "no SNS notification: is raw message delivery on? Then use raw",
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", ("bad-json", "Expecting value at character 0")),
        ("\ufeff{}", ("bad-json", "the SNS message begins with a byte order mark")),
        ("[1]", ("not-an-object", "the SNS message is JSON, but not an object")),
        ('"{}"', ("not-an-object", "the SNS message is a JSON string: was it encoded twice?")),
        ('{"id":1,"id":2}', ("duplicate-json-key", "an object names the same key twice")),
        (r'{"id":"\ud83d"}', ("bad-unicode", "a string holds half of a surrogate pair")),
        ("\ud83d", ("bad-unicode", "a string holds half of a surrogate pair")),
    ],
)
def test_the_message_in_an_sns_envelope_obeys_the_same_rules(message: str, expected: tuple[str, str]) -> None:
    assert rejection(json.dumps({"Type": "Notification", "Message": message}), Envelope.SNS) == expected


def test_a_plain_text_notification_is_refused() -> None:
    assert rejection(body("body_sns_notification_plain_text"), Envelope.SNS)[0] == "bad-json"


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({"Type": "Notification", "Message": "{}"}, True),
        ({"Type": "Notification", "Message": {}}, False),
        ({"Type": "Notification"}, False),
        ({"Message": "{}"}, False),
        ({"Type": "SubscriptionConfirmation", "Message": "{}"}, False),
    ],
)
def test_an_sns_notification_is_known_by_type_and_message(data: dict[str, Any], answer: bool) -> None:
    assert looks_like_sns(data) is answer


# --- eventbridge


def test_eventbridge_takes_the_whole_event() -> None:
    (event,) = opened(body("body_eventbridge_custom"), Envelope.EVENTBRIDGE)

    assert event["detail-type"] == "Order Placed"
    assert event["detail"]["order"] == {"id": "order-7001", "total": Decimal("105.1"), "currency": "EUR"}
    assert ids(body("body_eventbridge_custom"), Envelope.EVENTBRIDGE) == ["c01836f5-31c1-58d4-adf1-bfa7fb4c05a7"]


def test_eventbridge_keys_of_s3_are_not_encoded_and_stay_as_they_are() -> None:
    (event,) = opened(body("body_eventbridge_s3_object_created"), Envelope.EVENTBRIDGE)

    assert event["detail"]["object"]["key"] == "in/a b+c (1).csv"


@pytest.mark.parametrize("text", ["{}", '{"id":"o-1"}', '{"id":"1","detail":{}}', '{"id":"1","detail-type":"x"}'])
def test_what_is_no_eventbridge_event_is_refused(text: str) -> None:
    assert rejection(text, Envelope.EVENTBRIDGE) == (
        "not-an-eventbridge-event",
        "the body has no detail-type and detail",
    )


def test_an_eventbridge_event_may_have_empty_values() -> None:
    assert opened('{"detail-type":"","detail":null}', Envelope.EVENTBRIDGE) == [{"detail-type": "", "detail": None}]


# --- s3


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("body_s3_put", "in/2030/invoice-0001.csv"),
        ("body_s3_put_encoded_key", "in/a b+c (1).csv"),
        ("body_s3_put_percent_key", "offers/100% off %20.csv"),
        ("body_s3_put_non_ascii_key", "in/Zürich/日本 📦.csv"),
        ("body_s3_put_colon_key_upper_case", "logs/2030-01-02T03:04:05.gz"),
        ("body_s3_put_colon_key_lower_case", "logs/2030-01-02T03:04:05.gz"),
        ("body_s3_put_versioned", "in/2030/invoice-0001.csv"),
        ("body_s3_delete", "in/2030/invoice-0001.csv"),
        ("body_s3_delete_marker", "in/2030/invoice-0001.csv"),
    ],
)
def test_an_s3_key_is_decoded_exactly_once_and_nothing_else_is_touched(name: str, key: str) -> None:
    (event,) = opened(body(name), Envelope.S3)

    assert event["s3"]["object"]["key"] == key
    original = loads(body(name))["Records"][0]
    event["s3"]["object"]["key"] = original["s3"]["object"]["key"]
    assert event == original


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize(
    ("name", "event_id"),
    [
        ("body_s3_put", "example-invoices/in/2030/invoice-0001.csv//0070DBD1A5F31C0A01"),
        ("body_s3_put_encoded_key", "example-invoices/in/a b+c (1).csv//0070DBD1A5F31C0A02"),
        (
            "body_s3_put_versioned",
            "example-invoices/in/2030/invoice-0001.csv/q3kV9mWb2nTzR8yLx0cJd4HfGs6PaUeX/0070DBD1B7A2C4E602",
        ),
        ("body_s3_put_colon_key_upper_case", "example-invoices/logs/2030-01-02T03:04:05.gz//0070DBD1A5F31C0A05"),
        ("body_s3_put_colon_key_lower_case", "example-invoices/logs/2030-01-02T03:04:05.gz//0070DBD1A5F31C0A05"),
        ("body_s3_delete", "example-invoices/in/2030/invoice-0001.csv//0070DBD20A11223344"),
        (
            "body_s3_delete_marker",
            "example-invoices/in/2030/invoice-0001.csv/m7Yb1sXcE5tQw2ZrV9uKpJ0nLh3GdFaO/0070DBD20A11223399",
        ),
    ],
)
def test_an_s3_event_s_id_is_bucket_key_version_and_sequencer(name: str, event_id: str) -> None:
    assert ids(body(name), Envelope.S3) == [event_id]


@pytest.mark.parametrize("name", ["body_s3_tagging_without_sequencer", "body_s3_restore_without_sequencer"])
def test_an_s3_event_without_a_sequencer_has_no_id(name: str) -> None:
    (event,) = opened(body(name), Envelope.S3)

    with pytest.raises(Rejected) as caught:
        read_event_id(event, default_id(Envelope.S3))
    assert caught.value.reason == "id-missing"


@pytest.mark.case("C18")
def test_each_record_of_an_s3_message_is_an_event_of_its_own_in_order() -> None:
    found = ids(body("body_s3_put_three_objects"), Envelope.S3)

    assert len(found) == len(set(found)) == 3
    assert found[0] == "example-invoices/in/2030/invoice-0001.csv//0070DBD1C000000010"
    assert [record["eventName"] for record in opened(body("body_s3_put_three_objects"), Envelope.S3)] == [
        "ObjectCreated:Put"
    ] * 3


@pytest.mark.case("C18")
def test_an_s3_message_holds_up_to_1000_records_and_one_more_refuses_it_as_a_whole() -> None:
    assert len(opened(s3_body(*[s3_record("k")] * 1_000), Envelope.S3)) == 1_000
    for records in ([s3_record("k")] * 1_001, [0] * 1_001):
        assert rejection(s3_body(*records), Envelope.S3) == ("too-many-events", "the body has 1001 Records, over 1000")
    assert rejection(s3_body(*[0] * 131_000), Envelope.S3)[0] == "too-many-events"


def test_a_malformed_record_stands_at_its_place_and_leaves_the_others_alone() -> None:
    events = open_envelope(s3_body(s3_record("a"), {"s3": {}}, s3_record("%ff"), s3_record("d")), Envelope.S3)

    first, second, third, fourth = events
    assert isinstance(first, dict) and first["s3"]["object"]["key"] == "a"
    assert isinstance(second, Rejected) and second.reason == "not-an-s3-notification"
    assert isinstance(third, Rejected) and third.reason == "bad-object-key"
    assert isinstance(fourth, dict) and fourth["s3"]["object"]["key"] == "d"


@pytest.mark.case("C11")
def test_the_test_event_of_s3_carries_no_events() -> None:
    assert open_envelope(body("body_s3_test_event"), Envelope.S3) == []


@pytest.mark.case("C11", "C13")
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"detail-type":"x","detail":{}}',
        '{"Event":"s3:OtherEvent"}',
        '{"Records":null}',
        '{"Records":[]}',
        '{"Records":{}}',
        '{"Event":"s3:TestEvent","Records":[]}',
    ],
)
def test_a_body_without_records_is_refused_for_that_message_alone(text: str) -> None:
    assert rejection(text, Envelope.S3) == ("not-an-s3-notification", "the body has no Records")


def test_records_beside_the_name_of_the_test_event_are_not_dropped() -> None:
    text = json.dumps({"Event": "s3:TestEvent", "Records": [s3_record("a")]})

    assert len(opened(text, Envelope.S3)) == 1


@pytest.mark.case("C13")
@pytest.mark.parametrize(
    "record",
    [
        None,
        7,
        "text",
        [],
        {},
        {"s3": None},
        {"s3": {}},
        {"s3": {"object": {}}},
        {"s3": {"object": "key"}},
        {"s3": {"object": {"key": None}}},
        {"s3": {"object": {"key": 7}}},
        {"s3": {"object": {"key": ["a"]}}},
        {"eventSource": "aws:sqs", "body": "{}"},
    ],
)
def test_a_record_without_an_object_key_is_refused(record: object) -> None:
    (event,) = open_envelope(s3_body(record), Envelope.S3)

    assert isinstance(event, Rejected)
    assert (event.reason, event.detail) == ("not-an-s3-notification", "a record has no s3.object.key")


@pytest.mark.case("C14")
@pytest.mark.parametrize("key", ["%ff", "in/%E6%97", "%C3%28", "a+%80"])
def test_a_key_that_decodes_to_no_utf_8_is_refused(key: str) -> None:
    (event,) = open_envelope(s3_body(s3_record(key)), Envelope.S3)

    assert isinstance(event, Rejected)
    assert (event.reason, event.detail) == ("bad-object-key", "the object's key is not form-encoded UTF-8")


@pytest.mark.parametrize(("key", "decoded"), [("100%", "100%"), ("%zz", "%zz"), ("a%2", "a%2"), ("a+b", "a b")])
def test_a_stray_percent_sign_is_kept(key: str, decoded: str) -> None:
    (event,) = opened(s3_body(s3_record(key)), Envelope.S3)

    assert event["s3"]["object"]["key"] == decoded
