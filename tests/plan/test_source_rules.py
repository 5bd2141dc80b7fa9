"""The Terraform files that are shipped. The rules for what they may say are those of `python -m checks hcl`."""

from __future__ import annotations

from checks.hcl.module import modules_of
from checks.tree import checkout


def test_the_shipped_modules_are_found() -> None:
    assert [module.folder for module in modules_of(checkout()) if module.is_shipped] == [
        "",
        "examples/eventbridge",
        "examples/fan-out",
        "examples/fifo",
        "examples/ingestion",
        "examples/orders",
        "examples/payments",
        "examples/s3-ingest",
        "examples/stock",
        "examples/webhook",
        "modules/alarms",
        "modules/function",
        "modules/operation",
        "modules/queue",
        "modules/reconciler",
        "modules/tables",
        "modules/workflow",
    ]
