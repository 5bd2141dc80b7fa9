"""Queries on a sparse index that holds the keys alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.exploration.updates import expressions
from tests.exploration.values import Invalid, Item, Malformed, WrongKey

_KEY_CONDITION = re.compile(r"(#?\w+) = :\w+(?: AND (#?\w+) (?:(?:=|<|<=|>|>=) :\w+|BETWEEN :\w+ AND :\w+))?")
_PARAMETERS = frozenset(
    {
        "TableName",
        "IndexName",
        "KeyConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ExclusiveStartKey",
        "Limit",
        "ProjectionExpression",
        "Select",
    }
)


@dataclass(frozen=True, slots=True)
class Index:
    """hash is a text, range a number. key: the table's own key attributes."""

    name: str
    hash: str
    range: str
    key: tuple[str, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.key, self.hash, self.range)

    def check(self, item: Item) -> None:
        """Raises WrongKey, or Invalid for an empty text, for a row that could not be in the index."""
        for name, kind in ((self.hash, "S"), (self.range, "N")):
            value = item.get(name)
            if value is not None and not value.get(kind):
                if kind in value:
                    raise Invalid(f"A value specified for a secondary index key is not supported: {name} is empty")
                raise WrongKey(f"One or more parameter values were invalid: Type mismatch for Index Key {name}")

    def order(self, item: Item) -> tuple[Any, ...]:
        """By the range key; what DynamoDB does with equals is not said, here the table's key decides."""
        return Decimal(item[self.range]["N"]), *[next(iter(item[name].values())) for name in self.key]


def query(index: Index, rows: Iterable[Item], request: Mapping[str, Any]) -> dict[str, Any]:
    """Raises Malformed or Invalid."""
    if request.keys() - _PARAMETERS:
        raise Malformed(f"parameters that the model does not know: {sorted(request.keys() - _PARAMETERS)}")
    values = request["ExpressionAttributeValues"]
    names = request.get("ExpressionAttributeNames", {})
    text = request["KeyConditionExpression"]
    projected = [name for name in request.get("ProjectionExpression", "").split(", ") if name]
    # A projection names attributes as a condition does.
    for name in projected:
        expressions(f"attribute_exists({name})", None, ())
    parsed = expressions(text, None, tuple(names.items()))
    _check_form(index, text, names)
    if values.keys() != parsed.values:
        raise Malformed(f"values that are not used, or used and not there: {values.keys() ^ parsed.values}")
    for check in parsed.checks:
        check(values)
    assert parsed.holds is not None
    holds = parsed.holds
    found = sorted(
        (row for row in rows if row.keys() >= {index.hash, index.range} and holds(row, values)), key=index.order
    )
    return _page(index, found, projected, request)


def _check_form(index: Index, text: str, names: Mapping[str, str]) -> None:
    form = _KEY_CONDITION.fullmatch(text)
    own = [names.get(name, name) for name in form.groups() if name] if form else []
    if own not in ([index.hash], [index.hash, index.range]):
        raise Malformed(f"Query key condition not supported: {text}")


def _page(index: Index, found: list[Item], projected: list[str], request: Mapping[str, Any]) -> dict[str, Any]:
    start = request.get("ExclusiveStartKey")
    if start is not None:
        if start.keys() != set(index.attributes):
            raise Malformed("The provided starting key is invalid")
        found = [row for row in found if index.order(row) > index.order(start)]
    limit = request.get("Limit", len(found) + 1)
    if limit < 1:
        raise Malformed("Limit must be 1 or more")
    page = found[:limit]
    answer: dict[str, Any] = {"Count": len(page), "ScannedCount": len(page)}
    if request.get("Select") != "COUNT":
        shown = projected or index.attributes
        answer["Items"] = [{name: row[name] for name in shown if name in row} for row in page]
    elif projected:
        raise Malformed("Cannot specify the ProjectionExpression when choosing to get only the Count")
    if len(page) == limit:
        answer["LastEvaluatedKey"] = {name: page[-1][name] for name in index.attributes}
    return answer
