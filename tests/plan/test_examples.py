"""Each example plans from an empty state, as it lies in the checkout."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import Plan, module_source, plan, plan_errors

# Of each example its consumers, by the module's name, each with its business table; operations and workflows have none.
EXAMPLES: dict[str, dict[str, str | None]] = {
    "eventbridge": {"parcels": "parcel_scans"},
    "fan-out": {"invoices": "invoice_records", "sales": "sale_records"},
    "fifo": {"accounts": "account_states"},
    "ingestion": {"ingestion": None},
    "orders": {"orders": "order_records"},
    "payments": {"payments": None},
    "s3-ingest": {"uploads": "uploaded_objects"},
    "stock": {"stock": "stock_order_lines"},
    "webhook": {"webhook": None},
}
# What the zips of the examples' own code would be: any file will do for a plan.
PACKAGE = str(CHECKOUT / "lambda/dist/idempotent-consumer.zip")
VARIABLES = {
    "ingestion": {"package": PACKAGE},
    "payments": {"package": PACKAGE, "provider_url": "https://payments.example.com"},
    "stock": {"package": PACKAGE},
    "webhook": {"receiver_url": "https://hooks.example.com/orders"},
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    return {name: plan(f"examples/{name}", tmp_path_factory.mktemp(name), VARIABLES.get(name)) for name in EXAMPLES}


def test_every_example_is_planned_here() -> None:
    assert sorted(path.name for path in (CHECKOUT / "examples").iterdir() if path.is_dir()) == list(EXAMPLES)


def beside_the_consumers(example: Plan, consumers: Iterable[str]) -> list[str]:
    return [
        address
        for address in example.created()
        if not any(address.startswith(f"module.{consumer}.") for consumer in consumers)
    ]


def test_the_examples_create_consumers_and_what_these_are_shown_with(plans: dict[str, Plan]) -> None:
    subscriber = [
        "aws_sns_topic_subscription.subscriber",
        "aws_sqs_queue.subscriber",
        "aws_sqs_queue_policy.subscriber",
    ]
    assert {name: beside_the_consumers(example, EXAMPLES[name]) for name, example in plans.items()} == {
        "eventbridge": [
            "aws_cloudwatch_event_bus.parcels",
            "aws_cloudwatch_event_rule.scans",
            "aws_cloudwatch_event_target.scans",
        ],
        "fan-out": ["aws_sns_topic_subscription.invoices"],
        "fifo": subscriber,
        "ingestion": [
            "aws_cloudwatch_log_group.ingest",
            "aws_dynamodb_table.words",
            "aws_iam_role.ingest",
            "aws_iam_role_policy.ingest",
            "aws_lambda_function.ingest",
            "aws_s3_bucket.documents[0]",
            "aws_s3_bucket_notification.documents[0]",
        ],
        "orders": subscriber,
        "payments": [],
        "s3-ingest": ["aws_s3_bucket.uploads", "aws_s3_bucket_notification.uploads"],
        "stock": ["aws_dynamodb_table.stock"],
        "webhook": ["aws_secretsmanager_secret.token"],
    }
    assert len(plans["orders"].created("module.orders")) == 34
    assert len(plans["webhook"].created("module.webhook")) == 23


def test_no_two_examples_give_a_name_twice(plans: dict[str, Plan]) -> None:
    kinds = "dynamodb_table", "iam_role", "lambda_function", "secretsmanager_secret", "sns_topic", "sqs_queue"
    for kind in (f"aws_{kind}" for kind in kinds):
        key = "function_name" if kind == "aws_lambda_function" else "name"
        given = [
            example.values(address, key)[0]
            for example in plans.values()
            for address in example.created()
            if f".{kind}." in f".{address}"
        ]
        assert len(set(given)) == len(given) > 0, kind


def test_a_consumer_is_named_after_what_it_consumes(plans: dict[str, Plan]) -> None:
    for name, consumers in EXAMPLES.items():
        for consumer, business_table in consumers.items():
            suffix = ".fifo" if name == "fifo" else ""
            expected = {
                "module.queue.aws_sqs_queue.intake": f"{consumer}{suffix}",
                "module.queue.aws_sqs_queue.dead_letter": f"{consumer}-dlq{suffix}",
            }
            if name == "ingestion":
                expected["aws_dynamodb_table.idempotency"] = f"{consumer}-idempotency"
            else:
                expected["module.tables.aws_dynamodb_table.ledger"] = f"{consumer}-processed-events"
            if business_table is not None:
                expected["module.tables.aws_dynamodb_table.business[0]"] = business_table
                expected["aws_sns_topic.notifications[0]"] = f"{consumer}-notifications{suffix}"
            found = {address: plans[name].values(f"module.{consumer}.{address}", "name")[0] for address in expected}
            assert found == expected


def test_the_examples_protect_their_tables_until_told_otherwise(plans: dict[str, Plan]) -> None:
    for name, example in plans.items():
        tables = [address for address in example.created() if "aws_dynamodb_table." in address]
        assert len(tables) >= sum(2 if table else 1 for table in EXAMPLES[name].values())
        for address in tables:
            assert example.values(address, "deletion_protection_enabled") == (True,), (name, address)


def test_an_example_can_be_tried_and_destroyed_again(tmp_path: Path) -> None:
    trial = plan("examples/orders", tmp_path, {"deletion_protection": "false", "function_timeout_seconds": "10"})
    ledger = "module.orders.module.tables.aws_dynamodb_table.ledger"
    assert trial.values(ledger, "deletion_protection_enabled") == (False,)
    assert trial.values("module.orders.module.queue.aws_sqs_queue.intake", "visibility_timeout_seconds") == (60,)


def test_a_subscriber_of_a_fifo_topic_is_fifo(plans: dict[str, Plan]) -> None:
    assert plans["fifo"].values("aws_sqs_queue.subscriber", "name", "fifo_queue") == ("accounts-subscriber.fifo", True)
    assert plans["orders"].values("aws_sqs_queue.subscriber", "name", "fifo_queue") == ("orders-subscriber", False)


@pytest.mark.parametrize(
    ("example", "consumer", "service"),
    [
        ("eventbridge", "parcels", "events.amazonaws.com"),
        ("fan-out", "invoices", "sns.amazonaws.com"),
        ("ingestion", "ingestion", "s3.amazonaws.com"),
        ("s3-ingest", "uploads", "s3.amazonaws.com"),
    ],
)
def test_a_producer_may_send_to_its_queue(plans: dict[str, Plan], example: str, consumer: str, service: str) -> None:
    address = f"module.{consumer}.module.queue.data.aws_iam_policy_document.producers[0]"
    (statement,) = plans[example].after(address)["statement"]
    assert statement["principals"] == [{"identifiers": [service], "type": "Service"}]


def test_a_queue_takes_messages_before_its_producer_is_told_of_it(plans: dict[str, Plan]) -> None:
    """S3 sends a test message when its notification is made, and fails if the queue refuses it."""

    def target(name: str, address: str) -> Any:
        resources = plans[name].configuration()["resources"]
        return next(resource["expressions"] for resource in resources if resource["address"] == address)

    documents = target("ingestion", "aws_s3_bucket_notification.documents")["queue"][0]["queue_arn"]["references"]
    assert documents[0] == "module.ingestion.queue_arn"
    bucket = target("s3-ingest", "aws_s3_bucket_notification.uploads")["queue"][0]["queue_arn"]["references"]
    assert bucket[0] == "module.uploads.queue_arn"
    rule = target("eventbridge", "aws_cloudwatch_event_target.scans")["arn"]["references"]
    assert rule[0] == "module.parcels.queue_arn"
    topic = target("fan-out", "aws_sns_topic_subscription.invoices")["endpoint"]["references"]
    assert topic[0] == "module.invoices.queue_arn"


def test_stock_runs_its_own_code_and_may_write_to_its_own_table(plans: dict[str, Plan]) -> None:
    function = "module.stock.module.function.aws_lambda_function.worker"
    assert plans["stock"].values(function, "handler", "filename") == ("stock.handler", PACKAGE)
    consumer = plans["stock"].configuration()["module_calls"]["stock"]["expressions"]
    assert "aws_dynamodb_table.stock.arn" in consumer["function"]["references"]


def test_payments_runs_its_own_effect_by_a_policy_that_is_a_variable(plans: dict[str, Plan]) -> None:
    function = "module.payments.module.function.aws_lambda_function.worker"
    assert plans["payments"].values(function, "handler", "filename") == ("payments.handler", PACKAGE)
    call = plans["payments"].configuration()["module_calls"]["payments"]["expressions"]
    assert call["operation"]["references"] == ["var.effect_timeout_seconds", "var.settle_seconds", "var.uncertain"]
    assert "http" not in call


def test_webhook_makes_the_call_that_comes_with_the_module_and_reads_its_token(plans: dict[str, Plan]) -> None:
    function = "module.webhook.module.function.aws_lambda_function.worker"
    assert plans["webhook"].values(function, "handler") == ("idempotent_consumer.http_operation.handler",)
    document = "module.webhook.module.function.data.aws_iam_policy_document.worker"
    rights = {statement["sid"]: statement["actions"] for statement in plans["webhook"].after(document)["statement"]}
    assert rights["ClaimInLedger"] == ["dynamodb:UpdateItem"]
    assert rights["ReadSecret"] == ["secretsmanager:GetSecretValue"]


def test_the_secret_of_webhook_is_kept_for_a_month_unless_the_example_is_tried(
    plans: dict[str, Plan], tmp_path: Path
) -> None:
    trial = plan("examples/webhook", tmp_path, VARIABLES["webhook"] | {"deletion_protection": "false"})
    days = [
        example.values("aws_secretsmanager_secret.token", "recovery_window_in_days")
        for example in (plans["webhook"], trial)
    ]
    assert days == [(30,), (0,)]


def test_ingestion_takes_messages_of_s3_or_of_a_producer_s_own(tmp_path: Path) -> None:
    by_hand = plan("examples/ingestion", tmp_path, VARIABLES["ingestion"] | {"document_source": "sqs"})
    bucket = [address for address in by_hand.created() if "aws_s3_" in address or "producers" in address]
    assert bucket == []


@pytest.mark.parametrize("example", ["payments", "stock"])
def test_an_example_without_its_zip_is_told_that_it_is_not_built(tmp_path: Path, example: str) -> None:
    more = VARIABLES[example] | {"package": f"./{example}.zip"}
    call = f"""
    module "{example}" {{
      source = "{module_source(tmp_path, f"examples/{example}")}"
      {" ".join(f"{name} = {json.dumps(value)}" + chr(10) for name, value in more.items())}
    }}
    """
    (error,) = plan_errors(tmp_path, call)
    assert error["detail"].startswith(f'function.package is "./{example}.zip", and there is no such file: ')
