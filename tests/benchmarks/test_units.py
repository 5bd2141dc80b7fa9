"""What calls cost on DynamoDB, by its published rules."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.units import Units, cost, item_bytes, total
from idempotent_consumer import items


def row(size: int) -> dict[str, Any]:
    """A row of this many bytes; its attribute's name is one of them."""
    return {"a": {"S": "x" * (size - 1)}}


@pytest.mark.parametrize(
    ("size", "units"),
    [pytest.param(2, 1, id="small"), pytest.param(1024, 1, id="1 KB"), pytest.param(1025, 2, id="a byte more")],
)
def test_a_write_is_rounded_up_to_a_kilobyte_and_counts_twice_in_a_transaction(size: int, units: int) -> None:
    assert cost("PutItem", None, row(size)) == Units(write=units)
    assert cost("TransactWriteItems", None, row(size)) == Units(write=2 * units)


def test_an_update_is_charged_on_the_larger_of_the_row_before_and_after() -> None:
    assert cost("BatchExecuteStatement", row(2500), row(200)) == Units(write=3)
    assert cost("UpdateItem", row(200), row(1500)) == Units(write=2)


def test_a_row_that_enters_or_leaves_the_index_writes_it_once_more() -> None:
    pending = {"event_id": {"S": "o-1"}, "created_at": {"N": "1893553446000"}, "pending_shard": {"S": "3"}}
    sent = {"event_id": {"S": "o-1"}, "created_at": {"N": "1893553446000"}}

    assert cost("TransactWriteItems", None, pending) == Units(write=2 + 1)
    assert cost("BatchExecuteStatement", pending, sent) == Units(write=1 + 1)
    assert cost("TransactWriteItems", None, sent) == Units(write=2)
    assert cost("BatchExecuteStatement", pending, pending) == Units(write=1)
    long_id = {**pending, "event_id": {"S": "o" * 2000}}
    assert cost("PutItem", None, long_id) == Units(write=2 + 2)


def test_a_refused_write_is_charged_on_the_row_that_is_there() -> None:
    assert cost("PutItem", row(3000), row(3000)) == Units(write=3)


@pytest.mark.parametrize("operation", ["GetItem", "BatchGetItem"])
def test_a_consistent_read_is_a_unit_for_four_kilobytes(operation: str) -> None:
    assert cost(operation, row(4096), row(4096)) == Units(read=1)
    assert cost(operation, row(4097), row(4097)) == Units(read=2)


def test_reading_a_row_that_is_not_there_costs_a_unit() -> None:
    assert cost("BatchGetItem", None, None) == Units(read=1)


def test_the_units_of_a_batch_are_divided_by_its_events() -> None:
    accesses: list[dict[str, Any]] = [
        {"operation": "TransactWriteItems", "before": None, "after": row(700)},
        {"operation": "TransactWriteItems", "before": None, "after": row(300)},
        {"operation": "BatchExecuteStatement", "before": row(700), "after": row(200)},
        {"operation": "BatchGetItem", "before": None, "after": None},
    ]

    assert total(accesses) == Units(write=5, read=1)
    assert total(accesses).per(2) == Units(write=2.5, read=0.5)


def test_the_size_of_a_row_is_its_names_and_values() -> None:
    item: dict[str, dict[str, Any]] = {
        "id": {"S": "ä"},  # 2 + 2
        "total": {"N": "-149.85"},  # 5 + three bytes of digits, one for the exponent, one for the minus
        "express": {"BOOL": True},  # 7 + 1
        "note": {"NULL": True},  # 4 + 1
        "lines": {"L": [{"M": {"n": {"N": "0"}}}]},  # 5 + 3 + 1 + (3 + 1 + 1 + 1)
    }

    assert item_bytes(item) == 4 + 10 + 8 + 5 + 15
    assert item_bytes(item) == items.item_bytes(item)
