"""Deterministic concurrency: processes that stop before each call, and somebody who says which of them goes on.

A process is a greenlet that runs the product's own code. Between two calls it can neither see nor change what others
see, so that to choose at the calls is to choose all that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol
from unittest import mock

from botocore.exceptions import BotoCoreError, ClientError
from greenlet import GreenletExit, getcurrent, greenlet

from idempotent_consumer import attempt, backoff, calls, reconciliation, side_by_side, telemetry
from idempotent_consumer.claims import table as claims
from idempotent_consumer.effect import EffectFailed
from idempotent_consumer.time_limit import TimeIsUp
from tests.exploration.faults import FAULTS, Dies, Fault, Request, play

# What a call can raise in a process. Anything else is a fault of the model, and ends the play.
PLAYED = (ClientError, BotoCoreError, EffectFailed, TimeIsUp)
# No process makes so many; one that does would not end.
MOST_CALLS = 200
_ENOUGH_MS = 30_000
# Not enough for another call, but for one that gives up soon, and for the answer.
_LITTLE_MS = 2_000
_SHORT_CALLS = ("ChangeMessageVisibilityBatch",)


class BadCall(AssertionError):
    """A call that no process may make."""


class World(Protocol):
    """What stands around the processes."""

    now_ms: int
    # Whose call it is.
    actor: str

    def call(self, operation: str, request: Request) -> Any:
        """Let a call take effect, or raise its error."""

    def rows_of(self, request: Request) -> list[Callable[[], None]]:
        """A transaction as writes that become visible one after the other; raises its error."""


class _Turns(greenlet):
    """process: whose turns these are."""

    process: Process


class Process:
    """One invocation. work: gets the process; what it returns, or raises, goes to `ended`. skew_ms: how far its clock
    is ahead of the world's."""

    def __init__(
        self,
        name: str,
        world: World,
        work: Callable[[Process], Any],
        ended: Callable[[Any], None] = lambda answer: None,
        skew_ms: int = 0,
    ) -> None:
        self.name = name
        self.has_begun = False
        self.is_over = False
        self.is_dead = False
        self.waiting: tuple[str, Request] | None = None
        # By its own clock, when it made the call.
        self.asked_ms = 0
        self.calls = 0
        self._world = world
        self._skew_ms = skew_ms
        self._ended = ended
        self._remaining_ms = _ENOUGH_MS
        self._writes: list[Callable[[], None]] = []
        self._work = work
        self._greenlet = _Turns(self._run)
        self._greenlet.process = self

    def get_remaining_time_in_millis(self) -> int:
        """As Lambda's context has it."""
        return self._remaining_ms

    @property
    def now_ms(self) -> int:
        return self._world.now_ms + self._skew_ms

    @property
    def operation(self) -> str:
        return self.waiting[0] if self.waiting else ""

    @property
    def is_writing(self) -> bool:
        """Whether a transaction of its is half visible."""
        return bool(self._writes)

    @property
    def place(self) -> tuple[int, int, bool]:
        """How far it has come."""
        return self.calls, len(self._writes), self.is_over

    def begin(self) -> None:
        """Run to its first call."""
        self.has_begun = True
        self._resume(self._greenlet.switch)

    def go_on(self, fault: Fault | None) -> None:
        """Make the call that it waits for, and run to the next one, or to the end."""
        assert self.waiting is not None
        if self._writes:
            self._world.actor = self.name
            self._write_next()
            return
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise BadCall(f"{self.name} has made {MOST_CALLS} calls")
        if self._remaining_ms < _ENOUGH_MS and self.operation not in _SHORT_CALLS:
            raise BadCall(f"{self.name} begins {self.operation} when its time is up")
        if fault is Fault.TIME_IS_UP:
            self._remaining_ms = _LITTLE_MS
        self._world.actor = self.name
        try:
            if fault is Fault.ONE_BY_ONE:
                self._writes = self._world.rows_of(self.waiting[1])
                self._write_next()
                return
            answer = play(fault, *self.waiting, self._world.call)
        except Dies:
            self.die()
        except PLAYED as failure:
            self._resume(partial(self._greenlet.throw, failure))
        else:
            self._resume(partial(self._greenlet.switch, answer))

    def die(self) -> None:
        """Nothing that it does has an effect any more."""
        self.is_dead = self.is_over = True
        self.waiting = None
        self._greenlet.throw(GreenletExit)

    def await_answer(self, operation: str, request: Request) -> Any:
        """To be called by its own code, in its greenlet."""
        if self.is_dead:
            raise GreenletExit
        self.waiting, self.asked_ms = (operation, request), self.now_ms
        assert self._greenlet.parent is not None
        return self._greenlet.parent.switch()

    def _write_next(self) -> None:
        self._writes.pop(0)()
        if not self._writes:
            self._resume(partial(self._greenlet.switch, {}))

    def _resume(self, run: Callable[[], Any]) -> None:
        self.waiting = None
        run()

    def _run(self, *_: Any) -> None:
        answer: Any = None
        try:
            answer = self._work(self)
        except GreenletExit:
            pass  # dead
        except Exception as failure:
            answer = failure
        if not self.is_dead:
            self.is_over = True
            self._ended(answer)


