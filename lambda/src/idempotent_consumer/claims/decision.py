"""What follows from an operation's row for a delivery that finds it. Pure.

What is FAILED_RETRYABLE or FAILED_FINAL was certainly not applied. A row that is IN_PROGRESS and whose lease is over is
uncertain: what may be done about it is what the consumer's policy says.
"""

from dataclasses import dataclass
from enum import Enum

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.effect import OUTCOME_UNKNOWN
from idempotent_consumer.operation_settings import OperationSettings, WhenUncertain


class Next(Enum):
    """What a worker has to do with the row before there is a verdict."""

    TAKE = "claim it for another attempt"
    ASK = "ask the provider whether it was applied"
    PARK = "leave it to a person"
    GIVE_UP = "record that it failed for good"


@dataclass(frozen=True, slots=True)
class Step:
    """reason, detail: recorded with PARK and GIVE_UP."""

    next: Next
    reason: str = ""
    detail: str = ""


def decide(row: Row, fingerprint: str, now_ms: int, settings: OperationSettings) -> Verdict | Step:
    """The verdict on an event whose row is in the ledger, or what has to be done first.

    fingerprint: the event's. now_ms: epoch milliseconds by this worker's clock, which may be wrong by a minute.
    """
    if row.fingerprint != fingerprint:
        return Verdict(Outcome.CONFLICT, "id-reused", "the ledger holds this event id with other content")
    if row.state is State.COMPLETED:
        return Verdict(Outcome.DUPLICATE)
    if row.state is State.FAILED_FINAL:
        return Verdict(Outcome.FAILED, row.reason, row.detail)
    if row.state is State.FAILED_RETRYABLE:
        return _known_not_applied(row, now_ms, settings)
    if row.parked_ms is not None:
        return parked(row, row.detail)
    if not row.is_stale(now_ms):
        return Verdict(Outcome.RETRY, "in-progress", "a worker holds the claim", retry_at_ms=row.lease_until_ms)
    return _uncertain(row, now_ms, settings)


def give_up_or(step: Next, row: Row, now_ms: int, settings: OperationSettings) -> Step:
    """The step for a row that was certainly not applied, unless it has used up its attempts or its time."""
    limit = exhausted(row.tries, row.since_ms, now_ms, settings)
    return Step(Next.GIVE_UP, limit, last_failure(row.tries, row.reason, row.detail)) if limit else Step(step)


def exhausted(tries: int, since_ms: int, now_ms: int, settings: OperationSettings) -> str:
    """Why no further attempt may be made; empty where one may. since_ms: when the first one was."""
    if tries >= settings.max_attempts:
        return "attempts-exhausted"
    if now_ms - since_ms >= settings.max_age_ms:
        return "too-old"
    return ""


def last_failure(tries: int, reason: str, detail: str) -> str:
    """The detail of an operation that is given up, or left to a person."""
    told = f", the last one: {' '.join(part for part in (reason, detail) if part)}" if reason else ""
    return f"{tries} {'attempt' if tries == 1 else 'attempts'}{told}"


def doubt(row: Row) -> str:
    """Why nobody knows what became of an operation without a worker."""
    return last_failure(row.tries, row.reason or "the lease ended before an outcome was recorded", row.detail)


def parked(standing: Row | Claim, why: str) -> Verdict:
    """The verdict on an operation that waits for a person."""
    return Verdict(Outcome.PARKED, OUTCOME_UNKNOWN, f"idempotency key {standing.idempotency_key}: {why}")


def _known_not_applied(row: Row, now_ms: int, settings: OperationSettings) -> Verdict | Step:
    step = give_up_or(Next.TAKE, row, now_ms, settings)
    return step if step.next is Next.GIVE_UP else _when_due(row, now_ms) or step


def _uncertain(row: Row, now_ms: int, settings: OperationSettings) -> Verdict | Step:
    why = doubt(row)
    if settings.uncertain is WhenUncertain.PROVIDER_KEY:
        # Never given up as failed: an earlier attempt may have been applied.
        if exhausted(row.tries, row.since_ms, now_ms, settings):
            return Step(Next.PARK, OUTCOME_UNKNOWN, why)
        return _when_due(row, now_ms) or Step(Next.TAKE)
    if settings.uncertain is WhenUncertain.RECONCILE:
        # The provider may still be at it, and its "not applied" be wrong a moment later.
        settled_ms = row.lease_until_ms + settings.settle_ms
        if now_ms < settled_ms:
            return Verdict(Outcome.RETRY, "settling", "the provider may still apply it", retry_at_ms=settled_ms)
        return Step(Next.ASK)
    return Step(Next.PARK, OUTCOME_UNKNOWN, why)


def _when_due(row: Row, now_ms: int) -> Verdict | None:
    if row.next_attempt_ms is None or now_ms >= row.next_attempt_ms:
        return None
    return Verdict(Outcome.RETRY, "backing-off", "its next attempt is later", retry_at_ms=row.next_attempt_ms)
