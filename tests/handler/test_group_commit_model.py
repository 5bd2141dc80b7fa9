"""Random batches among random faults: whatever goes wrong, and in whatever order, the invariants of the design hold.

A batch is delivered while an adversary spoils calls, and what is not deleted is delivered again, as the queue would.
Then the adversary sleeps, and all must get settled. What happened is compared with `Law`, which says in a few lines
what may happen and knows nothing of how the consumer works.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idempotent_consumer import consumer as consumer_module
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.settlement import Misconfigured
from tests.handler.adversary import Mischief, SpoilsCalls, Time
from tests.handler.support import (
    BURY,
    COMMIT,
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
from tests.handler.table_model import Effect, Happened, Request, World, reasons_in

# A business row that another program wrote: it must not be overwritten, but by an upsert.
FOREIGN_KEY = "foreign"
# Keys that the table refuses from the start; others may join them.
INVALID_KEY, FULL_KEY = "invalid", "full"
SETTINGS = {
    "EVENT_ENVELOPE": "s3",
    "EVENT_ID": "id",
    "EVENT_ITEM": "{id: row, value: value}",
    "EVENT_VERSION": "version",
}


# What is in the queue


@dataclass(frozen=True)
class Content:
    """An event as its producer sent it; two with one id and other contents are a conflict.

    id: None: it can never be processed. row: the key of its business row; None: the same, once its plan is made.
    """

    id: str | None
    row: str | None
    version: int
    value: int

    @property
    def record(self) -> dict[str, Any]:
        own = {"id": self.id, "row": self.row, "version": self.version, "value": self.value}
        return {"s3": {"object": {"key": "any"}}, **own}


@cache
def fingerprint(content: Content) -> str:
    return hashlib.sha256(json.dumps(content.record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass
class Message:
    """contents: none of them in S3's test event."""

    id: str
    group: str | None
    contents: tuple[Content, ...]
    received: int = 0

    @property
    def body(self) -> str:
        what: dict[str, Any] = {"Records": [content.record for content in self.contents]}
        return json.dumps({"number": self.id, **(what if self.contents else {"Event": "s3:TestEvent"})})


@dataclass(frozen=True)
class Case:
    """part: how many events the consumer takes for one part of a batch. faulty_id: the planner stumbles over it."""

    is_fifo: bool
    write_mode: str
    part: int
    faulty_id: str | None
    messages: tuple[tuple[str, tuple[Content, ...]], ...]

    def make_messages(self) -> list[Message]:
        return [
            Message(f"m-{number}", group if self.is_fifo else None, contents)
            for number, (group, contents) in enumerate(self.messages)
        ]


def make_content(chance: Random, write_mode: str, ids: Sequence[str]) -> Content:
    """Mostly events that can be committed, each with a row of its own; else a batch is over at once."""
    event_id = chance.choice(ids)
    # Another event's row is what `newer` and `upsert` are about; `insert` refuses it.
    takes_other_row = chance.randint(1, 8 if write_mode == "insert" else 2) == 1
    row = chance.choice(ids[:3]) if takes_other_row else event_id
    return Content(
        id=None if chance.randint(1, 20) == 1 else event_id,
        row=chance.choice([None, FOREIGN_KEY, INVALID_KEY, FULL_KEY]) if chance.randint(1, 12) == 1 else row,
        version=chance.randint(1, 3),
        value=1 if chance.randint(1, 8) == 1 else 0,
    )


def make_case(chance: Random, scale: int = 1) -> Case:
    """scale: how many times as large a batch as the smallest that can go wrong."""
    ids = [f"{letter}{number}" for number in range(scale) for letter in "abcdefgh"]
    write_mode = chance.choice(["insert", "upsert", "newer"])
    # Few contents for many messages, since copies matter.
    contents = [make_content(chance, write_mode, ids) for _ in range(scale * chance.randint(3, 8))]
    sizes = chance.choice([[1], [1], [0, 1, 2, 3]])
    return Case(
        is_fifo=chance.choice([False, True]),
        write_mode=write_mode,
        part=chance.choice([50, 50, 3]),
        faulty_id=chance.choice([None, None, None, *ids[:2]]),
        messages=tuple(
            (chance.choice("ggh"), tuple(chance.choice(contents) for _ in range(chance.choice(sizes))))
            for _ in range(scale * chance.randint(3, 9))
        ),
    )


