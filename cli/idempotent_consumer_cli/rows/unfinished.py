"""The unfinished operations of a ledger: what is listed, and what of it needs a hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from idempotent_consumer.claims.row import Row
from idempotent_consumer.operation_settings import OperationSettings, WhenUncertain
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.foresight.operation_lookup import OperationTable
from idempotent_consumer_cli.foresight.prospect import LedgerState
from idempotent_consumer_cli.rows.operation import due_ms, readable, row_document, standing_since_ms, state_of

_PAGE = 100
# How many are read: each hundred takes a call.
MOST = 10_000
# In the order in which they are shown.
STATES = (
    LedgerState.PARKED,
    LedgerState.STALE,
    LedgerState.IN_PROGRESS,
    LedgerState.TO_RETRY,
    LedgerState.UNREADABLE,
)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One unfinished operation. row: None where no operation wrote such a row. created_ms: epoch milliseconds."""

    event_id: str
    created_ms: int
    row: Row | None

    def state(self, now_ms: int) -> LedgerState:
        return LedgerState.UNREADABLE if self.row is None else state_of(self.row, now_ms)

    def standing_since_ms(self, now_ms: int) -> int | None:
        return None if self.row is None else standing_since_ms(self.row, now_ms)

    def document(self, now_ms: int, long_ms: int) -> dict[str, Any]:
        """For programs."""
        more = {} if self.row is None else row_document(self.row)
        return {
            "event_id": self.event_id,
            "state": self.state(now_ms).code,
            "age_seconds": max(0, (now_ms - self.created_ms) // 1000),
            "created_at": clock.moment(self.created_ms),
            "overdue": self.is_overdue(now_ms, long_ms),
            **more,
        }

    def is_overdue(self, now_ms: int, long_ms: int) -> bool:
        """Whether a worker might have taken it again for so long that its message is not on the way to one."""
        due = None if self.row is None else due_ms(self.row)
        return due is not None and due < now_ms - long_ms


@dataclass
class Census:
    """Unfinished operations in sum. oldest_ms: when the oldest was first claimed. uncounted: those beyond."""

    by_state: Counter[LedgerState] = field(default_factory=Counter)
    overdue: int = 0
    oldest_ms: int | None = None
    uncounted: int = 0

    @property
    def total(self) -> int:
        return self.by_state.total() + self.uncounted

    @property
    def needs_a_hand(self) -> bool:
        return bool(self.by_state[LedgerState.PARKED] or self.by_state[LedgerState.UNREADABLE] or self.overdue)

    @property
    def counts(self) -> Mapping[str, int]:
        """By the states' codes, all of them."""
        return {state.code: self.by_state[state] for state in STATES}

    def document(self, now_ms: int) -> dict[str, Any]:
        """For programs."""
        return {
            "total": self.total,
            "by_state": self.counts,
            "overdue": self.overdue,
            "uncounted": self.uncounted,
            "oldest_age_seconds": None if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) // 1000,
        }

    def add(self, each: Unfinished, now_ms: int, long_ms: int) -> None:
        self.by_state[each.state(now_ms)] += 1
        self.overdue += each.is_overdue(now_ms, long_ms)
        self.oldest_ms = each.created_ms if self.oldest_ms is None else min(self.oldest_ms, each.created_ms)


def long_ms(settings: OperationSettings) -> int:
    """For how long a message may be hidden, once its operation can go on, before it comes back to the function."""
    hidden_ms = 1000 * max(settings.backoff.visibility_seconds, settings.backoff.max_seconds)
    return hidden_ms + (settings.settle_ms if settings.uncertain is WhenUncertain.RECONCILE else 0)


def read_unfinished(
    table: OperationTable, listed: Iterator[tuple[int, str]], follow: Callable[[int], None] = lambda read: None
) -> Iterator[Unfinished]:
    """The listed rows as they are now, `MOST` at most; what is final by now is left out.

    follow: hears how many have been read. Raises what a call to DynamoDB raises.
    """
    read = 0
    while page := list(islice(listed, min(_PAGE, MOST - read))):
        rows = table.rows(event_id for _, event_id in page)
        for created_ms, event_id in page:
            each = Unfinished(event_id, created_ms, readable(rows[event_id]) if event_id in rows else None)
            if event_id in rows and (each.row is None or not each.row.state.is_final):
                yield each
        read += len(page)
        follow(read)
