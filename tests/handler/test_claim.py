"""Claims: one worker at a time, and nobody but the one who holds the claim can say what became of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from idempotent_consumer import Applied, NotApplied
from idempotent_consumer.answer import Outcome
from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.resolution import Decision, NotResolvable, Resolution
from idempotent_consumer.claims.row import Row, State, StoredResult
from idempotent_consumer.claims.table import ClaimFailed, Claims
from idempotent_consumer.settings import SettingsError
from tests.handler.operations import KEY, LEASE_SECONDS, SETTLE_SECONDS, Died, Shop, order, refuse
from tests.handler.support import NOTHING_FAILED, NOW_MS, UPDATE, Cloud, Context, client_error, reported


@pytest.fixture
def new_shop(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Shop]:
    return lambda **changes: Shop(cloud, monkeypatch, **changes)


@pytest.fixture
def shop(new_shop: Callable[..., Shop]) -> Shop:
    return new_shop()


@pytest.fixture
def budget(shop: Shop) -> Budget:
    return Budget(Context(shop.cloud, 60_000))


@pytest.fixture
def claims(shop: Shop) -> Claims:
    return Claims(shop.cloud.clients.dynamodb, shop.settings, shop.clock)


def claimed(standing: Claim | Row) -> Claim:
    assert isinstance(standing, Claim)
    return standing


def standing(result: Claim | Row) -> Row:
    assert isinstance(result, Row)
    return result


@pytest.fixture
def claim(claims: Claims, budget: Budget) -> Claim:
    return claimed(claims.claim("o-1", "f-1", "m-1", budget))


WAYS = ["complete", "fail", "fail_for_now", "doubt", "park", "release", "renew"]


def second_then(second: Callable[[], None], effect: Callable[[], Any]) -> Callable[[], Any]:
    def both() -> Any:
        second()
        return effect()

    return both


def settle(claims: Claims, way: str, claim: Claim, budget: Budget) -> Any:
    """What a worker can say of its claim; None, or the renewed claim, once it is written."""
    arguments: dict[str, tuple[Any, ...]] = {
        "complete": (StoredResult.of("result"),),
        "fail": ("why", ""),
        "fail_for_now": ("why", "", NOW_MS),
        "doubt": ("why", "", None),
        "park": ("why", ""),
        "release": (),
        "renew": (),
    }
    return getattr(claims, way)(claim, *arguments[way], budget)


def test_a_claim_is_one_write_and_the_second_worker_sees_the_first_ones_row(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim
) -> None:
    row = standing(claims.claim("o-1", "f-1", "m-2", budget))
    assert (row.state, row.owner, row.attempt) == (State.IN_PROGRESS, claim.owner, 1)
    assert row.lease_until_ms == NOW_MS + LEASE_SECONDS * 1000
    assert shop.cloud.operations == [UPDATE, UPDATE]
    assert shop.cloud.ledger()["o-1"]["message_id"] == {"S": "m-1"}


def test_no_two_claims_have_one_owner(claims: Claims, budget: Budget) -> None:
    owners = {claimed(claims.claim(f"o-{n}", "f", "m", budget)).owner for n in range(50)}
    assert len(owners) == 50


def test_two_workers_that_take_one_row_are_one_claim(shop: Shop, claims: Claims, budget: Budget, claim: Claim) -> None:
    claims.release(claim, budget)
    row = shop.row()
    first = claimed(claims.take(row, "m-1", budget))
    second = standing(claims.take(row, "m-2", budget))
    assert (first.attempt, second.owner, second.attempt) == (2, first.owner, 2)


# --- the fence


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_wakes_after_its_lease_changes_nothing(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    shop.clock.wait(LEASE_SECONDS)
    before = shop.cloud.ledger()
    assert isinstance(settle(claims, way, claim, budget), Row)
    assert shop.cloud.ledger() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_changes_nothing_once_another_one_has_taken_over(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    """Though its own clock says that its lease runs: it was stopped, and wakes with a clock that is behind."""
    shop.clock.wait(LEASE_SECONDS)
    claimed(claims.take(shop.row(), "m-2", budget, is_uncertain=True))
    before = shop.cloud.ledger()
    shop.clock.now_ms = NOW_MS
    assert isinstance(settle(claims, way, claim, budget), Row)
    assert shop.cloud.ledger() == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("decision", list(Decision))
def test_a_worker_changes_nothing_once_a_person_has_decided(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str, decision: Decision
) -> None:
    assert claims.park(claim, "why", "", budget) is None
    assert claims.resolve(shop.row(), Resolution(decision, "ann", "seen"), budget) is None
    before = shop.cloud.ledger()
    assert isinstance(settle(claims, way, claim, budget), Row)
    assert shop.cloud.ledger() == before


@pytest.mark.parametrize("way", ["complete", "fail", "fail_for_now", "doubt", "release", "renew"])
def test_a_worker_changes_nothing_once_its_operation_is_parked(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    claims.park(claim, "why", "", budget)
    before = shop.cloud.ledger()
    assert isinstance(settle(claims, way, claim, budget), Row)
    assert shop.cloud.ledger() == before


@pytest.mark.parametrize("way", WAYS)
def test_the_attempt_alone_fences_too(shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str) -> None:
    row = shop.cloud.ledger()["o-1"]
    shop.cloud.store("orders-processed-events", {**row, "attempt": {"N": "2"}})
    assert isinstance(settle(claims, way, claim, budget), Row)


@pytest.mark.parametrize("way", WAYS)
def test_the_owner_alone_fences_too(shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str) -> None:
    row = shop.cloud.ledger()["o-1"]
    shop.cloud.store("orders-processed-events", {**row, "owner": {"S": "another"}})
    assert isinstance(settle(claims, way, claim, budget), Row)


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_whose_row_is_gone_makes_no_new_one(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    shop.cloud.expire("o-1")
    with pytest.raises(ClaimFailed) as failed:
        settle(claims, way, claim, budget)
    assert (failed.value.verdict.reason, shop.cloud.ledger()) == ("ledger-undecided", {})


@pytest.mark.parametrize("way", ["complete", "fail", "park"])
def test_a_row_that_has_changed_since_it_was_read_is_not_settled(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    """What a worker found without an owner was renewed, or taken, before it could say anything."""
    read = shop.row()
    shop.clock.wait(1)
    renewed = claims.renew(claim, budget)
    assert claimed(renewed).lease_until_ms == NOW_MS + 1000 + LEASE_SECONDS * 1000
    before = shop.cloud.ledger()
    assert isinstance(settle(claims, way, read, budget), Row)  # type: ignore[arg-type]
    assert isinstance(claims.take(read, "m-2", budget), Row)
    assert shop.cloud.ledger() == before


# --- lost answers


@pytest.mark.parametrize("way", WAYS)
def test_a_write_that_is_repeated_since_its_answer_was_lost_counts_as_made(
    shop: Shop, claims: Claims, budget: Budget, claim: Claim, way: str
) -> None:
    """As the SDK does: the first request is made, its answer lost, the second one refused by what the first wrote."""

    def twice(_request: Any, effect: Callable[[], Any]) -> Any:
        effect()
        return effect()

    shop.cloud.on(UPDATE, answers=twice)
    assert not isinstance(settle(claims, way, claim, budget), Row)


def test_a_claim_that_is_repeated_since_its_answer_was_lost_is_ones_own(
    shop: Shop, claims: Claims, budget: Budget
) -> None:
    def twice(_request: Any, effect: Callable[[], Any]) -> Any:
        effect()
        return effect()

    shop.cloud.on(UPDATE, answers=twice)
    claim = claimed(claims.claim("o-1", "f-1", "m-1", budget))
    assert shop.row().owner == claim.owner
    claims.release(claim, budget)
    assert claimed(claims.take(shop.row(), "m-1", budget)).attempt == 2


# --- what a person decides


def resolution(decision: Decision = Decision.RETRY, result: Any = None) -> Resolution:
    return Resolution(decision, "ann", "seen in the provider's list", result)


@pytest.fixture
def parked(shop: Shop) -> Row:
    """An effect was applied, and its answer lost."""
    shop.provider.plan.append(shop.provider.apply_and_raise(TimeoutError()))
    shop.deliver()
    shop.clock.wait(60)
    return shop.row()


AUDIT = {"at": {"N": str(NOW_MS + 60_000)}, "by": {"S": "ann"}, "why": {"S": "seen in the provider's list"}}


def test_a_person_says_that_it_was_applied(shop: Shop, claims: Claims, budget: Budget, parked: Row) -> None:
    assert claims.resolve(parked, resolution(Decision.COMPLETED, "ch_1"), budget) is None
    row = shop.row()
    assert (row.state, row.result, row.attempt, row.owner, row.parked_ms) == (State.COMPLETED, "ch_1", 2, None, None)
    assert row.audit == [{"M": {**AUDIT, "how": {"S": "completed"}}}]
    assert shop.cloud.ledger()["o-1"]["ttl"] == {"N": str(NOW_MS // 1000 + 60 + 30 * 86_400)}
    assert shop.deliver(order("m-2")) == NOTHING_FAILED
    assert shop.provider.charges == ["o-1"]


def test_a_person_says_that_it_was_not_applied_and_shall_not_be(
    shop: Shop, claims: Claims, budget: Budget, parked: Row
) -> None:
    assert claims.resolve(parked, resolution(Decision.FAILED), budget) is None
    row = shop.row()
    assert (row.state, row.reason, row.detail) == (
        State.FAILED_FINAL,
        "resolved-failed",
        "seen in the provider's list",
    )
    assert "pending_shard" not in shop.cloud.ledger()["o-1"]
    shop.deliver(order("m-2"))
    assert shop.cloud.reasons() == ["outcome-unknown", "resolved-failed"]


def test_a_person_says_that_it_shall_be_tried_again(shop: Shop, claims: Claims, budget: Budget, parked: Row) -> None:
    assert claims.resolve(parked, resolution(), budget) is None
    row = shop.row()
    assert (row.state, row.attempt, row.tries, row.since_ms) == (State.FAILED_RETRYABLE, 2, 0, NOW_MS + 60_000)
    assert (row.parked_ms, row.uncertain_ms, row.reason) == (None, None, "")
    assert shop.deliver(order("m-2")) == NOTHING_FAILED
    row = shop.row()
    assert (row.state, row.attempt, row.tries) == (State.COMPLETED, 3, 1)
    assert shop.provider.keys == [KEY, KEY]


def test_decisions_are_kept_one_after_the_other(shop: Shop, claims: Claims, budget: Budget, parked: Row) -> None:
    claims.resolve(parked, resolution(), budget)
    claims.resolve(shop.row(), resolution(Decision.FAILED), budget)
    claims.resolve(shop.row(), resolution(), budget)
    assert [entry["M"]["how"]["S"] for entry in shop.row().audit] == ["retry", "failed", "retry"]
    assert "ttl" not in shop.cloud.ledger()["o-1"]
    shop.deliver(order("m-2"))
    assert (shop.status(), len(shop.row().audit)) == ("COMPLETED", 3)


def test_decisions_to_try_again_come_to_an_end_but_never_lock_the_row(
    shop: Shop, claims: Claims, budget: Budget, parked: Row
) -> None:
    for _ in range(20):
        assert claims.resolve(shop.row(), resolution(), budget) is None
    with pytest.raises(NotResolvable, match="decided 20 times"):
        claims.resolve(shop.row(), resolution(), budget)
    assert claims.resolve(shop.row(), resolution(Decision.FAILED), budget) is None
    assert claims.resolve(shop.row(), resolution(Decision.COMPLETED), budget) is None
    assert len(shop.row().audit) == 22


@pytest.mark.parametrize("field", ["by", "why"])
def test_what_a_person_says_leaves_room_for_a_result(field: str) -> None:
    Resolution(Decision.RETRY, **{"by": "ann", "why": "seen", field: "x" * 1000})
    with pytest.raises(ValueError, match=f"{field} has 1001 characters, over 1000"):
        Resolution(Decision.RETRY, **{"by": "ann", "why": "seen", field: "x" * 1001})


def test_of_two_people_one_decides(shop: Shop, claims: Claims, budget: Budget, parked: Row) -> None:
    assert claims.resolve(parked, resolution(), budget) is None
    assert isinstance(claims.resolve(parked, resolution(Decision.COMPLETED), budget), Row)
    assert shop.status() == "FAILED_RETRYABLE"


def test_nobody_decides_what_is_completed(shop: Shop, claims: Claims, budget: Budget) -> None:
    shop.deliver()
    for decision in Decision:
        with pytest.raises(NotResolvable, match="completed already"):
            claims.resolve(shop.row(), resolution(decision), budget)


def test_nobody_says_again_that_it_has_failed(shop: Shop, claims: Claims, budget: Budget, parked: Row) -> None:
    claims.resolve(parked, resolution(Decision.FAILED), budget)
    with pytest.raises(NotResolvable, match="failed already"):
        claims.resolve(shop.row(), resolution(Decision.FAILED), budget)


def test_nobody_decides_what_a_worker_may_be_at(shop: Shop, claims: Claims, budget: Budget, claim: Claim) -> None:
    shop.clock.wait(LEASE_SECONDS + 119)
    with pytest.raises(NotResolvable) as refused:
        claims.resolve(shop.row(), resolution(), budget)
    assert refused.value.until_ms == NOW_MS + (LEASE_SECONDS + 120) * 1000
    shop.clock.wait(1)
    assert claims.resolve(shop.row(), resolution(), budget) is None


# --- workers against each other


@pytest.mark.parametrize("policy", ["park", "provider_key", "reconcile"])
def test_two_workers_and_one_key_are_one_effect(new_shop: Callable[..., Shop], policy: str) -> None:
    """The second delivery comes at each call of the first, and in the middle of its effect."""
    for moment in ("before the claim", "in the effect", "before it is recorded"):
        shop = new_shop(OPERATION_UNCERTAIN=policy)
        event_id = f"{policy} {moment}"
        answers: list[Any] = []

        def second(shop: Shop = shop, answers: list[Any] = answers, event_id: str = event_id) -> None:
            answers.append(shop.deliver(order("m-2", event_id)))

        if moment == "in the effect":
            shop.provider.plan.append(second_then(second, partial(shop.provider.apply, event_id)))
        else:
            shop.cloud.on(UPDATE, runs=second, calls=[1] if moment == "before the claim" else [2])
        first = shop.deliver(order("m-1", event_id))
        shop.cloud.heal()

        assert shop.provider.charges == [event_id]
        winner_first = [NOTHING_FAILED, [reported("m-2")]]
        assert [first, answers] == (
            [NOTHING_FAILED, [NOTHING_FAILED]] if moment == "before the claim" else winner_first
        )
        assert shop.status(event_id) == "COMPLETED"


@pytest.mark.parametrize("policy", ["park", "provider_key", "reconcile"])
@pytest.mark.parametrize("skew", [-60, 60])
def test_clocks_that_are_a_minute_wrong_begin_no_second_effect(
    new_shop: Callable[..., Shop], policy: str, skew: int
) -> None:
    """One worker's clock is a minute off, the other's a minute off the other way. The first is at work as long as its
    function may run, and the second looks at each second of it."""
    shop = new_shop(OPERATION_UNCERTAIN=policy)
    shop.provider.answers += [NotApplied()] * 100

    def work() -> Any:
        for _ in range(59):
            shop.clock.wait(1)
            shop.clock.wait(-2 * skew)
            assert shop.deliver(order("m-2")) == reported("m-2")
            shop.clock.wait(2 * skew)
        return shop.provider.apply()

    shop.provider.plan.append(work)
    shop.clock.wait(skew)
    assert shop.deliver(order("m-1")) == NOTHING_FAILED
    assert (shop.provider.charges, shop.provider.keys, shop.status()) == (["o-1"], [KEY], "COMPLETED")


@pytest.mark.parametrize("skew", [-60, 60])
def test_clocks_that_are_a_minute_wrong_ask_no_provider_that_may_still_apply(
    new_shop: Callable[..., Shop], skew: int
) -> None:
    """The provider applies it up to the effect's timeout after the function's end at the latest."""
    shop = new_shop(OPERATION_UNCERTAIN="reconcile")
    shop.provider.answers += [Applied("late")]
    shop.clock.wait(skew)
    shop.provider.plan.append(refuse(Died()))
    with pytest.raises(Died):
        shop.deliver()
    shop.clock.wait(-2 * skew)
    for _ in range(70):
        assert shop.deliver(order("m-2")) == reported("m-2")
        shop.clock.wait(1)
    assert (shop.provider.asked, shop.provider.keys) == ([], [KEY])


def test_a_lease_that_does_not_outlast_the_invocation_by_two_minutes_is_refused(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop(OPERATION_LEASE_MS="179999")
    with pytest.raises(SettingsError, match="OPERATION_LEASE_MS is 179999"):
        shop.deliver(remaining_ms=60_000)
    assert shop.cloud.operations == []


def test_the_wait_for_a_provider_to_settle_counts_from_the_end_of_the_lease(shop: Shop) -> None:
    assert shop.settings.settle_ms == SETTLE_SECONDS * 1000


# --- failing calls


def test_a_claim_fails_with_what_the_call_says(shop: Shop, claims: Claims, budget: Budget) -> None:
    shop.cloud.on(UPDATE, raises=client_error("ResourceNotFoundException", UPDATE))
    with pytest.raises(ClaimFailed) as failed:
        claims.claim("o-1", "f-1", "m-1", budget)
    verdict = failed.value.verdict
    assert (verdict.outcome, verdict.reason, verdict.detail) == (
        Outcome.RETRY,
        "misconfigured",
        "UpdateItem: ResourceNotFoundException",
    )


@pytest.mark.case("C33")
def test_a_refusal_that_shows_no_row_decides_nothing(shop: Shop, claims: Claims, budget: Budget) -> None:
    shop.cloud.on(UPDATE, raises=client_error("ConditionalCheckFailedException", UPDATE))
    with pytest.raises(ClaimFailed) as failed:
        claims.claim("o-1", "f-1", "m-1", budget)
    assert failed.value.verdict.reason == "ledger-undecided"


def test_nothing_is_called_without_time_for_it(shop: Shop, claims: Claims) -> None:
    with pytest.raises(ClaimFailed) as failed:
        claims.claim("o-1", "f-1", "m-1", Budget(Context(shop.cloud, 7_499)))
    assert (failed.value.verdict.reason, shop.cloud.operations) == ("out-of-time", [])
