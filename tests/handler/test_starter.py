"""The starter: one execution for each event of a message, however often that is delivered; no message is dropped."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aws_xray_sdk.core import xray_recorder
from botocore.exceptions import ConnectionClosedError, NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from idempotent_consumer import starter as starter_module
from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import Clients, create_client
from idempotent_consumer.calls import error_code
from idempotent_consumer.message import UnexpectedInvocation
from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import (
    BURY,
    HIDE,
    NOTHING_FAILED,
    Cloud,
    Context,
    Killed,
    client_error,
    fixture,
    record,
    reported,
)
from tests.handler.workflow_support import (
    EXECUTION,
    START,
    STARTER_ENVIRONMENT,
    STATE_MACHINE,
    NewWorkflow,
    Workflow,
    status_event,
)

MARKER = "marker-4111-1111"
LIBRARY = Path(starter_module.__file__).parents[1]
# The first 40 hex digits of SHA-256 of o-1, o-2, sqs:m-1 and sqs:m-2.
O_1, O_2 = "5cbdcb742069a5823a0c64b49ce721b0bca5af9b", "2b6bf4c038758d4a3757320fc6af65b6384d4aeb"
M_1, M_2 = "b959c367c27d9f18835fa2bf169c00fa76db52fc", "570195b11aa921226a802dd90f43412fcd341b4e"

Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]


@pytest.fixture
def new_workflow(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> NewWorkflow:
    return lambda **changes: Workflow(cloud, monkeypatch, **changes)


@pytest.fixture
def workflow(new_workflow: NewWorkflow) -> Workflow:
    return new_workflow()


@pytest.fixture
def by_message(new_workflow: NewWorkflow) -> Workflow:
    """Without a path to a business key."""
    return new_workflow(EVENT_ID=None)


def order(message_id: str = "m-1", order_id: str = "o-1", **options: Any) -> dict[str, Any]:
    return record(message_id, {"id": order_id, "total": 5}, **options)


def text(value: str) -> dict[str, Any]:
    """A message attribute as Lambda spells it."""
    return {"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": "String"}


# One execution for each message


@pytest.mark.case("C77")
def test_a_message_starts_an_execution_by_a_name_of_its_key_and_id(workflow: Workflow) -> None:
    assert workflow.deliver(order(attributes={"source": text("checkout")})) == NOTHING_FAILED
    assert workflow.cloud.requests(START) == [
        {
            "stateMachineArn": "arn:aws:states:eu-central-1:111122223333:stateMachine:orders",
            "name": O_1 + "-m-1",
            "input": (
                '{"key":"o-1","messageId":"m-1",'
                '"fingerprint":"2f46a9a140c0b9c876c7525590caa1decfa6bcfa6789abcb3ba530980f365f50",'
                '"event":{"id":"o-1","total":5},"body":"{\\"id\\":\\"o-1\\",\\"total\\":5}",'
                '"attributes":{"source":{"DataType":"String","StringValue":"checkout"}}}'
            ),
        }
    ]
    assert workflow.cloud.operations == [START]


@pytest.mark.case("C77", "C78")
@pytest.mark.parametrize("is_running", [True, False])
def test_a_redelivery_starts_nothing_new(workflow: Workflow, is_running: bool) -> None:
    """Running, the name is answered once more; ended, it is taken. Both say that this message has started it."""
    workflow.deliver(order())
    if not is_running:
        workflow.step_functions.finish()
    assert workflow.deliver(order(receive_count=2)) == NOTHING_FAILED
    first, second = workflow.cloud.requests(START)
    assert first == second
    assert workflow.names == [O_1 + "-m-1"]


@pytest.mark.case("C78")
def test_a_name_that_is_taken_is_settled_and_told(workflow: Workflow, logged: Logged, metrics: Metrics) -> None:
    workflow.cloud.on(START, raises=client_error("ExecutionAlreadyExists", START))
    assert workflow.deliver(order()) == NOTHING_FAILED
    assert logged() == [("m-1", "duplicate", "already-started", "")]
    line = metrics()
    assert (line["Started"], line["Duplicates"], line["Retries"]) == (0, 1, 0)
    assert workflow.cloud.count(BURY) == 0


@pytest.mark.case("C78")
def test_another_message_of_the_same_key_starts_an_execution_and_the_guard_decides(workflow: Workflow) -> None:
    """So a first one that failed does not take the key with it."""
    workflow.deliver(order("m-1"))
    workflow.step_functions.finish()
    assert workflow.deliver(order("m-2")) == NOTHING_FAILED
    assert workflow.names == [O_1 + "-m-1", O_1 + "-m-2"]
    assert workflow.keys == ["o-1", "o-1"]


def test_two_copies_in_one_batch_are_one_execution(workflow: Workflow) -> None:
    assert workflow.deliver(order(), order()) == NOTHING_FAILED
    assert workflow.names == [O_1 + "-m-1"]


def test_a_lost_answer_brings_the_message_back_and_starts_nothing_twice(workflow: Workflow) -> None:
    lost = ConnectionClosedError(endpoint_url="https://aws.example")
    workflow.cloud.on(START, raises=lost, after=True, calls=[1])
    assert workflow.deliver(order()) == reported("m-1")
    assert workflow.deliver(order(receive_count=2)) == NOTHING_FAILED
    assert workflow.names == [O_1 + "-m-1"]


@pytest.mark.parametrize("after", [False, True])
def test_a_starter_that_dies_leaves_the_message_to_its_next_delivery(workflow: Workflow, after: bool) -> None:
    workflow.cloud.on(START, raises=Killed(), after=after, calls=[1])
    with pytest.raises(Killed):
        workflow.deliver(order())
    assert workflow.deliver(order(receive_count=2)) == NOTHING_FAILED
    assert workflow.names == [O_1 + "-m-1"]


# What an execution is given


def test_numbers_keep_their_digits(workflow: Workflow) -> None:
    body = '{"id":"o-1","big":12345678901234567890123,"price":4.20,"tiny":1E-7}'
    assert workflow.deliver(record("m-1", body)) == NOTHING_FAILED
    (given,) = workflow.step_functions.inputs.values()
    assert '"event":{"id":"o-1","big":12345678901234567890123,"price":4.20,"tiny":0.0000001}' in given
    read = json.loads(given, parse_float=Decimal)
    assert (read["event"]["price"], read["body"]) == (Decimal("4.20"), body)


def test_bytes_of_an_attribute_stay_base64(workflow: Workflow) -> None:
    message = fixture("sqs_standard")["Records"][0]
    assert workflow.deliver(message) == NOTHING_FAILED
    (given,) = workflow.inputs
    assert given["body"] == message["body"]
    assert given["attributes"] == {
        "source": {"DataType": "String", "StringValue": "checkout"},
        "priority": {"DataType": "Number", "StringValue": "7"},
        "digest": {"DataType": "Binary", "BinaryValue": "4QfbaidQvPwGh14aFXJU03+p8DgpJV3VrF+kv6hiaZc="},
    }


@pytest.mark.parametrize(
    ("envelope", "name", "key", "event_id"),
    [
        ("sns", "body_sns_notification", "order-7001", "id"),
        ("eventbridge", "body_eventbridge_custom", "c01836f5-31c1-58d4-adf1-bfa7fb4c05a7", "id"),
        ("eventbridge", "body_eventbridge_custom", "order-7001", "detail.order.id"),
    ],
)
def test_an_envelope_is_opened_for_the_key_and_kept_in_the_body(
    new_workflow: NewWorkflow, envelope: str, name: str, key: str, event_id: str
) -> None:
    workflow = new_workflow(EVENT_ENVELOPE=envelope, EVENT_ID=event_id)
    body = json.dumps(fixture(name))
    assert workflow.deliver(record("m-1", body)) == NOTHING_FAILED
    (given,) = workflow.inputs
    assert (given["key"], given["body"]) == (key, body)
    expected = json.loads(fixture(name)["Message"]) if envelope == "sns" else fixture(name)
    assert given["event"] == expected


def test_each_object_of_an_s3_message_has_an_execution_of_its_own(new_workflow: NewWorkflow) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="s3", EVENT_ID=None)
    records = fixture("body_s3_put_three_objects")["Records"]
    assert workflow.deliver(record("m-1", {"Records": records})) == NOTHING_FAILED
    expected = [
        "/".join(
            [
                each["s3"]["bucket"]["name"],
                each["s3"]["object"]["key"],
                each["s3"]["object"].get("versionId", ""),
                each["s3"]["object"]["sequencer"],
            ]
        )
        for each in records
    ]
    assert workflow.keys == expected
    assert len(set(workflow.names)) == 3
    assert all(name.endswith("-m-1") for name in workflow.names)
    assert [given["event"] for given in workflow.inputs] == records


def test_of_a_message_with_several_events_only_what_is_missing_is_started_again(
    new_workflow: NewWorkflow, logged: Logged
) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="s3", EVENT_ID="s3.object.key")
    body = {"Records": [{"s3": {"object": {"key": key}}} for key in ("o-1", "o-2", "o-3")]}
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START), calls=[2])
    assert workflow.deliver(record("m-1", body)) == reported("m-1")
    assert workflow.keys == ["o-1", "o-3"]
    workflow.step_functions.finish()
    assert workflow.deliver(record("m-1", body, receive_count=2)) == NOTHING_FAILED
    assert workflow.keys == ["o-1", "o-3", "o-2"]
    assert logged() == [
        ("m-1", "retry", "throttled", "StartExecution: ThrottlingException"),
        ("m-1", "duplicate", "already-started", ""),
    ]


def test_a_message_goes_to_the_dead_letter_queue_once_its_other_events_are_started(new_workflow: NewWorkflow) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="s3", EVENT_ID="s3.object.key")
    body = {"Records": [{"s3": {"object": {"key": "o-1"}}}, {"s3": {}}]}
    assert workflow.deliver(record("m-1", body)) == NOTHING_FAILED
    assert workflow.keys == ["o-1"]
    (letter,) = workflow.cloud.dead_letters()
    assert (json.loads(letter.body), letter.reason) == (body, "not-an-s3-notification")
    assert letter.detail == "1: started; 2: rejected not-an-s3-notification a record has no s3.object.key"


def test_of_two_contents_of_one_key_in_a_message_the_first_is_started_and_the_message_dead_lettered(
    new_workflow: NewWorkflow, metrics: Metrics
) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="s3", EVENT_ID="s3.object.key")
    body = {"Records": [{"s3": {"object": {"key": "o-1", "eTag": tag}}} for tag in ("a", "a", "b")]}
    assert workflow.deliver(record("m-1", body)) == NOTHING_FAILED
    assert workflow.keys == ["o-1"]
    assert workflow.inputs[0]["event"]["s3"]["object"]["eTag"] == "a"
    (letter,) = workflow.cloud.dead_letters()
    assert (json.loads(letter.body), letter.reason) == (body, "id-reused")
    assert letter.detail == (
        "1: started; 2: started; 3: conflict id-reused the message has this id twice, with different content"
    )
    assert metrics()["Conflicts"] == 1


def test_a_test_event_of_s3_is_ignored_and_counted(new_workflow: NewWorkflow, metrics: Metrics) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="s3", EVENT_ID=None)
    assert workflow.deliver(record("m-1", fixture("body_s3_test_event"))) == NOTHING_FAILED
    assert workflow.cloud.operations == []
    assert metrics()["Ignored"] == 1


# Without a business key


@pytest.mark.parametrize(
    ("envelope", "name"),
    [("raw", "body_order"), ("sns", "body_sns_notification"), ("eventbridge", "body_eventbridge_custom")],
)
def test_without_a_path_to_it_the_key_is_the_message_id(new_workflow: NewWorkflow, envelope: str, name: str) -> None:
    workflow = new_workflow(EVENT_ENVELOPE=envelope, EVENT_ID=None)
    assert workflow.deliver(record("m-1", fixture(name)), record("m-2", fixture(name))) == NOTHING_FAILED
    assert workflow.keys == ["sqs:m-1", "sqs:m-2"]
    assert workflow.names == [M_1 + "-m-1", M_2 + "-m-2"]


def test_an_event_without_an_id_is_no_trouble_where_none_is_looked_for(by_message: Workflow) -> None:
    assert by_message.deliver(record("m-1", "{}")) == NOTHING_FAILED
    assert by_message.keys == ["sqs:m-1"]


def test_a_letter_that_is_sent_back_keeps_the_key_of_its_first_message(by_message: Workflow) -> None:
    assert by_message.deliver(order("m-9", attributes={"dead_letter_key": text("sqs:m-1")})) == NOTHING_FAILED
    assert by_message.keys == ["sqs:m-1"]
    assert by_message.names == [M_1 + "-m-9"]
    assert by_message.inputs[0]["attributes"] == {
        "dead_letter_key": {"DataType": "String", "StringValue": "sqs:m-1"},
    }


@pytest.mark.parametrize("claimed", ["o-1", "", "m-1", " sqs:m-1"])
def test_any_other_key_on_a_message_is_not_believed(by_message: Workflow, claimed: str) -> None:
    by_message.deliver(order("m-9", attributes={"dead_letter_key": text(claimed)}))
    assert by_message.keys == ["sqs:m-9"]


@pytest.mark.parametrize("claimed", ["sqs:m-1", "o-2"])
def test_with_a_business_key_none_that_stands_on_the_message_is_believed(workflow: Workflow, claimed: str) -> None:
    workflow.deliver(order("m-9", "o-1", attributes={"dead_letter_key": text(claimed)}))
    assert workflow.keys == ["o-1"]
    assert workflow.inputs[0]["attributes"]["dead_letter_key"]["StringValue"] == claimed


# What EventBridge put into the dead-letter queue


def given_input(key: str = "o-1", **attributes: Any) -> str:
    return json.dumps(
        {
            "key": key,
            "messageId": "m-1",
            "fingerprint": "f-1",
            "event": {"id": "o-1", "total": 5},
            "body": '{"id":"o-1","total":5}',
            "attributes": attributes,
        }
    )


def test_an_execution_that_was_stopped_starts_again_as_the_message_inside(workflow: Workflow) -> None:
    source = {"DataType": "String", "StringValue": "checkout"}
    letter = record("m-9", status_event(given_input(source=source)))
    assert workflow.deliver(letter) == NOTHING_FAILED
    workflow.deliver(order("m-1"))
    again, plain = workflow.inputs
    assert workflow.names == [O_1 + "-m-9", O_1 + "-m-1"]
    assert again == {
        **plain,
        "messageId": "m-9",
        "attributes": {"source": source, "dead_letter_key": {"DataType": "String", "StringValue": "o-1"}},
    }


def test_without_a_business_key_it_starts_again_under_the_key_of_its_first_message(by_message: Workflow) -> None:
    assert by_message.deliver(record("m-9", status_event(given_input("sqs:m-1")))) == NOTHING_FAILED
    assert by_message.keys == ["sqs:m-1"]
    assert by_message.names == [M_1 + "-m-9"]


def test_its_redelivery_starts_nothing_new(workflow: Workflow) -> None:
    letter = record("m-9", status_event(given_input()))
    workflow.deliver(letter)
    workflow.step_functions.finish()
    assert workflow.deliver(letter) == NOTHING_FAILED
    assert workflow.names == [O_1 + "-m-9"]


def test_inside_an_envelope_too_it_is_known(new_workflow: NewWorkflow) -> None:
    """It is read before the envelope is: for EventBridge's it would be an event like any other."""
    workflow = new_workflow(EVENT_ENVELOPE="eventbridge", EVENT_ID="detail.order.id")
    body = json.dumps(fixture("body_eventbridge_custom"))
    given = json.dumps({**json.loads(given_input("order-7001")), "body": body})
    assert workflow.deliver(record("m-9", status_event(given))) == NOTHING_FAILED
    assert workflow.keys == ["order-7001"]
    assert workflow.inputs[0]["event"] == fixture("body_eventbridge_custom")


