"""A worker that was overtaken, or wakes up after its lease, says nothing: neither to the row nor to the queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer import Applied, Final, NotApplied, Retryable, Unknown
from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.resolution import Decision, Resolution
from idempotent_consumer.claims.row import Row, StoredResult
from idempotent_consumer.claims.table import Claims
from tests.handler.operations import KEY, LEASE_SECONDS, SETTLE_SECONDS, Died, Shop, order, refuse
from tests.handler.support import NOTHING_FAILED, NOW_MS, UPDATE, Cloud, Context, client_error, reported

NewShop = Callable[..., Shop]
ENDS: dict[str, Callable[[], Any]] = {
    "a result": lambda: "r",
    "a final failure": refuse(Final("declined")),
    "a failure": refuse(Retryable("busy")),
    "nothing": refuse(TimeoutError()),
}


@pytest.fixture
def new_shop(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> NewShop:
    return lambda **changes: Shop(cloud, monkeypatch, **changes)


@pytest.fixture
def shop(new_shop: NewShop) -> Shop:
    return new_shop()


@pytest.fixture
def budget(shop: Shop) -> Budget:
    return Budget(Context(shop.cloud, 60_000))


@pytest.fixture
def claims(shop: Shop) -> Claims:
    return Claims(shop.cloud.clients.dynamodb, shop.settings, shop.clock)


def begin_and_die(shop: Shop) -> None:
    shop.provider.plan.append(refuse(Died()))
    with pytest.raises(Died):
        shop.deliver()


def before_the_write(shop: Shop, number: int, action: Callable[[], Any]) -> None:
    """Do something just before the nth write from now on, and once only."""
    done: list[bool] = []

    def once() -> None:
        if not done:
            done.append(True)
            action()

    shop.cloud.on(UPDATE, runs=once, calls=[number])


@pytest.mark.parametrize("policy", ["park", "provider_key", "reconcile"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("attempts", ["1", "3"])
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_worker_that_wakes_after_its_lease_says_nothing(
    new_shop: NewShop, policy: str, end: str, attempts: str, is_taken: bool
) -> None:
    shop = new_shop(OPERATION_UNCERTAIN=policy, OPERATION_MAX_ATTEMPTS=attempts)
    shop.provider.answers.append(NotApplied())
    seen: list[Any] = []

    def late() -> Any:
        shop.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
        if is_taken:
            shop.deliver(order("m-2"))
        seen.append((shop.cloud.ledger(), len(shop.cloud.dead_letters())))
        return ENDS[end]()

    shop.provider.plan.append(late)
    assert shop.deliver() == reported("m-1")
    assert (shop.cloud.ledger(), len(shop.cloud.dead_letters())) == seen[0]


@pytest.mark.parametrize("said", [Applied("late"), NotApplied(), Unknown()])
@pytest.mark.parametrize("receives", [2, 15])
def test_who_asked_the_provider_and_was_overtaken_looks_again(new_shop: NewShop, said: Any, receives: int) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="reconcile")
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)

    def slow() -> Any:
        shop.deliver(order("m-2"))  # it asks too, hears "not applied", and completes it
        return said

    shop.provider.answers += [slow, NotApplied()]
    answer = shop.deliver(order(receives=receives))
    assert (shop.provider.charges, shop.status(), shop.cloud.reasons()) == (["o-1"], "COMPLETED", [])
    assert answer == (reported("m-1") if isinstance(said, Unknown) and receives == 2 else NOTHING_FAILED)


def test_what_another_worker_has_taken_meanwhile_is_not_parked(new_shop: NewShop) -> None:
    """The policy was changed: who comes from before takes it, who comes after would park it."""
    shop = new_shop()
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS)

    def take() -> None:
        shop.environment["OPERATION_UNCERTAIN"] = "provider_key"
        shop.deliver(order("m-2"))

    before_the_write(shop, 2, take)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons(), shop.provider.keys) == ("COMPLETED", [], [KEY, KEY])


def test_what_a_person_has_decided_meanwhile_is_not_given_up(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_MAX_AGE_SECONDS="600")
    claims = Claims(shop.cloud.real.dynamodb, shop.settings, shop.clock)
    budget = Budget(Context(shop.cloud, 60_000))
    shop.provider.plan.append(refuse(Retryable("busy", after_seconds=1)))
    shop.deliver()
    shop.clock.wait(600)
    row = shop.row()
    before_the_write(shop, 2, lambda: claims.resolve(row, Resolution(Decision.COMPLETED, "ann", "seen"), budget))
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons()) == ("COMPLETED", [])


# --- what a row must still be like


CHANGES: dict[str, dict[str, Any]] = {
    "another state": {"status": {"S": "FAILED_RETRYABLE"}},
    "another attempt": {"attempt": {"N": "2"}},
    "another owner": {"owner": {"S": "another"}},
    "another lease": {"lease_until": {"N": "1"}},
    "parked": {"parked_at": {"N": "1"}},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", ["take", "complete", "fail", "fail_for_now", "park", "resolve"])
def test_a_row_that_is_no_longer_as_it_was_read_is_left_alone(
    shop: Shop, claims: Claims, budget: Budget, change: str, way: str
) -> None:
    claims.claim("o-1", "f", "m-1", budget)
    shop.clock.wait(LEASE_SECONDS + 120)
    read = shop.row()
    shop.cloud.store("orders-processed-events", {**shop.cloud.ledger()["o-1"], **CHANGES[change]})
    before = shop.cloud.ledger()
    arguments: dict[str, tuple[Any, ...]] = {
        "take": ("m-2",),
        "complete": (StoredResult.of(1),),
        "fail": ("why", ""),
        "fail_for_now": ("why", "", NOW_MS),
        "park": ("why", ""),
        "resolve": (Resolution(Decision.RETRY, "ann", "seen"),),
    }
    assert isinstance(getattr(claims, way)(read, *arguments[way], budget), Row)
    assert shop.cloud.ledger() == before


@pytest.mark.parametrize("way", ["complete", "fail", "fail_for_now"])
def test_a_worker_that_has_said_one_thing_cannot_say_another(
    shop: Shop, claims: Claims, budget: Budget, way: str
) -> None:
    claim = claims.claim("o-1", "f", "m-1", budget)
    assert isinstance(claim, Claim)
    said: dict[str, Callable[[], Row | None]] = {
        "complete": lambda: claims.complete(claim, StoredResult.of(1), budget),
        "fail": lambda: claims.fail(claim, "why", "", budget),
        "fail_for_now": lambda: claims.fail_for_now(claim, "why", "", NOW_MS, budget),
    }
    assert said.pop(way)() is None
    before = shop.cloud.ledger()
    assert all(isinstance(other(), Row) for other in said.values())
    assert shop.cloud.ledger() == before


# --- what is left on a row


UNFINISHED = {"next_attempt_at", "parked_at", "pending_shard", "uncertain_at", "ttl", "settled_at"}


def left(shop: Shop) -> set[str]:
    return UNFINISHED & shop.cloud.ledger()["o-1"].keys()


def test_final_rows_keep_nothing_of_what_is_unfinished(shop: Shop, claims: Claims, budget: Budget) -> None:
    stored = StoredResult.of(1)
    ways: list[Callable[[Row], Any]] = [
        lambda row: claims.complete(row, stored, budget),
        lambda row: claims.fail(row, "why", "", budget),
        lambda row: claims.resolve(row, Resolution(Decision.COMPLETED, "ann", "seen"), budget),
        lambda row: claims.resolve(row, Resolution(Decision.FAILED, "ann", "seen"), budget),
    ]
    for way in ways:
        shop.cloud.expire("o-1")
        claim = claims.claim("o-1", "f", "m-1", budget)
        assert isinstance(claim, Claim)
        claims.doubt(claim, "why", "", NOW_MS, budget)
        claims.park(shop.row(), "why", "", budget)
        assert left(shop) == {"parked_at", "pending_shard", "uncertain_at"}
        assert way(shop.row()) is None
        assert left(shop) == {"ttl", "settled_at"}


def test_a_row_to_be_tried_again_has_no_doubts_and_is_listed(shop: Shop, claims: Claims, budget: Budget) -> None:
    claim = claims.claim("o-1", "f", "m-1", budget)
    assert isinstance(claim, Claim)
    claims.doubt(claim, "why", "", None, budget)
    assert claims.fail_for_now(shop.row(), "not-applied", "", NOW_MS, budget) is None
    assert left(shop) == {"next_attempt_at", "pending_shard"}
    assert claims.fail(shop.row(), "why", "", budget) is None
    assert claims.resolve(shop.row(), Resolution(Decision.RETRY, "ann", "seen"), budget) is None
    assert left(shop) == {"next_attempt_at", "pending_shard"}


def test_a_repetition_remembers_since_when_an_attempt_is_uncertain(shop: Shop, claims: Claims, budget: Budget) -> None:
    claims.claim("o-1", "f", "m-1", budget)
    shop.clock.wait(LEASE_SECONDS)
    lease_end = NOW_MS + LEASE_SECONDS * 1000
    claims.take(shop.row(), "m-1", budget, is_uncertain=True)
    assert shop.row().uncertain_ms == lease_end
    shop.clock.wait(LEASE_SECONDS)
    claims.take(shop.row(), "m-1", budget, is_uncertain=True)
    assert shop.row().uncertain_ms == lease_end
    shop.clock.wait(LEASE_SECONDS)
    claims.take(shop.row(), "m-1", budget)
    assert shop.row().uncertain_ms is None


@pytest.mark.parametrize("loses", ["its time", "the answer"])
def test_a_repetition_that_is_given_back_stays_uncertain(new_shop: NewShop, loses: str) -> None:
    """FAILED_RETRYABLE would say that nothing was applied."""
    shop = new_shop(OPERATION_UNCERTAIN="provider_key")
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS)
    if loses == "its time":
        shop.context_costs = {UPDATE: 8_000}
    else:
        shop.cloud.on(UPDATE, raises=client_error("InternalServerError", UPDATE), after=True, calls=[2])
    assert shop.deliver(order(receives=2), remaining_ms=33_500) == reported("m-1")
    row = shop.row()
    assert (row.state.value, row.attempt, row.tries) == ("IN_PROGRESS", 2, 1)
    assert (row.uncertain_ms, row.lease_until_ms) == (NOW_MS + LEASE_SECONDS * 1000, shop.clock.now_ms)
    assert shop.provider.keys == [KEY]

    shop.context_costs = {}
    shop.provider.plan.append(refuse(Retryable("busy", after_seconds=5)))
    assert shop.deliver(order(receives=3)) == reported("m-1")
    assert shop.status() == "IN_PROGRESS"


@pytest.mark.parametrize("code", ["ThrottlingException", "TransactionConflictException"])
def test_a_claim_that_was_perhaps_written_before_it_was_throttled_is_given_back(shop: Shop, code: str) -> None:
    shop.cloud.on(UPDATE, raises=client_error(code, UPDATE), after=True, calls=[1])
    shop.cloud.on(UPDATE, raises=client_error(code, UPDATE), calls=[2, 3, 4, 5])
    assert shop.deliver() == reported("m-1")
    assert (shop.status(), shop.row().tries, shop.provider.keys) == ("FAILED_RETRYABLE", 0, [])


def test_between_two_tries_of_a_write_there_is_a_pause(shop: Shop, pauses: list[int]) -> None:
    shop.cloud.on(UPDATE, raises=client_error("ThrottlingException", UPDATE), calls=[1, 2])
    shop.deliver()
    assert pauses == [0, 1]


def test_a_row_is_only_shown_with_all_that_makes_it_an_operation(shop: Shop) -> None:
    shop.deliver()
    whole = shop.cloud.ledger()["o-1"]
    for name in ("status", "fingerprint", "idempotency_key", "attempt", "tries", "lease_until", "created_at", "since"):
        shop.cloud.store("orders-processed-events", {key: value for key, value in whole.items() if key != name})
        assert shop.deliver(order("m-2")) == reported("m-2")
    assert shop.provider.charges == ["o-1"]
