"""Lambda's SQS records are read, and anything else is named and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer.message import Message, UnexpectedInvocation, read_messages

EVENTS = Path(__file__).resolve().parents[1] / "fixtures" / "events"


def invocation(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text("utf-8"))


def refusal(event: object) -> str:
    with pytest.raises(UnexpectedInvocation) as caught:
        read_messages(event)
    return str(caught.value)


def test_a_record_of_a_standard_queue_is_read() -> None:
    event = invocation("sqs_standard")
    record = event["Records"][0]

    assert read_messages(event) == [
        Message(
            id=record["messageId"],
            body=record["body"],
            group=None,
            sent_ms=1893553445120,
            receive_count=1,
            attributes=record["messageAttributes"],
            receipt_handle=record["receiptHandle"],
        )
    ]
    assert sorted(read_messages(event)[0].attributes) == sorted(record["messageAttributes"]) != []


def test_a_redelivered_message_says_how_often_it_was_received() -> None:
    (message,) = read_messages(invocation("sqs_standard_redelivered"))

    assert message.receive_count == 3
    assert message.id == read_messages(invocation("sqs_standard"))[0].id


def test_a_redriven_message_has_another_id_and_the_same_body() -> None:
    (first,) = read_messages(invocation("sqs_standard"))
    (redriven,) = read_messages(invocation("sqs_standard_redriven"))

    assert redriven.id != first.id
    assert redriven.body == first.body
    assert redriven.receive_count == 1


def test_the_records_of_a_fifo_queue_carry_their_group_in_the_queue_s_order() -> None:
    messages = read_messages(invocation("sqs_fifo"))

    assert [message.group for message in messages] == ["customer-42", "customer-43", "customer-42"]
    assert [json.loads(message.body)["id"] for message in messages] == ["order-7001", "order-7002", "order-7003"]
    assert messages[0].id == "429bc47d-bb72-5ebe-88aa-7ca8d2942fee"


def test_a_group_on_a_standard_queue_means_fairness_and_no_order() -> None:
    event = invocation("sqs_standard_fair")
    assert all("MessageGroupId" in record["attributes"] for record in event["Records"])

    assert [message.group for message in read_messages(event)] == [None, None]


def test_an_empty_batch_is_no_fault() -> None:
    assert read_messages({"Records": []}) == []


def test_a_bare_record_gets_harmless_defaults() -> None:
    for record in ({}, {"attributes": None, "messageAttributes": None}):
        assert read_messages({"Records": [{"messageId": "m-1", "body": "", **record}]}) == [
            Message(id="m-1", body="", group=None, sent_ms=0, receive_count=1, attributes={})
        ]


@pytest.mark.case("C10")
def test_what_the_sqs_api_returns_is_not_taken_for_an_invocation() -> None:
    assert refusal(invocation("sqs_api_receive_message")) == (
        "expected the Records of an SQS event source mapping (a ReceiveMessage answer?)"
    )


@pytest.mark.case("C10")
def test_a_message_in_the_spelling_of_the_sqs_api_is_named() -> None:
    records = invocation("sqs_api_receive_message")["Messages"]

    assert refusal({"Records": records}) == (
        "expected an SQS record with messageId and body, got a message in the spelling of the SQS API (MessageId, Body)"
    )


@pytest.mark.case("C10")
def test_a_topic_that_invokes_the_function_itself_is_named() -> None:
    assert refusal(invocation("lambda_sns_direct")) == (
        "expected an SQS record with messageId and body, got a record of aws:sns"
    )


def test_an_s3_notification_without_a_queue_is_named() -> None:
    assert refusal(invocation("body_s3_put")).endswith("got a record of aws:s3")


@pytest.mark.parametrize(
    ("record", "described"),
    [
        ({}, "a record without a source"),
        ({"messageId": "m-1"}, "a record without a source"),
        ({"body": "{}", "eventSource": "aws:sqs"}, "a record of aws:sqs"),
        (None, "NoneType"),
        ("marker", "str"),
        ([], "list"),
    ],
)
def test_a_record_that_is_no_message_is_described_without_its_content(record: object, described: str) -> None:
    assert refusal({"Records": [record]}) == f"expected an SQS record with messageId and body, got {described}"


@pytest.mark.parametrize("event", [None, [], "Records", 7, {}, {"Records": None}, {"Records": {}}, {"records": []}])
def test_what_has_no_records_is_refused(event: object) -> None:
    assert refusal(event) == "expected the Records of an SQS event source mapping"
