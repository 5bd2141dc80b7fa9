"""The dead letter: the message as it came, with why it can never succeed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.rejection import Rejected
from tests.handler.support import BURY, NOTHING_FAILED, Cloud, Context, client_error, fixture, record, reported

BAD = '{"amount": 10, "note": "Müller 📦"}'
Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]


def text(value: str) -> dict[str, Any]:
    """A message attribute as Lambda spells it."""
    return {"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": "String"}


def rejecting(detail: str, reason: str = "because") -> Planner:
    def plan(_event: Event) -> Plan:
        raise Rejected(reason, detail)

    return plan


def bury(cloud: Cloud, message: dict[str, Any], detail: str) -> Any:
    return cloud.consumer(planner=rejecting(detail)).handle({"Records": [message]}, Context(cloud))


def test_body_is_unchanged_and_the_reason_stands_beside_it(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", BAD)) == NOTHING_FAILED
    assert cloud.requests(BURY) == [
        {
            "QueueUrl": cloud.dead_letter_url,
            "MessageBody": BAD,
            "MessageAttributes": {
                "dead_letter_reason": {"DataType": "String", "StringValue": "id-missing"},
                "dead_letter_detail": {"DataType": "String", "StringValue": 'event.id "id" selects nothing'},
            },
        }
    ]
    assert cloud.dead_letters()[0].body == BAD


def test_attributes_of_the_producer_are_kept_with_their_types(cloud: Cloud) -> None:
    message = fixture("sqs_standard")["Records"][0]
    message["body"] = BAD
    assert cloud.deliver(message) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert letter.attributes == {
        "source": {"DataType": "String", "StringValue": "checkout"},
        "priority": {"DataType": "Number", "StringValue": "7"},
        "digest": {
            "DataType": "Binary",
            "BinaryValue": bytes.fromhex("e107db6a2750bcfc06875e1a157254d37fa9f03829255dd5ac5fa4bfa8626997"),
        },
        "dead_letter_reason": {"DataType": "String", "StringValue": "id-missing"},
        "dead_letter_detail": {"DataType": "String", "StringValue": 'event.id "id" selects nothing'},
    }


def test_custom_types_of_attributes_are_kept(cloud: Cloud) -> None:
    attributes = {
        "colour": {**text("red"), "dataType": "String.hex"},
        "empty": {"binaryValue": "", "dataType": "Binary.gzip", "stringListValues": [], "binaryListValues": []},
    }
    cloud.on(BURY, answers={})
    cloud.deliver(record("m-1", BAD, attributes=attributes))
    sent = cloud.requests(BURY)[0]["MessageAttributes"]
    assert sent["colour"] == {"DataType": "String.hex", "StringValue": "red"}
    assert sent["empty"] == {"DataType": "Binary.gzip", "BinaryValue": b""}


def test_detail_gives_way_to_the_ninth_attribute_of_the_producer(cloud: Cloud) -> None:
    nine = {f"a-{number}": text("x") for number in range(9)}
    assert cloud.deliver(record("m-1", BAD, attributes=nine)) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert set(letter.attributes) == {*nine, "dead_letter_reason"}


def test_message_with_ten_attributes_is_reported_and_left_to_the_redrive_policy(
    cloud: Cloud, logged: Logged, metrics: Metrics
) -> None:
    ten = {f"a-{number}": text("x") for number in range(10)}
    assert cloud.deliver(record("m-1", BAD, attributes=ten), record("m-2", {"id": "o-2"})) == reported("m-1")
    assert cloud.count(BURY) == 0
    assert ("m-1", "retry", "dead-letter-does-not-fit") in [verdict[:3] for verdict in logged()]
    assert cloud.statuses() == {"o-2": "sent"}
    counted = metrics()
    assert (counted["Retries"], counted["Misconfigured"]) == (1, 0)


def test_message_with_ten_attributes_alone_in_its_batch_is_reported_too(cloud: Cloud) -> None:
    ten = {f"a-{number}": text("x") for number in range(10)}
    assert cloud.deliver(record("m-1", BAD, attributes=ten)) == reported("m-1")


def test_reason_of_an_earlier_dead_letter_is_replaced(cloud: Cloud) -> None:
    """The message was redriven by hand from the dead-letter queue, with the attributes that it had there."""
    eight = {f"a-{number}": text("x") for number in range(8)}
    old = {"dead_letter_reason": text("bad-json"), "dead_letter_detail": text("old")}
    assert cloud.deliver(record("m-1", BAD, attributes={**old, **eight})) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("id-missing", 'event.id "id" selects nothing')
    assert set(letter.attributes) == {*eight, "dead_letter_reason", "dead_letter_detail"}


def test_old_detail_does_not_outlive_a_new_reason_without_one(cloud: Cloud) -> None:
    old = {"dead_letter_reason": text("bad-json"), "dead_letter_detail": text("old")}
    assert bury(cloud, record("m-1", {"id": "o-1"}, attributes=old), "") == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert letter.attributes == {"dead_letter_reason": {"DataType": "String", "StringValue": "because"}}


def test_detail_is_cut(cloud: Cloud) -> None:
    assert bury(cloud, record("m-1", {"id": "o-1"}), "x" * 5_000) == NOTHING_FAILED
    assert cloud.dead_letters()[0].detail == "x" * 1_000


@pytest.mark.parametrize(
    ("detail", "cleaned"),
    [
        ("a\x00b\x0bc\x1fd", "a?b?c?d"),
        ("a\ud800b", "a?b"),
        ("a\ufffeb\uffffc", "a?b?c"),
        ("tab\tline\nreturn\rend", "tab\tline\nreturn\rend"),
        ("Müller 📦 \ufffd", "Müller 📦 \ufffd"),
    ],
)
def test_characters_that_sqs_refuses_are_taken_out_of_the_detail(cloud: Cloud, detail: str, cleaned: str) -> None:
    cloud.on(BURY, answers={})
    assert bury(cloud, record("m-1", {"id": "o-1"}), detail) == NOTHING_FAILED
    attributes = cloud.requests(BURY)[0]["MessageAttributes"]
    assert attributes["dead_letter_detail"]["StringValue"] == cleaned


def test_detail_is_left_out_where_a_queue_of_256_kib_would_refuse_the_copy(cloud: Cloud) -> None:
    cloud.on(BURY, answers={})
    # The reason counts 18 (name) + 6 (type) + 10 (text) bytes, the detail 18 + 6 + 29.
    largest = 262_144 - 34 - 53
    for size in (largest, largest + 1):
        body = "{" + " " * (size - 2) + "}"
        assert cloud.deliver(record("m-1", body)) == NOTHING_FAILED
    first, second = (request["MessageAttributes"] for request in cloud.requests(BURY))
    assert set(first) == {"dead_letter_reason", "dead_letter_detail"}
    assert set(second) == {"dead_letter_reason"}


# The send fails


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("AccessDenied", BURY), "misconfigured"),
        (client_error("AWS.SimpleQueueService.NonExistentQueue", BURY), "misconfigured"),
        (client_error("KMS.AccessDeniedException", BURY), "misconfigured"),
        (client_error("RequestThrottled", BURY), "throttled"),
        (client_error("InternalError", BURY), "unavailable"),
        (ReadTimeoutError(endpoint_url="https://sqs.us-east-1.amazonaws.com/"), "unavailable"),
        (client_error("InvalidMessageContents", BURY), "dead-letter-does-not-fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_message_is_reported_when_the_send_fails(cloud: Cloud, error: Exception, reason: str, logged: Logged) -> None:
    cloud.on(BURY, raises=error)
    assert cloud.deliver(record("m-1", BAD), record("m-2", {"id": "o-2"})) == reported("m-1")
    assert cloud.count(BURY) == 1
    assert ("m-1", "retry", reason) in [verdict[:3] for verdict in logged()]
    cloud.heal()
    assert cloud.deliver(record("m-1", BAD)) == NOTHING_FAILED
    assert cloud.reasons() == ["id-missing"]


def test_send_whose_answer_is_lost_makes_a_second_copy_and_loses_nothing(cloud: Cloud) -> None:
    cloud.on(BURY, raises=client_error("InternalError", BURY), after=True, calls=[1])
    assert cloud.deliver(record("m-1", BAD)) == reported("m-1")
    assert cloud.deliver(record("m-1", BAD)) == NOTHING_FAILED
    assert [letter.body for letter in cloud.dead_letters()] == [BAD, BAD]


def test_copy_that_the_queue_refuses_as_too_large_is_no_misconfiguration(cloud: Cloud, metrics: Metrics) -> None:
    """The message filled its queue's limit, so that no attribute fits beside it: the redrive policy takes it."""
    cloud.on(BURY, raises=client_error("InvalidParameterValue", BURY))
    body = "{" + " " * 262_100 + "}"
    assert cloud.deliver(record("m-1", body)) == reported("m-1")
    assert metrics()["Misconfigured"] == 0


