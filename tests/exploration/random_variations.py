"""Random variations of requests, many of which DynamoDB refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.items import to_attribute_value
from tests.exploration.comparison import INDEX, KEYS, LEDGER, Send
from tests.exploration.random_values import random_value


class Variations:
    """Requests as they were sent, each with one thing changed."""

    def __init__(self, chance: Random, send: Send) -> None:
        self._chance = chance
        self._send = send

    def step(self, calls: Sequence[tuple[str, Any]]) -> None:
        writes = [(operation, request) for operation, request in calls if operation != "GetItem"]
        if not writes:
            return
        operation, request = self._chance.choice(writes)
        changed = deepcopy(dict(request))
        deletes = [action["Delete"] for action in changed.get("TransactItems", ()) if "Delete" in action]
        if deletes:
            operation, changed = "DeleteItem", deletes[0]
        places = [changed]
        if operation == "TransactWriteItems":
            places = [next(iter(action.values())) for action in changed["TransactItems"]]
        elif operation == "BatchExecuteStatement":
            places = changed["Statements"]
        elif operation == "BatchGetItem":
            places = list(changed["RequestItems"].values())
        self._vary(operation, changed, self._chance.choice(places))
        with suppress(ClientError):
            self._send(operation, changed)

    def _vary(self, operation: str, request: dict[str, Any], part: dict[str, Any]) -> None:
        chance = self._chance
        if "TransactItems" in request and chance.random() < 0.15:
            request["TransactItems"].append(deepcopy(chance.choice(request["TransactItems"])))
        elif "Statements" in request:
            part["Parameters"][-1] = chance.choice(({"S": "e-1"}, {"S": "unknown"}))
        elif "Keys" in part:
            part["Keys"].append(deepcopy(chance.choice(part["Keys"])))
        elif "IndexName" in part:
            part["Limit"] = chance.choice((1, 2, 50))
        else:
            how = chance.choice((self._values, self._placeholders, self._condition, self._shown, None, None))
            if how is None:
                self._key(request, part)
            else:
                how(part)

    def _key(self, request: dict[str, Any], part: dict[str, Any]) -> None:
        chance = self._chance
        name = chance.choice(list(KEYS[part["TableName"]]))
        key = part["Key" if "Key" in part else "Item"]
        key[name] = chance.choice(({"S": "a"}, {"S": "e-1"}, {"N": "1"}, {"S": "k-1"}))
        if "UpdateExpression" in request and chance.random() < 0.1:
            del key[name]

    def _values(self, part: dict[str, Any]) -> None:
        """What is written, but not to attributes that the library reads; index keys of a wrong type are refused.

        Left out is the known difference of an operand that a condition does not take.
        """
        condition = part.get("ConditionExpression", "")
        values = part.get("ExpressionAttributeValues") or part.get("Item", {})
        free: tuple[str, ...] = ("free", "kind", "tags", *INDEX[LEDGER])
        if part.get("UpdateExpression", "").startswith("ADD"):
            free = (":v0",)
        own = [name for name in values if name in free and name not in re.findall(r":\w+", condition)]
        if own:
            values[self._chance.choice(own)] = to_attribute_value(random_value(self._chance), "")

    def _placeholders(self, part: dict[str, Any]) -> None:
        which = self._chance.choice(("ExpressionAttributeNames", "ExpressionAttributeValues"))
        given = part.get(which)
        if given and len(given) > 1 and self._chance.random() < 0.5:
            del given[self._chance.choice(list(given))]
        elif which == "ExpressionAttributeNames":
            part[which] = {**(given or {}), "#more": "more"}
        else:
            part[which] = {**(given or {}), ":more": {"S": "more"}}

    def _condition(self, part: dict[str, Any]) -> None:
        """Another condition, on attributes that have placeholders already, or on the key."""
        names = list(part.get("ExpressionAttributeNames", ())) or list(KEYS[part["TableName"]])[:1]
        name = self._chance.choice(names)
        joint = self._chance.choice((" AND ", " OR "))
        more = self._chance.choice(("attribute_exists(#)", "attribute_not_exists(#)", "NOT attribute_exists(#)"))
        if "Item" not in part or "ConditionExpression" in part:
            conditions = [part["ConditionExpression"]] if "ConditionExpression" in part else []
            part["ConditionExpression"] = joint.join([*conditions, more.replace("#", name)])

    def _shown(self, part: dict[str, Any]) -> None:
        if part.pop("ReturnValuesOnConditionCheckFailure", None) is None:
            part["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
