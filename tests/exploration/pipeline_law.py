"""The law of the pipeline: the invariants I1 to I8 of docs/correctness.md.

It is written from outside. It knows the messages, what reached the tables, the topic and the dead-letter queue, and in
which order; it knows nothing of how the consumer does it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idempotent_consumer.reconciler import PendingUnreadable
from tests.exploration.dynamodb import Item, Place
from tests.exploration.faults import Fault
from tests.handler.support import BUSINESS, LEDGER

if TYPE_CHECKING:
    from tests.exploration.pipeline import Known, Message, PipelineWorld

WINDOW_MS = 30 * 86_400_000
STOCK = "stock"
# After these faults of a delivery any message of it may come back; others pass, and are made good by another attempt.
_LASTING = frozenset({Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.LOST_ANSWER, Fault.TIME_IS_UP})
_NOT_REPEATED = ("PutItem", "SendMessage")


class Violation(AssertionError):
    """An invariant does not hold."""


class Law:
    """What has happened in a world so far, as far as it matters; each method that judges raises Violation.

    deleted: messages. refused: message and event, where the dead-letter queue has that it can never succeed. unknown:
    process and event, where the process has read that the ledger does not hold it. committed: by event id, what its
    ledger row was committed with. written: how often its business row was. problems: violations yet to be raised.
    """

    def __init__(self, world: PipelineWorld) -> None:
        self.deleted: set[str] = set()
        self.refused: set[tuple[str, str]] = set()
        self.unknown: set[tuple[str, str]] = set()
        self.committed: dict[str, Item] = {}
        self.written: Counter[str] = Counter()
        self.problems: list[str] = []
        self._world = world

    def note_read(self, event_ids: set[str]) -> None:
        """A process reads the ledger."""
        rows = self._world.database.rows
        self.unknown |= {(self._world.actor, event_id) for event_id in event_ids if (LEDGER, event_id) not in rows}

    def note_publishing(self, event_id: str, text: str) -> None:
        """A notification goes out."""
        row = self.committed.get(event_id)
        if row is None:
            self.problems.append(f"I2: {event_id} is published, but was never committed")
        elif "notification" not in row or text != _text(row["notification"]):
            self.problems.append(f"I2: {event_id} is published with another text than was committed")

    def note_letter(self, body: str, reason: str) -> None:
        """A message is dead-lettered."""
        messages = [message for message in self._world.messages if message.body == body and reason in message.reasons]
        if not messages:
            self.problems.append(f"I7: {body} is dead-lettered: {reason}")
        for message in messages:
            refused = [event for event in self._world.events[message.id] if self._is_true(reason, event)]
            self.refused |= {(message.id, event.id) for event in refused}
            others = [event for event in self._world.events[message.id] if event not in refused]
            if others and not refused:
                self.problems.append(f"I3: {message.id} is dead-lettered as {reason}, which it is not")
            if unsent := [event.id for event in others if self._is_pending(event)]:
                self.problems.append(f"I3: {message.id} is dead-lettered before {unsent[0]} is sent")

    def settle(self, message_ids: Sequence[str], answer: Any, has_faults: bool) -> None:
        """An invocation has ended. answer: what it returned, or the exception that it raised."""
        if isinstance(answer, Exception):
            raise Violation(f"an invocation raised {answer!r}") from answer
        back = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        if not set(back) <= set(message_ids):
            raise Violation(f"I3: {back} are no messages of the batch")
        settled = {message.id: message.group or message.id for message in self._world.messages}
        returning = {settled[message_id] for message_id in back}
        if len(returning) > (self._returning() if has_faults else 0):
            raise Violation(f"I7: {back} come back, although nothing has gone wrong with them")
        held: set[str] = set()
        for message in (message for message in self._world.messages if message.id in message_ids):
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
        may_raise = isinstance(answer, PendingUnreadable) and self._world.play.is_disturbed
        if isinstance(answer, Exception) and not may_raise:
            raise Violation(f"the reconciler raised {answer!r}") from answer

    def check_reconciled(self) -> None:
        """A reconciler to which nothing happened leaves nothing pending, with or without the messages."""
        self.check()
        for (table, key), row in self._world.database.rows.items():
            if table == LEDGER and _text_of(row, "status") == "pending":
                raise Violation(f"I2: {key} is left pending by the reconciler")

    def _returning(self) -> int:
        """How many messages, or groups of them, may come back for what has befallen the delivery that has ended."""
        all_of_them = len(self._world.messages)
        failed = 0
        for step in self._world.play.steps:
            if step.who == "expire" or (step.fault is Fault.ONE_BY_ONE and step.who != self._world.actor):
                return all_of_them  # it may have met a row that was gone, or busy
            if step.who != self._world.actor or step.fault is None:
                continue
            if step.fault in _LASTING or (step.operation in _NOT_REPEATED and step.fault is not Fault.REPEATED):
                return all_of_them
            failed += step.operation == "PublishBatch" and step.fault in (Fault.IN_PART, Fault.UNANSWERED)
        return failed

    def unsettled(self, message: Message) -> str:
        """Why the message may not be deleted; empty where it may."""
        if message.must_die and not any((message.body, reason) in self._world.letters for reason in message.reasons):
            return "it is not in the dead-letter queue"
        for event in self._world.events[message.id]:
            if (message.id, event.id) in self.refused:
                continue
            row = self._world.database.rows.get((LEDGER, event.id))
            if row is None:
                business = self._world.database.rows.get((BUSINESS, event.row), {})
                if event.id not in self._world.expired or _text_of(business, "event_id") != event.id:
                    return f"the ledger does not hold {event.id}"
            elif _text_of(row, "fingerprint") != event.fingerprint:
                return f"the ledger holds {event.id} with other content (I5)"
            elif _text_of(row, "status") != "sent":
                return f"{event.id} is not sent"
        return ""

    def check(self) -> None:
        """What must hold at any time. Raises Violation."""
        database = self._world.database
        if self.problems or database.complaints:
            raise Violation("; ".join([*self.problems, *database.complaints]))
        if not database.busy and self.counted() != database.rows.get((STOCK, "shelf"), {}).get("reserved"):
            raise Violation(f"I1: {len(self.committed)} events are committed, and counted otherwise")
        if not database.busy and (alone := self.written.keys() - self.committed.keys()):
            raise Violation(f"I1: the rows of {sorted(alone)} are written, and they are not committed")
        groups: dict[str, str] = {}
        for message in self._world.messages:
            if message.group is None:
                continue
            begun = [event for event in self._world.events[message.id] if self._is_committed(event)]
            if begun and message.group in groups:
                raise Violation(f"I6: {begun[0].id} is committed before {groups[message.group]} is settled")
            is_dead = any((message.body, reason) in self._world.letters for reason in message.reasons)
            is_begun = len(begun) == len(self._world.events[message.id]) > 0
            if message.id not in self.deleted and not is_dead and not is_begun:
                groups.setdefault(message.group, message.id)

    def check_end(self) -> None:
        """What must hold once all has gone well for a while."""
        self.check()
        for message in self._world.messages:
            if message.id not in self.deleted:
                raise Violation(f"I3: {message.id} never settles: {self.unsettled(message) or 'it comes back'}")
        for event in (event for message in self._world.messages for event in self._world.events[message.id]):
            stands = self._world.database.rows.get((BUSINESS, event.row), {})
            is_superseded = "ttl" in self.committed.get(event.id, {}) and _text_of(stands, "event_id") != event.id
            has_row = self.written[event.id] or is_superseded or self._world.is_counting
            if event.id in self.committed and not has_row:
                raise Violation(f"I1: {event.id} is committed without its row")
        for event_id, row in self.committed.items():
            if "notification" in row and not self._world.published[event_id, _text(row["notification"])]:
                raise Violation(f"I2: {event_id} was never published")

    def counted(self) -> dict[str, str] | None:
        """What a plan that counts its events must have counted by now."""
        return {"N": str(len(self.committed))} if self._world.is_counting and self.committed else None

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
            if event_id in self.committed and event_id not in self._world.expired:
                self.problems.append(f"I1: {event_id} is committed again")
            self.committed.setdefault(event_id, after)
        elif _text_of(before, "status") == "sent" != status:
            self.problems.append(f"I1: {event_id} was sent, and is {status} again")
        held = {name for name in ("notification", "pending_shard", "sent_at", "ttl") if name in after}
        if held != ({"notification", "pending_shard"} if status == "pending" else {"sent_at", "ttl"}):
            self.problems.append(f"I4: {event_id} is {status} with {sorted(after)}")
        elif status != "pending" and int(after["ttl"]["N"]) != (int(after["sent_at"]["N"]) + WINDOW_MS) // 1000:
            self.problems.append(f"I4: {event_id} is kept until {after['ttl']}")
        told = before.get("notification") if before is not None and status == "sent" else None
        if told is not None and not self._world.published[event_id, _text(told)]:
            self.problems.append(f"I2: {event_id} is marked before it is published")

    def _is_true(self, reason: str, event: Known) -> bool:
        """Whether an event can never succeed for this reason, as far as who says so can know."""
        if reason == "id-reused":
            return event.id in self.committed and not self._is_committed(event)
        if (self._world.actor, event.id) not in self.unknown:
            return False
        in_the_way = _text_of(self._world.database.rows.get((BUSINESS, event.row), {}), "event_id")
        return reason != "row-exists" or in_the_way not in ("", event.id)

    def _is_committed(self, event: Known) -> bool:
        return _text_of(self.committed.get(event.id, {}), "fingerprint") == event.fingerprint

    def _is_pending(self, event: Known) -> bool:
        row = self._world.database.rows.get((LEDGER, event.id), {})
        return _text_of(row, "fingerprint") == event.fingerprint and _text_of(row, "status") != "sent"

    def state(self) -> Any:
        """All of it that decides what happens from here on."""
        return (
            tuple(sorted((event_id, repr(row)) for event_id, row in self.committed.items())),
            tuple(sorted(self.deleted)),
            tuple(sorted(self.refused)),
            tuple(sorted(self.written)),
        )


def _text_of(row: Item, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))


def _text(notification: Mapping[str, Any]) -> str:
    """The message of a stored notification."""
    return str(json.loads(notification["S"])["message"])
