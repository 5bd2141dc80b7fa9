"""A notification as it is stored in the ledger row and published from there."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.items import number_text
from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.message import REFUSED_CHARACTER
from idempotent_consumer.plan import Notification
from idempotent_consumer.rejection import Rejected

MAX_ATTRIBUTES = 10
# Amazon SQS Developer Guide, "Message attribute data types": 38 digits, as DynamoDB, but from 1e-128.
_MIN_NUMBER_EXPONENT = -128
# Amazon SQS Developer Guide, "Amazon SQS message metadata"; a queue that hears the topic takes no others.
_ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws\.|amazon\.))(?!.{257})[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class RenderedNotification:
    """attributes: name to (SNS data type, text). group, deduplication_id: used where the topic is FIFO.

    further: the event's other notifications, which are published after it.
    """

    message: str
    attributes: Mapping[str, tuple[str, str]]
    group: str
    deduplication_id: str
    further: tuple["RenderedNotification", ...] = ()

    @property
    def all(self) -> tuple["RenderedNotification", ...]:
        """All notifications of the event, in order."""
        return (self, *self.further) if self.further else (self,)

    @property
    def size(self) -> int:
        """The bytes of all notifications of the event, as SNS counts them."""
        return sum([each.own_size for each in self.all])

    @property
    def own_size(self) -> int:
        """The bytes of this one: message, attribute names, types and values."""
        parts = [self.message]
        for name, (kind, text) in self.attributes.items():
            parts += name, kind, text
        return len("".join(parts).encode())

    def to_text(self) -> str:
        """As stored in the ledger row."""
        return dumps(self._to_json())

    def _to_json(self) -> dict[str, Any]:
        if self.further:
            # Not as one with more behind it: code of before this could be stored would publish that one alone.
            return {"notifications": [replace(each, further=())._to_json() for each in self.all]}
        return {
            "message": self.message,
            "attributes": self.attributes,
            "group": self.group,
            "deduplication_id": self.deduplication_id,
        }

    @classmethod
    def from_text(cls, text: str) -> "RenderedNotification":
        """Raises ValueError on a text that to_text() did not write."""
        try:
            stored = loads(text)
            first, *further = map(_read, stored.get("notifications", [stored]))
            return replace(first, further=tuple(further))
        except (Rejected, AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise ValueError("not a stored notification") from None


def render(
    notifications: Sequence[Notification], event: Event, consumer_name: str, max_bytes: int
) -> RenderedNotification | None:
    """Render for SNS and check all that SNS would refuse for ever, since a committed event must be publishable.

    None without a notification. Raises Rejected: `notification-empty`, `notification-characters`,
    `notification-attribute`, `notification-too-large`, `notification-value`, `number-out-of-range`.
    """
    if not notifications:
        return None
    if len(notifications) == 1:
        return _render(notifications[0], None, event, consumer_name, max_bytes)
    first, *further = (
        _render(notification, number, event, consumer_name, max_bytes)
        for number, notification in enumerate(notifications, 1)
    )
    return replace(first, further=tuple(further))


def _render(
    notification: Notification, number: int | None, event: Event, consumer_name: str, max_bytes: int
) -> RenderedNotification:
    """number: among several, from 1."""
    # Of a FIFO topic's messages with one deduplication id only the first is delivered: two consumers of one event
    # that publish to one topic need two. SNS takes 128 characters, an event id can have 2,048.
    digest = hashlib.sha256(f"{consumer_name}\0{event.id}".encode()).hexdigest()
    attributes = {**notification.attributes, "event_id": event.id}
    if number is not None:
        attributes["notification_number"] = number
    rendered = RenderedNotification(
        message=_message(notification.message),
        attributes=_attributes(attributes),
        group=event.group or digest,
        deduplication_id=digest if number in (None, 1) else f"{digest}-{number}",
    )
    size = rendered.own_size
    if size > max_bytes:
        raise Rejected("notification-too-large", f"message and attributes are {size} bytes, over {max_bytes}")
    return rendered


def _read(stored: Mapping[str, Any]) -> RenderedNotification:
    attributes = {name: _pair(value) for name, value in stored["attributes"].items()}
    message, group, deduplication_id = stored["message"], stored["group"], stored["deduplication_id"]
    texts = [message, group, deduplication_id, *(text for pair in attributes.values() for text in pair)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("not a stored notification")
    return RenderedNotification(message, attributes, group, deduplication_id)


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list):
        raise TypeError("not a pair")
    kind, text = value
    return kind, text


def _message(message: Any) -> str:
    if message is None or message == "":
        raise Rejected("notification-empty", "SNS refuses an empty message")
    try:
        text = message if isinstance(message, str) else dumps(message)
    except (TypeError, ValueError) as error:
        raise Rejected("notification-value", f"the message: {error}") from None
    if REFUSED_CHARACTER.search(text):
        raise Rejected("notification-characters", "the message holds a character that SQS subscribers cannot take")
    return text


def _attributes(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    rendered = {name: _attribute(name, value) for name, value in values.items() if value is not None}
    if len(rendered) > MAX_ATTRIBUTES:
        raise Rejected(
            "notification-attribute",
            f"{len(rendered)} attributes: with over ten a raw SQS subscriber gets nothing",
        )
    return rendered


def _attribute(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(name, str) or not _ATTRIBUTE_NAME.fullmatch(name):
        raise Rejected("notification-attribute", "a name that SNS does not take: letters, digits, _, -, dots inside")
    kind, text = _typed_text(name, value)
    if not text or REFUSED_CHARACTER.search(text):
        raise Rejected("notification-attribute", f"{name}: empty, or with a character that SNS cannot take")
    return kind, text


def _typed_text(name: str, value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return "String", value
    if isinstance(value, bool):
        return "String", "true" if value else "false"
    if isinstance(value, int | Decimal):
        number_text(value, name)
        if value and Decimal(value).adjusted() < _MIN_NUMBER_EXPONENT:
            raise Rejected("number-out-of-range", f"{name}: SQS subscribers take no number closer to zero than 1e-128")
        return "Number", dumps(value)
    if isinstance(value, list) and all(item is None or isinstance(item, str | int | Decimal) for item in value):
        return "String.Array", dumps(value)
    raise Rejected("notification-attribute", f"{name}: neither a string, a number, a boolean nor a list of them")
