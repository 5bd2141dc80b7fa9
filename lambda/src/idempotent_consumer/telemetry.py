"""Traces, metrics and logs. The only module that knows X-Ray, the metrics' format and what may be logged."""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aws_xray_sdk.core import xray_recorder

from idempotent_consumer.answer import MISCONFIGURED_REASONS, Outcome, Verdict

if TYPE_CHECKING:
    from idempotent_consumer.reconciliation import Reconciliation

NAMESPACE = "IdempotentConsumer"
DIMENSION = "Consumer"
# CloudWatch's limit for one metric of an embedded metric format line.
MAX_VALUES = 100

METRIC_OF_OUTCOME = {
    Outcome.APPLIED: "Applied",
    Outcome.RESUMED: "Resumed",
    Outcome.DUPLICATE: "Duplicates",
    Outcome.SUPERSEDED: "Superseded",
    Outcome.IGNORED: "Ignored",
    Outcome.REJECTED: "Rejected",
    Outcome.CONFLICT: "Conflicts",
    Outcome.RETRY: "Retries",
    Outcome.BLOCKED: "Blocked",
}

METRIC_OF_OPERATION = {
    Outcome.COMPLETED: "Completed",
    Outcome.DUPLICATE: "Duplicates",
    Outcome.IGNORED: "Ignored",
    Outcome.REJECTED: "Rejected",
    Outcome.CONFLICT: "Conflicts",
    Outcome.FAILED: "Failed",
    Outcome.PARKED: "OutcomeUnknown",
    Outcome.RETRY: "Retries",
    Outcome.BLOCKED: "Blocked",
}

METRIC_OF_STARTER = {
    Outcome.STARTED: "Started",
    Outcome.DUPLICATE: "Duplicates",
    Outcome.IGNORED: "Ignored",
    Outcome.REJECTED: "Rejected",
    Outcome.CONFLICT: "Conflicts",
    Outcome.RETRY: "Retries",
}

_logger = logging.getLogger("idempotent_consumer")
# Outside Lambda there is no segment to add to, and the SDK would say so at each step.
xray_recorder.configure(context_missing="IGNORE_ERROR")
logging.getLogger("aws_xray_sdk").setLevel(logging.ERROR)
# At DEBUG it logs requests whole, message bodies included; at INFO, at each start, where it found its credentials.
logging.getLogger("botocore").setLevel(logging.WARNING)


def now_ms() -> int:
    """The time as epoch milliseconds."""
    return time.time_ns() // 1_000_000


@contextmanager
def phase(name: str) -> Iterator[dict[str, int]]:
    """Trace a step as a subsegment; what the caller puts into the dict becomes its annotations.

    A fault of tracing never reaches the caller. Annotations go on subsegments, since Lambda's own segment takes none.
    """
    annotations: dict[str, int] = {}
    subsegment = _begin(name)
    try:
        yield annotations
    finally:
        if subsegment is not None:
            _end(subsegment, annotations)


def log_verdict(message_id: str, event_id: str | None, verdict: Verdict) -> None:
    """Log what a person may have to look into: ids, outcome and reason; never a body, nor what may quote one."""
    level = logging.WARNING
    if verdict.is_misconfigured:
        level = logging.ERROR
    elif verdict.outcome in (Outcome.DUPLICATE, Outcome.SUPERSEDED):
        level = logging.INFO
    elif verdict.outcome is Outcome.BLOCKED:  # its group's first failure is logged as the cause
        level = logging.DEBUG
    fields = {
        "message_id": message_id,
        "event_id": event_id,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
    }
    if not verdict.outcome.is_dead:  # the detail of a dead event may name fields of its body
        fields["detail"] = verdict.detail
    _log(level, f"event {verdict.outcome.value}: {verdict.reason}", fields)


def log_fault(message_id: str, error: BaseException) -> None:
    """Log a fault of our own by its kind and place; its text may quote data."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "unknown"
    fields = {"message_id": message_id, "error": type(error).__name__, "where": where}
    _log(logging.ERROR, f"fault: {type(error).__name__} at {where}", fields)


def log_not_postponed(code: str) -> None:
    """Log that messages come back after the queue's own visibility timeout."""
    _log(logging.WARNING, f"no backoff: {code}", {"error": code})


def log_left_running(what: str) -> None:
    """Log that a user's code has left threads behind. Lambda freezes them, and they go on in a later invocation."""
    _log(logging.WARNING, f"threads left running by {what}", {"error": "threads-left"})


