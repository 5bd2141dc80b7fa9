"""The order of steps: decode, plan, commit, publish, mark, answer.

A process may die between any two lines here. What then comes back is sorted out by the ledger: an event that it
does not hold is new, one that is `pending` is published again from its row, one that is `sent` is done.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import localcontext
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import Clients
from idempotent_consumer.backoff import Postponing
from idempotent_consumer.calls import OUT_OF_TIME, Budget, LambdaContext
from idempotent_consumer.commit import Commit, prepare, sent_attributes
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import (
    Delivery,
    Reading,
    Work,
    awaiting_publishing,
    fail_events,
    hold_group,
    settle_events,
)
from idempotent_consumer.event import Event
from idempotent_consumer.group_commit import GroupCommit
from idempotent_consumer.grouping import MAX_EVENTS
from idempotent_consumer.intake import open_message, rejected
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.message import Message, read_messages
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.settings import Settings
from idempotent_consumer.settlement import Report, answer, dead_letter, fault, log, postpone, returning_messages

# A large batch goes through all steps part by part. Were it committed as a whole first, a batch that takes longer
# than the function may would be committed time and again and never published.
PART = MAX_EVENTS


class Consumer:
    """Processes SQS messages. planner: a pure function from an event to its plan."""

    def __init__(self, settings: Settings, clients: Clients, planner: Planner) -> None:
        self._settings = settings
        self._planner = planner
        self._ledger = Ledger(clients.dynamodb, settings.ledger_table)
        self._group_commit = GroupCommit(self._ledger, self._plan)
        self._outbox = Outbox(clients.sns, settings.topic_arn)
        self._dead_letters = DeadLetterQueue(clients.sqs, settings.dead_letter_queue_url)
        self._postponing = Postponing(clients.sqs_short, settings.backoff)

    def handle(self, invocation: Any, context: LambdaContext) -> dict[str, Any]:
        """Process one invocation; returns the partial batch response.

        Raises UnexpectedInvocation when these are no SQS records, Misconfigured when nothing could be settled.
        """
        budget = Budget(context)
        report = Report()
        held: set[str] = set()
        postponement = self._postponing.begin()
        for part in self._parts(read_messages(invocation), budget):
            self._process(part, held, budget)
            returning = returning_messages(part, held)
            postpone([delivery for delivery in part if delivery.message.id in returning], postponement, budget)
            self._log(part)
            report.add(part, returning, telemetry.now_ms())
        return answer(report, lambda: self._emit(report))

    def _parts(self, messages: Sequence[Message], budget: Budget) -> Iterator[list[Delivery]]:
        """The messages in order, opened while there is time, in parts of 50 events or a little more."""
        part: list[Delivery] = []
        events = 0
        for message in messages:
            # To open thousands for which no call may be made any more could take the time that the answer needs.
            in_time = budget.allows_call()
            delivery = (
                open_message(message, self._settings)
                if in_time
                else Delivery(message, [Work(message, None, OUT_OF_TIME)])
            )
            part.append(delivery)
            events += len(delivery.works)
            if events >= PART:
                yield part
                part, events = [], 0
        if part:
            yield part

    def _log(self, deliveries: Sequence[Delivery]) -> None:
        """Of its own, so that the test kit can look on here."""
        log(deliveries)

    def _emit(self, report: Report) -> None:
        telemetry.emit_metrics(
            self._settings.consumer_name, report.verdicts, report.event_ages_ms, report.receive_counts
        )

    def _process(self, deliveries: Sequence[Delivery], held: set[str], budget: Budget) -> None:
        """All steps for a part of the batch. held: the FIFO groups in which nothing may be touched any more."""
        self._commit(deliveries, held, budget)
        pending = awaiting_publishing(deliveries)
        started_ms = budget.remaining_ms()
        if pending:
            self._publish(pending, budget)
        if pending:
            self._mark(pending, budget)
        budget.observe_settling(started_ms - budget.remaining_ms())
        settle_events(pending)
        for delivery in deliveries:
            dead_letter(delivery, self._dead_letters, budget)

    def _plan(self, work: Work) -> None:
        """Whatever can never succeed is found here, before anything is written."""
        assert work.event is not None
        try:
            with localcontext():  # what a plan sets for its arithmetic ends with it
                plan = self._planner(work.event)
            work.commit = self._prepare(work.event, plan, work.message)
        except Rejected as error:
            # New code must not strand an event that older code has committed: its ledger row decides.
            work.reading, work.if_unknown = Reading.NEEDED, rejected(error)
        except InvalidPlan as error:
            work.verdict = Verdict(Outcome.RETRY, "plan-invalid", str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a user's code raises, the other events go on
            work.verdict = fault(error, work.message)

    def _prepare(self, event: Event, plan: Plan, message: Message) -> Commit:
        try:
            return prepare(event, plan, message.id, telemetry.now_ms(), self._settings)
        except RecursionError:
            raise Rejected("nested-too-deep", "a value of the plan is nested too deep to be written") from None
        except UnicodeEncodeError:
            raise Rejected("bad-unicode", "a text of the plan holds half of a surrogate pair") from None

    def _commit(self, deliveries: Sequence[Delivery], held: set[str], budget: Budget) -> None:
        with telemetry.phase("commit") as annotations:
            while waiting := self._in_turn(deliveries, held, budget):
                self._group_commit.advance(waiting, budget)
            for delivery in deliveries:
                dead_letter(delivery, self._dead_letters, budget)
            annotations.update(Counter(work.verdict.outcome.value for d in deliveries for work in d.works))

    def _in_turn(self, deliveries: Sequence[Delivery], held: set[str], budget: Budget) -> list[Work]:
        """The undecided events that may be committed now, in the order of the queue.

        On FIFO these are the first ones of each message group. Behind a message that has failed nothing is touched
        before it is in the dead-letter queue; what follows one that cannot get there is blocked.
        """
        turn: list[Work] = []
        blocked = set(held)
        waiting: set[str] = set()  # groups with an undecided event before
        failed: set[str] = set()  # groups with a message before that has still to be settled
        for delivery in deliveries:
            group = delivery.message.group
            if group is None:
                turn += delivery.undecided
            elif group in blocked:
                delivery.block()
            elif group not in failed:
                delivery.block_after_failure()
                undecided = delivery.undecided
                turn += undecided
                if undecided:
                    waiting.add(group)
                if delivery.has_failed and group in waiting:
                    failed.add(group)
                elif delivery.has_failed:
                    dead_letter(delivery, self._dead_letters, budget)
                    hold_group(blocked, delivery)
        return turn

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
        sent = sent_attributes(telemetry.now_ms(), self._settings.ttl_window_seconds)
        with telemetry.phase("mark") as annotations:
            failures = _guarded(lambda: self._ledger.mark_sent(message_ids, sent, budget), pending)
            annotations.update(marked=len(pending) - len(failures), failed=len(failures))
        fail_events(pending, failures)


def _guarded(call: Callable[[], dict[str, Verdict]], pending: Mapping[str, Sequence[Work]]) -> dict[str, Verdict]:
    """The failures by event id; a fault of our own fails all of them, and nothing else."""
    try:
        return call()
    except Exception as error:
        return {event_id: fault(error, works[0].message) for event_id, works in pending.items()}
