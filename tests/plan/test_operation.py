"""What modules/operation makes of its variables, followed down into its parts."""

from __future__ import annotations

import pytest

from tests.plan.support import Plan

KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ALARMS = (
    "conflicts",
    "dead-letters",
    "duration",
    "errors",
    "failed",
    "misconfigured",
    "oldest-message",
    "outcome-unknown",
    "recursion",
    "rejected",
    "throttles",
)
MINIMAL = [
    "module.alarms.aws_cloudwatch_composite_alarm.at_risk",
    "module.alarms.aws_cloudwatch_dashboard.consumer[0]",
    *(f'module.alarms.aws_cloudwatch_metric_alarm.consumer["{name}"]' for name in ALARMS),
    "module.function.aws_cloudwatch_log_group.worker",
    "module.function.aws_iam_role.worker",
    "module.function.aws_iam_role_policy.worker",
    "module.function.aws_lambda_event_source_mapping.intake[0]",
    "module.function.aws_lambda_function.worker",
    "module.queue.aws_sqs_queue.dead_letter",
    "module.queue.aws_sqs_queue.intake",
    "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
    "module.queue.aws_sqs_queue_redrive_policy.intake",
    "module.tables.aws_dynamodb_table.ledger",
]


def test_the_shortest_block_creates_twenty_three_resources(operations: Plan) -> None:
    assert operations.created("module.minimal") == MINIMAL


def test_each_option_adds_or_leaves_out_what_it_names(operations: Plan) -> None:
    created = operations.created("module.full")
    assert sorted(set(created) - set(MINIMAL)) == [
        "module.function.aws_iam_role_policy.additional[0]",
        "module.function.aws_lambda_alias.live[0]",
        "module.queue.aws_sqs_queue_policy.intake[0]",
    ]
    assert sorted(set(MINIMAL) - set(created)) == ["module.alarms.aws_cloudwatch_dashboard.consumer[0]"]


def test_no_table_of_business_rows_is_read_either(operations: Plan) -> None:
    read = [change["address"] for change in operations.json["resource_changes"] if change["mode"] == "data"]
    assert not any("aws_dynamodb_table" in address for address in read)


def test_the_function_is_as_configured(operations: Plan) -> None:
    names = ("function_name", "architectures", "handler", "memory_size", "runtime", "timeout", "publish")
    minimal, full = (f"module.{name}.module.function.aws_lambda_function.worker" for name in ("minimal", "full"))
    assert operations.values(minimal, *names) == (
        "notices-worker",
        ["arm64"],
        "idempotent_consumer.http_operation.handler",
        512,
        "python3.13",
        60,
        False,
    )
    assert operations.values(full, *names) == (
        "charges-worker",
        ["x86_64"],
        "mine.handler",
        1024,
        "python3.12",
        120,
        True,
    )


@pytest.mark.case("T01", "T02", "O03")
def test_the_queues_are_as_configured(operations: Plan) -> None:
    names = ("name", "fifo_queue", "message_retention_seconds", "visibility_timeout_seconds")
    minimal, full = (f"module.{name}.module.queue.aws_sqs_queue" for name in ("minimal", "full"))
    assert operations.values(f"{minimal}.intake", *names) == ("notices", False, 345600, 360)
    assert operations.values(f"{minimal}.dead_letter", *names[:3]) == ("notices-dlq", False, 1209600)
    assert operations.values(f"{full}.intake", *names) == ("charges.fifo", True, 345600, 720)
    assert operations.values(f"{full}.dead_letter", *names[:3]) == ("charges-dlq.fifo", True, 1209600)


def test_a_batch_is_small_since_its_effects_run_one_after_the_other(operations: Plan) -> None:
    mapping = "module.{}.module.function.aws_lambda_event_source_mapping.intake[0]"
    names = ("batch_size", "maximum_batching_window_in_seconds", "function_response_types", "scaling_config")
    assert operations.values(mapping.format("minimal"), *names) == (4, None, ["ReportBatchItemFailures"], [])
    assert operations.values(mapping.format("full"), *names[:1]) == (2,)


@pytest.mark.case("T28", "T35")
def test_the_ledger_lists_what_is_not_finished_and_forgets_what_is(operations: Plan) -> None:
    ledger = "module.minimal.module.tables.aws_dynamodb_table.ledger"
    (index,) = operations.values(ledger, "global_secondary_index")[0]
    names = ("name", "hash_key", "range_key", "projection_type")
    assert tuple(index[name] for name in names) == ("pending", "pending_shard", "created_at", "KEYS_ONLY")
    assert operations.values(ledger, "name", "hash_key", "ttl", "deletion_protection_enabled") == (
        "notices-processed-events",
        "event_id",
        [{"attribute_name": "ttl", "enabled": True}],
        True,
    )


@pytest.mark.case("T26", "T27", "O01")
def test_the_alarms_have_the_thresholds_given(operations: Plan) -> None:
    def thresholds(module: str) -> dict[str, object]:
        alarm = f"module.{module}.module.alarms.aws_cloudwatch_metric_alarm.consumer"
        return {name: operations.values(f'{alarm}["{name}"]', "threshold")[0] for name in ALARMS}

    assert thresholds("minimal") == dict.fromkeys(ALARMS, 0) | {"duration": 48000, "oldest-message": 3600}
    assert thresholds("full") == dict.fromkeys(ALARMS, 0) | {
        "conflicts": 4,
        "duration": 60000,
        "errors": 2,
        "failed": 6,
        "oldest-message": 120,
        "rejected": 5,
        "throttles": 3,
    }


def test_one_alarm_tells_the_pager_what_is_lost_if_nobody_acts(operations: Plan) -> None:
    alarm = "module.full.module.alarms.aws_cloudwatch_composite_alarm.at_risk"
    assert operations.values(alarm, "alarm_name", "alarm_rule", "alarm_actions") == (
        "charges-events-at-risk",
        'ALARM("charges-dead-letters") OR ALARM("charges-misconfigured") OR ALARM("charges-oldest-message") OR '
        'ALARM("charges-outcome-unknown") OR ALARM("charges-recursion")',
        ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"],
    )


@pytest.mark.case("T37")
def test_one_key_encrypts_all(operations: Plan) -> None:
    full = "module.full.module"
    assert operations.values(f"{full}.queue.aws_sqs_queue.intake", "kms_master_key_id") == (KEY,)
    assert operations.values(f"{full}.queue.aws_sqs_queue.dead_letter", "kms_master_key_id") == (KEY,)
    encryption = operations.values(f"{full}.tables.aws_dynamodb_table.ledger", "server_side_encryption")
    assert encryption == ([{"enabled": True, "kms_key_arn": KEY}],)
    assert operations.values(f"{full}.function.aws_cloudwatch_log_group.worker", "kms_key_id") == (KEY,)
    assert operations.values(f"{full}.function.aws_lambda_function.worker", "kms_key_arn") == (KEY,)


def test_all_that_takes_tags_has_them(operations: Plan) -> None:
    tagged = {
        address: operations.after(f"module.full.{address}")["tags"]
        for address in operations.created("module.full")
        if "tags" in operations.after(f"module.full.{address}")
    }
    assert len(tagged) == 19
    assert set(map(str, tagged.values())) == {"{'team': 'payments'}"}


def test_the_functions_variables_are_the_callers_and_over_them_the_settings(operations: Plan) -> None:
    call = operations.configuration("minimal")["module_calls"]["function"]["expressions"]
    assert call["environment"]["references"] == ["var.function.environment", "var.function", "local.settings"]
