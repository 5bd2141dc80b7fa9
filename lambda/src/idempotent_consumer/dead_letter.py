"""Sends a message that can never succeed to the dead-letter queue, with its reason."""

import base64
from collections.abc import Mapping
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import CALL_ERRORS, OUT_OF_TIME, Budget, failed_call
from idempotent_consumer.message import REFUSED_CHARACTER, Message

REASON = "dead_letter_reason"
DETAIL = "dead_letter_detail"

# Amazon SQS Developer Guide, "Amazon SQS message metadata" and "Amazon SQS message quotas". A queue may take up to
# 1 MiB, but one made by an older provider takes 256 KiB: beyond that the detail, which can be missed, is left out.
_MAX_ATTRIBUTES = 10
_MAX_BYTES = 262_144
_MAX_DETAIL = 1_000

# A message with ten attributes, or as large as the queue allows, has no room for a reason: SQS's redrive takes it.
_DOES_NOT_FIT = Verdict(Outcome.RETRY, "dead-letter-does-not-fit", "no room for a reason beside the message")


class DeadLetterQueue:
    """sqs: a client made by `aws.Clients`."""

    def __init__(self, sqs: Any, queue_url: str) -> None:
        self._sqs = sqs
        self._queue_url = queue_url

    def send(self, message: Message, reason: str, detail: str, budget: Budget) -> Verdict | None:
        """Copy the message with body, attributes and group; None when the copy is stored, else why it is not.

        A message can be copied twice: when the process dies before the message is deleted, or, on FIFO, when an
        earlier one of its group has to come back.
        """
        if not budget.allows_call():
            return OUT_OF_TIME
        attributes = _attributes(message, reason, detail)
        if REASON not in attributes:
            return _DOES_NOT_FIT
        request = {"QueueUrl": self._queue_url, "MessageBody": message.body, "MessageAttributes": attributes}
        if message.group is not None:
            request["MessageGroupId"] = message.group
            # The producer's id would make SQS drop, in silence, what it has seen within five minutes.
            request["MessageDeduplicationId"] = message.id
        try:
            self._sqs.send_message(**request)
        except CALL_ERRORS as error:
            failure = failed_call(error, "SendMessage")
            return _DOES_NOT_FIT if failure.reason == "refused" else failure
        return None


def _attributes(message: Message, reason: str, detail: str) -> dict[str, Any]:
    """The producer's attributes first, then as many of our two as there is room for."""
    producers = {name: value for name, value in message.attributes.items() if name not in (REASON, DETAIL)}
    attributes = {name: _to_api(value) for name, value in producers.items()}
    if len(attributes) < _MAX_ATTRIBUTES:
        attributes[REASON] = {"DataType": "String", "StringValue": reason}
    text = REFUSED_CHARACTER.sub("?", detail)[:_MAX_DETAIL]
    size = _bytes(message.body, attributes) + len(DETAIL) + len("String") + len(text.encode())
    if text and len(attributes) < _MAX_ATTRIBUTES and size <= _MAX_BYTES:
        attributes[DETAIL] = {"DataType": "String", "StringValue": text}
    return attributes


def _bytes(body: str, attributes: Mapping[str, Mapping[str, Any]]) -> int:
    """The size that SQS counts."""
    parts = (
        part if isinstance(part, bytes) else part.encode()
        for name, value in attributes.items()
        for part in (name, *value.values())
    )
    return len(body.encode()) + sum(len(part) for part in parts)


def _to_api(value: dict[str, Any]) -> dict[str, Any]:
    """From the shape of a Lambda record (binary as base64 text) to the shape of the SQS API."""
    if value.get("binaryValue") is not None:
        return {"DataType": value["dataType"], "BinaryValue": base64.b64decode(value["binaryValue"])}
    return {"DataType": value["dataType"], "StringValue": value.get("stringValue", "")}
