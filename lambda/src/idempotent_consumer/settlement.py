"""What is done with messages whose events have their verdicts: dead letters, backoff, logs and the answer."""

from collections.abc import Callable, Sequence
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict, partial_batch_response
from idempotent_consumer.aws import Budget
from idempotent_consumer.backoff import Postponement
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import Delivery
from idempotent_consumer.message import Message
from idempotent_consumer.report import Report


class Misconfigured(RuntimeError):
    """Nothing of the batch could be settled for want of a right, a resource or a plan that makes sense.

    Failing the invocation returns the whole batch and, unlike a partial response, makes the poller slow down.
    """


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
