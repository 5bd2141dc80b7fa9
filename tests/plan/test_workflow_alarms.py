"""What modules/workflow makes of its variable `alarms`."""

from __future__ import annotations

import pytest

from tests.plan.support import Plan

EXECUTIONS = ("executions-aborted", "executions-failed", "executions-throttled", "executions-timed-out")
ALARMS = (
    "dead-letters",
    "duration",
    "errors",
    *EXECUTIONS,
    "failures-undelivered",
    "guard-errors",
    "misconfigured",
    "oldest-message",
    "recursion",
    "rejected",
    "throttles",
)
ALARM = "module.alarms.aws_cloudwatch_metric_alarm.consumer"


def alarms(planned: Plan, module: str) -> list[str]:
    created = planned.created(f"module.{module}")
    return [address.split('"')[1] for address in created if address.startswith(ALARM)]


def test_a_workflow_has_alarms_of_its_executions_and_none_of_conflicts(workflow_alarms: Plan) -> None:
    assert alarms(workflow_alarms, "minimal") == sorted(ALARMS)
    assert alarms(workflow_alarms, "full") == sorted(ALARMS)


def test_a_guard_that_is_no_function_has_no_alarm(workflow_alarms: Plan) -> None:
    assert alarms(workflow_alarms, "direct") == sorted({*ALARMS} - {"guard-errors"})


def test_each_alarm_looks_at_the_workflows_own_resources(workflow_alarms: Plan) -> None:
    def dimensions(name: str) -> object:
        return workflow_alarms.values(f'module.minimal.{ALARM}["{name}"]', "dimensions")[0]

    assert {name: dimensions(name) for name in ALARMS if name not in EXECUTIONS} == {
        "dead-letters": {"QueueName": "ingestion-dlq"},
        "duration": {"FunctionName": "ingestion-worker"},
        "errors": {"FunctionName": "ingestion-worker"},
        "failures-undelivered": {"RuleName": "ingestion-failures"},
        "guard-errors": {"FunctionName": "ingestion-guard"},
        "misconfigured": {"Consumer": "ingestion"},
        "oldest-message": {"QueueName": "ingestion"},
        "recursion": {"FunctionName": "ingestion-worker"},
        "rejected": {"Consumer": "ingestion"},
        "throttles": {"FunctionName": "ingestion-worker"},
    }
    call = workflow_alarms.configuration("minimal")["module_calls"]["alarms"]["expressions"]["workflow"]
    assert "aws_sfn_state_machine.workflow.arn" in call["references"]
    for name in EXECUTIONS:
        assert workflow_alarms.after_unknown(f'module.minimal.{ALARM}["{name}"]')["dimensions"] is True


@pytest.mark.case("T26", "T27", "O01")
def test_the_alarms_have_the_thresholds_given(workflow_alarms: Plan) -> None:
    def thresholds(module: str) -> dict[str, object]:
        return {name: workflow_alarms.values(f'module.{module}.{ALARM}["{name}"]', "threshold")[0] for name in ALARMS}

    assert thresholds("minimal") == dict.fromkeys(ALARMS, 0) | {"duration": 24000, "oldest-message": 3600}
    assert thresholds("full") == dict.fromkeys(ALARMS, 0) | {
        "duration": 30000,
        "errors": 2,
        "executions-failed": 4,
        "executions-throttled": 6,
        "guard-errors": 2,
        "oldest-message": 120,
        "rejected": 5,
        "throttles": 3,
    }


def test_one_alarm_tells_the_pager_what_is_lost_if_nobody_acts(workflow_alarms: Plan) -> None:
    alarm = "module.full.module.alarms.aws_cloudwatch_composite_alarm.at_risk"
    at_risk = (
        "dead-letters",
        "executions-aborted",
        "executions-timed-out",
        "failures-undelivered",
        "misconfigured",
        "oldest-message",
        "recursion",
    )
    assert workflow_alarms.values(alarm, "alarm_name", "alarm_rule", "alarm_actions") == (
        "ingestion-events-at-risk",
        " OR ".join(f'ALARM("ingestion-{name}")' for name in at_risk),
        ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"],
    )


def test_each_alarm_tells_the_actions_given_and_has_the_tags(workflow_alarms: Plan) -> None:
    for name in ALARMS:
        assert workflow_alarms.values(f'module.full.{ALARM}["{name}"]', "alarm_actions", "ok_actions", "tags") == (
            ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:chat"],
            ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:chat"],
            {"team": "ingestion"},
        )


def test_the_dashboard_can_be_left_out(workflow_alarms: Plan) -> None:
    dashboard = "module.alarms.aws_cloudwatch_dashboard.consumer[0]"
    assert dashboard in workflow_alarms.created("module.minimal")
    assert dashboard not in workflow_alarms.created("module.full")
