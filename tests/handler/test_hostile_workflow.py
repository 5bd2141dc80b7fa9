"""Strangers write the messages of a workflow: none crashes its starter, tells on its body, or steers it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from idempotent_consumer.aws import Clients
from idempotent_consumer.starter import Starter
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.handler.hostile import WORST, Stranger, body_of, examples, sendable, strangers
from tests.handler.hostile_json import KEY_MARKER, VALUE_MARKER, values
from tests.handler.hostile_world import Context, check_letter, dead_letter_reasons, event_ids, hostile_record
from tests.handler.watching import Watched, watched
from tests.handler.workflow_support import STARTER_ENVIRONMENT, STATE_MACHINE, status_event

DEAD = dead_letter_reasons("Dead-lettered at once") | {"input-missing", "input-too-large"}
ID = {"eventbridge": "id", "s3": None}
GOOD = '{"id":"good","detail-type":"t","detail":{},"Type":"Notification","Message":"{\\"id\\":\\"good\\"}"}'
GOOD_S3 = '{"Records":[{"s3":{"bucket":{"name":"good"},"object":{"key":"k","sequencer":"1"}}}]}'


class Surroundings:
    """Step Functions and the dead-letter queue; what they are asked is kept."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.buried: list[dict[str, Any]] = []
        self.clients = Clients(dynamodb=None, sns=None, sqs=self, sqs_short=self)

    def start_execution(self, **request: Any) -> dict[str, Any]:
        self.started.append(request)
        return {}

    def send_message(self, **request: Any) -> dict[str, Any]:
        self.buried.append(request)
        return {}

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        assert request["QueueUrl"] == STARTER_ENVIRONMENT["QUEUE_URL"]
        return {}

    def check(self) -> None:
        """Whatever bodies say, the one state machine is started, and letters go to the one queue."""
        for request in self.started:
            assert request.keys() == {"stateMachineArn", "name", "input"}
            assert request["stateMachineArn"] == STATE_MACHINE
            assert len(request["name"]) <= 80
            assert len(request["input"].encode()) <= 262_144
            given_input = json.loads(request["input"])
            assert given_input.keys() == {"key", "messageId", "fingerprint", "event", "body", "attributes"}
            assert isinstance(given_input["key"], str)
        assert all(request["QueueUrl"] == STARTER_ENVIRONMENT["DEAD_LETTER_QUEUE_URL"] for request in self.buried)

    def inputs_of(self, message_id: str) -> list[dict[str, Any]]:
        inputs = (json.loads(request["input"]) for request in self.started)
        return [each for each in inputs if each["messageId"] == message_id]


def deliver(records: Sequence[dict[str, Any]], **changes: str | None) -> tuple[Surroundings, Any, Watched]:
    around = Surroundings()
    environment = {name: value for name, value in {**STARTER_ENVIRONMENT, **changes}.items() if value is not None}
    starter = Starter(WorkflowSettings.from_environment(environment), around.clients, around)
    with watched() as seen:
        answer = starter.handle({"Records": list(records)}, Context())
    around.check()
    return around, answer, seen


# What EventBridge tells of an execution, or who pretends to be it.
_told = st.builds(
    lambda text, arn, detail: status_event(text, arn=arn, **detail),
    st.none()
    | values
    | st.builds(
        lambda key, body, attributes: json.dumps({"key": key, "body": body, "attributes": attributes}),
        st.sampled_from(("o-1", "sqs:m-1", "", VALUE_MARKER, 7, "x" * 3_000)),
        st.sampled_from(('{"id":"o-1"}', "", "{", '{"id":"' + VALUE_MARKER + '"}', 5, None)),
        st.sampled_from(
            (
                {},
                [],
                {"a": {}},
                {"a": {"DataType": "String", "StringValue": VALUE_MARKER}},
                {"a": 1},
                7,
            )
        ),
    ),
    st.sampled_from((STATE_MACHINE, STATE_MACHINE, "arn:aws:states:eu-central-1:9:stateMachine:theirs")),
    st.sampled_from(({}, {}, {"executionArn": [KEY_MARKER]}, {"error": {"a": 1}}, {"input": 1})),
)


