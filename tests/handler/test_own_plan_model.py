"""Users' own plans among random faults: each event is in the tables once and whole, or not at all.

Batches are delivered while an adversary spoils calls, lets another process handle the same messages in between, and
changes rows as another program would. Then the adversary sleeps, and all must get settled. What happened is compared
with `Law`, which plays each plan by itself, in the order in which the transactions took effect, and knows nothing of
how the consumer works.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from idempotent_consumer import (
    Attr,
    Check,
    Delete,
    Event,
    Notification,
    Plan,
    Put,
    Reject,
    Retry,
    Supersede,
    Update,
    WriteMode,
)
from idempotent_consumer import consumer as consumer_module
from idempotent_consumer.plan import Action
from idempotent_consumer.settlement import Misconfigured
from tests.handler.adversary import Mischief, SpoilsCalls, Time
from tests.handler.plan_model import (
    EXACT,
    Answered,
    Buried,
    Changed,
    Expired,
    Marked,
    Place,
    PlanWorld,
    Published,
    Superseded,
    Tried,
    digits,
)
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    PUBLISH,
    PUT,
    READ,
    Killed,
    cancelled,
    client_error,
    events_of,
    record,
)
from tests.handler.table_model import Effect, Request, reasons_in

SETTINGS = {"EVENT_FINGERPRINT": "content"}
Row = dict[str, Any]

# What the failing of a condition means, beside its reason.
SAME, INVALID, REJECT, RETRY, SUPERSEDE = "same", "invalid", "reject", "retry", "supersede"
Failure = tuple[str, str]
OTHERWISE: dict[str | None, Reject | Retry | Supersede | None] = {
    None: None,
    REJECT: Reject("rejected-by-plan"),
    RETRY: Retry("not-yet"),
    SUPERSEDE: Supersede("out-of-date"),
}


def meaning(otherwise: str | None, default: str = "condition-failed") -> Failure:
    if otherwise is None:
        return REJECT, default
    return otherwise, {REJECT: "rejected-by-plan", RETRY: "not-yet", SUPERSEDE: "out-of-date"}[otherwise]


# What plans are made of: the library's action, and the same in plain words


@dataclass(frozen=True)
class Act(ABC):
    """place: the row that it is about. failure: why it cannot be done to this row. result: the row afterwards."""

    @abstractmethod
    def place(self, event_id: str) -> Place: ...

    @abstractmethod
    def action(self, event_id: str) -> Action: ...

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return None

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return row


@dataclass(frozen=True)
class Own(Act):
    """The event's own row, which tells it for ever. number: None, or which of many."""

    number: int | None = None

    def place(self, event_id: str) -> Place:
        return (BUSINESS, (event_id,)) if self.number is None else ("lines", (event_id, Decimal(self.number)))

    def action(self, event_id: str) -> Action:
        if self.number is None:
            return Put(BUSINESS, {"id": event_id})
        return Put("lines", {"order": event_id, "line": self.number}, key=("order", "line"))

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return None if row is None else (SAME, "")

    def result(self, row: Row | None, event_id: str) -> Row | None:
        if self.number is None:
            return {"id": event_id, "event_id": event_id}
        return {"order": event_id, "line": Decimal(self.number), "event_id": event_id}


@dataclass(frozen=True)
class Stock(Act):
    sku: str

    def place(self, event_id: str) -> Place:
        return "stock", (self.sku,)


@dataclass(frozen=True)
class Add(Stock):
    """To counters; one may hold a text, to which nothing can be added, or a number too large for a small one."""

    sums: tuple[tuple[str, int | Decimal], ...]

    def action(self, event_id: str) -> Action:
        return Update("stock", {"sku": self.sku}, add=dict(self.sums))

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        old = [(row or {}).get(name, 0) for name, _ in self.sums]
        is_text = any(isinstance(number, str) for number in old)
        fits = is_text or all(digits(self.total(row, name)) <= 38 for name, _ in self.sums)
        return None if fits and not is_text else (INVALID, "refused-by-dynamodb")

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return dict(row or {"sku": self.sku}) | {name: self.total(row, name) for name, _ in self.sums}

    def total(self, row: Row | None, name: str) -> Decimal:
        return EXACT.add(Decimal((row or {}).get(name, 0)), Decimal(dict(self.sums)[name]))


@dataclass(frozen=True)
class Take(Stock):
    quantity: int

    def action(self, event_id: str) -> Action:
        enough, key = Attr("free").gte(self.quantity), {"sku": self.sku}
        return Update("stock", key, add={"free": -self.quantity}, condition=enough, otherwise=Reject("out-of-stock"))

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        is_enough = row is not None and "free" in row and row["free"] >= self.quantity
        return None if is_enough else (REJECT, "out-of-stock")

    def result(self, row: Row | None, event_id: str) -> Row | None:
        assert row is not None
        return row | {"free": row["free"] - self.quantity}


