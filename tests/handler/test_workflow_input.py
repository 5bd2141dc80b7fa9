"""What an execution is given and named, and how the message inside comes back from the event that tells its end."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer.event import Event
from idempotent_consumer.message import Message
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.workflow.input import (
    FailedExecution,
    execution_input,
    execution_name,
    failed_execution,
    key_of_message,
    reopened,
)
from tests.handler.workflow_support import EXECUTION, STATE_MACHINE, status_event

MESSAGE_ID = "1b33498f-c776-53af-b122-8199a76c9528"
BINARY = {"binaryValue": "4QfbaidQ", "dataType": "Binary", "stringListValues": [], "binaryListValues": []}
OTHER_MACHINE = STATE_MACHINE.replace(":orders", ":refunds")


def text(value: str, kind: str = "String") -> dict[str, Any]:
    """A message attribute as Lambda spells it."""
    return {"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": kind}


def message(body: str = '{"id":"o-1"}', **attributes: dict[str, Any]) -> Message:
    return Message(MESSAGE_ID, body, None, 1_893_553_445_120, 1, attributes, "handle")


def event(**data: Any) -> Event:
    return Event("o-1", {"id": "o-1", **data}, "f-1")


# Its name


def test_a_name_is_a_digest_of_the_key_and_the_message_id() -> None:
    assert execution_name("o-1", MESSAGE_ID) == (
        "5cbdcb742069a5823a0c64b49ce721b0bca5af9b-1b33498f-c776-53af-b122-8199a76c9528"
    )
    assert hashlib.sha256(b"o-1").hexdigest().startswith(execution_name("o-1", MESSAGE_ID)[:40])


@pytest.mark.case("C77")
@pytest.mark.parametrize("key", ["o", "k" * 2048, 'Müller/ <>{}[]?*"#%\\^|~`$&,;:/', "sqs:" + MESSAGE_ID])
def test_a_name_is_one_that_step_functions_takes(key: str) -> None:
    """At most 80 characters, and of those that no ARN or log would mind (API Reference, StartExecution)."""
    assert re.fullmatch("[0-9a-f]{40}-" + MESSAGE_ID, execution_name(key, MESSAGE_ID))
    assert len(execution_name(key, MESSAGE_ID)) == 77


def test_another_key_or_message_has_another_name() -> None:
    names = {execution_name(key, each) for key in ("o-1", "o-2") for each in ("m-1", "m-2")}
    assert len(names) == 4


# Its input


def test_an_input_has_the_event_and_the_message_as_it_came() -> None:
    given = message(' {"id": "o-1"}', source=text("checkout"), priority=text("7", "Number"), digest=BINARY)
    assert execution_input(event(total=5), given) == (
        '{"key":"o-1","messageId":"1b33498f-c776-53af-b122-8199a76c9528","fingerprint":"f-1",'
        '"event":{"id":"o-1","total":5},"body":" {\\"id\\": \\"o-1\\"}","attributes":{'
        '"source":{"DataType":"String","StringValue":"checkout"},'
        '"priority":{"DataType":"Number","StringValue":"7"},'
        '"digest":{"DataType":"Binary","BinaryValue":"4QfbaidQ"}}}'
    )


def test_numbers_keep_their_digits_in_it() -> None:
    data = {"big": 12345678901234567890123, "price": Decimal("4.20"), "small": Decimal("1E-7"), "zero": 0}
    assert '"event":{"id":"o-1","big":12345678901234567890123,"price":4.20,"small":0.0000001,"zero":0}' in (
        execution_input(event(**data), message())
    )


def test_an_empty_binary_attribute_stays_one() -> None:
    given = json.loads(execution_input(event(), message(empty={**BINARY, "binaryValue": ""})))
    assert given["attributes"] == {"empty": {"DataType": "Binary", "BinaryValue": ""}}


def test_an_input_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    room = 262_144 - len(execution_input(event(), message("")).encode())
    assert len(execution_input(event(), message("b" * room)).encode()) == 262_144
    with pytest.raises(Rejected) as refused:
        execution_input(event(), message("b" * (room + 1)))
    assert refused.value.reason == "input-too-large"
    assert refused.value.detail == "the execution's input has 262145 bytes, over 262144"


def test_the_size_is_counted_in_utf8_bytes() -> None:
    with pytest.raises(Rejected, match="input-too-large"):
        execution_input(event(), message("é" * 131_072))


# The key of a message without a business key


@pytest.mark.parametrize(
    ("attributes", "key"),
    [
        ({}, "sqs:" + MESSAGE_ID),
        ({"dead_letter_key": text("sqs:m-1")}, "sqs:m-1"),
        # A business key, or what a producer may say: two messages must not become one by it.
        ({"dead_letter_key": text("o-1")}, "sqs:" + MESSAGE_ID),
        ({"dead_letter_key": text("SQS:m-1")}, "sqs:" + MESSAGE_ID),
        ({"dead_letter_key": text("")}, "sqs:" + MESSAGE_ID),
        ({"dead_letter_key": BINARY}, "sqs:" + MESSAGE_ID),
        ({"dead_letter_key": {"dataType": "String", "stringValue": None}}, "sqs:" + MESSAGE_ID),
        ({"other": text("sqs:m-1")}, "sqs:" + MESSAGE_ID),
    ],
)
def test_a_letter_keeps_the_key_that_it_was_claimed_by(attributes: dict[str, Any], key: str) -> None:
    assert key_of_message(message(**attributes)) == key


# The event that tells how an execution ended


def given_input(**changes: Any) -> str:
    attributes = {
        "source": {"DataType": "String", "StringValue": "checkout"},
        "digest": {"DataType": "Binary", "BinaryValue": "4QfbaidQ"},
    }
    given = {
        "key": "o-1",
        "messageId": "m-0",
        "fingerprint": "f-1",
        "event": {"id": "o-1"},
        "body": '{"id":"o-1"}',
        "attributes": attributes,
        **changes,
    }
    return json.dumps(given)


@pytest.mark.parametrize(
    ("status", "detail", "error"),
    [
        ("ABORTED", {}, ""),
        ("TIMED_OUT", {"error": "States.Timeout"}, "States.Timeout"),
        ("FAILED", {"error": "States.Runtime", "cause": "a path selects nothing"}, "States.Runtime"),
    ],
)
def test_an_event_of_its_own_machine_is_read(status: str, detail: dict[str, Any], error: str) -> None:
    assert failed_execution(status_event(given_input(), status=status, **detail), STATE_MACHINE) == FailedExecution(
        execution_arn=EXECUTION + "one",
        status=status,
        error=error,
        key="o-1",
        body='{"id":"o-1"}',
        attributes={
            "source": {"DataType": "String", "StringValue": "checkout"},
            "digest": {"DataType": "Binary", "BinaryValue": "4QfbaidQ"},
        },
    )


OTHER_SOURCE = status_event(given_input()).replace('"aws.states"', '"com.example", "note": "aws.states"', 1)


@pytest.mark.parametrize(
    "body",
    [
        status_event(given_input(), arn=OTHER_MACHINE),
        status_event(None, arn=OTHER_MACHINE),
        OTHER_SOURCE,
        '{"id":"o-1","source":"com.example","note":"aws.states"}',
        '{"source":"aws.states"}',
        '{"source":"aws.states","detail":[]}',
        '{"source":"aws.states","detail":{"stateMachineArn":null}}',
        '["aws.states"]',
        '"aws.states"',
        '{"source":"aws.states"',
        '{"id":"o-1"}',
        "[" * 100_000 + '"aws.states"',
    ],
)
def test_whatever_else_comes_is_no_such_event(body: str) -> None:
    assert failed_execution(body, STATE_MACHINE) is None
    given = message(body)
    assert reopened(given, STATE_MACHINE) is given


def test_a_message_is_reopened_with_its_producers_attributes_and_its_key() -> None:
    letter = message(status_event(given_input()), note=text("added by whoever sent it back"))
    assert reopened(letter, STATE_MACHINE) == Message(
        id=MESSAGE_ID,
        body='{"id":"o-1"}',
        group=None,
        sent_ms=1_893_553_445_120,
        receive_count=1,
        attributes={
            "source": {"dataType": "String", "stringValue": "checkout"},
            "digest": {"dataType": "Binary", "binaryValue": "4QfbaidQ"},
            "dead_letter_key": {"dataType": "String", "stringValue": "o-1"},
        },
        receipt_handle="handle",
    )


def test_a_letter_that_failed_again_is_reopened_with_the_key_of_its_execution() -> None:
    kept = {"dead_letter_key": {"DataType": "String", "StringValue": "sqs:m-0"}}
    again = reopened(message(status_event(given_input(key="sqs:m-0", attributes=kept))), STATE_MACHINE)
    assert key_of_message(again) == "sqs:m-0"


# An execution that a person started by hand has an input that no starter wrote.
NO_INPUTS = [
    None,
    "",
    "{",
    "null",
    "[]",
    '"text"',
    "{}",
    '{"order":"o-1"}',
    given_input(key=None),
    given_input(key=7),
    given_input(body=None),
    given_input(body={"id": "o-1"}),
    given_input(attributes=None),
    given_input(attributes=[]),
    given_input(attributes={"source": "checkout"}),
    given_input(attributes={"source": {}}),
    given_input(attributes={"source": {"StringValue": "checkout"}}),
    given_input(attributes={"source": {"dataType": "String", "stringValue": "checkout"}}),
    "[" * 100_000,
]


@pytest.mark.parametrize("given", NO_INPUTS)
def test_what_no_starter_wrote_is_an_execution_whose_message_is_unknown(given: str | None) -> None:
    assert failed_execution(status_event(given), STATE_MACHINE) == FailedExecution(
        execution_arn=EXECUTION + "one", status="ABORTED", error="", key="", body=None, attributes={}
    )


@pytest.mark.parametrize("given", NO_INPUTS)
def test_an_event_without_a_starters_input_is_rejected_with_the_execution_to_look_at(given: str | None) -> None:
    """Never taken for an event of its own: without a path to the key, its effect would run for it."""
    with pytest.raises(Rejected) as refused:
        reopened(message(status_event(given)), STATE_MACHINE)
    assert refused.value.reason == "input-missing"
    assert refused.value.detail == (
        "what the event holds is not the input of arn:aws:states:eu-central-1:111122223333:execution:orders:one"
    )


def test_what_is_reopened_starts_with_the_input_that_it_had() -> None:
    first = message(source=text("checkout"), digest=BINARY)
    given = execution_input(event(), first)
    again = reopened(message(status_event(given)), STATE_MACHINE)
    expected = json.loads(given)
    expected["attributes"]["dead_letter_key"] = {"DataType": "String", "StringValue": "o-1"}
    assert json.loads(execution_input(event(), again)) == expected
