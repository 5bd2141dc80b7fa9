"""What stands around an operation: its ledger table, queue and dead-letter queue, a provider, and the time.

As much of AWS's rules as operations rely on. Where a request would not be taken, or something happens that never may,
that is noted in `complaints`: raised, it would be taken for a fault.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from idempotent_consumer.aws import Clients
from tests.handler.plan_model import Expression
from tests.handler.support import BURY, HIDE, LEDGER, NOW_MS, Call, Item, client_error

UPDATE = "UpdateItem"
Request = dict[str, Any]
Effect = Callable[[], Any]


class Write(NamedTuple):
    """A row as a write found it and left it. by: who wrote."""

    by: Any
    before: Item | None
    after: Item


class Letter(NamedTuple):
    """A message in the dead-letter queue."""

    body: str
    reason: str


@dataclass
class Message:
    """A message in the queue. visible_ms: hidden until then."""

    id: str
    body: str
    visible_ms: int
    received: int = 0

    @property
    def order(self) -> str:
        return str(json.loads(self.body)["id"])


@dataclass
class Ledger:
    """The table, its rows by event id, with all that was written to it, in order."""

    rows: dict[str, Item] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def update(self, by: Any, request: Mapping[str, Any]) -> dict[str, Any]:
        """UpdateItem. Raises ConditionalCheckFailedException, with the row where it is asked for."""
        event_id = request["Key"]["event_id"]["S"]
        row = self.rows.get(event_id)
        used: set[str] = set()
        holds = Expression(request["ConditionExpression"], request, row or {}, used).holds()
        changed = _updated(request, row or request["Key"], used)
        given = {*request["ExpressionAttributeNames"], *request["ExpressionAttributeValues"]}
        if request["TableName"] != LEDGER or given != {name for name in used if name[0] in "#:"}:
            self.complaints.append(f"DynamoDB would not take {request}")
        if not holds:
            wants_row = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            found = {"Item": row} if row and wants_row else {}
            raise client_error("ConditionalCheckFailedException", UPDATE, **found)
        self.write(by, event_id, changed)
        return {}

    def write(self, by: Any, event_id: str, row: Item) -> None:
        self.writes.append(Write(by, self.rows.get(event_id), row))
        self.rows[event_id] = row


def _updated(request: Mapping[str, Any], row: Item, used: set[str]) -> Item:
    """Here an update sets attributes to values, then removes some."""
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    sets, _, removes = request["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    pairs = [pair.split(" = ") for pair in sets.split(", ")]
    gone = removes.split(", ") if removes else []
    used.update(token for pair in pairs for token in pair)
    used.update(gone)
    changed = {**row, **{names[name]: values[value] for name, value in pairs}}
    return {name: value for name, value in changed.items() if name not in {names[each] for each in gone}}


class World:
    """interfere: decides over each call; it gets the operation, the request, and what puts it into effect.

    now_ms: the true time. actor: whose call it is.
    """

    def __init__(self, actor: Callable[[], Any]) -> None:
        self.now_ms = NOW_MS
        self.ledger = Ledger()
        self.queue: list[Message] = []
        self.letters: list[Letter] = []
        self.calls: list[Call] = []
        self.interfere: Callable[[str, Request, Effect], Any] = lambda _operation, _request, effect: effect()
        self._actor = actor
        self._sent = 0
        self.clients = Clients(dynamodb=_Database(self), sns=None, sqs=_DeadLetters(self), sqs_short=_Queue(self))

    def send(self, body: str) -> None:
        self._sent += 1
        self.queue.append(Message(f"m-{self._sent}", body, self.now_ms))

    def call(self, operation: str, request: Request, effect: Effect) -> Any:
        self.calls.append(Call(operation, request))
        return self.interfere(operation, request, effect)

    def update(self, request: Request) -> Any:
        actor = self._actor()
        return self.call(UPDATE, request, lambda: self.ledger.update(actor, request))

    def bury(self, request: Request) -> Any:
        letter = Letter(request["MessageBody"], request["MessageAttributes"]["dead_letter_reason"]["StringValue"])

        def send() -> dict[str, Any]:
            self.letters.append(letter)
            return {}

        return self.call(BURY, request, send)

    def give_up(self, message: Message) -> None:
        """The queue's redrive policy: it has been received too often."""
        self.queue.remove(message)
        self.letters.append(Letter(message.body, ""))

    def hide(self, request: Request) -> Any:
        return self.call(HIDE, request, lambda: self._hide(request["Entries"]))

    def _hide(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        messages = {message.id: message for message in self.queue}
        for entry in entries:
            if not 0 <= entry["VisibilityTimeout"] <= 43_200:
                self.ledger.complaints.append(f"SQS would not take {entry}")
            if entry["ReceiptHandle"] in messages:
                messages[entry["ReceiptHandle"]].visible_ms = self.now_ms + entry["VisibilityTimeout"] * 1000
        return {"Successful": [{"Id": entry["Id"]} for entry in entries]}


class _Database:
    def __init__(self, world: World) -> None:
        self._world = world

    def update_item(self, **request: Any) -> Any:
        return self._world.update(request)


class _DeadLetters:
    def __init__(self, world: World) -> None:
        self._world = world

    def send_message(self, **request: Any) -> Any:
        return self._world.bury(request)


class _Queue:
    def __init__(self, world: World) -> None:
        self._world = world

    def change_message_visibility_batch(self, **request: Any) -> Any:
        return self._world.hide(request)


# The provider


class InUse(Exception):
    """A request with this key is not finished."""


@dataclass
class Provider:
    """Charges orders, at once or later. honours_keys: it charges once for a key.

    memory_ms: how long it knows a key. charges: how often each order was charged. results: what the last charge of an
    order was answered with. pending: charges to come, as (when, order, key, result).
    """

    honours_keys: bool
    memory_ms: int
    charges: Counter[str] = field(default_factory=Counter)
    results: dict[str, Any] = field(default_factory=dict)
    pending: list[tuple[int, str, str, Any]] = field(default_factory=list)
    _keys: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def charge(self, now_ms: int, order: str, key: str, result: Any) -> Any:
        """The result: an earlier one where the key is known. Raises InUse."""
        if self.honours_keys and any(key == each for _, _, each, _ in self.pending):
            raise InUse
        known = self._known(now_ms, key)
        return known[1] if known else self._charge(now_ms, order, key, result)

    def charge_later(self, now_ms: int, delay_ms: int, order: str, key: str, result: Any) -> None:
        if self.honours_keys and (self._known(now_ms, key) or any(key == each for _, _, each, _ in self.pending)):
            return
        self.pending.append((now_ms + delay_ms, order, key, result))

    def pass_time(self, now_ms: int) -> None:
        """Charges whose time has come are made."""
        due = sorted((each for each in self.pending if each[0] <= now_ms), key=lambda each: each[0])
        self.pending = [each for each in self.pending if each[0] > now_ms]
        for at_ms, order, key, result in due:
            self._charge(at_ms, order, key, result)

    def is_charged(self, order: str) -> bool:
        """Whether it is, or will be."""
        return self.charges[order] > 0 or any(order == each for _, each, _, _ in self.pending)

    def is_pending(self, order: str) -> bool:
        return any(order == each for _, each, _, _ in self.pending)

    def _known(self, now_ms: int, key: str) -> tuple[int, Any] | None:
        known = self._keys.get(key) if self.honours_keys else None
        return known if known and now_ms - known[0] <= self.memory_ms else None

    def _charge(self, now_ms: int, order: str, key: str, result: Any) -> Any:
        self.charges[order] += 1
        self.results[order] = result
        self._keys[key] = now_ms, result
        return result


# Rows


def number(row: Item, name: str, default: int = 0) -> int:
    return int(row[name]["N"]) if name in row else default


def text(row: Item, name: str) -> str:
    return str(row[name]["S"]) if name in row else ""
