"""Workers that take turns at any call and inside the effect, among random faults, deaths and clocks that are wrong.

Chance decides who goes on, what is lost, how much time passes, and what a person does in between. Then all goes well
for a while, parked operations are resolved and dead letters replayed, and everything must be settled. What happened is
compared with `Law`, which knows nothing of how the workers do it.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from traceback import format_exception
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from idempotent_consumer import backoff, calls, operation_consumer, side_by_side, telemetry
from idempotent_consumer.claims.resolution import Decision, NotResolvable, Resolution
from idempotent_consumer.claims.row import StoredResult, read_row
from idempotent_consumer.claims.table import ClaimFailed, Claims
from idempotent_consumer.effect import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.event import Event
from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.settlement import Misconfigured
from idempotent_consumer.time_limit import TimeIsUp
from tests.handler.operation_model import UPDATE, Effect, InUse, Message, Provider, Request, World, Write, number, text
from tests.handler.pending_model import ENDLESS
from tests.handler.support import BURY, HIDE, LEDGER, Item, Killed, client_error, record
from tests.handler.turns import Process, this_process

SKEW_MS = 60_000
MOST_DELIVERIES = 200
FINAL_STATES = ("COMPLETED", "FAILED_FINAL")
# Odd results: an effect that was applied is completed all the same.
RESULTS: Sequence[Any] = (None, 0, "", False, [], {"id": "ch-1"}, {"id": "ch-2"}, "x" * 400_000, {1, 2}, float("nan"))


# The cases


@dataclass(frozen=True)
class Case:
    """A consumer and its provider. The times are what the module lets through.

    hands: somebody changes rows by hand. is_close: one order, of which a worker whose clock is slow meets others whose
    clocks are fast, about the times that matter.
    """

    policy: str
    honours_keys: bool
    function_ms: int
    effect_ms: int
    lease_ms: int
    settle_ms: int
    skew_ms: int
    max_attempts: int
    max_age_ms: int
    max_receives: int
    hands: bool
    is_close: bool

    def settings(self) -> OperationSettings:
        return OperationSettings.from_environment(
            {
                "CONSUMER_NAME": "orders",
                "LEDGER_TABLE": LEDGER,
                "DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead-letter",
                "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
                "VISIBILITY_TIMEOUT_SECONDS": str(self.function_ms // 1000),
                "BACKOFF_MAX_SECONDS": "900",
                "MAX_RECEIVE_COUNT": str(self.max_receives),
                "EVENT_FINGERPRINT": "[id, amount]",
                "OPERATION_UNCERTAIN": self.policy,
                "OPERATION_EFFECT_TIMEOUT_SECONDS": str(self.effect_ms // 1000),
                "OPERATION_LEASE_MS": str(self.lease_ms),
                "OPERATION_SETTLE_SECONDS": str(self.settle_ms // 1000),
                "OPERATION_MAX_ATTEMPTS": str(self.max_attempts),
                "OPERATION_MAX_AGE_SECONDS": str(self.max_age_ms // 1000),
                "OPERATION_RETRY_SECONDS": "30",
            }
        )


def make_case(chance: Random) -> Case:
    # A provider that ignores keys and a consumer that counts on them do not go together.
    policy, honours_keys = chance.choice(
        [
            ("provider_key", True),
            ("provider_key", True),
            ("reconcile", False),
            ("reconcile", False),
            ("reconcile", True),
            ("park", False),
            ("park", True),
        ]
    )
    case = Case(
        policy=policy,
        honours_keys=honours_keys,
        function_ms=chance.choice([30_000, 60_000]),
        effect_ms=10_000,
        lease_ms=0,
        settle_ms=chance.choice([130_000, 130_000, 1_000]),
        skew_ms=chance.choice([SKEW_MS, SKEW_MS, 0]),
        max_attempts=chance.choice([1, 2, 5, 20]),
        max_age_ms=chance.choice([82_800_000, 600_000]),
        max_receives=chance.choice([3, 20, 1_000]),
        hands=chance.random() < 0.25,
        is_close=chance.random() < 0.5,
    )
    return replace(case, lease_ms=case.function_ms + 2 * SKEW_MS)


# Who takes turns


class Actor(Process):
    """Somebody with a clock, which is wrong by `skew_ms`, and an invocation that ends at `deadline_ms` (true time).

    seen: how the rows stood that it was shown. put: how they stood after its own writes. faults: how many of its calls
    were spoilt. recognised: the own writes that it was shown last, by order, with the faults until then.
    """

    def __init__(self, work: Callable[[], Any], world: World, skew_ms: int, time_ms: int) -> None:
        self.world = world
        self.skew_ms = skew_ms
        self.deadline_ms = world.now_ms + time_ms
        self.is_frozen = False
        self.batch: list[Message] = []
        self.seen: dict[str, set[State]] = {}
        self.put: dict[str, set[State]] = {}
        self.effect: RunningEffect | None = None
        self.faults = 0
        self.recognised: dict[str, tuple[State, int]] = {}
        super().__init__(work)

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def get_remaining_time_in_millis(self) -> int:
        """The runtime's context."""
        return self.deadline_ms - self.world.now_ms