# What may happen


class Law:
    """Reads what happened, in order, and holds each step against the invariants of the design.

    ledger, rows: what the tables hold; None: a row of another program. settled: all that was ever committed or
    superseded; done: that of it which was published and marked, or superseded. buried: messages in the dead-letter
    queue.
    """

    def __init__(self, messages: Sequence[Message], write_mode: str) -> None:
        self.ledger: dict[str, Content] = {}
        self.rows: dict[str | None, Content | None] = {FOREIGN_KEY: None}
        self.refused: set[str | None] = {None, INVALID_KEY, FULL_KEY}
        self.settled: set[Content] = set()
        self.done: set[Content] = set()
        self.buried: set[str] = set()
        self._published: set[Content] = set()
        self._messages = messages
        self._write_mode = write_mode

    def read(self, history: Iterable[Happened]) -> None:
        for happened in history:
            if happened.what in ("committed", "superseded"):
                self._settle(happened)
            elif happened.what == "published":
                content = self.ledger[happened.event_id]
                assert json.loads(happened.text) == content.record, "I5: what was committed is published"
                self._published.add(content)
            elif happened.what == "marked":
                assert self.ledger[happened.event_id] in self._published, "I2: published before it is marked"
                self.done.add(self.ledger[happened.event_id])
            elif happened.what == "expired":
                assert self.ledger.pop(happened.event_id) in self.done
            elif happened.what == "refused":
                self.refused.add(happened.text)
            else:
                (message,) = [message for message in self._messages if message.body == happened.text]
                self._bury(message)

    def check_answer(self, batch: Sequence[Message], returning: Sequence[Message]) -> None:
        held: set[str | None] = set()
        for message in batch:
            if message in returning:
                held.add(message.group)
                continue
            assert message.group is None or message.group not in held, "I6: reported with all that follow it"
            is_done = self.done.issuperset(message.contents)
            assert is_done or message.id in self.buried, "I3: deleted only if it is settled"

    def is_dead(self, content: Content) -> bool:
        """Whether it can never be committed, as things are."""
        if content.id is None:
            return True
        if content.id in self.ledger:
            return self.ledger[content.id] != content
        if content.row in self.refused:
            return True
        if content.row not in self.rows or self._write_mode == "upsert":
            return False
        stored = self.rows[content.row]
        if stored is not None and self._write_mode == "newer":
            return stored.id == content.id and stored != content and stored.version >= content.version
        return stored != content

    def is_superseded(self, content: Content) -> bool:
        stored = self.rows.get(content.row)
        is_newer = stored is not None and stored.id != content.id and stored.version >= content.version
        return self._write_mode == "newer" and is_newer

    def _settle(self, happened: Happened) -> None:
        message = next(message for message in self._messages if message.id == happened.message_id)
        content = next(
            content
            for content in message.contents
            if content.id == happened.event_id and fingerprint(content) == happened.text
        )
        assert happened.event_id not in self.ledger, "I1: committed once"
        assert self.is_superseded(content) is (happened.what == "superseded")
        self._check_turn(message)
        for earlier in message.contents[: message.contents.index(content)]:
            assert message.group is None or earlier in self.settled, "I6: behind the earlier ones of its message"
        if happened.what == "committed":
            assert not self.is_dead(content), "I5: no conflict is committed"
            assert content not in self.settled, "I1: not even when its ledger row has expired"
            self.rows[content.row] = content
        else:
            self.done.add(content)
        self.ledger[happened.event_id] = content
        self.settled.add(content)

    def _bury(self, message: Message) -> None:
        assert any(map(self.is_dead, message.contents)), "only what can never succeed"
        for content in message.contents:
            assert self.is_dead(content) or content in self.done, "not while one of its events has to come back"
        self._check_turn(message)
        self.buried.add(message.id)

    def _check_turn(self, message: Message) -> None:
        """I6: all earlier messages of its group are committed or in the dead-letter queue."""
        if message.group is None:
            return
        for earlier in self._messages[: self._messages.index(message)]:
            if earlier.group == message.group and earlier.id not in self.buried:
                assert self.settled.issuperset(earlier.contents), "I6: in the order of the queue"


