"""Numbers of stored rows, which may have been edited by hand."""

from __future__ import annotations

from decimal import Decimal

from idempotent_consumer.items import Item

# The last second of the year 9999 in milliseconds; DynamoDB holds numbers that neither a clock nor SQLite does.
_MOST = 253_402_300_799_000


def whole_number(row: Item, name: str) -> int | None:
    """A number without its fraction, as near as a time can be; None where the attribute is no number."""
    value = row.get(name, {}).get("N")
    if value is None:
        return None
    return int(min(max(Decimal(value), Decimal(0)), Decimal(_MOST)))