def log_left(left: Mapping[str, Verdict]) -> None:
    """Log what a reconciliation could not publish, by reason, with one event (or shard) for each and their number."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for event_id, verdict in left.items():
        reasons.setdefault((verdict.reason, verdict.detail), []).append(event_id)
    for (reason, detail), event_ids in reasons.items():
        level = logging.ERROR if reason in MISCONFIGURED_REASONS else logging.WARNING
        fields = {"event_id": event_ids[0], "reason": reason, "detail": detail, "count": len(event_ids)}
        _log(level, f"still pending: {reason}", fields)


def emit_metrics(
    consumer_name: str,
    verdicts: Iterable[Verdict],
    event_ages_ms: Sequence[int],
    receive_counts: Sequence[int],
) -> None:
    """Print the invocation's metrics as one line in CloudWatch's embedded metric format.

    The line carries a level, because Lambda's JSON log format filters printed lines by it.
    """
    _emit(consumer_name, METRIC_OF_OUTCOME, verdicts, {}, event_ages_ms, receive_counts)


def emit_operations(
    consumer_name: str,
    verdicts: Iterable[Verdict],
    claimed: int,
    stale: int,
    event_ages_ms: Sequence[int],
    receive_counts: Sequence[int],
) -> None:
    """The same for an operation. claimed: attempts begun. stale: attempts found without a worker and an outcome."""
    own = {"Claimed": claimed, "InProgressStale": stale}
    _emit(consumer_name, METRIC_OF_OPERATION, verdicts, own, event_ages_ms, receive_counts)


def emit_starts(
    consumer_name: str, verdicts: Iterable[Verdict], event_ages_ms: Sequence[int], receive_counts: Sequence[int]
) -> None:
    """The same for the starter of a workflow."""
    _emit(consumer_name, METRIC_OF_STARTER, verdicts, {}, event_ages_ms, receive_counts)


def emit_counts(consumer_name: str, counts: Mapping[str, int]) -> None:
    """Print counts, by their metrics' names, as one line."""
    _print(consumer_name, counts, {})


def emit_reconciliation(consumer_name: str, run: "Reconciliation", now_ms: int) -> None:
    """Print a reconciliation's metrics as one line. now_ms: when it began, epoch milliseconds."""
    failures = [*run.left.values(), *run.unread.values()]
    values = {
        "Reconciled": run.published,
        "StalePending": run.still_stale,
        "OldestPendingAge": 0 if run.oldest_ms is None else max(0, now_ms - run.oldest_ms),
        "Misconfigured": sum(verdict.is_misconfigured for verdict in failures),
    }
    _print(consumer_name, values, {"OldestPendingAge": "Milliseconds"})


def spread(values: Sequence[int]) -> list[int]:
    """At most 100 of the values, evenly over their order, least and greatest included."""
    ordered = sorted(values)
    if len(ordered) <= MAX_VALUES:
        return ordered
    return [ordered[index * (len(ordered) - 1) // (MAX_VALUES - 1)] for index in range(MAX_VALUES)]


def _emit(
    consumer_name: str,
    metric_of_outcome: Mapping[Outcome, str],
    verdicts: Iterable[Verdict],
    own: Mapping[str, int],
    event_ages_ms: Sequence[int],
    receive_counts: Sequence[int],
) -> None:
    verdicts = list(verdicts)
    counts = Counter(metric_of_outcome[verdict.outcome] for verdict in verdicts)
    values: dict[str, Any] = {name: counts[name] for name in metric_of_outcome.values()}
    values["Misconfigured"] = sum(verdict.is_misconfigured for verdict in verdicts)
    values.update(own)
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    for name, unit, sample in (
        ("EventAge", "Milliseconds", event_ages_ms),
        ("ReceiveCount", "Count", receive_counts),
    ):
        if sample:
            values[name] = spread(sample)
            metrics.append({"Name": name, "Unit": unit})
    print(json.dumps(_line(consumer_name, metrics, values), separators=(",", ":")))


def _print(consumer_name: str, values: Mapping[str, int], units: Mapping[str, str]) -> None:
    """Print single values as one line. units: where they are no counts."""
    metrics = [{"Name": name, "Unit": units.get(name, "Count")} for name in values]
    print(json.dumps(_line(consumer_name, metrics, dict(values)), separators=(",", ":")))


def _line(consumer_name: str, metrics: list[dict[str, str]], values: dict[str, Any]) -> dict[str, Any]:
    timestamp = now_ms()
    return {
        "_aws": {
            "Timestamp": timestamp,
            "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": metrics}],
        },
        "level": "INFO",
        "timestamp": datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        DIMENSION: consumer_name,
        **values,
    }


def _log(level: int, text: str, fields: dict[str, Any]) -> None:
    # Lambda's log handler raises where it cannot write; what has been settled must still be answered.
    with suppress(Exception):
        _logger.log(level, text, extra=fields)


def _begin(name: str) -> Any:
    try:
        return xray_recorder.begin_subsegment(name)
    except Exception:
        _log(logging.DEBUG, f"tracing of {name} did not start", {})
        return None


def _end(subsegment: Any, annotations: dict[str, int]) -> None:
    try:
        for key, value in annotations.items():
            subsegment.put_annotation(key, value)
        xray_recorder.end_subsegment()
    except Exception:
        _log(logging.DEBUG, "tracing of a step did not end", {})
