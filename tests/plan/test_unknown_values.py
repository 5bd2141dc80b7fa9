"""A caller that makes the key, topics, tables and bucket in the same plan, with the real provider."""

from __future__ import annotations

import pytest

from tests.plan.support import Plan, plan


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan("tests/fixtures/unknown_values", tmp_path_factory.mktemp("fresh"))


@pytest.mark.case("T11")
def test_nothing_known_is_no_obstacle_to_a_plan(fresh: Plan) -> None:
    assert fresh.created("module.orders") == [
        "module.alarms.aws_cloudwatch_composite_alarm.at_risk",
        "module.alarms.aws_cloudwatch_dashboard.consumer[0]",
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["conflicts"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["dead-letters"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["duration"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["errors"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["misconfigured"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["oldest-message"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["reconciler-errors"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["reconciler-silent"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["recursion"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["rejected"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["stale-pending"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["throttles"]',
        "module.function.aws_cloudwatch_log_group.worker",
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.additional[0]",
        "module.function.aws_iam_role_policy.worker",
        "module.function.aws_lambda_event_source_mapping.intake[0]",
        "module.function.aws_lambda_function.worker",
        "module.queue.aws_sqs_queue.dead_letter",
        "module.queue.aws_sqs_queue.intake",
        "module.queue.aws_sqs_queue_policy.intake[0]",
        "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
        "module.queue.aws_sqs_queue_redrive_policy.intake",
        "module.reconciler[0].aws_iam_role.schedule",
        "module.reconciler[0].aws_iam_role_policy.schedule",
        "module.reconciler[0].aws_lambda_function_event_invoke_config.reconciler",
        "module.reconciler[0].aws_scheduler_schedule.reconciler",
        "module.reconciler[0].module.function.aws_cloudwatch_log_group.worker",
        "module.reconciler[0].module.function.aws_iam_role.worker",
        "module.reconciler[0].module.function.aws_iam_role_policy.additional[0]",
        "module.reconciler[0].module.function.aws_iam_role_policy.worker",
        "module.reconciler[0].module.function.aws_lambda_function.worker",
        "module.tables.aws_dynamodb_table.ledger",
    ]


@pytest.mark.case("T11")
def test_nothing_known_is_no_obstacle_to_an_operation(fresh: Plan) -> None:
    assert fresh.created("module.charges") == [
        "module.alarms.aws_cloudwatch_composite_alarm.at_risk",
        "module.alarms.aws_cloudwatch_dashboard.consumer[0]",
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["conflicts"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["dead-letters"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["duration"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["errors"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["failed"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["misconfigured"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["oldest-message"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["outcome-unknown"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["recursion"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["rejected"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["throttles"]',
        "module.function.aws_cloudwatch_log_group.worker",
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.additional[0]",
        "module.function.aws_iam_role_policy.worker",
        "module.function.aws_lambda_event_source_mapping.intake[0]",
        "module.function.aws_lambda_function.worker",
        "module.queue.aws_sqs_queue.dead_letter",
        "module.queue.aws_sqs_queue.intake",
        "module.queue.aws_sqs_queue_policy.intake[0]",
        "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
        "module.queue.aws_sqs_queue_redrive_policy.intake",
        "module.tables.aws_dynamodb_table.ledger",
    ]


# Without their alarms, which are as the others'.
WORKFLOW = [
    "aws_cloudwatch_event_rule.failure",
    "aws_cloudwatch_event_target.failure",
    "aws_cloudwatch_log_group.workflow",
    "aws_dynamodb_table.idempotency",
    "aws_iam_role.workflow",
    "aws_iam_role_policy.workflow",
    "aws_sfn_state_machine.workflow",
    "aws_sqs_queue_policy.dead_letter",
    "module.queue.aws_sqs_queue.dead_letter",
    "module.queue.aws_sqs_queue.intake",
    "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
    "module.queue.aws_sqs_queue_redrive_policy.intake",
    "module.starter.aws_cloudwatch_log_group.worker",
    "module.starter.aws_iam_role.worker",
    "module.starter.aws_iam_role_policy.worker",
    "module.starter.aws_lambda_event_source_mapping.intake[0]",
    "module.starter.aws_lambda_function.worker",
]


@pytest.mark.case("T11")
@pytest.mark.parametrize(
    ("workflow", "more"),
    [
        (
            "ingestion",
            [
                "module.guard[0].aws_cloudwatch_log_group.worker",
                "module.guard[0].aws_iam_role.worker",
                "module.guard[0].aws_iam_role_policy.worker",
                "module.guard[0].aws_lambda_function.worker",
                "module.queue.aws_sqs_queue_policy.intake[0]",
            ],
        ),
        ("reports", ["aws_iam_role_policy.effect[0]"]),
    ],
)
def test_nothing_known_is_no_obstacle_to_a_workflow(fresh: Plan, workflow: str, more: list[str]) -> None:
    created = [address for address in fresh.created(f"module.{workflow}") if not address.startswith("module.alarms.")]
    assert created == sorted([*WORKFLOW, *more])


def test_a_business_table_is_made_although_its_name_is_not_known_yet(fresh: Plan) -> None:
    assert fresh.created("module.tables") == ["aws_dynamodb_table.business[0]", "aws_dynamodb_table.ledger"]
    assert fresh.after_unknown("module.tables.aws_dynamodb_table.business[0]")["name"] is True


def test_the_values_really_are_unknown(fresh: Plan) -> None:
    assert fresh.after_unknown("module.orders.module.queue.aws_sqs_queue.intake")["kms_master_key_id"] is True
    assert fresh.after_unknown("module.orders.module.function.aws_iam_role.worker")["permissions_boundary"] is True
    assert fresh.after_unknown("module.orders.module.alarms.aws_cloudwatch_dashboard.consumer[0]")["dashboard_body"]
    assert fresh.after_unknown("aws_dynamodb_table.stock")["arn"] is True
    reconciler = "module.orders.module.reconciler[0].module.function"
    assert fresh.after_unknown(f"{reconciler}.aws_cloudwatch_log_group.worker")["kms_key_id"] is True
    assert fresh.after_unknown(f"{reconciler}.aws_iam_role_policy.additional[0]")["policy"] is True
    assert fresh.after_unknown("module.orders.module.tables.data.aws_dynamodb_table.business[0]")["name"] is True
    assert fresh.after_unknown("aws_secretsmanager_secret.token")["arn"] is True
    worker = fresh.after_unknown("module.charges.module.function.aws_lambda_function.worker")
    assert worker["environment"] == [{"variables": True}]
    assert fresh.after_unknown("aws_lambda_function.charge")["arn"] is True
    for workflow in ("ingestion", "reports"):
        assert fresh.after_unknown(f"module.{workflow}.aws_sfn_state_machine.workflow")["definition"] is True
    assert fresh.after_unknown("module.reports.aws_iam_role_policy.effect[0]")["policy"] is True
