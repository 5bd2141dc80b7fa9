"""The pending rows of a ledger, by its index or, where there is none, by a scan."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.row import State
from idempotent_consumer.commit import is_pending, stored_notification
from idempotent_consumer.items import Item
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.pending import INDEX, PendingIndex, PendingRows
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.clock import endless
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.rows.stored import whole_number
from idempotent_consumer_cli.screen import Screen

# A clock may be ahead, and a hand may have written anything; DynamoDB takes 38 digits.
EVER_MS = 10**37
# BatchGetItem takes so many.
_PAGE = 100


class PendingSource(Protocol):
    """The pending rows of a ledger, for people. All methods raise what a call to DynamoDB raises."""

    @property
    def is_scan(self) -> bool: ...

    @property
    def for_reconciler(self) -> PendingRows: ...

    def oldest_ms(self) -> int | None:
        """When the oldest row was written, epoch milliseconds; None where there is none."""

    def count(self, latest_ms: int = EVER_MS) -> int:
        """How many rows were written until then."""

    def oldest_first(self, latest_ms: int = EVER_MS) -> Iterator[tuple[int, str]]:
        """When each was written (epoch milliseconds), and its event id."""


class IndexedRows:
    """By the ledger's index, which may still show what was settled a moment ago."""

    is_scan = False

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._pages = dynamodb.get_paginator("query")
        self._table = table
        self.for_reconciler: PendingRows = PendingIndex(dynamodb, table)

    def oldest_ms(self) -> int | None:
        return next((created_ms for created_ms, _ in self._merged(EVER_MS, 1)), None)

    def count(self, latest_ms: int = EVER_MS) -> int:
        return sum(
            page["Count"] for shard in PendingIndex.shards for page in self._query(shard, latest_ms, Select="COUNT")
        )

    def oldest_first(self, latest_ms: int = EVER_MS) -> Iterator[tuple[int, str]]:
        return self._merged(latest_ms, _PAGE)

    def _merged(self, latest_ms: int, page_size: int) -> Iterator[tuple[int, str]]:
        return heapq.merge(*(self._shard(shard, latest_ms, page_size) for shard in PendingIndex.shards))

    def _shard(self, shard: str, latest_ms: int, page_size: int) -> Iterator[tuple[int, str]]:
        for page in self._query(shard, latest_ms, PaginationConfig={"PageSize": page_size}):
            yield from map(_created, page["Items"])

    def _query(self, shard: str, latest_ms: int, **options: Any) -> Iterator[Any]:
        pages: Iterator[Any] = self._pages.paginate(
            TableName=self._table,
            IndexName=INDEX,
            KeyConditionExpression="pending_shard = :shard AND created_at <= :latest",
            ExpressionAttributeValues={":shard": {"S": shard}, ":latest": {"N": str(latest_ms)}},
            **options,
        )
        return pages


class ScannedRows:
    """By one consistent scan of the whole ledger; what it finds is kept on disk.

    follow: hears how many rows have been looked at. of_operation: the ledger is an operation's.
    """

    is_scan = True

    def __init__(
        self,
        dynamodb: Any,
        table: str,
        follow: Callable[[int], None] = lambda rows: None,
        *,
        of_operation: bool = False,
    ) -> None:
        # A database without a name is a temporary file, which goes with the connection.
        self._found = sqlite3.connect("")
        self._found.execute("CREATE TABLE pending (created_ms INTEGER, event_id TEXT)")
        seen = 0
        for page in _scan_pages(dynamodb, table, of_operation=of_operation):
            self._found.executemany("INSERT INTO pending VALUES (?, ?)", map(_created, page["Items"]))
            seen += page["ScannedCount"]
            follow(seen)
        self._found.execute("CREATE INDEX age ON pending (created_ms, event_id)")

    @property
    def for_reconciler(self) -> PendingRows:
        return _OneShard(self)

    def oldest_ms(self) -> int | None:
        ((oldest_ms,),) = self._found.execute("SELECT min(created_ms) FROM pending")
        return None if oldest_ms is None else int(oldest_ms)

    def count(self, latest_ms: int = EVER_MS) -> int:
        ((count,),) = self._found.execute("SELECT count(*) FROM pending WHERE created_ms <= ?", (_held(latest_ms),))
        return int(count)

    def oldest_first(self, latest_ms: int = EVER_MS) -> Iterator[tuple[int, str]]:
        return self._found.execute(
            "SELECT created_ms, event_id FROM pending WHERE created_ms <= ? ORDER BY created_ms, event_id",
            (_held(latest_ms),),
        )


