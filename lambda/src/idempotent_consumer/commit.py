"""From an event and its plan to the transaction of both, and the verdict on a row that stands in its way."""

import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.event import Event
from idempotent_consumer.items import (
    MAX_HASH_KEY_BYTES,
    MAX_RANGE_KEY_BYTES,
    AttributeValue,
    Item,
    check_size,
    to_attribute_value,
    to_item,
)
from idempotent_consumer.notification import RenderedNotification, render
from idempotent_consumer.plan import Plan, Put
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import KeyAttribute, Settings, WriteMode

PENDING_SHARDS = 16
_LEDGER_KEY_IS_NEW = "attribute_not_exists(event_id)"
UNREADABLE = Verdict(Outcome.RETRY, "ledger-row-unreadable", "pending, without a notification")
_ROW_EXISTS = Verdict(Outcome.CONFLICT, "row-exists", "a row of this key is stored that must not be overwritten")


@dataclass(frozen=True, slots=True)
class Write:
    """One business action of the transaction, with what is needed to judge its refusal.

    key: the same for two writes of one row. size: bytes of the row.
    """

    action: Mapping[str, Any]
    mode: WriteMode
    version: AttributeValue | None
    consumer: AttributeValue
    key: Hashable = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """An event ready to be committed: all that can be checked without AWS has been checked.

    size: bytes of all its rows.
    """

    event: Event
    ledger_table: str
    ledger_item: Item
    ledger_item_as_sent: Item
    writes: Sequence[Write]
    notification: RenderedNotification | None
    size: int = 0

    @property
    def actions(self) -> int:
        """How many actions of a transaction it takes."""
        return 1 + len(self.writes)

    @property
    def rows(self) -> list[Hashable]:
        """What it writes: one transaction takes each row once."""
        return [self.event.id, *(write.key for write in self.writes)]

    def transaction(self) -> list[dict[str, Any]]:
        """The actions of `TransactWriteItems`; the ledger's is the first."""
        return [{"Put": self._ledger_put(self.ledger_item)}, *(dict(write.action) for write in self.writes)]

    def superseded_put(self) -> dict[str, Any]:
        """The arguments of `PutItem` for an event that changes nothing but is settled."""
        return self._ledger_put(self.ledger_item_as_sent)

    def _ledger_put(self, item: Item) -> dict[str, Any]:
        return {
            "TableName": self.ledger_table,
            "Item": item,
            "ConditionExpression": _LEDGER_KEY_IS_NEW,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def prepare(event: Event, plan: Plan, message_id: str, now_ms: int, settings: Settings) -> Commit:
    """Raises Rejected for whatever can never succeed. now_ms: epoch milliseconds."""
    rendered = None
    if plan.notification is not None:
        rendered = render(plan.notification, event, settings.consumer_name, settings.max_notification_bytes)
    sent = sent_attributes(now_ms, settings.ttl_window_seconds)
    identity = {
        "event_id": {"S": event.id},
        "fingerprint": {"S": event.fingerprint},
        "created_at": {"N": str(now_ms)},
        "message_id": {"S": message_id},
    }
    ledger_item = {**identity, **(_pending_attributes(event, rendered) if rendered else sent)}
    size = check_size(ledger_item, "the ledger row")
    writes = [_write(put, event, now_ms, settings) for put in plan.writes]
    return Commit(
        event=event,
        ledger_table=settings.ledger_table,
        ledger_item=ledger_item,
        ledger_item_as_sent={**identity, **sent},
        writes=writes,
        notification=rendered,
        size=size + sum(write.size for write in writes),
    )


def sent_attributes(now_ms: int, ttl_window_seconds: int) -> Item:
    """What makes a ledger row settled. `ttl` is in seconds, as DynamoDB's Time to Live wants it."""
    return {
        "status": {"S": "sent"},
        "sent_at": {"N": str(now_ms)},
        "ttl": {"N": str(now_ms // 1000 + ttl_window_seconds)},
    }


def judge_ledger_row(row: Item, event: Event) -> Verdict:
    """The verdict on an event whose id is in the ledger already."""
    if _text(row, "fingerprint") != event.fingerprint:
        return Verdict(Outcome.CONFLICT, "id-reused", "the ledger holds this event id with other content")
    if is_pending(row):
        try:
            return Verdict(Outcome.RESUMED, notification=stored_notification(row))
        except ValueError:
            return UNREADABLE
    if _text(row, "status") == "sent":
        return Verdict(Outcome.DUPLICATE)
    return Verdict(Outcome.RETRY, "ledger-row-unreadable", "a status that the pipeline does not write")


def is_pending(row: Item) -> bool:
    """Whether the event of a ledger row is committed, and not known to be announced."""
    return _text(row, "status") == "pending"


def stored_notification(row: Item) -> RenderedNotification:
    """What a pending row still has to announce. Raises ValueError where that cannot be read."""
    return RenderedNotification.from_text(_text(row, "notification"))


def judge_business_row(row: Item, event: Event, write: Write) -> Verdict:
    """The verdict on an event that the ledger does not know but whose business row is refused.

    The ledger row of a `sent` event expires, its business row stays: it still tells a duplicate. A row that another
    consumer wrote for the same event tells nothing of what this one has published, so it is for a person to see.
    """
    if _rendered_id(row.get("event_id")) == event.id:
        if row.get("event_consumer") != write.consumer:
            return _ROW_EXISTS
        if _text(row, "event_fingerprint") == event.fingerprint:
            return Verdict(Outcome.DUPLICATE, "ledger-row-expired", "the business row carries this event")
        return Verdict(Outcome.CONFLICT, "id-reused", "the business row holds this event id with other content")
    if write.mode is WriteMode.NEWER and _is_not_older(row.get("event_version"), write.version):
        return Verdict(Outcome.SUPERSEDED)
    return _ROW_EXISTS


def _pending_attributes(event: Event, rendered: RenderedNotification) -> Item:
    return {
        "status": {"S": "pending"},
        "notification": {"S": rendered.to_text()},
        "pending_shard": {"S": str(zlib.crc32(event.id.encode()) % PENDING_SHARDS)},
    }


def _write(put: Put, event: Event, now_ms: int, settings: Settings) -> Write:
    values = _with_identity(put.values, event, settings.consumer_name)
    if "event_committed_at" in values:
        raise _reserved("event_committed_at")
    values["event_committed_at"] = now_ms
    _set_key(values, settings.hash_key, MAX_HASH_KEY_BYTES)
    if settings.range_key is not None:
        _set_key(values, settings.range_key, MAX_RANGE_KEY_BYTES)
    version = _version(put)
    if version is not None:
        if values.get("event_version", put.version) != put.version:
            raise Rejected("reserved-attribute", "event_version is written by the consumer; select another name")
        values["event_version"] = put.version
    item = to_item(values)
    size = check_size(item, f"the row in {settings.business_table}")
    action = {
        "TableName": settings.business_table,
        "Item": item,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **_condition(put.mode, settings.hash_key.name, item),
    }
    return Write({"Put": action}, put.mode, version, item["event_consumer"], _row(item, settings), size)


def _row(item: Item, settings: Settings) -> Hashable:
    """What tells the row from others. DynamoDB compares numbers by value: 1 and 1.0 are one key."""
    key: list[Hashable] = [settings.business_table]
    for attribute in (settings.hash_key, settings.range_key):
        if attribute is not None:
            ((kind, text),) = item[attribute.name].items()
            key.append(Decimal(text) if kind == "N" else text)
    return tuple(key)


def _with_identity(values: Mapping[str, Any], event: Event, consumer_name: str) -> dict[str, Any]:
    """The row's values with what tells who wrote it; a value of the event's own is never replaced."""
    result = dict(values)
    identity = {"event_id": event.id, "event_fingerprint": event.fingerprint, "event_consumer": consumer_name}
    for name, value in identity.items():
        own = result.get(name, value)
        if isinstance(own, bool) or not isinstance(own, str | int) or str(own) != value:
            raise _reserved(name)
        result[name] = value
    return result


def _reserved(name: str) -> Rejected:
    return Rejected("reserved-attribute", f"{name} is written by the consumer; select other names in event.item")


def _set_key(values: dict[str, Any], key: KeyAttribute, max_bytes: int) -> None:
    """Check a key attribute, in place; an integer is written in decimal where the key is a string."""
    value = values.get(key.name)
    if value is None:
        raise Rejected("key-missing", f"the item has no {key.name}, a key of the business table")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if key.kind == "N":
        if not is_integer and not isinstance(value, Decimal):
            raise Rejected("key-wrong-type", f"{key.name} is not a number, as the business table's key is")
        return
    if is_integer:
        value = values[key.name] = str(value)
    if not isinstance(value, str):
        raise Rejected("key-wrong-type", f"{key.name} is neither a string nor an integer")
    if not 1 <= len(value.encode()) <= max_bytes:
        raise Rejected("key-size", f"{key.name} has {len(value.encode())} UTF-8 bytes, a key takes 1 to {max_bytes}")


def _version(put: Put) -> AttributeValue | None:
    if put.mode is not WriteMode.NEWER:
        return None
    is_number = isinstance(put.version, int | Decimal) and not isinstance(put.version, bool)
    if not is_number and not (isinstance(put.version, str) and put.version):
        raise Rejected("version-missing", "event.version selects neither a number nor a string")
    return to_attribute_value(put.version, "event.version")


def _condition(mode: WriteMode, hash_key: str, item: Item) -> dict[str, Any]:
    if mode is WriteMode.INSERT:
        return {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": hash_key},
        }
    if mode is WriteMode.UPSERT:
        # An event that wrote this row and whose ledger row has expired must not write it again.
        return {
            "ConditionExpression": (
                "attribute_not_exists(#event_id) OR #event_id <> :event_id "
                "OR attribute_not_exists(#consumer) OR #consumer <> :consumer"
            ),
            "ExpressionAttributeNames": {"#event_id": "event_id", "#consumer": "event_consumer"},
            "ExpressionAttributeValues": {":event_id": item["event_id"], ":consumer": item["event_consumer"]},
        }
    return {
        "ConditionExpression": "attribute_not_exists(#key) OR #version < :version",
        "ExpressionAttributeNames": {"#key": hash_key, "#version": "event_version"},
        "ExpressionAttributeValues": {":version": item["event_version"]},
    }


def _is_not_older(stored: AttributeValue | None, version: AttributeValue | None) -> bool:
    """Whether the stored version is the same or newer, in DynamoDB's order: strings by their UTF-8 bytes."""
    if stored is None or version is None or stored.keys() != version.keys():
        return False
    if "N" in stored:
        return Decimal(stored["N"]) >= Decimal(version["N"])
    return "S" in stored and stored["S"].encode() >= version["S"].encode()


def _rendered_id(value: AttributeValue | None) -> str | None:
    return None if value is None else value.get("S", value.get("N"))


def _text(row: Item, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))