@dataclass(frozen=True)
class Note(Stock):
    """Writes a text; where the row is missing, it is made."""

    must_be_there: bool

    def action(self, event_id: str) -> Action:
        condition = Attr("sku").exists() if self.must_be_there else None
        return Update("stock", {"sku": self.sku}, set={"by": event_id}, remove=["old"], condition=condition)

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return meaning(None) if self.must_be_there and row is None else None

    def result(self, row: Row | None, event_id: str) -> Row | None:
        changed = dict(row or {"sku": self.sku}) | {"by": event_id}
        return {name: value for name, value in changed.items() if name != "old"}


@dataclass(frozen=True)
class Look(Stock):
    """Whether as much is free, or nothing is said of it."""

    least: int
    otherwise: str | None

    def action(self, event_id: str) -> Action:
        condition = Attr("free").gte(self.least) | ~Attr("free").exists() & Attr("sku").exists()
        return Check("stock", {"sku": self.sku}, condition, otherwise=OTHERWISE[self.otherwise])

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return None if row is not None and row.get("free", self.least) >= self.least else meaning(self.otherwise)


@dataclass(frozen=True)
class Customer(Act):
    number: int

    def place(self, event_id: str) -> Place:
        return "customers", (Decimal(self.number),)


@dataclass(frozen=True)
class Need(Customer):
    """Another event brings the row, sooner or later or never."""

    def action(self, event_id: str) -> Action:
        there = Attr("number").between(self.number, self.number)
        return Check("customers", {"number": self.number}, there, otherwise=Retry("not-yet"))

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return (RETRY, "not-yet") if row is None else None


@dataclass(frozen=True)
class Bring(Customer):
    otherwise: str | None

    def action(self, event_id: str) -> Action:
        return Put("customers", {"number": self.number}, key="number", otherwise=OTHERWISE[self.otherwise])

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        if row is None:
            return None
        return (SAME, "") if row.get("event_id") == event_id else meaning(self.otherwise, "row-exists")

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return {"number": Decimal(self.number), "event_id": event_id}


@dataclass(frozen=True)
class Replace(Customer):
    """Only where a row is stored."""

    otherwise: str | None

    def action(self, event_id: str) -> Action:
        row, stored = {"number": self.number}, Attr("number").exists()
        return Put(
            "customers", row, WriteMode.UPSERT, key="number", condition=stored, otherwise=OTHERWISE[self.otherwise]
        )

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        if row is None:
            return meaning(self.otherwise)
        return (SAME, "") if row.get("event_id") == event_id else None

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return {"number": Decimal(self.number), "event_id": event_id}


@dataclass(frozen=True)
class Price(Act):
    """Only a newer one is written: by a condition of its own, or by the mode `newer` beside another condition."""

    sku: str
    version: int
    mode: WriteMode
    if_closed: str

    def place(self, event_id: str) -> Place:
        return "prices", (self.sku,)

    def action(self, event_id: str) -> Action:
        row = {"sku": self.sku, "version": self.version}
        if self.mode is WriteMode.NEWER:
            is_open = Attr("closed").not_exists()
            return Put(
                "prices",
                row,
                self.mode,
                self.version,
                key="sku",
                condition=is_open,
                otherwise=OTHERWISE[self.if_closed],
            )
        is_older = Attr("version").not_exists() | Attr("version").lt(self.version)
        return Put("prices", row, self.mode, key="sku", condition=is_older, otherwise=Supersede("out-of-date"))

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        if row is None:
            return None
        if row.get("event_id") == event_id:
            return SAME, ""
        if self.mode is WriteMode.UPSERT:
            return (SUPERSEDE, "out-of-date") if row.get("version", 0) >= self.version else None
        if "event_version" not in row:
            return REJECT, "row-exists"
        if row["event_version"] >= self.version:
            return SUPERSEDE, ""
        return meaning(self.if_closed) if "closed" in row else None

    def result(self, row: Row | None, event_id: str) -> Row | None:
        row = {"sku": self.sku, "version": self.version, "event_id": event_id}
        return row | {"event_version": self.version} if self.mode is WriteMode.NEWER else row


