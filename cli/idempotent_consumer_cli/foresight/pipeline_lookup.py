"""Foretells what a replay does to letters, from what the ledger and the business table hold."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from idempotent_consumer.commit import prepare
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import WriteMode
from idempotent_consumer.write import Write
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.foresight.pipeline import (
    SUPERSEDED,
    by_business_row,
    by_earlier_letter,
    by_ledger_row,
    by_own_code,
    by_plan,
    compare,
    owner,
)
from idempotent_consumer_cli.foresight.prospect import Difference, Fate, Foretold, LedgerState, Prospect, no_event
from idempotent_consumer_cli.letters.letter import Groups, Letter
from idempotent_consumer_cli.letters.opened import TOO_DEEP, Opened, OpenedLetter, open_letter
from idempotent_consumer_cli.rows.tables import Tables

_NO_ROW = Difference(remark="no row is stored where this event would write")
_OWN_CODE = Difference(remark="the consumer's own code plans its rows, so they are not compared")


@dataclass(slots=True)
class _Work:
    """One event of a letter, and what is known of it so far. write: what it would write."""

    opened: Opened
    foretold: Foretold | None = None
    write: Write | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """What an earlier letter of this run will have stored."""

    event_id: str
    fingerprint: str
    version: AttributeValue | None

    def row(self, consumer: AttributeValue) -> Item:
        row: Item = {
            "event_id": {"S": self.event_id},
            "event_fingerprint": {"S": self.fingerprint},
            "event_consumer": consumer,
        }
        return row if self.version is None else {**row, "event_version": self.version}


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the letters so far will have done; in the first maps, what one does of which it is open whether it is sent.

    settled: fingerprint by event id. written: by the write's key.
    """

    settled: ChainMap[str, str]
    written: ChainMap[Hashable, _Written]