def test_that_of_another_state_machine_is_an_event_like_any_other(new_workflow: NewWorkflow) -> None:
    workflow = new_workflow(EVENT_ENVELOPE="eventbridge", EVENT_ID="id")
    body = status_event(given_input(), arn=STATE_MACHINE.replace(":orders", ":refunds"))
    assert workflow.deliver(record("m-9", body)) == NOTHING_FAILED
    assert workflow.keys == ["315c1398-40ff-a850-213b-158f73e60175"]
    assert workflow.inputs[0]["event"] == json.loads(body)
    assert workflow.inputs[0]["attributes"] == {}


@pytest.mark.parametrize(
    "given", [None, '{"order":"o-1"}', '{"key":"o-1","body":"{}","attributes":{"source":"checkout"}}']
)
def test_one_that_cannot_be_opened_goes_back_as_it_came_and_holds_up_nothing(
    by_message: Workflow, given: str | None
) -> None:
    body = status_event(given)
    assert by_message.deliver(record("m-9", body), order("m-2")) == NOTHING_FAILED
    assert by_message.keys == ["sqs:m-2"]
    (letter,) = by_message.cloud.dead_letters()
    assert (letter.body, letter.reason) == (body, "input-missing")
    assert letter.detail == (
        "what the event holds is not the input of arn:aws:states:eu-central-1:111122223333:execution:orders:one"
    )


