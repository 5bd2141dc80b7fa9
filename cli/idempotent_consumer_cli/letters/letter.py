"""One dead letter: a message in the spelling of the SQS API."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.dead_letter import DETAIL, REASON
from idempotent_consumer.workflow.input import KEY_ATTRIBUTE
from idempotent_consumer.workflow.settings import MESSAGE_ID_KEY

Attributes = Mapping[str, Mapping[str, Any]]

# Of workflows: the ARN of the execution that has failed.
EXECUTION = "dead_letter_execution"
# Amazon SQS Developer Guide, "Amazon SQS message metadata".
MOST_ATTRIBUTES = 10


@dataclass(frozen=True, slots=True)
class Letter:
    """attributes: name to DataType and StringValue or, as bytes, BinaryValue. system: what SQS tells of the message.

    received: what was received, where this is a message that was found inside of it, or it got a key. is_of_claim: of a
    workflow, it had its key when it was received: an execution was at it, or a replay.
    """

    message_id: str
    body: str
    attributes: Attributes
    system: Mapping[str, str]
    receipt_handle: str = ""
    received: Letter | None = None
    is_of_claim: bool = False

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
    def execution(self) -> str | None:
        """Of a workflow: the execution that has sent it here."""
        return None if self.is_moved else self._text(EXECUTION)

    @property
    def key(self) -> str | None:
        """Of a workflow: the key that it was claimed by; a replay keeps it."""
        return self._text(KEY_ATTRIBUTE)

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
        """The attributes without those that say why it is here. A workflow's key stays: it tells what is replayed."""
        return {name: value for name, value in self.attributes.items() if name not in (REASON, DETAIL, EXECUTION)}

    @property
    def sendable(self) -> Letter:
        """Itself; with more attributes than a message can have what it was received in, which its consumer opens."""
        is_full = self.received is not None and len(self.producers_attributes) > MOST_ATTRIBUTES
        return self.received if self.received is not None and is_full else self

    @property
    def digest(self) -> bytes:
        """Tells the body from others; bodies that are alike, of a workflow, by the message's own key."""
        key = self.key or ""
        own = key if key.startswith(MESSAGE_ID_KEY) else ""
        return hashlib.sha256(f"{own}\n{self.body}".encode()).digest()

    def _text(self, name: str) -> str | None:
        text = self.attributes.get(name, {}).get("StringValue")
        return None if text is None else str(text)


class Groups:
    """Knows which groups had a letter so far. is_fifo: on a standard queue a group means nothing."""

    def __init__(self, *, is_fifo: bool) -> None:
        self._is_fifo = is_fifo
        self._seen: set[str] = set()

    def behind(self, page: Sequence[Letter]) -> set[str]:
        """The message ids of those of a page that stand behind an earlier letter of their group."""
        return {letter.message_id for letter in page if self._is_behind(letter)}

    def _is_behind(self, letter: Letter) -> bool:
        group = letter.group if self._is_fifo else None
        if group is None:
            return False
        is_behind = group in self._seen
        self._seen.add(group)
        return is_behind


def read_letter(message: Mapping[str, Any]) -> Letter:
    """A message of ReceiveMessage."""
    return Letter(
        message_id=message["MessageId"],
        body=message["Body"],
        attributes={name: _sendable(value) for name, value in message.get("MessageAttributes", {}).items()},
        system=message.get("Attributes", {}),
        receipt_handle=message["ReceiptHandle"],
    )


def text_attribute(text: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": text}


def from_text(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute whose bytes are base64 text. Raises KeyError, TypeError and ValueError for what is none."""
    data_type = checked_text(attribute["DataType"])
    if "BinaryValue" in attribute:
        value = base64.b64decode(checked_text(attribute["BinaryValue"]), validate=True)
        return {"DataType": data_type, "BinaryValue": value}
    return {"DataType": data_type, "StringValue": checked_text(attribute["StringValue"])}


def checked_text(value: Any) -> str:
    """Raises TypeError for what is no text, and ValueError for text that SQS cannot have."""
    if not isinstance(value, str):
        raise TypeError
    value.encode()
    return value


def _sendable(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without the empty lists that an answer has and a request may not have."""
    kind = "BinaryValue" if value.get("BinaryValue") is not None else "StringValue"
    return {"DataType": value["DataType"], kind: value.get(kind, "")}
