"""The tables, topic and dead-letter queue of `table_model`, with the ledger's index of pending rows, which may lag."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from idempotent_consumer.calls import Budget
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.reconciler import ScheduledReconciler
from idempotent_consumer.settings import ReconcilerSettings
from tests.handler.support import HIDE, LEDGER, QUERY, Item
from tests.handler.table_model import Effect, Request, World

CONDITIONS = {
    ":shard": "pending_shard = :shard",
    ":shard :until": "pending_shard = :shard AND created_at <= :until",
}
RECONCILER = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": LEDGER,
    "TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:orders",
    "RECONCILER_THRESHOLD_SECONDS": "900",
}


class _Endless:
    def get_remaining_time_in_millis(self) -> int:
        return 10**9


ENDLESS = Budget(_Endless())


def shard_of(event_id: str) -> str:
    return str(zlib.crc32(event_id.encode()) % 16)


def notification(event_id: str, message: str = "{}") -> RenderedNotification:
    attributes = {"event_id": ("String", event_id)}
    return RenderedNotification(message, attributes, group="g-" + event_id, deduplication_id="d-" + event_id)


def pending_row(event_id: str, created_ms: int, *, shard: str | None = None, **changes: Any) -> Item:
    """As the consumer writes it; a change to None takes an attribute out."""
    row: dict[str, Any] = {
        "event_id": {"S": event_id},
        "status": {"S": "pending"},
        "fingerprint": {"S": "f-" + event_id},
        "created_at": {"N": str(created_ms)},
        "message_id": {"S": "m-" + event_id},
        "notification": {"S": notification(event_id).to_text()},
        "pending_shard": {"S": shard_of(event_id) if shard is None else shard},
        **changes,
    }
    return {name: value for name, value in row.items() if value is not None}


class IndexedWorld(World):
    """shown: the rows that the index shows. is_lagging: they stay as they are, until `sync`.

    most_counted: how many rows one call reads, as DynamoDB reads 1 MB of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_lagging = False
        self.most_counted = 10_000
        self.shown: dict[str, tuple[str, int]] = {}
        database = _IndexedDatabase(self, self.clients.dynamodb)
        self.clients = replace(self.clients, dynamodb=database, sqs_short=_IntakeQueue(self))

    def add(self, *rows: Item) -> None:
        for row in rows:
            self.ledger[row["event_id"]["S"]] = row
        self.sync()

    def sync(self, event_ids: Iterable[str] | None = None) -> None:
        """The index learns what the table says of these rows, or of all."""
        for event_id in [*self.ledger, *self.shown] if event_ids is None else event_ids:
            self.shown.pop(event_id, None)
            row = self.ledger.get(event_id, {})
            if "pending_shard" in row:
                self.shown[event_id] = row["pending_shard"]["S"], int(row["created_at"]["N"])

    def reconciler(self, **changes: str | None) -> ScheduledReconciler:
        """A new process of the scheduled function."""
        environment = {name: value for name, value in {**RECONCILER, **changes}.items() if value is not None}
        return ScheduledReconciler(ReconcilerSettings.from_environment(environment), self.clients)

    def statuses(self) -> dict[str, str]:
        return {event_id: row["status"]["S"] for event_id, row in self.ledger.items()}

    def published(self) -> list[str]:
        return [happened.event_id for happened in self.history if happened.what == "published"]


class Clock:
    """The runtime's context: each call of an operation takes its time. begun: the calls, with the time left then."""

    def __init__(self, world: World, remaining_ms: int, costs_ms: Mapping[str, int]) -> None:
        self.begun: list[tuple[str, int]] = []
        self._remaining_ms = remaining_ms
        self._costs_ms = costs_ms
        self._interfere = world.interfere
        world.interfere = self._take_time

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms

    def _take_time(self, operation: str, request: Request, effect: Effect) -> Any:
        self.begun.append((operation, self._remaining_ms))
        self._remaining_ms -= self._costs_ms.get(operation, 0)
        return self._interfere(operation, request, effect)


class _IndexedDatabase:
    def __init__(self, world: IndexedWorld, database: Any) -> None:
        self._world = world
        self._database = database

    def __getattr__(self, method: str) -> Any:
        return getattr(self._database, method)

    def query(self, **request: Any) -> Any:
        return self._world.call(QUERY, request, self._query)

    def _query(self, **request: Any) -> dict[str, Any]:
        condition = CONDITIONS[" ".join(request["ExpressionAttributeValues"])]
        names = {"TableName": LEDGER, "IndexName": "pending", "KeyConditionExpression": condition}
        if any(request[name] != value for name, value in names.items()) or request.get("ConsistentRead"):
            pytest.fail("a query that the index would not take")
        if request.get("Limit", 1) < 1 or ("Select" in request and "ProjectionExpression" in request):
            pytest.fail("a query that DynamoDB would not take")
        if not self._world.is_lagging:
            self._world.sync()
        rows = self._matching(request)
        most = min(request.get("Limit", 10**9), self._world.most_counted)
        answer: dict[str, Any] = {"Count": len(rows[:most]), "ScannedCount": len(rows[:most])}
        if request.get("Select") != "COUNT":
            wanted = request["ProjectionExpression"].split(", ")
            answer["Items"] = [{name: row[name] for name in wanted} for row in rows[:most]]
        # DynamoDB stops at the limit without looking whether anything follows.
        return answer | ({"LastEvaluatedKey": rows[most - 1]} if len(rows) >= most else {})

    def _matching(self, request: Mapping[str, Any]) -> list[Request]:
        values = request["ExpressionAttributeValues"]
        shard, last = values[":shard"]["S"], int(values.get(":until", {"N": str(10**15)})["N"])
        start = _place(request["ExclusiveStartKey"]) if "ExclusiveStartKey" in request else (-(10**15), "")
        places = sorted(
            (created_ms, event_id)
            for event_id, (of, created_ms) in self._world.shown.items()
            if of == shard and created_ms <= last and (created_ms, event_id) > start
        )
        return [
            {"event_id": {"S": event_id}, "pending_shard": {"S": shard}, "created_at": {"N": str(created_ms)}}
            for created_ms, event_id in places
        ]


class _IntakeQueue:
    def __init__(self, world: IndexedWorld) -> None:
        self._world = world

    def change_message_visibility_batch(self, **request: Any) -> Any:
        return self._world.call(HIDE, request, self._hide)

    def _hide(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        handles = {entry["ReceiptHandle"] for entry in Entries}
        if not 1 <= len(Entries) <= 10 or not QueueUrl or len(handles) < len(Entries):
            pytest.fail("entries that SQS would not take")
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


def _place(key: Mapping[str, Any]) -> tuple[int, str]:
    return int(key["created_at"]["N"]), key["event_id"]["S"]
