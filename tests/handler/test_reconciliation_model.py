"""Consumers and reconcilers that take turns at any call, among random faults and deaths: nothing is lost or done twice.

Each process stops before each of its calls until it is let go on, and chance decides which one that is. The index lags,
time passes, messages vanish. Then all goes well for a while, and all must get settled. What happened is compared with
`Law`, which knows nothing of how the processes work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from idempotent_consumer import backoff, consumer, reconciliation, side_by_side, telemetry
from idempotent_consumer.commit import is_pending, stored_notification
from idempotent_consumer.reconciler import PendingUnreadable
from idempotent_consumer.settlement import Misconfigured
from tests.handler.adversary import Mischief, SpoilsCalls
from tests.handler.pending_model import IndexedWorld, pending_row
from tests.handler.support import (
    COMMIT,
    HIDE,
    LEDGER,
    MARK,
    NOW_MS,
    PUBLISH,
    QUERY,
    READ,
    Item,
    Killed,
    cancelled,
    client_error,
    record,
)
from tests.handler.table_model import Effect, Happened, Request

# Of a process that does not come to its next call, or to its end.
PATIENCE_SECONDS = 60
THRESHOLD_MS = 900_000
SETTINGS = {
    "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
    "VISIBILITY_TIMEOUT_SECONDS": "30",
    "BACKOFF_MAX_SECONDS": "900",
}


# Who takes turns


class FaultOfOurOwn(Exception):
    """As a fault of the library would be."""


class Process:
    """A run of the worker or of the reconciler. until_ms: a reconciler may touch what was written until then.

    answer: None where it died or failed as a whole. may_fail: a fault of our own has met it where the rows are looked
    for, which ends a run.
    """

    def __init__(self, work: Callable[[Process], Any], calls_left: int) -> None:
        self.answer: Any = None
        self.fault: BaseException | None = None
        self.is_over = False
        self.may_fail = False
        self.until_ms: int | None = None
        self._work = work
        self._calls_left = calls_left
        self._is_to_die = False
        self._turn = threading.Semaphore(0)
        self._pause = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.process = self  # type: ignore[attr-defined]
        self._thread.start()

    def get_remaining_time_in_millis(self) -> int:
        """The runtime's context: time is up after a number of calls."""
        return 30_000 if self._calls_left > 0 else 1_000

    def go_on(self) -> None:
        """Its next call takes effect, and it comes to the one after that or to its end."""
        self._turn.release()
        assert self._pause.acquire(timeout=PATIENCE_SECONDS)

    def await_turn(self) -> None:
        self._calls_left -= 1
        self._pause.release()
        self._turn.acquire()
        if self._is_to_die:
            raise Killed

    def end(self) -> None:
        """At its next call."""
        self._is_to_die = True
        self._turn.release()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._is_to_die:
                self.answer = self._work(self)
        except (Killed, Misconfigured, PendingUnreadable):
            pass
        except FaultOfOurOwn as error:
            if not self.may_fail:
                self.fault = error
        except BaseException as error:
            self.fault = error
        self.is_over = True
        self._pause.release()


def this_process() -> Process:
    return threading.current_thread().process  # type: ignore[attr-defined, no-any-return]


# What may happen


