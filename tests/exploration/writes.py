"""One write of a request: whether it can be made, and the row afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.exploration import values as typed
from tests.exploration.schema import Place, Schema
from tests.exploration.updates import Expressions, expressions
from tests.exploration.values import Invalid, Item, Malformed

Request = Mapping[str, Any]

_NEEDED: Mapping[str, frozenset[str]] = {
    "Put": frozenset({"TableName", "Item"}),
    "Update": frozenset({"TableName", "Key", "UpdateExpression"}),
    "Delete": frozenset({"TableName", "Key"}),
    "ConditionCheck": frozenset({"TableName", "Key", "ConditionExpression"}),
}
_OPTIONAL = frozenset(
    {
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnValuesOnConditionCheckFailure",
    }
)
_NOTHING: dict[str, Any] = {}


class Conflict(Exception):
    """Another transaction is at the item."""


class Refused(Exception):
    """The condition does not hold of this item, None where it is not to be told."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("refused")
        self.item = item


@dataclass(slots=True)
class Write:
    """item: the row afterwards. failure: why the update cannot be done, which a condition that fails outranks."""

    kind: str
    request: Request
    place: Place
    expressions: Expressions
    item: Item | None = None
    failure: Invalid | None = None

    def complete(self, schema: Schema, found: Item | None) -> None:
        """Work out the row afterwards. Raises WrongKey, or Invalid, where it could not be in the table's index."""
        request = self.request
        if self.kind == "Put":
            self.item = typed.stored(request["Item"])
        elif self.kind == "Update":
            values = request.get("ExpressionAttributeValues", _NOTHING)
            try:
                new = self.expressions.update(found, request["Key"], values)
                self.item = None if new is None else typed.stored(new)
            except Invalid as invalid:
                self.failure = invalid
        if self.item is not None:
            schema.check_index(request["TableName"], self.item)

    def settle(self, found: Item | None, is_busy: bool) -> None:
        """Whether the write can be made now. Raises Conflict, Refused or Invalid."""
        if is_busy:
            raise Conflict
        request, holds = self.request, self.expressions.holds
        if holds is not None and not holds(found or {}, request.get("ExpressionAttributeValues", _NOTHING)):
            raise Refused(found if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None)
        if self.failure is not None:
            raise self.failure


def read(kind: str, request: Request, schema: Schema) -> Write:
    """Raises Invalid for what is wrong whatever the row is like."""
    needed = _NEEDED.get(kind)
    if needed is None or not needed <= request.keys() or request.keys() - needed - _OPTIONAL:
        raise Malformed(f"not the parameters of {kind}: {sorted(request)}")
    table = request["TableName"]
    is_put = kind == "Put"
    item: Item = request["Item" if is_put else "Key"]
    names = request.get("ExpressionAttributeNames", _NOTHING)
    values = request.get("ExpressionAttributeValues", _NOTHING)
    if (not names and "ExpressionAttributeNames" in request) or (not values and "ExpressionAttributeValues" in request):
        raise Malformed("placeholders that are given must not be empty")
    parsed = expressions(request.get("ConditionExpression"), request.get("UpdateExpression"), tuple(names.items()))
    if values.keys() != parsed.values:
        raise Malformed(f"values that are not used, or used and not there: {values.keys() ^ parsed.values}")
    for check in parsed.checks:
        check(values)
    place = schema.place(table, item, is_whole=is_put)
    if parsed.attributes:
        for name in schema.key_names(table):
            if name in parsed.attributes:
                raise Malformed(f"Cannot update attribute {name}. This attribute is part of the key")
    return Write(kind, request, place, parsed)
