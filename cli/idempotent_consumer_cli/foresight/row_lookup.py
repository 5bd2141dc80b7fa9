"""Foretells what a replay does to letters of which one row for each event decides: an operation's, a workflow's."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from idempotent_consumer.event import Event
from idempotent_consumer_cli.foresight.prospect import Fate, Foretold, LedgerState, Prospect, no_event
from idempotent_consumer_cli.letters.letter import Groups, Letter
from idempotent_consumer_cli.letters.opened import Opened, OpenedLetter

# After these the letter's event is another's business: of two letters with one event the first sets it going.
_SETS_GOING = (Fate.TRY, Fate.ASK, Fate.WAIT, Fate.RUN)
_SHARES = "an earlier letter holds the same event, and decides"
_REUSES = "an earlier letter holds this event id with other content"

# What the rows say of an event.
Known = Callable[[Event], Foretold]


class Judge(Protocol):
    """What one kind of consumer knows of letters."""

    def open(self, letter: Letter) -> OpenedLetter:
        """The letter as it would be sent, with its events."""

    def read(self, opened: Sequence[OpenedLetter]) -> Known:
        """Read the rows of these letters' events. Raises what a call to AWS raises, and CommandError."""

    def has_forgotten(self, letter: Letter, first_ms: int, now_ms: int) -> bool:
        """Whether an event of the letter without a row may have had one. first_ms: the earliest known of it."""

    def will_forget(self, foretold: Foretold, now_ms: int) -> bool:
        """Whether the row that makes a no-op of an event may be gone before a replay arrives."""

    def why_stays(self, letter: Letter, events: Sequence[Foretold]) -> str:
        """See `Prospect.stays`."""


class RowLookup:
    """As `pipeline_lookup.Lookup`."""

    def __init__(self, judge: Judge, *, is_fifo: bool) -> None:
        self._judge = judge
        self._groups = Groups(is_fifo=is_fifo)
        # Fingerprint by event id, of what earlier letters set going.
        self._going: dict[str, str] = {}

    def foretell(
        self,
        page: Sequence[Letter],
        now_ms: int,
        takes: Callable[[OpenedLetter, int], bool] = lambda opened, now_ms: True,
        leaves: Callable[[Prospect], bool] = lambda prospect: False,
    ) -> list[tuple[OpenedLetter, Prospect]]:
        """The chosen letters of a page, and what will happen to them; see `pipeline_lookup.Lookup.foretell`."""
        behind = self._groups.behind(page)
        opened_page = [self._judge.open(letter) for letter in page]
        chosen = [opened for opened in opened_page if takes(opened, now_ms)]
        known = self._judge.read(chosen)
        foretold = []
        for opened in chosen:
            letter, going = opened.letter, ChainMap[str, str]({}, self._going)
            is_blocked = letter.reason is None and letter.message_id in behind
            events = tuple(
                self._finish(_foretell(event, known, going), event, letter, now_ms, is_blocked=is_blocked)
                for event in opened.events
            )
            prospect = Prospect(letter.message_id, events, self._judge.why_stays(letter, events))
            if not leaves(prospect):
                self._going.update(going.maps[0])
            foretold.append((opened, prospect))
        return foretold

    def _finish(self, foretold: Foretold, opened: Opened, letter: Letter, now_ms: int, *, is_blocked: bool) -> Foretold:
        """With its age, and what follows from it."""
        first_ms = opened.first_ms(letter)
        is_unknown = foretold.state is LedgerState.NEVER_SEEN
        is_forgotten = self._judge.has_forgotten(letter, first_ms, now_ms) if is_unknown else False
        return replace(
            foretold,
            state=LedgerState.BLOCKED if is_unknown and is_blocked else foretold.state,
            first_ms=first_ms,
            is_beyond_window=is_forgotten or self._judge.will_forget(foretold, now_ms),
        )


def _foretell(opened: Opened, known: Known, going: ChainMap[str, str]) -> Foretold:
    event = opened.event
    if event is None:
        assert opened.rejected is not None
        return no_event(opened.rejected)
    foretold = known(event)
    if opened.rejected is not None:
        rejected = opened.rejected
        return replace(foretold, fate=Fate.REFUSE, reason=rejected.reason, detail=rejected.detail)
    if foretold.fate not in _SETS_GOING:
        return foretold
    if event.id not in going:
        going[event.id] = event.fingerprint
        return foretold
    # What the first letter sets going may fail, or still run.
    if going[event.id] == event.fingerprint:
        return replace(foretold, fate=Fate.UNKNOWN, reason="", detail=_SHARES)
    return replace(foretold, fate=Fate.REFUSE, reason="id-reused", detail=_REUSES)
