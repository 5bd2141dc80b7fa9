"""The pending rows of a ledger, by its index or, where there is none, by a scan."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from idempotent_consumer.aws import Budget
from idempotent_consumer.commit import is_pending, stored_notification
from idempotent_consumer.items import Item
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.pending import INDEX, PendingIndex, PendingRows
from idempotent_consumer_cli.consumer import Consumer
from idempotent_consumer_cli.screen import Screen

_EVER_MS = 10**15
# BatchGetItem takes so many.
_PAGE = 100


class NoDeadline:
    """A command has the time that it takes, where an invocation has a budget of it."""

    def get_remaining_time_in_millis(self) -> int:
        return 10**9


def endless() -> Budget:
    return Budget(NoDeadline())


class PendingSource(PendingRows, Protocol):
    """Pending rows that can be listed as well."""

    is_scan: bool

    def oldest_first(self, until_ms: int = _EVER_MS) -> Iterator[tuple[int, str]]:
        """When each was written (epoch milliseconds), and its event id."""


class IndexedRows(PendingIndex):
    """By the ledger's index, which may still show what was settled a moment ago."""

    is_scan = False

    def oldest_first(self, until_ms: int = _EVER_MS) -> Iterator[tuple[int, str]]:
        return heapq.merge(*(self._shard(shard, until_ms) for shard in self.shards))

    def _shard(self, shard: str, until_ms: int) -> Iterator[tuple[int, str]]:
        for answer in self._answers(shard, 0, until_ms):
            for row in answer["Items"]:
                yield int(row["created_at"]["N"]), row["event_id"]["S"]


class ScannedRows:
    """By one consistent scan of the whole ledger; what it finds is kept on disk.

    follow: hears how many rows have been looked at. Raises what a call to DynamoDB raises.
    """

    is_scan = True
    shards: Sequence[str] = ("scan",)

    def __init__(self, dynamodb: Any, table: str, follow: Callable[[int], None] = lambda rows: None) -> None:
        # A database without a name is a temporary file, which goes with the connection.
        self._found = sqlite3.connect("")
        self._found.execute("CREATE TABLE pending (created_ms INTEGER, event_id TEXT)")
        seen = 0
        for page in _scan_pages(dynamodb, table):
            self._found.executemany("INSERT INTO pending VALUES (?, ?)", map(_created, page["Items"]))
            seen += page["ScannedCount"]
            follow(seen)
        self._found.execute("CREATE INDEX age ON pending (created_ms)")

    def oldest_ms(self, shard: str) -> int | None:
        ((oldest,),) = self._found.execute("SELECT min(created_ms) FROM pending")
        return None if oldest is None else int(oldest)

    def counts(self, shard: str, until_ms: int) -> Iterator[int]:
        for (count,) in self._found.execute("SELECT count(*) FROM pending WHERE created_ms <= ?", (until_ms,)):
            yield count

    def pages(self, shard: str, from_ms: int, until_ms: int, size: int) -> Iterator[list[str]]:
        event_ids = (event_id for _, event_id in self._rows(from_ms, until_ms))
        while page := list(islice(event_ids, size)):
            yield page

    def oldest_first(self, until_ms: int = _EVER_MS) -> Iterator[tuple[int, str]]:
        return self._rows(0, until_ms)

    def _rows(self, from_ms: int, until_ms: int) -> Iterator[tuple[int, str]]:
        return self._found.execute(
            "SELECT created_ms, event_id FROM pending WHERE created_ms BETWEEN ? AND ? ORDER BY created_ms, event_id",
            (from_ms, until_ms),
        )


def count(rows: PendingRows, until_ms: int = _EVER_MS) -> int:
    """How many rows were written until then. Raises what a call to DynamoDB raises."""
    return sum(sum(rows.counts(shard, until_ms)) for shard in rows.shards)


def stale_until_ms(consumer: Consumer, now_ms: int) -> int:
    """What was written until then belongs to no message in work: it is older than the visibility timeout."""
    return now_ms - consumer.visibility_seconds * 1000


@dataclass(frozen=True, slots=True)
class PendingRow:
    """One pending row. message_id: of the SQS message that it came with last. size: of its notification, in bytes.

    Both are None where the row could not be read, size alone where its notification is unreadable.
    """

    event_id: str
    created_ms: int
    message_id: str | None
    size: int | None


def open_pending(dynamodb: Any, table: str, screen: Screen) -> PendingSource:
    """The pending rows of a ledger. Says so where it has to scan. Raises what a call to DynamoDB raises."""
    described = dynamodb.describe_table(TableName=table)["Table"]
    for index in described.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] == INDEX and index.get("IndexStatus") == "ACTIVE":
            return IndexedRows(dynamodb, table)
    screen.note(f"{table} has no index of its pending rows (the reconciler is off), so the whole table is scanned.")
    with screen.progress("Scanning the ledger", described.get("ItemCount") or None) as bar:
        return ScannedRows(dynamodb, table, bar.update)


@dataclass(frozen=True)
class Listed:
    """is_cut: there are more. unread: what kept rows from being read, "" if nothing did."""

    rows: list[PendingRow]
    is_cut: bool
    unread: str


def list_rows(
    ledger: Ledger, listed: Iterator[tuple[int, str]], limit: int | None, follow: Callable[[int], None]
) -> Listed:
    """Read the listed rows as they are now, `limit` at most; what is settled by now is left out.

    follow: hears how many there are so far. Raises what a call to DynamoDB raises, but for reading the rows.
    """
    rows: list[PendingRow] = []
    unread = ""
    while page := list(islice(listed, _PAGE if limit is None else min(_PAGE, limit - len(rows)))):
        found, failures = ledger.recall([event_id for _, event_id in page], endless())
        unread = next((verdict.detail for verdict in failures.values()), unread)
        for created_ms, event_id in page:
            if event_id in failures:
                rows.append(PendingRow(event_id, created_ms, None, None))
            elif (row := found.get(event_id)) is not None and is_pending(row):
                rows.append(_pending(event_id, created_ms, row))
        follow(len(rows))
    return Listed(rows, next(listed, None) is not None, unread)


def _pending(event_id: str, created_ms: int, row: Item) -> PendingRow:
    try:
        size = stored_notification(row).size
    except ValueError:
        size = None
    return PendingRow(event_id, created_ms, row.get("message_id", {}).get("S"), size)


def _scan_pages(dynamodb: Any, table: str) -> Iterator[Any]:
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="#status = :pending",
        ProjectionExpression="event_id, created_at",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":pending": {"S": "pending"}},
    )
    yield from pages


def _created(row: Item) -> tuple[int, str]:
    # A row without its time is none of the consumer's making; it is taken for old, so that nobody overlooks it.
    return int(row.get("created_at", {}).get("N", 0)), row["event_id"]["S"]
