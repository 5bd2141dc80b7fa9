"""The keys of rows: checked against DynamoDB's rules, and compared as it compares them. Pure."""

from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Any

from idempotent_consumer.items import MAX_HASH_KEY_BYTES, MAX_RANGE_KEY_BYTES, Item
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import KeyAttribute, Settings

_MAX_BYTES = (MAX_HASH_KEY_BYTES, MAX_RANGE_KEY_BYTES)


def business_key(settings: Settings) -> list[KeyAttribute]:
    return [settings.hash_key] if settings.range_key is None else [settings.hash_key, settings.range_key]


def check_business_key(values: dict[str, Any], settings: Settings) -> None:
    """Check a key of the business table, in place: an integer is written in decimal where the key is a string.

    Raises Rejected: `key-missing`, `key-wrong-type`, `key-size`.
    """
    for key, max_bytes in zip(business_key(settings), _MAX_BYTES, strict=False):
        _set_key(values, key, max_bytes)


def check_key(values: Mapping[str, Any], names: Iterable[str], table: str) -> None:
    """Check a key of a table whose key types are not known here. Raises Rejected as `check_business_key` does."""
    for name, max_bytes in zip(names, _MAX_BYTES, strict=False):
        _check_key_value(values, name, max_bytes, table)


def row_key(table: str, key: Item) -> Hashable:
    """What tells the row of these key attributes from others. DynamoDB compares numbers by value: 1 and 1.0 are one."""
    parts: list[tuple[str, Hashable]] = []
    for name, value in key.items():
        ((kind, text),) = value.items()
        parts.append((name, Decimal(text) if kind == "N" else text))
    if len(parts) > 1:
        parts.sort(key=itemgetter(0))
    return (str.__str__(table), *parts)


def _set_key(values: dict[str, Any], key: KeyAttribute, max_bytes: int) -> None:
    value = values.get(key.name)
    if value is None:
        raise Rejected("key-missing", f"the item has no {key.name}, a key of the business table")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if key.kind == "N":
        if not is_integer and not isinstance(value, Decimal):
            raise Rejected("key-wrong-type", f"{key.name} is not a number, as the business table's key is")
        return
    if is_integer:
        value = values[key.name] = str(value)
    if not isinstance(value, str):
        raise Rejected("key-wrong-type", f"{key.name} is neither a string nor an integer")
    _check_key_size(value, key.name, max_bytes)


def _check_key_value(values: Mapping[str, Any], name: str, max_bytes: int, table: str) -> None:
    value = values.get(name)
    if value is None:
        raise Rejected("key-missing", f"{table}: the row has no {name}, a key of the table")
    if isinstance(value, str):
        _check_key_size(value, name, max_bytes)
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Rejected("key-wrong-type", f"{table}: {name} is neither a string nor a number")


def _check_key_size(value: str, name: str, max_bytes: int) -> None:
    if not 1 <= len(value.encode()) <= max_bytes:
        raise Rejected("key-size", f"{name} has {len(value.encode())} UTF-8 bytes, a key takes 1 to {max_bytes}")
