"""Foretells what a replay does to the letters of an operation, from what its ledger holds."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from idempotent_consumer.items import Item
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.foresight import Fate, Foretold, LedgerState, Prospect, no_event
from idempotent_consumer_cli.groups import Groups
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.opened import Opened, OpenedLetter, open_letter
from idempotent_consumer_cli.operation_foresight import by_earlier_letter, by_operation_row, never_seen
from idempotent_consumer_cli.operation_row import ATTRIBUTES
from idempotent_consumer_cli.single_reads import rows_of
from idempotent_consumer_cli.tables import STATUS

# After these the letter's event is another's business: of two letters with one event the first sets it going.
_SETS_GOING = (Fate.TRY, Fate.ASK, Fate.WAIT)


class OperationTable:
    """Consistent reads of an operation's ledger, without the results. dynamodb: a boto3 client.

    Each method raises what a call to DynamoDB raises, and CommandError.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def rows(self, event_ids: Iterable[str]) -> dict[str, Item]:
        """The rows of these events, by id."""
        return {row["event_id"]["S"]: row for row in self._read(event_ids, ATTRIBUTES)}

    def statuses(self, event_ids: Iterable[str]) -> Iterator[Item]:
        """What `outcome.Outcomes` asks for."""
        return self._read(event_ids, STATUS)

    def _read(self, event_ids: Iterable[str], attributes: Sequence[str]) -> Iterator[Item]:
        keys: list[Item] = [{"event_id": {"S": event_id}} for event_id in dict.fromkeys(event_ids)]
        return rows_of(self._dynamodb, self._table, keys, attributes)


class OperationLookup:
    """As `lookup.Lookup`, for the letters of an operation."""

    def __init__(self, table: OperationTable, settings: OperationSettings, *, is_fifo: bool) -> None:
        self._table = table
        self._settings = settings
        self._is_fifo = is_fifo
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
        """The chosen letters of a page, and what will happen to them; see `lookup.Lookup.foretell`."""
        behind = self._groups.behind(page)
        opened_page = [open_letter(letter, self._settings, is_fifo=self._is_fifo) for letter in page]
        chosen = [opened for opened in opened_page if takes(opened, now_ms)]
        rows = self._table.rows(event_id for opened in chosen for event_id in opened.event_ids)
        # Rows are stamped by the workers' clocks, and SQS tells its time in whole seconds.
        rows_now_ms = clock.now_ms()
        foretold = []
        for opened in chosen:
            letter, going = opened.letter, ChainMap[str, str]({}, self._going)
            is_blocked = letter.reason is None and letter.message_id in behind
            events = [self._foretell(event, rows, going, rows_now_ms) for event in opened.events]
            prospect = Prospect(
                letter.message_id,
                tuple(
                    self._finish(event, opened_event.first_ms(letter), now_ms, is_blocked=is_blocked)
                    for event, opened_event in zip(events, opened.events, strict=True)
                ),
            )
            if not leaves(prospect):
                self._going.update(going.maps[0])
            foretold.append((opened, prospect))
        return foretold

    def _foretell(self, opened: Opened, rows: Mapping[str, Item], going: ChainMap[str, str], now_ms: int) -> Foretold:
        event = opened.event
        if event is None:
            assert opened.rejected is not None
            return no_event(opened.rejected)
        item = rows.get(event.id)
        known = never_seen(event) if item is None else by_operation_row(item, event, now_ms, self._settings)
        if known.fate not in _SETS_GOING:
            return known
        if event.id in going:
            return by_earlier_letter(event, going[event.id], known)
        going[event.id] = event.fingerprint
        return known

    def _finish(self, foretold: Foretold, first_ms: int, now_ms: int, *, is_blocked: bool) -> Foretold:
        """With its age, and what follows from it."""
        is_unknown = foretold.state is LedgerState.NEVER_SEEN
        # A row that was completed goes after the ttl window, and nothing else would keep the effect from running again.
        is_old = now_ms - first_ms > self._settings.ttl_window_seconds * 1000
        return replace(
            foretold,
            state=LedgerState.BLOCKED if is_unknown and is_blocked else foretold.state,
            first_ms=first_ms,
            is_beyond_window=is_unknown and is_old,
        )
