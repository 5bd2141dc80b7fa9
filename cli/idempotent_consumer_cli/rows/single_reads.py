"""Consistent reads of single rows, many at a time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from idempotent_consumer.items import Item
from idempotent_consumer_cli.errors import CommandError

_MAX_KEYS = 100
_ATTEMPTS = 8


def rows_of(dynamodb: Any, table: str, keys: Sequence[Item], attributes: Collection[str]) -> Iterator[Item]:
    """Those of the rows that exist, in no order. Raises what a call to DynamoDB raises, and CommandError."""
    names = {f"#a{index}": name for index, name in enumerate(sorted(set(attributes)))}
    request = {
        "ConsistentRead": True,
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    for start in range(0, len(keys), _MAX_KEYS):
        yield from _read(dynamodb, table, {**request, "Keys": list(keys[start : start + _MAX_KEYS])})


def _read(dynamodb: Any, table: str, request: Mapping[str, Any]) -> Iterator[Item]:
    waiting: dict[str, Any] = {table: request}
    for attempt in range(_ATTEMPTS):
        answer = dynamodb.batch_get_item(RequestItems=waiting)
        yield from answer["Responses"].get(table, [])
        waiting = answer.get("UnprocessedKeys", {})
        if not waiting:
            return
        time.sleep(0.1 * 2**attempt)
    raise CommandError(f"{table} is throttled: rows could not be read in {_ATTEMPTS} attempts. Run it again later")
