"""The dashboard, read as CloudWatch reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plan.support import Plan, plan

# What each source publishes under the one dimension that the dashboard names: the code's own metrics, then AWS's, by
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
# https://docs.aws.amazon.com/sns/latest/dg/sns-monitoring-using-cloudwatch.html
# https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html
PUBLISHED = {
    ("IdempotentConsumer", "Consumer"): {
        "Applied",
        "Blocked",
        "Conflicts",
        "Duplicates",
        "EventAge",
        "Ignored",
        "Misconfigured",
        "OldestPendingAge",
        "ReceiveCount",
        "Reconciled",
        "Rejected",
        "Replayed",
        "Resumed",
        "Retries",
        "StalePending",
        "Superseded",
    },
    ("AWS/SQS", "QueueName"): {
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesVisible",
    },
    ("AWS/Lambda", "FunctionName"): {
        "ConcurrentExecutions",
        "Duration",
        "Errors",
        "Invocations",
        "RecursiveInvocationsDropped",
        "Throttles",
    },
    ("AWS/DynamoDB", "TableName"): {"ReadThrottleEvents", "TransactionConflict", "WriteThrottleEvents"},
    ("AWS/SNS", "TopicName"): {"NumberOfMessagesPublished", "NumberOfNotificationsFailed"},
}
# Where there is a state machine. A claim is conditional, and part of no transaction.
PUBLISHED_OF_WORKFLOWS = {
    ("AWS/States", "StateMachineArn"): {
        "ExecutionThrottled",
        "ExecutionTime",
        "ExecutionsAborted",
        "ExecutionsFailed",
        "ExecutionsStarted",
        "ExecutionsSucceeded",
        "ExecutionsTimedOut",
    },
    ("AWS/Events", "RuleName"): {"FailedInvocations"},
    ("AWS/DynamoDB", "TableName"): {"ConditionalCheckFailedRequests", "ReadThrottleEvents", "WriteThrottleEvents"},
}
# What the worker of an operation publishes; the command line counts what it sends back.
OF_AN_OPERATION = {
    "Blocked",
    "Claimed",
    "Completed",
    "Conflicts",
    "Duplicates",
    "EventAge",
    "Failed",
    "Ignored",
    "InProgressStale",
    "Misconfigured",
    "OutcomeUnknown",
    "ReceiveCount",
    "Rejected",
    "Replayed",
    "Retries",
}
# What the starter of a workflow publishes, and its guard where that is a function.
OF_A_STARTER = {
    "Conflicts",
    "Duplicates",
    "EventAge",
    "Ignored",
    "Misconfigured",
    "ReceiveCount",
    "Rejected",
    "Replayed",
    "Retries",
    "Started",
}
OF_A_GUARD = {"Claimed", "Conflicts", "Skipped"}
OWN = {
    "operation": OF_AN_OPERATION,
    "workflow": OF_A_STARTER | OF_A_GUARD,
    "workflow_without_function": OF_A_STARTER,
}
VARIANTS = ("all", "no_reconciler", "no_topic", "operation", "workflow", "workflow_without_function")


@pytest.fixture(scope="module")
def dashboards(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan("tests/fixtures/dashboard", tmp_path_factory.mktemp("dashboards"))


def widgets(dashboards: Plan, variant: str, kind: str = "metric") -> list[dict[str, Any]]:
    """The widgets of one kind, in the order in which they are drawn."""
    (body,) = dashboards.values(f'module.alarms["{variant}"].aws_cloudwatch_dashboard.consumer[0]', "dashboard_body")
    return [widget for widget in json.loads(body)["widgets"] if widget["type"] == kind]


def lines(widget: dict[str, Any]) -> list[list[Any]]:
    """Namespace, metric, dimension, its value, and how the line is drawn."""
    return list(widget["properties"]["metrics"])


def metrics(dashboards: Plan, variant: str, namespace: str) -> set[tuple[str, str]]:
    """The metrics of a namespace that are drawn, each with what it is of."""
    drawn = [line for widget in widgets(dashboards, variant) for line in lines(widget)]
    return {(line[1], line[3]) for line in drawn if line[0] == namespace}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_metric_is_one_that_the_code_or_aws_publishes(dashboards: Plan, variant: str) -> None:
    published = PUBLISHED | (PUBLISHED_OF_WORKFLOWS if variant.startswith("workflow") else {})
    if variant in OWN:
        published |= {("IdempotentConsumer", "Consumer"): OWN[variant]}
    for widget in widgets(dashboards, variant):
        for namespace, metric, dimension, value, drawn in lines(widget):
            assert metric in published[namespace, dimension], metric
            assert value
            assert set(drawn) == {"label", "stat", "yAxis"}


def test_business_outcomes_come_first_and_aws_internals_after(dashboards: Plan) -> None:
    namespaces = [{line[0] for line in lines(widget)} for widget in widgets(dashboards, "all")]
    assert namespaces == [
        *(6 * [{"IdempotentConsumer"}]),
        {"AWS/SQS"},
        {"AWS/SQS"},
        {"AWS/Lambda"},
        {"AWS/Lambda"},
        {"AWS/DynamoDB"},
        {"AWS/SNS"},
    ]


def test_an_operation_has_its_outcomes_first_and_neither_a_topic_nor_a_business_table(dashboards: Plan) -> None:
    drawn = [[line[4]["label"] for line in lines(widget)] for widget in widgets(dashboards, "operation")]
    assert drawn == [
        ["claimed", "completed", "duplicates", "ignored"],
        ["rejected", "conflicts", "failed"],
        ["stale", "unknown", "replayed"],
        ["retries", "blocked (FIFO)", "misconfigured"],
        ["half are younger", "95 % are younger", "oldest"],
        ["average", "most"],
        ["waiting", "in work", "age of the oldest (seconds)"],
        ["dead letters", "age of the oldest (seconds)"],
        ["calls", "errors", "throttles", "broken loops"],
        ["half are shorter", "longest", "calls at a time"],
        ["ledger: throttled reads", "ledger: throttled writes", "ledger: conflicts"],
    ]


def test_a_workflow_has_its_executions_between_its_outcomes_and_the_rest(dashboards: Plan) -> None:
    drawn = [[line[4]["label"] for line in lines(widget)] for widget in widgets(dashboards, "workflow")]
    assert drawn == [
        ["started", "claimed", "duplicates", "skipped", "ignored"],
        ["rejected", "conflicts"],
        ["retries", "misconfigured", "replayed"],
        ["half are younger", "95 % are younger", "oldest"],
        ["average", "most"],
        ["started", "succeeded", "failed", "aborted", "timed out", "without a letter"],
        ["half are shorter", "longest", "throttled"],
        ["waiting", "in work", "age of the oldest (seconds)"],
        ["dead letters", "age of the oldest (seconds)"],
        ["calls", "errors", "throttles", "broken loops", "guard: calls", "guard: errors", "guard: throttles"],
        ["half are shorter", "longest", "guard: longest", "calls at a time"],
        ["claims: throttled reads", "claims: throttled writes", "claims: refused, as of duplicates"],
    ]


def test_where_step_functions_claims_itself_no_guard_is_drawn(dashboards: Plan) -> None:
    def drawn(variant: str) -> set[str]:
        return {line[4]["label"] for widget in widgets(dashboards, variant) for line in lines(widget)}

    of_the_guard = {
        "claimed",
        "skipped",
        *(f"guard: {x}" for x in ("calls", "errors", "longest", "throttles")),
    }
    assert drawn("workflow") - drawn("workflow_without_function") == of_the_guard


@pytest.mark.parametrize("variant", ["workflow", "workflow_without_function"])
def test_every_metric_of_a_workflow_is_drawn(dashboards: Plan, variant: str) -> None:
    assert metrics(dashboards, variant, "IdempotentConsumer") == {(metric, "orders") for metric in OWN[variant]}
    machine = "arn:aws:states:eu-central-1:111122223333:stateMachine:orders"
    assert metrics(dashboards, variant, "AWS/States") == {
        (metric, machine) for metric in PUBLISHED_OF_WORKFLOWS["AWS/States", "StateMachineArn"]
    }
    assert metrics(dashboards, variant, "AWS/Events") == {("FailedInvocations", "orders-failures")}
    assert {of for _, of in metrics(dashboards, variant, "AWS/DynamoDB")} == {"orders-processed-events"}


def test_every_metric_of_an_operation_is_drawn(dashboards: Plan) -> None:
    assert metrics(dashboards, "operation", "IdempotentConsumer") == {(metric, "orders") for metric in OF_AN_OPERATION}
    assert {of for _, of in metrics(dashboards, "operation", "AWS/DynamoDB")} == {"orders-processed-events"}


def test_every_metric_of_the_consumer_is_drawn(dashboards: Plan) -> None:
    assert metrics(dashboards, "all", "IdempotentConsumer") == {
        (metric, "orders") for metric in PUBLISHED["IdempotentConsumer", "Consumer"]
    }


def test_the_ages_of_events_are_drawn_as_percentiles(dashboards: Plan) -> None:
    ages = [line[4]["stat"] for widget in widgets(dashboards, "all") for line in lines(widget) if line[1] == "EventAge"]
    assert ages == ["p50", "p95", "Maximum"]


def test_both_queues_both_functions_both_tables_and_the_topic_are_drawn(dashboards: Plan) -> None:
    drawn = {namespace: {of for _, of in metrics(dashboards, "all", namespace)} for namespace, _ in PUBLISHED}
    assert drawn == {
        "IdempotentConsumer": {"orders"},
        "AWS/SQS": {"orders", "orders-dlq"},
        "AWS/Lambda": {"orders-worker", "orders-reconciler"},
        "AWS/DynamoDB": {"order_records", "orders-processed-events"},
        "AWS/SNS": {"orders-notifications"},
    }


def test_what_is_not_there_is_not_drawn(dashboards: Plan) -> None:
    assert metrics(dashboards, "all", "IdempotentConsumer") - metrics(
        dashboards, "no_reconciler", "IdempotentConsumer"
    ) == {("OldestPendingAge", "orders"), ("Reconciled", "orders"), ("StalePending", "orders")}
    assert {of for _, of in metrics(dashboards, "no_reconciler", "AWS/Lambda")} == {"orders-worker"}
    assert metrics(dashboards, "no_topic", "AWS/SNS") == set()
    assert [len(widgets(dashboards, variant)) for variant in VARIANTS] == [12, 12, 11, 11, 12, 12]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_widget_has_a_region_and_a_title_of_its_own(dashboards: Plan, variant: str) -> None:
    properties = [widget["properties"] for widget in widgets(dashboards, variant)]
    assert {each["region"] for each in properties} == {"eu-central-1"}
    assert len({each["title"] for each in properties}) == len(properties)
    labels = [[line[4]["label"] for line in lines(widget)] for widget in widgets(dashboards, variant)]
    assert all(len(set(each)) == len(each) > 0 for each in labels)


def test_a_topic_of_another_region_is_looked_up_there(dashboards: Plan) -> None:
    regions = [widget["properties"]["region"] for widget in widgets(dashboards, "far_topic")]
    assert regions == [*(11 * ["eu-central-1"]), "eu-west-1"]
    assert metrics(dashboards, "far_topic", "AWS/SNS") == {
        ("NumberOfMessagesPublished", "orders-notifications"),
        ("NumberOfNotificationsFailed", "orders-notifications"),
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_widget_lies_over_another_or_beyond_the_edge(dashboards: Plan, variant: str) -> None:
    cells: set[tuple[int, int]] = set()
    for widget in [*widgets(dashboards, variant, "text"), *widgets(dashboards, variant)]:
        columns = range(widget["x"], widget["x"] + widget["width"])
        own = {(x, y) for x in columns for y in range(widget["y"], widget["y"] + widget["height"])}
        assert columns[-1] < 24
        assert not own & cells, widget["properties"]
        cells |= own


def test_it_says_in_words_what_is_normal_and_what_is_trouble(dashboards: Plan) -> None:
    (legend,) = widgets(dashboards, "all", "text")
    assert legend["y"] == 0
    words = legend["properties"]["markdown"]
    normal, trouble = words.split("**Trouble:**")
    assert "**Normal:**" in normal
    assert all(word in normal for word in ("Duplicates", "resumed", "superseded", "ignored", "Retries"))
    assert all(word in trouble for word in ("rejected", "conflicts", "Misconfigured", "Stale"))


def test_for_an_operation_it_says_what_is_normal_and_what_is_trouble_with_effects(dashboards: Plan) -> None:
    (legend,) = widgets(dashboards, "operation", "text")
    normal, trouble = legend["properties"]["markdown"].split("**Trouble:**")
    assert all(word in normal for word in ("completed", "claimed", "Duplicates", "ignored", "Retries", "Stale"))
    assert all(word in trouble for word in ("rejected", "conflicts", "failed", "Unknown", "Misconfigured"))
    assert not any(word in normal + trouble for word in ("applied follows", "superseded", "topic", "announced"))


@pytest.mark.parametrize("variant", ["workflow", "workflow_without_function"])
def test_for_a_workflow_it_says_what_is_normal_and_what_is_trouble_with_executions(
    dashboards: Plan, variant: str
) -> None:
    (legend,) = widgets(dashboards, variant, "text")
    normal, trouble = legend["properties"]["markdown"].split("**Trouble:**")
    assert all(word in normal for word in ("started", "succeeded", "Duplicates", "skipped", "Ignored", "Retries"))
    assert all(word in trouble for word in ("rejected", "failed", "Aborted", "timed out", "Misconfigured"))
    assert not any(word in normal + trouble for word in ("applied follows", "completed", "superseded", "topic"))


def test_the_region_is_that_of_the_function(pipeline: Plan) -> None:
    call = pipeline.configuration("minimal")["module_calls"]["alarms"]["expressions"]
    assert call["region"]["references"] == ["module.function.function_arn", "module.function"]
    assert call["topic_arns"]["references"] == ["local.topic_arns"]