# What goes wrong


class Adversary(SpoilsCalls):
    """Lets a call pass or spoils it, as AWS, the network or the end of the process might."""

    def __init__(self, world: World, chance: Random, second_delivery: Callable[[], None] | None) -> None:
        self._world = world
        self._chance = chance
        self._second_delivery = second_delivery
        self.is_awake = True
        self._of_any_call = [self._refuse, self._lose_answer, self._die_before, self._die_after]
        if second_delivery:
            self._of_any_call.append(self._deliver_twice)
        self._of_the_call: dict[str, list[Mischief]] = {
            COMMIT: [self._name_some, self._name_some, self._contend, self._spoil_a_key],
            READ: [self._leave_unprocessed, self._leave_unprocessed],
            PUBLISH: [self._publish_some, self._publish_some],
            MARK: [self._mark_some, self._mark_some],
            PUT: [],
            BURY: [],
        }
        # What goes wrong often in one play hardly ever does in another: else rare meetings of two would not happen.
        known = [*self._of_any_call, *(mischief for of_one in self._of_the_call.values() for mischief in of_one)]
        self._favourites = chance.sample(known, 3)

    def interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        if not self.is_awake:
            return effect()
        spoiling = [*self._of_any_call, *self._of_the_call[operation]]
        favoured = [mischief for mischief in spoiling if mischief in self._favourites]
        choices = [self._let_pass] * 10 + spoiling + favoured * 6
        return self._chance.choice(choices)(request, effect)

    def _refuse(self, _request: Request, _effect: Effect) -> Any:
        codes = ["InternalServerError", "ThrottlingException", "TransactionConflictException", "AccessDeniedException"]
        raise self._chance.choice([client_error(code) for code in codes] + [TypeError("of our own")])

    def _deliver_twice(self, _request: Request, effect: Effect) -> Any:
        """A standard queue hands the same messages to another process in the middle of this one."""
        assert self._second_delivery is not None
        self.is_awake = False
        self._second_delivery()
        self.is_awake = True
        return effect()

    def _name_some(self, _request: Request, effect: Effect) -> Any:
        """Of the actions that failed a cancellation need not name all, nor bring the rows that were in the way."""
        try:
            return effect()
        except ClientError as error:
            reasons = [self._blur(reason) for reason in reasons_in(error)]
            if not reasons:
                raise
            raise cancelled(*self._chance.choice([reasons, reasons, reasons, reasons[1:], []])) from None

    def _contend(self, request: Request, _effect: Effect) -> Any:
        """Another transaction holds some of the items."""
        reasons = self._world.reasons_of(request["TransactItems"])
        for index in self._some(range(len(reasons))) or [0]:
            reasons[index] = {"Code": self._chance.choice(["TransactionConflict", "ThrottlingError", "SomethingNew"])}
        raise cancelled(*reasons)

    def _spoil_a_key(self, request: Request, effect: Effect) -> Any:
        """From now on no transaction takes one of its rows. What is committed stays so."""
        keys = [action["Put"]["Item"]["id"]["S"] for action in request["TransactItems"][1::2]]
        key = self._chance.choice(keys)
        self._chance.choice([self._world.invalid_keys, self._world.full_keys]).add(key)
        self._world.history.append(Happened("refused", "", "", key))
        return self._name_some(request, effect)

    def _blur(self, reason: dict[str, Any]) -> dict[str, Any]:
        if reason["Code"] == "None":
            return reason
        without_item = {"Code": reason["Code"]}
        return dict(self._chance.choice([reason, {"Code": "None"}, without_item]))

    def _publish_some(self, request: Request, effect: Effect) -> Any:
        entries = request["PublishBatchRequestEntries"]
        failed = self._some(entries)
        others = [entry for entry in entries if entry not in failed]
        answer = effect(PublishBatchRequestEntries=others) if others else {"Successful": [], "Failed": []}
        code = self._chance.choice(["InternalError", "Throttled", None])  # None: not mentioned
        return {**answer, "Failed": [{"Id": entry["Id"], "Code": code} for entry in failed if code]}

    def _mark_some(self, request: Request, effect: Effect) -> Any:
        statements = request["Statements"]
        failed = self._some(statements)
        code = self._chance.choice(["InternalServerError", "ThrottlingError", "TransactionConflict"])
        responses = [
            {"Error": {"Code": code}} if statement in failed else effect(Statements=[statement])["Responses"][0]
            for statement in statements
        ]
        return {"Responses": responses}


