"""What an event does: its business writes and its notification. Pure: no clock, no network, no randomness."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings, WriteMode


@dataclass(frozen=True, slots=True)
class Put:
    """Writes one row. values: plain Python values, numbers as int or Decimal. version: compared in `newer` mode."""

    values: Mapping[str, Any]
    mode: WriteMode = WriteMode.INSERT
    version: Any = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Tells the topic. A string is sent as it is, any other message as JSON.

    attributes: SNS message attributes; None leaves one out. `event_id` is added to each notification.
    """

    message: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one event changes: the writes in one transaction, the notification after it."""

    writes: Sequence[Put] = ()
    notification: Notification | None = None


Planner = Callable[[Event], Plan]


def declarative_planner(settings: Settings) -> Planner:
    """The shipped planner: one row and one notification, both selected from the event by JMESPath."""

    def plan(event: Event) -> Plan:
        values = settings.item.search(event.data)
        if not isinstance(values, dict):
            raise Rejected("item-not-an-object", f"{settings.item.text} selects no object")
        version = settings.version.search(event.data) if settings.version else None
        write = Put(values, settings.write_mode, version)
        return Plan([write], _notification(event) if settings.topic_arn else None)

    def _notification(event: Event) -> Notification:
        attributes = {name: path.search(event.data) for name, path in settings.attributes.items()}
        return Notification(settings.message.search(event.data), attributes)

    return plan
