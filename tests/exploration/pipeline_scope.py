"""Scopes of the pipeline: which messages are delivered to whom, and what may befall them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from idempotent_consumer.consumer import Consumer
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event
from idempotent_consumer.intake import open_message
from idempotent_consumer.message import read_messages
from idempotent_consumer.plan import Notification, Plan, Planner, Put, Update
from idempotent_consumer.reconciler import ScheduledReconciler
from idempotent_consumer.settings import ReconcilerSettings, Settings
from tests.exploration.faults import Fault
from tests.exploration.pipeline import CLIENTS, Known, Message, PipelineWorld
from tests.exploration.pipeline_law import STOCK
from tests.exploration.scheduling import Move, Play, Process, alone
from tests.exploration.search import Choose, bound_of, count_of
from tests.handler.support import BUSINESS, LEDGER

ENVIRONMENT = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": LEDGER,
    "BUSINESS_TABLE": BUSINESS,
    "TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:orders",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dead-letter",
    "RECONCILER_THRESHOLD_SECONDS": "900",
}
# What its clock is ahead: it takes for stuck what was committed a moment ago.
HASTY_MS = 901_000
# Deliveries of what comes back, until nothing does.
MOST_ROUNDS = 6


def count(event: Event) -> Plan:
    """A plan that counts its events."""
    return Plan([Update(STOCK, key={"sku": "shelf"}, add={"reserved": 1})], Notification({"id": event.id}))


def other_code(event: Event) -> Plan:
    """A plan of later code, which writes and tells something else."""
    return Plan([Put(BUSINESS, {"id": event.id, "total": 1, "colour": "red"})], Notification({"colour": "red"}))


def silent(event: Event) -> Plan:
    """A plan without a notification."""
    return Plan([Put(BUSINESS, {"id": event.id, "total": 1})])


@dataclass(frozen=True)
class Delivery:
    """One invocation. received: for the how manieth time. planner: the code that it runs; None: the shipped one."""

    message_ids: Sequence[str]
    received: int = 1
    planner: Planner | None = None


@dataclass(frozen=True)
class PipelineScope:
    """See `search.Scope`. reconcilers: runs of the reconciler. moves: of `PipelineWorld`, each happens once at most."""

    name: str
    about: str
    messages: Sequence[Message]
    deliveries: Sequence[Delivery]
    most_faults: int
    environment: Mapping[str, str] = field(default_factory=dict)
    reconcilers: int = 0
    moves: Sequence[str] = ()
    schedules: int | None = None
    faults: Callable[[str], Sequence[Fault]] | None = None

    @property
    def bound(self) -> str:
        who = count_of(len(self.deliveries), "delivery", "deliveries")
        who += f" and {count_of(self.reconcilers, 'reconciler')}" if self.reconcilers else ""
        return bound_of(who, self.most_faults, self.moves, self.schedules, "death" if self.faults else "fault")

    def play(self, choose: Choose) -> Play:
        world = PipelineWorld(
            self.messages, self._events, is_counting=any(each.planner is count for each in self.deliveries)
        )
        processes = [self._delivery(number, each, world) for number, each in enumerate(self.deliveries)]
        processes += [self._reconciliation(number, world) for number in range(self.reconcilers)]
        moves = [Move(name, getattr(world, name)) for name in self.moves]
        play = Play(world, processes, choose, world.law.check, moves, self.most_faults)
        own = self.faults
        play.faults = world.faults if own is None else lambda operation, _request: own(operation)
        world.play = play
        return play

    def state(self, play: Play) -> Hashable:
        world: Any = play.world
        return world.key(), tuple(process.place for process in play.processes), len(play.moves)

    def end(self, play: Play) -> None:
        """What has not been deleted comes back, in batches as large as before, to the code of the last delivery."""
        world: Any = play.world
        last = len(self.deliveries) - 1
        if self.reconcilers:
            world.law.reconcile(alone(world, self._reconciler.handle, HASTY_MS))
            world.law.check_reconciled()
        for received in range(3, 3 + MOST_ROUNDS):
            for delivery in self.deliveries:
                back = [each for each in delivery.message_ids if each not in world.law.deleted]
                if back:
                    self._deliver(world, last, back, received)
        # All that was delivered is delivered once more, long after.
        for delivery in self.deliveries:
            self._deliver(world, last, delivery.message_ids, 1)
        world.law.check_end()

    def _deliver(self, world: PipelineWorld, code: int, message_ids: Sequence[str], received: int) -> None:
        records = self._records(message_ids, received)
        answer = alone(world, lambda process: self._consumers[code].handle({"Records": records}, process))
        world.law.settle(message_ids, answer, has_faults=False)
        world.law.check()

    def _delivery(self, number: int, delivery: Delivery, world: PipelineWorld) -> Process:
        records = self._records(delivery.message_ids, delivery.received)
        consumer = self._consumers[number]
        return Process(
            f"delivery {number + 1}",
            world,
            lambda process: consumer.handle({"Records": records}, process),
            lambda answer: world.law.settle(delivery.message_ids, answer, world.play.is_disturbed),
        )

    def _reconciliation(self, number: int, world: PipelineWorld) -> Process:
        return Process(f"reconciler {number + 1}", world, self._reconciler.handle, world.law.reconcile, HASTY_MS)

    def _records(self, message_ids: Sequence[str], received: int) -> list[dict[str, Any]]:
        return [self._received[message_id, received] for message_id in message_ids]

    # The same processes for all plays: nothing may survive an invocation (I8).

    @cached_property
    def _consumers(self) -> list[Consumer]:
        settings = Settings.from_environment({**ENVIRONMENT, **self.environment})
        shipped = declarative_planner(settings)
        return [Consumer(settings, CLIENTS, delivery.planner or shipped) for delivery in self.deliveries]

    @cached_property
    def _reconciler(self) -> ScheduledReconciler:
        return ScheduledReconciler(ReconcilerSettings.from_environment(ENVIRONMENT), CLIENTS)

    @cached_property
    def _received(self) -> Mapping[tuple[str, int], dict[str, Any]]:
        counts = range(1, 3 + MOST_ROUNDS)
        return {(each.id, count): each.received(count) for each in self.messages for count in counts}

    @cached_property
    def _events(self) -> Mapping[str, Sequence[Known]]:
        """The events of each message, read once for all by the product's own code."""
        settings = Settings.from_environment({**ENVIRONMENT, **self.environment})
        known: dict[str, Sequence[Known]] = {}
        for message in self.messages:
            (read,) = read_messages({"Records": [message.received(1)]})
            events = [work.event for work in open_message(read, settings).works if work.event is not None]
            known[message.id] = [
                Known(event.id, event.fingerprint, str(settings.item.search(event.data)["id"])) for event in events
            ]
        return known
