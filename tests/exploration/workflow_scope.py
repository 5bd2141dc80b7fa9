"""Scopes of the workflow: the real starter and guard, and between them the states of the definition.

What stands around them, and the law, is the model of the workflow's own test (`tests.handler.workflow_model`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ConnectionClosedError

from idempotent_consumer.effect import Retryable
from idempotent_consumer.time_limit import TimeIsUp
from tests.exploration.faults import Fault, Request
from tests.exploration.pipeline_law import Violation
from tests.exploration.scheduling import Move, Play, Process, alone, stop, this_process
from tests.exploration.search import Choose, bound_of, count_of
from tests.handler import workflow_model
from tests.handler.workflow_model import RETENTION_SECONDS, Execution, Message, drained

# Turns until nothing is left to do.
MOST_TURNS = 100
# A guard that dies looks to Step Functions like one that is throttled, or whose answer is lost.
TASK = (Fault.LOST_ANSWER, Fault.THROTTLED, Fault.REPEATED)
STARTER = (Fault.DIES_BEFORE, Fault.DIES_AFTER, *TASK)
EFFECT = (Fault.LOST_ANSWER, Fault.REFUSED, Fault.TIMED_OUT)


class World(workflow_model.World):
    """Each call is a stop of the starter or the execution that makes it."""

    def __init__(self, guard: str) -> None:
        super().__init__(guard, has_key=True, is_idempotent=True)
        self.actor = ""
        self.is_calm = True
        self.play: Play
        self.interfere = self._call
        self.decide = self._ask

    def call(self, operation: str, request: Request) -> Any:
        return "applied" if operation == "Effect" else request["effect"]()

    def rows_of(self, request: Request) -> list[Callable[[], None]]:
        raise AssertionError("a workflow has no transactions")

    def buried(self) -> set[str]:
        """The bodies in the dead-letter queue; where EventBridge tells of an execution alone, as that has it."""
        given = {execution.arn: execution.given["body"] for execution in self.executions.values()}
        told = [json.loads(letter.body) for letter in self.letters if '"aws.states"' in letter.body]
        return {letter.body for letter in self.letters} | {given[each["detail"]["executionArn"]] for each in told}

    @property
    def wrote(self) -> Mapping[str, tuple[str, str]]:
        """Which state of which execution wrote a row last."""
        return self._wrote

    def expire(self) -> None:
        """All claims are past their time to live, and DynamoDB deletes them."""
        self.now_ms += (RETENTION_SECONDS + 1) * 1000
        for key in list(self.rows):
            self.sweep(key)

    def _call(self, effect: Callable[[], Any]) -> Any:
        if self.is_calm:
            return effect()
        return stop("Start" if this_process().name.startswith("starter") else "Call", {"effect": effect})

    def _ask(self) -> str:
        """What becomes of an effect."""
        if self.is_calm:
            return "applied"
        try:
            return str(stop("Effect", {}))
        except Retryable:
            return "not-applied"
        except ConnectionClosedError:
            return "unknown"
        except TimeIsUp:
            return "unknown-idle"


@dataclass(frozen=True)
class WorkflowScope:
    """See `search.Scope`. bodies: a message each, with an execution of its own. redelivered: messages that a further
    starter gets while the executions run. moves: of `World`, each happens once at most. is_fresh: two starters get all
    messages, and the executions run when they are done.
    """

    name: str
    about: str
    guard: str
    bodies: Sequence[str]
    most_faults: int
    redelivered: Sequence[str] = ()
    moves: Sequence[str] = ()
    schedules: int | None = None
    is_fresh: bool = False

    @property
    def bound(self) -> str:
        if self.is_fresh:
            return bound_of("2 starters", self.most_faults, self.moves, self.schedules)
        who = count_of(len(self.bodies), "execution")
        who += " and a starter" if self.redelivered else ""
        return bound_of(who, self.most_faults, self.moves, self.schedules)

    def play(self, choose: Choose) -> Play:
        world = World(self.guard)
        for body in self.bodies:
            world.send(body)
        messages = list(world.queue)
        starters = [messages, messages] if self.is_fresh else []
        if not self.is_fresh:
            _run(world, lambda: world.deliver(messages))
            world.queue.clear()
        if self.redelivered:
            starters.append([each for each in messages if each.id in self.redelivered])
        executions = list(world.executions.values())
        world.is_calm = False
        processes = [self._execution(number, each, world) for number, each in enumerate(executions, 1)]
        processes += [self._starter(number, each, world) for number, each in enumerate(starters, 1)]

        def check() -> None:
            if world.complaints:
                raise Violation("; ".join(world.complaints))

        moves = [Move(name, getattr(world, name)) for name in self.moves]
        play = Play(world, processes, choose, check, moves, self.most_faults, _faults)
        world.play = play
        return play

    def state(self, play: Play) -> Hashable:
        world: Any = play.world
        return (
            world.now_ms,
            repr(sorted(world.rows.items())),
            repr([(each.status, each.state, each.data, each.life, each.tries) for each in world.executions.values()]),
            tuple(sorted((letter.body, letter.reason) for letter in world.letters)),
            tuple(sorted(world.effects.items())),
            tuple(sorted(world.ran)),
            tuple(sorted(world.lives.items())),
            tuple(sorted(world.wrote.items())),
            tuple(message.id for message in world.queue),
            tuple(process.place for process in play.processes),
            len(play.moves),
        )

    def end(self, play: Play) -> None:
        """What was started ends, and all that has been done is asked for once more."""
        world: Any = play.world
        world.is_calm = True
        self._drain(world)
        lost = set(self.bodies) - world.ran - world.buried()
        if lost:
            raise Violation(f"lost: {lost}")
        before = dict(world.effects)
        known = set(world.executions)
        completed = {key for key, row in world.rows.items() if row["status"]["S"] == "COMPLETED"}
        for body in sorted(world.ran):
            world.send(body)
        self._drain(world)
        for name, execution in world.executions.items():
            is_duplicate = name not in known and execution.given["key"] in completed
            if is_duplicate and execution.output.get("status") != "skipped" and "id-reused" not in execution.error:
                raise Violation(f"a duplicate ends as {execution.status} {execution.output} {execution.error}")
        again = {place for place, number in world.effects.items() if number != before.get(place, 0)}
        if any(key in completed for key, _ in again):
            raise Violation(f"the effect runs again: {again}")
        if world.complaints:
            raise Violation("; ".join(world.complaints))

    def _execution(self, number: int, execution: Execution, world: World) -> Process:
        def work(_process: Process) -> None:
            while execution.status == "RUNNING":
                world.step(execution)

        return Process(f"execution {number}", world, work, _raise)

    def _starter(self, number: int, messages: Sequence[Message], world: World) -> Process:
        name = f"starter {number}"

        def ended(answer: Any) -> None:
            _raise(answer)
            has_faults = any(step.who == name and step.fault for step in world.play.steps)
            if len(answer) < len(messages) and not has_faults:
                raise Violation("a message comes back, although nothing has gone wrong")
            world.queue = [each for each in world.queue if each not in answer]

        return Process(name, world, lambda _: world.deliver(list(messages)), ended)

    def _drain(self, world: World) -> None:
        def drain() -> None:
            for turn, _ in enumerate(drained(world)):
                if turn > MOST_TURNS:
                    raise Violation("it does not come to an end")

        _run(world, drain)


def _faults(operation: str, _request: Request) -> Sequence[Fault]:
    return {"Effect": EFFECT, "Start": STARTER}.get(operation, TASK)


def _run(world: World, work: Callable[[], Any]) -> None:
    """Do it while nobody else is at it, with the world's clock."""
    failure = alone(world, lambda _: work())
    if isinstance(failure, Exception):
        raise failure


def _raise(answer: Any) -> None:
    if isinstance(answer, Exception):
        raise Violation(f"it raised {answer!r}") from answer