class Move(NamedTuple):
    """Something that can happen by itself, once at most, such as time that passes."""

    name: str
    happens: Callable[[], None]


class Option(NamedTuple):
    """What may come next."""

    who: Process | Move
    fault: Fault | None


class Step(NamedTuple):
    """What came next. operation: None where something happened by itself, empty where a process began."""

    who: str
    operation: str | None
    fault: Fault | None

    def __str__(self) -> str:
        if self.operation is None:
            return self.who
        return f"{self.who}: {self.operation or 'begins'}" + (f" – {self.fault.value}" if self.fault else "")


@dataclass
class Play:
    """One schedule of a scope. choose: gets the options, of which there are several, and returns a number.

    most_faults: of the whole play. faults: those that can befall a call. check: raises where something happened that
    never may. begins: whether a process's beginning is a step of its own, for where it reads the clock.
    """

    world: World
    processes: Sequence[Process]
    choose: Callable[[Sequence[Option]], int]
    check: Callable[[], None]
    moves: list[Move] = field(default_factory=list)
    most_faults: int = 0
    faults: Callable[[str, Request], Sequence[Fault]] = lambda operation, _request: FAULTS.get(operation, ())
    begins: bool = False
    steps: list[Step] = field(default_factory=list)

    @property
    def is_disturbed(self) -> bool:
        """Whether something has gone wrong, or happened by itself."""
        return any(step.fault is not None or step.operation is None for step in self.steps)

    def run(self) -> None:
        while options := self._options():
            option = options[self.choose(options) if len(options) > 1 else 0]
            self.steps.append(Step(option.who.name, getattr(option.who, "operation", None), option.fault))
            self._take(option)
            self.check()

    def _options(self) -> list[Option]:
        options: list[Option] = []
        for process in self.processes:
            if process.is_over:
                continue
            if not process.has_begun:
                if self.begins:
                    options.append(Option(process, None))
                    continue
                process.begin()
                if process.is_over:
                    continue
            options.append(Option(process, None))
            if self.most_faults > 0 and process.waiting and not process.is_writing:
                options += [Option(process, fault) for fault in self.faults(*process.waiting)]
        if options:
            options += [Option(move, None) for move in self.moves]
        return options

    def _take(self, option: Option) -> None:
        who, fault = option
        if isinstance(who, Move):
            self.moves.remove(who)
            who.happens()
        elif not who.has_begun:
            who.begin()
        else:
            self.most_faults -= fault is not None
            who.go_on(fault)


def alone(world: World, work: Callable[[Process], Any], skew_ms: int = 0) -> Any:
    """What `work` returns, or raises, where nothing befalls it and nobody else is at it."""
    answers: list[Any] = []
    process = Process("last", world, work, answers.append, skew_ms)
    process.begin()
    while not process.is_over:
        process.go_on(None)
    return answers[0]


class Client:
    """A client of any service: each call of it is a stop of the process that makes it."""

    def __init__(self, operations: Mapping[str, str]) -> None:
        for method, operation in operations.items():
            setattr(self, method, lambda _operation=operation, **request: stop(_operation, request))


def this_process() -> Process:
    """Whose turn it is."""
    turns = getcurrent()
    assert isinstance(turns, _Turns)
    return turns.process


def stop(operation: str, request: Request) -> Any:
    """Wait for a turn, and for the answer."""
    return this_process().await_answer(operation, request)


class FirstOnly:
    """Chance without chance: the same play has to go the same way."""

    def randint(self, least: int, _most: int) -> int:
        return least

    def randrange(self, _stop: int) -> int:
        return 0

    def uniform(self, least: float, _most: float) -> float:
        return least

    def shuffle(self, _values: list[Any]) -> None:
        return


@contextmanager
def deterministic() -> Iterator[None]:
    """The library without pauses, chance, threads, signals and output; its clock is that of the running process."""

    def now_ms() -> int:
        return this_process().now_ms

    def owner() -> str:
        process = this_process()
        return f"{process.name}, call {process.calls}"

    first = FirstOnly()
    with (
        mock.patch.object(telemetry, "now_ms", now_ms),
        mock.patch.object(telemetry, "_begin", lambda _name: None),
        mock.patch.object(telemetry, "_emit", lambda *_: None),
        mock.patch.object(telemetry, "_print", lambda *_: None),
        mock.patch.object(telemetry, "_log", lambda *_: None),
        mock.patch.object(calls, "pause", lambda *_: None),
        mock.patch.object(calls, "_random", first),
        mock.patch.object(backoff, "_random", first),
        mock.patch.object(reconciliation, "_random", first),
        mock.patch.object(side_by_side, "CALLS", 1),
        mock.patch.object(claims, "_new_owner", owner),
        mock.patch.object(attempt, "call_within", lambda _seconds, code: code()),
    ):
        yield
