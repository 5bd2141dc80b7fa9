"""The alarms and the dashboard look at the metrics that the functions really publish, under their real dimensions.

A custom metric whose name is misspelt in an alarm is no error anywhere: the alarm just never goes off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from moto import mock_aws

from idempotent_consumer.aws import Clients
from idempotent_consumer.reconciler import ScheduledReconciler
from idempotent_consumer.settings import ReconcilerSettings
from idempotent_consumer.workflow.claim import ClaimUnavailable
from tests.handler.operations import Shop
from tests.handler.support import UPDATE, Cloud, Context, client_error, record
from tests.handler.workflow_support import Workflow
from tests.plan.support import Plan

Metric = tuple[str, str, tuple[tuple[str, str], ...]]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with mock_aws():
        yield Cloud(Clients.create(), pending_index=True)


@pytest.fixture
def published(pipeline: Plan, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> dict[Metric, str]:
    """The metrics of one call of the worker and one run of the reconciler, with their units.

    Both are named as the planned consumer; tests/e2e sees that the name gets into their environment.
    """
    (name,) = pipeline.values("module.minimal.module.queue.aws_sqs_queue.intake", "name")
    cloud.deliver(record("m-1", {"id": "o-1"}), CONSUMER_NAME=name)
    environment = cloud.environment(CONSUMER_NAME=name, RECONCILER_THRESHOLD_SECONDS="900")
    ScheduledReconciler(ReconcilerSettings.from_environment(environment), cloud.clients).handle(Context(cloud))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    return {metric: unit for line in lines for metric, unit in metrics_of(line)}


@pytest.fixture
def published_by_operation(
    operations: Plan, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[Metric, str]:
    """The metrics of one call of an operation's worker, with their units."""
    (name,) = operations.values("module.minimal.module.queue.aws_sqs_queue.intake", "name")
    Shop(cloud, monkeypatch, CONSUMER_NAME=name).deliver()
    (line,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    return dict(metrics_of(line))


@pytest.fixture
def published_by_workflow(
    workflow_alarms: Plan, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[Metric, str], dict[Metric, str]]:
    """The metrics of one call of a workflow's starter, and those of two of its guard: one of them is refused."""
    (name,) = workflow_alarms.values("module.minimal.module.queue.aws_sqs_queue.intake", "name")
    workflow = Workflow(cloud, monkeypatch, CONSUMER_NAME=name)
    workflow.deliver(record("m-1", {"id": "o-1"}))
    workflow.ask(key="o-1")
    cloud.on(UPDATE, raises=client_error("AccessDeniedException", UPDATE))
    with pytest.raises(ClaimUnavailable):
        workflow.ask(key="o-2")
    starter, *guard = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert len(guard) == 2
    return dict(metrics_of(starter)), {metric: unit for line in guard for metric, unit in metrics_of(line)}


def custom_alarms(planned: Plan) -> dict[str, dict[str, Any]]:
    """The alarms of the shortest block that are on metrics of the code's own."""
    prefix = "module.minimal.module.alarms.aws_cloudwatch_metric_alarm.consumer"
    return {
        name.split('"')[1]: planned.after(name)
        for name in planned.created()
        if name.startswith(prefix) and planned.after(name)["namespace"] == "IdempotentConsumer"
    }


def test_each_alarm_on_a_custom_metric_is_on_one_that_is_published(
    pipeline: Plan, published: Mapping[Metric, str]
) -> None:
    alarms = custom_alarms(pipeline)
    assert sorted(alarms) == ["conflicts", "misconfigured", "rejected", "stale-pending"]
    assert_published(alarms, published)


def test_so_is_each_alarm_of_an_operation(operations: Plan, published_by_operation: Mapping[Metric, str]) -> None:
    alarms = custom_alarms(operations)
    assert sorted(alarms) == ["conflicts", "failed", "misconfigured", "outcome-unknown", "rejected"]
    assert_published(alarms, published_by_operation)


def test_so_is_each_alarm_of_a_workflow_by_the_starter_alone(
    workflow_alarms: Plan, published_by_workflow: tuple[Mapping[Metric, str], Mapping[Metric, str]]
) -> None:
    alarms = custom_alarms(workflow_alarms)
    assert sorted(alarms) == ["misconfigured", "rejected"]
    starter, guard = published_by_workflow
    assert_published(alarms, starter)
    assert_published({"misconfigured": alarms["misconfigured"]}, guard)


def assert_published(alarms: Mapping[str, Mapping[str, Any]], published: Mapping[Metric, str]) -> None:
    for alarm in alarms.values():
        dimensions = tuple(sorted(alarm["dimensions"].items()))
        assert (alarm["namespace"], alarm["metric_name"], dimensions) in published


def test_the_lines_give_each_metric_that_the_readme_explains(published: Mapping[Metric, str]) -> None:
    assert {name: unit for (_, name, _), unit in published.items()} == {
        "Applied": "Count",
        "Blocked": "Count",
        "Conflicts": "Count",
        "Duplicates": "Count",
        "EventAge": "Milliseconds",
        "Ignored": "Count",
        "Misconfigured": "Count",
        "OldestPendingAge": "Milliseconds",
        "ReceiveCount": "Count",
        "Reconciled": "Count",
        "Rejected": "Count",
        "Resumed": "Count",
        "Retries": "Count",
        "StalePending": "Count",
        "Superseded": "Count",
    }


def test_the_line_of_an_operation_gives_each_metric_that_its_dashboard_draws(
    published_by_operation: Mapping[Metric, str],
) -> None:
    assert {name: unit for (_, name, _), unit in published_by_operation.items()} == {
        "Blocked": "Count",
        "Claimed": "Count",
        "Completed": "Count",
        "Conflicts": "Count",
        "Duplicates": "Count",
        "EventAge": "Milliseconds",
        "Failed": "Count",
        "Ignored": "Count",
        "InProgressStale": "Count",
        "Misconfigured": "Count",
        "OutcomeUnknown": "Count",
        "ReceiveCount": "Count",
        "Rejected": "Count",
        "Retries": "Count",
    }


def test_the_lines_of_a_workflow_give_each_metric_that_its_dashboard_draws(
    published_by_workflow: tuple[Mapping[Metric, str], Mapping[Metric, str]],
) -> None:
    starter, guard = ({name: unit for (_, name, _), unit in published.items()} for published in published_by_workflow)
    assert starter == {
        "Conflicts": "Count",
        "Duplicates": "Count",
        "EventAge": "Milliseconds",
        "Ignored": "Count",
        "Misconfigured": "Count",
        "ReceiveCount": "Count",
        "Rejected": "Count",
        "Retries": "Count",
        "Started": "Count",
    }
    assert guard == {"Claimed": "Count", "Conflicts": "Count", "Misconfigured": "Count", "Skipped": "Count"}


def metrics_of(line: Mapping[str, Any]) -> Iterator[tuple[Metric, str]]:
    """What CloudWatch makes of a line in the embedded metric format."""
    for group in line["_aws"]["CloudWatchMetrics"]:
        for names in group["Dimensions"]:
            dimensions = tuple(sorted((name, line[name]) for name in names))
            for metric in group["Metrics"]:
                assert metric["Name"] in line
                yield (group["Namespace"], metric["Name"], dimensions), metric["Unit"]
