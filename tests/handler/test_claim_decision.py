"""What follows from an operation's row: each state, each policy, and the moments at which that changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.claims.decision import Next, Step, decide
from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.expression import Expression
from idempotent_consumer.operation_settings import OperationSettings, WhenUncertain
from idempotent_consumer.settings import Backoff, Envelope

LEASE_END = 1_000_000
SINCE = 400_000

SETTINGS = OperationSettings(
    consumer_name="orders",
    ledger_table="orders-processed-events",
    dead_letter_queue_url="https://sqs.test/orders-dlq",
    ttl_window_seconds=86_400,
    envelope=Envelope.RAW,
    event_id=Expression("id"),
    fingerprint=Expression("@"),
    uncertain=WhenUncertain.PARK,
    effect_timeout_ms=10_000,
    lease_ms=180_000,
    settle_ms=130_000,
    max_attempts=3,
    max_age_ms=3_600_000,
    retry_seconds=30,
    backoff=Backoff("https://sqs.test/orders", 360, 900),
)

IN_PROGRESS = Row(
    event_id="o-1",
    state=State.IN_PROGRESS,
    fingerprint="f-1",
    idempotency_key="key-1",
    attempt=4,
    tries=2,
    owner="worker-1",
    lease_until_ms=LEASE_END,
    created_ms=300_000,
    since_ms=SINCE,
)
RETRYABLE = replace(IN_PROGRESS, state=State.FAILED_RETRYABLE, next_attempt_ms=LEASE_END, reason="busy", detail="429")


def decided(row: Row, now_ms: int, policy: WhenUncertain = WhenUncertain.PARK, **changes: Any) -> Verdict | Step:
    return decide(row, "f-1", now_ms, replace(SETTINGS, uncertain=policy, **changes))


def wait(reason: str, until_ms: int) -> tuple[Outcome, str, int]:
    return Outcome.RETRY, reason, until_ms


def told(verdict: Verdict | Step) -> Any:
    """A verdict without the words that are for people."""
    if isinstance(verdict, Step):
        return verdict.next
    return (
        (verdict.outcome, verdict.reason, verdict.retry_at_ms)
        if verdict.retry_at_ms
        else (verdict.outcome, verdict.reason)
    )


@pytest.mark.parametrize("row", [IN_PROGRESS, RETRYABLE, *(replace(IN_PROGRESS, state=state) for state in State)])
def test_other_content_is_a_conflict_before_anything_else(row: Row) -> None:
    assert decide(row, "f-2", LEASE_END * 10, SETTINGS) == Verdict(
        Outcome.CONFLICT, "id-reused", "the ledger holds this event id with other content"
    )


@pytest.mark.parametrize("policy", list(WhenUncertain))
@pytest.mark.parametrize("now_ms", [0, LEASE_END, 10**12])
def test_final_states_stay_as_they_are(policy: WhenUncertain, now_ms: int) -> None:
    failed = replace(IN_PROGRESS, state=State.FAILED_FINAL, reason="card-declined", detail="5")
    assert decided(replace(IN_PROGRESS, state=State.COMPLETED), now_ms, policy) == Verdict(Outcome.DUPLICATE)
    assert decided(failed, now_ms, policy) == Verdict(Outcome.FAILED, "card-declined", "5")


@pytest.mark.case("C51")
@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED_FINAL])
def test_a_row_past_its_ttl_that_is_not_deleted_yet_still_counts(state: State) -> None:
    row = replace(IN_PROGRESS, state=state, settled_ms=LEASE_END)
    assert not isinstance(decided(row, LEASE_END + 40 * 86_400_000), Step)


@pytest.mark.parametrize("policy", list(WhenUncertain))
def test_a_lease_that_runs_is_waited_for(policy: WhenUncertain) -> None:
    assert told(decided(IN_PROGRESS, LEASE_END - 1, policy)) == wait("in-progress", LEASE_END)


@pytest.mark.parametrize("policy", list(WhenUncertain))
@pytest.mark.parametrize("now_ms", [0, LEASE_END, 10**12])
def test_what_is_parked_waits_for_a_person_whatever_the_policy(policy: WhenUncertain, now_ms: int) -> None:
    parked = replace(IN_PROGRESS, parked_ms=LEASE_END, reason="outcome-unknown", detail="2 attempts")
    assert decided(parked, now_ms, policy) == Verdict(
        Outcome.PARKED, "outcome-unknown", "idempotency key key-1: 2 attempts"
    )


def test_a_lease_that_is_over_is_left_to_a_person() -> None:
    assert decided(IN_PROGRESS, LEASE_END) == Step(
        Next.PARK,
        "outcome-unknown",
        "2 attempts, the last one: the lease ended before an outcome was recorded",
    )


def test_a_lease_that_is_over_is_taken_where_the_provider_knows_the_key() -> None:
    assert decided(IN_PROGRESS, LEASE_END, WhenUncertain.PROVIDER_KEY) == Step(Next.TAKE)


def test_a_repetition_waits_for_its_time() -> None:
    row = replace(IN_PROGRESS, next_attempt_ms=LEASE_END + 5_000, uncertain_ms=LEASE_END)
    assert told(decided(row, LEASE_END + 4_999, WhenUncertain.PROVIDER_KEY)) == wait("backing-off", LEASE_END + 5_000)
    assert decided(row, LEASE_END + 5_000, WhenUncertain.PROVIDER_KEY) == Step(Next.TAKE)


@pytest.mark.parametrize(
    ("row", "now_ms"), [(replace(IN_PROGRESS, tries=3), LEASE_END), (IN_PROGRESS, SINCE + 3_600_000)]
)
def test_repetitions_have_their_limits_and_are_then_unknown_not_failed(row: Row, now_ms: int) -> None:
    step = decided(row, now_ms, WhenUncertain.PROVIDER_KEY)
    assert isinstance(step, Step)
    assert (step.next, step.reason) == (Next.PARK, "outcome-unknown")
    below = decided(IN_PROGRESS, SINCE + 3_599_999, WhenUncertain.PROVIDER_KEY)
    assert below == Step(Next.TAKE)


def test_a_provider_is_asked_once_it_must_have_settled_and_whatever_the_limits() -> None:
    policy = WhenUncertain.RECONCILE
    assert told(decided(IN_PROGRESS, LEASE_END, policy)) == wait("settling", LEASE_END + 130_000)
    assert told(decided(IN_PROGRESS, LEASE_END + 129_999, policy)) == wait("settling", LEASE_END + 130_000)
    assert decided(IN_PROGRESS, LEASE_END + 130_000, policy) == Step(Next.ASK)
    assert decided(replace(IN_PROGRESS, tries=9), LEASE_END + 130_000, policy) == Step(Next.ASK)
    assert decided(IN_PROGRESS, 10**12, policy) == Step(Next.ASK)


@pytest.mark.parametrize("policy", list(WhenUncertain))
def test_what_was_not_applied_is_taken_when_it_is_due(policy: WhenUncertain) -> None:
    assert told(decided(RETRYABLE, LEASE_END - 1, policy)) == wait("backing-off", LEASE_END)
    assert decided(RETRYABLE, LEASE_END, policy) == Step(Next.TAKE)
    assert decided(replace(RETRYABLE, next_attempt_ms=None), 0, policy) == Step(Next.TAKE)


@pytest.mark.parametrize("policy", list(WhenUncertain))
@pytest.mark.parametrize(
    ("row", "now_ms", "reason"),
    [
        (replace(RETRYABLE, tries=3), 0, "attempts-exhausted"),
        (RETRYABLE, SINCE + 3_600_000, "too-old"),
        (replace(RETRYABLE, next_attempt_ms=10**12), SINCE + 3_600_000, "too-old"),
    ],
)
def test_what_was_not_applied_fails_at_its_limits(policy: WhenUncertain, row: Row, now_ms: int, reason: str) -> None:
    assert decided(row, now_ms, policy) == Step(Next.GIVE_UP, reason, f"{row.tries} attempts, the last one: busy 429")


@pytest.mark.parametrize(
    ("row", "now_ms", "is_stale"),
    [
        (IN_PROGRESS, LEASE_END - 1, False),
        (IN_PROGRESS, LEASE_END, True),
        (replace(IN_PROGRESS, parked_ms=1), LEASE_END, False),
        (RETRYABLE, LEASE_END, False),
    ],
)
def test_stale_is_what_nobody_works_on_and_nobody_was_told_of(row: Row, now_ms: int, is_stale: bool) -> None:
    assert row.is_stale(now_ms) is is_stale