class Law:
    """Holds each step against the invariants of the design.

    committed: the message of each event that was ever committed. unpublishable: rows that nobody can read.
    """

    def __init__(self, world: IndexedWorld) -> None:
        self.committed: dict[str, str] = {}
        self.unpublishable: set[str] = set()
        self.sent: set[str] = set()
        self.published: Counter[str] = Counter()
        self._rows: dict[str, Item] = {}
        self._world = world
        self._read = 0

    def know(self, event_id: str) -> None:
        """A row that is there before."""
        try:
            self.committed[event_id] = stored_notification(self._world.ledger[event_id]).message
        except ValueError:
            self.unpublishable.add(event_id)

    def check(self) -> None:
        for happened in self._world.history[self._read :]:
            self._check_step(happened)
        self._read = len(self._world.history)
        for event_id, row in self._world.ledger.items():
            names = ("notification" in row or event_id in self.unpublishable, "pending_shard" in row, "ttl" in row)
            if is_pending(row):
                assert names == (True, True, False), "I4: only what is settled expires"
                assert event_id not in self.sent, "what is sent stays sent"
            else:
                assert names == (False, False, True), "I4"
                assert self.published[event_id], "I2: published before it is marked"
                self.sent.add(event_id)
        assert self._world.rows == self._rows, "I1: business rows are written once, and by a commit"

    def _check_step(self, happened: Happened) -> None:
        event_id = happened.event_id
        if happened.what == "committed":
            assert event_id not in self.committed, "I1: committed once"
            self.know(event_id)
            self._rows[event_id] = self._world.rows[event_id]
        elif happened.what == "published":
            assert happened.text == self.committed[event_id], "what was committed is published"
            self.published[event_id] += 1
        elif happened.what == "marked":
            assert self.published[event_id], "I2: published before it is marked"
        else:
            pytest.fail(f"{happened.what} {event_id}")

    def check_request(self, operation: str, request: Request) -> None:
        """A reconciler leaves alone what is younger than its threshold, and looks at nothing but the ledger."""
        until_ms = this_process().until_ms
        if until_ms is None:
            return
        assert operation in (QUERY, READ, PUBLISH, MARK)
        if operation == PUBLISH:
            for entry in request["PublishBatchRequestEntries"]:
                row = self._world.ledger.get(entry["MessageAttributes"]["event_id"]["StringValue"])
                assert row is None or int(row["created_at"]["N"]) <= until_ms, "too young"


# What goes wrong


class Adversary(SpoilsCalls):
    """Lets a call pass or spoils it, as AWS, the network or the end of the process might."""

    def __init__(self, chance: Random) -> None:
        self.is_awake = True
        self._chance = chance
        self._of_any_call: list[Mischief] = [self._refuse, self._lose_answer, self._die_before, self._die_after]
        self._of_the_call: dict[str, list[Mischief]] = {
            COMMIT: [self._contend],
            READ: [self._leave_unprocessed, self._turn_over],
            PUBLISH: [self._publish_some],
            MARK: [self._mark_some],
            QUERY: [self._answer_nothing],
            HIDE: [self._answer_nothing],
        }
        known = [*self._of_any_call, *(mischief for of_one in self._of_the_call.values() for mischief in of_one)]
        # What goes wrong often in one play hardly ever does in another: else rare meetings of two would not happen.
        self._favourites = chance.sample(known, 3)
        self._calm = chance.choice([5, 10, 30])

    def interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        if not self.is_awake:
            return effect()
        spoiling = [*self._of_any_call, *self._of_the_call[operation]]
        favoured = [mischief for mischief in spoiling if mischief in self._favourites]
        return self._chance.choice([self._let_pass] * self._calm + spoiling + favoured * 4)(request, effect)

    def _refuse(self, _request: Request, _effect: Effect) -> Any:
        codes = ["InternalServerError", "ThrottlingException", "AccessDeniedException"]
        raise self._chance.choice([*map(client_error, codes), FaultOfOurOwn()])

    def _answer_nothing(self, _request: Request, _effect: Effect) -> Any:
        return {}

    def _contend(self, request: Request, _effect: Effect) -> Any:
        raise cancelled(*["TransactionConflict"] * len(request["TransactItems"]))

    def _turn_over(self, _request: Request, effect: Effect) -> Any:
        """Rows come in no order."""
        answer = effect()
        self._chance.shuffle(answer["Responses"][LEDGER])
        return answer

    def _publish_some(self, request: Request, effect: Effect) -> Any:
        entries = request["PublishBatchRequestEntries"]
        failed = [entry for entry in entries if self._chance.random() < 0.5]
        others = [entry for entry in entries if entry not in failed]
        answer = effect(PublishBatchRequestEntries=others) if others else {"Successful": [], "Failed": []}
        code = self._chance.choice(["InternalError", "Throttled", None])  # None: not mentioned
        return {**answer, "Failed": [{"Id": entry["Id"], "Code": code} for entry in failed if code]}

    def _mark_some(self, request: Request, effect: Effect) -> Any:
        return {
            "Responses": [
                {"Error": {"Code": self._chance.choice(["InternalServerError", "ThrottlingError"])}}
                if self._chance.random() < 0.5
                else effect(Statements=[statement])["Responses"][0]
                for statement in request["Statements"]
            ]
        }