@dataclass(frozen=True)
class Drop(Act):
    sku: str
    highest: int | None
    otherwise: str | None

    def place(self, event_id: str) -> Place:
        return "prices", (self.sku,)

    def action(self, event_id: str) -> Action:
        if self.highest is None:
            return Delete("prices", {"sku": self.sku})
        condition = Attr("version").is_in(list(range(self.highest + 1)))
        return Delete("prices", {"sku": self.sku}, condition=condition, otherwise=OTHERWISE[self.otherwise])

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        fits = self.highest is None or (row is not None and row["version"] <= self.highest)
        return None if fits else meaning(self.otherwise)

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return None


@dataclass(frozen=True)
class Forbidden(Act):
    """A row of a table that the consumer has no right for, until somebody grants it."""

    def place(self, event_id: str) -> Place:
        return "forbidden", (event_id,)

    def action(self, event_id: str) -> Action:
        return Put("forbidden", {"id": event_id}, key="id")

    def failure(self, row: Row | None, event_id: str) -> Failure | None:
        return None if row is None else (SAME, "")

    def result(self, row: Row | None, event_id: str) -> Row | None:
        return {"id": event_id, "event_id": event_id}


@dataclass(frozen=True)
class WrongKey(Act):
    """A key of another type than the table's: DynamoDB refuses the whole transaction, and does not say for whom."""

    def place(self, event_id: str) -> Place:
        return "customers", (event_id,)

    def action(self, event_id: str) -> Action:
        return Put("customers", {"number": event_id}, key="number")


# Events and messages


@dataclass(frozen=True)
class Content:
    """An event as its producer sent it. trouble: what its plan does instead; what is not a rejection can be mended."""

    id: str
    acts: tuple[Act, ...]
    notifications: int
    trouble: str | None

    def plan(self, number: int, is_mended: bool) -> Plan:
        if self.trouble == REJECT:
            raise Reject("unwanted")
        if self.trouble and not is_mended:
            return TROUBLES[self.trouble]()
        writes = [act.action(self.id) for act in self.acts]
        return Plan(writes, notifications=[Notification(text) for text in self.texts(number)])

    def texts(self, number: int) -> list[str]:
        return [f"{self.id} {number} {which}" for which in range(self.notifications)]

    @property
    def never(self) -> str | None:
        """Why it can never be committed, whatever the tables hold."""
        if self.trouble == REJECT:
            return "unwanted"
        if len(self.acts) > 99:
            return "too-many-writes"
        seen: dict[Place, Act] = {}
        for act in self.acts:
            other = seen.setdefault(act.place(self.id), act)
            if other is not act and not shares(other, act):
                return "row-written-twice"
        return "refused-by-dynamodb" if any(isinstance(act, WrongKey) for act in self.acts) else None

    @property
    def can_wait(self) -> bool:
        return any(isinstance(act, Need) or RETRY in vars(act).values() for act in self.acts)


def shares(one: Act, other: Act) -> bool:
    """Whether a plan may hold both of one row."""
    if isinstance(one, Add) and isinstance(other, Add):
        numbers: list[int | Decimal] = [*dict(one.sums).values(), *dict(other.sums).values()]
        are_plain = all(-(10**18) < number < 10**18 and number != TINY for number in numbers)
        return are_plain and [name for name, _ in one.sums] == [name for name, _ in other.sums]
    if isinstance(one, Look) and isinstance(other, Look):
        return one.least == other.least
    return isinstance(one, Need) and one == other


def _no_plan() -> Any:
    return None


def _fail() -> Plan:
    raise KeyError("of the user's own")


def _exit() -> Plan:
    raise SystemExit(1)


def _refuse_plan() -> Plan:
    return Plan([Update("stock", {"sku": "A"})])


def _write_ledger() -> Plan:
    return Plan([Put(LEDGER, {"event_id": "another"}, key="event_id")])


TROUBLES: dict[str, Callable[[], Plan]] = {
    "no plan": _no_plan,
    "fails": _fail,
    "exits": _exit,
    "is refused": _refuse_plan,
    "writes the ledger": _write_ledger,
}


@dataclass
class Message:
    """number: of its content."""

    id: str
    group: str | None
    number: int
    received: int = 0


@dataclass(frozen=True)
class Case:
    is_fifo: bool
    part: int
    contents: tuple[Content, ...]
    messages: tuple[tuple[str, int], ...]

    def make_messages(self) -> list[Message]:
        return [
            Message(f"m-{place}", group if self.is_fifo else None, number)
            for place, (group, number) in enumerate(self.messages)
        ]


TINY = Decimal("1E-19")
NUMBERS: Sequence[int | Decimal] = (1, 2, -3, 7, Decimal("0.1"), Decimal("-0.25"), Decimal("1E-18"), 10**17, 0)


