"""From a message to the events in it, each with its id and fingerprint, or with the verdict that it is no event."""

from typing import Protocol

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.delivery import Delivery, Reading, Work
from idempotent_consumer.envelope import Data, open_envelope
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.expression import Expression
from idempotent_consumer.message import Message
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope
from idempotent_consumer.settlement import fault


class EventSettings(Protocol):
    """Where the event is in a message, and its id and fingerprint in the event."""

    @property
    def envelope(self) -> Envelope: ...

    @property
    def event_id(self) -> Expression | None: ...

    @property
    def fingerprint(self) -> Expression: ...


def open_message(message: Message, settings: EventSettings, own_id: str | None = None) -> Delivery:
    """A message with its events. What cannot be read is rejected; what meets a fault of our own comes back.

    own_id: the id of its event where the settings have no path to one.
    """
    try:
        events = open_envelope(message.body, settings.envelope)
    except (Rejected, RecursionError) as error:
        return Delivery(message, [Work(message, None, rejected(error))])
    except Exception as error:
        return Delivery(message, [Work(message, None, fault(error, message))])
    if not events:
        return Delivery(message, [Work(message, None, Verdict(Outcome.IGNORED))])
    return Delivery(message, [_identify(message, data, settings, own_id) for data in events])


def rejected(error: Rejected | RecursionError) -> Verdict:
    """The verdict on an event that can never succeed."""
    if isinstance(error, Rejected):
        return Verdict(Outcome.REJECTED, str(error.reason), str(error.detail))
    return Verdict(Outcome.REJECTED, "nested-too-deep", "the body is nested too deep to be processed")


def _identify(message: Message, data: Data | Rejected, settings: EventSettings, own_id: str | None) -> Work:
    try:
        if isinstance(data, Rejected):
            raise data
        path = settings.event_id
        event_id = own_id if path is None else read_event_id(data, path)
        assert event_id is not None
        event = Event(event_id, data, fingerprint(data, settings.fingerprint), message.group)
    except (Rejected, RecursionError) as error:
        return Work(message, None, rejected(error))
    except Exception as error:
        return Work(message, None, fault(error, message))
    # Received before: most likely the ledger knows it, and a read is cheaper than a transaction that is refused.
    return Work(message, event, reading=Reading.HELPFUL if message.receive_count > 1 else Reading.NONE)