class Lookup:
    """Foretells letters page by page, in the order in which they would be sent.

    It remembers what the letters before will do: of two with one event only the first applies. compares: read the
    row that an event conflicts with, and say what differs.
    """

    def __init__(self, tables: Tables, consumer: Consumer, *, compares: bool = False) -> None:
        self._tables = tables
        self._compares = compares
        self._settings = consumer.pipeline
        self._planner = declarative_planner(self._settings) if consumer.plans_by_settings else None
        self._is_fifo = consumer.is_fifo
        self._groups = Groups(is_fifo=consumer.is_fifo)
        self._settled: dict[str, str] = {}
        self._written: dict[Hashable, _Written] = {}

    def foretell(
        self,
        page: Sequence[Letter],
        now_ms: int,
        takes: Callable[[OpenedLetter, int], bool] = lambda opened, now_ms: True,
        leaves: Callable[[Prospect], bool] = lambda prospect: False,
    ) -> list[tuple[OpenedLetter, Prospect]]:
        """The chosen letters of a page, and what will happen to them.

        now_ms: on SQS's clock. takes: whether a letter is chosen at this time. leaves: whether it would stay where
        it is.

        On FIFO an event is taken for blocked and never tried where the ledger does not know it, SQS moved its letter,
        and an earlier letter of its group was read before: that is inferred, since a blocked event leaves no trace.
        """
        behind = self._groups.behind(page)
        opened_page = [open_letter(letter, self._settings, is_fifo=self._is_fifo) for letter in page]
        chosen = [opened for opened in opened_page if takes(opened, now_ms)]
        works = [[_Work(event) for event in opened.events] for opened in chosen]
        stored = self._look_up([work for of_letter in works for work in of_letter], now_ms)
        foretold = []
        for opened, of_letter in zip(chosen, works, strict=True):
            memory = _Memory(ChainMap({}, self._settled), ChainMap({}, self._written))
            events = [self._foretell(work, stored, memory) for work in of_letter]
            is_blocked = opened.letter.reason is None and opened.letter.message_id in behind
            prospect = Prospect(
                opened.letter.message_id,
                tuple(
                    self._finish(event, work.opened, opened.letter, now_ms, is_blocked=is_blocked)
                    for event, work in zip(events, of_letter, strict=True)
                ),
            )
            if not leaves(prospect):
                self._settled.update(memory.settled.maps[0])
                self._written.update(memory.written.maps[0])
            foretold.append((opened, prospect))
        return foretold

    def _look_up(self, works: Sequence[_Work], now_ms: int) -> Mapping[Hashable, Item]:
        """Ask the ledger, plan what it does not know, and read whose the rows are that this would write."""
        of_event: dict[str, list[tuple[_Work, Event]]] = {}
        for work in works:
            if work.opened.event is not None:
                of_event.setdefault(work.opened.event.id, []).append((work, work.opened.event))
            elif work.opened.rejected is not None:
                work.foretold = no_event(work.opened.rejected)
        for rows in self._tables.ledger_rows(of_event):
            for event_id, row in rows.items():
                for work, event in of_event[event_id]:
                    work.foretold = by_ledger_row(row, event)
        for work, event in (pair for pairs in of_event.values() for pair in pairs):
            if work.foretold is None or work.foretold.state is LedgerState.CONFLICT:
                planned = self._plan(event, now_ms)
                if isinstance(planned, Write):
                    work.write = planned
                else:
                    work.foretold = work.foretold or planned
        return self._tables.identities(work.write for work in works if work.write is not None and work.foretold is None)

    def _plan(self, event: Event, now_ms: int) -> Write | Foretold:
        if self._planner is None:
            return by_own_code(event)
        try:
            plan = self._planner(event)
            # The id of the message that a replay will make has the same length.
            (write,) = prepare(event, plan, "0" * 36, now_ms, self._settings).writes
        except Rejected as rejected:
            return by_plan(event, rejected)
        except RecursionError:
            return by_plan(event, TOO_DEEP)
        except Exception as error:  # the consumer fails here too, whenever it is tried
            return by_plan(event, Rejected("fault", type(error).__name__))
        return write

    def _foretell(self, work: _Work, stored: Mapping[Hashable, Item], memory: _Memory) -> Foretold:
        event, foretold = work.opened.event, work.foretold
        if event is not None and (foretold is None or foretold.fate is Fate.PUBLISH):
            foretold = self._foretell_change(event, work, stored, memory)
        assert foretold is not None
        if foretold.reason == "id-reused" and self._compares:
            return replace(foretold, difference=self._compare(work.write))
        return foretold

    def _foretell_change(self, event: Event, work: _Work, stored: Mapping[Hashable, Item], memory: _Memory) -> Foretold:
        """An event that would change something, unless an earlier letter does."""
        if event.id in memory.settled:
            return by_earlier_letter(event, memory.settled[event.id], work.foretold)
        foretold = work.foretold or self._foretell_write(event, work.write, stored, memory)
        if foretold.fate in (Fate.APPLY, Fate.PUBLISH) or foretold.reason == SUPERSEDED:
            memory.settled[event.id] = event.fingerprint
        return foretold

    def _foretell_write(
        self, event: Event, write: Write | None, stored: Mapping[Hashable, Item], memory: _Memory
    ) -> Foretold:
        assert write is not None
        earlier = memory.written.get(write.key)
        row = earlier.row(write.consumer) if earlier else stored.get(write.key)
        foretold = by_business_row(event, write, row)
        if foretold.fate is Fate.APPLY:
            memory.written[write.key] = _Written(event.id, event.fingerprint, write.version)
        if foretold.reason == "row-exists" and row is not None:
            return replace(foretold, difference=owner(row))
        return foretold

    def _compare(self, write: Write | None) -> Difference:
        if write is None:
            return _OWN_CODE if self._planner is None else Difference(remark="this event cannot be planned")
        row = self._tables.row(write)
        return _NO_ROW if row is None else compare(write.action["Put"]["Item"], row)

    def _finish(self, foretold: Foretold, opened: Opened, letter: Letter, now_ms: int, *, is_blocked: bool) -> Foretold:
        """With its age, and what follows from it."""
        first_ms = opened.first_ms(letter)
        is_unknown = foretold.state is LedgerState.NEVER_SEEN
        # An inserted row, and a newer one, still tell that the event was applied; an upserted row may be another's now.
        is_repeatable = foretold.fate is Fate.UNKNOWN or (
            foretold.fate is Fate.APPLY and self._settings.write_mode is WriteMode.UPSERT
        )
        is_old = now_ms - first_ms > self._settings.ttl_window_seconds * 1000
        return replace(
            foretold,
            state=LedgerState.BLOCKED if is_unknown and is_blocked else foretold.state,
            first_ms=first_ms,
            is_beyond_window=is_unknown and is_repeatable and is_old,
        )
