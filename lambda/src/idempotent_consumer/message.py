"""The SQS messages of one invocation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What no message may hold: all but XML 1.0 characters (Amazon SQS API Reference, SendMessage).
REFUSED_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class UnexpectedInvocation(ValueError):
    """The function was invoked with something other than SQS records; nothing of it is processed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One SQS message as Lambda hands it over.

    group: the message group on a FIFO queue, else None (a standard queue may carry a group id, for fairness only).
    sent_ms: when it was first sent, epoch milliseconds. attributes: the producer's, in Lambda's spelling.
    """

    id: str
    body: str
    group: str | None
    sent_ms: int
    receive_count: int
    attributes: Mapping[str, Any]
    receipt_handle: str = ""


def read_messages(invocation: Any) -> list[Message]:
    """Raises UnexpectedInvocation, naming what came instead of SQS records."""
    records = invocation.get("Records") if isinstance(invocation, dict) else None
    if not isinstance(records, list):
        hint = " (a ReceiveMessage answer?)" if isinstance(invocation, dict) and "Messages" in invocation else ""
        raise UnexpectedInvocation(f"expected the Records of an SQS event source mapping{hint}")
    return [_message(record) for record in records]


def _message(record: Any) -> Message:
    if not isinstance(record, dict) or "messageId" not in record or "body" not in record:
        raise UnexpectedInvocation(f"expected an SQS record with messageId and body, got {_describe(record)}")
    system = record.get("attributes") or {}
    is_fifo = str(record.get("eventSourceARN", "")).endswith(".fifo")
    return Message(
        id=record["messageId"],
        body=record["body"],
        group=system.get("MessageGroupId") if is_fifo else None,
        sent_ms=int(system.get("SentTimestamp", 0)),
        receive_count=int(system.get("ApproximateReceiveCount", 1)),
        attributes=record.get("messageAttributes") or {},
        receipt_handle=record.get("receiptHandle", ""),
    )


def _describe(record: Any) -> str:
    if not isinstance(record, dict):
        return type(record).__name__
    if "MessageId" in record and "Body" in record:
        return "a message in the spelling of the SQS API (MessageId, Body)"
    source = record.get("eventSource") or record.get("EventSource")
    return f"a record of {source}" if source else "a record without a source"