def make_act(chance: Random) -> Act:
    kind = chance.choice(
        ["add"] * 6 + ["take"] * 3 + ["need", "bring", "replace", "look", "look", "note", "price", "price", "drop"]
    )
    otherwise = chance.choice([None, REJECT, RETRY, SUPERSEDE])
    if kind == "add":
        sums: list[tuple[str, int | Decimal]] = [("sum", chance.choice(NUMBERS)), ("orders", 1)]
        sums = sums[: chance.choice([1, 1, 2])]
        if chance.randint(1, 12) == 1:
            rare: list[tuple[str, int | Decimal]] = [("text", 1), ("sum", 10**18), ("sum", TINY)]
            sums = [chance.choice(rare)]
        return Add(chance.choice("AAB"), tuple(sums))
    if kind == "take":
        return Take(chance.choice("ACC"), chance.randint(1, 4))
    if kind == "need":
        return Need(chance.randint(1, 3))
    if kind == "bring":
        return Bring(chance.randint(1, 2), otherwise)
    if kind == "replace":
        return Replace(chance.randint(1, 3), otherwise)
    if kind == "look":
        return Look(chance.choice("ABCC"), chance.choice([0, 3, 3, 9]), otherwise)
    if kind == "note":
        return Note(chance.choice("ABC"), chance.random() < 0.5)
    if kind == "price":
        mode = chance.choice([WriteMode.UPSERT, WriteMode.NEWER])
        return Price("u" if mode is WriteMode.UPSERT else "n", chance.randint(1, 4), mode, otherwise or REJECT)
    return Drop(chance.choice("un"), chance.choice([None, 2, 3]), otherwise)


def make_content(chance: Random, event_id: str) -> Content:
    acts = [make_act(chance) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]
    if chance.random() < 0.9:  # else one of them may be written twice
        acts = list({act.place(event_id): act for act in acts}.values())
    if chance.random() < 0.6:
        acts.insert(chance.randint(0, len(acts)), Own())
    rare = chance.randint(1, 30)
    if rare == 1:
        acts.append(chance.choice([Forbidden(), Forbidden(), WrongKey()]))
    if rare == 2:
        acts += [Own(number) for number in range(chance.choice([99, 99, 100]) - len(acts))]
    trouble = chance.choice([REJECT, *TROUBLES]) if rare in (3, 4) else None
    return Content(event_id, tuple(acts), chance.choice([0, 1, 1, 2, 3]), trouble)


def make_case(chance: Random) -> Case:
    """Few events for many messages, since copies matter; few rows for many events, since sharing does."""
    ids = "abcdefghij"[: chance.randint(1, 10)]
    contents = [make_content(chance, event_id) for event_id in ids]
    if chance.randint(1, 5) == 1:
        contents.append(make_content(chance, chance.choice(ids)))  # its id is used again
    numbers = [*range(len(contents)), *chance.choices(range(len(contents)), k=chance.randint(0, 4))]
    chance.shuffle(numbers)
    return Case(
        is_fifo=chance.choice([False, False, True]),
        part=chance.choice([50, 50, 3]),
        contents=tuple(contents),
        messages=tuple((chance.choice("ggh"), number) for number in numbers),
    )


# What may happen