@pytest.mark.parametrize("envelope", ["raw", "sns", "eventbridge", "s3"])
@pytest.mark.parametrize("has_id", [True, False], ids=["business key", "own id"])
def test_strangers_harm_no_workflow_whatever_they_send(envelope: str, has_id: bool) -> None:
    key_is_own = not has_id and envelope != "s3"
    good = GOOD_S3 if envelope == "s3" else GOOD

    @examples(25)
    @given(st.lists(strangers(envelope), min_size=2, max_size=5, unique_by=body_of))
    @example([Stranger('{"id":"o-1","total":1e400}'), Stranger('{"id":"o-1","id":"o-2"}'), Stranger("")])
    @example([Stranger("{}", {"dead_letter_key": {"stringValue": "sqs:m-good", "dataType": "String"}})])
    @example([Stranger("{}", {"dead_letter_key": {"stringValue": "o-1", "dataType": "String"}})])
    @example([Stranger("{}", {"dead_letter_key": {"binaryValue": "AP8=", "dataType": "Binary"}})])
    def check(hostile: list[Stranger]) -> None:
        among = [hostile_record(f"m-{number}", stranger) for number, stranger in enumerate(hostile, 1)]
        records = [*among, hostile_record("m-good", Stranger(good))]
        around, answer, seen = deliver(
            records, EVENT_ENVELOPE=envelope, EVENT_ID="id" if has_id and envelope != "s3" else None
        )
        seen.check()
        dead = list(around.buried)
        for number, stranger in enumerate(hostile, 1):
            message_id, reason = f"m-{number}", seen.reasons.get(f"m-{number}")
            inputs = around.inputs_of(message_id)
            assert {each["body"] for each in inputs} <= {stranger.body}
            if {"itemIdentifier": message_id} in answer["batchItemFailures"]:
                assert reason == "dead-letter-does-not-fit"
                continue
            letter = next((each for each in dead if each["MessageBody"] == stranger.body), None)
            if letter is not None:
                check_letter(letter, stranger, DEAD)
                dead.remove(letter)
            elif key_is_own:
                (mine,) = inputs
                assert mine["key"].startswith("sqs:")
            else:
                assert [each["key"] for each in inputs] == event_ids(stranger.body, envelope)
        assert dead == []
        (good_input,) = around.inputs_of("m-good")
        assert (good_input["body"], good_input["attributes"]) == (good, {})
        assert "m-good" not in seen.reasons

    check()


@pytest.mark.parametrize("event_id", ["id", None], ids=["business key", "own id"])
def test_whoever_pretends_to_tell_of_an_execution_crashes_nothing(event_id: str | None) -> None:
    @examples(60)
    @given(strangers(body=_told.map(sendable)))
    @example(Stranger('["aws.states"]'))
    @example(Stranger('{"source":"aws.states","detail":7}'))
    @example(Stranger('{"source":"aws.states","detail":' + "[" * 5_000))
    def check(stranger: Stranger) -> None:
        records = [hostile_record("m-1", stranger), hostile_record("m-good", Stranger(GOOD))]
        around, answer, seen = deliver(records, EVENT_ID=event_id)
        seen.check()
        assert len(around.inputs_of("m-good")) == 1
        assert {"itemIdentifier": "m-good"} not in answer["batchItemFailures"]
        ends = len(around.inputs_of("m-1")) + len(around.buried) + len(answer["batchItemFailures"])
        assert ends == 1

    check()


@pytest.mark.parametrize(
    "given_input",
    [
        '{"key":"sqs:k","body":"{","attributes":{"a":{"DataType":5}}}',
        '{"key":"sqs:k","body":"{","attributes":{"a":{"DataType":"Binary","BinaryValue":"x"}}}',
        '{"key":"\\ud800","body":"{","attributes":{}}',
    ],
)
def test_pretended_input_that_no_message_can_carry_comes_back_alone(given_input: str) -> None:
    pretender = hostile_record("m-1", Stranger(status_event(given_input)))
    around, answer, seen = deliver([pretender, hostile_record("m-good", Stranger(GOOD))])
    seen.check_silence()
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    assert len(around.inputs_of("m-good")) == 1
    assert around.buried == []


@pytest.mark.parametrize("name", WORST)
def test_the_worst_that_is_known_harms_no_workflow(name: str) -> None:
    body = WORST[name]()
    around, answer, seen = deliver([hostile_record("m-1", Stranger(body)), hostile_record("m-good", Stranger(GOOD))])
    seen.check()
    assert answer == {"batchItemFailures": []}
    assert len(around.inputs_of("m-good")) == 1
    assert [request["MessageBody"] for request in around.buried] == ([] if around.inputs_of("m-1") else [body])
