"""A pipeline among strangers: what stands around it, and what must be true of all that it has asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import botocore.session
from botocore.validate import ParamValidator

from tests.handler.hostile import Stranger
from tests.handler.hostile_json import VALUE_MARKER
from tests.handler.support import BURY, BUSINESS, COMMIT, LEDGER, MARK, MARK_STATEMENT, PUBLISH, PUT, READ, Call, record
from tests.handler.table_model import NOTHING_WRONG, Effect, Request, World
from tests.handler.watching import Watched, watched

TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
DEAD_LETTERS = "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead-letter"
_REASONS = (Path(__file__).parents[2] / "docs" / "reasons.md").read_text(encoding="utf-8")
_SERVICES = {COMMIT: "dynamodb", PUT: "dynamodb", READ: "dynamodb", MARK: "dynamodb", PUBLISH: "sns", BURY: "sqs"}
# Rows of more are not compared with the services' models, which takes longer than all else.
_MOST_CHECKED = 50_000

_LEDGER_CONDITION = "attribute_not_exists(event_id)"
# What a business row is written under, with the attributes that stand behind the names in it.
_CONDITIONS = {
    "attribute_not_exists(#key)": {"#key": "id"},
    "attribute_not_exists(#event_id) OR #event_id <> :event_id OR attribute_not_exists(#consumer) OR "
    "#consumer <> :consumer": {"#event_id": "event_id", "#consumer": "event_consumer"},
    "attribute_not_exists(#key) OR #version < :version": {"#key": "id", "#version": "event_version"},
}
_LEDGER_ATTRIBUTES = {"event_id", "fingerprint", "created_at", "message_id", "status"}
_WHILE_PENDING, _WHEN_SENT = {"notification", "pending_shard"}, {"sent_at", "ttl"}


def dead_letter_reasons(*titles: str) -> set[str]:
    """The reasons that stand under these headings of docs/reasons.md."""
    sections = {text.partition("\n")[0]: text for text in _REASONS.split("\n## ")}
    return {name for title in titles for name in re.findall(r"^\| `([a-z0-9-]+)` \|", sections[title], re.MULTILINE)}


DEAD = dead_letter_reasons("Dead-lettered at once")


class HostileWorld(World):
    """Keys may be numbers, and versions of any type."""

    def __init__(self) -> None:
        super().__init__()
        self.interfere = _with_text_keys

    def _reason(self, put: Mapping[str, Any]) -> dict[str, Any]:
        if "#version" not in put.get("ExpressionAttributeNames", {}):
            return super()._reason(put)
        row = self.stored(put)
        stored, wanted = (row or {}).get("event_version"), put["ExpressionAttributeValues"][":version"]
        is_older = stored is not None and stored.keys() == wanted.keys() and _ordered(stored) < _ordered(wanted)
        return NOTHING_WRONG if row is None or is_older else {"Code": "ConditionalCheckFailed", "Item": row}


def _with_text_keys(operation: str, request: Request, effect: Effect) -> Any:
    """Rows as the model wants them."""
    if operation != COMMIT:
        return effect()
    return effect(TransactItems=[{"Put": _with_text_key(action["Put"])} for action in request["TransactItems"]])


def _with_text_key(put: Mapping[str, Any]) -> Mapping[str, Any]:
    if put["TableName"] != BUSINESS:
        return put
    (text,) = put["Item"]["id"].values()
    return {**put, "Item": {**put["Item"], "id": {"S": text}}}


def _ordered(value: Mapping[str, str]) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content.encode()


class Context:
    """Time enough."""

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


@dataclass(frozen=True)
class Delivered:
    """One invocation with all that came of it."""

    world: World
    answer: Any
    seen: Watched

    @property
    def returned(self) -> list[str]:
        """The messages that come back, from the literal answer."""
        assert list(self.answer) == ["batchItemFailures"]
        assert all(list(failure) == ["itemIdentifier"] for failure in self.answer["batchItemFailures"])
        return [failure["itemIdentifier"] for failure in self.answer["batchItemFailures"]]

    @property
    def buried(self) -> list[dict[str, Any]]:
        """The dead letters, in the order in which they were sent."""
        return [call.request for call in self.world.calls if call.operation == BURY]

    def of(self, event_ids: Sequence[str]) -> dict[str, Any]:
        """All that came of these events: rows as they are, and what took effect, in order for each."""
        return {
            "ledger": {event_id: self.world.ledger.get(event_id) for event_id in event_ids},
            "rows": {event_id: self.world.rows.get(event_id) for event_id in event_ids},
            "history": {
                event_id: [happened for happened in self.world.history if happened.event_id == event_id]
                for event_id in event_ids
            },
        }


def deliver(records: Sequence[dict[str, Any]], settings: Mapping[str, str]) -> Delivered:
    """One invocation of a new consumer before empty tables."""
    world = HostileWorld()
    consumer = world.consumer(**settings)
    with watched() as seen:
        answer = consumer.handle({"Records": list(records)}, Context())
    return Delivered(world, answer, seen)


def hostile_record(message_id: str, stranger: Stranger, *, is_fifo: bool = False) -> dict[str, Any]:
    return record(
        message_id,
        stranger.body,
        group=stranger.group if is_fifo else None,
        attributes=stranger.attributes,
        receive_count=stranger.receives,
    )


def check_letter(request: Mapping[str, Any], stranger: Stranger, reasons: set[str]) -> None:
    """A dead letter is the message as it came, with a reason of the list and a detail that quotes no value."""
    assert request["MessageBody"] == stranger.body
    attributes = dict(request["MessageAttributes"])
    assert len(attributes) <= 10
    assert attributes.pop("dead_letter_reason")["StringValue"] in reasons
    detail = attributes.pop("dead_letter_detail", {"StringValue": ""})["StringValue"]
    assert VALUE_MARKER not in detail
    assert len(detail) <= 1_000
    assert attributes.keys() == stranger.attributes.keys() - {"dead_letter_reason", "dead_letter_detail"}


def event_ids(body: str, envelope: str) -> list[str]:
    """The ids of the events in a body that was accepted, read in another way than the consumer does."""
    content = json.loads(body)
    if envelope == "sns":
        content = json.loads(content["Message"])
    if envelope != "s3":
        return [str(content["id"])]
    return [_s3_id(each["s3"]) for each in content.get("Records", [])]


def _s3_id(s3: Mapping[str, Any]) -> str:
    thing = s3["object"]
    parts = [s3["bucket"]["name"], unquote_plus(thing["key"]), thing.get("versionId") or "", thing["sequencer"]]
    return "/".join(parts)


@dataclass(frozen=True)
class Configured:
    """attributes: of the notification. key_type: of the business table's key."""

    attributes: frozenset[str] = frozenset()
    key_type: str = "S"