class Law:
    """Plays the plans by itself, step by step, and holds what happened against the invariants of the design.

    rows: what the tables should hold. ledger: the content of each event that is known there. settled: all that was
    ever committed or superseded; done: that of it which was announced and marked, or had nothing to announce.
    """

    def __init__(self, contents: Sequence[Content], messages: Sequence[Message]) -> None:
        self.rows: dict[Place, Row] = {}
        self.ledger: dict[str, int] = {}
        self.committed: list[int] = []
        self.settled: set[int] = set()
        self.done: set[int] = set()
        self.buried: set[str] = set()
        self._contents = contents
        self._messages = {message.id: message for message in messages}
        self._order = list(messages)
        self._published: dict[str, set[str]] = defaultdict(set)
        # What a process may have been told of a message's event, from a transaction that was refused.
        self._said: dict[tuple[int, str], set[Failure]] = defaultdict(set)

    def know(self, late: Message) -> None:
        self._messages[late.id] = late
        self._order.append(late)

    def read(self, steps: Sequence[Any]) -> None:
        for step in steps:
            if isinstance(step, Tried):
                self._try(step)
            elif isinstance(step, Superseded):
                self._supersede(step)
            elif isinstance(step, Published):
                expected = self._contents[self.ledger[step.event_id]].texts(self.ledger[step.event_id])
                assert step.text in expected, "I5: what was committed is published"
                self._published[step.event_id].add(step.text)
            elif isinstance(step, Marked):
                number = self.ledger[step.event_id]
                expected = self._contents[number].texts(number)
                assert self._published[step.event_id] == set(expected), "I2: all is published before it is marked"
                self.done.add(number)
            elif isinstance(step, Buried):
                self._bury(step)
            elif isinstance(step, Expired):
                assert self.ledger.pop(step.event_id) in self.done, "I4"
            elif isinstance(step, Changed):
                self.rows[step.place] = dict(step.row)
            else:
                self._check_answer(step)

    def failures(self, number: int) -> list[Failure]:
        """Why the event cannot be committed now, in the order of its plan."""
        content = self._contents[number]
        failures = [act.failure(self.rows.get(act.place(content.id)), content.id) for act in content.acts]
        return [failure for failure in failures if failure]

    def meaning(self, number: int) -> Failure | None:
        """What becomes of the event if it is tried now; None: it is committed."""
        failures = self.failures(number)
        for most_important in (INVALID, SAME):
            for failure in failures:
                if failure[0] == most_important:
                    return failure
        return failures[0] if failures else None

    def _try(self, step: Tried) -> None:
        messages = [self._messages[message_id] for message_id in step.message_ids]
        if not step.is_written:
            for message in messages:
                key = step.process, message.id
                if step.is_named:
                    self._said[key] |= {self.meaning(message.number)} - {None}  # type: ignore[arg-type]
                else:
                    self._said[key].update(self.failures(message.number))
            return
        for message in messages:
            event_id = self._contents[message.number].id
            assert event_id not in self.ledger, "I1: committed once"
            assert message.number not in self.settled, "I1: not even when its ledger row has expired"
            assert self._contents[message.number].never is None
            assert self.failures(message.number) == [], "the conditions hold at the moment of the commit"
            self.ledger[event_id] = message.number
        for message in messages:
            self._check_turn(message)
            self._settle(message.number)
            self.committed.append(message.number)
        for message in messages:
            content = self._contents[message.number]
            for act in content.acts:
                place = act.place(content.id)
                row = act.result(self.rows.get(place), content.id)
                self.rows = {**self.rows, place: row} if row is not None else _without(self.rows, place)

    def _supersede(self, step: Superseded) -> None:
        message = self._messages[step.message_id]
        content = self._contents[message.number]
        assert content.id not in self.ledger, "I1"
        said = {kind for kind, _ in self._said[step]}
        assert SUPERSEDE in said, "a condition says so"
        self._check_turn(message)
        self.ledger[content.id] = message.number
        self._settle(message.number)
        self.done.add(message.number)

    def _settle(self, number: int) -> None:
        self.settled.add(number)
        if not self._contents[number].notifications:
            self.done.add(number)

    def _bury(self, step: Buried) -> None:
        message = self._messages[json.loads(step.body)["message"]]
        content = self._contents[message.number]
        reasons = {reason for kind, reason in self._said[step.process, message.id] if kind in (REJECT, INVALID)}
        reasons |= {content.never} if content.never else set()
        reasons |= {"id-reused"} if self.ledger.get(content.id, message.number) != message.number else set()
        assert step.reason in reasons, "only what can never succeed, or what a condition rejects"
        self._check_turn(message)
        self.buried.add(message.id)

    def _check_answer(self, step: Answered) -> None:
        held: set[str | None] = set()
        for message in (self._messages[message_id] for message_id in step.message_ids):
            if message.id in step.returning:
                held.add(message.group)
                continue
            assert message.group is None or message.group not in held, "I6: reported with all that follow it"
            assert message.number in self.done or message.id in self.buried, "I3: deleted only if it is settled"

    def _check_turn(self, message: Message) -> None:
        if message.group is None:
            return
        for earlier in self._order[: self._order.index(message)]:
            if earlier.group == message.group and earlier.id not in self.buried:
                assert earlier.number in self.settled, "I6: in the order of the queue"


def _without(rows: dict[Place, Row], place: Place) -> dict[Place, Row]:
    return {other: row for other, row in rows.items() if other != place}


# What goes wrong


