"""One dead letter: a message in the spelling of the SQS API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.dead_letter import DETAIL, REASON

Attributes = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Letter:
    """attributes: name to DataType and StringValue or, as bytes, BinaryValue. system: what SQS tells of the message."""

    message_id: str
    body: str
    attributes: Attributes
    system: Mapping[str, str]
    receipt_handle: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether SQS moved it, after it was received too often: then a reason on it is of an earlier stay."""
        return "DeadLetterQueueSourceArn" in self.system

    @property
    def reason(self) -> str | None:
        """Why the consumer sent it here; None where SQS moved it."""
        return None if self.is_moved else self._text(REASON)

    @property
    def detail(self) -> str | None:
        return None if self.is_moved else self._text(DETAIL)

    @property
    def group(self) -> str | None:
        """The message group; a standard queue may carry one too, for fairness only."""
        return self.system.get("MessageGroupId")

    @property
    def sent_ms(self) -> int:
        """SentTimestamp, epoch milliseconds: of the first send, unless the consumer sent the letter, or it is FIFO."""
        return int(self.system.get("SentTimestamp", 0))

    @property
    def receive_count(self) -> int:
        """How often it was received, in its queue and here."""
        return int(self.system.get("ApproximateReceiveCount", 0))

    @property
    def producers_attributes(self) -> dict[str, Mapping[str, Any]]:
        """The attributes without those that the consumer added."""
        return {name: value for name, value in self.attributes.items() if name not in (REASON, DETAIL)}

    @property
    def digest(self) -> bytes:
        """Tells the body from others."""
        return hashlib.sha256(self.body.encode()).digest()

    def _text(self, name: str) -> str | None:
        text = self.attributes.get(name, {}).get("StringValue")
        return None if text is None else str(text)


def read_letter(message: Mapping[str, Any]) -> Letter:
    """A message of ReceiveMessage."""
    return Letter(
        message_id=message["MessageId"],
        body=message["Body"],
        attributes={name: _sendable(value) for name, value in message.get("MessageAttributes", {}).items()},
        system=message.get("Attributes", {}),
        receipt_handle=message["ReceiptHandle"],
    )


def _sendable(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without the empty lists that an answer has and a request may not have."""
    kind = "BinaryValue" if value.get("BinaryValue") is not None else "StringValue"
    return {"DataType": value["DataType"], kind: value.get(kind, "")}
