"""What of a consumer's health needs a hand, and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass

from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.consumer.health import Health
from idempotent_consumer_cli.foresight.prospect import LedgerState
from idempotent_consumer_cli.rows.pending import how_to_publish
from idempotent_consumer_cli.rows.pending_operations import how_to_go_on, how_to_settle, overdue_text
from idempotent_consumer_cli.words import count, spoken

# As the alarm on the oldest message has it by default, but for half the retention if that is less.
_LONG_SECONDS = 3600
_SEE_QUEUE = "see the function's role, the queue and its key"
# Counts of which any is trouble. Rejected events and conflicts show as dead letters.
_TROUBLE = (
    ("Misconfigured", "events failed for want of a right or a resource", "misconfigured"),
    ("Errors", "calls of the function failed", "errors"),
    ("Throttles", "calls of the function were throttled", "throttles"),
)
_TROUBLE_OF_GUARD = (
    ("GuardErrors", "calls of the guard failed", "guard-errors"),
    ("GuardThrottles", "calls of the guard were throttled", "throttles"),
)


@dataclass(frozen=True)
class Finding:
    """Something that will not mend itself. todo: the command, or what else there is to do."""

    what: str
    todo: str


def find(health: Health, consumer: Consumer) -> list[Finding]:
    """What was read of a consumer's parts, in the order in which it matters."""
    findings = []
    if health.dead_letters is not None and health.dead_letters.total:
        what = count(health.dead_letters.total, "dead letter")
        findings.append(Finding(what, f"idempotent-consumer inspect --name {consumer.name}"))
    if health.pending is not None and health.pending.stale:
        what, older = count(health.pending.stale, "event"), spoken(consumer.visibility_seconds)
        findings.append(Finding(f"{what} committed but not announced for over {older}", how_to_publish(consumer)))
    return [
        *findings,
        *_operation_findings(health, consumer),
        *_execution_findings(health),
        *_queue_findings(health, consumer),
        *_mapping_findings(health, consumer),
    ]


def _operation_findings(health: Health, consumer: Consumer) -> list[Finding]:
    census, settings = health.operations, consumer.operation
    if census is None or settings is None:
        return []
    findings = []
    if parked := census.by_state[LedgerState.PARKED]:
        what = f"{count(parked, 'operation')} parked, of which nobody knows whether it was applied"
        findings.append(Finding(what, how_to_settle(consumer.name)))
    if census.overdue:
        findings.append(
            Finding(f"{count(census.overdue, 'operation')} {overdue_text(settings)}", how_to_go_on(consumer.name))
        )
    if census.uncounted:
        what = f"{count(census.uncounted, 'unfinished operation')} more than can be looked at: one may be parked"
        findings.append(Finding(what, f"idempotent-consumer inspect --name {consumer.name}"))
    if unreadable := census.by_state[LedgerState.UNREADABLE]:
        what = f"{count(unreadable, 'row')} of the ledger that no operation wrote"
        findings.append(Finding(what, f"idempotent-consumer pending --name {consumer.name} lists them"))
    return findings


def _execution_findings(health: Health) -> list[Finding]:
    """Executions of which EventBridge has to tell, which it may fail to do, and whose keys are kept.

    One that failed has sent its own letter.
    """
    ended = health.executions.failed if health.executions is not None else {}
    stopped = {"aborted": ended.get("ABORTED", 0), "timed out": ended.get("TIMED_OUT", 0)}
    total = sum(stopped.values())
    if not total:
        return []
    how = ", ".join(f"{number:,} {what}" for what, number in stopped.items() if number)
    what = f"{count(total, 'execution')} stopped in the last day ({how})"
    return [Finding(what, "see whether each has its dead letter, or is settled; runbook, executions-aborted")]


def _queue_findings(health: Health, consumer: Consumer) -> list[Finding]:
    """What shows only in metrics: messages that wait for long, and calls that fail."""
    findings = []
    age = health.ages.get("queue")
    if health.queue is not None and health.queue.total and age is not None and age > _long_seconds(consumer):
        findings.append(Finding(f"the oldest message has waited for {spoken(age)}", "runbook, oldest-message"))
    recent = health.last_hour.recent if health.last_hour is not None else {}
    logs = {consumer.log_group: _TROUBLE, f"/aws/lambda/{consumer.guard_name}": _TROUBLE_OF_GUARD}
    findings += [
        Finding(f"{recent[name]:,} {what} in the last ten minutes", f"the log {log}; runbook, {section}")
        for log, trouble in logs.items()
        for name, what, section in trouble
        if recent.get(name)
    ]
    return findings


def _long_seconds(consumer: Consumer) -> int:
    backoff = consumer.settings.backoff
    return min(_LONG_SECONDS, backoff.retention_seconds // 2) if backoff is not None else _LONG_SECONDS


def _mapping_findings(health: Health, consumer: Consumer) -> list[Finding]:
    if health.mappings is None:
        return []
    if not health.mappings:
        return [
            Finding(
                f"nothing gives the queue's messages to {consumer.function_name}",
                "its event source mapping is gone: apply the module again",
            )
        ]
    paused = [mapping for mapping in health.mappings if mapping.is_paused]
    if len(paused) < len(health.mappings):
        # What the last run of one that is off came to says nothing of now.
        running = [mapping for mapping in health.mappings if not mapping.is_paused and mapping.problem]
        return [Finding(f"the queue is not read: {mapping.problem}", _SEE_QUEUE) for mapping in running]
    return [
        Finding(
            f"{consumer.function_name} gets no messages, its mapping is {paused[0].state.lower()}",
            "apply with function.enabled = true, or "
            f"aws lambda update-event-source-mapping --uuid {paused[0].uuid} --enabled",
        )
    ]
