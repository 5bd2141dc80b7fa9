"""The command line asks CloudWatch for what the functions put there."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.reconciliation import Reconciliation
from idempotent_consumer_cli.consumer import metrics
from tests.cli.support import World

# Samples of each message, and an age, which no sum tells.
NO_COUNTS = {"EventAge", "ReceiveCount", "OldestPendingAge"}


def test_the_names_are_those_of_the_metric_lines(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.emit_metrics("orders", [Verdict(Outcome.APPLIED)], [1], [1])
    telemetry.emit_reconciliation("orders", Reconciliation(), 0)
    assert _names(capsys.readouterr().out) == {*metrics.COUNTS, metrics.STALE_PENDING} - {"Replayed"}


def test_the_names_of_an_operation_are_those_of_its_metric_lines(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.emit_operations("orders", [Verdict(Outcome.COMPLETED)], 1, 1, [1], [1])
    assert _names(capsys.readouterr().out) == {*metrics.COUNTS_OF_OPERATIONS} - {"Replayed"}


def test_the_last_hour_is_asked_for_minute_by_minute(world: World) -> None:
    """Whole hours of CloudWatch do not begin when one asks."""
    world.now_ms = 1_893_553_446_000  # 03:04:06
    world.run("status")
    hour = [request for request in world.requests("GetMetricData") if len(request["MetricDataQueries"]) > 2]
    (request,) = hour
    assert request["StartTime"].isoformat() == "2030-01-02T02:05:00+00:00"
    assert request["EndTime"].isoformat() == "2030-01-02T03:05:00+00:00"
    assert {query["MetricStat"]["Period"] for query in request["MetricDataQueries"]} == {60}
    assert request["MetricDataQueries"][0] == {
        "Id": "m_applied",
        "Label": "Applied",
        "MetricStat": {
            "Metric": {
                "Namespace": "IdempotentConsumer",
                "MetricName": "Applied",
                "Dimensions": [{"Name": "Consumer", "Value": "orders"}],
            },
            "Period": 60,
            "Stat": "Sum",
        },
    }


def test_all_pages_of_an_answer_are_added_up(world: World) -> None:
    pages = [
        {"MetricDataResults": [_result("m_applied", [3.0])], "NextToken": "more"},
        {"MetricDataResults": [_result("m_applied", [4.0])]},
    ]
    world.on("GetMetricData", calls=[2, 3], answers=lambda request, effect: pages.pop(0))
    assert world.run("status", "--json").document["last_hour"] == {"Applied": 7}


def _names(lines: str) -> set[str]:
    """The names of all counts in lines of metrics."""
    directives = [json.loads(line)["_aws"]["CloudWatchMetrics"][0] for line in lines.splitlines()]
    assert {directive["Namespace"] for directive in directives} == {metrics.NAMESPACE}
    assert all(directive["Dimensions"] == [[metrics.DIMENSION]] for directive in directives)
    return {metric["Name"] for directive in directives for metric in directive["Metrics"]} - NO_COUNTS


def _result(query: str, values: list[float]) -> object:
    return {"Id": query, "Timestamps": [datetime(2030, 1, 2, tzinfo=UTC)] * len(values), "Values": values}
