"""Each example plans from an empty state, as it lies in the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import Plan, plan


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan("examples/orders", tmp_path_factory.mktemp("orders"))


def test_every_example_is_planned_here() -> None:
    assert sorted(path.name for path in (CHECKOUT / "examples").iterdir() if path.is_dir()) == ["orders"]


def test_orders_creates_the_consumer_and_a_subscriber(orders: Plan) -> None:
    assert [address for address in orders.created() if not address.startswith("module.orders.")] == [
        "aws_sns_topic_subscription.subscriber",
        "aws_sqs_queue.subscriber",
        "aws_sqs_queue_policy.subscriber",
    ]
    assert len(orders.created("module.orders")) == 34


def test_orders_is_named_after_what_it_consumes(orders: Plan) -> None:
    names = {
        "module.orders.module.queue.aws_sqs_queue.intake": "orders",
        "module.orders.module.queue.aws_sqs_queue.dead_letter": "orders-dlq",
        "module.orders.module.tables.aws_dynamodb_table.ledger": "orders-processed-events",
        "module.orders.module.tables.aws_dynamodb_table.business[0]": "order_records",
        "module.orders.aws_sns_topic.notifications[0]": "orders-notifications",
        "aws_sqs_queue.subscriber": "orders-subscriber",
    }
    assert {address: orders.values(address, "name")[0] for address in names} == names


def test_orders_protects_its_tables_until_told_otherwise(orders: Plan, tmp_path: Path) -> None:
    ledger = "module.orders.module.tables.aws_dynamodb_table.ledger"
    assert orders.values(ledger, "deletion_protection_enabled") == (True,)
    trial = plan("examples/orders", tmp_path, {"deletion_protection": "false", "function_timeout_seconds": "10"})
    assert trial.values(ledger, "deletion_protection_enabled") == (False,)
    assert trial.values("module.orders.module.queue.aws_sqs_queue.intake", "visibility_timeout_seconds") == (60,)
