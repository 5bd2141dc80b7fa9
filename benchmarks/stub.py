"""DynamoDB and SNS answered inside the process, so that a measurement holds the SDK's work but no network.

`Stub.answer` stands in botocore's `before-send` hook: what a call costs the SDK before the wire (serialising, signing)
and after it (parsing) is paid as on AWS. The stub remembers rows, so that it answers a redelivered event as DynamoDB
does. It knows the conditions of both sides only as far as they matter here: a Put with a condition fails where a row
of its key is stored. Its own CPU time is kept apart (`cpu_seconds`), and taken off on both sides.

Source of the formats: Amazon DynamoDB API Reference, "DynamoDB low-level API"; Amazon SNS API Reference.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from botocore.awsrequest import AWSResponse

Item = dict[str, Any]
_JSON = {"Content-Type": "application/x-amz-json-1.0"}
_XML = {"Content-Type": "text/xml"}
_ERROR = "com.amazonaws.dynamodb.v20120810#"
_CONDITION_FAILED = "The conditional request failed"
_SNS = (
    '<{0}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><{0}Result>{1}</{0}Result>'
    "<ResponseMetadata><RequestId>5c1f4f1c-0000-5000-8000-000000000000</RequestId></ResponseMetadata></{0}Response>"
)
_MESSAGE_ID = "<MessageId>94f20ce6-13c5-43a0-9a9e-ca52d816e90b</MessageId>"
_ENTRY_ID = re.compile(r"\.Id=([^&]+)")
_PARAMETER = re.compile(r'"([^"]+)"\s*=\s*\?')
_REMOVED = re.compile(r'REMOVE\s+"([^"]+)"')
_TABLE = re.compile(r'UPDATE\s+"([^"]+)"')


class UnknownCall(Exception):
    """One of the sides calls something that the stub has not been taught."""


@dataclass(frozen=True)
class Access:
    """One item that a call read or wrote, for `units`. before, after: the row, None where there is none."""

    operation: str
    table: str
    before: Item | None
    after: Item | None


@dataclass
class Stub:
    """The services of one process.

    keys: table to its hash key. pause_seconds: how long each call takes, as if on the network.
    remembers: False answers all as new and keeps no rows, so that they do not count as the consumer's memory.
    observes: whether to keep `accesses`; not while something is timed.
    """

    keys: Mapping[str, str]
    pause_seconds: float = 0.0
    remembers: bool = True
    observes: bool = False
    rows: dict[tuple[str, str], Item] = field(default_factory=dict)
    operations: list[str] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    published: int = 0
    cpu_seconds: float = 0.0

    def attach(self) -> None:
        """Answer the calls of all clients that are made from now on, by boto3 or by botocore."""
        import botocore.session

        original = botocore.session.Session.__init__

        @functools.wraps(original)
        def __init__(session: Any, *arguments: Any, **options: Any) -> None:
            original(session, *arguments, **options)
            session.register("before-send", self.answer)

        botocore.session.Session.__init__ = __init__

    def forget(self) -> None:
        """As if nothing had been called yet."""
        self.rows.clear()
        self.operations.clear()
        self.accesses.clear()
        self.published = 0
        self.cpu_seconds = 0.0

    def calls(self) -> dict[str, int]:
        """How often each operation was called."""
        return dict(sorted(Counter(self.operations).items()))

    def rows_of(self, table: str) -> int:
        """How many rows a table holds."""
        return sum(name == table for name, _ in self.rows)

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        """The response to a prepared request, which is then not sent."""
        if self.pause_seconds:
            time.sleep(self.pause_seconds)
        started = time.thread_time()
        target = _text(request.headers.get("X-Amz-Target", ""))
        body = _text(request.body)
        response = self._dynamodb(target.partition(".")[2], body) if target else self._sns(body)
        status, headers, content = response
        result = AWSResponse(request.url, status, headers, _Raw(content.encode()))
        self.cpu_seconds += time.thread_time() - started
        return result

    # --- SNS ---

    def _sns(self, body: str) -> tuple[int, dict[str, str], str]:
        operation = body.partition("Action=")[2].partition("&")[0]
        self.operations.append(sys.intern(operation))
        if operation == "Publish":
            self.published += 1
            return 200, _XML, _SNS.format(operation, _MESSAGE_ID)
        if operation == "PublishBatch":
            ids = [unquote_plus(entry_id) for entry_id in _ENTRY_ID.findall(body)]
            self.published += len(ids)
            members = "".join(f"<member><Id>{entry_id}</Id>{_MESSAGE_ID}</member>" for entry_id in ids)
            return 200, _XML, _SNS.format(operation, f"<Failed/><Successful>{members}</Successful>")
        raise UnknownCall(f"{operation or body[:80]}: teach it to benchmarks/stub.py")

    # --- DynamoDB ---

    def _dynamodb(self, operation: str, body: str) -> tuple[int, dict[str, str], str]:
        self.operations.append(sys.intern(operation))
        handler: Callable[[dict[str, Any]], tuple[int, Any]] | None = {
            "BatchExecuteStatement": self._batch_execute_statement,
            "BatchGetItem": self._batch_get_item,
            "GetItem": self._get_item,
            "PutItem": self._put_item,
            "TransactWriteItems": self._transact_write_items,
            "UpdateItem": self._update_item,
        }.get(operation)
        if handler is None:
            raise UnknownCall(f"{operation}: teach it to benchmarks/stub.py")
        status, answer = handler(json.loads(body))
        return status, _JSON, json.dumps(answer)

    def _put_item(self, request: dict[str, Any]) -> tuple[int, Any]:
        old = self._refusal(request)
        if old is not None:
            self._observe("PutItem", request["TableName"], old, old)
            return 400, _condition_failed(request, old)
        self._store("PutItem", request["TableName"], request["Item"])
        return 200, {}

    def _update_item(self, request: dict[str, Any]) -> tuple[int, Any]:
        table, names, values = request["TableName"], request["ExpressionAttributeNames"], {}
        for part in request["UpdateExpression"].removeprefix("SET ").split(", "):
            name, _, value = part.partition(" = ")
            values[names[name]] = request["ExpressionAttributeValues"][value]
        row = self.rows.get(self._key(table, request["Key"]), request["Key"])
        self._store("UpdateItem", table, {**row, **values})
        return 200, {}

    def _transact_write_items(self, request: dict[str, Any]) -> tuple[int, Any]:
        puts = [action["Put"] for action in request["TransactItems"]]
        refusals = [self._refusal(put) for put in puts]
        if any(old is not None for old in refusals):
            reasons = [
                {"Code": "None"} if old is None else {"Code": "ConditionalCheckFailed", **_old_item(put, old)}
                for put, old in zip(puts, refusals, strict=True)
            ]
            return 400, {
                "__type": f"{_ERROR}TransactionCanceledException",
                "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
                "CancellationReasons": reasons,
            }
        for put in puts:
            self._store("TransactWriteItems", put["TableName"], put["Item"])
        return 200, {}

    def _batch_execute_statement(self, request: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"Responses": [self._execute(statement) for statement in request["Statements"]]}

    def _execute(self, statement: dict[str, Any]) -> dict[str, Any]:
        """One PartiQL UPDATE whose values, and whose key as the first condition, are all parameters."""
        update = _parse_update(statement["Statement"])
        values = dict(zip(update.assigned, statement["Parameters"], strict=False))
        key = {update.key: statement["Parameters"][len(update.assigned)]}
        row = self.rows.get(self._key(update.table, key))
        if row is None and self.remembers:
            return {"Error": {"Code": "ConditionalCheckFailed", "Message": _CONDITION_FAILED}}
        kept = {name: value for name, value in (row or key).items() if name not in update.removed}
        self._store("BatchExecuteStatement", update.table, {**kept, **values})
        return {"TableName": update.table}

    def _get_item(self, request: dict[str, Any]) -> tuple[int, Any]:
        row = self.rows.get(self._key(request["TableName"], request["Key"]))
        self._observe("GetItem", request["TableName"], row, row)
        return 200, {"Item": row} if row is not None else {}

    def _batch_get_item(self, request: dict[str, Any]) -> tuple[int, Any]:
        answer: dict[str, list[Item]] = {}
        for table, wanted in request["RequestItems"].items():
            rows = [self.rows.get(self._key(table, key)) for key in wanted["Keys"]]
            for row in rows:
                self._observe("BatchGetItem", table, row, row)
            answer[table] = [_projected(row, wanted) for row in rows if row is not None]
        return 200, {"Responses": answer, "UnprocessedKeys": {}}

    # --- rows ---

    def _key(self, table: str, item: Item) -> tuple[str, str]:
        ((_, value),) = item[self.keys[table]].items()
        return table, value

    def _refusal(self, put: dict[str, Any]) -> Item | None:
        """The row in the way of a conditional Put."""
        return self.rows.get(self._key(put["TableName"], put["Item"])) if "ConditionExpression" in put else None

    def _store(self, operation: str, table: str, item: Item) -> None:
        if self.remembers:
            key = self._key(table, item)
            self._observe(operation, table, self.rows.get(key), item)
            self.rows[key] = item

    def _observe(self, operation: str, table: str, before: Item | None, after: Item | None) -> None:
        if self.observes:
            self.accesses.append(Access(operation, table, before, after))


@dataclass(frozen=True)
class _Update:
    table: str
    assigned: tuple[str, ...]
    removed: frozenset[str]
    key: str


@functools.cache
def _parse_update(statement: str) -> _Update:
    change, _, condition = statement.partition(" WHERE ")
    table, key = _TABLE.search(change), _PARAMETER.search(condition)
    if table is None or key is None:
        raise UnknownCall(f"{statement}: teach it to benchmarks/stub.py")
    return _Update(table[1], tuple(_PARAMETER.findall(change)), frozenset(_REMOVED.findall(change)), key[1])


def _projected(row: Item, wanted: Mapping[str, Any]) -> Item:
    """The attributes that a read asks for."""
    if "ProjectionExpression" not in wanted:
        return row
    names = wanted.get("ExpressionAttributeNames", {})
    paths = [path.strip() for path in wanted["ProjectionExpression"].split(",")]
    return {name: row[name] for path in paths if (name := names.get(path, path)) in row}


def _condition_failed(request: Mapping[str, Any], old: Item) -> dict[str, Any]:
    answer = {"__type": f"{_ERROR}ConditionalCheckFailedException", **_old_item(request, old)}
    return {**answer, "message": answer.pop("Message")}


def _old_item(put: Mapping[str, Any], old: Item) -> dict[str, Any]:
    wanted = put.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    return {"Message": _CONDITION_FAILED, **({"Item": old} if wanted else {})}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


class _Raw:
    """The body of a response, as urllib3 gives it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content
