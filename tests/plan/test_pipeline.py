"""What the root module makes of its variables, followed down into its parts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan.support import Plan

ALARMS = (
    "conflicts",
    "dead-letters",
    "duration",
    "errors",
    "misconfigured",
    "oldest-message",
    "reconciler-errors",
    "reconciler-silent",
    "recursion",
    "rejected",
    "stale-pending",
    "throttles",
)
KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
FUNCTIONS = [("function",), ("reconciler", "function")]
MINIMAL = [
    "aws_sns_topic.notifications[0]",
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
    "module.function.aws_iam_role_policy.worker",
    "module.function.aws_lambda_event_source_mapping.intake[0]",
    "module.function.aws_lambda_function.worker",
    "module.queue.aws_sqs_queue.dead_letter",
    "module.queue.aws_sqs_queue.intake",
    "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
    "module.queue.aws_sqs_queue_redrive_policy.intake",
    "module.reconciler[0].aws_iam_role.schedule",
    "module.reconciler[0].aws_iam_role_policy.schedule",
    "module.reconciler[0].aws_lambda_function_event_invoke_config.reconciler",
    "module.reconciler[0].aws_scheduler_schedule.reconciler",
    "module.reconciler[0].module.function.aws_cloudwatch_log_group.worker",
    "module.reconciler[0].module.function.aws_iam_role.worker",
    "module.reconciler[0].module.function.aws_iam_role_policy.worker",
    "module.reconciler[0].module.function.aws_lambda_function.worker",
    "module.tables.aws_dynamodb_table.business[0]",
    "module.tables.aws_dynamodb_table.ledger",
]


def test_the_minimal_block_creates_thirty_four_resources(pipeline: Plan) -> None:
    assert pipeline.created("module.minimal") == MINIMAL


def test_each_option_adds_or_leaves_out_what_it_names(pipeline: Plan) -> None:
    def difference(module: str) -> tuple[list[str], list[str]]:
        created = pipeline.created(f"module.{module}")
        return sorted(set(created) - set(MINIMAL)), sorted(set(MINIMAL) - set(created))

    assert difference("fifo") == (["module.queue.aws_sqs_queue_policy.intake[0]"], [])
    assert difference("no_topic") == ([], ["aws_sns_topic.notifications[0]"])
    assert difference("existing_topic") == ([], ["aws_sns_topic.notifications[0]"])
    assert difference("full") == (
        [
            "module.function.aws_iam_role_policy.additional[0]",
            "module.function.aws_lambda_alias.live[0]",
            "module.queue.aws_sqs_queue_policy.intake[0]",
            "module.reconciler[0].module.function.aws_iam_role_policy.additional[0]",
        ],
        [],
    )


def test_without_the_reconciler_nothing_of_it_is_left(pipeline: Plan) -> None:
    created = pipeline.created("module.no_reconciler")
    assert sorted(set(MINIMAL) - set(created)) == [
        "module.alarms.aws_cloudwatch_dashboard.consumer[0]",  # switched off as well
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["reconciler-errors"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["reconciler-silent"]',
        'module.alarms.aws_cloudwatch_metric_alarm.consumer["stale-pending"]',
        *(address for address in MINIMAL if address.startswith("module.reconciler[0].")),
    ]
    ledger = "module.no_reconciler.module.tables.aws_dynamodb_table.ledger"
    assert pipeline.values(ledger, "attribute", "global_secondary_index") == ([{"name": "event_id", "type": "S"}], [])


@pytest.mark.case("T06")
def test_a_fifo_consumer_is_fifo_throughout(pipeline: Plan) -> None:
    queue = "module.fifo.module.queue.aws_sqs_queue"
    assert pipeline.values(f"{queue}.intake", "name", "fifo_queue") == ("payments.fifo", True)
    assert pipeline.values(f"{queue}.dead_letter", "name", "fifo_queue") == ("payments-dlq.fifo", True)
    assert pipeline.values("module.fifo.aws_sns_topic.notifications[0]", "name", "fifo_topic") == (
        "payments-notifications.fifo",
        True,
    )


@pytest.mark.case("T01", "T02", "O03")
def test_the_queues_are_as_configured(pipeline: Plan) -> None:
    times = ("message_retention_seconds", "visibility_timeout_seconds")
    assert pipeline.values("module.minimal.module.queue.aws_sqs_queue.intake", *times) == (345600, 180)
    assert pipeline.values("module.minimal.module.queue.aws_sqs_queue.dead_letter", times[0]) == (1209600,)
    assert pipeline.values("module.full.module.queue.aws_sqs_queue.intake", *times) == (216000, 400)
    assert pipeline.values("module.full.module.queue.aws_sqs_queue.dead_letter", times[0]) == (864000,)


@pytest.mark.case("T31")
def test_the_mapping_is_as_configured_and_a_window_that_is_not_set_is_left_out(pipeline: Plan) -> None:
    def mapping(module: str) -> tuple[object, ...]:
        return pipeline.values(
            f"module.{module}.module.function.aws_lambda_event_source_mapping.intake[0]",
            "batch_size",
            "maximum_batching_window_in_seconds",
            "function_response_types",
            "enabled",
            "scaling_config",
        )

    assert mapping("minimal") == (10, None, ["ReportBatchItemFailures"], True, [])
    assert mapping("fifo") == (10, None, ["ReportBatchItemFailures"], True, [])
    assert mapping("full") == (500, 20, ["ReportBatchItemFailures"], False, [{"maximum_concurrency": 5}])


@pytest.mark.case("C71")
def test_the_mapping_has_no_filter_which_would_discard_messages_without_a_trace(pipeline: Plan) -> None:
    filters = [
        pipeline.values(f"module.{module}.module.function.aws_lambda_event_source_mapping.intake[0]", "filter_criteria")
        for module in ("minimal", "fifo", "no_topic", "no_reconciler", "existing_topic", "full")
    ]
    assert filters == 6 * [([],)]


def test_the_function_is_as_configured(pipeline: Plan) -> None:
    names = ("function_name", "architectures", "handler", "layers", "memory_size", "runtime", "timeout")
    more = ("publish", "snap_start", "reserved_concurrent_executions", "tracing_config")
    minimal = "module.minimal.module.function.aws_lambda_function.worker"
    full = "module.full.module.function.aws_lambda_function.worker"
    assert pipeline.values(minimal, *names) == (
        "orders-worker",
        ["arm64"],
        "idempotent_consumer.handler.handler",
        [],
        512,
        "python3.13",
        30,
    )
    assert pipeline.values(minimal, *more) == (False, [], -1, [{"mode": "Active"}])
    assert pipeline.values(full, *names) == (
        "uploads-worker",
        ["x86_64"],
        "mine.handler",
        ["arn:aws-us-gov:lambda:us-gov-west-1:111122223333:layer:tools:3"],
        1024,
        "python3.12",
        60,
    )
    assert pipeline.values(full, *more) == (True, [{"apply_on": "PublishedVersions"}], 5, [{"mode": "Active"}])


def test_the_reconciler_is_as_configured_and_otherwise_as_the_worker(pipeline: Plan) -> None:
    names = ("function_name", "architectures", "handler", "memory_size", "runtime", "timeout")
    more = ("layers", "kms_key_arn", "tracing_config")
    minimal = "module.minimal.module.reconciler[0].module.function.aws_lambda_function.worker"
    full = "module.full.module.reconciler[0].module.function.aws_lambda_function.worker"
    handler = "idempotent_consumer.reconciler.handler"
    assert pipeline.values(minimal, *names) == ("orders-reconciler", ["arm64"], handler, 512, "python3.13", 60)
    assert pipeline.values(minimal, *more) == ([], None, [{"mode": "Active"}])
    assert pipeline.values(full, *names) == ("uploads-reconciler", ["x86_64"], handler, 256, "python3.12", 120)
    assert pipeline.values(full, *more) == ([], KEY, [{"mode": "Active"}])
    for function in (minimal, full):
        assert pipeline.values(function, "filename")[0].endswith("/lambda/dist/idempotent-consumer.zip")
    assert pipeline.values(full, "vpc_config")[0][0]["subnet_ids"] == ["subnet-1", "subnet-2"]
    log = full.replace("aws_lambda_function", "aws_cloudwatch_log_group")
    assert pipeline.values(log, "name", "retention_in_days", "kms_key_id") == ("/aws/lambda/uploads-reconciler", 7, KEY)


def test_the_reconciler_runs_on_a_schedule_that_takes_no_second_try(pipeline: Plan) -> None:
    def schedule(module: str) -> tuple[object, ...]:
        address = f"module.{module}.module.reconciler[0].aws_scheduler_schedule.reconciler"
        name, expression, window = pipeline.values(address, "name", "schedule_expression", "flexible_time_window")
        target = pipeline.values(address, "target")[0][0]
        return name, expression, window[0]["mode"], target["retry_policy"][0]["maximum_retry_attempts"]

    assert schedule("minimal") == ("orders-reconciler", "rate(5 minutes)", "OFF", 0)
    assert schedule("full") == ("uploads-reconciler", "rate(60 minutes)", "OFF", 0)


def test_the_schedule_waits_for_the_rights_of_both_roles(pipeline: Plan) -> None:
    assert waits_for(pipeline, ("minimal", "reconciler"), "aws_scheduler_schedule.reconciler") == [
        "aws_iam_role_policy.schedule",
        "aws_lambda_function_event_invoke_config.reconciler",
        "module.function",
    ]


def test_pending_rows_are_found_by_an_index_of_their_own(pipeline: Plan) -> None:
    ledger = "module.minimal.module.tables.aws_dynamodb_table.ledger"
    attributes, indexes = pipeline.values(ledger, "attribute", "global_secondary_index")
    assert attributes == [
        {"name": "created_at", "type": "N"},
        {"name": "event_id", "type": "S"},
        {"name": "pending_shard", "type": "S"},
    ]
    names = ("name", "hash_key", "range_key", "projection_type")
    assert [tuple(index[name] for name in names) for index in indexes] == [
        ("pending", "pending_shard", "created_at", "KEYS_ONLY")
    ]


@pytest.mark.case("T35")
def test_the_tables_are_protected_unless_told_otherwise(pipeline: Plan) -> None:
    for table in ("ledger", "business[0]"):
        minimal = f"module.minimal.module.tables.aws_dynamodb_table.{table}"
        full = f"module.full.module.tables.aws_dynamodb_table.{table}"
        assert pipeline.values(minimal, "deletion_protection_enabled", "point_in_time_recovery") == (
            True,
            [{"enabled": True}],
        )
        assert pipeline.values(full, "deletion_protection_enabled") == (False,)


@pytest.mark.case("T28")
def test_rows_of_the_ledger_expire_by_an_attribute_that_is_no_variable(pipeline: Plan) -> None:
    ledgers = [f"module.{module}.module.tables.aws_dynamodb_table.ledger" for module in ("minimal", "full")]
    assert [pipeline.values(ledger, "ttl")[0] for ledger in ledgers] == 2 * [
        [{"attribute_name": "ttl", "enabled": True}]
    ]


def test_the_business_table_has_the_keys_given(pipeline: Plan) -> None:
    names = ("name", "hash_key", "range_key", "attribute")
    assert pipeline.values("module.minimal.module.tables.aws_dynamodb_table.business[0]", *names) == (
        "order_records",
        "id",
        None,
        [{"name": "id", "type": "S"}],
    )
    assert pipeline.values("module.full.module.tables.aws_dynamodb_table.business[0]", *names) == (
        "upload_records",
        "bucket",
        "size",
        [{"name": "bucket", "type": "S"}, {"name": "size", "type": "N"}],
    )


@pytest.mark.case("T37")
def test_one_key_encrypts_all_and_then_sqs_is_not_told_to_use_its_own(pipeline: Plan) -> None:
    for queue in ("intake", "dead_letter"):
        encryption = ("kms_master_key_id", "sqs_managed_sse_enabled")
        full, minimal = (f"module.{module}.module.queue.aws_sqs_queue.{queue}" for module in ("full", "minimal"))
        assert "sqs_managed_sse_enabled" not in pipeline.after(full)  # left to AWS
        assert pipeline.values(full, "kms_master_key_id") == (KEY,)
        assert pipeline.values(minimal, *encryption) == (None, True)
    for table in ("ledger", "business[0]"):
        address = f"module.full.module.tables.aws_dynamodb_table.{table}"
        assert pipeline.values(address, "server_side_encryption") == ([{"enabled": True, "kms_key_arn": KEY}],)
    assert pipeline.values("module.full.aws_sns_topic.notifications[0]", "kms_master_key_id") == (KEY,)
    assert pipeline.values("module.full.module.function.aws_cloudwatch_log_group.worker", "kms_key_id") == (KEY,)
    assert pipeline.values("module.full.module.function.aws_lambda_function.worker", "kms_key_arn") == (KEY,)


@pytest.mark.case("T26", "T27", "O01")
def test_the_alarms_have_the_thresholds_given(pipeline: Plan) -> None:
    def thresholds(module: str) -> dict[str, object]:
        alarm = f"module.{module}.module.alarms.aws_cloudwatch_metric_alarm.consumer"
        return {name: pipeline.values(f'{alarm}["{name}"]', "threshold")[0] for name in ALARMS}

    assert thresholds("minimal") == {
        "conflicts": 0,
        "dead-letters": 0,
        "duration": 24000,
        "errors": 0,
        "misconfigured": 0,
        "oldest-message": 3600,
        "reconciler-errors": 0,
        "reconciler-silent": 1,
        "recursion": 0,
        "rejected": 0,
        "stale-pending": 0,
        "throttles": 0,
    }
    assert thresholds("full") == {
        "conflicts": 4,
        "dead-letters": 0,
        "duration": 30000,
        "errors": 2,
        "misconfigured": 0,
        "oldest-message": 120,
        "reconciler-errors": 0,
        "reconciler-silent": 1,
        "recursion": 0,
        "rejected": 5,
        "stale-pending": 6,
        "throttles": 3,
    }
    assert pipeline.values(
        'module.full.module.alarms.aws_cloudwatch_metric_alarm.consumer["dead-letters"]',
        "metric_name",
        "statistic",
        "dimensions",
        "alarm_actions",
        "treat_missing_data",
    ) == (
        "ApproximateNumberOfMessagesVisible",
        "Maximum",
        {"QueueName": "uploads-dlq"},
        ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:chat"],
        "notBreaching",
    )


@pytest.mark.case("O09")
def test_a_loop_that_lambda_breaks_up_sets_off_an_alarm(pipeline: Plan) -> None:
    alarm = 'module.minimal.module.alarms.aws_cloudwatch_metric_alarm.consumer["recursion"]'
    names = ("namespace", "metric_name", "dimensions", "statistic", "threshold")
    assert pipeline.values(alarm, *names) == (
        "AWS/Lambda",
        "RecursiveInvocationsDropped",
        {"FunctionName": "orders-worker"},
        "Sum",
        0,
    )


def test_the_alarms_on_the_reconciler_look_back_over_a_run(pipeline: Plan) -> None:
    def periods(module: str) -> list[int]:
        alarm = f"module.{module}.module.alarms.aws_cloudwatch_metric_alarm.consumer"
        names = ("misconfigured", "reconciler-errors", "stale-pending")
        return [pipeline.values(f'{alarm}["{name}"]', "period")[0] for name in names]

    assert periods("minimal") == [300, 300, 300]
    assert periods("full") == [3600, 3600, 3600]


def test_a_reconciler_that_does_not_run_sets_off_an_alarm(pipeline: Plan) -> None:
    alarm = 'module.full.module.alarms.aws_cloudwatch_metric_alarm.consumer["reconciler-silent"]'
    names = ("namespace", "metric_name", "dimensions", "statistic", "comparison_operator", "threshold")
    assert pipeline.values(alarm, *names) == (
        "AWS/Lambda",
        "Invocations",
        {"FunctionName": "uploads-reconciler"},
        "Sum",
        "LessThanThreshold",
        1,
    )
    chat = ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:chat"]
    told = pipeline.values(alarm, "period", "treat_missing_data", "alarm_actions", "ok_actions")
    assert told == (10800, "breaching", chat, chat)


def test_one_alarm_tells_the_pager_what_is_lost_if_nobody_acts(pipeline: Plan) -> None:
    alarm = "module.{}.module.alarms.aws_cloudwatch_composite_alarm.at_risk"
    assert pipeline.values(alarm.format("full"), "alarm_name", "alarm_rule", "alarm_actions", "ok_actions") == (
        "uploads-events-at-risk",
        'ALARM("uploads-dead-letters") OR ALARM("uploads-misconfigured") OR ALARM("uploads-oldest-message") OR '
        'ALARM("uploads-recursion") OR ALARM("uploads-stale-pending")',
        ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"],
        ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"],
    )
    assert pipeline.values(alarm.format("no_reconciler"), "alarm_rule", "alarm_actions") == (
        'ALARM("returns-dead-letters") OR ALARM("returns-misconfigured") OR ALARM("returns-oldest-message") OR '
        'ALARM("returns-recursion")',
        None,
    )


def test_all_that_takes_tags_has_them(pipeline: Plan) -> None:
    tagged = {
        address: pipeline.after(f"module.full.{address}")["tags"]
        for address in pipeline.created("module.full")
        if "tags" in pipeline.after(f"module.full.{address}")
    }
    assert len(tagged) == 26
    assert set(map(str, tagged.values())) == {"{'team': 'media'}"}


def test_the_functions_variables_are_the_callers_and_over_them_the_settings(pipeline: Plan) -> None:
    settings = {"function": "local.settings", "reconciler": "local.reconciler_settings"}
    for module, local in settings.items():
        call = pipeline.configuration("minimal")["module_calls"][module]["expressions"]
        assert call["environment"]["references"] == ["var.function.environment", "var.function", local]
    passed_on = pipeline.configuration("minimal", "reconciler")["module_calls"]["function"]["expressions"]
    assert passed_on["environment"]["references"] == ["var.environment"]
    for modules in FUNCTIONS:
        (environment,) = function_of(pipeline, *modules)["environment"]
        assert environment == {"variables": {"references": ["var.environment"]}}


def function_of(plan: Plan, *modules: str) -> dict[str, Any]:
    """How a module's function is written."""
    resources = plan.configuration("minimal", *modules)["resources"]
    return next(resource["expressions"] for resource in resources if resource["type"] == "aws_lambda_function")


