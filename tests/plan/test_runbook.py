"""The runbook has a section for each alarm, and its commands exist."""

from __future__ import annotations

import re
import shlex

import botocore.session
import click
import pytest
from botocore import xform_name

from idempotent_consumer_cli.main import main
from local.terraform import CHECKOUT
from tests.plan.support import Plan

RUNBOOK = (CHECKOUT / "docs" / "runbook.md").read_text()
COMMANDS = [line for line in RUNBOOK.splitlines() if line.startswith("idempotent-consumer ")]
AWS_COMMANDS = [line for line in RUNBOOK.splitlines() if line.startswith("aws ")]


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


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_a_command_has_the_options_that_the_runbook_gives_it(line: str) -> None:
    _, name, *options = shlex.split(line)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, options)


@pytest.mark.parametrize("line", AWS_COMMANDS)
@pytest.mark.case("O10")
def test_an_aws_command_has_the_parameters_that_the_service_takes(line: str) -> None:
    _, service, operation, *options = shlex.split(line)
    model = botocore.session.get_session().get_service_model(service)
    operations = {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}
    members = operations[operation].input_shape.members
    assert {option for option in options if option.startswith("--")} <= {f"--{xform_name(m, '-')}" for m in members}
