"""The consumer's metrics in CloudWatch, as an operator looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from idempotent_consumer_cli.consumer.discovery import Consumer

NAMESPACE = "IdempotentConsumer"
DIMENSION = "Consumer"
# Counted over the hour. The functions and `replay` put them.
COUNTS = (
    "Applied",
    "Resumed",
    "Duplicates",
    "Superseded",
    "Ignored",
    "Rejected",
    "Conflicts",
    "Retries",
    "Blocked",
    "Misconfigured",
    "Reconciled",
    "Replayed",
)
COUNTS_OF_OPERATIONS = (
    "Claimed",
    "Completed",
    "Duplicates",
    "Ignored",
    "Rejected",
    "Conflicts",
    "Failed",
    "OutcomeUnknown",
    "InProgressStale",
    "Retries",
    "Blocked",
    "Misconfigured",
    "Replayed",
)
COUNTS_OF_WORKFLOWS = (
    "Started",
    "Claimed",
    "Duplicates",
    "Skipped",
    "Ignored",
    "Rejected",
    "Conflicts",
    "Retries",
    "Misconfigured",
    "Replayed",
)
# A level that each run of the reconciler puts: its last value counts.
STALE_PENDING = "StalePending"
INVOCATIONS = ("Invocations", "Errors", "Throttles")
# Of a workflow's guard: the label, and Lambda's name. One that is no function has no such figures.
_OF_GUARD = {"GuardErrors": "Errors", "GuardThrottles": "Throttles"}

_HOUR = timedelta(hours=1)
_RECENT = timedelta(minutes=10)
# SQS puts its metrics once a minute, some minutes late; an older age says nothing of now.
_AGES_SINCE = timedelta(minutes=15)
_Points = dict[str, list[tuple[datetime, float]]]


@dataclass(frozen=True)
class LastHour:
    """outcomes: the consumer's own metrics, None where there are none. invocations: Lambda's, by name.

    recent: of both, and of calls of a guard, the counts of the last ten minutes, which tell of now.
    """

    outcomes: Mapping[str, int] | None
    invocations: Mapping[str, int]
    recent: Mapping[str, int]


def read_last_hour(cloudwatch: Any, consumer: Consumer, now_ms: int) -> LastHour:
    """Raises what a call to CloudWatch raises."""
    own = {DIMENSION: consumer.name}
    lambdas = {"FunctionName": consumer.function_name}
    guard = {"FunctionName": consumer.guard_name}
    of_guard = _OF_GUARD if consumer.workflow is not None else {}
    counts = _counts(consumer)
    queries = [
        *(_query(name, NAMESPACE, name, own, "Sum") for name in counts),
        _query(STALE_PENDING, NAMESPACE, STALE_PENDING, own, "Maximum"),
        *(_query(name, "AWS/Lambda", name, lambdas, "Sum") for name in INVOCATIONS),
        *(_query(label, "AWS/Lambda", name, guard, "Sum") for label, name in of_guard.items()),
    ]
    points = _read(cloudwatch, queries, now_ms, _HOUR)
    outcomes = {name: _total(points[name]) for name in counts if points[name]}
    if points[STALE_PENDING]:
        outcomes[STALE_PENDING] = int(max(points[STALE_PENDING])[1])
    since = datetime.fromtimestamp(now_ms / 1000, UTC) - _RECENT
    labels = (*counts, *INVOCATIONS, *of_guard)
    recent = {label: _total([point for point in points[label] if point[0] >= since]) for label in labels}
    return LastHour(outcomes or None, {name: _total(points[name]) for name in INVOCATIONS if points[name]}, recent)


def read_oldest_ages(cloudwatch: Any, queues: Mapping[str, str], now_ms: int) -> dict[str, int | None]:
    """The age of each queue's oldest message in seconds, None where CloudWatch has no figure.

    queues: a label to a queue's URL. Raises what a call to CloudWatch raises.
    """
    queries = [
        _query(label, "AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": url.rpartition("/")[2]}, "Maximum")
        for label, url in queues.items()
    ]
    points = _read(cloudwatch, queries, now_ms, _AGES_SINCE)
    return {label: int(max(values)[1]) if values else None for label, values in points.items()}


def _counts(consumer: Consumer) -> tuple[str, ...]:
    if consumer.workflow is not None:
        return COUNTS_OF_WORKFLOWS
    return COUNTS if consumer.is_pipeline else COUNTS_OF_OPERATIONS


def _query(label: str, namespace: str, metric: str, dimensions: Mapping[str, str], stat: str) -> dict[str, Any]:
    return {
        "Id": "m_" + label.lower(),
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": metric,
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            },
            "Period": 60,
            "Stat": stat,
        },
        "Label": label,
    }


def _read(cloudwatch: Any, queries: list[dict[str, Any]], now_ms: int, since: timedelta) -> _Points:
    """By label: minutes and their values."""
    labels = {query["Id"]: query["Label"] for query in queries}
    points: _Points = {label: [] for label in labels.values()}
    # The minute that runs now belongs to it.
    until = datetime.fromtimestamp(now_ms / 1000, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    for result in _results(cloudwatch, MetricDataQueries=queries, StartTime=until - since, EndTime=until):
        points[labels[result["Id"]]] += zip(result["Timestamps"], result["Values"], strict=True)
    return points


def _results(cloudwatch: Any, **request: Any) -> Iterator[Mapping[str, Any]]:
    for page in cloudwatch.get_paginator("get_metric_data").paginate(**request):
        yield from page["MetricDataResults"]


def _total(points: list[tuple[datetime, float]]) -> int:
    return int(sum(value for _, value in points))
