"""Entry point of a workflow's starter: one execution for each event of a message, however often that is delivered."""

import gc
import os
from typing import Any

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:  # as entry_point.uncollected does
    gc.disable()

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import Clients, create_client
from idempotent_consumer.backoff import Postponing
from idempotent_consumer.calls import CALL_ERRORS, OUT_OF_TIME, Budget, LambdaContext, error_code, failed_call
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import Delivery, Work
from idempotent_consumer.intake import open_message, rejected
from idempotent_consumer.message import Message, read_messages
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settlement import Report, answer, dead_letter, fault, log, postpone, returning_messages
from idempotent_consumer.side_by_side import SideBySide
from idempotent_consumer.workflow.input import execution_input, execution_name, key_of_message, reopened
from idempotent_consumer.workflow.settings import WorkflowSettings

_STARTED = Verdict(Outcome.STARTED)
# This very message has started its execution: whether its effect ran is the guard's to know, not the name's.
_ALREADY_STARTED = Verdict(Outcome.DUPLICATE, "already-started")
_REUSED = Verdict(Outcome.CONFLICT, "id-reused", "the message has this id twice, with different content")


class Starter:
    """step_functions: a client made by `aws.create_client`."""

    def __init__(self, settings: WorkflowSettings, clients: Clients, step_functions: Any) -> None:
        self._settings = settings
        self._step_functions = step_functions
        self._dead_letters = DeadLetterQueue(clients.sqs, settings.dead_letter_queue_url)
        self._postponing = Postponing(clients.sqs_short, settings.backoff)
        self._side_by_side = SideBySide()

    def handle(self, invocation: Any, context: LambdaContext) -> dict[str, Any]:
        """Process one invocation; returns the partial batch response.

        Raises UnexpectedInvocation when these are no SQS records, Misconfigured when nothing could be settled.
        """
        budget, report = Budget(context), Report()
        deliveries = [self._open(message) for message in read_messages(invocation)]
        works = [work for delivery in deliveries for work in delivery.undecided]
        with telemetry.phase("start"):
            self._side_by_side.call(lambda work: self._start(work, budget), works)
        for delivery in deliveries:
            dead_letter(delivery, self._dead_letters, budget)
        returning = returning_messages(deliveries, set())
        coming_back = [delivery for delivery in deliveries if delivery.message.id in returning]
        postpone(coming_back, self._postponing.begin(), budget)
        log(deliveries)
        report.add(deliveries, returning, telemetry.now_ms())
        return answer(report, lambda: self._emit(report))

    def _open(self, message: Message) -> Delivery:
        try:
            message = reopened(message, self._settings.state_machine_arn)
        except Rejected as error:
            return Delivery(message, [Work(message, None, rejected(error))])
        except Exception as error:
            return Delivery(message, [Work(message, None, fault(error, message))])
        delivery = open_message(message, self._settings, key_of_message(message))
        _refuse_reuse(delivery)
        return delivery

    def _start(self, work: Work, budget: Budget) -> dict[str, Verdict]:
        """Start one execution; the verdict is on the work, and nothing is returned."""
        try:
            work.verdict = self._try(work, budget)
        except (Rejected, RecursionError) as error:
            work.verdict = rejected(error)
        except Exception as error:
            work.verdict = fault(error, work.message)
        return {}

    def _try(self, work: Work, budget: Budget) -> Verdict:
        assert work.event is not None
        if not budget.allows_call():
            return OUT_OF_TIME
        try:
            self._step_functions.start_execution(
                stateMachineArn=self._settings.state_machine_arn,
                name=execution_name(work.event.id, work.message.id),
                input=execution_input(work.event, work.message),
            )
            return _STARTED
        except CALL_ERRORS as error:
            if error_code(error) == "ExecutionAlreadyExists":
                return _ALREADY_STARTED
            return failed_call(error, "StartExecution")

    def _emit(self, report: Report) -> None:
        telemetry.emit_starts(
            self._settings.consumer_name, report.verdicts, report.event_ages_ms, report.receive_counts
        )


def _refuse_reuse(delivery: Delivery) -> None:
    """Of events of one message that share a key the first is started: the name cannot tell another content apart."""
    contents: dict[str, str] = {}
    for work in delivery.works:
        if (
            work.event is not None
            and contents.setdefault(work.event.id, work.event.fingerprint) != work.event.fingerprint
        ):
            work.verdict = _REUSED


def _connect() -> Starter:
    settings = WorkflowSettings.from_environment(os.environ)
    return Starter(settings, Clients.create(), create_client("stepfunctions"))


_starter = None
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _starter = _connect()
    gc.freeze()
    gc.enable()


def handler(invocation: Any, context: LambdaContext) -> dict[str, Any]:
    """What the event source mapping invokes."""
    global _starter
    _starter = _starter or _connect()
    return _starter.handle(invocation, context)
