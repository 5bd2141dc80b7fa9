"""`pending` for an operation: what is unfinished, and why."""

from __future__ import annotations

from typing import Any

from idempotent_consumer.claims.row import Row
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.foresight.operation_lookup import OperationTable
from idempotent_consumer_cli.foresight.prospect import LedgerState
from idempotent_consumer_cli.rows.operation import due_ms, why
from idempotent_consumer_cli.rows.pending import EVER_MS, open_pending, until_ms
from idempotent_consumer_cli.rows.unfinished import Census, Unfinished, long_ms, read_unfinished
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import age, count, listed, spoken


def list_operations(session: Session, settings: OperationSettings, screen: Screen, older_than: int, limit: int) -> int:
    """List the unfinished operations, oldest first; returns the exit code: 1 if one needs a hand.

    older_than: seconds since the first claim; 0 for all.
    """
    now_ms = clock.now_ms()
    table = OperationTable(session.dynamodb, settings.ledger_table)
    rows = open_pending(session.dynamodb, settings.ledger_table, screen, of_operation=True)
    latest_ms = until_ms(now_ms, older_than) if older_than else EVER_MS
    census, shown = Census(), list[Unfinished]()
    pending = rows.oldest_first(latest_ms)
    with screen.progress("Reading operations") as bar:
        for each in read_unfinished(table, pending, bar.update):
            census.add(each, now_ms, long_ms(settings))
            if len(shown) < limit:
                shown.append(each)
    census.uncounted = sum(1 for _ in pending)
    if shown:
        screen.table(
            f"Unfinished operations of {settings.consumer_name}",
            ["event id", "state", "for", "attempt", "age", "next", "why"],
            [_cells(each, now_ms) for each in shown],
        )
    if census.total > len(shown):
        screen.say(f"and {census.total - len(shown):,} more: list them with --limit {census.total}")
    verdicts = _verdicts(census, settings, older_than)
    for verdict in verdicts:
        screen.say(verdict)
    screen.emit(
        {
            "consumer": settings.consumer_name,
            "by": "scan" if rows.is_scan else "index",
            **census.document(now_ms),
            "operations": [each.document(now_ms, long_ms(settings)) for each in shown],
            "verdict": " ".join(verdicts),
        }
    )
    return 1 if census.needs_a_hand else 0


def how_to_settle(name: str) -> str:
    """What there is to do about parked operations."""
    return f"see at the provider, then idempotent-consumer resolve --name {name} <event id>"


def overdue_text(settings: OperationSettings) -> str:
    """What it means that operations are overdue."""
    return f"unfinished, and due for over {spoken(long_ms(settings) / 1000)}"


def how_to_go_on(name: str) -> str:
    """What there is to do about operations that are overdue."""
    return f"their messages wait in the queue, or are dead, or gone: idempotent-consumer inspect --name {name}"


def _verdicts(census: Census, settings: OperationSettings, older_than: int) -> list[str]:
    since = f" for over {spoken(older_than)}" if older_than else ""
    if not census.total:
        return [f"No operation is unfinished{since}."]
    more = f", and {census.uncounted:,} more whose state was not read" if census.uncounted else ""
    verdicts = [f"{count(census.total, 'operation')} unfinished{since}: {listed(census.by_state)}{more}."]
    name = settings.consumer_name
    if census.by_state[LedgerState.PARKED]:
        verdicts.append(f"{census.by_state[LedgerState.PARKED]:,} parked: {how_to_settle(name)}")
    if census.overdue:
        verdicts.append(f"{census.overdue:,} {overdue_text(settings)}: {how_to_go_on(name)}")
    return verdicts


def _cells(each: Unfinished, now_ms: int) -> list[Any]:
    row = each.row
    return [
        each.event_id,
        each.state(now_ms).value,
        age(now_ms, each.standing_since_ms(now_ms)),
        None if row is None else row.attempt,
        spoken((now_ms - each.created_ms) / 1000),
        None if row is None else _next(row, now_ms),
        None if row is None else why(row) or None,
    ]


def _next(row: Row, now_ms: int) -> str:
    due = due_ms(row)
    if due is None:
        return "resolve"
    return f"in {spoken((due - now_ms) / 1000)}" if due > now_ms else "when its message comes"
