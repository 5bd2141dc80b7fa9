"""Finds the events that ledger and business table disagree on, in both directions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, TypeVar

from idempotent_consumer.items import Item
from idempotent_consumer.settings import Settings, WriteMode
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import SHIPPED_HANDLER, Consumer
from idempotent_consumer_cli.rows.single_reads import rows_of
from idempotent_consumer_cli.verification.comparison import BusinessRow, Comparison, Judge
from idempotent_consumer_cli.verification.scanning import ReadRate, Table, all_pages, random_pages

_PAGE = 100
# A sample reads at most so many rows for each that it is to check: the others may not be judged.
_ROWS_A_CHECK = 10
_SPARE_SEGMENTS = 100
_RECENT_MS = 60_000
_T = TypeVar("_T")

KeyOf = Callable[[str], Item]
Follow = Callable[[int], None]


class Missing(Enum):
    """What an event lacks."""

    BUSINESS_ROW = "business row"
    LEDGER_ROW = "ledger row"


@dataclass(frozen=True)
class Disagreement:
    """key: of the business row, where it is there."""

    event_id: str
    missing: Missing
    key: dict[str, str] | None = None


@dataclass(frozen=True)
class Tables:
    ledger: Table
    business: Table


def why_not_demanded(consumer: Consumer) -> str | None:
    """Why a ledger row need not have a business row here; None where it must have one."""
    mode = consumer.pipeline.write_mode
    if not consumer.plans_by_settings:
        return f"the function's handler is not {SHIPPED_HANDLER}, and an event of your own code may write no row"
    if mode is WriteMode.UPSERT:
        return "with write_mode upsert a later event overwrites the row of an earlier one"
    if mode is WriteMode.NEWER:
        return "with write_mode newer a later event overwrites the row of an earlier one, and a superseded one has none"
    return None


def key_of_events(settings: Settings) -> KeyOf | None:
    """The key of an event's business row by its id, None where the key does not follow from the id."""
    hash_key = settings.hash_key
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", hash_key.name) is not None
    names = {json.dumps(hash_key.name)} | ({hash_key.name} if is_plain else set())
    if settings.item.text != "@" or settings.event_id.text not in names or settings.range_key is not None:
        return None
    return lambda event_id: {hash_key.name: {hash_key.kind: event_id}}


class Verifier:
    """demands_rows: whether each ledger row must have a business row. key_of: None where keys do not follow from ids.

    All methods raise what a call to DynamoDB raises.
    """

    def __init__(
        self, tables: Tables, judge: Judge, rate: ReadRate, *, demands_rows: bool, key_of: KeyOf | None
    ) -> None:
        self._tables = tables
        self._judge = judge
        self._rate = rate
        self._demands_rows = demands_rows
        self._key_of = key_of
        self._comparison = Comparison(judge)

    def read_ledger(self, segments: int, follow: Follow) -> None:
        """Read the whole ledger; to be done first. follow: hears how many rows have been read."""
        with all_pages(self._tables.ledger, segments, self._rate) as pages:
            for rows in pages:
                self._comparison.add_ledger(rows)
                follow(self._judge.counts.ledger)

    def read_business(self, segments: int, follow: Follow) -> None:
        """Read the whole business table."""
        with all_pages(self._tables.business, segments, self._rate) as pages:
            for rows in pages:
                self._comparison.add_business(rows)
                follow(self._judge.counts.business)

    def compare(self) -> Iterator[Disagreement]:
        """What was read beside each other; each suspect is looked up before it is called a disagreement."""
        if self._demands_rows:
            for event_ids in _pages(self._comparison.without_business_row()):
                yield from self._without_business_row(event_ids)
        for rows in _pages(self._comparison.without_ledger_row()):
            yield from self._without_ledger_row(rows)

    def sample_ledger(self, size: int, follow: Follow) -> Iterator[Disagreement]:
        """Check about so many ledger rows for their business row, where their keys are known. follow: as above."""
        counts = self._judge.counts
        for rows in random_pages(self._tables.ledger, min(size, _PAGE), size + _SPARE_SEGMENTS, self._rate):
            event_ids = [row["event_id"]["S"] for row in rows if self._judge.count_ledger(row)]
            yield from self._without_business_row(event_ids)
            follow(counts.due)
            if counts.due >= size or counts.ledger >= size * _ROWS_A_CHECK:
                return

    def sample_business(self, size: int, follow: Follow) -> Iterator[Disagreement]:
        """Check about so many business rows for their ledger row."""
        counts = self._judge.counts
        for rows in random_pages(self._tables.business, min(size, _PAGE), size + _SPARE_SEGMENTS, self._rate):
            young = [judged for row in rows if (judged := self._judge.count_business(row)) is not None]
            yield from self._without_ledger_row(young)
            follow(counts.young)
            if counts.young >= size or counts.business >= size * _ROWS_A_CHECK:
                return

    def _without_business_row(self, event_ids: Sequence[str]) -> Iterator[Disagreement]:
        found = self._with_business_row(event_ids)
        missing = [event_id for event_id in event_ids if event_id not in found]
        still_due = {row["event_id"]["S"] for row in self._ledger_rows(missing) if self._judge.is_due(row)}
        return (Disagreement(event_id, Missing.BUSINESS_ROW) for event_id in missing if event_id in still_due)

    def _with_business_row(self, event_ids: Sequence[str]) -> set[str]:
        if self._key_of is None:
            return set()
        table = self._tables.business
        keys = [self._key_of(event_id) for event_id in event_ids]
        rows = rows_of(table.dynamodb, table.name, keys, table.attributes)
        return {row["event_id"]["S"] for row in rows if self._judge.is_own(row)}

    def _without_ledger_row(self, rows: Sequence[BusinessRow]) -> Iterator[Disagreement]:
        missing = self._unknown_to_ledger(rows)
        # A scan may see the business row of a transaction an instant before its ledger row shows.
        if any(row.committed_ms > self._judge.now_ms - _RECENT_MS for row in missing):
            time.sleep(1)
            missing = self._unknown_to_ledger(missing)
        # What was young when the run began may have expired, and been deleted, since.
        now_ms = clock.now_ms()
        return (
            Disagreement(row.event_id, Missing.LEDGER_ROW, row.key)
            for row in missing
            if not self._judge.may_be_forgotten(row.committed_ms, now_ms)
        )

    def _unknown_to_ledger(self, rows: Sequence[BusinessRow]) -> list[BusinessRow]:
        known = {row["event_id"]["S"] for row in self._ledger_rows([row.event_id for row in rows])}
        return [row for row in rows if row.event_id not in known]

    def _ledger_rows(self, event_ids: Iterable[str]) -> Iterator[Item]:
        table = self._tables.ledger
        keys: list[Any] = [{"event_id": {"S": event_id}} for event_id in dict.fromkeys(event_ids)]
        return rows_of(table.dynamodb, table.name, keys, table.attributes)


def _pages(rows: Iterable[_T]) -> Iterator[list[_T]]:
    rows = iter(rows)
    while page := list(islice(rows, _PAGE)):
        yield page
