"""Tables, topic and dead-letter queue as dictionaries and lists: as much of AWS's rules as the consumer relies on.

moto copies whole tables in each transaction. Batches of 10,000, and thousands of small ones, need something cheaper,
and something that takes a fault at any call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from idempotent_consumer.aws import Clients
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.settings import Settings
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
    Call,
    Item,
    cancelled,
    client_error,
)

Request = dict[str, Any]
# Takes what replaces a part of the request.
Effect = Callable[..., Any]


class Happened(NamedTuple):
    """What took effect.

    message_id: which message did it. text: the fingerprint of what was committed or superseded, the notification that
    was published, the body that was dead-lettered, the key that is refused from now on.
    """

    what: str
    event_id: str
    message_id: str
    text: str


HASH_KEYS = {LEDGER: "event_id", BUSINESS: "id"}

# No test makes so many; one that does would not end.
MOST_CALLS = 5_000

NOTHING_WRONG = {"Code": "None"}


class World:
    """What stands around one consumer.

    invalid_keys, full_keys: business keys that the table refuses for ever; the first with the whole transaction,
    without saying whose it is. history: what took effect, in order. interfere: decides over each call; it gets the
    operation, the request, and what puts it into effect.
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Item]] = {LEDGER: {}, BUSINESS: {}}
        self.invalid_keys: set[str] = set()
        self.full_keys: set[str] = set()
        self.calls: list[Call] = []
        self.history: list[Happened] = []
        self.interfere: Callable[[str, Request, Effect], Any] = lambda _operation, _request, effect: effect()
        self._lock = Lock()
        self.clients = Clients(dynamodb=_Database(self), sns=_Topic(self), sqs=_DeadLetterQueue(self), sqs_short=None)

    @property
    def ledger(self) -> dict[str, Item]:
        return self.tables[LEDGER]

    @property
    def rows(self) -> dict[str, Item]:
        return self.tables[BUSINESS]

    def count(self, operation: str) -> int:
        return sum(call.operation == operation for call in self.calls)

    def consumer(
        self, plan: Callable[[Planner, Event], Plan] = lambda planner, event: planner(event), /, **changes: str
    ) -> Consumer:
        """A new process of the function. plan: gets the shipped planner and the event."""
        environment = {
            "CONSUMER_NAME": "orders",
            "LEDGER_TABLE": LEDGER,
            "BUSINESS_TABLE": BUSINESS,
            "TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:orders",
            "DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead-letter",
            **changes,
        }
        settings = Settings.from_environment(environment)
        return Consumer(settings, self.clients, partial(plan, declarative_planner(settings)))

    def call(self, operation: str, request: Request, effect: Callable[..., Any]) -> Any:
        """As one call of a client: recorded, and left to whoever interferes."""
        self.calls.append(Call(operation, request))
        if len(self.calls) > MOST_CALLS:
            pytest.fail("calls without end")

        def take_effect(**changed: Any) -> Any:
            with self._lock:
                return effect(**(request | changed))

        return self.interfere(operation, request, take_effect)

    def reasons_of(self, actions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What a transaction is told of each action, all of them named, with the rows that stand in the way."""
        return [self._reason(action["Put"]) for action in actions]

    def store(self, put: Mapping[str, Any], what: str) -> None:
        table, item = put["TableName"], put["Item"]
        self.tables[table][_key(put)] = item
        if table == LEDGER:
            by = (item["event_id"]["S"], item["message_id"]["S"], item["fingerprint"]["S"])
            self.history.append(Happened(what, *by))

    def stored(self, put: Mapping[str, Any]) -> Item | None:
        return self.tables[put["TableName"]].get(_key(put))

    def _reason(self, put: Mapping[str, Any]) -> dict[str, Any]:
        if put["TableName"] == BUSINESS and _key(put) in self.full_keys:
            return {"Code": "ItemCollectionSizeLimitExceeded"}
        if condition_holds(put, self.stored(put)):
            return NOTHING_WRONG
        row = self.stored(put)
        wants_row = put.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        return {"Code": "ConditionalCheckFailed", **({"Item": row} if row and wants_row else {})}


class _Database:
    def __init__(self, world: World) -> None:
        self._world = world

    def transact_write_items(self, **request: Any) -> Any:
        return self._world.call(COMMIT, request, self._transact)

    def batch_get_item(self, **request: Any) -> Any:
        return self._world.call(READ, request, self._get)

    def put_item(self, **request: Any) -> Any:
        return self._world.call(PUT, request, self._put)

    def batch_execute_statement(self, **request: Any) -> Any:
        return self._world.call(MARK, request, self._execute)

    def _transact(self, TransactItems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        puts = [action["Put"] for action in TransactItems]
        places = [(put["TableName"], _key(put)) for put in puts]
        size = sum(_size(put["Item"]) for put in puts)
        if not 1 <= len(puts) <= 100 or len(set(places)) < len(places) or size > 4_000_000:
            pytest.fail("a transaction that DynamoDB would not take")
        if any((BUSINESS, key) in places for key in self._world.invalid_keys):
            raise client_error("ValidationException")
        reasons = self._world.reasons_of(TransactItems)
        if any(reason["Code"] != "None" for reason in reasons):
            raise cancelled(*reasons)
        for put in puts:
            self._world.store(put, "committed")
        return {}

    def _put(self, **put: Any) -> dict[str, Any]:
        if not condition_holds(put, self._world.stored(put)):
            raise client_error("ConditionalCheckFailedException", PUT)
        self._world.store(put, "superseded")
        return {}

    def _get(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        ((table, wanted),) = RequestItems.items()
        keys = [key[HASH_KEYS[table]]["S"] for key in wanted["Keys"]]
        if not 1 <= len(keys) <= 100 or len(set(keys)) < len(keys) or not wanted["ConsistentRead"]:
            pytest.fail("a read that DynamoDB would not take, or that does not decide")
        rows = self._world.tables[table]
        return {"Responses": {table: [rows[key] for key in keys if key in rows]}}

    def _execute(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if not 1 <= len(Statements) <= 25:
            pytest.fail("more statements than DynamoDB would take")
        return {"Responses": [self._mark(statement) for statement in Statements]}

    def _mark(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        if statement["Statement"] != MARK_STATEMENT:
            pytest.fail("another marking statement")
        status, sent_at, ttl, message_id, event_id = statement["Parameters"]
        row = self._world.ledger.get(event_id["S"])
        if row is None:
            return {"TableName": LEDGER, "Error": {"Code": "ConditionalCheckFailed"}}
        marked = {**row, "status": status, "sent_at": sent_at, "ttl": ttl, "message_id": message_id}
        gone = ("notification", "pending_shard")
        self._world.ledger[event_id["S"]] = {name: value for name, value in marked.items() if name not in gone}
        self._world.history.append(Happened("marked", event_id["S"], message_id["S"], ""))
        return {"TableName": LEDGER}


class _Topic:
    def __init__(self, world: World) -> None:
        self._world = world

    def publish_batch(self, **request: Any) -> Any:
        return self._world.call(PUBLISH, request, self._publish)

    def _publish(self, TopicArn: str, PublishBatchRequestEntries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        entries = PublishBatchRequestEntries
        if not 1 <= len(entries) <= 10 or sum(len(entry["Message"].encode()) for entry in entries) > 262_144:
            raise client_error("BatchRequestTooLong", PUBLISH)
        for entry in entries:
            event_id = entry["MessageAttributes"]["event_id"]["StringValue"]
            self._world.history.append(Happened("published", event_id, "", entry["Message"]))
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}


class _DeadLetterQueue:
    def __init__(self, world: World) -> None:
        self._world = world

    def send_message(self, **request: Any) -> Any:
        return self._world.call(BURY, request, self._send)

    def _send(self, MessageBody: str, **_more: Any) -> dict[str, Any]:
        self._world.history.append(Happened("dead-lettered", "", "", MessageBody))
        return {}


def condition_holds(put: Mapping[str, Any], row: Item | None) -> bool:
    """Whether DynamoDB would write. Here conditions are comparisons joined by OR, and versions are numbers."""
    names, values = put.get("ExpressionAttributeNames", {}), put.get("ExpressionAttributeValues", {})
    return any(_holds(term, row or {}, names, values) for term in put["ConditionExpression"].split(" OR "))


def _holds(term: str, row: Item, names: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    if term.startswith("attribute_not_exists("):
        name = term.removeprefix("attribute_not_exists(").removesuffix(")")
        return names.get(name, name) not in row
    name, operator, value = term.split()
    stored, wanted = row.get(names[name]), values[value]
    if operator == "<>":
        return bool(stored != wanted)
    if operator != "<":
        pytest.fail(f"a condition that the consumer does not use: {term}")
    if stored is None:
        return False
    return Decimal(stored["N"]) < Decimal(wanted["N"])


def _key(put: Mapping[str, Any]) -> str:
    return str(put["Item"][HASH_KEYS[put["TableName"]]]["S"])


def _size(item: Item) -> int:
    """Near enough: numbers, lists and maps are small here."""
    return sum(len(name) + len(str(value.get("S", ""))) for name, value in item.items())


def reasons_in(error: ClientError) -> list[dict[str, Any]]:
    return list(error.response.get("CancellationReasons", []))
