"""Sends letters back, and follows what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from idempotent_consumer_cli import pace
from idempotent_consumer_cli.consumer import Consumer
from idempotent_consumer_cli.dropped import Sent, read_pages, sent_before
from idempotent_consumer_cli.durations import spoken
from idempotent_consumer_cli.foresight import Fate, Prospect
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.letters import MOST_IN_FLIGHT, DeadLetters
from idempotent_consumer_cli.lines import (
    count,
    document,
    first_ms,
    foretell,
    in_order,
    listed,
    name,
    name_of,
    outcome_document,
)
from idempotent_consumer_cli.lookup import Lookup
from idempotent_consumer_cli.opened import OpenedLetter, open_letter
from idempotent_consumer_cli.outcome import Became, Followed, Outcomes
from idempotent_consumer_cli.screen import Bar, Screen
from idempotent_consumer_cli.selection import Selection
from idempotent_consumer_cli.sending import Sender
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.tables import Tables

_WOULD_BE_REFUSED = "would be refused again"
_BEYOND_WINDOW = "may have been applied before the ledger forgot it (--beyond-window sends it)"
_NOT_SENT = "could not be sent"
# What is listed of those that were refused again.
_MOST_LISTED = 100
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 3.0


@dataclass(frozen=True)
class Policy:
    """See the options of `replay`."""

    skip_refused: bool = False
    beyond_window: bool = False
    dry_run: bool = False
    is_quiet: bool = False

    def why_left(self, prospect: Prospect) -> str | None:
        """Why a letter is left where it is; None where it is sent."""
        if prospect.is_beyond_window and not self.beyond_window:
            return _BEYOND_WINDOW
        if prospect.fate is Fate.REFUSE and self.skip_refused:
            return _WOULD_BE_REFUSED
        return None


class Source(Protocol):
    """Where letters come from. total: how many there are, roughly; None where that is not known."""

    @property
    def total(self) -> int | None: ...

    def pages(self) -> Iterator[list[Letter]]: ...

    def settle(self, message_ids: Iterable[str]) -> None:
        """These have been sent."""


class FromQueue:
    """The dead-letter queue: what has been sent is deleted. page: letters received together."""

    def __init__(self, dead: DeadLetters, page: int, *, is_patient: bool) -> None:
        self._dead = dead
        self._page = page
        self._is_patient = is_patient

    @property
    def total(self) -> int | None:
        return self._dead.depth.total

    def pages(self) -> Iterator[list[Letter]]:
        return self._dead.pages(self._page, is_patient=self._is_patient)

    def settle(self, message_ids: Iterable[str]) -> None:
        self._dead.remove(message_ids)


class FromFile:
    """A file that `drop` wrote: what has been sent is noted beside it, and not sent again. sent: None for a dry run."""

    total = None

    def __init__(self, file: Path, consumer_name: str, sent: Sent | None) -> None:
        self._file = file
        self._consumer_name = consumer_name
        self._sent = sent

    def pages(self) -> Iterator[list[Letter]]:
        before = self._sent.ids if self._sent is not None else sent_before(self._file)
        for page in read_pages(self._file, self._consumer_name):
            unsent = [letter for letter in page if letter.message_id not in before]
            if unsent:
                yield unsent

    def settle(self, message_ids: Iterable[str]) -> None:
        if self._sent is not None:
            self._sent.add(message_ids)


class Replay:
    """One run. read, chosen, sent: letters so far."""

    def __init__(
        self, session: Session, consumer: Consumer, screen: Screen, selection: Selection, policy: Policy
    ) -> None:
        tables = Tables(session.dynamodb, consumer.settings)
        self._consumer = consumer
        self._screen = screen
        self._selection = selection
        self._policy = policy
        self._lookup = Lookup(tables, consumer)
        self._outcomes = Outcomes(tables, self._tell)
        self._is_waiting = False
        self._fates: Counter[Fate] = Counter()
        self._left: Counter[str] = Counter()
        self._refused: list[str] = []
        self._remarks: list[str] = []
        self.read = 0
        self.sent = 0

    @property
    def chosen(self) -> int:
        return self._fates.total() + self._left.total()

    def come_back(self, letter: Letter) -> None:
        """A letter that came into the dead-letter queue after the run began."""
        self._outcomes.come_back(letter)

    def run(self, source: Source, dead: DeadLetters, sender: Sender, *, is_followed: bool) -> None:
        """Send all chosen letters. is_followed: what becomes of them will be asked."""
        what = "Looking" if self._policy.dry_run else "Replaying"
        with self._screen.progress(what, source.total) as bar:
            for page in source.pages():
                sendable = self._foretell(page, dead.now_ms())
                if not self._policy.dry_run and sendable:
                    dead.wait_for_newcomers()
                    self._send(sendable, source, sender, is_followed, bar)
                self.read += len(page)
                self._show_progress(bar, source)
"""
"""
