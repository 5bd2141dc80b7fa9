"""From an event and its plan to the transaction of both, and the verdict on an event that the ledger knows."""

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item, check_size
from idempotent_consumer.notification import RenderedNotification, render
from idempotent_consumer.plan import Plan
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.settings import Settings
from idempotent_consumer.write import Write, prepare_write

PENDING_SHARDS = 16
_LEDGER_KEY_IS_NEW = "attribute_not_exists(event_id)"
UNREADABLE = Verdict(Outcome.RETRY, "ledger-row-unreadable", "pending, without a notification")
# Amazon DynamoDB API Reference, TransactWriteItems: 100 actions, one of each event the ledger's, and 4 MB.
MAX_ACTIONS = 100
MAX_WRITES = MAX_ACTIONS - 1
_MAX_BYTES = 4 * 1024 * 1024


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
    def resources(self) -> frozenset[tuple[str, str]]:
        """The kinds of its actions with their tables: what it needs rights for."""
        return frozenset((kind, action["TableName"]) for each in self.writes for kind, action in each.action.items())

    @property
    def rows(self) -> list[tuple[Hashable, Hashable]]:
        """The rows that it needs, each with what `Write.sharing` says: one transaction takes a row once."""
        return [(self.event.id, None), *((write.key, write.sharing) for write in self.writes)]

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
    """Raises Rejected for whatever can never succeed, InvalidPlan for a plan that makes no sense.

    now_ms: epoch milliseconds.
    """
    if not isinstance(plan, Plan):
        raise InvalidPlan(f"the plan is no Plan but {type(plan).__name__}")
    if len(plan.writes) > MAX_WRITES:
        raise Rejected("too-many-writes", f"the plan has {len(plan.writes)} writes, a transaction takes {MAX_WRITES}")
    notifications = plan.all_notifications
    if notifications and settings.topic_arn is None:
        raise InvalidPlan("the plan has a notification, but the consumer has no topic to send it to")
    rendered = render(notifications, event, settings.consumer_name, settings.max_notification_bytes)
    sent = sent_attributes(now_ms, settings.ttl_window_seconds)
    identity = {
        "event_id": {"S": event.id},
        "fingerprint": {"S": event.fingerprint},
        "created_at": {"N": str(now_ms)},
        "message_id": {"S": message_id},
    }
    ledger_item = {**identity, **(_pending_attributes(event, rendered) if rendered else sent)}
    size = check_size(ledger_item, "the ledger row")
    writes = [prepare_write(action, event, now_ms, settings) for action in plan.writes]
    _check_rows(writes)
    size += sum([write.size for write in writes])
    if size > _MAX_BYTES:
        raise Rejected("transaction-too-large", f"all rows are {size} bytes, a transaction takes {_MAX_BYTES}")
    return Commit(
        event=event,
        ledger_table=settings.ledger_table,
        ledger_item=ledger_item,
        ledger_item_as_sent={**identity, **sent},
        writes=writes,
        notification=rendered,
        size=size,
    )


def _check_rows(writes: Sequence[Write]) -> None:
    seen: dict[Hashable, Hashable] = {}
    for write in writes:
        if write.key in seen and (write.sharing is None or seen[write.key] != write.sharing):
            raise Rejected("row-written-twice", f"two writes of the plan are of one row of {write.table}")
        seen[write.key] = write.sharing


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


def pending_shard(event_id: str) -> AttributeValue:
    """The key of the ledger's sparse index, which a row carries while it is unfinished."""
    return {"S": str(zlib.crc32(event_id.encode()) % PENDING_SHARDS)}


def is_pending(row: Item) -> bool:
    """Whether the event of a ledger row is committed, and not known to be announced."""
    return _text(row, "status") == "pending"


def stored_notification(row: Item) -> RenderedNotification:
    """What a pending row still has to announce. Raises ValueError where that cannot be read."""
    return RenderedNotification.from_text(_text(row, "notification"))


def _pending_attributes(event: Event, rendered: RenderedNotification) -> Item:
    return {
        "status": {"S": "pending"},
        "notification": {"S": rendered.to_text()},
        "pending_shard": pending_shard(event.id),
    }


def _text(row: Item, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))
