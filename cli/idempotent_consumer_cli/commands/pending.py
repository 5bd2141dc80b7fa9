"""`pending`: the events that are committed, and whose notification is not known to be out."""

from __future__ import annotations

from typing import Any

import click

from idempotent_consumer.ledger import Ledger
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.options import DURATION, operator_command
from idempotent_consumer_cli.rows.pending import (
    EVER_MS,
    Listed,
    PendingRow,
    how_to_publish,
    list_rows,
    open_pending,
    stale_until_ms,
    until_ms,
)
from idempotent_consumer_cli.rows.pending_operations import list_operations
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import spoken

_OF_WORKFLOWS = (
    "nothing waits to be announced. `status` shows its executions, `inspect` the letters and their claims, `release` "
    "gives a claim back"
)


@click.command(name="pending")
@click.option("--older-than", type=DURATION, default=0, help="Only events first written so long ago, as 15m or 2h.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="List so many, oldest first.")
@operator_command
def command(*, session: Session, consumer: Consumer, screen: Screen, older_than: int, limit: int) -> int:
    """List the events that are committed but not announced, oldest first; of an operation, those that are unfinished.

    Those younger than the visibility timeout may just be in work. Exit code 1 if there is an older one; with an
    operation, if one is parked, or has long been due and is not taken up.
    """
    if consumer.operation is not None:
        return list_operations(session, consumer.operation, screen, older_than, limit)
    table = consumer.pipeline_or("its operations are listed", _OF_WORKFLOWS).ledger_table
    now_ms = clock.now_ms()
    rows = open_pending(session.dynamodb, table, screen)
    # The function's clock may be ahead.
    latest_ms = until_ms(now_ms, older_than) if older_than else EVER_MS
    with screen.progress("Reading pending rows", limit) as bar:
        listed = list_rows(Ledger(session.dynamodb, table), rows.oldest_first(latest_ms), limit, bar.update)
    stale_ms = min(latest_ms, stale_until_ms(consumer, now_ms))
    if listed.is_cut:
        total, stale = rows.count(latest_ms), rows.count(stale_ms)
    else:
        total, stale = len(listed.rows), sum(row.created_ms <= stale_ms for row in listed.rows)
    verdict = _verdict(consumer, total, stale, older_than)
    _show(consumer, screen, listed, total, now_ms)
    screen.say(verdict)
    screen.emit(
        {
            "consumer": consumer.name,
            "by": "scan" if rows.is_scan else "index",
            "total": total,
            "stale": stale,
            "events": [row.document(now_ms) for row in listed.rows],
            "unread": listed.unread,
            "verdict": verdict,
        }
    )
    return 1 if stale else 0


def _show(consumer: Consumer, screen: Screen, listed: Listed, total: int, now_ms: int) -> None:
    if listed.rows:
        screen.table(
            f"Pending events of {consumer.name}",
            ["event id", "age", "committed at", "last message id", "notification bytes"],
            [_cells(row, now_ms) for row in listed.rows],
        )
    if total > len(listed.rows):
        screen.say(f"and {total - len(listed.rows):,} more: list them with --limit {total}")
    if listed.unread:
        screen.say(f"Message ids and bytes are missing where a row could not be read ({listed.unread}).")


def _verdict(consumer: Consumer, total: int, stale: int, older_than: int) -> str:
    since = f" for over {spoken(older_than)}" if older_than else ""
    timeout = f"the visibility timeout ({spoken(consumer.visibility_seconds)})"
    if not total:
        return f"No event is pending{since}."
    if not stale:
        return f"{total:,} pending{since}, none for longer than {timeout}."
    return f"{stale:,} pending for longer than {timeout}: {how_to_publish(consumer)}"


def _cells(row: PendingRow, now_ms: int) -> list[Any]:
    return [
        row.event_id,
        spoken((now_ms - row.created_ms) / 1000),
        clock.moment(row.created_ms),
        row.message_id,
        row.size,
    ]