class Worker(Actor):
    """An invocation of the function."""


class Person(Actor):
    """Somebody at the command line."""


class RunningEffect(NamedTuple):
    order: str
    ends_ms: int


class State(NamedTuple):
    """What two writers of a row may not disagree about."""

    status: str
    owner: str
    attempt: int
    lease_until_ms: int
    is_parked: bool


def state_of(row: Item | None) -> State | None:
    if row is None:
        return None
    lease = number(row, "lease_until")
    return State(text(row, "status"), text(row, "owner"), number(row, "attempt"), lease, "parked_at" in row)


# What may happen


class Known(NamedTuple):
    """What the one who asked for a write knew by then. now_ms: by its own clock."""

    seen: frozenset[State]
    put: set[State]
    now_ms: int


class Law:
    """Holds each step against what the design promises; `broken` tells what was not kept."""

    def __init__(self, world: World, provider: Provider) -> None:
        self._world = world
        self._provider = provider
        self._keys: dict[str, str] = {}
        self.broken = world.ledger.complaints

    def check(self) -> None:
        assert not self.broken, self.broken[0]
        assert all(count == 1 for count in self._provider.charges.values()), "no order is charged twice"

    def know_write(self, write: Write, known: Known) -> None:
        before, after = write.before, write.after
        order = after["event_id"]["S"]
        found, left = state_of(before), state_of(after)
        assert left is not None
        if isinstance(write.by, Worker):
            self._expect(found is None or found in known.seen | known.put, f"{order}: changes what it does not know")
            self._expect(found is None or not found.is_parked, f"{order}: a parked row waits for a person")
            is_own = found in known.put - known.seen and found is not None and found.status == "IN_PROGRESS"
            if is_own and found is not None and left.owner == found.owner:
                self._expect(known.now_ms < found.lease_until_ms, f"{order}: a worker changes it after its lease")
        is_fencing = isinstance(write.by, Person) or found is None or left.owner != found.owner
        raised = left.attempt - (found.attempt if found else 0)
        self._expect(raised == is_fencing, f"{order}: each claim and each decision raises the attempt by one")
        is_final = left.status in FINAL_STATES
        names = tuple(name in after for name in ("ttl", "settled_at", "pending_shard", "next_attempt_at", "parked_at"))
        self._expect(names[:3] == (is_final, is_final, not is_final), f"{order}: only what is final expires {names}")
        self._expect(not is_final or names[3:] == (False, False), f"{order}: what is final waits for nothing")
        if left.status.startswith("FAILED"):
            self._expect(not self._provider.is_charged(order), f"{order}: failed, and charged all the same")
        if left.status == "COMPLETED":
            self._expect(self._provider.charges[order] == 1, f"{order}: completed, and not charged")
            self._expect("result" in after or "result_sha256" in after, f"{order}: completed without a result")
            if isinstance(write.by, Worker):
                stored = StoredResult.of(self._provider.results.get(order)).attributes.items()
                self._expect(stored <= after.items(), f"{order}: completed with another result than the charge's")
        self._expect(found is None or found.status != "COMPLETED", f"{order}: what is completed stays as it is")
        if before is not None:
            for name in ("created_at", "fingerprint", "idempotency_key"):
                self._expect(before[name] == after[name], f"{order}: {name} never changes")

    def know_effect(self, worker: Worker, event: Event, key: str, effect_ms: int, running: Sequence[Actor]) -> None:
        """An effect begins."""
        row = self._world.ledger.rows.get(event.id)
        state = state_of(row)
        assert row is not None and state is not None
        self._expect(state in worker.put.get(event.id, ()), f"{event.id}: an effect without a claim")
        self._expect(state.status == "IN_PROGRESS" and not state.is_parked, f"{event.id}: an effect of no attempt")
        now_ms, ends_ms = self._world.now_ms + effect_ms, worker.now_ms() + effect_ms
        self._expect(ends_ms <= state.lease_until_ms, f"{event.id}: an effect that may outlast its lease")
        self._expect(now_ms <= worker.deadline_ms, f"{event.id}: an effect that may outlast its invocation")
        self._expect(text(row, "fingerprint") == event.fingerprint, f"{event.id}: an effect of other content")
        self._expect(self._keys.setdefault(event.id, key) == key == text(row, "idempotency_key"), "the key is stable")
        for other in running:
            effect = other.effect
            if effect is not None and effect.order == event.id and not other.is_dead:
                self._expect(self._world.now_ms >= effect.ends_ms, f"{event.id}: two effects at the same time")

    def know_question(self, worker: Worker, order: str, settle_ms: int) -> None:
        """The provider is asked what became of an attempt."""
        state = state_of(self._world.ledger.rows.get(order))
        if state in worker.seen.get(order, ()) and state is not None:
            is_settled = worker.now_ms() >= state.lease_until_ms + settle_ms
            self._expect(is_settled or state.status != "IN_PROGRESS", f"{order}: the provider is asked too early")

    def know_deletion(self, message: Message) -> None:
        row = self._world.ledger.rows.get(message.order, {})
        is_done = text(row, "status") == "COMPLETED"
        bodies = {*(letter.body for letter in self._world.letters), *(other.body for other in self._world.queue)}
        self._expect(is_done or message.body in bodies, f"{message.order}: a message is lost")

    def know_answer(self, actor: Actor, returning: Collection[str], begun: Collection[str]) -> None:
        """A worker that was shown its own write, since the answer to the first try was lost, takes it for made."""
        for order, (state, faults) in actor.recognised.items():
            if state_of(self._world.ledger.rows.get(order)) == state and faults == actor.faults:
                is_left = state.status == "IN_PROGRESS" and not state.is_parked and state.owner not in begun
                self._expect(not is_left, f"{order}: a claim without an effect")
                own = [message.id for message in actor.batch if message.order == order]
                comes_back = state.status == "COMPLETED" and len(own) == 1 and own[0] in returning
                self._expect(not comes_back, f"{order}: completed, and its message comes back")

    def _expect(self, is_kept: bool, what: str) -> None:
        if not is_kept:
            self.broken.append(what)