# The play


class Play:
    """Some rounds in which messages are delivered and rows are looked for, until all is well.

    left: the messages in the queue, as (message id, event id).
    """

    def __init__(self, chance: Random) -> None:
        self.world = IndexedWorld()
        self.law = Law(self.world)
        self.now_ms = NOW_MS
        self.adversary = Adversary(chance)
        self.processes = 0
        self.expired: set[str] = set()
        self._chance = chance
        self._running: list[Process] = []
        self._add_rows()
        events = [f"e-{number}" for number in range(chance.randint(1, 6))]
        self.left = [(f"m-{number}", event_id) for number, event_id in enumerate(events + chance.choices(events, k=2))]
        self.world.is_lagging = chance.choice([False, True, True])
        self.world.most_counted = chance.choice([1, 2, 1_000])
        self.world.interfere = self._interfere

    def round(self) -> None:
        """Up to two consumers and two reconcilers at the same time."""
        batches = [self._batch() for _ in range(self._chance.randint(0, 2))]
        consumers = [(self._start(self._consume(batch)), batch) for batch in batches]
        for _ in range(self._chance.randint(0, 2)):
            self._start(self._reconcile)
        try:
            while self._running:
                process = self._chance.choice(self._running)
                process.go_on()
                if process.fault is not None:
                    raise process.fault
                self.law.check()
                if process.is_over:
                    self._running.remove(process)
                if self.adversary.is_awake:
                    self._let_time_pass()
        finally:
            for process in self._running:
                process.end()
        for consumer_process, batch in consumers:
            if consumer_process.answer is not None:
                self._delete(batch, consumer_process.answer)
        if self.adversary.is_awake and self.left and self._chance.random() < 0.3:
            self.left.remove(self._chance.choice(self.left))  # it is older than the queue's retention, or purged

    def get_well(self) -> None:
        """From now on nothing fails, and the index is up to date."""
        self.adversary.is_awake = False
        self.world.is_lagging = False
        self.now_ms += THRESHOLD_MS

    def run_alone(self, work: Callable[[Process], Any]) -> Any:
        process = self._start(work, 10_000)
        while self._running:
            process.go_on()
            if process.fault is not None:
                raise process.fault
            self.law.check()
            if process.is_over:
                self._running.remove(process)
        return process.answer

    def settle(self) -> Any:
        """What is left in the queue is delivered, then one reconciler runs; its answer."""
        if self.left:
            batch = list(self.left)
            self._delete(batch, self.run_alone(self._consume(batch)))
        self.now_ms += THRESHOLD_MS
        return self.run_alone(self._reconcile)

    def _add_rows(self) -> None:
        """Rows whose messages are gone since long, and some that nobody can read."""
        for number in range(self._chance.randint(0, 3)):
            self.world.add(pending_row(f"old-{number}", NOW_MS - THRESHOLD_MS - number))
            self.law.know(f"old-{number}")
        for number in range(self._chance.choice([0, 0, 1, 2])):
            stored = self._chance.choice([None, {"S": "{"}])
            self.world.add(pending_row(f"bad-{number}", NOW_MS - THRESHOLD_MS - number, notification=stored))
            self.law.know(f"bad-{number}")

    def _batch(self) -> list[tuple[str, str]]:
        """Some of the queue's messages; another consumer may have the same, as on a standard queue."""
        return [message for message in self.left if self._chance.random() < 0.7]

    def _consume(self, batch: Sequence[tuple[str, str]]) -> Callable[[Process], Any]:
        received = self._chance.choice([1, 2])
        records = [
            record(message_id, {"id": event_id, "text": "of " + event_id}, receive_count=received)
            | {"receiptHandle": message_id}
            for message_id, event_id in batch
        ]
        return lambda process: self.world.consumer(**SETTINGS).handle({"Records": records}, process)

    def _reconcile(self, process: Process) -> Any:
        process.until_ms = self.now_ms - THRESHOLD_MS
        return self.world.reconciler().handle(process)

    def _start(self, work: Callable[[Process], Any], calls_left: int | None = None) -> Process:
        process = Process(work, calls_left or self._chance.choice([1_000, 1_000, 1_000, 3, 20, 40]))
        self._running.append(process)
        self.processes += 1
        return process

    def _interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        process = this_process()
        process.await_turn()
        try:
            self.law.check_request(operation, request)
        except AssertionError as error:  # which the process would take for a fault of its own
            process.fault = error
            raise Killed from error
        try:
            return self.adversary.interfere(operation, request, effect)
        except FaultOfOurOwn:
            process.may_fail = process.may_fail or operation == QUERY
            raise

    def _let_time_pass(self) -> None:
        if self._chance.random() < 0.2:
            self.now_ms += self._chance.choice([1, 1_000, THRESHOLD_MS])
        if self._chance.random() < 0.2:
            self.world.sync(event_id for event_id in self.world.ledger if self._chance.random() < 0.5)
        if self._chance.random() < 0.05 and self.law.sent:
            event_id = self._chance.choice(sorted(self.law.sent))
            self.world.ledger.pop(event_id, None)
            self.expired.add(event_id)

    def _delete(self, batch: Sequence[tuple[str, str]], answer: Any) -> None:
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in batch:
            if message[0] not in failed:
                assert message[1] in self.law.sent, "I3: deleted only if it is settled"
                if message in self.left:
                    self.left.remove(message)