# FIFO


def test_fifo_copy_keeps_its_group_and_is_deduplicated_by_its_own_message_id(fifo_cloud: Cloud) -> None:
    message = record("m-1", BAD, group="customer-42")
    assert message["attributes"]["MessageDeduplicationId"] == "set-by-the-producer"
    assert fifo_cloud.deliver(message) == NOTHING_FAILED
    (letter,) = fifo_cloud.dead_letters()
    assert (letter.group, letter.deduplication_id) == ("customer-42", "m-1")


def test_two_messages_with_one_deduplication_id_of_the_producer_are_two_dead_letters(fifo_cloud: Cloud) -> None:
    """The second was sent after five minutes, or after the first had gone to the dead-letter queue."""
    messages = [record(f"m-{number}", BAD, group="customer-42") for number in (1, 2)]
    assert len({message["attributes"]["MessageDeduplicationId"] for message in messages}) == 1
    assert fifo_cloud.deliver(*messages) == NOTHING_FAILED
    assert [letter.deduplication_id for letter in fifo_cloud.dead_letters()] == ["m-1", "m-2"]


def test_second_send_of_one_fifo_message_is_dropped_by_the_queue(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(BURY, raises=client_error("InternalError", BURY), after=True, calls=[1])
    message = record("m-1", BAD, group="customer-42")
    assert fifo_cloud.deliver(message) == reported("m-1")
    assert fifo_cloud.deliver(message) == NOTHING_FAILED
    assert len(fifo_cloud.dead_letters()) == 1


def test_fair_queue_message_is_copied_without_its_group(cloud: Cloud) -> None:
    message = fixture("sqs_standard_fair")["Records"][0]
    message["body"] = BAD
    assert cloud.deliver(message) == NOTHING_FAILED
    assert set(cloud.requests(BURY)[0]) == {"QueueUrl", "MessageBody", "MessageAttributes"}


def test_trace_header_is_not_copied(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", BAD))
    assert "AWSTraceHeader" not in json.dumps(cloud.requests(BURY))
