"""An event's id comes from its own content, and so does its fingerprint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer.envelope import open_envelope
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.expression import Expression
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope

EVENTS = Path(__file__).resolve().parents[1] / "fixtures" / "events"


def event_id(text: str, path: str = "id") -> str:
    return read_event_id(loads(text), Expression(path))


def rejection(text: str, path: str = "id") -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        event_id(text, path)
    return caught.value.reason, caught.value.detail


def print_of(text: str, path: str = "@") -> str:
    return fingerprint(loads(text), Expression(path))


def in_one_line(name: str) -> str:
    return json.dumps(json.loads((EVENTS / f"{name}.json").read_text("utf-8")))


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ('{"id":"order-7001"}', "id", "order-7001"),
        ('{"order":{"id":"o-9"}}', "order.id", "o-9"),
        ('{"id":"0"}', "id", "0"),
        ('{"id":"false"}', "id", "false"),
        ('{"id":"null"}', "id", "null"),
        ('{"id":" o-1 "}', "id", " o-1 "),
        ('{"id":"日本 📦"}', "id", "日本 📦"),
        ('{"id":0}', "id", "0"),
        ('{"id":-7}', "id", "-7"),
        ('{"id":12345678901234567890123456789012345678901234567890}', "id", "12345678901234567890" + "1234567890" * 3),
        ('{"shop":"berlin","number":7}', "join('/', [shop, to_string(number)])", "berlin/7"),
        ('{"number":"7"}', "to_number(number)", "7"),
    ],
)
def test_an_id_is_a_string_as_it_is_or_an_integer_in_decimal(text: str, path: str, value: str) -> None:
    assert event_id(text, path) == value


@pytest.mark.case("C45")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{}", "id"),
        ('{"id":null}', "id"),
        ('{"ID":"o-1","Id":"o-1"}', "id"),
        ('{"order":{"id":"o-9"}}', "id"),
        ('{"order":"o-9"}', "order.id"),
        ('{"orders":[]}', "orders[0].id"),
    ],
)
def test_an_event_without_an_id_is_refused_and_never_takes_none_for_its_id(text: str, path: str) -> None:
    assert rejection(text, path) == ("id-missing", f'event.id "{path}" selects nothing')


def test_an_id_expression_that_fails_on_the_event_finds_no_id() -> None:
    assert rejection('{"shop":"berlin","number":7}', "join('/', [shop, number])") == (
        "id-missing",
        "join('/', [shop, number]): JMESPathTypeError",
    )


@pytest.mark.case("C34")
@pytest.mark.parametrize("value", ["", "   ", "\t", "\n", "\u00a0", "\u2003\u3000"])
def test_an_id_of_nothing_but_white_space_is_refused(value: str) -> None:
    assert rejection(json.dumps({"id": value})) == ("id-blank", 'event.id "id" is blank')


@pytest.mark.parametrize("value", ["true", "false", "1.0", "19.99", "1e3", "[]", '["o-1"]', "{}", '{"id":1}'])
def test_an_id_of_another_type_is_refused(value: str) -> None:
    assert rejection(f'{{"id":{value}}}') == ("id-wrong-type", 'event.id "id" is neither a string nor an integer')


@pytest.mark.case("N01")
@pytest.mark.parametrize("value", ["x" * 2_048, "é" * 1_024, "日" * 682 + "xx", "📦" * 512])
def test_an_id_may_have_2048_bytes(value: str) -> None:
    assert len(value.encode()) == 2_048
    assert event_id(json.dumps({"id": value})) == value


@pytest.mark.case("N01")
@pytest.mark.parametrize(
    ("value", "size"), [("x" * 2_049, 2_049), ("é" * 1_025, 2_050), ("日" * 683, 2_049), ("📦" * 513, 2_052)]
)
def test_an_id_is_measured_in_bytes_and_may_not_have_more_than_2048(value: str, size: int) -> None:
    assert rejection(json.dumps({"id": value})) == ("id-too-long", f'event.id "id" has {size} UTF-8 bytes, over 2048')


def test_an_integer_as_an_id_may_have_400_digits_and_with_one_more_the_body_is_refused() -> None:
    assert event_id(f'{{"id":{"7" * 400}}}') == "7" * 400
    assert rejection(f'{{"id":{"7" * 401}}}') == ("number-out-of-range", "an integer has over 400 digits")


def test_an_integer_that_adds_up_to_over_400_digits_is_an_id() -> None:
    assert event_id(f'{{"v":[{"9" * 400},{"9" * 400}]}}', "sum(v)") == "1" + "9" * 399 + "8"


def test_a_fingerprint_may_be_taken_of_a_sum_of_long_integers() -> None:
    double = "1" + "9" * 399 + "8"

    assert print_of(f'{{"v":[{"9" * 400},{"9" * 400}]}}', "sum(v)") == hashlib.sha256(double.encode()).hexdigest()


@pytest.mark.case("C19", "C45", "C48")
def test_a_closed_sns_envelope_is_recognised_and_its_message_id_is_not_taken() -> None:
    """The topic gives each copy a message id of its own: as an event id it would make every retry a new event."""
    body = in_one_line("body_sns_notification")
    assert '"MessageId"' in body

    assert rejection(body) == (
        "id-missing",
        'event.id "id" selects nothing: the body looks like an SNS envelope, set event.envelope to sns',
    )


@pytest.mark.case("C48")
@pytest.mark.parametrize("name", ["sqs_standard", "sqs_standard_redelivered", "sqs_standard_redriven"])
def test_one_event_has_one_id_and_fingerprint_whatever_its_delivery(name: str) -> None:
    record = json.loads((EVENTS / f"{name}.json").read_text("utf-8"))["Records"][0]

    (data,) = open_envelope(record["body"], Envelope.RAW)

    assert isinstance(data, dict)
    assert read_event_id(data, Expression("id")) == "order-7001"
    assert fingerprint(data, Expression("@")) == print_of(in_one_line("body_order"))


def test_a_fingerprint_never_changes_because_it_is_stored() -> None:
    expected = "a7a1862149b986395c76cd8c27202456090286b5552c92ed0255c67e7e101fe7"

    assert print_of('{"id":"o-1","total":19.99,"lines":[1,"a",null,true]}') == expected
    assert expected == hashlib.sha256(rb'{"id":"o-1","lines":[1,"a",null,true],"total":"\ud8001999e-2"}').hexdigest()


@pytest.mark.case("C47")
@pytest.mark.parametrize(
    "text",
    [
        '{"total":10,"id":"o-1"}',
        '{ "id" : "o-1", "total" : 10.0 }',
        '{"id":"o-1","total":1e1}',
        '{"id":"\\u006f-1","total":10.00}',
    ],
)
def test_the_fingerprint_is_blind_to_key_order_and_spelling(text: str) -> None:
    assert print_of(text) == print_of('{"id":"o-1","total":10}')


@pytest.mark.case("C47")
@pytest.mark.parametrize(
    "text",
    [
        '{"id":"o-1","total":99}',
        '{"id":"o-1","total":"10"}',
        '{"id":"o-1","total":10.01}',
        '{"id":"o-1","total":null}',
        '{"id":"o-1"}',
        '{"id":"o-1","total":10,"note":""}',
    ],
)
def test_the_fingerprint_tells_other_content(text: str) -> None:
    assert print_of(text) != print_of('{"id":"o-1","total":10}')


def test_a_fingerprint_may_be_taken_of_a_part_so_that_the_rest_can_change() -> None:
    one, other = '{"id":"o-1","order":{"n":1},"sent_at":1}', '{"sent_at":2,"order":{"n":1.0},"id":"o-1"}'

    assert print_of(one) != print_of(other)
    assert print_of(one, "order") == print_of(other, "order") == print_of('{"n":1}')


@pytest.mark.case("C15")
def test_two_spellings_of_an_encoded_object_key_have_one_fingerprint() -> None:
    prints = set()
    for case in ("upper", "lower"):
        (data,) = open_envelope(in_one_line(f"body_s3_put_colon_key_{case}_case"), Envelope.S3)
        assert isinstance(data, dict)
        prints.add(fingerprint(data, Expression("@")))

    assert len(prints) == 1


@pytest.mark.case("N06")
def test_an_archive_replay_of_eventbridge_is_the_same_event_by_id_and_detail() -> None:
    """EventBridge adds the name of the replay: the whole event is no longer the same."""
    first = in_one_line("body_eventbridge_custom")
    replay = json.dumps(json.loads(first) | {"replay-name": "orders-again"})

    assert event_id(replay) == event_id(first)
    assert print_of(replay, "detail") == print_of(first, "detail")
    assert print_of(replay) != print_of(first)


@pytest.mark.parametrize("text", ['{"a":0}', '{"a":false}', '{"a":""}', '{"a":[]}', '{"a":{}}'])
def test_an_empty_value_has_a_fingerprint(text: str) -> None:
    assert len(print_of(text, "a")) == 64


@pytest.mark.parametrize("text", ["{}", '{"order":null}'])
def test_an_event_without_the_part_to_be_fingerprinted_is_refused(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        print_of(text, "order")

    assert (caught.value.reason, caught.value.detail) == (
        "fingerprint-missing",
        'event.fingerprint "order" selects nothing',
    )


def test_a_fingerprint_expression_that_fails_refuses_the_event() -> None:
    with pytest.raises(Rejected) as caught:
        print_of('{"order":7}', "keys(order)")

    assert caught.value.reason == "expression-failed"


def test_an_event_is_a_value_without_a_group_by_default() -> None:
    data: dict[str, Any] = {"id": "o-1"}

    assert Event("o-1", data, "f") == Event("o-1", {"id": "o-1"}, "f", None)
    with pytest.raises(AttributeError):
        Event("o-1", data, "f").id = "o-2"  # type: ignore[misc]
