"""The pipeline's surroundings in memory, and the law that they hold it to: the invariants I1 to I8 of the design.

The law is written from outside. It knows the messages, what reached the tables, the topic and the dead-letter queue,
and in which order; it knows nothing of how the consumer does it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.aws import Clients
from idempotent_consumer.reconciler import PendingUnreadable
from tests.exploration.dynamodb import Database, Item, Place
from tests.exploration.faults import FAULTS, Fault, Request, reasons_of
from tests.exploration.scheduling import Client, Play
from tests.handler.support import BUSINESS, LEDGER, NOW_MS, record

WINDOW_MS = 30 * 86_400_000
STOCK = "stock"
DEAD_LETTER_REASON = "dead_letter_reason"
# After these faults of a delivery any message of it may come back; others pass, and are made good by another attempt.
_LASTING = frozenset({Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.LOST_ANSWER, Fault.TIME_IS_UP})
_NOT_REPEATED = ("PutItem", "SendMessage")

CLIENTS = Clients(
    dynamodb=Client(
        {
            "batch_execute_statement": "BatchExecuteStatement",
            "batch_get_item": "BatchGetItem",
            "put_item": "PutItem",
            "query": "Query",
            "transact_write_items": "TransactWriteItems",
        }
    ),
    sns=Client({"publish_batch": "PublishBatch"}),
    sqs=Client({"send_message": "SendMessage"}),
    sqs_short=None,
)


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True)
class Message:
    """A message of the queue. reasons: those for which it may be dead-lettered; without any it never may.

    must_die: it can never succeed, and must be in the dead-letter queue in the end.
    """

    id: str
    body: str
    group: str | None = None
    reasons: frozenset[str] = frozenset()
    must_die: bool = False

    def received(self, count: int) -> dict[str, Any]:
        return record(self.id, self.body, group=self.group, receive_count=count)


@dataclass(frozen=True)
class Known:
    """One event of a message, as the law knows it."""

    id: str
    fingerprint: str
    row: str


class PipelineWorld:
    """Tables, topic and queues during one play. messages: in the order of the queue. is_counting: each event adds 1 to
    `reserved` of the shelf."""

    def __init__(
        self, messages: Sequence[Message], events: Mapping[str, Sequence[Known]], *, is_counting: bool = False
    ) -> None:
        self.now_ms = NOW_MS
        self.actor = ""
        self.messages = messages
        self.events = events
        self.is_counting = is_counting
        self.database = _Watched(self)
        self.published: Counter[tuple[str, str]] = Counter()
        self.letters: Counter[tuple[str, str]] = Counter()
        self.deduplicated: set[str] = set()
        self.deleted: set[str] = set()
        self.expired: set[str] = set()
        # Message and event: that it can never succeed is in the dead-letter queue.
        self.refused: set[tuple[str, str]] = set()
        # Process and event: the process has read that the ledger does not hold it.
        self.unknown: set[tuple[str, str]] = set()
        # By event id: what its ledger row was committed with, and how often its business rows were written.
        self.committed: dict[str, Item] = {}
        self.written: Counter[str] = Counter()
        self.problems: list[str] = []
        self.play: Play

    # What the processes do

    def call(self, operation: str, request: Request) -> Any:
        if operation == "PublishBatch":
            return self._publish(request["PublishBatchRequestEntries"])
        if operation == "SendMessage":
            if self._is_new(request):
                self._bury(request["MessageBody"], request["MessageAttributes"][DEAD_LETTER_REASON]["StringValue"])
            return {}
        if operation == "BatchGetItem":
            asked = {key["event_id"]["S"] for key in request["RequestItems"][LEDGER]["Keys"]}
            self.unknown |= {
                (self.actor, event_id) for event_id in asked if (LEDGER, event_id) not in self.database.rows
            }
        return self.database.call(operation, request)

    def rows_of(self, request: Request) -> list[Callable[[], None]]:
        """A transaction as writes that become visible one after the other."""
        writes = self.database.prepare(request)
        places = {place for place, _ in writes}
        self.database.busy |= places

        def make(place: Place, item: Item | None, is_last: bool) -> None:
            self.database.write(place, item)
            if is_last:
                self.database.busy -= places

        last = len(writes) - 1
        return [partial(make, *write, number == last) for number, write in enumerate(writes)]

    def faults(self, operation: str, request: Request) -> Sequence[Fault]:
        """Those that make a difference."""
        faults = FAULTS.get(operation, ())
        if operation != "TransactWriteItems":
            return faults
        idle: Sequence[Fault]
        try:
            self.database.prepare(request)
            idle = (Fault.UNNAMED,)
        except ClientError as refusal:
            failed = sum(reason["Code"] != "None" for reason in reasons_of(refusal))
            idle = (Fault.ONE_BY_ONE,) if failed > 1 else (Fault.ONE_BY_ONE, Fault.UNNAMED)
        return [fault for fault in faults if fault not in idle]

    def _publish(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        for entry in entries:
            event_id = entry["MessageAttributes"]["event_id"]["StringValue"]
            if self._is_new(entry):
                self.published[event_id, entry["Message"]] += 1
            row = self.committed.get(event_id)
            if row is None:
                self.problems.append(f"I2: {event_id} is published, but was never committed")
            elif "notification" not in row or entry["Message"] != _text(row["notification"]):
                self.problems.append(f"I2: {event_id} is published with another text than was committed")
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}

    def _is_new(self, request: Request) -> bool:
        """A FIFO queue or topic drops, without a word, what it has got under the same deduplication id."""
        deduplication_id = request.get("MessageDeduplicationId")
        is_new = deduplication_id not in self.deduplicated
        if deduplication_id is not None:
            self.deduplicated.add(deduplication_id)
        return is_new

    def _bury(self, body: str, reason: str) -> None:
        self.letters[body, reason] += 1
        messages = [message for message in self.messages if message.body == body and reason in message.reasons]
        if not messages:
            self.problems.append(f"I7: {body} is dead-lettered: {reason}")
        for message in messages:
            refused = [event for event in self.events[message.id] if self._is_true(reason, event)]
            self.refused |= {(message.id, event.id) for event in refused}
            others = [event for event in self.events[message.id] if event not in refused]
            if others and not refused:
                self.problems.append(f"I3: {message.id} is dead-lettered as {reason}, which it is not")
            if unsent := [event.id for event in others if self._is_pending(event)]:
                self.problems.append(f"I3: {message.id} is dead-lettered before {unsent[0]} is sent")

    def _is_true(self, reason: str, event: Known) -> bool:
        """Whether an event can never succeed for this reason, as far as who says so can know."""
        if reason == "id-reused":
            return event.id in self.committed and not self._is_committed(event)
        in_the_way = _text_of(self.database.rows.get((BUSINESS, event.row), {}), "event_id")
        return (self.actor, event.id) in self.unknown and (reason != "row-exists" or in_the_way not in ("", event.id))

    def _is_committed(self, event: Known) -> bool:
        return _text_of(self.committed.get(event.id, {}), "fingerprint") == event.fingerprint

    def _is_pending(self, event: Known) -> bool:
        row = self.database.rows.get((LEDGER, event.id), {})
        return _text_of(row, "fingerprint") == event.fingerprint and _text_of(row, "status") != "sent"

    # What happens by itself

    def expire(self) -> None:
        """All that has settled is past its time to live, and DynamoDB deletes it."""
        self.pass_window()
        for place, item in list(self.database.rows.items()):
            if place[0] == LEDGER and int(item.get("ttl", {"N": "9" * 12})["N"]) * 1000 <= self.now_ms:
                self.expired.add(place[1])
                self.database.write(place, None)

    def pass_window(self) -> None:
        """It is past its time to live, but not deleted yet."""
        self.now_ms += WINDOW_MS + 1_000

    # The law

    def settle(self, message_ids: Sequence[str], answer: Any, has_faults: bool) -> None:
        """An invocation has ended. answer: what it returned, or the exception that it raised."""
        if isinstance(answer, Exception):
            raise Violation(f"an invocation raised {answer!r}") from answer
        back = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        if not set(back) <= set(message_ids):
            raise Violation(f"I3: {back} are no messages of the batch")
        settled = {message.id: message.group or message.id for message in self.messages}
        returning = {settled[message_id] for message_id in back}
        if len(returning) > (self._returning() if has_faults else 0):
            raise Violation(f"I7: {back} come back, although nothing has gone wrong with them")
        held: set[str] = set()
        for message in (message for message in self.messages if message.id in message_ids):
            if message.id in back:
                if message.group is not None:
                    held.add(message.group)
                continue
            if message.group in held:
                raise Violation(f"I6: {message.id} is deleted, although one of its group before it comes back")
            self.deleted.add(message.id)
            if problem := self.unsettled(message):
                raise Violation(f"I3: {message.id} is deleted, but {problem}")

    def reconcile(self, answer: Any) -> None:
        """A reconciliation has ended. answer: as in `settle`."""
        if isinstance(answer, Exception) and not (isinstance(answer, PendingUnreadable) and self.play.is_disturbed):
            raise Violation(f"the reconciler raised {answer!r}") from answer

    def check_reconciled(self) -> None:
        """A reconciler to which nothing happened leaves nothing pending, with or without the messages."""
        self.check()
        for (table, key), row in self.database.rows.items():
            if table == LEDGER and _text_of(row, "status") == "pending":
                raise Violation(f"{key} is left pending by the reconciler")

    def _returning(self) -> int:
        """How many messages, or groups of them, may come back for what has befallen the delivery that has ended."""
        all_of_them = len(self.messages)
        failed = 0
        for step in self.play.steps:
            if step.who == "expire" or (step.fault is Fault.ONE_BY_ONE and step.who != self.actor):
                return all_of_them  # it may have met a row that was gone, or busy
            if step.who != self.actor or step.fault is None:
                continue
            if step.fault in _LASTING or (step.operation in _NOT_REPEATED and step.fault is not Fault.REPEATED):
                return all_of_them
            failed += step.operation == "PublishBatch" and step.fault in (Fault.IN_PART, Fault.UNANSWERED)
        return failed

    def unsettled(self, message: Message) -> str:
        """Why the message may not be deleted; empty where it may."""
        if message.must_die and not any((message.body, reason) in self.letters for reason in message.reasons):
            return "it is not in the dead-letter queue"
        for event in self.events[message.id]:
            if (message.id, event.id) in self.refused:
                continue
            row = self.database.rows.get((LEDGER, event.id))
            if row is None:
                business = self.database.rows.get((BUSINESS, event.row), {})
                if event.id not in self.expired or _text_of(business, "event_id") != event.id:
                    return f"the ledger does not hold {event.id}"
            elif _text_of(row, "fingerprint") != event.fingerprint:
                return f"the ledger holds {event.id} with other content (I5)"
            elif _text_of(row, "status") != "sent":
                return f"{event.id} is not sent"
        return ""

    def check(self) -> None:
        """What must hold at any time. Raises Violation."""
        if self.problems or self.database.complaints:
            raise Violation("; ".join([*self.problems, *self.database.complaints]))
        if not self.database.busy and self.counted() != self.database.rows.get((STOCK, "shelf"), {}).get("reserved"):
            raise Violation(f"I1: {len(self.committed)} events are committed, and counted otherwise")
        if not self.database.busy and (alone := self.written.keys() - self.committed.keys()):
            raise Violation(f"I1: the rows of {sorted(alone)} are written, and they are not committed")
        groups: dict[str, str] = {}
        for message in self.messages:
            if message.group is None:
                continue
            begun = [event for event in self.events[message.id] if self._is_committed(event)]
            if begun and message.group in groups:
                raise Violation(f"I6: {begun[0].id} is committed before {groups[message.group]} is settled")
            is_dead = any((message.body, reason) in self.letters for reason in message.reasons)
            if message.id not in self.deleted and not is_dead and len(begun) < max(1, len(self.events[message.id])):
                groups.setdefault(message.group, message.id)

    def check_end(self) -> None:
        """What must hold once all has gone well for a while."""
        self.check()
        for message in self.messages:
            if message.id not in self.deleted:
                raise Violation(f"{message.id} never settles: {self.unsettled(message) or 'it comes back'}")
        for event in (event for message in self.messages for event in self.events[message.id]):
            stands = self.database.rows.get((BUSINESS, event.row), {})
            is_superseded = "ttl" in self.committed.get(event.id, {}) and _text_of(stands, "event_id") != event.id
            if not self.is_counting and event.id in self.committed and not (self.written[event.id] or is_superseded):
                raise Violation(f"I1: {event.id} is committed without its row")
        for event_id, row in self.committed.items():
            if "notification" in row and not self.published[event_id, _text(row["notification"])]:
                raise Violation(f"I2: {event_id} was never published")

    def counted(self) -> dict[str, str] | None:
        """What a plan that counts its events must have counted by now."""
        return {"N": str(len(self.committed))} if self.is_counting and self.committed else None

    def note(self, place: Place, before: Item | None, after: Item | None) -> None:
        """A row is written."""
        table, key = place
        if table == LEDGER:
            self._note_ledger(key, before, after)
        elif table == BUSINESS and after is not None:
            event_id = _text_of(after, "event_id")
            self.written[event_id] += 1
            if self.written[event_id] > 1:
                self.problems.append(f"I1: the row of {event_id} is written again")
            if before is not None and int(before["total"]["N"]) >= int(after["total"]["N"]):
                self.problems.append(f"I1: {event_id} overwrites the row of {_text_of(before, 'event_id')}")

    def _note_ledger(self, event_id: str, before: Item | None, after: Item | None) -> None:
        if after is None:
            return
        status = _text_of(after, "status")
        if before is None:
            if event_id in self.committed and event_id not in self.expired:
                self.problems.append(f"I1: {event_id} is committed again")
            self.committed.setdefault(event_id, after)
        elif _text_of(before, "status") == "sent" != status:
            self.problems.append(f"{event_id} was sent, and is {status} again")
        held = {name for name in ("notification", "pending_shard", "sent_at", "ttl") if name in after}
        if held != ({"notification", "pending_shard"} if status == "pending" else {"sent_at", "ttl"}):
            self.problems.append(f"I4: {event_id} is {status} with {sorted(after)}")
        elif status != "pending" and int(after["ttl"]["N"]) != (int(after["sent_at"]["N"]) + WINDOW_MS) // 1000:
            self.problems.append(f"I4: {event_id} is kept until {after['ttl']}")
        told = before.get("notification") if before is not None and status == "sent" else None
        if told is not None and not self.published[event_id, _text(told)]:
            self.problems.append(f"I2: {event_id} is marked before it is published")

    def key(self) -> Any:
        """All that decides what happens from here on."""
        return (
            self.now_ms,
            tuple(sorted(self.database.texts.items())),
            tuple(sorted(self.database.busy)),
            tuple(sorted((event_id, repr(row)) for event_id, row in self.committed.items())),
            tuple(sorted(self.published)),
            tuple(sorted(self.letters)),
            tuple(sorted(self.deduplicated)),
            tuple(sorted(self.deleted)),
            tuple(sorted(self.expired)),
            tuple(sorted(self.refused)),
            tuple(sorted(self.written)),
        )


class _Watched(Database):
    def __init__(self, world: PipelineWorld) -> None:
        super().__init__(
            {LEDGER: {"event_id": "S"}, BUSINESS: {"id": "S"}, STOCK: {"sku": "S"}},
            {LEDGER: ("pending", "pending_shard", "created_at")},
        )
        self._world = world
        self.texts: dict[Place, str] = {}

    def write(self, place: Place, item: Item | None) -> None:
        before = self.rows.get(place)
        super().write(place, item)
        self.texts[place] = repr(item)
        self._world.note(place, before, item)


def _text_of(row: Item, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))


def _text(notification: Mapping[str, Any]) -> str:
    """The message of a stored notification."""
    return str(json.loads(notification["S"])["message"])
