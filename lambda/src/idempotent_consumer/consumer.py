"""The order of steps: decode, plan, commit, publish, mark, answer.

A process may die between any two lines here. What then comes back is sorted out by the ledger: an event that it
does not hold is new, one that is `pending` is published again from its row, one that is `sent` is done.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.answer import BLOCKED, Outcome, Verdict, partial_batch_response
from idempotent_consumer.aws import MISCONFIGURED_REASONS, Budget, Clients, LambdaContext
from idempotent_consumer.commit import Commit, prepare, sent_attributes
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import (
    Delivery,
    Work,
    awaiting_publishing,
    fail_events,
    hold_group,
    reported_messages,
    settle_events,
)
from idempotent_consumer.envelope import Data, open_envelope
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.message import Message, read_messages
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.plan import Planner
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings

# A large batch goes through all steps part by part. Were it committed as a whole first, a batch that takes longer
# than the function may would be committed time and again and never published. 25: what one marking call takes.
SLICE = 25


class Misconfigured(RuntimeError):
    """Nothing of the batch could be settled for want of a right or a resource.

    Failing the invocation returns the whole batch and, unlike a partial response, makes the poller slow down.
    """


class Consumer:
    """Processes SQS messages. planner: a pure function from an event to its plan."""

    def __init__(self, settings: Settings, clients: Clients, planner: Planner) -> None:
        self._settings = settings
        self._planner = planner
        self._ledger = Ledger(clients.dynamodb, settings.ledger_table)
        self._outbox = Outbox(clients.sns, settings.topic_arn)
        self._dead_letters = DeadLetterQueue(clients.sqs, settings.dead_letter_queue_url)

    def handle(self, invocation: Any, context: LambdaContext) -> dict[str, Any]:
        """Process one invocation; returns the partial batch response.

        Raises UnexpectedInvocation when these are no SQS records, Misconfigured when nothing could be settled.
        """
        budget = Budget(context)
        messages = read_messages(invocation)
        deliveries: list[Delivery] = []
        held: set[str] = set()
        for start in range(0, len(messages), SLICE):
            part = [self._open(message) for message in messages[start : start + SLICE]]
            self._process(part, held, budget)
            deliveries += part
        return self._answer(deliveries)

    def _process(self, deliveries: Sequence[Delivery], held: set[str], budget: Budget) -> None:
        """All steps for a part of the batch. held: the FIFO groups in which nothing may be touched any more."""
        self._commit(deliveries, held, budget)
        pending = awaiting_publishing(deliveries)
        if pending:
            self._publish(pending, budget)
        if pending:
            self._mark(pending, budget)
        settle_events(pending)
        for delivery in deliveries:
            self._dead_letter(delivery, budget)
            hold_group(held, delivery)

    def _open(self, message: Message) -> Delivery:
        try:
            events = open_envelope(message.body, self._settings.envelope)
        except (Rejected, RecursionError) as error:
            events = [_rejection(error)]
        except Exception as error:
            return Delivery(message, [Work(message, None, None, _fault(error, message))])
        if not events:
            return Delivery(message, [Work(message, None, None, Verdict(Outcome.IGNORED))])
        return Delivery(message, [self._plan(message, data) for data in events])

    def _plan(self, message: Message, data: Data | Rejected) -> Work:
        """Whatever can never succeed is found here, before anything is written."""
        event: Event | None = None
        task: Commit | Rejected | None = None
        verdict = BLOCKED
        try:
            if isinstance(data, Rejected):
                raise data
            event_id = read_event_id(data, self._settings.event_id)
            event = Event(event_id, data, fingerprint(data, self._settings.fingerprint), message.group)
            task = prepare(event, self._planner(event), message.id, telemetry.now_ms(), self._settings)
        except (Rejected, RecursionError) as error:
            task = _rejection(error)
        except Exception as error:
            verdict = _fault(error, message)
        return Work(message, event, task, verdict)

    def _commit(self, deliveries: Sequence[Delivery], held: set[str], budget: Budget) -> None:
        """In the order of the queue. On FIFO the first event that is not settled holds up those behind it."""
        with telemetry.phase("commit") as annotations:
            for delivery in deliveries:
                if delivery.message.group in held:
                    for work in delivery.works:
                        work.verdict = BLOCKED
                else:
                    self._commit_delivery(delivery, budget)
                    self._dead_letter(delivery, budget)
                    hold_group(held, delivery)
            annotations.update(Counter(work.verdict.outcome.value for d in deliveries for work in d.works))

    def _commit_delivery(self, delivery: Delivery, budget: Budget) -> None:
        is_fifo = delivery.message.group is not None
        for index, work in enumerate(delivery.works):
            work.verdict = self._commit_work(work, budget)
            if is_fifo and (work.verdict.outcome.is_reported or work.verdict.outcome.is_dead):
                for later in delivery.works[index + 1 :]:
                    later.verdict = BLOCKED
                return

    def _commit_work(self, work: Work, budget: Budget) -> Verdict:
        try:
            if isinstance(work.task, Commit):
                return self._ledger.commit(work.task, budget)
            if isinstance(work.task, Rejected):
                # New code must not strand an event that older code has committed: its ledger row decides.
                known = self._ledger.recall(work.event, budget) if work.event else None
                return known or Verdict(Outcome.REJECTED, work.task.reason, work.task.detail)
            return work.verdict
        except Exception as error:
            return _fault(error, work.message)

    def _publish(self, pending: dict[str, list[Work]], budget: Budget) -> None:
        """One event id is published once, however many copies of it the batch holds."""
        notifications = {
            event_id: works[0].verdict.notification
            for event_id, works in pending.items()
            if works[0].verdict.notification is not None
        }
        with telemetry.phase("publish") as annotations:
            failures = _guarded(lambda: self._outbox.publish(notifications, budget), pending)
            annotations.update(published=len(pending) - len(failures), failed=len(failures))
        fail_events(pending, failures)

    def _mark(self, pending: dict[str, list[Work]], budget: Budget) -> None:
        """Only what has been published; an event that stays `pending` is published again."""
        message_ids = {event_id: works[0].message.id for event_id, works in pending.items()}
        sent = sent_attributes(telemetry.now_ms(), self._settings)
        with telemetry.phase("mark") as annotations:
            failures = _guarded(lambda: self._ledger.mark_sent(message_ids, sent, budget), pending)
            annotations.update(marked=len(pending) - len(failures), failed=len(failures))
        fail_events(pending, failures)

    def _dead_letter(self, delivery: Delivery, budget: Budget) -> None:
        """Send a message that can never succeed to the dead-letter queue, once none of its events is under way."""
        if delivery.is_dead_lettered or delivery.is_under_way or not delivery.verdict.outcome.is_dead:
            return
        try:
            failure = self._dead_letters.send(delivery.message, delivery.verdict.reason, delivery.detail, budget)
        except Exception as error:
            failure = _fault(error, delivery.message)
        telemetry.log_verdict(delivery.message.id, delivery.event_id, delivery.verdict)
        delivery.is_dead_lettered = failure is None
        for work in delivery.works:
            if work.verdict.outcome.is_dead:
                work.verdict = failure or work.verdict

    def _answer(self, deliveries: Sequence[Delivery]) -> dict[str, Any]:
        reported = reported_messages(deliveries)
        self._record(deliveries, reported)
        works = [work for delivery in deliveries for work in delivery.works]
        misconfigured = any(work.verdict.reason in MISCONFIGURED_REASONS for work in works)
        if misconfigured and len(reported) == len(deliveries):
            raise Misconfigured("nothing of the batch could be settled: the log names the calls that were refused")
        return partial_batch_response(reported)

    def _record(self, deliveries: Sequence[Delivery], reported: Sequence[str]) -> None:
        """Log and count. A fault here must not bring back what has been settled."""
        try:
            for work in (work for delivery in deliveries for work in delivery.distinct):
                if work.verdict.reason and not work.verdict.outcome.is_dead:
                    telemetry.log_verdict(work.message.id, work.event_id, work.verdict)
            returning = frozenset(reported)
            telemetry.emit_metrics(
                self._settings.consumer_name,
                [work.verdict for delivery in deliveries for work in delivery.works],
                [_age_ms(delivery.message) for delivery in deliveries if delivery.message.id not in returning],
                [delivery.message.receive_count for delivery in deliveries],
            )
        except Exception as error:
            telemetry.log_fault("", error)


def _guarded(call: Callable[[], dict[str, Verdict]], pending: Mapping[str, Sequence[Work]]) -> dict[str, Verdict]:
    """The failures by event id; a fault of our own fails all of them, and nothing else."""
    try:
        return call()
    except Exception as error:
        return {event_id: _fault(error, works[0].message) for event_id, works in pending.items()}


def _rejection(error: Rejected | RecursionError) -> Rejected:
    if isinstance(error, Rejected):
        return error
    return Rejected("nested-too-deep", "the body is nested too deep to be processed")


def _fault(error: Exception, message: Message) -> Verdict:
    telemetry.log_fault(message.id, error)
    return Verdict(Outcome.RETRY, "fault", type(error).__name__)


def _age_ms(message: Message) -> int:
    return max(0, telemetry.now_ms() - message.sent_ms)
