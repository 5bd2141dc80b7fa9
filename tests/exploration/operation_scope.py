"""Scopes of the operation: who works at what, at which provider, and what may befall them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.operation_settings import OperationSettings
from tests.exploration.operation import CLIENTS, EFFECT_MS, LEASE_MS, SETTLE_MS, OperationWorld, charge, look_up
from tests.exploration.pipeline import Message
from tests.exploration.scheduling import Move, Play, Process, alone
from tests.exploration.search import Choose, bound_of, count_of
from tests.handler.support import LEDGER

# Deliveries of what comes back, until nothing does.
MOST_ROUNDS = 6
POLICIES = ("park", "provider_key", "reconcile")


@dataclass(frozen=True)
class OperationScope:
    """See `search.Scope`. deliveries: the messages of each invocation. skews_ms: of its clock. policy: what is done
    about an outcome that nobody knows. is_mortal: see `OperationWorld`. moves: of it, each happens once at most.
    """

    name: str
    about: str
    messages: Sequence[Message]
    deliveries: Sequence[Sequence[str]]
    most_faults: int
    policy: str
    skews_ms: Sequence[int] = ()
    moves: Sequence[str] = ()
    is_mortal: bool = True
    schedules: int | None = None

    @property
    def bound(self) -> str:
        return bound_of(count_of(len(self.deliveries), "worker"), self.most_faults, self.moves, self.schedules)

    def play(self, choose: Choose) -> Play:
        honours_keys = self.policy == "provider_key"
        world = OperationWorld(self.messages, honours_keys=honours_keys, is_mortal=self.is_mortal)
        world.processes = [self._delivery(number, world) for number in range(len(self.deliveries))]
        moves = [Move(name, getattr(world, name)) for name in self.moves]
        return Play(world, world.processes, choose, world.check, moves, self.most_faults, begins=bool(moves))

    def state(self, play: Play) -> Hashable:
        world: Any = play.world
        return world.key(), tuple(process.place for process in play.processes), len(play.moves)

    def end(self, play: Play) -> None:
        """What has not been deleted comes back, each time some hours later."""
        world: Any = play.world
        for received in range(3, 3 + MOST_ROUNDS):
            world.wait()
            for message_ids in self.deliveries:
                back = [each for each in message_ids if each not in world.deleted]
                if back:
                    self._deliver(world, back, received)
        for message_ids in self.deliveries:
            self._deliver(world, message_ids, 1)
        world.check_end()

    def _deliver(self, world: OperationWorld, message_ids: Sequence[str], received: int) -> None:
        records = self._records(message_ids, received)
        answer = alone(world, lambda process: self._consumers[0].handle({"Records": records}, process))
        world.settle(message_ids, answer)
        world.check()

    def _delivery(self, number: int, world: OperationWorld) -> Process:
        message_ids = self.deliveries[number]
        records = self._records(message_ids, number + 1)
        return Process(
            f"worker {number + 1}",
            world,
            lambda process: self._consumers[number].handle({"Records": records}, process),
            lambda answer: world.settle(message_ids, answer),
            skew_ms=self.skews_ms[number] if self.skews_ms else 0,
        )

    def _records(self, message_ids: Sequence[str], received: int) -> list[dict[str, Any]]:
        return [self._received[message_id, received] for message_id in message_ids]

    @cached_property
    def _received(self) -> dict[tuple[str, int], dict[str, Any]]:
        counts = range(1, 3 + MOST_ROUNDS)
        return {(each.id, number): each.received(number) for each in self.messages for number in counts}

    # The same processes for all plays: nothing may survive an invocation (I8).

    @cached_property
    def _consumers(self) -> list[OperationConsumer]:
        settings = OperationSettings.from_environment(
            {
                "CONSUMER_NAME": "orders",
                "LEDGER_TABLE": LEDGER,
                "DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead-letter",
                "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
                "VISIBILITY_TIMEOUT_SECONDS": "180",
                "BACKOFF_MAX_SECONDS": "900",
                "MAX_RECEIVE_COUNT": "1000",
                "OPERATION_UNCERTAIN": self.policy,
                "OPERATION_EFFECT_TIMEOUT_SECONDS": str(EFFECT_MS // 1000),
                "OPERATION_LEASE_MS": str(LEASE_MS),
                "OPERATION_SETTLE_SECONDS": str(SETTLE_MS // 1000),
                "OPERATION_MAX_ATTEMPTS": "20",
                "OPERATION_MAX_AGE_SECONDS": "82800",
                "OPERATION_RETRY_SECONDS": "30",
            }
        )
        operation = Operation(charge, look_up if self.policy == "reconcile" else None)
        return [OperationConsumer(settings, CLIENTS, operation) for _ in self.deliveries]
