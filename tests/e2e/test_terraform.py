"""The state that Terraform leaves."""

from __future__ import annotations

import re

import pytest

from local.emulator import Emulator
from tests.e2e.conftest import Deployment

# The emulator answers alarms with fewer fields than it was given.
_ALARM = re.compile(r"\.aws_cloudwatch_(metric|composite)_alarm\.\w+(\[\S+\])?$")


@pytest.mark.case("T08", "T10")
def test_a_plan_after_apply_changes_nothing_but_alarms(deployment: Deployment) -> None:
    others = {address: actions for address, actions in deployment.changes.items() if not _ALARM.search(address)}
    assert others == {}


def test_destroy_leaves_nothing(destroyed: Deployment, emulator: Emulator) -> None:
    assert destroyed.root.resources() == []
    assert emulator.client("sqs").list_queues(QueueNamePrefix="e2e-").get("QueueUrls", []) == []
    assert emulator.client("dynamodb").list_tables()["TableNames"] == []
    assert emulator.client("sns").list_topics()["Topics"] == []
    assert emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []
