"""The queue and its poller: hands messages to the consumer, deletes what it settles, delivers the rest again."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from idempotent_consumer import calls, side_by_side, telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.delivery import Delivery
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Planner
from idempotent_consumer.settings import Settings
from idempotent_consumer.settlement import Misconfigured
from idempotent_consumer.testing.cloud import Cloud
from idempotent_consumer.testing.events import Message
from idempotent_consumer.testing.faults import Killed

# As batch_size by default.
BATCH = 10
# So often a batch is delivered, and so often all that is left, if each time something moves.
_MOST_DELIVERIES = 8
_FINAL = (Outcome.APPLIED, Outcome.SUPERSEDED, Outcome.REJECTED, Outcome.CONFLICT)


@contextmanager
def quiet() -> Iterator[None]:
    """Without pauses, threads, metrics and log lines: there would be a hundred of each."""
    logger = logging.getLogger("idempotent_consumer")
    with (
        patch.object(calls, "pause", lambda *_: None),
        patch.object(side_by_side, "CALLS", 1),
        patch.object(telemetry, "emit_metrics", lambda *_: None),
        patch.object(logger, "disabled", True),
    ):
        yield


@dataclass(slots=True)
class Poller:
    """verdicts: the first one by label that settles an event, else its last one. dead_by_plan: labels of events that
    were rejected without a look at any table. lost: labels of what was deleted and is settled nowhere. last: by message
    id, the verdicts of its last delivery; nothing of one that its group holds back.
    """

    cloud: Cloud
    settings: Settings
    plan: Planner
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    dead_by_plan: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)
    left: list[Message] = field(default_factory=list)
    last: dict[str, dict[str, Verdict]] = field(default_factory=dict)

    def settle(self, messages: Sequence[Message], *, size: int = BATCH, receive_count: int = 1) -> None:
        """Deliver in batches, and again what comes back, until all is settled or nothing moves any more."""
        ids = {message.id for message in messages}
        self.left = [message for message in self.left if message.id not in ids]
        self.last = {message_id: verdicts for message_id, verdicts in self.last.items() if message_id not in ids}
        left = self._round(messages, size, receive_count)
        for _ in range(_MOST_DELIVERIES):
            before = self._progress
            still_left = self._round(left, size, 2)
            is_at_rest = len(still_left) == len(left) and before == self._progress
            left = still_left
            if is_at_rest:
                break
        self.left += left

    def _round(self, messages: Sequence[Message], size: int, receive_count: int) -> list[Message]:
        """A FIFO queue gives out no message behind one of its group that is still there."""
        left: list[Message] = []
        waiting = list(messages)
        while waiting:
            held = {message.group for message in (*self.left, *left) if message.group is not None}
            left += [message for message in waiting if message.group in held]
            waiting = [message for message in waiting if message.group not in held]
            left += self._repeat(waiting[:size], receive_count)
            waiting = waiting[size:]
        return left

    def _repeat(self, batch: Sequence[Message], receive_count: int) -> Sequence[Message]:
        """One batch until nothing moves; so a fault never lets later messages overtake."""
        for repetition in range(_MOST_DELIVERIES):
            before = self._progress
            batch = self._deliver(batch, receive_count + repetition)
            if not batch or before == self._progress:
                break
        return batch

    @property
    def _progress(self) -> tuple[int, bool]:
        return self.cloud.history.steps, self.cloud.has_struck

    def _deliver(self, batch: Sequence[Message], receive_count: int) -> Sequence[Message]:
        """One invocation of a new process; what is left of the batch."""
        consumer = _Watched(self.settings, self.cloud.clients, self.plan)
        is_outage = self.cloud.fault is not None and bool(self.cloud.fault.operation)
        try:
            answer = consumer.handle({"Records": [_record(message, receive_count) for message in batch]}, _Context())
        except Killed:
            return batch
        except Misconfigured:
            answer = {"batchItemFailures": [{"itemIdentifier": message.id} for message in batch]}
        if is_outage and self.cloud.has_struck:
            self.cloud.fault = None
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        self._note(consumer.seen, batch)
        self._look_for_lost([message for message in batch if message.id not in failed])
        return [message for message in batch if message.id in failed]

    def _note(self, deliveries: Sequence[Delivery], batch: Sequence[Message]) -> None:
        for delivery, message in zip(deliveries, batch, strict=True):
            self.last[message.id] = {
                label: work.verdict for work, label in zip(delivery.works, message.labels, strict=True)
            }
            for work, label in zip(delivery.works, message.labels, strict=True):
                known = self.verdicts.get(label)
                if known is None or known.outcome not in _FINAL:
                    self.verdicts[label] = work.verdict
                if work.verdict.outcome.is_dead and work.commit is None:
                    self.dead_by_plan.add(label)

    def _look_for_lost(self, deleted: Sequence[Message]) -> None:
        buried = {letter.body for letter in self.cloud.history.letters if letter.reason}
        for message in deleted:
            if message.body in buried:
                continue
            ignored = [label for label in message.labels if self.verdicts[label].outcome is Outcome.IGNORED]
            self.lost += [
                each.label
                for each in message.events
                if each.label not in ignored
                and not (isinstance(each.event, Event) and self.cloud.history.holds(each.event))
            ]


class _Watched(Consumer):
    """A consumer that shows its verdicts instead of logging them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: list[Delivery] = []

    def _log(self, deliveries: Sequence[Delivery]) -> None:
        self.seen += deliveries


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def _record(message: Message, receive_count: int) -> dict[str, Any]:
    """As Lambda hands it over."""
    group = {} if message.group is None else {"MessageGroupId": message.group, "MessageDeduplicationId": message.id}
    return {
        "messageId": message.id,
        "receiptHandle": message.id,
        "body": message.body,
        "attributes": {"ApproximateReceiveCount": str(receive_count), "SentTimestamp": "1893553445120", **group},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:kit{'' if message.group is None else '.fifo'}",
    }
