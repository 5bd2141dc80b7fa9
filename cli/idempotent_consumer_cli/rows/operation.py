"""One row of an operation's ledger, as an operator looks at it. Pure."""

from __future__ import annotations

from typing import Any

from idempotent_consumer.claims.row import Row, State, read_row
from idempotent_consumer.items import Item
from idempotent_consumer_cli.clock import moment, moment_or_none
from idempotent_consumer_cli.foresight.prospect import LedgerState
from idempotent_consumer_cli.rows.stored import decisions

# All that is read of a row: its result may be large, and is nobody's business here.
ATTRIBUTES = (
    "attempt",
    "audit",
    "created_at",
    "detail",
    "event_id",
    "fingerprint",
    "idempotency_key",
    "lease_until",
    "next_attempt_at",
    "owner",
    "parked_at",
    "reason",
    "settled_at",
    "since",
    "status",
    "tries",
    "uncertain_at",
)
_FINAL = {State.COMPLETED: LedgerState.COMPLETED, State.FAILED_FINAL: LedgerState.FAILED}


def readable(item: Item) -> Row | None:
    """None for a row that no operation wrote."""
    try:
        return read_row(item)
    except ValueError:
        return None


def state_of(row: Row, now_ms: int) -> LedgerState:
    """now_ms: epoch milliseconds."""
    if row.state in _FINAL:
        return _FINAL[row.state]
    if row.state is State.FAILED_RETRYABLE:
        return LedgerState.TO_RETRY
    if row.parked_ms is not None:
        return LedgerState.PARKED
    return LedgerState.STALE if row.is_stale(now_ms) else LedgerState.IN_PROGRESS


def standing_since_ms(row: Row, now_ms: int) -> int | None:
    """Since when it is in its state; None where that is not known, or has yet to end."""
    state = state_of(row, now_ms)
    if state is LedgerState.PARKED:
        return row.parked_ms
    if state is LedgerState.STALE:
        return row.lease_until_ms
    return row.settled_ms


def due_ms(row: Row) -> int | None:
    """When a worker may take an unfinished one again; None for one that is final, or waits for a person."""
    if row.state.is_final or row.parked_ms is not None:
        return None
    if row.state is State.FAILED_RETRYABLE:
        return row.next_attempt_ms or row.since_ms
    return max(row.lease_until_ms, row.next_attempt_ms or 0)


def why(row: Row) -> str:
    """Reason and detail of a failure, or why nobody knows whether it was applied."""
    return ": ".join(part for part in (row.reason, row.detail) if part)


def row_document(row: Row) -> dict[str, Any]:
    """For programs; without the event's id, and without what depends on the time."""
    return {
        "status": row.state.value,
        "attempt": row.attempt,
        "tries": row.tries,
        "idempotency_key": row.idempotency_key,
        "created_at": moment(row.created_ms),
        "since": moment(row.since_ms),
        "lease_until": moment(row.lease_until_ms),
        "next_attempt_at": moment_or_none(row.next_attempt_ms),
        "uncertain_at": moment_or_none(row.uncertain_ms),
        "parked_at": moment_or_none(row.parked_ms),
        "settled_at": moment_or_none(row.settled_ms),
        "reason": row.reason,
        "detail": row.detail,
        "audit": decisions(row.audit),
    }
