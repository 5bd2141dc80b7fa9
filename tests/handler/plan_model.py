"""Tables, topic and dead-letter queue for users' own plans: `table_model` with all actions and expressions they hold.

A request that DynamoDB would not take is noted in `PlanWorld.complaints`: raised, it would be taken for a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any, NamedTuple

from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    MARK_STATEMENT,
    PUBLISH,
    PUT,
    READ,
    Item,
    cancelled,
    client_error,
)
from tests.handler.table_model import NOTHING_WRONG, Request, World

# Each table's key attributes with their types.
KEYS: dict[str, dict[str, str]] = {
    LEDGER: {"event_id": "S"},
    BUSINESS: {"id": "S"},
    "stock": {"sku": "S"},
    "customers": {"number": "N"},
    "prices": {"sku": "S"},
    "lines": {"order": "S", "line": "N"},
    "forbidden": {"id": "S"},
}

# Wide enough for the widest sum, of which DynamoDB keeps 38 digits.
EXACT = Context(prec=100)

Place = tuple[str, tuple[Any, ...]]


# What has happened, in order. process: the number of the run of a consumer that did it.


@dataclass
class Tried:
    """A transaction that reached the tables. is_named: the answer tells all that failed."""

    process: int
    message_ids: tuple[str, ...]
    is_written: bool
    is_named: bool = True


class Superseded(NamedTuple):
    process: int
    message_id: str


class Published(NamedTuple):
    event_id: str
    text: str


class Marked(NamedTuple):
    event_id: str


class Buried(NamedTuple):
    process: int
    body: str
    reason: str


class Expired(NamedTuple):
    event_id: str


class Changed(NamedTuple):
    """Another program writes a row; its values are plain."""

    place: Place
    row: dict[str, Any]


class Answered(NamedTuple):
    message_ids: tuple[str, ...]
    returning: tuple[str, ...]


Step = Tried | Superseded | Published | Marked | Buried | Expired | Changed | Answered


class PlanWorld(World):
    """What stands around one consumer. denied: tables that it has no right for. steps: what happened, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Place, Item] = {}
        self.denied: set[str] = set()
        self.steps: list[Step] = []
        self.complaints: list[str] = []
        self.process = 0
        self.clients = replace(
            self.clients, dynamodb=_Database(self), sns=_Topic(self), sqs=_DeadLetterQueue(self), sqs_short=None
        )

    def ledger_rows(self) -> dict[str, Item]:
        return {key[0]: row for (table, key), row in self.places.items() if table == LEDGER}

    def plain(self) -> dict[Place, dict[str, Any]]:
        """All rows but the ledger's as plain values, without what only the consumer can know."""
        unknown = ("event_fingerprint", "event_consumer", "event_committed_at")
        return {
            place: {name: _plain(value) for name, value in row.items() if name not in unknown}
            for place, row in self.places.items()
            if place[0] != LEDGER
        }

    def change(self, place: Place, row: Mapping[str, Any]) -> None:
        """As another program would."""
        self.places[place] = {
            name: {"S": value} if isinstance(value, str) else {"N": str(value)} for name, value in row.items()
        }
        self.steps.append(Changed(place, dict(row)))

    def expire(self, event_id: str) -> None:
        del self.places[LEDGER, (event_id,)]
        self.steps.append(Expired(event_id))

    def note(self, request: Request, is_written: bool, is_named: bool) -> None:
        """A transaction that got an answer."""
        puts = [action["Put"] for action in request["TransactItems"] if "Put" in action]
        message_ids = tuple(put["Item"]["message_id"]["S"] for put in puts if put["TableName"] == LEDGER)
        self.steps.append(Tried(self.process, message_ids, is_written, is_named))

    def reasons_of(self, actions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [self._outcome(action)[0] for action in actions]

    def transact(self, TransactItems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._check(TransactItems)
        if any(_request(action)["TableName"] in self.denied for action in TransactItems):
            raise client_error("AccessDeniedException")
        if any(not _has_valid_key(_request(action)) for action in TransactItems):
            raise client_error("ValidationException")
        outcomes = [self._outcome(action) for action in TransactItems]
        is_written = all(reason["Code"] == "None" for reason, _ in outcomes)
        self.note({"TransactItems": TransactItems}, is_written, is_named=True)
        if not is_written:
            raise cancelled(*(reason for reason, _ in outcomes))
        for action, (_, row) in zip(TransactItems, outcomes, strict=True):
            if "ConditionCheck" not in action:
                self._store(place_of(_request(action)), row)
        return {}

    def put_ledger_row(self, **put: Any) -> dict[str, Any]:
        reason, row = self._outcome({"Put": put})
        if put["TableName"] != LEDGER:
            self.complaints.append("PutItem outside of the ledger")
        if reason["Code"] != "None":
            raise client_error("ConditionalCheckFailedException", PUT)
        self._store(place_of(put), row)
        self.steps.append(Superseded(self.process, put["Item"]["message_id"]["S"]))
        return {}

    def _store(self, place: Place, row: Item | None) -> None:
        if row is None:
            self.places.pop(place, None)
        else:
            self.places[place] = row

    def _check(self, actions: Sequence[Mapping[str, Any]]) -> None:
        places = [place_of(_request(action)) for action in actions]
        if not 1 <= len(actions) <= 100:
            self.complaints.append(f"{len(actions)} actions")
        if len(set(places)) < len(places):
            self.complaints.append("two actions of one item")
        if any(kind not in ("Put", "Update", "Delete", "ConditionCheck") for action in actions for kind in action):
            self.complaints.append("an unknown action")

    def _outcome(self, action: Mapping[str, Any]) -> tuple[dict[str, Any], Item | None]:
        """The reason that the transaction is told, and the row that the action leaves."""
        ((kind, request),) = action.items()
        row = self.places.get(place_of(request))
        used: set[str] = set()
        condition = request.get("ConditionExpression")
        holds = condition is None or Expression(condition, request, row or {}, used).holds()
        changed, is_valid = _changed(kind, request, row, used)
        placeholders = {*request.get("ExpressionAttributeNames", {}), *request.get("ExpressionAttributeValues", {})}
        if placeholders != {name for name in used if name[0] in "#:"}:
            self.complaints.append(f"placeholders that are not used, or used and not there: {request}")
        if not holds:
            wants_row = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            return {"Code": "ConditionalCheckFailed", **({"Item": row} if row and wants_row else {})}, row
        return (NOTHING_WRONG if is_valid else {"Code": "ValidationError"}), changed


class _Database:
    def __init__(self, world: PlanWorld) -> None:
        self._world = world

    def transact_write_items(self, **request: Any) -> Any:
        return self._world.call(COMMIT, request, self._world.transact)

    def put_item(self, **request: Any) -> Any:
        return self._world.call(PUT, request, self._world.put_ledger_row)

    def batch_get_item(self, **request: Any) -> Any:
        return self._world.call(READ, request, self._get)

    def batch_execute_statement(self, **request: Any) -> Any:
        return self._world.call(MARK, request, self._execute)

    def _get(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        ((table, wanted),) = RequestItems.items()
        keys = [key["event_id"]["S"] for key in wanted["Keys"]]
        if table != LEDGER or not 1 <= len(keys) <= 100 or len(set(keys)) < len(keys) or not wanted["ConsistentRead"]:
            self._world.complaints.append("a read that DynamoDB would not take, or that does not decide")
        rows = self._world.ledger_rows()
        return {"Responses": {table: [rows[key] for key in keys if key in rows]}}

    def _execute(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if not 1 <= len(Statements) <= 25:
            self._world.complaints.append("more statements than DynamoDB would take")
        return {"Responses": [self._mark(statement) for statement in Statements]}

    def _mark(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        if statement["Statement"] != MARK_STATEMENT:
            self._world.complaints.append("another marking statement")
        status, sent_at, ttl, message_id, event_id = statement["Parameters"]
        place = (LEDGER, (event_id["S"],))
        row = self._world.places.get(place)
        if row is None:
            return {"TableName": LEDGER, "Error": {"Code": "ConditionalCheckFailed"}}
        marked = {**row, "status": status, "sent_at": sent_at, "ttl": ttl, "message_id": message_id}
        gone = ("notification", "pending_shard")
        self._world.places[place] = {name: value for name, value in marked.items() if name not in gone}
        self._world.steps.append(Marked(event_id["S"]))
        return {"TableName": LEDGER}


class _Topic:
    def __init__(self, world: PlanWorld) -> None:
        self._world = world

    def publish_batch(self, **request: Any) -> Any:
        return self._world.call(PUBLISH, request, self._publish)

    def _publish(self, TopicArn: str, PublishBatchRequestEntries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if not 1 <= len(PublishBatchRequestEntries) <= 10:
            self._world.complaints.append("more notifications than SNS would take")
        for entry in PublishBatchRequestEntries:
            event_id = entry["MessageAttributes"]["event_id"]["StringValue"]
            self._world.steps.append(Published(event_id, entry["Message"]))
        return {"Successful": [{"Id": entry["Id"]} for entry in PublishBatchRequestEntries], "Failed": []}


class _DeadLetterQueue:
    def __init__(self, world: PlanWorld) -> None:
        self._world = world

    def send_message(self, **request: Any) -> Any:
        return self._world.call(BURY, request, self._send)

    def _send(self, MessageBody: str, MessageAttributes: Mapping[str, Any], **_more: Any) -> dict[str, Any]:
        reason = MessageAttributes["dead_letter_reason"]["StringValue"]
        self._world.steps.append(Buried(self._world.process, MessageBody, reason))
        return {}


# Keys and rows


def place_of(request: Mapping[str, Any]) -> Place:
    table = request["TableName"]
    values = request.get("Key") or request["Item"]
    return table, tuple(_plain(values[name]) for name in KEYS[table])


def _request(action: Mapping[str, Any]) -> Mapping[str, Any]:
    ((_, request),) = action.items()
    return request  # type: ignore[no-any-return]


def _has_valid_key(request: Mapping[str, Any]) -> bool:
    values = request.get("Key") or request["Item"]
    return all(kind in values[name] for name, kind in KEYS[request["TableName"]].items())


def _changed(kind: str, request: Mapping[str, Any], row: Item | None, used: set[str]) -> tuple[Item | None, bool]:
    """The row afterwards, and whether DynamoDB can do that to it."""
    if kind == "Put":
        return request["Item"], True
    if kind == "Delete":
        return None, True
    if kind == "ConditionCheck":
        return row, True
    return _updated(request, dict(row or request["Key"]), used)


def _updated(request: Mapping[str, Any], row: Item, used: set[str]) -> tuple[Item, bool]:
    """Here an update changes attributes of the row itself; `ADD` takes numbers."""
    names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
    is_valid = True
    words = re.split(r"(SET|REMOVE|ADD) ", request["UpdateExpression"])[1:]
    for word, changes in zip(words[::2], words[1::2], strict=True):
        for change in changes.split(","):
            placeholder, *value = change.replace("=", " ").split()
            used.update([placeholder, *value])
            name = names[placeholder]
            if word == "REMOVE":
                row.pop(name, None)
            elif word == "SET":
                row[name] = values[value[0]]
            else:
                old = row.get(name, {"N": "0"})
                total = EXACT.add(Decimal(old.get("N", 0)), Decimal(values[value[0]]["N"]))
                is_valid = is_valid and "N" in old and digits(total) <= 38
                row[name] = {"N": str(total)}
    return row, is_valid


def digits(number: Decimal) -> int:
    return len(EXACT.normalize(number).as_tuple().digits)


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content


# Conditions


_TOKEN = re.compile(r"\s*(<>|<=|>=|[=<>(),]|[#:]?\w+)")


class Expression:
    """A condition expression on one row. used: gets the placeholders that it names."""

    def __init__(self, text: str, request: Mapping[str, Any], row: Item, used: set[str]) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._names = request.get("ExpressionAttributeNames", {})
        self._values = request.get("ExpressionAttributeValues", {})
        self._row = row
        used.update(self._tokens[:-1])

    def holds(self) -> bool:
        result = self._any()
        assert self._tokens == [""], "a condition that is not understood"
        return result

    def _any(self) -> bool:
        result = self._all()
        while self._take("OR"):
            result = self._all() or result
        return result

    def _all(self) -> bool:
        result = self._one()
        while self._take("AND"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        if self._take("NOT"):
            return not self._one()
        if self._take("("):
            result = self._any()
            assert self._take(")")
            return result
        name = self._next()
        if name in ("attribute_exists", "attribute_not_exists"):
            assert self._take("(")
            is_there = self._value(self._next()) is not None
            assert self._take(")")
            return is_there is (name == "attribute_exists")
        return self._compare(self._value(name))

    def _compare(self, one: dict[str, Any] | None) -> bool:
        operator = self._next()
        other = self._value(self._next())
        if operator == "IN":
            others = []
            while not self._take(")"):
                self._take(",")
                others.append(self._value(self._next()))
            return any(_is_equal(one, each) for each in others)
        if operator == "BETWEEN":
            assert self._take("AND")
            highest = self._value(self._next())
            return _is_less(other, one, True) and _is_less(one, highest, True)
        if operator in ("=", "<>"):
            return _is_equal(one, other) is (operator == "=")
        smaller, larger = (one, other) if operator[0] == "<" else (other, one)
        return _is_less(smaller, larger, operator.endswith("="))

    def _value(self, token: str) -> dict[str, Any] | None:
        if token.startswith(":"):
            return self._values[token]  # type: ignore[no-any-return]
        return None if token == "(" else self._row.get(self._names.get(token, token))

    def _next(self) -> str:
        return self._tokens.pop(0)

    def _take(self, token: str) -> bool:
        if self._tokens[0] != token:
            return False
        self._tokens.pop(0)
        return True


def _is_equal(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return False
    return bool(_plain(one) == _plain(other))


def _is_less(one: dict[str, Any] | None, other: dict[str, Any] | None, or_equal: bool) -> bool:
    """Values of one kind alone have an order; here numbers and short texts have."""
    if one is None or other is None or one.keys() != other.keys():
        return False
    return bool(_plain(one) < _plain(other)) or (or_equal and _is_equal(one, other))