class Adversary(SpoilsCalls):
    """Lets a call pass or spoils it, as AWS, the network, another process or the end of this one might."""

    def __init__(self, world: PlanWorld, chance: Random, second_delivery: Callable[[], None]) -> None:
        self._world = world
        self._chance = chance
        self._second_delivery = second_delivery
        self.is_awake = True
        self._of_any_call = [
            self._refuse,
            self._lose_answer,
            self._die_before,
            self._die_after,
            self._deliver_twice,
            self._deliver_twice,
            self._change_a_row,
        ]
        self._of_the_call: dict[str, list[Mischief]] = {
            COMMIT: [self._name_some, self._name_some, self._contend],
            READ: [self._leave_unprocessed],
            PUBLISH: [self._publish_some, self._publish_some],
            MARK: [self._mark_some],
            PUT: [],
            BURY: [],
        }
        # What goes wrong often in one play hardly ever does in another: else rare meetings of two would not happen.
        known = [*self._of_any_call, *(mischief for of_one in self._of_the_call.values() for mischief in of_one)]
        self._favourites = chance.sample(known, 3)
        self._calm = chance.choice([8, 12, 30])

    def interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        if not self.is_awake:
            return effect()
        spoiling = [*self._of_any_call, *self._of_the_call[operation]]
        favoured = [mischief for mischief in spoiling if mischief in self._favourites]
        choices = [self._let_pass] * self._calm + spoiling + favoured * 5
        return self._chance.choice(choices)(request, effect)

    def _refuse(self, _request: Request, _effect: Effect) -> Any:
        codes = ["InternalServerError", "ThrottlingException", "TransactionConflictException", "AccessDeniedException"]
        raise self._chance.choice([client_error(code) for code in codes] + [TypeError("of our own")])

    def _deliver_twice(self, _request: Request, effect: Effect) -> Any:
        """Another process handles what a queue may hand to it, in the middle of this one."""
        self._second_delivery()
        return effect()

    def _change_a_row(self, _request: Request, effect: Effect) -> Any:
        """Another program writes; a row of `stock` keeps its counters."""
        sku = self._chance.choice("ABC")
        old = self._world.plain().get(("stock", (sku,)), {"sku": sku})
        new = {"free": Decimal(self._chance.randint(0, 9))} if self._chance.random() < 0.8 else {"old": "x"}
        self._world.change(("stock", (sku,)), old | new)
        if self._chance.random() < 0.3 and ("prices", ("n",)) not in self._world.places:
            more: Row = self._chance.choice([{}, {"closed": "x"}, {"event_version": Decimal(2)}])
            self._world.change(("prices", ("n",)), {"sku": "n", "version": Decimal(2)} | more)
        return effect()

    def _name_some(self, _request: Request, effect: Effect) -> Any:
        """Of the actions that failed a cancellation need not name all."""
        try:
            return effect()
        except ClientError as error:
            reasons = [self._blur(reason) for reason in reasons_in(error)]
            if not reasons:
                raise
            tried = self._world.steps[-1]
            assert isinstance(tried, Tried)
            tried.is_named = False
            raise cancelled(*self._chance.choice([reasons, reasons, reasons, reasons[1:], []])) from None

    def _contend(self, request: Request, _effect: Effect) -> Any:
        """Another transaction holds some of the items."""
        reasons = self._world.reasons_of(request["TransactItems"])
        for index in self._some(range(len(reasons))) or [0]:
            reasons[index] = {"Code": self._chance.choice(["TransactionConflict", "ThrottlingError", "SomethingNew"])}
        self._world.note(request, is_written=False, is_named=False)
        raise cancelled(*reasons)

    def _blur(self, reason: dict[str, Any]) -> dict[str, Any]:
        return dict(self._chance.choice([reason, {"Code": "None"}]))

    def _publish_some(self, request: Request, effect: Effect) -> Any:
        entries = request["PublishBatchRequestEntries"]
        failed = self._some(entries)
        others = [entry for entry in entries if entry not in failed]
        answer = effect(PublishBatchRequestEntries=others) if others else {"Successful": [], "Failed": []}
        code = self._chance.choice(["InternalError", "Throttled", None])  # None: not mentioned
        return {**answer, "Failed": [{"Id": entry["Id"], "Code": code} for entry in failed if code]}

    def _mark_some(self, request: Request, effect: Effect) -> Any:
        return {
            "Responses": [
                {"Error": {"Code": self._chance.choice(["InternalServerError", "TransactionConflict"])}}
                if self._chance.random() < 0.5
                else effect(Statements=[statement])["Responses"][0]
                for statement in request["Statements"]
            ]
        }


# The queue and its poller


