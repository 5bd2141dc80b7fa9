"""The runbook has a section for each alarm. That its commands exist: tests/docs/test_shell_blocks.py."""

from __future__ import annotations

import re

from local.terraform import CHECKOUT
from tests.plan.support import Plan

RUNBOOK = (CHECKOUT / "docs" / "runbook.md").read_text()


def alarms_of(planned: Plan) -> set[str]:
    prefix = "module.minimal.module.alarms.aws_cloudwatch_metric_alarm.consumer"
    return {name.split('"')[1] for name in planned.created() if name.startswith(prefix)}


def test_each_alarm_has_its_section_with_three_commands(
    pipeline: Plan, operations: Plan, workflow_alarms: Plan
) -> None:
    alarms = alarms_of(pipeline) | alarms_of(operations) | alarms_of(workflow_alarms)
    sections = dict(re.findall(r"^## ([a-z-]+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
    assert sections.keys() == alarms | {"events-at-risk"}
    assert {name: text.count("\nidempotent-consumer ") for name, text in sections.items()} == dict.fromkeys(sections, 3)
