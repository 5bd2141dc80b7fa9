"""The order of steps of an operation: claim, run the effect, record what became of it.

A process may die between any two lines here. Its claim then has no worker, and once the lease is over nobody knows
whether the effect was applied: what may be done about that is the consumer's policy (`claims.decision`).
"""

from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.attempt import Done, Doubted, Failed, ask_provider, run_effect
from idempotent_consumer.aws import Clients
from idempotent_consumer.backoff import Postponing, drawn_seconds
from idempotent_consumer.calls import OUT_OF_TIME, Budget, LambdaContext
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.decision import Next, Step, decide, doubt, exhausted, give_up_or, last_failure, parked
from idempotent_consumer.claims.resolution import CLOCK_SKEW_MS
from idempotent_consumer.claims.row import Row
from idempotent_consumer.claims.table import ClaimFailed, Claims
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import Delivery, hold_group
from idempotent_consumer.effect import OUTCOME_UNKNOWN, Effect, NotApplied, Prepare, Reconcile, Retryable
from idempotent_consumer.event import Event
from idempotent_consumer.intake import open_message
from idempotent_consumer.message import Message, read_messages
from idempotent_consumer.operation_settings import MAX_RETRY_SECONDS, OperationSettings, WhenUncertain
from idempotent_consumer.rejection import short_reason
from idempotent_consumer.settings import SettingsError
from idempotent_consumer.settlement import Report, answer, dead_letter, fault, log, postpone, returning_messages

# How often a row may change under a worker before it leaves the event to the next delivery.
_LOOKS = 4
_CHANGING = Verdict(Outcome.RETRY, "claim-contended", "other workers kept changing the row")
_CLAIM_LOST = Verdict(
    Outcome.RETRY, "claim-lost", "the lease ended, or a person decided, before the outcome was recorded"
)


@dataclass(frozen=True)
class Operation:
    """A user's code. prepare: makes ready what each effect needs, raising Retryable; no attempt is counted for it."""

    effect: Effect
    reconcile: Reconcile | None = None
    prepare: Prepare | None = None


@dataclass(slots=True)
class _Invocation:
    """What an invocation has done so far.

    claimed, stale: as `telemetry.emit_operations` counts them. not_ready: what `prepare` says against any effect.
    """

    budget: Budget
    held: set[str] = field(default_factory=set)
    claimed: int = 0
    stale: int = 0
    not_ready: Verdict | None = None


