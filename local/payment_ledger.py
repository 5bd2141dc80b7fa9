"""The durable part of a payment server: charges, its plan, and what it was asked, in one SQLite file.

What a method has written is on the disk when it returns, so that a killed server knows it when it starts again.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from local.payment_plan import Concurrent, Plan, read_plan

_SCHEMA = """
CREATE TABLE IF NOT EXISTS charges (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount TEXT NOT NULL, key TEXT,
  is_honoured INTEGER NOT NULL, due_ms INTEGER NOT NULL, charged_ms INTEGER
);
CREATE INDEX IF NOT EXISTS charges_key ON charges (key);
CREATE INDEX IF NOT EXISTS charges_name ON charges (name);
CREATE TABLE IF NOT EXISTS requests (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL,
  key TEXT, headers TEXT NOT NULL, body TEXT NOT NULL, outcome TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_name ON requests (name);
CREATE TABLE IF NOT EXISTS plans (id INTEGER PRIMARY KEY, text TEXT NOT NULL, after_request INTEGER NOT NULL);
"""
_CHARGE = "id, name, amount, key, charged_ms, is_honoured"


@dataclass(frozen=True)
class Charge:
    """One time that an order was paid for; at_ms is None while it is accepted and not made yet."""

    id: str
    order: str
    amount: Any
    key: str | None
    at_ms: int | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class KeyInUse(Exception):
    """Another request with this key is not finished."""


class KeyOfAnother(Exception):
    """The key has come before, with another order or amount."""


class PaymentLedger:
    """The file at `path`, created if missing. Charges that are due later are made by a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)
        self._changed = threading.Condition()
        threading.Thread(target=self._make_due_charges, daemon=True).start()

    # Charges

    def charge(
        self, order: str, amount: Any, key: str | None, *, honours_key: bool, concurrent: Concurrent, seconds: float
    ) -> tuple[Charge, bool]:
        """Accept a charge that is made after `seconds`, at once for 0; whether it is a new one.

        With a key that is honoured, the charge that has it already. Raises KeyInUse, KeyOfAnother.
        """
        with self._changed:
            known = self._honoured(key) if honours_key and key else None
            if known is not None:
                return self._again(known, order, amount, concurrent), False
            now = now_ms()
            due = now + round(seconds * 1000)
            (charge,) = self._database.execute(
                "INSERT INTO charges (name, amount, key, is_honoured, due_ms, charged_ms) VALUES (?, ?, ?, ?, ?, ?) "
                f"RETURNING {_CHARGE}",
                (order, json.dumps(amount), key, honours_key, due, now if due == now else None),
            ).fetchall()
            self._changed.notify_all()
            return _charge(charge), True

    def await_charge(self, charge: Charge) -> Charge:
        """The charge once it is made."""
        with self._changed:
            while charge.at_ms is None:
                self._changed.wait()
                (row,) = self._database.execute(f"SELECT {_CHARGE} FROM charges WHERE id = ?", (charge.id[3:],))
                charge = _charge(row)
            return charge

    def charges(self, *, order: str | None = None, key: str | None = None) -> list[Charge]:
        """Those that are made, oldest first: all, those of an order, or those that came with a key."""
        with self._changed:
            rows = self._database.execute(
                f"SELECT {_CHARGE} FROM charges WHERE charged_ms IS NOT NULL AND (? IS NULL OR name = ?) "
                "AND (? IS NULL OR key = ?) ORDER BY charged_ms, id",
                (order, order, key, key),
            ).fetchall()
        return [_charge(row) for row in rows]

    def _honoured(self, key: str) -> Charge | None:
        query = f"SELECT {_CHARGE} FROM charges WHERE key = ? AND is_honoured"
        row = self._database.execute(query, (key,)).fetchone()
        return None if row is None else _charge(row)

    def _again(self, known: Charge, order: str, amount: Any, concurrent: Concurrent) -> Charge:
        if (known.order, known.amount) != (order, amount):
            raise KeyOfAnother
        if known.at_ms is None and concurrent is Concurrent.CONFLICT:
            raise KeyInUse
        return known

    def _make_due_charges(self) -> None:
        while True:
            with self._changed:
                now = now_ms()
                self._database.execute(
                    "UPDATE charges SET charged_ms = ? WHERE charged_ms IS NULL AND due_ms <= ?", (now, now)
                )
                query = "SELECT min(due_ms) FROM charges WHERE charged_ms IS NULL"
                (due,) = self._database.execute(query).fetchone()
                self._changed.notify_all()
                self._changed.wait(None if due is None else max(due - now, 1) / 1000)

    # The plan, and what was asked

    def set_plan(self, value: Any) -> None:
        """From now on; each order starts at the first of its steps. Raises ValueError."""
        read_plan(value)
        with self._changed:
            self._database.execute(
                "INSERT OR REPLACE INTO plans SELECT 1, ?, coalesce(max(id), 0) FROM requests", (json.dumps(value),)
            )

    def note(
        self, method: str, path: str, order: str, key: str | None, headers: dict[str, str], body: str
    ) -> tuple[int, Plan, int]:
        """A request that has come: its number, the plan, and how many of this kind the order had since the plan."""
        with self._changed:
            text, after = self._database.execute("SELECT text, after_request FROM plans").fetchone() or ("{}", 0)
            (earlier,) = self._database.execute(
                "SELECT count(*) FROM requests WHERE id > ? AND name = ? AND method = ?", (after, order, method)
            ).fetchone()
            ((number,),) = self._database.execute(
                "INSERT INTO requests (at_ms, method, path, name, key, headers, body, outcome) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, 'begun') RETURNING id",
                (now_ms(), method, path, order, key, json.dumps(headers), body),
            ).fetchall()
        return number, read_plan(json.loads(text)), earlier

    def conclude(self, number: int, outcome: str) -> None:
        """Note what became of a request."""
        with self._changed:
            self._database.execute("UPDATE requests SET outcome = ? WHERE id = ?", (outcome, number))

    def requests(self) -> list[dict[str, Any]]:
        with self._changed:
            rows: Sequence[Any] = self._database.execute(
                "SELECT at_ms, method, path, name, key, headers, body, outcome FROM requests ORDER BY id"
            ).fetchall()
        names = ("at_ms", "method", "path", "order", "key", "headers", "body", "outcome")
        return [dict(zip(names, row, strict=True)) | {"headers": json.loads(row[5])} for row in rows]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _charge(row: Sequence[Any]) -> Charge:
    number, order, amount, key, at_ms, _ = row
    return Charge(f"ch-{number}", order, json.loads(amount), key, at_ms)
