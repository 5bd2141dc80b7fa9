from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from idempotent_consumer_cli.verification import scanning
from idempotent_consumer_cli.verification.scanning import ReadRate, Table, all_pages, random_pages
from tests.cli.support import denied


class Rows:
    """A table of numbered rows that answers Scan; each segment holds every TotalSegments-th."""

    def __init__(self, rows: int, page: int = 10) -> None:
        self.rows = rows
        self.page = page
        self.requests: list[dict[str, Any]] = []
        self.fails_at: tuple[int, BaseException] | None = None

    def scan(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if self.fails_at is not None and request["Segment"] == self.fails_at[0]:
            raise self.fails_at[1]
        numbers = list(range(request["Segment"], self.rows, request["TotalSegments"]))
        start = request.get("ExclusiveStartKey", {}).get("n", -1)
        page = [number for number in numbers if number > start][: min(self.page, request.get("Limit", self.page))]
        answer: dict[str, Any] = {"Items": [{"n": number} for number in page], "ScannedCount": len(page)}
        if page and page[-1] != numbers[-1]:
            answer["LastEvaluatedKey"] = {"n": page[-1]}
        return answer

    def table(self, known: int | None = None) -> Table:
        return Table(self, "orders", ["n"], known)


class Stop(threading.Event):
    """Remembers how long was to be waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return False


def numbers(pages: Iterator[list[Any]]) -> list[int]:
    return [row["n"] for page in pages for row in page]


def is_reading() -> bool:
    return any("_read_segment" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize("segments", [1, 4, 16])
def test_each_row_is_read_once_whatever_the_segments(segments: int) -> None:
    rows = Rows(333)
    with all_pages(rows.table(), segments, ReadRate()) as pages:
        assert sorted(numbers(pages)) == list(range(333))
    assert {request["TotalSegments"] for request in rows.requests} == {segments}
    assert all(request["ConsistentRead"] for request in rows.requests)


def test_an_empty_table_has_no_pages_with_rows() -> None:
    with all_pages(Rows(0).table(), 4, ReadRate()) as pages:
        assert numbers(pages) == []


def test_an_error_of_one_segment_is_raised_where_the_pages_are_used() -> None:
    rows = Rows(100)
    rows.fails_at = (2, denied("Scan"))
    with pytest.raises(Exception, match="AccessDenied"), all_pages(rows.table(), 4, ReadRate()) as pages:
        numbers(pages)
    assert not is_reading()


def test_a_reader_that_leaves_early_leaves_no_thread_behind() -> None:
    rows = Rows(100_000)
    with all_pages(rows.table(), 8, ReadRate()) as pages:
        next(pages)
    assert not is_reading()
    assert len(rows.requests) < 100


def test_a_call_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_FAREWELL_SECONDS", 0.1)
    answered = threading.Event()

    class Hanging(Rows):
        def scan(self, **request: Any) -> dict[str, Any]:
            if request["Segment"]:
                answered.wait(30)
            return super().scan(**request)

    with all_pages(Hanging(100).table(), 2, ReadRate()) as pages:
        next(pages)
    assert is_reading()
    answered.set()


def test_no_more_pages_are_read_than_are_used_and_wait() -> None:
    rows = Rows(100_000)
    with all_pages(rows.table(), 4, ReadRate()) as pages:
        for _ in range(20):
            next(pages)
        # Twice the segments wait, and each thread holds one.
        assert len(rows.requests) <= 20 + 8 + 4


def test_a_rate_spreads_rows_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotent_consumer_cli.verification.scanning.time.monotonic", lambda: 1000.0)
    stop, rate = Stop(), ReadRate(100)
    for rows in (50, 50, 200):
        rate.keep(rows, stop)
    assert stop.waits == pytest.approx([0.5, 1.0, 3.0])


def test_time_that_has_passed_is_no_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.0, 1000.0, 1000.0])
    monkeypatch.setattr("idempotent_consumer_cli.verification.scanning.time.monotonic", lambda: next(times))
    stop, rate = Stop(), ReadRate(10)
    rate.keep(10, stop)
    rate.keep(10, stop)
    assert stop.waits == pytest.approx([1.0, 1.0])


def test_without_a_rate_nobody_waits() -> None:
    stop = Stop()
    ReadRate().keep(10**9, stop)
    assert stop.waits == []


def test_with_a_rate_no_page_is_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadRate, "keep", lambda self, rows, stop: None)
    rows = Rows(100, page=1000)
    with all_pages(rows.table(), 4, ReadRate(20)) as pages:
        assert sorted(numbers(pages)) == list(range(100))
    assert {request["Limit"] for request in rows.requests} == {5}


def test_random_pages_come_from_all_over_the_table() -> None:
    rows = Rows(10_000)
    sample = numbers(random_pages(rows.table(known=10_000), 100, 50, ReadRate()))
    assert {request["TotalSegments"] for request in rows.requests} == {1000}
    assert len(sample) == len(set(sample)) == 500
    assert len({request["Segment"] for request in rows.requests}) == 50


@pytest.mark.parametrize(("known", "total"), [(None, 1), (5, 1), (10**9, 1_000_000)])
def test_the_segments_of_a_sample_stay_within_what_dynamodb_takes(known: int | None, total: int) -> None:
    rows = Rows(30)
    next(random_pages(rows.table(known), 5, 1, ReadRate()))
    assert rows.requests[0]["TotalSegments"] == total
    assert rows.requests[0]["Limit"] == 5


def test_with_enough_segments_a_sample_is_the_whole_table() -> None:
    rows = Rows(1234)
    assert sorted(numbers(random_pages(rows.table(known=1234), 7, 10_000, ReadRate()))) == list(range(1234))


def test_a_sample_begins_elsewhere_each_time() -> None:
    rows = Rows(10_000)
    for _ in range(20):
        next(random_pages(rows.table(known=10_000), 5, 5, ReadRate()))
    assert len({request["Segment"] for request in rows.requests}) > 10


def test_a_sample_keeps_the_rate_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    monkeypatch.setattr(ReadRate, "keep", lambda self, rows, stop: waits.append(rows))
    list(random_pages(Rows(100).table(known=100), 100, 100, ReadRate(5)))
    assert sum(waits) == 100