def test_what_is_wrong_with_the_message_inside_is_dead_lettered_as_that_message(workflow: Workflow) -> None:
    source = {"DataType": "String", "StringValue": "checkout"}
    given = json.dumps({**json.loads(given_input(source=source)), "body": "not JSON"})
    assert workflow.deliver(record("m-9", status_event(given))) == NOTHING_FAILED
    (letter,) = workflow.cloud.dead_letters()
    assert (letter.body, letter.reason) == ("not JSON", "bad-json")
    assert letter.attributes["source"] == source
    assert letter.attributes["dead_letter_key"] == {"DataType": "String", "StringValue": "o-1"}


def test_a_fault_in_opening_one_message_holds_up_no_other(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    def fail(message: Any, _arn: str) -> Any:
        if message.id == "m-1":
            raise TypeError(MARKER)
        return message

    monkeypatch.setattr(starter_module, "reopened", fail)
    assert workflow.deliver(order("m-1"), order("m-2", "o-2")) == reported("m-1")
    assert workflow.keys == ["o-2"]
    assert logged() == [("m-1", "retry", "fault", "TypeError")]


# What can never succeed


@pytest.mark.parametrize(
    ("body", "reason", "detail"),
    [
        ("not JSON", "bad-json", "Expecting value at character 0"),
        ('{"id":"o-1","total":NaN}', "bad-json", "NaN is not JSON"),
        ('{"id":"o-1","id":"o-2"}', "duplicate-json-key", "an object names the same key twice"),
        ('["o-1"]', "not-an-object", "the body is JSON, but not an object"),
        ('{"total":5}', "id-missing", 'event.id "id" selects nothing'),
        ('{"id":" "}', "id-blank", 'event.id "id" is blank'),
        ('{"id":{}}', "id-wrong-type", 'event.id "id" is neither a string nor an integer'),
        ('{"id":"' + "k" * 2049 + '"}', "id-too-long", 'event.id "id" has 2049 UTF-8 bytes, over 2048'),
        ('{"id":"o-\\ud800"}', "bad-unicode", "a string holds half of a surrogate pair"),
        ('{"id":' * 40_000, "nested-too-deep", "the body is nested too deep to be processed"),
    ],
)
def test_what_is_no_event_is_dead_lettered_at_once(
    workflow: Workflow, metrics: Metrics, body: str, reason: str, detail: str
) -> None:
    assert workflow.deliver(record("m-1", body), order("m-2")) == NOTHING_FAILED
    (letter,) = workflow.cloud.dead_letters()
    assert (letter.body, letter.reason, letter.detail) == (body, reason, detail)
    assert workflow.keys == ["o-1"]
    line = metrics()
    assert (line["Rejected"], line["Started"]) == (1, 1)


def test_an_input_that_is_too_large_is_dead_lettered_with_its_size(workflow: Workflow) -> None:
    """The body and the event in it both count: a body of half the limit is too large."""
    body = json.dumps({"id": "o-1", "note": "n" * 131_000}, separators=(",", ":"))
    assert workflow.deliver(record("m-1", body), order("m-2", "o-2")) == NOTHING_FAILED
    assert workflow.keys == ["o-2"]
    (letter,) = workflow.cloud.dead_letters()
    assert (letter.body, letter.reason) == (body, "input-too-large")
    assert letter.detail == "the execution's input has 262199 bytes, over 262144"


def test_what_is_nested_too_deep_to_be_written_is_dead_lettered(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter reads a little deeper than it writes."""

    def fail(*_: Any) -> str:
        raise RecursionError

    monkeypatch.setattr(starter_module, "execution_input", fail)
    assert workflow.deliver(order()) == NOTHING_FAILED
    assert workflow.cloud.reasons() == ["nested-too-deep"]


def test_content_that_the_fingerprint_does_not_find_is_dead_lettered(new_workflow: NewWorkflow) -> None:
    workflow = new_workflow(EVENT_FINGERPRINT="amount")
    assert workflow.deliver(order()) == NOTHING_FAILED
    assert workflow.cloud.reasons() == ["fingerprint-missing"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("RequestThrottled", BURY), "throttled"),
        (client_error("QueueDoesNotExist", BURY), "misconfigured"),
        (ReadTimeoutError(endpoint_url="https://aws.example"), "unavailable"),
        (client_error("InvalidMessageContents", BURY), "dead-letter-does-not-fit"),
        (TypeError(MARKER), "fault"),
    ],
)
def test_a_message_that_cannot_be_dead_lettered_comes_back(
    workflow: Workflow, logged: Logged, error: Exception, reason: str
) -> None:
    workflow.cloud.on(BURY, raises=error)
    assert workflow.deliver(record("m-1", "not JSON"), order("m-2")) == reported("m-1")
    assert workflow.keys == ["o-1"]
    assert [entry[:3] for entry in logged()] == [("m-1", "rejected", "bad-json"), ("m-1", "retry", reason)]


def test_a_dead_letter_keeps_the_producers_attributes(workflow: Workflow) -> None:
    message = {**fixture("sqs_standard")["Records"][0], "body": "not JSON"}
    workflow.deliver(message)
    (letter,) = workflow.cloud.dead_letters()
    assert letter.attributes["digest"]["BinaryValue"].hex().startswith("e107db6a2750bcfc")
    assert letter.attributes["source"] == {"DataType": "String", "StringValue": "checkout"}


# What comes back


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("ThrottlingException", START), "throttled"),
        (client_error("ExecutionLimitExceeded", START), "throttled"),
        (client_error("KmsThrottlingException", START), "throttled"),
        (client_error("ServiceUnavailable", START), "unavailable"),
        (ConnectionClosedError(endpoint_url="https://aws.example"), "unavailable"),
        (ResponseParserError(MARKER), "unavailable"),
        (client_error("StateMachineDoesNotExist", START), "misconfigured"),
        (client_error("StateMachineDeleting", START), "misconfigured"),
        (client_error("InvalidArn", START), "misconfigured"),
        (client_error("AccessDeniedException", START), "misconfigured"),
        (client_error("KmsAccessDeniedException", START), "misconfigured"),
        (NoCredentialsError(), "misconfigured"),
        (client_error("InvalidExecutionInput", START), "refused"),
        (client_error("InvalidName", START), "refused"),
        (client_error("ValidationException", START), "refused"),
    ],
)
def test_each_record_has_its_own_answer(workflow: Workflow, logged: Logged, error: Exception, reason: str) -> None:
    workflow.cloud.on(START, raises=error, calls=[2])
    batch = [order("m-1", "o-1"), order("m-2", "o-2"), order("m-3", "o-3")]
    assert workflow.deliver(*batch) == reported("m-2")
    assert workflow.keys == ["o-1", "o-3"]
    assert logged() == [("m-2", "retry", reason, f"StartExecution: {error_code(error)}")]


@pytest.mark.parametrize("code", ["StateMachineDoesNotExist", "AccessDeniedException", "InvalidExecutionInput"])
def test_the_invocation_fails_only_if_nothing_could_be_settled(workflow: Workflow, metrics: Metrics, code: str) -> None:
    workflow.cloud.on(START, raises=client_error(code, START), calls=[1, 2, 3])
    with pytest.raises(Misconfigured, match="nothing of the batch could be settled"):
        workflow.deliver(order("m-1"), order("m-2"))
    assert (line := metrics())["Misconfigured"] == 2 and line["Retries"] == 2
    assert workflow.deliver(order("m-1"), order("m-2", "o-2")) == reported("m-1")
    assert workflow.names == [O_2 + "-m-2"]


def test_throttles_alone_never_fail_the_invocation(workflow: Workflow) -> None:
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START))
    assert workflow.deliver(order("m-1"), order("m-2")) == reported("m-1", "m-2")


def test_a_fault_of_our_own_brings_its_message_back_and_no_other(
    workflow: Workflow, logged: Logged, caplog: pytest.LogCaptureFixture
) -> None:
    workflow.cloud.on(START, raises=TypeError(MARKER), calls=[1])
    assert workflow.deliver(order("m-1"), order("m-2", "o-2")) == reported("m-1")
    assert logged() == [("m-1", "retry", "fault", "TypeError")]
    assert MARKER not in "".join(str(entry.__dict__) for entry in caplog.records)


@pytest.mark.case("C65")
def test_nothing_is_begun_that_may_not_end_in_time(workflow: Workflow, logged: Logged) -> None:
    """A call takes 7 s at most, and half a second is for the answer."""
    context = Context(workflow.cloud, remaining_ms=8_500, costs_ms={START: 1_001})
    assert workflow.deliver(order("m-1"), order("m-2", "o-2"), context=context) == reported("m-2")
    assert workflow.names == [O_1 + "-m-1"]
    assert logged() == [("m-2", "retry", "out-of-time", "the invocation's time is used up")]


def test_out_of_time_no_message_is_dead_lettered_either(workflow: Workflow) -> None:
    context = Context(workflow.cloud, remaining_ms=7_499)
    assert workflow.deliver(record("m-1", "not JSON"), context=context) == reported("m-1")
    assert workflow.cloud.count(BURY) == 0


def test_what_comes_back_is_hidden_and_nothing_else(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotent_consumer.backoff.hidden_seconds", lambda receives, _backoff: 180 + receives)
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START), calls=[2])
    second = order("m-2", "o-2", receive_count=3) | {"receiptHandle": "handle of m-2"}
    workflow.deliver(order("m-1"), second)
    assert workflow.cloud.requests(HIDE) == [
        {
            "QueueUrl": "https://sqs.test/orders",
            "Entries": [{"Id": "0", "ReceiptHandle": "handle of m-2", "VisibilityTimeout": 183}],
        }
    ]


@pytest.mark.parametrize("invocation", [{}, {"Records": None}, [], fixture("lambda_sns_direct")])
def test_what_is_no_batch_of_sqs_is_refused(workflow: Workflow, invocation: Any) -> None:
    with pytest.raises(UnexpectedInvocation):
        workflow.starter().handle(invocation, Context(workflow.cloud))


def test_an_empty_batch_is_settled(workflow: Workflow) -> None:
    assert workflow.deliver() == NOTHING_FAILED


# Many at once


@pytest.mark.side_by_side
def test_a_large_batch_is_started_side_by_side(workflow: Workflow) -> None:
    """Five calls at a time: none of the first five is answered before all of them are there."""
    meeting = threading.Barrier(5)
    workflow.cloud.on(START, runs=lambda: meeting.wait(60), calls=range(1, 6))
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START), calls=range(50, 53))
    batch = [order(f"m-{number}", f"o-{number}") for number in range(1, 101)]
    answer = workflow.deliver(*batch)
    returned = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    assert len(returned) == 3
    assert len(workflow.names) == 97
    assert {f"m-{key[2:]}" for key in workflow.keys} == {f"m-{number}" for number in range(1, 101)} - returned
    assert workflow.cloud.count(START) == 100


# What is told of it


def test_nothing_of_a_body_is_logged(
    workflow: Workflow, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "idempotent_consumer")
    body = {"id": "o-1", "card": MARKER}
    attributes = {"token": text(MARKER)}
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START), calls=[3])
    workflow.deliver(record("m-1", body, attributes=attributes))
    workflow.step_functions.finish()
    workflow.deliver(record("m-1", body, attributes=attributes), record("m-2", body, attributes=attributes))
    workflow.deliver(record("m-3", '{"' + MARKER + '":', attributes=attributes))
    workflow.deliver(record("m-4", {"id": {MARKER: 1}}), record("m-5", status_event(f'{{"x":"{MARKER}"}}')))
    plain = logging.Formatter()
    told = [f"{plain.format(entry)} {entry.__dict__}" for entry in caplog.records]
    assert len(told) == 5
    assert MARKER not in "\n".join(told) + capsys.readouterr().out


def test_what_goes_well_is_not_logged(workflow: Workflow, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "idempotent_consumer")
    workflow.deliver(order())
    assert caplog.records == []


def test_the_line_of_metrics_is_literal(workflow: Workflow, metrics: Metrics) -> None:
    workflow.step_functions.inputs[O_2 + "-m-2"] = ""
    workflow.cloud.on(START, raises=client_error("AccessDeniedException", START), calls=[3])
    batch = [order("m-1"), order("m-2", "o-2", receive_count=2), order("m-3", "o-3"), record("m-4", "not JSON")]
    assert workflow.deliver(*batch) == reported("m-3")
    assert metrics() == {
        "_aws": {
            "Timestamp": 1_893_553_446_000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "IdempotentConsumer",
                    "Dimensions": [["Consumer"]],
                    "Metrics": [
                        {"Name": "Started", "Unit": "Count"},
                        {"Name": "Duplicates", "Unit": "Count"},
                        {"Name": "Ignored", "Unit": "Count"},
                        {"Name": "Rejected", "Unit": "Count"},
                        {"Name": "Conflicts", "Unit": "Count"},
                        {"Name": "Retries", "Unit": "Count"},
                        {"Name": "Misconfigured", "Unit": "Count"},
                        {"Name": "EventAge", "Unit": "Milliseconds"},
                        {"Name": "ReceiveCount", "Unit": "Count"},
                    ],
                }
            ],
        },
        "level": "INFO",
        "timestamp": "2030-01-02T03:04:06Z",
        "Consumer": "orders",
        "Started": 1,
        "Duplicates": 1,
        "Ignored": 0,
        "Rejected": 1,
        "Conflicts": 0,
        "Retries": 1,
        "Misconfigured": 1,
        "EventAge": [880, 880, 880],
        "ReceiveCount": [1, 1, 1, 2],
    }


def test_metrics_that_cannot_be_written_bring_nothing_back(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr(telemetry, "emit_starts", fail)
    assert workflow.deliver(order()) == NOTHING_FAILED


def test_an_outcome_of_a_starter_has_a_metric_of_its_own() -> None:
    assert {outcome.value: name for outcome, name in telemetry.METRIC_OF_STARTER.items()} == {
        "started": "Started",
        "duplicate": "Duplicates",
        "ignored": "Ignored",
        "rejected": "Rejected",
        "conflict": "Conflicts",
        "retry": "Retries",
    }


def test_a_started_message_is_settled() -> None:
    started = Outcome.STARTED
    assert (started.is_reported, started.is_dead, Verdict(started).is_misconfigured) == (False, False, False)


@pytest.fixture
def segment() -> Iterator[Any]:
    """A trace as it is open inside Lambda; nothing leaves the process."""
    opened = xray_recorder.begin_segment("orders-worker", sampling=1)
    yield opened
    xray_recorder.clear_trace_entities()


def test_the_starts_are_one_subsegment(segment: Any, workflow: Workflow) -> None:
    workflow.cloud.on(START, raises=client_error("ThrottlingException", START), calls=[2])
    workflow.deliver(order("m-1"), order("m-2", "o-2"))
    assert [(each.name, each.in_progress) for each in segment.subsegments] == [("start", False)]


# The entry point


def test_the_handler_is_made_once(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def create(service: str) -> Any:
        made.append(service)
        return workflow.step_functions

    for name, value in workflow.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Clients, "create", lambda: workflow.cloud.clients)
    monkeypatch.setattr(starter_module, "create_client", create)
    monkeypatch.setattr(starter_module, "_starter", None)
    context = Context(workflow.cloud)
    for message_id in ("m-1", "m-2"):
        assert starter_module.handler({"Records": [order(message_id)]}, context) == NOTHING_FAILED
    assert made == ["stepfunctions"]
    assert workflow.names == [O_1 + "-m-1", O_1 + "-m-2"]


def test_the_client_of_step_functions_has_short_timeouts_and_two_attempts() -> None:
    config = create_client("stepfunctions").meta.config
    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.retries == {"mode": "standard", "total_max_attempts": 2}


def in_lambda(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new process of the function, which runs code once it is imported."""
    return subprocess.run(
        [sys.executable, "-c", f"from idempotent_consumer import starter\n{code}"],
        env={**os.environ, "PYTHONPATH": str(LIBRARY), "AWS_LAMBDA_FUNCTION_NAME": "orders-worker", **environment},
        capture_output=True,
        text=True,
    )


def test_inside_lambda_it_is_connected_before_its_first_message() -> None:
    code = "import gc; print(starter._starter is not None, gc.isenabled(), gc.get_freeze_count() > 0)"
    process = in_lambda(code, **STARTER_ENVIRONMENT)
    assert process.stdout == "True True True\n", process.stderr


def test_inside_lambda_a_wrong_environment_stops_it_before_its_first_message() -> None:
    process = in_lambda("print('started')", **{**STARTER_ENVIRONMENT, "STATE_MACHINE_ARN": ""})
    assert (process.returncode, process.stdout) == (1, "")
    assert "SettingsError: STATE_MACHINE_ARN is missing or blank" in process.stderr


def test_executions_are_of_the_machine_that_the_tests_speak_of(workflow: Workflow) -> None:
    workflow.cloud.on(START, answers=lambda _request, effect: effect())
    workflow.deliver(order())
    answer = workflow.step_functions.start_execution(stateMachineArn=STATE_MACHINE, name="one", input="{}")
    assert answer["executionArn"] == EXECUTION + "one"
