"""What an execution is given, what it is named, and what comes back of one that has failed. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.json_text import dumps
from idempotent_consumer.message import Message
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.workflow.settings import MESSAGE_ID_KEY

# AWS Step Functions Developer Guide, "Quotas": input or output of an execution or a state, in UTF-8 bytes.
MAX_INPUT_BYTES = 262_144
# On a dead letter: the key that it was claimed by, which its message id cannot tell any more once it is replayed.
KEY_ATTRIBUTE = "dead_letter_key"


def key_of_message(message: Message) -> str:
    """The key where no path to a business key is set: the message's id, or that of the message it is a replay of."""
    kept = message.attributes.get(KEY_ATTRIBUTE, {}).get("stringValue")
    return kept if kept and kept.startswith(MESSAGE_ID_KEY) else MESSAGE_ID_KEY + message.id


def execution_name(key: str, message_id: str) -> str:
    """One name for all deliveries of one message: at most 80 characters that Step Functions takes."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}-{message_id}"


def execution_input(event: Event, message: Message) -> str:
    """The same text for each delivery of a message. Raises Rejected `input-too-large`."""
    text = dumps(
        {
            "key": event.id,
            "messageId": message.id,
            "fingerprint": event.fingerprint,
            "event": event.data,
            "body": message.body,
            "attributes": {name: _to_api(value) for name, value in message.attributes.items()},
        }
    )
    size = len(text.encode())
    if size > MAX_INPUT_BYTES:
        raise Rejected("input-too-large", f"the execution's input has {size} bytes, over {MAX_INPUT_BYTES}")
    return text


def reopened(message: Message, state_machine_arn: str) -> Message:
    """The message behind the event that tells how an execution ended, where it is one of this state machine.

    EventBridge puts it into the dead-letter queue where the execution could not (modules/workflow/failures.tf). Any
    other message is returned as it is. Raises Rejected `input-missing` where the event does not hold a starter's input.
    """
    failed = failed_execution(message.body, state_machine_arn)
    if failed is None:
        return message
    if failed.body is None:
        raise Rejected("input-missing", f"what the event holds is not the input of {failed.execution_arn}")
    attributes = {name: _to_record(value) for name, value in failed.attributes.items()}
    attributes[KEY_ATTRIBUTE] = {"dataType": "String", "stringValue": failed.key}
    return replace(message, body=failed.body, attributes=attributes)


@dataclass(frozen=True, slots=True)
class FailedExecution:
    """What EventBridge says of an execution that ended without a dead letter of its own.

    status: FAILED, TIMED_OUT or ABORTED. key, body, attributes (in the SQS API's spelling): of its input; body is None
    where the event left that out, or where no starter wrote it.
    """

    execution_arn: str
    status: str
    error: str
    key: str = ""
    body: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


def failed_execution(body: str, state_machine_arn: str) -> FailedExecution | None:
    """None for any message but such an event of this state machine."""
    if '"aws.states"' not in body:
        return None
    try:
        content = json.loads(body)
        detail = content["detail"]
        if content["source"] != "aws.states" or detail["stateMachineArn"] != state_machine_arn:
            return None
        failed = FailedExecution(str(detail["executionArn"]), str(detail["status"]), str(detail.get("error") or ""))
        return _with_input(failed, detail.get("input"))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None


def _with_input(failed: FailedExecution, text: Any) -> FailedExecution:
    try:
        given = json.loads(text)
        key, body, attributes = given["key"], given["body"], given["attributes"]
        for value in attributes.values():
            _to_api(_to_record(value))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return failed
    if not (isinstance(key, str) and isinstance(body, str)):
        return failed
    return replace(failed, key=key, body=body, attributes=attributes)


def _to_api(value: Mapping[str, Any]) -> dict[str, Any]:
    """From the shape of a Lambda record to that of the SQS API; bytes stay base64 text: Step Functions takes it so."""
    if value.get("binaryValue") is not None:
        return {"DataType": value["dataType"], "BinaryValue": value["binaryValue"]}
    return {"DataType": value["dataType"], "StringValue": value.get("stringValue", "")}


def _to_record(value: Mapping[str, Any]) -> dict[str, Any]:
    names = {"DataType": "dataType", "BinaryValue": "binaryValue", "StringValue": "stringValue"}
    return {names[name]: text for name, text in value.items()}
