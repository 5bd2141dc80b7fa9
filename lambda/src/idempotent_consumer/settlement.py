"""What is done with messages whose events have their verdicts: dead letters, backoff, logs, metrics and the answer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict, partial_batch_response
from idempotent_consumer.backoff import Postponement
from idempotent_consumer.calls import Budget
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import Delivery
from idempotent_consumer.message import Message


class Misconfigured(RuntimeError):
    """Nothing of the batch could be settled for want of a right, a resource or a plan that makes sense.

    Failing the invocation returns the whole batch and, unlike a partial response, makes the poller slow down.
    """


@dataclass(slots=True)
class Report:
    """Filled part by part; the events themselves are let go, so that a large batch does not pile them up.

    returning: ids of the messages that come back. event_ages_ms: of the others, from sent to done.
    """

    returning: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    event_ages_ms: list[int] = field(default_factory=list)
    receive_counts: list[int] = field(default_factory=list)

    def add(self, deliveries: Sequence[Delivery], returning: Collection[str], now_ms: int) -> None:
        """deliveries: messages with their last verdicts. now_ms: epoch milliseconds."""
        gone = [delivery.message for delivery in deliveries if delivery.message.id not in returning]
        self.returning += returning
        self.verdicts += (work.verdict for delivery in deliveries for work in delivery.works)
        self.event_ages_ms += (max(0, now_ms - message.sent_ms) for message in gone)
        self.receive_counts += (delivery.message.receive_count for delivery in deliveries)

    @property
    def is_misconfigured(self) -> bool:
        """Nothing was settled, and at least one event for want of a right or a resource."""
        is_nothing_settled = len(self.returning) == len(self.receive_counts)
        return is_nothing_settled and any(verdict.is_misconfigured for verdict in self.verdicts)


def fault(error: BaseException, message: Message) -> Verdict:
    """The verdict on an event that met a fault of our own, which is logged."""
    telemetry.log_fault(message.id, error)
    return Verdict(Outcome.RETRY, "fault", type(error).__name__)


def dead_letter(delivery: Delivery, queue: DeadLetterQueue, budget: Budget) -> None:
    """Send a message that can never succeed to the dead-letter queue, once none of its events is under way."""
    if delivery.is_dead_lettered or delivery.is_under_way or not delivery.verdict.outcome.is_dead:
        return
    try:
        failure = queue.send(delivery.message, delivery.verdict.reason, delivery.detail, budget)
    except Exception as error:
        failure = fault(error, delivery.message)
    telemetry.log_verdict(delivery.message.id, delivery.event_id, delivery.verdict)
    delivery.is_dead_lettered = failure is None
    for work in delivery.works:
        if work.verdict.outcome.is_dead:
            work.verdict = failure or work.verdict


def returning_messages(deliveries: Iterable[Delivery], held: set[str]) -> list[str]:
    """The messages that have to come back; on FIFO with all that follow in their group, committed or not.

    held: the groups of which a message comes back, added to here.
    """
    returning: list[str] = []
    for delivery in deliveries:
        message = delivery.message
        if delivery.verdict.outcome.is_reported or message.group in held:
            returning.append(message.id)
            if message.group is not None:
                held.add(message.group)
    return returning


def postpone(deliveries: Sequence[Delivery], postponement: Postponement, budget: Budget) -> None:
    """Hide messages that come back; they do so in any case."""
    try:
        postponement.postpone([(delivery.message, delivery.retry_at_ms) for delivery in deliveries], budget)
    except Exception as error:
        telemetry.log_fault("", error)


def log(deliveries: Sequence[Delivery]) -> None:
    """Log what became of events, but for what goes without saying and for dead letters, logged as they are sent."""
    for work in (work for delivery in deliveries for work in delivery.distinct):
        if work.verdict.reason and not work.verdict.outcome.is_dead:
            telemetry.log_verdict(work.message.id, work.event_id, work.verdict)


def answer(report: Report, emit: Callable[[], None]) -> dict[str, Any]:
    """The partial batch response. emit: prints the metrics. Raises Misconfigured where nothing could be settled."""
    try:
        emit()
    except Exception as error:  # must not bring back what has been settled
        telemetry.log_fault("", error)
    if report.is_misconfigured:
        raise Misconfigured("nothing of the batch could be settled: the log names what was refused")
    return partial_batch_response(report.returning)