class Play:
    """One case from the first delivery until nothing moves any more. left: the messages in the queue."""

    def __init__(self, case: Case, chance: Random) -> None:
        self.case = case
        self.messages = case.make_messages()
        self.left = list(self.messages)
        self.world = PlanWorld()
        self.world.denied = {"forbidden"}
        self.law = Law(case.contents, self.messages)
        self.adversary = Adversary(self.world, chance, self._deliver_beside)
        self.world.interfere = self.adversary.interfere
        self.is_mended = False
        self.handled = 0
        self.beside = 0
        self._chance = chance
        self._read = 0
        self._processes = 0
        self._busy: list[list[Message]] = []
        self.large = chance.choice([Decimal(0), Decimal(0), Decimal(10**25)])
        self.world.change(("stock", ("B",)), {"sku": "B", "sum": self.large})
        for sku in "AC":
            self.world.change(("stock", (sku,)), {"sku": sku, "free": Decimal(chance.randint(0, 9)), "text": "x"})

    def disturb(self) -> None:
        """A delivery among faults."""
        self._expire_one()
        batch = self._batch()
        if batch:
            self._deliver(batch, self._chance.choice([999, 999, 999, 3, 6]))
        self.check()

    def deliver_all(self) -> None:
        """A delivery without any; what it did not settle comes again as long as that helps."""
        self.adversary.is_awake = False
        is_first = True
        while self.left:
            before = list(self.left), len(self.law.committed)
            self._deliver(list(self.left), 999)
            self.check()
            if is_first and not any(self._content(message).can_wait for message in before[0]):
                break
            is_first = False
            if (self.left, len(self.law.committed)) == before:
                break
        self._check_left()

    def check(self) -> None:
        steps, self._read = self.world.steps[self._read :], len(self.world.steps)
        self.law.read(steps)
        assert self.world.complaints == []
        assert self.world.plain() == self.law.rows, "each event is in the tables once and whole, or not at all"
        known = {event_id: row["fingerprint"]["S"] for event_id, row in self.world.ledger_rows().items()}
        assert known.keys() == self.law.ledger.keys()
        for row in self.world.ledger_rows().values():
            is_pending = row["status"] == {"S": "pending"}
            assert ("notification" in row, "pending_shard" in row) == (is_pending, is_pending)
            assert ("ttl" in row) is not is_pending, "I4: only what is settled expires"

    def check_end(self) -> None:
        # While one process buries an event, another may commit it, and its message is gone. On FIFO one may stand
        # behind a message that was in the dead-letter queue, and has come back to wait for a row.
        left = {message.number for message in self.messages if message.id in self.law.buried or message in self.left}
        assert self.law.settled - self.law.done <= left, "what was committed is announced and marked"
        pending = {event_id for event_id, row in self.world.ledger_rows().items() if row["status"] == {"S": "pending"}}
        assert pending == {self.case.contents[number].id for number in self.law.settled - self.law.done}
        # An event leaves the transactions decided, after five tries of its own, or after three in smaller groups.
        assert self.world.count(COMMIT) <= 10 * self.handled
        for sku in "AB":
            row = self.law.rows.get(("stock", (sku,)), {})
            acts = [act for number in self.law.committed for act in self.case.contents[number].acts]
            for name, start in (("sum", self.large if sku == "B" else 0), ("orders", 0)):
                sums = [dict(act.sums).get(name, 0) for act in acts if isinstance(act, Add) and act.sku == sku]
                total = reduce(EXACT.add, map(Decimal, sums), Decimal(start))
                assert row.get(name, 0) == total, "a counter is the sum over the committed events"

    def _check_left(self) -> None:
        """I7: nothing is left but what is in trouble itself, waits for a row, or stands behind such a one."""
        held: set[str | None] = set()
        for message in self.left:
            content = self._content(message)
            has_trouble = not self.is_mended and (
                content.trouble in TROUBLES or any(isinstance(act, Forbidden) for act in content.acts)
            )
            is_waiting = (self.law.meaning(message.number) or ("", ""))[0] == RETRY
            is_held = message.group is not None and message.group in held
            assert has_trouble or is_waiting or is_held, f"I7: {message.id} could be settled and is not"
            held.add(message.group)

    def _content(self, message: Message) -> Content:
        return self.case.contents[message.number]

    def _batch(self) -> list[Message]:
        """What a process may get now; of a FIFO group only what no other process has, and only from its start."""
        free = self.left
        if self.case.is_fifo:
            groups = {message.group for batch in self._busy for message in batch}
            free = [message for message in free if message.group not in groups]
            some = self._chance.choice([["g"], ["h"], ["g", "h"], ["g", "h"]])
            return [message for message in free if message.group in some][: self._chance.choice([99, 99, 2])]
        free = [message for message in free if self._chance.random() < 0.8]
        start = self._chance.randrange(len(free)) if free else 0
        return free[start:] + free[:start]

    def _deliver_beside(self) -> None:
        batch = self._batch()
        if batch and len(self._busy) < 2:
            self.beside += 1
            process = self.world.process
            self._deliver(batch, 999)
            self.world.process = process

    def _deliver(self, batch: list[Message], calls_left: int) -> None:
        self._processes += 1
        self.world.process = self._processes
        self.handled += len(batch)
        records = []
        for message in batch:
            message.received += 1
            body = {"id": self._content(message).id, "content": message.number, "message": message.id}
            records.append(record(message.id, body, group=message.group, receive_count=message.received))
        self._busy.append(batch)
        try:
            consumer = self.world.consumer(lambda _planner, event: self._plan(event), **SETTINGS)
            answer = consumer.handle({"Records": records}, Time(self.world, calls_left))
        except (Killed, Misconfigured):
            return
        finally:
            self._busy.pop()
        returning = tuple(failure["itemIdentifier"] for failure in answer["batchItemFailures"])
        self.world.steps.append(Answered(tuple(message.id for message in batch), returning))
        gone = {message.id for message in batch} - set(returning)
        self.left = [message for message in self.left if message.id not in gone]

    def _plan(self, event: Event) -> Plan:
        number = event.data["content"]
        return self.case.contents[number].plan(number, self.is_mended)

    def _expire_one(self) -> None:
        """Of an event whose own row tells it for ever, and whose id is nobody else's. It is sent once more."""
        ids = Counter(content.id for content in self.case.contents)
        forgotten = [
            content.id
            for number, content in enumerate(self.case.contents)
            if Own() in content.acts and ids[content.id] == 1 and self.law.ledger.get(content.id) == number
            if self.world.ledger_rows()[content.id]["status"] == {"S": "sent"} and number in self.law.committed
        ]
        if forgotten and self._chance.random() < 0.7:
            event_id = self._chance.choice(forgotten)
            self.world.expire(event_id)
            (number,) = (number for number, content in enumerate(self.case.contents) if content.id == event_id)
            late = Message(f"m-{len(self.messages)}", "g" if self.case.is_fifo else None, number)
            for queue in (self.messages, self.left):
                queue.append(late)
            self.law.know(late)


