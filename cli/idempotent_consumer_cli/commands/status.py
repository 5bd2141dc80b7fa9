"""`status`: the whole of a consumer on one screen, and what needs a hand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.consumer.executions import Activity
from idempotent_consumer_cli.consumer.findings import Finding, find
from idempotent_consumer_cli.consumer.health import Health, read_health
from idempotent_consumer_cli.consumer.metrics import LastHour
from idempotent_consumer_cli.consumer.queues import Depth
from idempotent_consumer_cli.errors import BAD_INPUT
from idempotent_consumer_cli.options import operator_command
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import count, listed, spoken

# Without these nobody can say that nothing is stuck.
_DECISIVE = ("queue", "dead-letter queue", "pending rows", "operations", "executions", "mapping")

_ENDED = {"FAILED": "failed", "TIMED_OUT": "timed out", "ABORTED": "aborted"}
_OF_FAILED = (
    "                  those that failed have sent their letters to the dead-letter queue; what became of letters that "
    "are gone is not known here"
)


@click.command(name="status")
@operator_command
def command(*, session: Session, consumer: Consumer, screen: Screen) -> int:
    """Show queues, what is pending or unfinished, the last hour's outcomes, and what needs a hand.

    Exit code 1 if something does: dead letters, events committed but not announced for longer than the visibility
    timeout, an operation that is parked or has long been due, an execution that was stopped in the last day, a message
    that waits for too long, calls that failed in the last ten minutes, a mapping that is off. 2 if nothing is found
    stuck, but a part that decides could not be read.
    """
    now_ms = clock.now_ms()
    health = read_health(session, consumer, screen, now_ms)
    findings = find(health, consumer)
    blind = [part for part in _DECISIVE if part in health.unread]
    verdict = _verdict(findings, blind)
    _show(health, consumer, screen, now_ms)
    for finding in findings:
        screen.say(f"{finding.what}: {finding.todo}")
    screen.say(verdict)
    screen.emit(_document(health, consumer, findings, verdict, now_ms))
    if findings:
        return 1
    return BAD_INPUT if blind else 0


def _verdict(findings: list[Finding], blind: list[str]) -> str:
    if findings:
        return f"{count(len(findings), 'thing')} to see to."
    if blind:
        return f"Nothing is stuck in what could be read. Not read: {', '.join(blind)}."
    return "All is well: nothing is stuck."


def _show(health: Health, consumer: Consumer, screen: Screen, now_ms: int) -> None:
    queues = {"queue": health.queue, "dead-letter queue": health.dead_letters}
    screen.table(
        f"{_kind(consumer)} {consumer.name}",
        ["messages in", "waiting", "in flight", "delayed", "oldest"],
        [(part, *_numbers(depth), _age(health, part, depth)) for part, depth in queues.items()],
    )
    if consumer.workflow is not None:
        screen.say(f"executions        {_executions_text(health, now_ms)}")
        if health.executions is not None and health.executions.failed.get("FAILED"):
            screen.say(_OF_FAILED)
    elif consumer.operation is not None:
        screen.say(f"operations        {_operations_text(health, now_ms)}")
    else:
        screen.say(f"pending events    {_pending_text(health)}")
    screen.say(f"mapping           {_mapping_text(health)}")
    _show_last_hour(health.last_hour, consumer, screen)
    for part, why in health.unread.items():
        screen.say(f"not read: {part}: {why}")


def _show_last_hour(last_hour: LastHour | None, consumer: Consumer, screen: Screen) -> None:
    if last_hour is None:
        return
    runs = last_hour.invocations
    if last_hour.outcomes is not None:
        screen.table("Last hour", ["outcome", "count"], last_hour.outcomes.items())
    elif runs.get("Invocations"):
        screen.say(
            f"last hour         no metrics, though {consumer.function_name} ran {runs['Invocations']:,} times: is its "
            f"log level above INFO, or may it not write to {consumer.log_group}?"
        )
    else:
        screen.say("last hour         no metrics: no messages came, or the metrics do not arrive")
    if runs:
        screen.say("function          " + ", ".join(f"{number:,} {name.lower()}" for name, number in runs.items()))


def _numbers(depth: Depth | None) -> tuple[int | None, int | None, int | None]:
    return (depth.visible, depth.in_flight, depth.delayed) if depth else (None, None, None)


def _age(health: Health, part: str, depth: Depth | None) -> str | None:
    """CloudWatch keeps the last age for minutes after the queue is empty."""
    age = health.ages.get(part)
    if depth is not None and depth.total == 0:
        return None
    return "unknown" if age is None else spoken(age)


def _pending_text(health: Health) -> str:
    if health.pending is None:
        return "unknown"
    if health.pending.oldest_age_seconds is None:
        return "none"
    return f"{health.pending.count:,}, the oldest for {spoken(health.pending.oldest_age_seconds)}"


def _operations_text(health: Health, now_ms: int) -> str:
    census = health.operations
    if census is None:
        return "unknown"
    if census.oldest_ms is None:
        return "none unfinished"
    more = f", {census.uncounted:,} more" if census.uncounted else ""
    return f"{listed(census.by_state)}{more}, the oldest for {spoken((now_ms - census.oldest_ms) / 1000)}"


def _kind(consumer: Consumer) -> str:
    if consumer.workflow is not None:
        return "Workflow"
    return "Consumer" if consumer.is_pipeline else "Operation"


def _executions_text(health: Health, now_ms: int) -> str:
    activity = health.executions
    if activity is None:
        return "unknown"
    oldest = "" if activity.oldest_ms is None else f", the oldest for {spoken((now_ms - activity.oldest_ms) / 1000)}"
    ended = [f"{number:,} {_ENDED[status]}" for status, number in activity.failed.items() if number]
    failed = f"; in the last day {', '.join(ended)}" if ended else ""
    return f"{activity.running:,} running{oldest}{failed}" + (" (there are more)" if activity.is_cut else "")


def _executions_document(activity: Activity | None, now_ms: int) -> dict[str, Any] | None:
    if activity is None:
        return None
    return {
        "running": activity.running,
        "oldest_running_age_seconds": None
        if activity.oldest_ms is None
        else max(0, now_ms - activity.oldest_ms) // 1000,
        "last_day": {_ENDED[status]: number for status, number in activity.failed.items()},
        "is_cut": activity.is_cut,
    }


def _mapping_text(health: Health) -> str:
    if health.mappings is None:
        return "unknown"
    return ", ".join(mapping.state.lower() for mapping in health.mappings) or "missing"


def _document(health: Health, consumer: Consumer, findings: list[Finding], verdict: str, now_ms: int) -> dict[str, Any]:
    def queue(depth: Depth | None, part: str) -> dict[str, Any] | None:
        if depth is None:
            return None
        age = health.ages.get(part) if depth.total else None
        return {**asdict(depth), "oldest_age_seconds": age}

    pending, census, last_hour = health.pending, health.operations, health.last_hour
    kind = {}
    if consumer.operation is not None:
        kind = {"operations": None if census is None else census.document(now_ms)}
    elif consumer.workflow is not None:
        kind = {"executions": _executions_document(health.executions, now_ms)}
    return {
        "consumer": consumer.name,
        "at": clock.moment(now_ms),
        "queue": queue(health.queue, "queue"),
        "dead_letter_queue": queue(health.dead_letters, "dead-letter queue"),
        "pending": None
        if pending is None
        else {
            "count": pending.count,
            "stale": pending.stale,
            "oldest_age_seconds": pending.oldest_age_seconds,
            "by": "scan" if pending.is_scan else "index",
        },
        **kind,
        "last_hour": None if last_hour is None else last_hour.outcomes,
        "function_last_hour": None if last_hour is None else last_hour.invocations,
        "mappings": None if health.mappings is None else [asdict(mapping) for mapping in health.mappings],
        "unread": health.unread,
        "findings": [asdict(finding) for finding in findings],
        "verdict": verdict,
    }