# What goes wrong


class Adversary:
    """Lets calls and effects pass or spoils them, as AWS, the provider, the network or the end of the process might."""

    def __init__(self, play: Play, chance: Random) -> None:
        self.is_awake = True
        self._play = play
        self._chance = chance
        of_any_call = [self._refuse, self._lose_request, self._lose_answer, self._die_before, self._die_after]
        self._of_the_call: dict[str, list[Callable[..., Any]]] = {
            UPDATE: [*of_any_call, self._answer_slowly, self._repeat, self._delay],
            BURY: of_any_call,
            HIDE: [*of_any_call, self._answer_nothing],
        }
        self._of_the_effect: list[Callable[..., Any]] = [
            self._fail_for_now,
            self._fail_for_good,
            self._charge_and_lose_the_answer,
            self._charge_and_die,
            self._charge_slowly,
            self._charge_late,
            self._charge_and_hang,
            self._hang,
            self._lose,
            self._die,
        ]
        self._of_the_question: list[Callable[..., Any]] = [self._cannot_tell, self._ask_slowly, self._lose, self._die]
        # What goes wrong often in one play hardly ever does in another: else rare meetings of two would not happen.
        if play.case.is_close:
            known: list[Callable[..., Any]] = [
                *[self._charge_late] * 3,
                self._charge_slowly,
                self._hang,
                self._charge_and_hang,
            ]
        elif play.case.policy == "provider_key":
            known = [self._fail_for_now, self._fail_for_good, self._charge_and_lose_the_answer, self._charge_and_die]
        else:
            known = self._of_the_effect
        self._favourites = [
            *chance.sample(self._of_the_call[UPDATE], 2),
            *chance.sample(known, 2),
            chance.choice(self._of_the_question),
        ]
        self._calm = chance.choice([5, 15, 45])
        self._calm_calls = 45 if play.case.is_close else self._calm

    def interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        chosen = self._pick(self._of_the_call[operation], self._let_pass, self._calm_calls)
        this_process().faults += chosen not in (self._let_pass, self._answer_slowly, self._repeat)
        return chosen(request, effect)

    def charge(self, worker: Worker, event: Event, key: str) -> Any:
        return self._pick(self._of_the_effect, self._charge, self._calm)(worker, event, key)

    def ask(self, worker: Worker, event: Event, key: str) -> Any:
        return self._pick(self._of_the_question, self._ask, self._calm)(worker, event, key)

    def _pick(
        self, spoiling: Sequence[Callable[..., Any]], calmly: Callable[..., Any], calm: int
    ) -> Callable[..., Any]:
        if not self.is_awake:
            return calmly
        favoured = [each for each in self._favourites if each in spoiling]
        return self._chance.choice([calmly] * calm + list(spoiling) + favoured * 8)

    # Calls

    def _let_pass(self, _request: Request, effect: Effect) -> Any:
        return effect()

    def _refuse(self, _request: Request, _effect: Effect) -> Any:
        codes = ["InternalServerError", "ThrottlingException", "TransactionConflictException", "AccessDeniedException"]
        raise client_error(self._chance.choice(codes), "AnyOperation")

    def _lose_request(self, _request: Request, _effect: Effect) -> Any:
        raise ConnectionClosedError(endpoint_url="https://aws.example")

    def _lose_answer(self, _request: Request, effect: Effect) -> Any:
        with suppress(ClientError):  # this answer is lost too
            effect()
        raise ConnectionClosedError(endpoint_url="https://aws.example")

    def _answer_slowly(self, _request: Request, effect: Effect) -> Any:
        answer = effect()
        this_process().await_turn()
        return answer

    def _repeat(self, request: Request, effect: Effect) -> Any:
        """The SDK tries again by itself when the first answer is lost."""
        with suppress(ClientError):
            effect()
        return self._chance.choice([self._let_pass, self._let_pass, self._refuse])(request, effect)

    def _delay(self, _request: Request, effect: Effect) -> Any:
        """The request takes effect when nobody waits for its answer any more."""
        self._play.delayed.append(effect)
        raise ConnectionClosedError(endpoint_url="https://aws.example")

    def _answer_nothing(self, _request: Request, _effect: Effect) -> Any:
        return {}

    def _die_before(self, _request: Request, _effect: Effect) -> Any:
        this_process().die()

    def _die_after(self, _request: Request, effect: Effect) -> Any:
        with suppress(ClientError):
            effect()
        this_process().die()

    # The effect

    def _charge(self, _worker: Worker, event: Event, key: str) -> Any:
        result = self._chance.choice(RESULTS)
        try:
            return self._play.provider.charge(self._play.world.now_ms, event.id, key, result)
        except InUse:
            raise Uncertain("key-in-use") from None

    def _fail_for_now(self, *_: Any) -> Any:
        raise Retryable("too-many-requests", after_seconds=self._chance.choice([None, None, 0, 7, 600]))

    def _fail_for_good(self, *_: Any) -> Any:
        raise Final("declined")

    def _charge_and_lose_the_answer(self, worker: Worker, event: Event, key: str) -> Any:
        self._charge(worker, event, key)
        raise self._chance.choice([ConnectionError(), SystemExit(1), Uncertain("bad-gateway"), ValueError()])

    def _charge_and_die(self, worker: Worker, event: Event, key: str) -> Any:
        self._charge(worker, event, key)
        worker.die()

    def _charge_slowly(self, worker: Worker, event: Event, key: str) -> Any:
        result = self._charge(worker, event, key)
        self._play.stop_in_effect(worker)
        return result

    def _charge_late(self, worker: Worker, event: Event, key: str) -> Any:
        settle_ms = self._play.case.settle_ms
        delay_ms = self._chance.choice([1, settle_ms // 2, settle_ms, settle_ms, settle_ms, settle_ms])
        result = self._chance.choice(RESULTS)
        self._play.happened["charged late"] += 1
        self._play.provider.charge_later(self._play.world.now_ms, delay_ms, event.id, key, result)
        self._chance.choice([self._hang, self._lose, self._lose, self._die])(worker, event, key)

    def _charge_and_hang(self, worker: Worker, event: Event, key: str) -> Any:
        self._charge(worker, event, key)
        self._hang(worker, event, key)

    def _hang(self, worker: Worker, *_: Any) -> Any:
        assert worker.effect is not None
        self._play.pass_time(max(0, worker.effect.ends_ms - self._play.world.now_ms))
        raise TimeIsUp

    def _lose(self, *_: Any) -> Any:
        raise ConnectionError

    def _die(self, worker: Worker, *_: Any) -> Any:
        worker.die()

    # The question

    def _ask(self, _worker: Worker, event: Event, _key: str) -> Any:
        if self._play.provider.charges[event.id]:
            return Applied(self._play.provider.results[event.id])
        return NotApplied()

    def _ask_slowly(self, worker: Worker, event: Event, key: str) -> Any:
        said = self._ask(worker, event, key)
        self._play.stop_in_effect(worker)
        return said

    def _cannot_tell(self, *_: Any) -> Any:
        return self._chance.choice([Unknown(), None])


# The play


class Play:
    """One case, from the first delivery until everything is settled."""

    def __init__(self, chance: Random) -> None:
        self.case = make_case(chance)
        self.settings = self.case.settings()
        self.world = World(this_process)
        # A key is used no later than this after it has come first.
        memory_ms = self.case.max_age_ms + self.case.function_ms + 2 * SKEW_MS
        self.provider = Provider(self.case.honours_keys, memory_ms)
        self.law = Law(self.world, self.provider)
        self.adversary = Adversary(self, chance)
        self.world.interfere = self._interfere
        self.delayed: list[Effect] = []
        self.running: list[Actor] = []
        self.begun: set[str] = set()  # the owners whose effects have begun
        self.happened: Counter[str] = Counter()
        self._chance = chance
        self._busy = chance.choice([2, 3]) if self.case.is_close else chance.choice([1, 2, 3])
        self._skews = [0, -self.case.skew_ms, self.case.skew_ms]
        self._orders = 0
        for _ in range(1 if self.case.is_close else chance.randint(1, 3)):
            self._order()

    def now_ms(self) -> int:
        """By the clock of whoever asks."""
        actor = this_process()
        return self.world.now_ms if actor is None else actor.now_ms()

    def disturb(self) -> None:
        """A step among faults."""
        self._chance.choice(
            [self._go_on_one] * 12 + [self._begin] * 4 + [self._let_time_pass] * 3 + [self._look_after] * 1
            if self.case.is_close
            else [self._go_on_one] * 12 + [self._begin] * 3 + [self._let_time_pass] * 2 + [self._look_after] * 2
        )()
        self.law.check()

    def settle(self) -> None:
        """From now on nothing fails. What a person has to decide is decided, and all letters are replayed."""
        self.adversary.is_awake = False
        while self.running:
            self._go_on(self.running[0])
            self.law.check()
        self._deliver_all()
        self._check_delivered()
        for _ in range(8):
            for order in sorted(self.world.ledger.rows):
                self.pass_time(self.case.lease_ms + self.case.settle_ms + 4 * SKEW_MS)
                self._run_alone(self._call_person(order))
            self._replay(self.world.letters)
            self._deliver_all()
        self._check_end()

    # Time

    def pass_time(self, milliseconds: int) -> None:
        if milliseconds > 7_000:  # nothing is under way for so long
            for effect in self.delayed:
                if self._chance.random() < 0.5:
                    self._take_delayed(effect)
            self.delayed.clear()
        self.world.now_ms += milliseconds
        self.provider.pass_time(self.world.now_ms)

    def _let_time_pass(self) -> None:
        moments = [moment - self.world.now_ms for moment in self._moments()]
        ahead = [moment for moment in moments if moment > 0]
        if ahead and self._chance.random() < (0.8 if self.case.is_close else 0.5):
            is_next = self.case.is_close and self._chance.random() < 0.5
            self.pass_time(min(ahead) if is_next else self._chance.choice(ahead))
        else:
            self.pass_time(self._chance.choice([1, 100, 1_000, 5_000, 20_000]))

    def _moments(self) -> Iterator[int]:
        """When somebody may decide otherwise than before."""
        for row in self.world.ledger.rows.values():
            if text(row, "status") in FINAL_STATES:
                continue
            ends_ms = number(row, "lease_until")
            for moment in (ends_ms, ends_ms + self.case.settle_ms, number(row, "next_attempt_at")):
                yield from (moment - SKEW_MS, moment - 1, moment, moment + SKEW_MS)
            yield number(row, "since") + self.case.max_age_ms
        yield from (due_ms for due_ms, *_ in self.provider.pending)
        yield from (message.visible_ms for message in self.world.queue)
        yield from (actor.deadline_ms for actor in self.running)
        yield from (actor.effect.ends_ms for actor in self.running if actor.effect)

    # Workers

    def _order(self) -> None:
        """Somebody orders something, and is heard once or twice."""
        self._orders += 1
        amounts = [5, 5] if self._chance.random() < 0.8 else [5, 6]
        for copy in range(self._chance.randint(1, 2)):
            self.world.send(json.dumps({"id": f"order-{self._orders}", "amount": amounts[copy], "tag": copy}))

    def _begin(self) -> None:
        if not self.world.queue:
            self._order()
        if len(self.running) >= self._busy:
            self._go_on_one()
            return
        again = 0.8 if self.case.is_close else 0.3
        # A standard queue hands out some messages that are in work.
        ready = [each for each in self.world.queue if each.visible_ms <= self.world.now_ms]
        ready += [each for each in self.world.queue if each not in ready and self._chance.random() < again]
        batch = self._chance.sample(ready, min(len(ready), self._chance.choice([1, 1, 2, 3])))
        if batch:
            self._deliver(batch)
        else:
            self._let_time_pass()

    def _deliver(self, batch: Sequence[Message]) -> Worker | None:
        taken = []
        for message in batch:
            message.received += 1
            message.visible_ms = self.world.now_ms + self.case.function_ms
            if message.received > self.case.max_receives:
                self.world.give_up(message)
            else:
                taken.append(message)
        if not taken:
            return None
        worker = Worker(lambda: self._consume(taken), self.world, self._skew(), self.case.function_ms)
        worker.batch = taken
        self.running.append(worker)
        return worker

    def _consume(self, batch: Sequence[Message]) -> Any:
        worker = this_process()
        records = []
        for message in batch:
            one = record(message.id, message.body, receive_count=message.received) | {"receiptHandle": message.id}
            one["attributes"]["SentTimestamp"] = str(self.world.now_ms)
            records.append(one)
        consumer = OperationConsumer(self.settings, self.world.clients, Operation(self._effect, self._reconcile))
        return consumer.handle({"Records": records}, worker)

    def _go_on_one(self) -> None:
        if self.delayed and self._chance.random() < 0.2:
            self._take_delayed(self.delayed.pop(self._chance.randrange(len(self.delayed))))
        elif not self.running:
            self._begin()
        else:
            # In a close case effects take long, by what others do meanwhile.
            quick = [actor for actor in self.running if actor.effect is None]
            is_hasty = self.case.is_close and quick and self._chance.random() < 0.8
            self._go_on(self._chance.choice(quick if is_hasty else self.running))

    def _go_on(self, actor: Actor) -> None:
        if self.world.now_ms > actor.deadline_ms and not actor.is_frozen:
            # The runtime has ended it by now, or it froze where it was, to wake up long after.
            actor.is_frozen = self._chance.random() < 0.5 and actor.effect is None
            if not actor.is_frozen:
                actor.kill()
                self.running.remove(actor)
                self.happened["stopped at its deadline"] += 1
                return
            self.happened["woke up after its deadline"] += 1
            if not self.case.skew_ms:  # where clocks are right, even a worker that knows nothing of it does no harm
                actor.deadline_ms = self.world.now_ms + self.case.function_ms
        actor.go_on()
        if actor.is_over:
            self.running.remove(actor)
            self._end(actor)

    def _end(self, actor: Actor) -> None:
        if actor.is_dead:
            self.happened["died"] += 1
        elif isinstance(actor.fault, Misconfigured | Killed):
            self.happened["misconfigured"] += 1
        elif actor.fault is not None:
            raise actor.fault
        elif actor.batch and self.world.now_ms <= actor.deadline_ms:
            returning = {failure["itemIdentifier"] for failure in actor.answer["batchItemFailures"]}
            for message in actor.batch:
                if message.id not in returning and message in self.world.queue:
                    self.world.queue.remove(message)
                    self.law.know_deletion(message)
            self.law.know_answer(actor, returning, self.begun)

    def _skew(self) -> int:
        if self.case.is_close:
            is_slow = self.world.ledger.rows.keys().isdisjoint({f"order-{self._orders}"})
            return -self.case.skew_ms if is_slow else self.case.skew_ms
        return self._chance.choice(self._skews)

    # What is called

    def _interfere(self, operation: str, request: Request, effect: Effect) -> Any:
        actor = this_process()
        order = request["Key"]["event_id"]["S"] if operation == UPDATE else ""
        known = self._known(actor, order)
        made: set[State] = set()
        actor.await_turn()

        def take_effect() -> Any:
            before = len(self.world.ledger.writes)
            answer = effect()
            for write in self.world.ledger.writes[before:]:
                self.law.know_write(write, known)
                state = state_of(write.after)
                assert state is not None
                if state.status == "COMPLETED" or state.owner != text(write.before or {}, "owner"):
                    made.add(state)
                actor.put.setdefault(order, set()).add(state)
                self.happened[state.status] += 1
            return answer

        try:
            return self.adversary.interfere(operation, request, take_effect)
        except ClientError as error:
            shown = state_of(error.response.get("Item"))
            if shown is not None:
                actor.seen.setdefault(order, set()).add(shown)
                left_ms = min(actor.get_remaining_time_in_millis(), shown.lease_until_ms - actor.now_ms())
                if shown in made and left_ms > 2 * self.case.effect_ms:
                    actor.recognised[order] = shown, actor.faults
            raise

    def _known(self, actor: Actor, order: str) -> Known:
        return Known(frozenset(actor.seen.get(order, ())), actor.put.setdefault(order, set()), actor.now_ms())

    def _effect(self, event: Event, key: str) -> Any:
        worker = this_process()
        if worker.is_dead:
            raise Killed
        self.law.know_effect(worker, event, key, self.case.effect_ms, self.running)
        worker.effect = RunningEffect(event.id, self.world.now_ms + self.case.effect_ms)
        self.begun.add(text(self.world.ledger.rows[event.id], "owner"))
        self.happened["effect"] += 1
        try:
            self.stop_in_effect(worker)
            return self.adversary.charge(worker, event, key)
        finally:
            worker.effect = None

    def _reconcile(self, event: Event, key: str) -> Any:
        worker = this_process()
        self.law.know_question(worker, event.id, self.case.settle_ms)
        worker.effect = RunningEffect("", self.world.now_ms + self.case.effect_ms)
        self.happened["question"] += 1
        try:
            self.stop_in_effect(worker)
            return self.adversary.ask(worker, event, key)
        finally:
            worker.effect = None

    def stop_in_effect(self, worker: Worker) -> None:
        """Others go on, and time may pass: too much of it ends the effect."""
        worker.await_turn()
        assert worker.effect is not None
        if self.world.now_ms >= worker.effect.ends_ms:
            raise TimeIsUp

    def _take_delayed(self, effect: Effect) -> None:
        with suppress(ClientError):
            effect()

    # People

    def _look_after(self) -> None:
        """Somebody resolves an operation, replays a dead letter, or changes a row by hand."""
        if self.world.ledger.rows and self._chance.random() < 0.5:
            order = self._chance.choice(sorted(self.world.ledger.rows))
            if self.case.hands and self._chance.random() < 0.7:
                self._change_by_hand(order)
            else:
                self._call_person(order)
        elif self.world.letters:
            self._replay([self._chance.choice(self.world.letters)])

    def _replay(self, letters: Sequence[Any]) -> None:
        for letter in list(letters):
            self.world.letters.remove(letter)
            self.world.send(letter.body)

    def _call_person(self, order: str) -> Person:
        person = Person(lambda: self._resolve(order), self.world, self._skew(), 10**9)
        self.running.append(person)
        return person

    def _resolve(self, order: str) -> None:
        """As somebody would who looks at the provider's records, waits for what comes there, and at no worker."""
        row = self.world.ledger.rows.get(order)
        if row is None or self.provider.is_pending(order):
            return
        if text(row, "status") == "FAILED_RETRYABLE" and self._chance.random() < 0.8:
            return
        if self.provider.charges[order]:
            decision = Decision.COMPLETED
        elif text(row, "status") == "FAILED_FINAL":
            decision = self._chance.choice([Decision.FAILED, Decision.FAILED, Decision.FAILED, Decision.RETRY])
        else:
            decision = self._chance.choice([Decision.FAILED, Decision.RETRY])
        resolution = Resolution(decision, "somebody", "seen at the provider's", "by hand")
        claims = Claims(self.world.clients.dynamodb, self.settings, telemetry.now_ms)
        with suppress(NotResolvable, ClaimFailed):
            if claims.resolve(read_row(row), resolution, ENDLESS) is None:
                self.happened[f"resolved {decision.value}"] += 1

    def _change_by_hand(self, order: str) -> None:
        row = self.world.ledger.rows[order]
        if text(row, "status") in FINAL_STATES or self._may_begin(order):
            return
        if self._chance.random() < 0.5:
            self.happened["fenced by hand"] += 1
            fenced = {**row, "attempt": {"N": str(number(row, "attempt") + 1)}}
            self.world.ledger.write("by hand", order, fenced)
        elif not self.provider.is_charged(order) and not self._is_in_hands(order):
            self.happened["deleted by hand"] += 1
            del self.world.ledger.rows[order]

    def _is_in_hands(self, order: str) -> bool:
        """Whether somebody is at an effect of the order, or may still begin one."""
        at_it = (actor.effect for actor in self.running if not actor.is_dead)
        return self._may_begin(order) or any(effect is not None and effect.order == order for effect in at_it)

    def _may_begin(self, order: str) -> bool:
        claims = (state for actor in self.running if not actor.is_dead for state in actor.put.get(order, ()))
        return any(state.status == "IN_PROGRESS" and state.owner not in self.begun for state in claims)

    # The end

    def know_fault(self, _message_id: str, error: BaseException) -> None:
        """What the workers take for a fault: those that are played, or one of these tests'."""
        is_played = isinstance(error, ConnectionError | SystemExit | TimeIsUp | Killed) or type(error) is ValueError
        if not is_played and not str(error).startswith("reconcile returned"):
            self.law.broken.append("".join(format_exception(error)))

    def _run_alone(self, actor: Actor) -> None:
        while actor in self.running:
            self._go_on(actor)
            self.law.check()

    def _deliver_all(self) -> None:
        deliveries = 0
        while self.world.queue:
            deliveries += 1
            assert deliveries < MOST_DELIVERIES, "messages come back for ever"
            next_ms = min(message.visible_ms for message in self.world.queue)
            self.pass_time(max(0, next_ms - self.world.now_ms))
            ready = [message for message in self.world.queue if message.visible_ms <= self.world.now_ms]
            worker = self._deliver(ready[:3])
            if worker is not None:
                self._run_alone(worker)

    def _check_delivered(self) -> None:
        """Nothing waits but what has a dead letter, with the reason by which people find it."""
        for order, row in self.world.ledger.rows.items():
            status = text(row, "status")
            reasons = {letter.reason for letter in self.world.letters if json.loads(letter.body)["id"] == order}
            if status not in FINAL_STATES:
                assert reasons, f"{order}: {status}, and no message is left"
            if "parked_at" in row:
                self.happened["parked at the end"] += 1
                assert "outcome-unknown" in reasons or self.case.max_receives < 1_000

    def _check_end(self) -> None:
        rows = self.world.ledger.rows
        statuses = {order: text(row, "status") for order, row in rows.items()}
        for order, status in statuses.items():
            assert status in FINAL_STATES, f"{order} is {status} at the end"
            assert self.provider.charges[order] == (status == "COMPLETED"), f"{order} is {status}"
            self.happened["completed at the end"] += status == "COMPLETED"
            self.happened["failed at the end"] += status == "FAILED_FINAL"
        for letter in self.world.letters:
            order = json.loads(letter.body)["id"]
            assert letter.reason == "id-reused" or statuses[order] == "FAILED_FINAL", f"{letter}"


def play(chance: Random) -> Play:
    with pytest.MonkeyPatch.context() as patch:
        played = Play(chance)
        patch.setattr(telemetry, "now_ms", played.now_ms)
        patch.setattr(telemetry, "emit_operations", lambda *_: None)
        patch.setattr(telemetry, "_log", lambda *_: None)
        patch.setattr(telemetry, "log_fault", played.know_fault)
        patch.setattr(calls, "pause", lambda attempt: played.pass_time(50 * 2**attempt))
        patch.setattr(
            operation_consumer,
            "drawn_seconds",
            lambda least, count, most: chance.randint(least, most),
        )
        patch.setattr(backoff, "drawn_seconds", lambda least, count, most, draw: chance.randint(least, most))
        patch.setattr(secrets, "token_hex", lambda octets: f"{chance.getrandbits(8 * octets):x}")
        patch.setattr(side_by_side, "CALLS", 1)
        try:
            for _ in range(chance.choice([20, 60, 150])):
                played.disturb()
            played.settle()
        finally:
            for actor in played.running:
                actor.kill()
    return played


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
        happened.update(play_seed(seed).happened)
    assert happened["effect"] > 700
    assert happened["died"] > 500
    assert happened["stopped at its deadline"] > 300
    assert happened["woke up after its deadline"] > 250
    assert happened["charged late"] > 30
    assert happened["question"] > 150
    assert happened["parked at the end"] > 60
    assert happened["completed at the end"] > 500
    assert happened["failed at the end"] > 40
    for decision in ("completed", "failed", "retry"):
        assert happened[f"resolved {decision}"] > 50
    assert min(happened["fenced by hand"], happened["deleted by hand"]) > 10


def test_seed_names_a_play() -> None:
    first, second = play_seed(7), play_seed(7)
    assert first.world.calls == second.world.calls
    assert first.happened == second.happened


@pytest.mark.case("C54", "C57", "C63")
@pytest.mark.parametrize("part", range(8))
def test_an_effect_happens_once_or_waits_for_a_person_whatever_goes_wrong(part: int) -> None:
    for seed in range(160 * part, 160 * (part + 1)):
        play_seed(seed)
