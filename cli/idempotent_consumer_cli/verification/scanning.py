"""Reads whole tables in parallel segments, or pages of them at random."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.items import Item

# Amazon DynamoDB API Reference, Scan: the most segments of a table.
_MAX_SEGMENTS = 1_000_000
# A sample takes its rows from segments of about this size, so that they come from all over the table.
_ROWS_A_SEGMENT = 10
_PATIENCE_SECONDS = 0.2
_FAREWELL_SECONDS = 2.0
_random = random.SystemRandom()


class ReadRate:
    """Holds the rows that are read down to a rate, over all threads. rows_a_second: None for no limit."""

    def __init__(self, rows_a_second: int | None = None) -> None:
        self._rows_a_second = rows_a_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    @property
    def page(self) -> int | None:
        """How many rows a call may read, so that a page is no burst of over a second."""
        return self._rows_a_second

    def keep(self, rows: int, stop: threading.Event) -> None:
        """Wait until rows that have been read are paid for, or until `stop`."""
        if self._rows_a_second is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + rows / self._rows_a_second
            seconds = self._free_at - time.monotonic()
        stop.wait(max(0.0, seconds))


@dataclass(frozen=True)
class Table:
    """A table and the attributes of it that are wanted. rows: about how many it has, None where that is not known."""

    dynamodb: Any
    name: str
    attributes: Collection[str]
    rows: int | None

    def read(self, **options: Any) -> Any:
        """One consistent page. Raises what a call to DynamoDB raises."""
        names = {f"#a{index}": name for index, name in enumerate(sorted(set(self.attributes)))}
        return self.dynamodb.scan(
            TableName=self.name,
            ConsistentRead=True,
            ProjectionExpression=", ".join(names),
            ExpressionAttributeNames=names,
            **options,
        )


def describe(dynamodb: Any, name: str, attributes: Collection[str]) -> Table:
    """Raises what a call to DynamoDB raises. DynamoDB counts a table's rows every six hours."""
    rows = dynamodb.describe_table(TableName=name)["Table"].get("ItemCount")
    return Table(dynamodb, name, attributes, rows or None)


@contextmanager
def all_pages(table: Table, segments: int, rate: ReadRate) -> Iterator[Iterator[list[Item]]]:
    """The rows of a table, page by page, read by a thread for each segment; the threads end with the block.

    A page raises what the call for it raised.
    """
    stop = threading.Event()
    # Bounded, so that the threads read no faster than the pages are used.
    pages: queue.Queue[Any] = queue.Queue(2 * segments)
    threads = [
        threading.Thread(target=_read_segment, args=(table, segment, segments, rate, pages, stop), daemon=True)
        for segment in range(segments)
    ]
    for thread in threads:
        thread.start()
    try:
        yield _until_all_end(pages, segments)
    finally:
        stop.set()
        # A call that hangs must not hold up an operator who has pressed Ctrl-C.
        give_up_at = time.monotonic() + _FAREWELL_SECONDS
        for thread in threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))


def random_pages(table: Table, size: int, most_segments: int, rate: ReadRate) -> Iterator[list[Item]]:
    """Pages of up to `size` rows from segments in random order, the whole table if they are few."""
    total = min(_MAX_SEGMENTS, max(1, (table.rows or 0) // _ROWS_A_SEGMENT))
    never = threading.Event()
    for segment in _random.sample(range(total), min(total, most_segments)):
        options: dict[str, Any] = {"Segment": segment, "TotalSegments": total, "Limit": size}
        while True:
            answer = table.read(**options)
            yield answer["Items"]
            rate.keep(answer["ScannedCount"], never)
            if "LastEvaluatedKey" not in answer:
                break
            options["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _read_segment(
    table: Table, segment: int, segments: int, rate: ReadRate, pages: queue.Queue[Any], stop: threading.Event
) -> None:
    options: dict[str, Any] = {"Segment": segment, "TotalSegments": segments}
    if rate.page is not None:
        options["Limit"] = max(1, rate.page // segments)
    try:
        while not stop.is_set():
            answer = table.read(**options)
            _put(answer["Items"], pages, stop)
            rate.keep(answer["ScannedCount"], stop)
            if "LastEvaluatedKey" not in answer:
                break
            options["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        _put(None, pages, stop)
    except Exception as error:  # it belongs to the thread that uses the pages
        _put(error, pages, stop)


def _put(what: Any, pages: queue.Queue[Any], stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            pages.put(what, timeout=_PATIENCE_SECONDS)
            return
        except queue.Full:
            continue


def _until_all_end(pages: queue.Queue[Any], segments: int) -> Iterator[list[Item]]:
    running = segments
    while running:
        page = pages.get()
        if isinstance(page, Exception):
            raise page
        if page is None:
            running -= 1
        else:
            yield page
