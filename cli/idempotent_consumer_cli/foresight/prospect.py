"""What the ledger knows of an event, and what a replay of its letter will do: the values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from idempotent_consumer.claims.row import Row
from idempotent_consumer.rejection import Rejected
from idempotent_consumer_cli.consumer.executions import Execution
from idempotent_consumer_cli.rows.claim import Claim


class _Coded(Enum):
    """The value is for people, the code for programs."""

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")


class LedgerState(_Coded):
    """What the ledger knows of an event; the worst first."""

    CONFLICT = "conflict"
    UNREADABLE = "unreadable"
    NO_EVENT = "no event id"
    # Of operations; the first, of workflows too.
    PARKED = "parked"
    STALE = "lease over"
    FAILED = "failed"
    # Of workflows.
    ENDED = "execution ended"
    RELEASED = "released"
    NEVER_SEEN = "never seen"
    BLOCKED = "blocked, never tried"
    PENDING = "pending"
    # Of operations; the first, of workflows too.
    IN_PROGRESS = "in progress"
    TO_RETRY = "to be retried"
    COMPLETED = "completed"
    SENT = "sent"


class Fate(_Coded):
    """What a replay will do; the worst first."""

    REFUSE = "will be refused again"
    # Of operations: what their effect does is never foretold.
    PARK = "will be parked"
    FAIL = "will fail"
    # Of workflows: whether their effect succeeds is never foretold.
    KEEP = "will come back"
    UNKNOWN = "unknown"
    # Of operations.
    ASK = "will ask the provider"
    TRY = "will try"
    WAIT = "will wait"
    # Of workflows.
    RUN = "will run the effect"
    APPLY = "will apply"
    PUBLISH = "will only publish"
    NO_OP = "is a no-op"

    @property
    def comes_back(self) -> bool:
        """Whether the letter comes straight back to the dead-letter queue."""
        return self in (Fate.REFUSE, Fate.PARK, Fate.FAIL, Fate.KEEP)


@dataclass(frozen=True, slots=True)
class Difference:
    """What stands against an event.

    attributes: name to the stored value and the event's, as text, where they differ. owner: the event and the consumer
    that the stored row is of, None where it names none. remark: why nothing is compared.
    """

    attributes: Mapping[str, tuple[str, str]] | None = None
    owner: tuple[str | None, str | None] | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Foretold:
    """One event of a letter.

    first_ms: the earliest that is known of it, epoch milliseconds. is_beyond_window: the ledger may have forgotten that
    it was applied, or will soon, and nothing else would keep it from being applied again. row: an operation's. claim: a
    workflow's. execution: that owns it, where it has to be asked.
    """

    event_id: str | None
    state: LedgerState
    fate: Fate
    reason: str = ""
    detail: str = ""
    difference: Difference | None = None
    fingerprint: str = ""
    first_ms: int | None = None
    is_beyond_window: bool = False
    row: Row | None = None
    claim: Claim | None = None
    execution: Execution | None = None


@dataclass(frozen=True, slots=True)
class Prospect:
    """One letter; events: none in S3's test event. stays: why it cannot be sent, or would be sent in vain."""

    message_id: str
    events: tuple[Foretold, ...]
    stays: str = ""

    @property
    def state(self) -> LedgerState:
        return _worst(LedgerState, [event.state for event in self.events], LedgerState.NO_EVENT)

    @property
    def fate(self) -> Fate:
        return _worst(Fate, [event.fate for event in self.events], Fate.NO_OP)

    @property
    def decisive(self) -> Foretold | None:
        """The event that the letter's fate is of."""
        fate = self.fate
        return next((event for event in self.events if event.fate is fate), None)

    @property
    def is_beyond_window(self) -> bool:
        return any(event.is_beyond_window for event in self.events)


_Member = TypeVar("_Member", bound=Enum)


def _worst(kind: type[_Member], members: Sequence[_Member], default: _Member) -> _Member:
    return next((member for member in kind if member in members), default)


def no_event(rejected: Rejected) -> Foretold:
    """A letter, or a record in it, that holds no event with an id."""
    return Foretold(None, LedgerState.NO_EVENT, Fate.REFUSE, rejected.reason, rejected.detail)