# The queue and its poller


class Play:
    """One case from the first delivery to the empty queue."""

    def __init__(self, case: Case, chance: Random) -> None:
        self.messages = case.make_messages()
        self.left = list(self.messages)
        self.redriven: list[Message] = []
        self.law = Law(self.messages, case.write_mode)
        self.world = World()
        self.world.invalid_keys.add(INVALID_KEY)
        self.world.full_keys.add(FULL_KEY)
        self.world.rows[FOREIGN_KEY] = {"id": {"S": FOREIGN_KEY}, "owner": {"S": "somebody else"}}
        self.adversary = Adversary(self.world, chance, None if case.is_fifo else self._handle_again)
        self.world.interfere = self.adversary.interfere
        self._settings = {**SETTINGS, "EVENT_WRITE_MODE": case.write_mode}
        self._write_mode = case.write_mode
        self._is_fifo = case.is_fifo
        self._faulty_id = case.faulty_id
        self._chance = chance
        self._read = 0
        self._handled_events = 0

    def deliver(self) -> None:
        if self.adversary.is_awake and self._write_mode != "upsert":
            self._expire_one()
        if self.adversary.is_awake and not self._is_fifo:
            start = self._chance.randrange(len(self.left))
            self.left = self.left[start:] + self.left[:start]
        for message in self.left:
            message.received += 1
        try:
            calls_left = self._chance.choice([999, 999, 2, 4]) if self.adversary.is_awake else 999
            answer = self._handle(calls_left)
        except (Killed, Misconfigured):
            self._check()
            return
        self._check()
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        returning = [message for message in self.left if message.id in failed]
        assert failed == [message.id for message in returning]
        self.law.check_answer(self.left, returning)
        self.left = returning

    def check_end(self) -> None:
        # An event leaves the transactions decided, after five tries of its own, or after three in smaller groups.
        assert self.world.count(COMMIT) <= 10 * self._handled_events
        # What was committed is done; but of a message that the queue took away it may stay pending, which can be seen.
        left = {content for message in self.redriven for content in message.contents}
        assert self.law.settled - self.law.done <= left
        pending = {key for key, row in self.world.ledger.items() if row["status"] == {"S": "pending"}}
        assert pending == {content.id for content in self.law.settled - self.law.done}

    def redrive(self) -> None:
        """What the queue does with a message that was received too often.

        On FIFO that is the end of a message with a dead event before others: it cannot go alone, and they may not
        overtake it.
        """
        for message in self.left:
            if any(map(self.law.is_dead, message.contents[:-1])):
                assert message.group is not None
                self.law.buried.add(message.id)
                self.left.remove(message)
                self.redriven.append(message)
                return
        pytest.fail("a message that could be settled is not")

    def _expire_one(self) -> None:
        """Its business row still tells that it was committed; an upsert's may be overwritten."""
        sent = [event_id for event_id, row in self.world.ledger.items() if row["status"] == {"S": "sent"}]
        if sent and self._chance.random() < 0.3:
            event_id = self._chance.choice(sent)
            del self.world.ledger[event_id]
            self.world.history.append(Happened("expired", event_id, "", ""))

    def _handle(self, calls_left: int) -> dict[str, Any]:
        records = [
            record(message.id, message.body, group=message.group, receive_count=message.received)
            for message in self.left
        ]
        self._handled_events += sum(len(message.contents) for message in self.left)
        consumer = self.world.consumer(self._plan, **self._settings)
        return consumer.handle({"Records": records}, Time(self.world, calls_left))

    def _plan(self, plan: Planner, event: Event) -> Plan:
        if self.adversary.is_awake and event.id == self._faulty_id:
            raise TypeError("of our own")
        return plan(event)

    def _handle_again(self) -> None:
        self._handle(999)

    def _check(self) -> None:
        self.law.read(self.world.history[self._read :])
        self._read = len(self.world.history)
        for row in self.world.ledger.values():
            is_pending = row["status"] == {"S": "pending"}
            assert ("notification" in row, "pending_shard" in row) == (is_pending, is_pending)
            assert ("ttl" in row) is not is_pending, "I4: only what is settled expires"
        # Each row of the business table was written with its ledger row.
        written = {key: content and content.id for key, content in self.law.rows.items()}
        assert written == {key: row.get("event_id", {}).get("S") for key, row in self.world.rows.items()}