class _OneShard:
    """What a scan has found, as a reconciler takes it. All has been read by then."""

    shards: Sequence[str] = ("all",)

    def __init__(self, rows: ScannedRows) -> None:
        self._rows = rows

    def oldest_ms(self, shard: str, budget: Budget) -> int | None:
        return self._rows.oldest_ms()

    def counts(self, shard: str, until_ms: int, budget: Budget) -> Iterator[int]:
        yield self._rows.count(until_ms)

    def pages(self, shard: str, until_ms: int, first: int, size: int, budget: Budget) -> Iterator[list[str]]:
        """An operator's run gets through all rows, so it may begin with the oldest, whatever `first` says."""
        event_ids = (event_id for _, event_id in self._rows.oldest_first(until_ms))
        while page := list(islice(event_ids, size)):
            yield page


def until_ms(now_ms: int, older_than: int) -> int:
    """When rows were written that are so many seconds old, epoch milliseconds."""
    return max(0, now_ms - older_than * 1000)


def stale_until_ms(consumer: Consumer, now_ms: int) -> int:
    """What was written until then belongs to no message in work: it is older than the visibility timeout."""
    return until_ms(now_ms, consumer.visibility_seconds)


def how_to_publish(consumer: Consumer) -> str:
    """What there is to do about events that are pending for too long."""
    reconcile = f"idempotent-consumer reconcile --name {consumer.name}"
    if consumer.pipeline.topic_arn is None:
        return f"the topic has to come back (notification.create_topic or topic_arn), then {reconcile}"
    return reconcile


@dataclass(frozen=True, slots=True)
class PendingRow:
    """One pending row. message_id: of the SQS message that it came with last. size: of its notification, in bytes.

    Both are None where the row could not be read, size alone where its notification is unreadable.
    """

    event_id: str
    created_ms: int
    message_id: str | None
    size: int | None

    def document(self, now_ms: int) -> dict[str, Any]:
        return {
            "event_id": self.event_id,
            "age_seconds": max(0, (now_ms - self.created_ms) // 1000),
            "committed_at": clock.moment(self.created_ms),
            "message_id": self.message_id,
            "notification_bytes": self.size,
        }


def open_pending(dynamodb: Any, table: str, screen: Screen, *, of_operation: bool = False) -> PendingSource:
    """The pending rows of a ledger; of_operation: of an operation's, the unfinished ones.

    Says so where it has to scan. Raises what a call to DynamoDB raises.
    """
    described = dynamodb.describe_table(TableName=table)["Table"]
    for index in described.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] == INDEX and index.get("IndexStatus") == "ACTIVE":
            return IndexedRows(dynamodb, table)
    cause = "" if of_operation else " (the reconciler is off, or new)"
    screen.note(f"{table} has no index of pending rows{cause}, so the whole table is scanned.")
    with screen.progress("Scanning the ledger", described.get("ItemCount") or None) as bar:
        return ScannedRows(dynamodb, table, bar.update, of_operation=of_operation)


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


def _scan_pages(dynamodb: Any, table: str, *, of_operation: bool) -> Iterator[Any]:
    statuses = [state.value for state in State if not state.is_final] if of_operation else ["pending"]
    values = {f":status{number}": {"S": status} for number, status in enumerate(statuses)}
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression=f"#status IN ({', '.join(values)})",
        ProjectionExpression="event_id, created_at",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues=values,
    )
    yield from pages


def _held(latest_ms: int) -> int:
    """As SQLite holds it."""
    return min(latest_ms, 2**62)


def _created(row: Item) -> tuple[int, str]:
    # A row without its time is none of the consumer's making; it is taken for old, so that nobody overlooks it.
    return whole_number(row, "created_at") or 0, row["event_id"]["S"]
