"""The messages that a producer would send for the events of a test."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from idempotent_consumer.envelope import open_envelope
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.expression import Expression
from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope, Settings
from idempotent_consumer.testing.problem import CannotTry


@dataclass(frozen=True, slots=True)
class Labelled:
    """An event, or why the body holds none. label: its id; for what has none, or another event's, one of the kit's."""

    label: str
    event: Event | Rejected


@dataclass(frozen=True, slots=True)
class Message:
    """One SQS message with its events. group: its message group on a FIFO queue."""

    id: str
    body: str
    group: str | None
    events: tuple[Labelled, ...]

    @property
    def labels(self) -> list[str]:
        return [each.label for each in self.events]

    def again(self, number: int) -> "Message":
        """The same sent once more: another message to SQS."""
        return replace(self, id=f"{self.id}-copy-{number}")


def to_messages(events: Sequence[Any], settings: Settings, group: Expression | None) -> list[Message]:
    """One message for each event that is not the same as an earlier one.

    events: JSON objects, bodies as text, or Events.
    Raises CannotTry where none of them is an event to the consumer.
    """
    if isinstance(events, str | Mapping) or not isinstance(events, Sequence) or not events:
        raise CannotTry("events is a list of one or more events, as the producer sends them")
    used: Counter[str] = Counter()
    messages: dict[Any, Message] = {}
    for index, event in enumerate(events):
        body = _body(event, settings.envelope, f"events[{index}]")
        found = _read(body, settings)
        identity = tuple(each if isinstance(each, Rejected) else (each.id, each.fingerprint) for each in found)
        if identity in messages:
            continue
        labelled = tuple(Labelled(_label(each, index, used), each) for each in found)
        if not labelled:  # S3's test event
            labelled = (Labelled(f"events[{index}]", Rejected("no-event")),)
        name = _group(body, group, settings) if group else None
        in_group = tuple(
            replace(each, event=replace(each.event, group=name)) if isinstance(each.event, Event) else each
            for each in labelled
        )
        messages[identity] = Message(f"message-{index + 1}", body, name, in_group)
    _refuse_none([each for message in messages.values() for each in message.events], settings)
    return list(messages.values())


def one_by_one(message: Message) -> list[Message]:
    """A message for each of its events: a body of S3 may hold several."""
    if len(message.events) == 1:
        return [message]
    records = loads(message.body)["Records"]
    return [
        replace(message, id=f"{message.id}-{index}", body=dumps({"Records": [record]}), events=(labelled,))
        for index, (record, labelled) in enumerate(zip(records, message.events, strict=True))
    ]


def _body(event: Any, envelope: Envelope, where: str) -> str:
    if isinstance(event, str):
        return event
    content = event.data if isinstance(event, Event) else event
    try:
        if envelope is Envelope.SNS and content.get("Type") != "Notification":
            content = {"Type": "Notification", "Message": dumps(content)}
        if envelope is Envelope.S3 and "s3" in content:
            content = {"Records": [content]}
        return dumps(content)
    except (AttributeError, TypeError, ValueError) as error:
        raise CannotTry(f"{where} is no JSON object, as a producer sends it: {error}") from None


def _read(body: str, settings: Settings) -> list[Event | Rejected]:
    try:
        return [_identify(data, settings) for data in open_envelope(body, settings.envelope)]
    except Rejected as rejected:
        return [rejected]
    except RecursionError:
        return [Rejected("nested-too-deep")]


def _identify(data: dict[str, Any] | Rejected, settings: Settings) -> Event | Rejected:
    if isinstance(data, Rejected):
        return data
    try:
        return Event(read_event_id(data, settings.event_id), data, fingerprint(data, settings.fingerprint))
    except Rejected as rejected:
        return rejected


def _label(event: Event | Rejected, index: int, used: Counter[str]) -> str:
    name = event.id if isinstance(event, Event) else f"events[{index}]"
    used[name] += 1
    return name if used[name] == 1 else f"{name} ({used[name]})"


def _group(body: str, group: Expression, settings: Settings) -> str:
    for event in _read(body, settings):
        value = group.search(event.data) if isinstance(event, Event) else None
        if value is not None:
            return str(value)
    return "all"


def _refuse_none(labelled: Sequence[Labelled], settings: Settings) -> None:
    reasons = [each.event for each in labelled if isinstance(each.event, Rejected)]
    if len(reasons) < len(labelled):
        return
    raise CannotTry(
        f"none of the events has an id that the consumer finds ({reasons[0].reason}: {reasons[0].detail}). Pass "
        f"event_id= and envelope= as event.id and event.envelope are set for the module; they are "
        f"{settings.event_id.text!r} and {settings.envelope.value!r} now"
    )