class OperationConsumer:
    """Processes SQS messages by an effect outside the database.

    Raises SettingsError where the policy is to ask the provider, and `operation` has no way to ask.
    """

    def __init__(self, settings: OperationSettings, clients: Clients, operation: Operation) -> None:
        if settings.uncertain is WhenUncertain.RECONCILE and operation.reconcile is None:
            raise SettingsError("OPERATION_UNCERTAIN is reconcile, but the operation has no reconcile function")
        self._settings = settings
        self._operation = operation
        self._claims = Claims(clients.dynamodb, settings, telemetry.now_ms)
        self._dead_letters = DeadLetterQueue(clients.sqs, settings.dead_letter_queue_url)
        self._postponing = Postponing(clients.sqs_short, settings.backoff)

    def handle(self, invocation: Any, context: LambdaContext) -> dict[str, Any]:
        """Process one invocation, event by event; returns the partial batch response.

        Raises UnexpectedInvocation when these are no SQS records, Misconfigured when nothing could be settled,
        SettingsError where the lease does not outlast the invocation.
        """
        run = _Invocation(Budget(context))
        self._check_lease(run.budget)
        report = Report()
        deliveries = [self._process(message, run) for message in read_messages(invocation)]
        returning = returning_messages(deliveries, set())
        coming_back = [delivery for delivery in deliveries if delivery.message.id in returning]
        postpone(coming_back, self._postponing.begin(), run.budget)
        log(deliveries)
        report.add(deliveries, returning, telemetry.now_ms())
        return answer(report, lambda: self._emit(report, run))

    def _check_lease(self, budget: Budget) -> None:
        """The plan sees to it. Somebody may have changed the function since: then a worker could outlive its lease."""
        least_ms = budget.remaining_ms() + CLOCK_SKEW_MS
        if self._settings.lease_ms < least_ms:
            raise SettingsError(
                f"OPERATION_LEASE_MS is {self._settings.lease_ms}, below {least_ms}: the function's time and two "
                "minutes. Raise operation.lease_ms, or lower function.timeout_seconds"
            )

    def _emit(self, report: Report, run: _Invocation) -> None:
        telemetry.emit_operations(
            self._settings.consumer_name,
            report.verdicts,
            run.claimed,
            run.stale,
            report.event_ages_ms,
            report.receive_counts,
        )

    def _process(self, message: Message, run: _Invocation) -> Delivery:
        """All steps for one message. On FIFO nothing is touched behind one of its group that is not settled."""
        delivery = open_message(message, self._settings)
        if message.group in run.held:
            delivery.block()
        for work in delivery.undecided:
            if work.event is not None:
                work.verdict = self._settle(work.event, message, run)
        dead_letter(delivery, self._dead_letters, run.budget)
        hold_group(run.held, delivery)
        return delivery

    def _settle(self, event: Event, message: Message, run: _Invocation) -> Verdict:
        try:
            return self._prepare(run) or self._operate(event, message, run)
        except ClaimFailed as failure:
            return failure.verdict
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a user's `prepare` raises, the other events go on
            return fault(error, message)

    def _prepare(self, run: _Invocation) -> Verdict | None:
        """Why no effect may begin; None where one may. What was not to be had is not asked for by each event."""
        if not self._has_time(run):
            return OUT_OF_TIME
        if self._operation.prepare is not None and run.not_ready is None:
            try:
                self._operation.prepare()
            except Retryable as error:
                run.not_ready = Verdict(Outcome.RETRY, short_reason(error.reason, "effect-failed"), str(error.detail))
        return run.not_ready

    def _operate(self, event: Event, message: Message, run: _Invocation) -> Verdict:
        """Claim the event and run its effect, or do what its row says. Raises ClaimFailed."""
        with telemetry.phase("claim"):
            standing = self._claims.claim(event.id, event.fingerprint, message.id, run.budget)
        for _ in range(_LOOKS):
            if isinstance(standing, Claim):
                return self._attempt(standing, event, message, run)
            if standing.is_stale(telemetry.now_ms()):
                run.stale += 1
            step = decide(standing, event.fingerprint, telemetry.now_ms(), self._settings)
            outcome = self._advance(step, standing, event, message, run) if isinstance(step, Step) else step
            if isinstance(outcome, Verdict):
                return outcome
            standing = outcome
        return _CHANGING

    def _has_time(self, run: _Invocation) -> bool:
        """Whether claiming, the effect at its slowest, and recording its outcome fit into the invocation."""
        return run.budget.allows_effect(self._settings.effect_timeout_ms, calls=2)

    def _advance(self, step: Step, row: Row, event: Event, message: Message, run: _Invocation) -> Verdict | Claim | Row:
        """Do what a row asks for: a verdict, the claim of another attempt, or the row that has changed meanwhile."""
        if step.next is Next.ASK:
            return self._ask(row, event, message, run)
        if step.next is Next.TAKE:
            if not self._has_time(run):
                return OUT_OF_TIME
            is_uncertain = row.is_stale(telemetry.now_ms())
            return self._claims.take(row, message.id, run.budget, is_uncertain=is_uncertain)
        if step.next is Next.PARK:
            changed = self._claims.park(row, step.reason, step.detail, run.budget)
            return changed or parked(row, step.detail)
        changed = self._claims.fail(row, step.reason, step.detail, run.budget)
        return changed or Verdict(Outcome.FAILED, step.reason, step.detail)

    def _ask(self, row: Row, event: Event, message: Message, run: _Invocation) -> Verdict | Claim | Row:
        """Ask the provider what became of an attempt that has no worker any more."""
        if not self._has_time(run):
            return OUT_OF_TIME
        assert self._operation.reconcile is not None
        seconds = self._settings.effect_timeout_ms / 1000
        said = ask_provider(self._operation.reconcile, event, row.idempotency_key, seconds, message.id)
        if isinstance(said, Done):
            return self._complete(row, said, run)
        now_ms = telemetry.now_ms()
        if isinstance(said, NotApplied):
            step = give_up_or(Next.TAKE, row, now_ms, self._settings)
            if step.next is Next.GIVE_UP:
                return self._advance(step, row, event, message, run)
            if self._has_time(run):
                return self._claims.take(row, message.id, run.budget)
            # Remembered, or a delivery that has time for the question alone would ask for ever.
            changed = self._claims.fail_for_now(row, "not-applied", "as the provider says", now_ms, run.budget)
            return changed or OUT_OF_TIME
        if self._is_last(message) or now_ms - row.since_ms >= self._settings.max_age_ms:
            why = f"the provider cannot tell; {doubt(row)}"
            return self._advance(Step(Next.PARK, OUTCOME_UNKNOWN, why), row, event, message, run)
        return Verdict(Outcome.RETRY, "provider-cannot-tell", "the provider is asked again later")

    def _attempt(self, claim: Claim, event: Event, message: Message, run: _Invocation) -> Verdict:
        """Run the effect, if it ends within the lease and the invocation, and record its outcome."""
        ends_ms = telemetry.now_ms() + self._settings.effect_timeout_ms
        if ends_ms > claim.lease_until_ms or not run.budget.allows_effect(self._settings.effect_timeout_ms, calls=1):
            self._claims.release(claim, run.budget)
            return OUT_OF_TIME
        run.claimed += 1
        seconds = self._settings.effect_timeout_ms / 1000
        ended = run_effect(self._operation.effect, event, claim.idempotency_key, seconds, message.id)
        recorded = self._record(claim, ended, self._is_last(message), run)
        return recorded if isinstance(recorded, Verdict) else _CLAIM_LOST

    def _is_last(self, message: Message) -> bool:
        """Whether the message, if it is reported, does not come back."""
        return message.receive_count >= self._settings.backoff.max_receives

    def _record(self, claim: Claim, ended: Done | Failed | Doubted, is_last: bool, run: _Invocation) -> Verdict | Row:
        """Record what is known of an attempt; the row where the claim is lost."""
        if isinstance(ended, Done):
            return self._complete(claim, ended, run)
        if isinstance(ended, Failed) and not claim.is_uncertain:
            return self._failed(claim, ended, run)
        return self._doubted(claim, ended, is_last, run)  # a failure says nothing about the attempt before

    def _complete(self, standing: Claim | Row, done: Done, run: _Invocation) -> Verdict | Row:
        with telemetry.phase("record"):
            changed = self._claims.complete(standing, done.result, run.budget)
        return changed or Verdict(Outcome.COMPLETED, done.result.problem)

    def _failed(self, claim: Claim, failed: Failed, run: _Invocation) -> Verdict | Row:
        """It was certainly not applied."""
        reason, detail = failed.reason, failed.detail
        retry_at_ms = self._retry_at_ms(claim, failed.after_seconds)
        limit = exhausted(claim.tries, claim.since_ms, retry_at_ms, self._settings)
        if not failed.is_final and not limit:
            changed = self._claims.fail_for_now(claim, reason, detail, retry_at_ms, run.budget)
            return changed or Verdict(Outcome.RETRY, reason, retry_at_ms=retry_at_ms)
        if not failed.is_final:
            reason, detail = limit, last_failure(claim.tries, reason, detail)
        changed = self._claims.fail(claim, reason, detail, run.budget)
        return changed or Verdict(Outcome.FAILED, reason, detail)

    def _doubted(self, claim: Claim, ended: Failed | Doubted, is_last: bool, run: _Invocation) -> Verdict | Row:
        """Nobody knows whether it was applied."""
        reason, detail = ended.reason, ended.detail
        if self._settings.uncertain is WhenUncertain.RECONCILE and not is_last:
            changed = self._claims.doubt(claim, reason, detail, None, run.budget)
            settled_ms = claim.lease_until_ms + self._settings.settle_ms
            return changed or Verdict(Outcome.RETRY, reason, retry_at_ms=settled_ms)
        failed = ended if isinstance(ended, Failed) else None
        retry_at_ms = self._retry_at_ms(claim, failed.after_seconds if failed else None)
        is_final = is_last or (failed is not None and failed.is_final)
        is_over = is_final or exhausted(claim.tries, claim.since_ms, retry_at_ms, self._settings)
        if self._settings.uncertain is WhenUncertain.PROVIDER_KEY and not is_over:
            changed = self._claims.doubt(claim, reason, detail, retry_at_ms, run.budget)
            return changed or Verdict(Outcome.RETRY, reason, retry_at_ms=retry_at_ms)
        why = last_failure(claim.tries, reason, detail)
        changed = self._claims.park(claim, OUTCOME_UNKNOWN, why, run.budget)
        return changed or parked(claim, why)

    def _retry_at_ms(self, claim: Claim, after_seconds: float | None) -> int:
        """The later one of the backoff and what the effect asks for: a provider may always ask for no wait at all."""
        most = max(self._settings.backoff.max_seconds, self._settings.retry_seconds)
        backoff_seconds = drawn_seconds(self._settings.retry_seconds, claim.tries, most)
        return telemetry.now_ms() + int(min(max(after_seconds or 0, backoff_seconds), MAX_RETRY_SECONDS) * 1000)
