"""Values of stored rows, which may have been edited by hand."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer_cli.clock import moment_or_none

# The last second of the year 9999 in milliseconds; DynamoDB holds numbers that neither a clock nor SQLite does.
_MOST = 253_402_300_799_000


def whole_number(row: Item, name: str) -> int | None:
    """A number without its fraction, as near as a time can be; None where the attribute is no number."""
    value = row.get(name, {}).get("N")
    if value is None:
        return None
    return int(min(max(Decimal(value), Decimal(0)), Decimal(_MOST)))


def decisions(audit: Sequence[AttributeValue]) -> list[dict[str, Any]]:
    """In order: when, who, how (completed, failed, retry, release) and why."""
    return [_decision(entry.get("M", {})) for entry in audit]


def _decision(entry: dict[str, AttributeValue]) -> dict[str, Any]:
    texts = {name: str(entry.get(name, {}).get("S", "")) for name in ("by", "how", "why")}
    return {"at": moment_or_none(whole_number(entry, "at")), **texts}