def check_calls(calls: Sequence[Call], configured: Configured) -> None:
    """Whatever bodies say, calls go to what is configured, and only values of rows are theirs."""
    for call in calls:
        _check_shape(call)
        _CHECKS[call.operation](call.request, configured)


def _check_transaction(request: Mapping[str, Any], configured: Configured) -> None:
    for action in request["TransactItems"]:
        assert list(action) == ["Put"]
        _check_put(action["Put"], configured)


def _check_put(put: Mapping[str, Any], configured: Configured) -> None:
    if put["TableName"] == LEDGER:
        assert put["ConditionExpression"] == _LEDGER_CONDITION
        assert put["Item"].keys() - _LEDGER_ATTRIBUTES in (_WHILE_PENDING, _WHEN_SENT)
        assert put["Item"]["event_id"].keys() == {"S"}
        assert put.keys() == {"TableName", "Item", "ConditionExpression", "ReturnValuesOnConditionCheckFailure"}
        return
    assert put["TableName"] == BUSINESS
    assert put["ExpressionAttributeNames"] == _CONDITIONS[put["ConditionExpression"]]
    own = {name: put["Item"][name] for name in ("event_consumer", "event_committed_at")}
    assert own == {"event_consumer": {"S": "orders"}, "event_committed_at": {"N": "1893553446000"}}
    assert put["Item"]["id"].keys() == {configured.key_type}
    assert put["Item"]["event_id"].keys() == {"S"}


def _check_read(request: Mapping[str, Any], _configured: Configured) -> None:
    assert list(request["RequestItems"]) == [LEDGER]
    assert all(list(key) == ["event_id"] for key in request["RequestItems"][LEDGER]["Keys"])


def _check_marking(request: Mapping[str, Any], _configured: Configured) -> None:
    for statement in request["Statements"]:
        assert statement["Statement"] == MARK_STATEMENT
        assert [list(value) for value in statement["Parameters"]] == [["S"], ["N"], ["N"], ["S"], ["S"]]


def _check_publishing(request: Mapping[str, Any], configured: Configured) -> None:
    assert request["TopicArn"] == TOPIC
    for entry in request["PublishBatchRequestEntries"]:
        assert entry["MessageAttributes"].keys() <= {"event_id", *configured.attributes}


def _check_burying(request: Mapping[str, Any], _configured: Configured) -> None:
    assert request["QueueUrl"] == DEAD_LETTERS


_CHECKS = {
    COMMIT: _check_transaction,
    PUT: _check_put,
    READ: _check_read,
    MARK: _check_marking,
    PUBLISH: _check_publishing,
    BURY: _check_burying,
}


@cache
def _shape(operation: str) -> Any:
    model = botocore.session.get_session().get_service_model(_SERVICES[operation])
    return model.operation_model(operation).input_shape


def _check_shape(call: Call) -> None:
    if len(repr(call.request)) <= _MOST_CHECKED:
        report = ParamValidator().validate(call.request, _shape(call.operation))
        assert not report.has_errors(), report.generate_report()