def play(chance: Random) -> Play:
    with pytest.MonkeyPatch.context() as patch:
        played = Play(chance)
        patch.setattr(telemetry, "now_ms", lambda: played.now_ms)
        patch.setattr(reconciliation, "_random", chance)
        patch.setattr(reconciliation, "PAGE", chance.choice([1, 2, 50]))
        patch.setattr(backoff, "hidden_seconds", lambda receives, backoff: 31)
        patch.setattr(consumer, "PART", chance.choice([2, 50]))
        patch.setattr(side_by_side, "CALLS", 1)
        for _ in range(chance.randint(1, 4)):
            played.round()
        played.get_well()
        answer = played.settle()
        check_end(played, answer)
    return played


def check_end(played: Play, answer: dict[str, int]) -> None:
    law, world = played.law, played.world
    assert played.left == []
    assert answer["still_stale"] == len(law.unpublishable), "nothing else is left"
    assert {event_id for event_id, status in world.statuses().items() if status == "pending"} == law.unpublishable
    assert law.sent == set(law.committed), "all that was committed is settled"
    assert set(law.published) == set(law.committed), "and announced"
    assert set(world.ledger) == (law.sent - played.expired) | law.unpublishable, "what has expired stays away"


def play_seed(seed: int) -> Play:
    """Call it with the seed that a failure names, to see it alone."""
    try:
        return play(Random(seed))
    except BaseException as error:
        error.add_note(f"play_seed({seed})")
        raise


def test_plays_hold_what_they_are_meant_to_hold() -> None:
    happened: Counter[str] = Counter()
    for seed in range(100):
        played = play_seed(seed)
        happened.update(entry.what for entry in played.world.history)
        happened.update(call.operation for call in played.world.calls)
        happened["processes"] += played.processes
        happened["expired"] += len(played.expired)
        happened["announced twice"] += sum(number > 1 for number in played.law.published.values())
        happened["unpublishable"] += len(played.law.unpublishable)
    assert happened["committed"] > 200
    assert happened["published"] > happened["marked"] > 200
    assert happened["processes"] > 500
    assert happened["announced twice"] > 30
    assert happened["expired"] > 20
    assert happened["unpublishable"] > 20
    assert happened[HIDE] > 50


def test_seed_names_a_play() -> None:
    first, second = play_seed(7), play_seed(7)
    assert first.world.history == second.world.history
    assert first.world.calls == second.world.calls


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize("thousand", range(8))
def test_nothing_is_lost_or_done_twice_whatever_goes_wrong(thousand: int) -> None:
    for number in range(250):
        play_seed(1_000 * thousand + number)
