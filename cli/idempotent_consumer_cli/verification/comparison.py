"""Ledger and business table beside each other. What was read of them is kept on disk: tables are larger than memory."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from idempotent_consumer.commit import is_pending
from idempotent_consumer.items import Item
from idempotent_consumer.settings import Settings
from idempotent_consumer_cli.rows.stored import whole_number

# The clocks of the function and of the machine that compares are never quite alike.
_CLOCKS_MS = 300_000


@dataclass
class Counts:
    """Rows that were read, and of these: expired (past their ttl) and pending ones of the ledger; of the business
    table those that are not judged: of others (another consumer, or no event id), ageless (they do not say when they
    were written) and old (their ledger row may have expired).
    """

    ledger: int = 0
    expired: int = 0
    pending: int = 0
    business: int = 0
    others: int = 0
    ageless: int = 0
    old: int = 0

    @property
    def due(self) -> int:
        """Ledger rows that must have a business row, where each event writes one."""
        return self.ledger - self.expired

    @property
    def young(self) -> int:
        """Business rows that must have a ledger row."""
        return self.business - self.others - self.ageless - self.old


@dataclass(frozen=True)
class BusinessRow:
    """A business row that must have a ledger row."""

    event_id: str
    key: dict[str, str]
    committed_ms: int


@dataclass
class Judge:
    """Says what each row must have on the other side, and counts. now_ms: epoch milliseconds."""

    settings: Settings
    now_ms: int
    counts: Counts = field(default_factory=Counts)

    @property
    def ledger_attributes(self) -> list[str]:
        return ["event_id", "status", "ttl"]

    @property
    def business_attributes(self) -> list[str]:
        keys = [key.name for key in (self.settings.hash_key, self.settings.range_key) if key is not None]
        return ["event_id", "event_consumer", "event_committed_at", *keys]

    def may_be_forgotten(self, committed_ms: int, now_ms: int) -> bool:
        """Whether the ledger row of an event that was committed then may have expired by `now_ms`."""
        return committed_ms <= now_ms - self.settings.ttl_window_seconds * 1000 + _CLOCKS_MS

    def is_due(self, row: Item) -> bool:
        """Whether a ledger row has not expired. DynamoDB deletes it up to days later, and counts in seconds.

        It deletes no row whose ttl is no number.
        """
        ttl = whole_number(row, "ttl")
        return ttl is None or ttl > self.now_ms // 1000

    def count_ledger(self, row: Item) -> bool:
        """Count a ledger row, and say whether it is due."""
        is_due = self.is_due(row)
        self.counts.ledger += 1
        self.counts.expired += not is_due
        self.counts.pending += is_pending(row)
        return is_due

    def is_own(self, row: Item) -> bool:
        """Whether this consumer wrote a business row."""
        return "S" in row.get("event_id", {}) and row.get("event_consumer", {}).get("S") == self.settings.consumer_name

    def count_business(self, row: Item) -> BusinessRow | None:
        """Count a business row; None if it need not have a ledger row."""
        self.counts.business += 1
        committed_ms = whole_number(row, "event_committed_at")
        if not self.is_own(row):
            self.counts.others += 1
        elif committed_ms is None:
            self.counts.ageless += 1
        elif self.may_be_forgotten(committed_ms, self.now_ms):
            self.counts.old += 1
        else:
            return BusinessRow(row["event_id"]["S"], self._key(row), committed_ms)
        return None

    def _key(self, row: Item) -> dict[str, str]:
        keys = [key.name for key in (self.settings.hash_key, self.settings.range_key) if key is not None]
        return {name: str(value) for name in keys for value in row.get(name, {}).values()}


class Comparison:
    """The ledger has to be added first: what is committed later is then only a suspect, never a disagreement yet."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        # A database without a name is a temporary file, which goes with the connection.
        self._rows = sqlite3.connect("", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "CREATE TABLE ledger (digest BLOB, event_id TEXT, is_due INTEGER)",
            "CREATE TABLE business (digest BLOB)",
            "CREATE TABLE young (digest BLOB, event_id TEXT, key TEXT, committed_ms INTEGER)",
            "BEGIN",
        ):
            self._rows.execute(statement)

    def add_ledger(self, rows: Iterable[Item]) -> None:
        self._rows.executemany(
            "INSERT INTO ledger VALUES (?, ?, ?)",
            [(_digest(row), row["event_id"]["S"], self._judge.count_ledger(row)) for row in rows],
        )

    def add_business(self, rows: Iterable[Item]) -> None:
        judged = [(row, self._judge.count_business(row)) for row in rows]
        own = [(row, young) for row, young in judged if self._judge.is_own(row)]
        self._rows.executemany("INSERT INTO business VALUES (?)", [(_digest(row),) for row, _ in own])
        self._rows.executemany(
            "INSERT INTO young VALUES (?, ?, ?, ?)",
            [
                (_digest(row), young.event_id, json.dumps(young.key), young.committed_ms)
                for row, young in own
                if young is not None
            ],
        )

    def without_business_row(self) -> Iterator[str]:
        """The events that are due and had no business row, as far as was read."""
        self._rows.execute("CREATE INDEX IF NOT EXISTS by_business ON business (digest)")
        for (event_id,) in self._rows.execute(
            "SELECT event_id FROM ledger WHERE is_due AND digest NOT IN (SELECT digest FROM business)"
        ):
            yield event_id

    def without_ledger_row(self) -> Iterator[BusinessRow]:
        """The business rows that are young and had no ledger row, as far as was read."""
        self._rows.execute("CREATE INDEX IF NOT EXISTS by_ledger ON ledger (digest)")
        for event_id, key, committed_ms in self._rows.execute(
            "SELECT event_id, key, committed_ms FROM young WHERE digest NOT IN (SELECT digest FROM ledger)"
        ):
            yield BusinessRow(event_id, json.loads(key), committed_ms)


def _digest(row: Item) -> bytes:
    return hashlib.blake2b(row["event_id"]["S"].encode(), digest_size=16).digest()
