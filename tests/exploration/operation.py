"""An operation's surroundings in memory, its provider among them, and the law that they hold it to.

Who is charged twice complains; so does who reads in a row that something was or was not done that was not or was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.aws import Clients
from idempotent_consumer.effect import Applied, NotApplied
from idempotent_consumer.event import Event
from tests.exploration.dynamodb import Database, Item, Place
from tests.exploration.faults import Request
from tests.exploration.pipeline import Message
from tests.exploration.pipeline_law import Violation
from tests.exploration.scheduling import Client, Process, stop
from tests.handler.support import LEDGER, NOW_MS

SKEW_MS = 60_000
FUNCTION_MS, EFFECT_MS = 30_000, 10_000
LEASE_MS = FUNCTION_MS + 2 * SKEW_MS
# Longer than a lease: else the provider would be done before anybody asks it.
SETTLE_MS = 600_000
FINAL_STATES = ("COMPLETED", "FAILED_FINAL")

CLIENTS = Clients(
    dynamodb=Client({"update_item": "UpdateItem"}),
    sns=None,
    sqs=Client({"send_message": "SendMessage"}),
    sqs_short=Client({"change_message_visibility_batch": "ChangeMessageVisibilityBatch"}),
)


def charge(event: Event, key: str) -> Any:
    """The effect."""
    return stop("Effect", {"event_id": event.id, "key": key})


def look_up(event: Event, key: str) -> Applied | NotApplied:
    """The question to the provider."""
    found = stop("Reconcile", {"event_id": event.id, "key": key})
    return NotApplied() if found is None else Applied(found)


@dataclass
class _Late:
    """A charge to come."""

    event_id: str
    key: str
    until_ms: int


class OperationWorld:
    """Ledger, dead-letter queue and provider during one play.

    honours_keys: the provider charges once for a key. is_mortal: a process ends with the time of its function.
    """

    def __init__(self, messages: Sequence[Message], *, honours_keys: bool, is_mortal: bool) -> None:
        self.now_ms = NOW_MS
        self.actor = ""
        self.messages = messages
        self.processes: Sequence[Process] = ()
        self.database = _Watched(self)
        self.letters: Counter[tuple[str, str]] = Counter()
        self.deleted: set[str] = set()
        self.charges: Counter[str] = Counter()
        self.problems: list[str] = []
        # By event: who has claimed it last. By fingerprint: the content that was settled under it.
        self.holders: dict[str, str] = {}
        self.contents: dict[str, str] = {}
        self._honours_keys = honours_keys
        self._is_mortal = is_mortal
        self._keys: dict[str, str] = {}
        self._late: list[_Late] = []

    # What the processes do

    def call(self, operation: str, request: Request) -> Any:
        if operation == "Effect":
            return self._charge(request["event_id"], request["key"])
        if operation == "Effect later":
            self._late.append(_Late(request["event_id"], request["key"], self.now_ms + SETTLE_MS))
            return None
        if operation == "Reconcile":
            event_id = request["event_id"]
            return _charged(event_id) if self.charges[event_id] else None
        if operation == "SendMessage":
            self._bury(request["MessageBody"], request["MessageAttributes"]["dead_letter_reason"]["StringValue"])
            return {}
        if operation == "ChangeMessageVisibilityBatch":
            return {"Successful": [], "Failed": []}
        return self.database.call(operation, request)

    def rows_of(self, request: Request) -> list[Callable[[], None]]:
        raise AssertionError("an operation has no transactions")

    def _charge(self, event_id: str, key: str) -> Any:
        if self._keys.setdefault(event_id, key) != key:
            self.problems.append(f"O1: {event_id} has two idempotency keys")
        if not (self._honours_keys and self.charges[event_id]):
            self.charges[event_id] += 1
        if self.charges[event_id] > 1:
            self.problems.append(f"O1: {event_id} is charged twice")
        return _charged(event_id)

    def _bury(self, body: str, reason: str) -> None:
        event_id, row = self._row_of(body)
        self.letters[body, reason] += 1
        if _text(row, "status") != "FAILED_FINAL" and "parked_at" not in row and reason != "id-reused":
            self.problems.append(f"I3: {event_id} is dead-lettered as {reason}, and its row is not final")
        rivals = [message.body for message in self.messages if json.loads(message.body)["id"] == event_id]
        if reason == "id-reused" and {*rivals} == {body}:
            self.problems.append(f"I5: {event_id} is dead-lettered as {reason}, and nobody else has used it")

    # What happens by itself

    def arrive(self) -> None:
        """What the provider was slow with is done."""
        for late in self._late:
            self._charge(late.event_id, late.key)
        self._late.clear()

    def end_lease(self) -> None:
        """All leases of now are over."""
        self._pass(LEASE_MS + 2 * SKEW_MS + 1)

    def settle_provider(self) -> None:
        """So much later that the provider has done what it was asked for."""
        self._pass(SETTLE_MS + 2 * SKEW_MS + 1)

    def almost_end(self) -> None:
        """So much later that a function that has just begun may still be at it."""
        self.now_ms += FUNCTION_MS - 1

    def end_function(self) -> None:
        """So much later that it may not. Its lease has still to run, but for one whose clock is ahead."""
        self._pass(FUNCTION_MS)

    def wait(self) -> None:
        """Long enough for any backoff, lease and provider."""
        self._pass(2 * 3_600_000)

    def _pass(self, ms: int) -> None:
        """More time than a function has."""
        for process in self.processes:
            if self._is_mortal and process.has_begun and not process.is_over:
                process.die()
        self.now_ms += ms
        for late in self._late:
            if late.until_ms <= self.now_ms:
                self._charge(late.event_id, late.key)
        self._late = [late for late in self._late if late.until_ms > self.now_ms]

    # The law

    def settle(self, message_ids: Sequence[str], answer: Any) -> None:
        """An invocation has ended."""
        if isinstance(answer, Exception):
            raise Violation(f"an invocation raised {answer!r}") from answer
        back = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in self.messages:
            if message.id in message_ids and message.id not in back:
                self.deleted.add(message.id)
                _, row = self._row_of(message.body)
                is_dead = any((message.body, reason) in self.letters for reason in message.reasons)
                if not is_dead and _text(row, "status") != "COMPLETED":
                    raise Violation(f"I3: {message.id} is deleted, and its row is {_text(row, 'status')}")
                if not is_dead and self.contents.setdefault(_text(row, "fingerprint"), message.body) != message.body:
                    raise Violation(f"I5: {message.id} is deleted, and its row is of other content")

    def check(self) -> None:
        """What must hold at any time. Raises Violation."""
        if self.problems or self.database.complaints:
            raise Violation("; ".join([*self.problems, *self.database.complaints]))

    def check_end(self) -> None:
        """What must hold once all has gone well for a while."""
        self.check()
        for message in self.messages:
            event_id, row = self._row_of(message.body)
            status = _text(row, "status")
            if message.id not in self.deleted:
                raise Violation(f"I3: {message.id} never settles: its row is {status}")
            if status not in FINAL_STATES and "parked_at" not in row:
                raise Violation(f"O2: {event_id} is {status} in the end")
        for body, reason in self.letters:
            if not any(message.body == body and reason in message.reasons for message in self.messages):
                raise Violation(f"I7: {body} is dead-lettered: {reason}")

    def note(self, place: Place, before: Item | None, after: Item | None) -> None:
        """A row is written."""
        event_id = place[1]
        before, after = before or {}, after or {}
        self._note_outcome(event_id, before, after)
        self._note_fence(event_id, before, after)
        if _text(after, "owner") != _text(before, "owner"):
            self.holders[event_id] = self.actor
            self.database.owners[self.actor, event_id] = _text(after, "owner")

    def _note_outcome(self, event_id: str, before: Item, after: Item) -> None:
        was, status = _text(before, "status"), _text(after, "status")
        charged = self.charges[event_id] + any(late.event_id == event_id for late in self._late)
        if was in FINAL_STATES and after != before:
            self.problems.append(f"O2: {event_id} was {was}, and is changed")
        if "parked_at" in before and after != before:
            self.problems.append(f"O2: {event_id} was parked, and is changed")
        if status == "COMPLETED" and not self.charges[event_id]:
            self.problems.append(f"O2: {event_id} is COMPLETED, and was never charged")
        if status == "COMPLETED" and json.loads(_text(after, "result")) != _charged(event_id):
            self.problems.append(f"O2: {event_id} has another result than the provider's")
        if status.startswith("FAILED") and charged:
            self.problems.append(f"O2: {event_id} is {status}, and is charged or will be")

    def _note_fence(self, event_id: str, before: Item, after: Item) -> None:
        if _text(before, "status") != "IN_PROGRESS":
            return
        if _number(after, "attempt") < _number(before, "attempt"):
            self.problems.append(f"O3: {event_id} goes back to an earlier attempt")
        lease_until, owner = _number(before, "lease_until"), _text(before, "owner")
        is_own = owner == self.database.owners.get((self.actor, event_id))
        if not is_own and lease_until - 2 * SKEW_MS > self.now_ms:
            self.problems.append(f"O3: {self.actor} changes {event_id}, which another holds")
        workers = {worker.name: worker for worker in self.processes}
        actor, holder = workers.get(self.actor), workers.get(self.holders.get(event_id, ""))
        if is_own and actor is not None and owner == _text(after, "owner") and lease_until <= actor.asked_ms:
            self.problems.append(f"O3: {self.actor} changes {event_id}, and its lease is over")
        is_at_it = self._is_mortal and holder is not None and holder is not actor and not holder.is_over
        if holder is not None and is_at_it and "parked_at" not in before and lease_until > holder.now_ms:
            self.problems.append(f"O3: {self.actor} changes {event_id}, which {holder.name} is at")

    def key(self) -> Any:
        """All that decides what happens from here on, but for the processes."""
        return (
            self.now_ms,
            tuple(sorted(self.database.texts.items())),
            tuple(sorted(self.letters)),
            tuple(sorted(self.deleted)),
            tuple(sorted(self.charges.items())),
            tuple((late.event_id, late.key, late.until_ms) for late in self._late),
            tuple(sorted(self._keys.items())),
            tuple(sorted(self.contents.items())),
        )

    def _row_of(self, body: str) -> tuple[str, Item]:
        event_id = str(json.loads(body)["id"])
        return event_id, self.database.rows.get((LEDGER, event_id), {})


class _Watched(Database):
    def __init__(self, world: OperationWorld) -> None:
        super().__init__({LEDGER: {"event_id": "S"}}, {})
        self._world = world
        self.texts: dict[Place, str] = {}
        # By process and event: the token of its claim.
        self.owners: dict[tuple[str, str], str] = {}

    def write(self, place: Place, item: Item | None) -> None:
        before = self.rows.get(place)
        super().write(place, item)
        self.texts[place] = repr(item)
        self._world.note(place, before, item)


def _charged(event_id: str) -> dict[str, str]:
    return {"charge": f"of {event_id}"}


def _text(row: Item, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))


def _number(row: Item, name: str) -> int:
    return int(row.get(name, {}).get("N", "0"))
