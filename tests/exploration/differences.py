"""Where emulators differ from DynamoDB, and so from the model.

The model follows the Amazon DynamoDB API Reference and Developer Guide, and where they are silent what the tests of
scylladb/scylladb, test/alternator, which run on AWS too, have measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.exploration.comparison import BUSINESS, COUNTERS, LEDGER, LINES, Found

MOTO, MINISTACK = "moto", "ministack"
_CODES = frozenset({"", "ConditionalCheckFailed", "None", "TransactionConflict", "ValidationError"})

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """calls: of which the last is answered, or done, otherwise by these emulators. code: the model's answer to it.

    explains: whether a difference that random requests have met is this one.
    """

    why: str
    emulators: Sequence[str]
    calls: Sequence[Call]
    code: str
    explains: Callable[[Found], bool] = lambda _found: False


def update(text: str, table: str = BUSINESS, key: Any = None, **more: Any) -> Call:
    """more: condition, the values of placeholders as v_…, or what the API takes of placeholders."""
    request: dict[str, Any] = {"TableName": table, "Key": key or {"id": {"S": "d"}}, "UpdateExpression": text}
    return "UpdateItem", request | _expressions(more)


def put(table: str = BUSINESS, *, values: Any = None, **item: Any) -> Call:
    given = {"ExpressionAttributeValues": values} if values else {}
    return "PutItem", {"TableName": table, "Item": {"id": {"S": "d"}, **item} if table == BUSINESS else item, **given}


def transact(*calls: Call) -> Call:
    kinds = {"UpdateItem": "Update", "PutItem": "Put", "DeleteItem": "Delete"}
    return "TransactWriteItems", {"TransactItems": [{kinds[operation]: request} for operation, request in calls]}


def _expressions(more: dict[str, Any]) -> dict[str, Any]:
    values = {f":{name[2:]}": value for name, value in more.items() if name.startswith("v_")}
    result: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    if "condition" in more:
        result["ConditionExpression"] = more["condition"]
    return result | {name: value for name, value in more.items() if name.startswith("Expression")}


def _query(limit: int) -> Call:
    request = {
        "TableName": LEDGER,
        "IndexName": "pending",
        "KeyConditionExpression": "pending_shard = :shard",
        "ExpressionAttributeValues": {":shard": {"S": "1"}},
        "Limit": limit,
    }
    return "Query", request


def _get(number: str) -> Call:
    return "GetItem", {"TableName": COUNTERS, "Key": {"number": {"N": number}}, "ConsistentRead": True}


_ONE = {"N": "1"}
_MAP = {"M": {"city": {"S": "Wien"}}}
_PENDING = put(LEDGER, event_id={"S": "e-1"}, pending_shard={"S": "1"}, created_at=_ONE)


def _is_invalid(found: Found) -> bool:
    reasons = [reason[0] for reason in found.expected.content[1:]] if found.expected.code else []
    return found.expected.code == "ValidationException" or "ValidationError" in reasons


def _falls_over(found: Found) -> bool:
    if found.got.code == "TransactionCanceledException":
        return any(code not in _CODES for code, _ in found.got.content[1:])
    return found.got.code.endswith("Error")


def _stops_at_an_update(found: Found) -> bool:
    actions = found.request.get("TransactItems", ())
    is_update = any("Update" in action for action in actions)
    return is_update and found.got.code == "ValidationException" and found.expected.code != ""


def _wants_a_text(found: Found) -> bool:
    return "begins_with" in repr(found.request) and found.got.code == "ValidationException"


def _takes_null_for_missing(found: Found) -> bool:
    text = repr(found.request)
    return "'NULL': True" in text and any(operator in text for operator in (" = ", " <> ", " IN ("))


def _ends_early(found: Found) -> bool:
    if found.operation != "Query" or found.got.code or found.expected.code:
        return False
    return bool({**found.expected.content, "LastEvaluatedKey": None} == found.got.content)


DIFFERENCES = [
    # Met by random requests
    Difference(
        "no LastEvaluatedKey where the limit ends at the last row; DynamoDB has not looked further",
        [MOTO],
        [_PENDING, _query(1)],
        "",
        _ends_early,
    ),
    Difference(
        "what cannot be valid is found late, or not at all: here a placeholder that is not used",
        [MOTO],
        [put(more=_ONE, values={":more": _ONE})],
        "ValidationException",
        _is_invalid,
    ),
    Difference(
        "falls over where a size is compared of what has none",
        [MOTO],
        [transact(update("SET a = :v", v_v=_ONE, condition="size(lacking) > :v"))],
        "TransactionCanceledException",
        _falls_over,
    ),
    Difference(
        "an update that cannot be done fails the call, not its action",
        [MOTO],
        [transact(update("SET address.city = :v", v_v=_ONE))],
        "TransactionCanceledException",
        _stops_at_an_update,
    ),
    Difference(
        "begins_with fails the call where a number is stored; DynamoDB refuses those alone that the request brings",
        [MINISTACK],
        [put(a=_ONE), update("SET b = :v", v_v={"S": "x"}, condition="NOT begins_with(a, :v)")],
        "",
        _wants_a_text,
    ),
    Difference(
        "a null equals what is missing",
        [MOTO],
        [put(), update("SET b = :v", v_v={"NULL": True}, condition="a <> :v")],
        "",
        _takes_null_for_missing,
    ),
    # Left out of random requests
    Difference(
        "two attributes that are both missing are equal; in DynamoDB nothing is equal to what is missing",
        [MOTO, MINISTACK],
        [update("SET a = :v", v_v=_ONE, condition="b <> c")],
        "",
    ),
    Difference(
        "an update that only removes makes a row where there is none",
        [MOTO, MINISTACK],
        [update("REMOVE a")],
        "",
    ),
    Difference(
        "to remove inside of a value that is missing is taken",
        [MINISTACK],
        [put(), update("REMOVE address.city")],
        "ValidationException",
    ),
    Difference(
        "to set inside of a value that is no map is taken",
        [MOTO, MINISTACK],
        [put(address={"NULL": True}), transact(update("SET address.city = :v", v_v=_ONE))],
        "TransactionCanceledException",
    ),
    Difference(
        "operands that have no order are compared; DynamoDB refuses those that the request brings",
        [MOTO, MINISTACK],
        [update("SET a = :v", v_v=_MAP, condition="NOT a < :v")],
        "ValidationException",
    ),
    Difference(
        "the bounds of BETWEEN may be the wrong way round",
        [MOTO],
        [update("SET a = :v", v_v=_ONE, v_low={"N": "2"}, condition="NOT a BETWEEN :low AND :v")],
        "ValidationException",
    ),
    Difference(
        "an operand may be compared with itself",
        [MOTO, MINISTACK],
        [update("SET a = :v", v_v=_ONE, condition="NOT a < a")],
        "ValidationException",
    ),
    Difference(
        "a number that is a key is found by its shortest text alone",
        [MINISTACK],
        [put(COUNTERS, number={"N": "7.50"}), _get("7.50")],
        "",
    ),
    Difference(
        "an empty map of placeholders is taken",
        [MINISTACK],
        [transact(update("SET a = b", condition="a = b", ExpressionAttributeValues={}))],
        "ValidationException",
    ),
    Difference(
        "a sum is rounded to 28 digits; DynamoDB keeps 38",
        [MINISTACK],
        [put(a={"N": f"{10**30}"}), update("ADD a :v", v_v=_ONE)],
        "",
    ),
    Difference(
        "a sum may have more than 38 digits",
        [MOTO, MINISTACK],
        [put(a={"N": f"{10**37}"}), update("ADD a :v", v_v={"N": "0.5"})],
        "ValidationException",
    ),
    Difference(
        "an action without a key is taken",
        [MINISTACK],
        [transact(update("SET a = :v", LINES, {"order": {"S": "a"}}, v_v=_ONE, condition="a = :v"))],
        "ValidationException",
    ),
]
