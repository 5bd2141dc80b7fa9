"""Each example plans from an empty state, as it lies in the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import Plan, module_source, plan, plan_errors

# For each example, its consumers by the module's name, each with its business table.
EXAMPLES = {
    "eventbridge": {"parcels": "parcel_scans"},
    "fan-out": {"invoices": "invoice_records", "sales": "sale_records"},
    "fifo": {"accounts": "account_states"},
    "orders": {"orders": "order_records"},
    "s3-ingest": {"uploads": "uploaded_objects"},
    "stock": {"stock": "stock_order_lines"},
}
# What the zip of examples/stock would be: any file will do for a plan.
VARIABLES = {"stock": {"package": str(CHECKOUT / "lambda/dist/idempotent-consumer.zip")}}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    return {name: plan(f"examples/{name}", tmp_path_factory.mktemp(name), VARIABLES.get(name)) for name in EXAMPLES}


def test_every_example_is_planned_here() -> None:
    assert sorted(path.name for path in (CHECKOUT / "examples").iterdir() if path.is_dir()) == list(EXAMPLES)


def beside_the_consumers(example: Plan, consumers: dict[str, str]) -> list[str]:
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
        "orders": subscriber,
        "s3-ingest": ["aws_s3_bucket.uploads", "aws_s3_bucket_notification.uploads"],
        "stock": ["aws_dynamodb_table.stock"],
    }
    assert len(plans["orders"].created("module.orders")) == 34


def test_no_two_examples_give_a_name_twice(plans: dict[str, Plan]) -> None:
    for kind in ("aws_dynamodb_table", "aws_iam_role", "aws_lambda_function", "aws_sns_topic", "aws_sqs_queue"):
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
                "module.tables.aws_dynamodb_table.ledger": f"{consumer}-processed-events",
                "module.tables.aws_dynamodb_table.business[0]": business_table,
                "aws_sns_topic.notifications[0]": f"{consumer}-notifications{suffix}",
            }
            found = {address: plans[name].values(f"module.{consumer}.{address}", "name")[0] for address in expected}
            assert found == expected


def test_the_examples_protect_their_tables_until_told_otherwise(plans: dict[str, Plan]) -> None:
    for name, example in plans.items():
        tables = [address for address in example.created() if "aws_dynamodb_table." in address]
        assert len(tables) >= 2
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

    bucket = target("s3-ingest", "aws_s3_bucket_notification.uploads")["queue"][0]["queue_arn"]["references"]
    assert bucket[0] == "module.uploads.queue_arn"
    rule = target("eventbridge", "aws_cloudwatch_event_target.scans")["arn"]["references"]
    assert rule[0] == "module.parcels.queue_arn"
    topic = target("fan-out", "aws_sns_topic_subscription.invoices")["endpoint"]["references"]
    assert topic[0] == "module.invoices.queue_arn"


def test_stock_runs_its_own_code_and_may_write_to_its_own_table(plans: dict[str, Plan]) -> None:
    function = "module.stock.module.function.aws_lambda_function.worker"
    assert plans["stock"].values(function, "handler", "filename") == ("stock.handler", VARIABLES["stock"]["package"])
    consumer = plans["stock"].configuration()["module_calls"]["stock"]["expressions"]
    assert "aws_dynamodb_table.stock.arn" in consumer["function"]["references"]


def test_stock_without_its_zip_is_told_that_it_is_not_built(tmp_path: Path) -> None:
    call = f"""
    module "stock" {{
      source  = "{module_source(tmp_path, "examples/stock")}"
      package = "./stock.zip"
    }}
    """
    (error,) = plan_errors(tmp_path, call)
    assert error["detail"].startswith('function.package is "./stock.zip", and there is no such file: ')
