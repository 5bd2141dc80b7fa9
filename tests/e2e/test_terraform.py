"""The state that Terraform leaves."""

from __future__ import annotations

import re

import pytest

from local.emulator import Emulator
from local.waiting import wait_for
from tests.e2e.conftest import Deployment
from tests.e2e.pipeline import Pipeline, now_ms

# The emulator answers alarms with fewer fields than it was given.
ALARM = re.compile(r"\.aws_cloudwatch_(metric|composite)_alarm\.\w+(\[\S+\])?$")


@pytest.mark.case("T08", "T10")
def test_a_plan_after_apply_changes_nothing_but_alarms(deployment: Deployment) -> None:
    others = {address: actions for address, actions in deployment.changes.items() if not ALARM.search(address)}
    assert others == {}


def test_the_alarms_look_where_the_functions_publish(standard: Pipeline, emulator: Emulator, event_id: str) -> None:
    since = now_ms()
    standard.send({"id": event_id})
    standard.wait_until_sent(event_id)
    wait_for(lambda: standard.reconciler_metrics(since), "a run of the reconciler", seconds=120)
    lines = [standard.metrics(since)[0], standard.reconciler_metrics(since)[0]]
    published = {(name, line["Consumer"]) for line in lines for name in line}
    alarms = emulator.client("cloudwatch").describe_alarms(AlarmNamePrefix="e2e-standard-")["MetricAlarms"]
    custom = [alarm for alarm in alarms if alarm["Namespace"] == "IdempotentConsumer"]
    assert sorted(alarm["MetricName"] for alarm in custom) == ["Conflicts", "Misconfigured", "Rejected", "StalePending"]
    for alarm in custom:
        assert alarm["Dimensions"] == [{"Name": "Consumer", "Value": "e2e-standard"}]
        assert (alarm["MetricName"], "e2e-standard") in published


def test_destroy_leaves_nothing(destroyed: Deployment, emulator: Emulator) -> None:
    assert destroyed.root.resources() == []
    assert emulator.client("sqs").list_queues(QueueNamePrefix="e2e-").get("QueueUrls", []) == []
    assert emulator.client("dynamodb").list_tables()["TableNames"] == []
    assert emulator.client("sns").list_topics()["Topics"] == []
    assert emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []
