"""Hundreds of messages, each delivered up to five times and replayed, while processes are killed at random."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import psutil

from local.waiting import wait_for
from tests.e2e.workflows import Body, Message, Workflow

T = TypeVar("T")

MESSAGES = 500
SEED = 7
SECONDS = 300.0


class Killer:
    """Kills processes of a workflow's functions, never of its effect, now and then as the work goes on."""

    def __init__(self, workflow: Workflow) -> None:
        self.killed: Counter[str] = Counter()
        self._workflow = workflow
        self._functions = [name for name in (workflow.starter, workflow.guard) if name]
        self._chance = random.Random(SEED)
        self._threads: list[threading.Timer] = []

    def threaten(self) -> None:
        """Perhaps kill a process in a moment, while it does what is asked of it next."""
        if self._chance.random() < 0.15:
            function = self._chance.choice(self._functions)
            self._threads.append(threading.Timer(self._chance.uniform(0, 0.6), self._kill, [function]))
            self._threads[-1].start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join()

    def _kill(self, function: str) -> None:
        for process in self._workflow.emulator.workers(function)[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                self.killed[function] += 1


@dataclass
class Storm:
    """What has been delivered to one workflow. repeats: deliveries of a message beside SQS's own one."""

    workflow: Workflow
    first: list[Message] = field(default_factory=list)
    again: list[Message] = field(default_factory=list)
    repeats: int = 0
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def keys(self) -> list[str]:
        return [f"storm-{self.workflow.starter}-{number}" for number in range(MESSAGES)]

    def arns(self, messages: Sequence[Message]) -> list[str]:
        """The executions of these messages, in their order."""
        return [self.workflow.execution_arn(key, message.id) for key, message in zip(self.keys, messages, strict=True)]

    def rage(self) -> None:
        chance, killer = random.Random(SEED), Killer(self.workflow)
        try:
            bodies = [{"id": key, "number": number} for number, key in enumerate(self.keys)]
            for some in parts(bodies, 5):
                sent = self._send(some, killer)
                copies = [message for message in sent for _ in range(chance.randint(0, 4))]
                chance.shuffle(copies)
                self._deliver(copies, killer)
                self.first += sent
                self.repeats += len(copies)
            self._wait(self.first)
            # Replayed: the very messages, and others of the same content.
            self._deliver(self.first, killer)
            for some in parts(bodies, 5):
                self.again += self._send(some, killer)
            self._wait(self.again)
        finally:
            killer.end()
        self.killed = killer.killed

    def _send(self, bodies: Sequence[Body], killer: Killer) -> list[Message]:
        """Each execution at a time has two processes of the emulator: more than some are slower, not faster."""
        wait_for(lambda: self.workflow.running() <= 2, "there is room for more", seconds=SECONDS, interval=0.1)
        killer.threaten()
        return self.workflow.send_all(bodies)

    def _deliver(self, messages: Sequence[Message], killer: Killer) -> None:
        for ten in parts(messages, 10):
            killer.threaten()
            self.workflow.deliver(*ten)

    def _wait(self, messages: Sequence[Message]) -> None:
        """Until each of them has its execution, and all of these have ended."""

        def is_over() -> bool:
            return self.workflow.queue.depth().is_empty and self.workflow.running() == 0

        wait_for(is_over, f"{self.workflow.starter} has no work", seconds=SECONDS, interval=0.5)
        arns = self.arns(messages)
        wait_for(lambda: None not in self.workflow.executions(arns), "all executions have ended", seconds=SECONDS)


def parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
