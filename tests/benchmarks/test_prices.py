"""What the README says of costs follows from the prices, the measured units and what is created."""

from __future__ import annotations

import re

import pytest

from benchmarks.prices import cases, monthly, table
from idempotent_consumer.telemetry import METRIC_OF_OUTCOME
from local.terraform import CHECKOUT

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
RECONCILERS = ("Reconciled", "StalePending", "OldestPendingAge")


def test_a_million_new_events_in_full_batches() -> None:
    new = cases(write_units=7, read_units=1)[0].million()
    assert {what: round(dollars, 4) for what, dollars in new.items()} == {
        "DynamoDB": 4.375,
        "SQS, receiving and deleting": 0.08,
        "Lambda, 512 MB": 0.0533,
        "SNS, publishing": 0.05,
        "logs, and traces of 5 % of the calls": 0.075,
    }


def test_a_million_events_delivered_again() -> None:
    again = cases(write_units=7, read_units=1)[2].million()
    assert (round(again["DynamoDB"], 4), again["SNS, publishing"]) == (0.125, 0)


def test_the_readme_has_the_table_for_the_units_it_reports() -> None:
    write = re.search(r"DynamoDB units, new event of 0\.3 KB \| (\d+) write \|", README)
    read = re.search(r"DynamoDB units, redelivered event \| (\d+) read \|", README)
    assert write and read
    assert table(int(write[1]), int(read[1])) in README


def test_the_readme_has_the_monthly_price_of_metrics_and_alarms() -> None:
    metrics = len(METRIC_OF_OUTCOME) + len(RECONCILERS) + len(("Misconfigured", "EventAge", "ReceiveCount"))
    words = " ".join(README.split())
    assert f"{metrics} metrics, 12 alarms and the composite alarm cost ${monthly(metrics, 12):.2f}, " in words
    idle = monthly(len(RECONCILERS), 12)
    assert f"and ${idle:.2f} without any traffic" in words
    assert f"only the reconciler sends its {len(RECONCILERS)}" in words
    assert [monthly(metrics, 12), idle] == pytest.approx([6.20, 2.60])
