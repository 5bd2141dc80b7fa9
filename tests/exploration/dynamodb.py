"""DynamoDB in memory: the operations that the product sends, at the speed that an exploration needs.

It follows the Amazon DynamoDB API Reference and Developer Guide; `test_dynamodb_model.py` compares it with emulators.
Not modelled: request tokens, capacity, the sizes of items and answers, the lag of an index, streams, and expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from tests.exploration import reads, statements, writes
from tests.exploration import values as typed
from tests.exploration.schema import Place as Place
from tests.exploration.schema import Schema, UnknownTable
from tests.exploration.values import Invalid, Malformed, WrongKey
from tests.exploration.values import Item as Item
from tests.exploration.writes import Conflict, Refused, Write

Request = Mapping[str, Any]

_MOST_ACTIONS = 100
_MOST_KEYS = 100
_MOST_STATEMENTS = 25
_NONE: dict[str, Any] = {"Code": "None"}
_FAILED: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
_CONFLICT: dict[str, Any] = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
_TRANSACT = "TransactWriteItems"


class Database:
    """keys: of each table its key attributes with their types, hash before range. index: of a table its index's name,
    hash and range key attribute, a text and a number.

    rows: items are never changed in place, so a copy of this dict is a snapshot. busy: the places that a transaction
    writes which is not over; any other write to them meets a conflict. complaints: requests that DynamoDB would not
    take whatever their data. A wrong key or operand, which data can bring about, is only refused.
    """

    def __init__(self, keys: Mapping[str, Mapping[str, str]], index: Mapping[str, tuple[str, str, str]]) -> None:
        self.rows: dict[Place, Item] = {}
        self.busy: set[Place] = set()
        self.complaints: list[str] = []
        self._schema = Schema(keys, index)
        self._operations: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            _TRANSACT: self._transact,
            "PutItem": lambda request: self._write_one("Put", request),
            "UpdateItem": lambda request: self._write_one("Update", request),
            "DeleteItem": lambda request: self._write_one("Delete", request),
            "GetItem": self._get,
            "BatchGetItem": self._get_batch,
            "BatchExecuteStatement": self._execute,
            "Query": self._query,
        }

    def call(self, operation: str, request: Request) -> dict[str, Any]:
        """The answer, or a ClientError as botocore raises it. Neither it nor the request may be changed afterwards."""
        return self._run(operation, self._operations[operation], request)  # type: ignore[no-any-return]

    def prepare(self, request: Request) -> list[tuple[Place, Item | None]]:
        """What a `TransactWriteItems` would write, in order; nothing is written. Raises as `call` does."""
        return self._run(_TRANSACT, self._prepare, request)  # type: ignore[no-any-return]

    def write(self, place: Place, item: Item | None) -> None:
        """None removes the item."""
        if item is None:
            self.rows.pop(place, None)
        else:
            self.rows[place] = item

    def _run(self, operation: str, run: Callable[[Request], Any], request: Request) -> Any:
        try:
            return run(request)
        except Invalid as invalid:
            if isinstance(invalid, Malformed):
                self.complaints.append(f"{operation}: {invalid}")
            raise _error(operation, "ValidationException", str(invalid)) from None
        except UnknownTable as table:
            raise _error(operation, "ResourceNotFoundException", f"Requested resource not found: {table}") from None
        except Refused as refused:
            found = {} if refused.item is None else {"Item": refused.item}
            raise _error(operation, "ConditionalCheckFailedException", _FAILED["Message"], **found) from None
        except Conflict:
            raise _error(operation, "TransactionConflictException", _CONFLICT["Message"]) from None

    # --- writes

    def _transact(self, request: Request) -> dict[str, Any]:
        for place, item in self._prepare(request):
            self.write(place, item)
        return {}

    def _prepare(self, request: Request) -> list[tuple[Place, Item | None]]:
        actions: Sequence[Mapping[str, Request]] = request["TransactItems"]
        if not 1 <= len(actions) <= _MOST_ACTIONS:
            raise Malformed(f"{len(actions)} actions")
        if request.keys() - {"TransactItems", "ClientRequestToken"}:
            raise Malformed(f"parameters that the model does not know: {sorted(request)}")
        planned: list[Write] = []
        wrong: dict[int, WrongKey] = {}
        items: set[Any] = set()
        for at, action in enumerate(actions):
            if len(action) != 1:
                raise Malformed("an action that is none, or several")
            ((kind, one),) = action.items()
            try:
                write = writes.read(kind, one, self._schema)
            except WrongKey as invalid:
                wrong[at] = invalid
                items.add(repr(one))
                continue
            planned.append(write)
            items.add(write.place)
            try:
                write.complete(self._schema, self.rows.get(write.place))
            except WrongKey as invalid:
                wrong[at] = invalid
        if len(items) < len(actions):
            raise Malformed("Transaction request cannot include multiple operations on one item")
        if wrong:  # which is told before any condition is looked at
            raise _cancelled([_reason(wrong.get(at)) for at in range(len(actions))])
        reasons = [self._outcome(write) for write in planned]
        if any(reason is not _NONE for reason in reasons):
            raise _cancelled(reasons)
        return [(write.place, write.item) for write in planned if write.kind != "ConditionCheck"]

    def _outcome(self, write: Write) -> dict[str, Any]:
        try:
            write.settle(self.rows.get(write.place), write.place in self.busy)
        except Refused as refused:
            return _FAILED if refused.item is None else {**_FAILED, "Item": refused.item}
        except Conflict:
            return _CONFLICT
        except Invalid as invalid:
            return _reason(invalid)
        return _NONE

    def _write_one(self, kind: str, request: Request) -> dict[str, Any]:
        write = writes.read(kind, request, self._schema)
        if kind == "Put":
            write.complete(self._schema, self.rows.get(write.place))
        write.settle(self.rows.get(write.place), write.place in self.busy)
        if kind == "Update":
            write.complete(self._schema, self.rows.get(write.place))
            if write.failure is not None:
                raise write.failure
        self.write(write.place, write.item)
        return {}

    # --- reads and statements

    def _get(self, request: Request) -> dict[str, Any]:
        if not {"TableName", "Key", "ConsistentRead"} >= request.keys() or not request.get("ConsistentRead"):
            self.complaints.append(f"GetItem: a read that does not decide, or more than a read: {sorted(request)}")
        item = self.rows.get(self._schema.place(request["TableName"], request["Key"]))
        return {} if item is None else {"Item": item}

    def _get_batch(self, request: Request) -> dict[str, Any]:
        places: list[Place] = []
        for table, wanted in request["RequestItems"].items():
            if wanted.keys() - {"Keys", "ConsistentRead"} or not wanted.get("ConsistentRead"):
                self.complaints.append(f"BatchGetItem: a read that does not decide, or more: {sorted(wanted)}")
            places += [self._schema.place(table, key) for key in wanted["Keys"]]
        if not 1 <= len(places) <= _MOST_KEYS:
            raise Malformed(f"{len(places)} keys")
        if len(set(places)) < len(places):
            raise Malformed("Provided list of item keys contains duplicates")
        found: dict[str, list[Item]] = {table: [] for table in request["RequestItems"]}
        for place in places:
            item = self.rows.get(place)
            if item is not None:
                found[place[0]].append(item)
        return {"Responses": found, "UnprocessedKeys": {}}

    def _execute(self, request: Request) -> dict[str, Any]:
        given = request["Statements"]
        if not 1 <= len(given) <= _MOST_STATEMENTS:
            raise Malformed(f"{len(given)} statements")
        return {"Responses": [self._execute_one(each["Statement"], each.get("Parameters", ())) for each in given]}

    def _execute_one(self, text: str, parameters: Sequence[typed.Value]) -> dict[str, Any]:
        try:
            statement = statements.read(text)
            place = self._schema.place(statement.table, statement.key(parameters))
            item = self.rows.get(place)
            if place in self.busy:
                return {"Error": _CONFLICT}
            if item is None:
                return {"Error": _FAILED}
            new = typed.stored(statement.update(item, parameters))
            self._schema.check_index(statement.table, new)
        except Invalid as invalid:
            if isinstance(invalid, Malformed):
                self.complaints.append(f"BatchExecuteStatement: {invalid}")
            return {"Error": _reason(invalid)}
        except UnknownTable as table:
            return {"Error": {"Code": "ResourceNotFound", "Message": f"Requested resource not found: {table}"}}
        self.write(place, new)
        return {"TableName": statement.table}

    def _query(self, request: Request) -> dict[str, Any]:
        table = request["TableName"]
        index = self._schema.indexes.get(table)
        if index is None or request.get("IndexName") != index.name:
            raise Malformed(f"no index {request.get('IndexName')} of {table}")
        return reads.query(index, [item for place, item in self.rows.items() if place[0] == table], request)


def _reason(invalid: Invalid | None) -> dict[str, Any]:
    return _NONE if invalid is None else {"Code": "ValidationError", "Message": str(invalid)}


def _cancelled(reasons: list[dict[str, Any]]) -> ClientError:
    codes = ", ".join([reason["Code"] for reason in reasons])
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return _error(_TRANSACT, "TransactionCanceledException", message, CancellationReasons=reasons)


def _error(operation: str, code: str, message: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    return ClientError(response, operation)