def play(chance: Random) -> Play:
    with pytest.MonkeyPatch.context() as monkeypatch:
        case = make_case(chance)
        monkeypatch.setattr(consumer_module, "PART", case.part)
        play = Play(case, chance)
        for _ in range(chance.randint(1, 4)):
            play.disturb()
        play.deliver_all()
        play.is_mended = True
        play.world.denied.clear()
        play.deliver_all()
        play.check_end()
    return play


def play_seed(seed: int) -> Play:
    """Call it with the seed that a failure names, to see it alone."""
    try:
        return play(Random(seed))
    except BaseException as error:
        error.add_note(f"play_seed({seed})")
        raise


def test_plays_hold_what_they_are_meant_to_hold() -> None:
    happened: Counter[str] = Counter()
    for seed in range(300):
        happened.update(what_happened(play_seed(seed)))
    assert happened["Committed"] > 800
    assert happened["Shared"] > 100
    assert happened["Refused"] > 500
    assert happened["Published"] > happened["Marked"] > 500
    assert happened["Superseded"] > 50
    assert happened["Expired"] > 30
    assert happened["Beside"] > 100
    assert happened["Waiting"] > 30
    for reason in ("out-of-stock", "condition-failed", "rejected-by-plan", "row-exists", "id-reused", "unwanted"):
        assert happened[reason] > 10
    for reason in ("refused-by-dynamodb", "row-written-twice", "too-many-writes"):
        assert happened[reason] > 3
    assert happened["99 writes"] > 3


def what_happened(played: Play) -> Iterator[str]:
    contents = {content.id: content for content in played.case.contents}
    for step in played.world.steps:
        yield type(step).__name__
        if isinstance(step, Tried) and not step.is_written:
            yield "Refused"
        if isinstance(step, Buried):
            yield step.reason
    for call in played.world.calls:
        if call.operation == COMMIT:
            events = events_of(call.request)
            if len(call.request["TransactItems"]) < sum(1 + len(contents[each].acts) for each in events):
                yield "Shared"
    for number in played.law.committed:
        yield "Committed"
        if len(played.case.contents[number].acts) == 99:
            yield "99 writes"
    yield from ["Beside"] * played.beside
    yield from ["Waiting"] * len(played.left)


def test_seed_names_a_play() -> None:
    first, second = play_seed(7), play_seed(7)
    assert first.world.steps == second.world.steps
    assert first.world.calls == second.world.calls


@pytest.mark.case("C28", "C30")
@pytest.mark.parametrize("thousand", range(7))
def test_an_event_of_any_plan_is_in_the_tables_once_and_whole_or_not_at_all(thousand: int) -> None:
    for number in range(200):
        play_seed(1_000 * thousand + number)
