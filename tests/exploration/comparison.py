"""The same requests to the model and to emulators of DynamoDB, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from tests.exploration.dynamodb import Database, Item, Place
from tests.exploration.values import stored, stored_value

LEDGER, BUSINESS, LINES, COUNTERS, WORKFLOW = "ledger", "business", "lines", "counters", "workflow"
KEYS: Mapping[str, Mapping[str, str]] = {
    LEDGER: {"event_id": "S"},
    BUSINESS: {"id": "S"},
    LINES: {"order": "S", "line": "N"},
    COUNTERS: {"number": "N"},
    WORKFLOW: {"pk": "S", "sk": "S"},
}
INDEX = {LEDGER: ("pending", "pending_shard", "created_at")}
METHODS = {
    "TransactWriteItems": "transact_write_items",
    "PutItem": "put_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
    "GetItem": "get_item",
    "BatchGetItem": "batch_get_item",
    "BatchExecuteStatement": "batch_execute_statement",
    "Query": "query",
}
WRITES = frozenset(METHODS) - {"GetItem", "BatchGetItem", "Query"}

Request = Mapping[str, Any]
Send = Callable[[str, Request], Any]


class Outcome(NamedTuple):
    """code: of the error, or of each statement's, or empty. content: what else is compared of the answer."""

    code: str
    content: Any


class Found(NamedTuple):
    """A difference: what the model says, and what the emulator says. rows: those that differ afterwards.

    why: the model's message."""

    emulator: str
    operation: str
    request: Request
    expected: Outcome
    got: Outcome
    rows: Sequence[tuple[Place, Item | None, Item | None]] = ()
    why: str = ""


class Emulated:
    """One emulator's tables. send: makes a call by the API's operation name."""

    def __init__(self, name: str, client: Any, send: Send | None = None) -> None:
        self.name = name
        self.client = client
        self._send = send or self.plain
        for table, key in KEYS.items():
            client.create_table(TableName=table, BillingMode="PAY_PER_REQUEST", **_schema(table, key))

    def plain(self, operation: str, request: Request) -> Any:
        return getattr(self.client, METHODS[operation])(**request)

    def outcome(self, operation: str, request: Request) -> Outcome:
        try:
            return outcome(self._send(operation, request))
        except ClientError as error:
            return outcome(error)
        except Exception as error:  # an emulator in this process may fall over
            return Outcome(type(error).__name__, [])

    def rows(self, tables: Iterable[str]) -> dict[Place, Item]:
        """As the emulator keeps them, by their places in the model."""
        found: dict[Place, Item] = {}
        for table in tables:
            key = KEYS[table]
            for item in self.client.scan(TableName=table, ConsistentRead=True)["Items"]:
                parts = [next(iter(stored_value(item[name]).values())) for name in key]
                found[table, "\0".join(parts)] = item
        return found

    def differing(
        self, rows: Mapping[Place, Item], tables: Iterable[str] = tuple(KEYS)
    ) -> list[tuple[Place, Item | None, Item | None]]:
        """The rows of these tables that are not as in `rows`; they are put right."""
        own = self.rows(tables)
        rows = {place: item for place, item in rows.items() if place[0] in tables}
        differing = [
            (place, rows.get(place), own.get(place))
            for place in sorted({*own, *rows})
            if rows.get(place) != _stored(own.get(place))
        ]
        for (table, _), wanted, there in differing:
            if there is not None:
                self.client.delete_item(TableName=table, Key={name: there[name] for name in KEYS[table]})
            if wanted is not None:
                self.client.put_item(TableName=table, Item=wanted)
        return differing


class Comparison:
    """The model, and the emulators that are sent the same. found: all that differed. calls: all that was sent."""

    def __init__(self, emulators: Sequence[Emulated]) -> None:
        self._emulators = emulators
        self.model = Database(KEYS, INDEX)
        self.found: list[Found] = []
        self.calls: list[tuple[str, Request]] = []
        self.check_rows()
        self.found.clear()

    def call(self, operation: str, request: Request) -> dict[str, Any]:
        """The model's answer, or its error."""
        self.calls.append((operation, request))
        failure: ClientError | None = None
        answer: dict[str, Any] = {}
        try:
            answer = self.model.call(operation, request)
        except ClientError as error:
            failure = error
        expected = outcome(failure or answer)
        for emulator in self._emulators:
            got = emulator.outcome(operation, request)
            if got != expected:
                # What is refused has written nothing.
                is_written = operation in WRITES and "" in (got.code, expected.code)
                tables = [table for table in KEYS if table in repr(request)]
                rows = emulator.differing(self.model.rows, tables) if is_written else []
                why = str(failure.response["Error"].get("Message")) if failure else ""
                self.found.append(Found(emulator.name, operation, request, expected, got, rows, why))
        if failure is not None:
            raise failure
        return answer

    def rows(self) -> Mapping[Place, Item]:
        return self.model.rows

    def check_rows(self) -> None:
        """Whether the rows are the same after all that was sent."""
        nothing = Outcome("", None)
        for emulator in self._emulators:
            rows = emulator.differing(self.model.rows)
            if rows:
                self.found.append(Found(emulator.name, "", {}, nothing, nothing, rows))


def outcome(answer: ClientError | Mapping[str, Any]) -> Outcome:
    if not isinstance(answer, ClientError):
        return Outcome("", _content(answer))
    response: Any = answer.response
    reasons = [(reason["Code"], _stored(reason.get("Item"))) for reason in response.get("CancellationReasons", ())]
    return Outcome(response["Error"]["Code"], [_stored(response.get("Item")), *reasons])


def _stored(item: Item | None) -> Item | None:
    """Numbers written in one way: emulators keep some as they were given."""
    return None if item is None else stored(item)


def _content(answer: Mapping[str, Any]) -> Any:
    compared = {name: answer.get(name) for name in ("Count", "Items", "LastEvaluatedKey")}
    compared["Item"] = _stored(answer.get("Item"))
    responses = answer.get("Responses")
    if isinstance(responses, list):
        compared["Responses"] = [each.get("Error", {}).get("Code") for each in responses]
    elif responses is not None:
        compared["Responses"] = {table: sorted(map(stored, items), key=repr) for table, items in responses.items()}
    return compared


def _schema(table: str, key: Mapping[str, str]) -> dict[str, Any]:
    kinds = dict(key)
    schema: dict[str, Any] = {"KeySchema": _key_schema(*key)}
    if table in INDEX:
        name, *attributes = INDEX[table]
        kinds |= dict(zip(attributes, ("S", "N"), strict=True))
        projection = {"ProjectionType": "KEYS_ONLY"}
        schema["GlobalSecondaryIndexes"] = [
            {"IndexName": name, "KeySchema": _key_schema(*attributes), "Projection": projection}
        ]
    definitions = [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]
    return {**schema, "AttributeDefinitions": definitions}


def _key_schema(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]
