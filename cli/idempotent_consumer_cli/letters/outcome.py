"""What became of the letters that were sent back, as the ledger and the dead-letter queue tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from idempotent_consumer.claims.row import State
from idempotent_consumer.effect import OUTCOME_UNKNOWN
from idempotent_consumer.items import Item
from idempotent_consumer_cli.foresight.pipeline import COPY, SUPERSEDED
from idempotent_consumer_cli.foresight.prospect import Fate, Foretold, LedgerState, Prospect
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.rows.tables import STATUS

_Key = TypeVar("_Key")
# What the ledger says of an event that is done.
_SETTLED = ("sent", State.COMPLETED.value)
_UNSETTLED = {State.IN_PROGRESS.value: "in progress", State.FAILED_RETRYABLE.value: "to be retried"}
# Of effects: what may end in completion.
_ATTEMPTS = (Fate.ASK, Fate.TRY, Fate.RUN, Fate.UNKNOWN, Fate.WAIT)
# Of effects: with these, and without a reason, a letter comes back of which none has begun.
_REFUSALS = (None, "claim-kept", "id-reused")

_MOVED_AGAIN = "it failed again and again: `inspect` tells why"


class Statuses(Protocol):
    """Where the ledger is asked what has become of events."""

    def statuses(self, event_ids: Iterable[str]) -> Iterator[Item]:
        """The rows of these events, with the attributes that `tables.STATUS` names at least."""


class Became(Enum):
    """What became of a letter; the worst first."""

    REFUSED = "refused again"
    PARKED = "parked"
    FAILED = "failed"
    UNDER_WAY = "still under way"
    COMPLETED = "completed"
    APPLIED = "applied"
    PUBLISHED = "published"
    NO_OP = "was a no-op"

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def is_undone(self) -> bool:
        return self in (Became.REFUSED, Became.PARKED, Became.FAILED, Became.UNDER_WAY)


@dataclass(slots=True, eq=False)
class Followed:
    """A letter that was sent. became, reason, detail: what is known so far.

    waiting: of the events that the ledger is to settle, by id, the fingerprint and what has become of them then.
    is_refusable: an event of it is expected to be refused, which only the letter's return tells. is_refused: no attempt
    is expected.
    """

    message_id: str
    event_ids: tuple[str, ...]
    digest: bytes
    waiting: dict[str, tuple[str, Became]]
    is_refusable: bool
    is_refused: bool
    became: Became = Became.UNDER_WAY
    reason: str = ""
    detail: str = ""
    settled: list[Became] = field(default_factory=list)


class Outcomes:
    """Follows letters from their sending on; it keeps ids and digests of those that are open, and no bodies.

    A foretold no-op is told as soon as it is sent: what it does leaves no trace, so its end cannot be waited for.

    tell: hears of each letter once, when it is known what became of it. has_effects: the consumer is no pipeline.
    """

    def __init__(
        self, ledger: Statuses, tell: Callable[[Followed], None] = lambda followed: None, *, has_effects: bool = False
    ) -> None:
        self._ledger = ledger
        self._tell = tell
        self._has_effects = has_effects
        self._open: dict[str, Followed] = {}
        self._by_event: dict[str, dict[str, Followed]] = {}
        self._by_digest: dict[bytes, dict[str, Followed]] = {}
        self.counts: Counter[Became] = Counter()

    @property
    def open(self) -> int:
        return len(self._open)

    def follow(self, opened: OpenedLetter, prospect: Prospect) -> None:
        """A letter that has been sent. prospect: what was foretold of it."""
        followed = Followed(
            message_id=prospect.message_id,
            event_ids=tuple(opened.event_ids),
            digest=opened.letter.digest,
            waiting={
                event.event_id: (event.fingerprint, _once_settled(event, has_effects=self._has_effects))
                for event in prospect.events
                if event.event_id is not None and _is_told_by_ledger(event)
            },
            is_refusable=any(event.fate.comes_back and not _is_told_by_ledger(event) for event in prospect.events),
            is_refused=prospect.fate is Fate.REFUSE,
        )
        self._open[followed.message_id] = followed
        self._by_digest.setdefault(followed.digest, {})[followed.message_id] = followed
        for event_id in followed.waiting:
            self._by_event.setdefault(event_id, {})[followed.message_id] = followed
        self._settle_if_done(followed)

    def come_back(self, letter: Letter) -> None:
        """A letter that came into the dead-letter queue after the replay began, perhaps one of those sent."""
        same = self._by_digest.get(letter.digest)
        if same:
            followed = next(iter(same.values()))
            followed.reason = letter.reason or "moved by SQS"
            followed.detail = letter.detail or ("" if letter.reason else _MOVED_AGAIN)
            self._settle(followed, self._on_return(followed, letter))

    def ask(self) -> None:
        """Ask the ledger for what is open."""
        for row in self._ledger.statuses(self._by_event):
            event_id, status, fingerprint = (row.get(name, {}).get("S", "") for name in STATUS)
            for followed in list(self._by_event.get(event_id, {}).values()):
                if status in _SETTLED:
                    self._hear(followed, event_id, fingerprint)
                else:
                    followed.reason = _UNSETTLED.get(status, "")

    def give_up(self) -> None:
        """What is open stays so."""
        for followed in list(self._open.values()):
            self._settle(followed, Became.UNDER_WAY)

    def _on_return(self, followed: Followed, letter: Letter) -> Became:
        """What became of a letter that is in the dead-letter queue again."""
        if not self._has_effects or followed.is_refused or letter.reason in _REFUSALS:
            return Became.REFUSED
        return Became.PARKED if letter.reason == OUTCOME_UNKNOWN else Became.FAILED

    def _hear(self, followed: Followed, event_id: str, fingerprint: str) -> None:
        expected, became = followed.waiting[event_id]
        if fingerprint == expected:
            del followed.waiting[event_id]
            _take_out(self._by_event, event_id, followed)
            followed.settled.append(became)
            self._settle_if_done(followed)

    def _settle_if_done(self, followed: Followed) -> None:
        if not followed.waiting and not followed.is_refusable:
            self._settle(followed, next((became for became in Became if became in followed.settled), Became.NO_OP))

    def _settle(self, followed: Followed, became: Became) -> None:
        followed.became = became
        if not became.is_undone:
            followed.reason = ""
        del self._open[followed.message_id]
        _take_out(self._by_digest, followed.digest, followed)
        for event_id in followed.waiting:
            _take_out(self._by_event, event_id, followed)
        self.counts[became] += 1
        self._tell(followed)


def _take_out(index: dict[_Key, dict[str, Followed]], key: _Key, followed: Followed) -> None:
    del index[key][followed.message_id]
    if not index[key]:
        del index[key]


def _is_told_by_ledger(event: Foretold) -> bool:
    if event.fate is Fate.NO_OP:
        return event.reason in (COPY, SUPERSEDED)
    return event.state in (LedgerState.NEVER_SEEN, LedgerState.BLOCKED, LedgerState.PENDING) or event.fate in _ATTEMPTS


def _once_settled(event: Foretold, *, has_effects: bool) -> Became:
    if event.fate is Fate.NO_OP:
        return Became.NO_OP
    if has_effects:
        return Became.COMPLETED
    return Became.PUBLISHED if event.state is LedgerState.PENDING else Became.APPLIED
