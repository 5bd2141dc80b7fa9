"""What a call costs on DynamoDB, from the sizes of the rows it touches.

Source: Amazon DynamoDB Developer Guide, "DynamoDB read and write operations" and "Item sizes and formats". A write unit
is 1 KB (1,024 bytes), a read unit 4 KB; each row is rounded up by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
# What the ledger's index `pending` holds of a row, while it has the first of these (modules/tables/main.tf).
_INDEXED = ("pending_shard", "created_at", "event_id")
_READS = frozenset({"BatchGetItem", "GetItem"})
_TRANSACTIONS = frozenset({"TransactWriteItems"})

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Units:
    """Write and read units."""

    write: float = 0
    read: float = 0

    def __add__(self, other: Units) -> Units:
        return Units(self.write + other.write, self.read + other.read)

    def per(self, events: int) -> Units:
        return Units(self.write / events, self.read / events)


def total(accesses: Iterable[Mapping[str, Any]]) -> Units:
    """The units of all accesses: mappings with operation, before and after, as `stub.Access` has them."""
    return sum((cost(access["operation"], access["before"], access["after"]) for access in accesses), Units())


def cost(operation: str, before: Item | None, after: Item | None) -> Units:
    """The units of one row's part of a call. before, after: the row, None where there is none.

    A write is charged on the larger of the row before and after it, twice in a transaction. A refused one is charged
    on the row that is there; a read of what is not there is one unit. All reads here are consistent. An index that a
    row enters or leaves is written once more ("Using Global Secondary Indexes in DynamoDB").
    """
    size = max(item_bytes(before or {}), item_bytes(after or {}))
    if operation in _READS:
        return Units(read=_units(size, READ_UNIT_BYTES))
    index = sum(_units(item_bytes(entry), WRITE_UNIT_BYTES) for entry in _index_changes(before or {}, after or {}))
    return Units(write=_units(size, WRITE_UNIT_BYTES) * (2 if operation in _TRANSACTIONS else 1) + index)


def _index_changes(before: Item, after: Item) -> list[Item]:
    """What has to be taken out of the index, and what put in."""
    entries = [
        {name: row[name] for name in _INDEXED if name in row} if _INDEXED[0] in row else {} for row in (before, after)
    ]
    return [entry for entry in entries if entry and entries[0] != entries[1]]


def item_bytes(item: Item) -> int:
    """The size of a row: names and values, UTF-8; a number takes a byte for two digits and one or two more."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        digits = str(content).partition("E")[0].replace(".", "").strip("-0")
        return (len(digits) + 1) // 2 + 1 + int(content.startswith("-"))
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_bytes(inner) for name, inner in content.items())
    if kind == "L":
        return 3 + sum(1 + _value_bytes(inner) for inner in content)
    return 1  # NULL and BOOL


def _units(size: int, unit_bytes: int) -> int:
    return max(1, -(-size // unit_bytes))