def play(chance: Random, scale: int = 1) -> Play:
    case = make_case(chance, scale)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(consumer_module, "PART", case.part)
        play = Play(case, chance)
        for _ in range(chance.randint(1, 5)):
            if play.left:
                play.deliver()
        play.adversary.is_awake = False
        while play.left:
            before = list(play.left)
            play.deliver()
            if play.left == before:
                play.redrive()
        play.check_end()
    return play


def play_seed(seed: int, scale: int = 1) -> None:
    """Call it with the seed that a failure names, to see it alone."""
    try:
        play(Random(seed), scale)
    except BaseException as error:
        error.add_note(f"play_seed({seed}, {scale})")
        raise


def test_plays_hold_what_they_are_meant_to_hold() -> None:
    happened: Counter[str] = Counter()
    for seed in range(100):
        played = play(Random(seed))
        happened.update(entry.what for entry in played.world.history)
        happened["rounds"] += max(message.received for message in played.messages)
    assert happened["committed"] > 200
    assert happened["published"] > happened["marked"] > 200
    assert happened["dead-lettered"] > 100
    assert happened["superseded"] > 5
    assert happened["rounds"] > 300


@pytest.mark.parametrize("thousand", range(12))
def test_invariants_hold_whatever_goes_wrong(thousand: int) -> None:
    for number in range(250):
        play_seed(1_000 * thousand + number)


@pytest.mark.parametrize("seed", range(15))
def test_invariants_hold_in_batches_of_several_parts(seed: int) -> None:
    play_seed(seed, scale=15)


# One event that spoils each transaction that it is in


Spoil = Callable[[str, list[str]], Exception]


def name_it(code: str) -> Spoil:
    def spoil(culprit: str, events: list[str]) -> Exception:
        reasons = [reason for event in events for reason in (code if event == culprit else "None", "None")]
        error: Exception = cancelled(*reasons)
        return error

    return spoil


SPOILS: dict[str, Spoil] = {
    "5xx": lambda _culprit, _events: client_error("InternalServerError"),
    "fault of our own": lambda _culprit, _events: TypeError("of our own"),
    "conflict": name_it("TransactionConflict"),
    "unknown reason": name_it("SomethingNew"),
    "conflict that is not named": lambda _culprit, _events: client_error("TransactionConflictException"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_no_other_event_and_no_other_group_suffers(spoil: str) -> None:
    """I7, and I6 for what follows in its group: all others are settled in the same invocation."""
    for seed in range(40):
        spoil_one(Random(seed), SPOILS[spoil])


def spoil_one(chance: Random, spoil: Spoil) -> None:
    case = make_case(chance, scale=5)
    single = tuple((group, contents) for group, contents in case.messages if len(contents) == 1)
    play = Play(replace(case, faulty_id=None, messages=single), chance)
    culprit = play.messages[0].contents[0].id or "a0"

    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        if operation == COMMIT and culprit in events_of(request):
            raise spoil(culprit, events_of(request))
        return effect()

    play.adversary.is_awake = False
    play.world.interfere = interfere
    play.deliver()
    returning: list[Message] = []
    held: set[str] = set()
    for message in play.messages:
        (content,) = message.contents
        if message.group in held or (content.id == culprit and content.row is not None):
            returning.append(message)
            held |= {message.group} if message.group else set()
    assert [message.id for message in play.left] == [message.id for message in returning]


@given(st.randoms(use_true_random=False))
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_smallest_batch_that_breaks_an_invariant_is_found(chance: Random) -> None:
    """Fewer and smaller ones than above; of one that fails, Hypothesis shows the smallest."""
    play(chance)
