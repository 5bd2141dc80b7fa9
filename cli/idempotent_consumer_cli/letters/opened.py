"""From a dead letter to the events in it, as the consumer reads them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from idempotent_consumer.envelope import Data, open_envelope
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.json_text import loads
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope, Settings
from idempotent_consumer.workflow.settings import WorkflowSettings
from idempotent_consumer_cli.letters.letter import Letter

AnySettings = Settings | OperationSettings | WorkflowSettings

TOO_DEEP = Rejected("nested-too-deep", "the body is nested too deep to be processed")


@dataclass(frozen=True, slots=True)
class Opened:
    """event: None where there is none, for the reason in `rejected`; with an event that is why its consumer refuses it
    unseen. happened_ms: the envelope's own time, epoch milliseconds, where it has one.
    """

    event: Event | None
    rejected: Rejected | None = None
    happened_ms: int | None = None

    def first_ms(self, letter: Letter) -> int:
        """The earliest that is known of it. letter: that it came in."""
        return letter.sent_ms if self.happened_ms is None else min(letter.sent_ms, self.happened_ms)


@dataclass(frozen=True, slots=True)
class OpenedLetter:
    """A letter with its events in order: none in S3's test event, one in most letters."""

    letter: Letter
    events: tuple[Opened, ...]

    @property
    def event_ids(self) -> list[str]:
        return [opened.event.id for opened in self.events if opened.event is not None]


def open_letter(letter: Letter, settings: AnySettings, own_id: str = "", *, is_fifo: bool) -> OpenedLetter:
    """own_id: the id of its event where the settings have no path to one. is_fifo: the letter's group counts, which on
    a standard queue it does not.
    """
    try:
        events = open_envelope(letter.body, settings.envelope)
    except Rejected as rejected:
        return OpenedLetter(letter, (Opened(None, rejected),))
    except RecursionError:
        return OpenedLetter(letter, (Opened(None, TOO_DEEP),))
    group = letter.group if is_fifo else None
    return OpenedLetter(letter, tuple(_open(data, letter, settings, own_id, group) for data in events))


def _open(data: Data | Rejected, letter: Letter, settings: AnySettings, own_id: str, group: str | None) -> Opened:
    try:
        if isinstance(data, Rejected):
            raise data
        happened_ms = _happened_ms(data, letter, settings.envelope)
        event_id = own_id if settings.event_id is None else read_event_id(data, settings.event_id)
        return Opened(Event(event_id, data, fingerprint(data, settings.fingerprint), group), happened_ms=happened_ms)
    except Rejected as rejected:
        return Opened(None, rejected)
    except RecursionError:
        return Opened(None, TOO_DEEP)
    except Exception as error:  # the consumer fails here too, whenever it is tried
        return Opened(None, Rejected("fault", type(error).__name__))


def _happened_ms(data: Data, letter: Letter, envelope: Envelope) -> int | None:
    """The envelope's time, which a redrive does not change; None where there is none that can be read."""
    if envelope is Envelope.EVENTBRIDGE:
        return _epoch_ms(data.get("time"))
    if envelope is Envelope.S3:
        return _epoch_ms(data.get("eventTime"))
    if envelope is Envelope.SNS:
        return _epoch_ms(loads(letter.body).get("Timestamp"))
    return None


def _epoch_ms(text: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