def waits_for(plan: Plan, modules: tuple[str, ...], address: str) -> list[str]:
    resources = plan.configuration(*modules)["resources"]
    return next(resource.get("depends_on", []) for resource in resources if resource["address"] == address)


@pytest.mark.case("T04")
def test_the_mapping_waits_for_the_rights_of_the_role(pipeline: Plan) -> None:
    assert waits_for(pipeline, ("minimal", "function"), "aws_lambda_event_source_mapping.intake") == [
        "aws_iam_role_policy.additional",
        "aws_iam_role_policy.worker",
    ]


@pytest.mark.case("T13")
def test_the_functions_wait_for_their_log_groups(pipeline: Plan) -> None:
    for modules in FUNCTIONS:
        assert function_of(pipeline, *modules)["logging_config"][0]["log_group"]["references"] == [
            "aws_cloudwatch_log_group.worker.name",
            "aws_cloudwatch_log_group.worker",
        ]


@pytest.mark.case("T33")
def test_who_uses_the_queues_address_waits_for_its_policies(pipeline: Plan) -> None:
    outputs = pipeline.configuration("minimal", "queue")["outputs"]
    policies = [
        "aws_sqs_queue_policy.intake",
        "aws_sqs_queue_redrive_policy.intake",
        "aws_sqs_queue_redrive_allow_policy.dead_letter",
    ]
    assert outputs["queue_arn"]["depends_on"] == policies
    assert outputs["queue_url"]["depends_on"] == policies
    root = pipeline.configuration("minimal")["outputs"]
    assert root["queue_arn"]["expression"]["references"][0] == "module.queue.queue_arn"
    assert root["queue_url"]["expression"]["references"][0] == "module.queue.queue_url"


@pytest.mark.case("T05")
def test_the_queues_do_not_name_each_other(pipeline: Plan) -> None:
    queues = [
        resource["expressions"]
        for resource in pipeline.configuration("minimal", "queue")["resources"]
        if resource["type"] == "aws_sqs_queue"
    ]
    assert len(queues) == 2
    assert not any({"policy", "redrive_allow_policy", "redrive_policy"} & set(queue) for queue in queues)
