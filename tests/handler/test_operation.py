"""What becomes of a message whose effect is outside the database: each state of its row, each end of an effect."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.claims.row import State
from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.settings import SettingsError
from idempotent_consumer.settlement import Misconfigured
from tests.handler.operations import EFFECT_SECONDS, KEY, LEASE_SECONDS, SETTLE_SECONDS, Died, Shop, order, refuse
from tests.handler.support import NOTHING_FAILED, NOW_MS, UPDATE, Cloud, client_error, record, reported

NewShop = Callable[..., Shop]


@pytest.fixture
def new_shop(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> NewShop:
    return lambda **changes: Shop(cloud, monkeypatch, **changes)


@pytest.fixture
def shop(new_shop: NewShop) -> Shop:
    return new_shop()


def metrics(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The figures of the last invocation."""
    line: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    return line


def begin_and_die(shop: Shop) -> None:
    """A process claims o-1, begins its effect and dies in it."""
    shop.provider.plan.append(refuse(Died()))
    with pytest.raises(Died):
        shop.deliver()


# --- once


def test_an_effect_is_applied_once_and_its_result_stored(shop: Shop) -> None:
    assert shop.deliver() == NOTHING_FAILED

    assert (shop.provider.charges, shop.provider.keys) == (["o-1"], [KEY])
    assert shop.cloud.ledger()["o-1"] == {
        "event_id": {"S": "o-1"},
        "status": {"S": "COMPLETED"},
        "fingerprint": {"S": shop.row().fingerprint},
        "idempotency_key": {"S": KEY},
        "attempt": {"N": "1"},
        "tries": {"N": "1"},
        "owner": {"S": shop.row().owner},
        "lease_until": {"N": "1893553626000"},
        "created_at": {"N": "1893553446000"},
        "since": {"N": "1893553446000"},
        "claimed_at": {"N": "1893553446000"},
        "settled_at": {"N": "1893553446000"},
        "ttl": {"N": "1896145446"},
        "message_id": {"S": "m-1"},
        "result": {"S": '{"charge":1}'},
    }
    assert shop.cloud.operations == [UPDATE, UPDATE]


def test_a_second_delivery_of_a_completed_operation_changes_nothing(shop: Shop) -> None:
    shop.deliver()
    before = shop.cloud.ledger()

    assert shop.deliver(order("m-2")) == NOTHING_FAILED
    assert shop.provider.charges == ["o-1"]
    assert shop.cloud.ledger() == before


def test_two_copies_in_one_batch_are_one_effect(shop: Shop) -> None:
    assert shop.deliver(order("m-1"), order("m-2")) == NOTHING_FAILED
    assert shop.provider.charges == ["o-1"]


@pytest.mark.case("C63")
def test_an_id_with_other_content_is_a_conflict_whatever_the_state(shop: Shop) -> None:
    shop.deliver()
    other = record("m-2", {"id": "o-1", "total": 6})
    assert shop.deliver(other) == NOTHING_FAILED
    assert (shop.cloud.reasons(), shop.provider.charges) == (["id-reused"], ["o-1"])


def test_a_conflict_with_an_operation_in_progress_is_dead_lettered_too(shop: Shop) -> None:
    begin_and_die(shop)
    assert shop.deliver(record("m-2", {"id": "o-1", "total": 6})) == NOTHING_FAILED
    assert shop.cloud.reasons() == ["id-reused"]


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, {"id": "ch_1"}, 12, "ch_1", [1, None]])
def test_results_are_stored_as_they_are_the_falsy_ones_and_null_too(shop: Shop, result: Any) -> None:
    shop.provider.plan.append(lambda: result)
    shop.deliver()
    row = shop.row()
    assert (row.state, row.result) == (State.COMPLETED, result)
    assert row.result_text is not None


def test_a_result_that_is_too_large_does_not_keep_an_operation_from_being_completed(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "idempotent_consumer")
    shop.provider.plan.append(lambda: "x" * 349_999)
    assert shop.deliver() == NOTHING_FAILED
    row = shop.row()
    assert (row.state, row.result_text, row.result_bytes, row.reason) == (
        State.COMPLETED,
        None,
        350_001,
        "result-too-large",
    )
    assert row.result_sha256 == "c0e283d6d2d30a1e1e7a28618ce750b1f9f73e91dcbe8ba347c6a912055d3da2"
    assert "event completed: result-too-large" in caplog.messages
    assert shop.deliver(order("m-2")) == NOTHING_FAILED


def test_the_largest_result_that_fits_is_stored(shop: Shop) -> None:
    shop.provider.plan.append(lambda: "x" * 349_998)
    shop.deliver()
    assert shop.row().result == "x" * 349_998


class Hostile(dict[str, Any]):
    def __iter__(self) -> Any:
        raise ArithmeticError

    def items(self) -> Any:
        raise ArithmeticError


def endless() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("result", [object(), {1, 2}, b"x", float("nan"), "\ud800", Hostile(a=1), endless()])
def test_a_result_that_is_no_json_is_completed_with_null(shop: Shop, result: Any) -> None:
    shop.provider.plan.append(lambda: result)
    assert shop.deliver() == NOTHING_FAILED
    row = shop.row()
    assert (row.state, row.result_text, row.reason) == (State.COMPLETED, "null", "result-not-json")


# --- failures that are known


def test_a_retryable_failure_waits_and_is_tried_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.provider.plan.append(refuse(Retryable("too-many-requests", "slow down", after_seconds=45)))
    assert shop.deliver() == reported("m-1")

    row = shop.row()
    assert (row.state, row.reason, row.detail) == (State.FAILED_RETRYABLE, "too-many-requests", "slow down")
    assert row.next_attempt_ms == NOW_MS + 45_000
    assert shop.hidden() == [45]
    assert "ttl" not in shop.cloud.ledger()["o-1"]

    shop.clock.wait(45)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    row = shop.row()
    assert (row.state, row.attempt, row.tries, row.reason) == (State.COMPLETED, 2, 2, "")
    assert (shop.provider.charges, set(shop.provider.keys)) == (["o-1"], {KEY})


def test_a_delivery_before_its_next_attempt_waits_for_it(shop: Shop) -> None:
    shop.provider.plan.append(refuse(Retryable("too-many-requests", after_seconds=45)))
    shop.deliver()
    shop.clock.wait(20)
    assert shop.deliver(order("m-2")) == reported("m-2")
    assert shop.hidden() == [45, 25]
    assert shop.provider.keys == [KEY]


def test_without_a_wait_of_its_own_the_next_attempt_backs_off(new_shop: NewShop) -> None:
    shop = new_shop(draws=True)
    shop.provider.plan.append(refuse(Retryable("busy")))
    shop.deliver()
    waits = (shop.row().next_attempt_ms or 0) - NOW_MS
    assert 30_000 <= waits <= 60_000
    assert shop.hidden() == [waits // 1000]


@pytest.mark.parametrize(
    ("given", "seconds"), [(-5, 30), (0, 30), (29, 30), (30.5, 30.5), (10**9, 39_600), (float("nan"), 30), ("soon", 30)]
)
def test_a_wait_of_a_retryable_failure_is_bounded_by_the_backoff_and_eleven_hours(
    shop: Shop, given: Any, seconds: float
) -> None:
    """A provider that asks for no wait would else have all attempts within a second."""
    shop.provider.plan.append(refuse(Retryable("busy", after_seconds=given)))
    assert shop.deliver() == reported("m-1")
    assert (shop.row().next_attempt_ms or 0) - NOW_MS == seconds * 1000


def test_attempts_come_to_an_end(shop: Shop) -> None:
    for receives, answer in ((1, reported("m-1")), (2, reported("m-1")), (3, NOTHING_FAILED)):
        shop.provider.plan.append(refuse(Retryable("busy", "try later")))
        assert shop.deliver(order(receives=receives)) == answer
        shop.clock.wait(30)

    row = shop.row()
    assert (row.state, row.reason) == (State.FAILED_FINAL, "attempts-exhausted")
    assert row.detail == "3 attempts, the last one: busy try later"
    assert shop.cloud.ledger()["o-1"]["ttl"] == {"N": "1896145506"}
    (letter,) = shop.cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("attempts-exhausted", "3 attempts, the last one: busy try later")
    assert len(shop.provider.keys) == 3


def test_an_operation_that_would_be_too_old_at_its_next_attempt_has_failed(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_MAX_AGE_SECONDS="60")
    shop.provider.plan.append(refuse(Retryable("busy", after_seconds=60)))
    assert shop.deliver() == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons()) == ("FAILED_FINAL", ["too-old"])


def test_an_operation_that_waited_for_too_long_has_failed(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_MAX_AGE_SECONDS="600")
    shop.provider.plan.append(refuse(Retryable("busy", after_seconds=45)))
    shop.deliver()
    shop.clock.wait(600)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.row().reason, shop.cloud.reasons()) == ("FAILED_FINAL", "too-old", ["too-old"])
    assert shop.provider.keys == [KEY]


def test_a_final_failure_is_dead_lettered_with_its_reason(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shop.provider.plan.append(refuse(Final("card-declined", "card 4242")))
    assert shop.deliver() == NOTHING_FAILED

    row = shop.row()
    assert (row.state, row.reason, row.detail) == (State.FAILED_FINAL, "card-declined", "card 4242")
    (letter,) = shop.cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("card-declined", "card 4242")
    ours = [vars(entry) for entry in caplog.records if entry.name == "idempotent_consumer"]
    assert "4242" not in str(ours)


def test_a_redelivery_of_a_failed_operation_is_dead_lettered_again(shop: Shop) -> None:
    shop.provider.plan.append(refuse(Final("card-declined")))
    shop.deliver()
    assert shop.deliver(order("m-2")) == NOTHING_FAILED
    assert shop.cloud.reasons() == ["card-declined", "card-declined"]
    assert shop.provider.keys == [KEY]


def test_failures_of_a_users_own_kind_are_told_by_their_class(shop: Shop) -> None:
    class Declined(Final):
        def __init__(self) -> None:  # calls no constructor
            pass

    shop.provider.plan.append(refuse(Declined()))
    assert shop.deliver() == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons()) == ("FAILED_FINAL", ["effect-failed"])


def test_characters_that_no_message_may_hold_are_replaced(shop: Shop) -> None:
    shop.provider.plan.append(refuse(Final("no\x00pe", "\ud800 half")))
    assert shop.deliver() == NOTHING_FAILED
    assert (shop.row().reason, shop.row().detail) == ("no?pe", "? half")
    assert shop.cloud.reasons() == ["no?pe"]


# --- outcomes that nobody knows


@pytest.mark.case("C63")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Uncertain("read-timeout", "no answer in 9 s"), "read-timeout no answer in 9 s"),
        (TimeoutError("secret text"), "effect-raised TimeoutError"),
        (SystemExit(3), "effect-raised SystemExit"),
    ],
)
def test_what_an_effect_raises_else_is_parked(
    shop: Shop, caplog: pytest.LogCaptureFixture, error: BaseException, told: str
) -> None:
    shop.provider.plan.append(shop.provider.apply_and_raise(error))
    assert shop.deliver() == NOTHING_FAILED

    row = shop.row()
    assert (row.state, row.parked_ms, row.reason) == (State.IN_PROGRESS, NOW_MS, "outcome-unknown")
    assert row.detail == f"1 attempt, the last one: {told}"
    assert "ttl" not in shop.cloud.ledger()["o-1"]
    (letter,) = shop.cloud.dead_letters()
    assert letter.reason == "outcome-unknown"
    assert letter.detail == f"idempotency key {KEY}: 1 attempt, the last one: {told}"
    assert "secret text" not in caplog.text


def test_a_parked_operation_is_parked_again_by_its_replay(shop: Shop) -> None:
    shop.provider.plan.append(shop.provider.apply_and_raise(TimeoutError()))
    shop.deliver()
    before = shop.cloud.ledger()
    shop.clock.wait(10**6)
    assert shop.deliver(order("m-2")) == NOTHING_FAILED
    assert shop.cloud.reasons() == ["outcome-unknown", "outcome-unknown"]
    assert (shop.provider.charges, shop.cloud.ledger()) == (["o-1"], before)


@pytest.mark.case("C54")
def test_a_claim_whose_lease_runs_is_waited_for_until_it_ends(shop: Shop) -> None:
    begin_and_die(shop)
    shop.clock.wait(70)
    assert shop.deliver(order(receives=2)) == reported("m-1")
    assert shop.hidden() == [LEASE_SECONDS - 70]
    assert shop.provider.keys == [KEY]


@pytest.mark.case("C54", "C57")
def test_a_claim_without_a_worker_is_parked_once_its_lease_is_over(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED

    row = shop.row()
    assert (row.state, row.reason) == (State.IN_PROGRESS, "outcome-unknown")
    assert row.parked_ms == NOW_MS + LEASE_SECONDS * 1000
    assert row.detail == "1 attempt, the last one: the lease ended before an outcome was recorded"
    assert shop.cloud.reasons() == ["outcome-unknown"]
    figures = metrics(capsys)
    assert (figures["InProgressStale"], figures["OutcomeUnknown"], figures["Claimed"]) == (1, 1, 0)


@pytest.mark.case("C54", "C57")
def test_with_a_provider_that_knows_keys_it_is_repeated_with_the_same_key(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="provider_key")
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert shop.provider.keys == [KEY, KEY]
    row = shop.row()
    assert (row.state, row.attempt, row.tries, row.uncertain_ms) == (State.COMPLETED, 2, 2, None)


def test_with_a_provider_that_knows_keys_an_unknown_outcome_need_not_wait_for_the_lease(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="provider_key")
    shop.provider.plan.append(refuse(TimeoutError()))
    assert shop.deliver() == reported("m-1")
    row = shop.row()
    assert (row.state, row.reason, row.detail) == (State.IN_PROGRESS, "effect-raised", "TimeoutError")
    assert (row.lease_until_ms, row.uncertain_ms) == (NOW_MS, NOW_MS)
    assert 30_000 <= (row.next_attempt_ms or 0) - NOW_MS <= 60_000
    assert shop.deliver(order("m-2")) == reported("m-2")
    assert shop.provider.keys == [KEY]

    shop.clock.wait(60)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert shop.provider.keys == [KEY, KEY]


def test_a_refused_repetition_leaves_the_outcome_unknown(new_shop: NewShop) -> None:
    """The earlier attempt may have been applied: FAILED_RETRYABLE, let alone FAILED_FINAL, would be a lie."""
    shop = new_shop(OPERATION_UNCERTAIN="provider_key")
    shop.provider.plan += [refuse(TimeoutError()), *[refuse(Retryable("busy"))] * 2]
    shop.deliver()
    shop.clock.wait(60)
    assert shop.deliver(order(receives=2)) == reported("m-1")
    assert (shop.status(), shop.row().uncertain_ms) == ("IN_PROGRESS", NOW_MS + 60_000)

    shop.clock.wait(30)
    assert shop.deliver(order(receives=3)) == NOTHING_FAILED
    assert shop.row().detail == "3 attempts, the last one: busy"
    assert (shop.status(), shop.cloud.reasons()) == ("IN_PROGRESS", ["outcome-unknown"])


def test_a_final_answer_to_a_repetition_says_nothing_about_the_attempt_before(new_shop: NewShop) -> None:
    """It may be one of new code, or of settings, that did not get as far as the provider."""
    shop = new_shop(OPERATION_UNCERTAIN="provider_key")
    shop.provider.plan += [refuse(TimeoutError()), refuse(Final("card-declined"))]
    shop.deliver()
    shop.clock.wait(60)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons()) == ("IN_PROGRESS", ["outcome-unknown"])
    assert shop.row().detail == "2 attempts, the last one: card-declined"


def test_a_provider_that_may_have_forgotten_the_key_gets_no_repetition(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="provider_key", OPERATION_MAX_AGE_SECONDS="600")
    begin_and_die(shop)
    shop.clock.wait(600)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons(), shop.provider.keys) == ("IN_PROGRESS", ["outcome-unknown"], [KEY])


# --- asking the provider


@pytest.fixture
def asking(new_shop: NewShop) -> Shop:
    """A shop that asks its provider, and whose order o-1 has a claim without a worker."""
    shop = new_shop(OPERATION_UNCERTAIN="reconcile")
    begin_and_die(shop)
    return shop


def test_the_provider_is_not_asked_before_it_must_have_settled(asking: Shop) -> None:
    asking.clock.wait(LEASE_SECONDS + SETTLE_SECONDS - 1)
    assert asking.deliver(order(receives=2)) == reported("m-1")
    assert (asking.provider.asked, asking.hidden()) == ([], [1])


def test_what_the_provider_says_was_applied_is_completed_with_its_result(
    asking: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    asking.provider.answers.append(Applied({"charge": 7}))
    asking.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    assert asking.deliver(order(receives=2)) == NOTHING_FAILED
    row = asking.row()
    assert (row.state, row.result, row.attempt) == (State.COMPLETED, {"charge": 7}, 1)
    assert asking.provider.keys == [KEY]
    assert metrics(capsys)["Completed"] == 1


def test_what_the_provider_says_was_not_applied_is_claimed_again(asking: Shop) -> None:
    asking.provider.answers.append(NotApplied())
    asking.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    assert asking.deliver(order(receives=2)) == NOTHING_FAILED
    row = asking.row()
    assert (row.state, row.attempt, row.tries) == (State.COMPLETED, 2, 2)
    assert (asking.provider.charges, asking.provider.keys) == (["o-1"], [KEY, KEY])


@pytest.mark.parametrize(
    "answer",
    [Unknown(), refuse(TimeoutError()), refuse(Final("no")), refuse(SystemExit(1)), None, True, NotApplied],
)
def test_a_provider_that_cannot_tell_is_asked_again_later(asking: Shop, answer: Any) -> None:
    asking.provider.answers.append(answer if answer is not NotApplied else lambda: NotApplied)
    asking.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    before = asking.cloud.ledger()
    assert asking.deliver(order(receives=2)) == reported("m-1")
    assert (asking.cloud.ledger(), asking.provider.keys) == (before, [KEY])
    assert 360 <= asking.hidden()[-1] <= 900


@pytest.mark.parametrize(("receives", "age"), [(15, 0), (2, 82_800)])
def test_a_provider_that_can_never_tell_is_left_to_a_person_in_the_end(asking: Shop, receives: int, age: int) -> None:
    asking.provider.answers.append(Unknown())
    asking.clock.wait(max(LEASE_SECONDS + SETTLE_SECONDS, age))
    assert asking.deliver(order(receives=receives)) == NOTHING_FAILED
    assert (asking.status(), asking.cloud.reasons()) == ("IN_PROGRESS", ["outcome-unknown"])
    assert asking.row().detail == (
        "the provider cannot tell; 1 attempt, the last one: the lease ended before an outcome was recorded"
    )


@pytest.mark.parametrize("policy", ["provider_key", "reconcile"])
def test_an_unknown_outcome_of_the_last_receive_is_left_to_a_person(new_shop: NewShop, policy: str) -> None:
    """The message would not come back, and its dead letter would not say why."""
    shop = new_shop(OPERATION_UNCERTAIN=policy)
    shop.provider.plan.append(refuse(TimeoutError()))
    assert shop.deliver(order(receives=15)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons()) == ("IN_PROGRESS", ["outcome-unknown"])


def test_not_applied_after_the_last_attempt_has_failed_for_good(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="reconcile", OPERATION_MAX_ATTEMPTS="1")
    begin_and_die(shop)
    shop.provider.answers.append(NotApplied())
    shop.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.status(), shop.cloud.reasons(), shop.provider.charges) == ("FAILED_FINAL", ["attempts-exhausted"], [])


def test_an_unknown_outcome_keeps_its_lease_and_says_why(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="reconcile")
    shop.provider.plan.append(shop.provider.apply_and_raise(TimeoutError()))
    assert shop.deliver() == reported("m-1")
    row = shop.row()
    assert (row.state, row.lease_until_ms) == (State.IN_PROGRESS, NOW_MS + LEASE_SECONDS * 1000)
    assert (row.uncertain_ms, row.reason, row.detail) == (NOW_MS, "effect-raised", "TimeoutError")
    assert shop.hidden() == [LEASE_SECONDS + SETTLE_SECONDS]


def test_not_applied_is_remembered_where_no_time_is_left_for_the_effect(asking: Shop) -> None:
    """A function whose time fits one of both alone would ask for ever."""

    def slow() -> Any:
        asking.context_ms = 20_000
        return NotApplied()

    asking.provider.answers.append(slow)
    asking.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    assert asking.deliver(order(receives=2), remaining_ms=60_000) == reported("m-1")
    assert (asking.status(), asking.row().reason, asking.provider.keys) == ("FAILED_RETRYABLE", "not-applied", [KEY])

    asking.context_ms = None
    assert asking.deliver(order(receives=3)) == NOTHING_FAILED
    assert (asking.status(), asking.provider.charges) == ("COMPLETED", ["o-1"])


def test_a_policy_to_ask_needs_a_way_to_ask(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="reconcile")
    with pytest.raises(SettingsError, match="no reconcile function"):
        OperationConsumer(shop.settings, shop.cloud.clients, Operation(shop.provider.charge))


# --- time


@pytest.mark.case("C55")
@pytest.mark.parametrize("remaining_ms", [0, 40, EFFECT_SECONDS * 1000, 24_999])
def test_nothing_is_claimed_without_time_for_the_effect(shop: Shop, remaining_ms: int) -> None:
    assert shop.deliver(remaining_ms=remaining_ms) == reported("m-1")
    assert (shop.cloud.ledger(), shop.provider.keys) == ({}, [])


@pytest.mark.parametrize("policy", ["provider_key", "reconcile"])
def test_nothing_is_taken_over_and_nobody_asked_without_time_for_the_effect(new_shop: NewShop, policy: str) -> None:
    shop = new_shop(OPERATION_UNCERTAIN=policy)
    begin_and_die(shop)
    shop.clock.wait(LEASE_SECONDS + SETTLE_SECONDS)
    before = shop.cloud.ledger()
    shop.context_costs = {UPDATE: 1_000}
    assert shop.deliver(order(receives=2), remaining_ms=25_999) == reported("m-1")
    assert (shop.cloud.ledger(), shop.provider.keys, shop.provider.asked) == (before, [KEY], [])


def test_an_effect_that_just_fits_is_begun(shop: Shop) -> None:
    assert shop.deliver(remaining_ms=25_000) == NOTHING_FAILED


def test_a_claim_that_took_too_long_is_given_back_and_is_no_attempt(shop: Shop) -> None:
    shop.context_costs = {UPDATE: 8_000}
    assert shop.deliver(remaining_ms=25_100) == reported("m-1")
    row = shop.row()
    assert (row.state, row.tries, shop.provider.keys) == (State.FAILED_RETRYABLE, 0, [])

    shop.context_costs = {}
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.row().tries, shop.row().attempt) == (1, 2)


def test_an_effect_that_would_outlast_the_lease_is_not_begun(new_shop: NewShop) -> None:
    shop = new_shop()
    # The clock goes on while the claim is written.
    shop.cloud.on(UPDATE, runs=lambda: shop.clock.wait(LEASE_SECONDS - EFFECT_SECONDS + 1), calls=[1])
    assert shop.deliver() == reported("m-1")
    assert (shop.status(), shop.provider.keys) == ("FAILED_RETRYABLE", [])


def test_an_effect_that_hangs_is_stopped_and_its_outcome_unknown(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_EFFECT_TIMEOUT_SECONDS="1")

    def hang() -> Any:
        while True:
            pass

    shop.provider.plan.append(hang)
    assert shop.deliver() == NOTHING_FAILED
    assert shop.row().detail == "1 attempt, the last one: effect-timed-out"
    assert shop.cloud.reasons() == ["outcome-unknown"]


def test_a_hanging_effect_takes_none_of_its_neighbours_along(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_EFFECT_TIMEOUT_SECONDS="1")

    def hang() -> Any:
        while True:
            pass

    shop.provider.plan.append(hang)
    assert shop.deliver(order("m-1", "o-1"), order("m-2", "o-2")) == NOTHING_FAILED
    assert (shop.provider.charges, shop.status("o-2")) == (["o-2"], "COMPLETED")


# --- calls that fail


@pytest.mark.parametrize("code", ["ThrottlingException", "TransactionConflictException"])
def test_a_claim_that_is_throttled_is_tried_again_at_once(shop: Shop, code: str) -> None:
    shop.cloud.on(UPDATE, raises=client_error(code, UPDATE), calls=[1, 2])
    assert shop.deliver() == NOTHING_FAILED
    assert (shop.provider.charges, shop.row().attempt) == (["o-1"], 1)


def test_a_claim_that_cannot_be_written_begins_no_effect(shop: Shop) -> None:
    shop.cloud.on(UPDATE, raises=client_error("InternalServerError", UPDATE))
    assert shop.deliver() == reported("m-1")
    assert (shop.provider.keys, shop.cloud.ledger()) == ([], {})


def test_a_claim_whose_answer_was_lost_is_given_back(shop: Shop) -> None:
    """Else it would be taken for uncertain once its lease is over, and parked for nothing."""
    shop.cloud.on(UPDATE, raises=client_error("InternalServerError", UPDATE), after=True, calls=[1])
    assert shop.deliver() == reported("m-1")
    assert (shop.status(), shop.row().tries, shop.provider.keys) == ("FAILED_RETRYABLE", 0, [])
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert shop.provider.charges == ["o-1"]


def test_an_outcome_is_recorded_as_long_as_there_is_time(shop: Shop) -> None:
    shop.cloud.on(UPDATE, raises=client_error("InternalServerError", UPDATE), calls=range(2, 12))
    assert shop.deliver() == NOTHING_FAILED
    assert (shop.status(), shop.cloud.count(UPDATE)) == ("COMPLETED", 12)


def test_an_outcome_that_cannot_be_recorded_is_unknown_to_the_next_delivery(shop: Shop) -> None:
    shop.cloud.on(UPDATE, raises=client_error("AccessDeniedException", UPDATE), calls=[2])
    with pytest.raises(Misconfigured):
        shop.deliver()
    shop.clock.wait(LEASE_SECONDS)
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.provider.charges, shop.cloud.reasons()) == (["o-1"], ["outcome-unknown"])


def test_a_missing_right_fails_the_invocation_where_nothing_is_settled(shop: Shop) -> None:
    shop.cloud.on(UPDATE, raises=client_error("AccessDeniedException", UPDATE))
    with pytest.raises(Misconfigured):
        shop.deliver()
    assert shop.provider.keys == []


def test_a_row_of_another_kind_is_left_alone(shop: Shop) -> None:
    shop.cloud.store(
        "orders-processed-events", {"event_id": {"S": "o-1"}, "status": {"S": "sent"}, "fingerprint": {"S": "f"}}
    )
    before = shop.cloud.ledger()
    assert shop.deliver() == reported("m-1")
    assert (shop.cloud.ledger(), shop.provider.keys) == (before, [])


def test_a_dead_letter_that_cannot_be_sent_comes_back_and_is_dead_lettered_then(shop: Shop) -> None:
    shop.provider.plan.append(refuse(Final("card-declined")))
    shop.cloud.on("SendMessage", raises=client_error("InternalError", "SendMessage"), calls=[1])
    assert shop.deliver() == reported("m-1")
    assert shop.deliver(order(receives=2)) == NOTHING_FAILED
    assert (shop.cloud.reasons(), shop.provider.keys) == (["card-declined"], [KEY])


# --- what is needed before an effect


def test_what_cannot_be_made_ready_is_no_attempt(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    shop.prepare = lambda: (_ for _ in ()).throw(Retryable("secret-unavailable", "GetParameter: InternalServerError"))
    assert shop.deliver() == reported("m-1")
    (logged,) = [vars(entry) for entry in caplog.records if entry.name == "idempotent_consumer"]
    assert (logged["reason"], logged["detail"]) == ("secret-unavailable", "GetParameter: InternalServerError")
    assert (shop.cloud.ledger(), shop.provider.keys) == ({}, [])


def test_what_cannot_be_made_ready_is_asked_for_once_an_invocation_and_only_in_time(shop: Shop) -> None:
    asked: list[int] = []

    def prepare() -> None:
        asked.append(1)
        raise Retryable("secret-unavailable")

    shop.prepare = prepare
    assert shop.deliver(order("m-1"), order("m-2", "o-2")) == reported("m-1", "m-2")
    assert shop.deliver(remaining_ms=24_999) == reported("m-1")
    assert asked == [1]


def test_what_is_misconfigured_before_an_effect_counts_as_such(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.prepare = lambda: (_ for _ in ()).throw(Retryable("misconfigured"))
    with pytest.raises(Misconfigured):
        shop.deliver()
    assert metrics(capsys)["Misconfigured"] == 1


# --- the batch


def test_one_failure_changes_no_other_record(shop: Shop) -> None:
    shop.provider.plan += [shop.provider.apply, refuse(Retryable("busy", after_seconds=5)), lambda: "third"]
    answer = shop.deliver(order("m-1", "o-1"), order("m-2", "o-2"), order("m-3", "o-3"), record("m-4", "no json"))
    assert answer == reported("m-2")
    assert {event_id: shop.status(event_id) for event_id in ("o-1", "o-2", "o-3")} == {
        "o-1": "COMPLETED",
        "o-2": "FAILED_RETRYABLE",
        "o-3": "COMPLETED",
    }
    assert shop.cloud.reasons() == ["bad-json"]


def test_the_metrics_of_an_operation_have_their_own_names(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.deliver(order("m-1", "o-1"), order("m-2", "o-1"))
    figures = metrics(capsys)
    assert {name: figures[name] for name in ("Consumer", "Claimed", "Completed", "Duplicates", "ReceiveCount")} == {
        "Consumer": "orders",
        "Claimed": 1,
        "Completed": 1,
        "Duplicates": 1,
        "ReceiveCount": [1, 1],
    }
    assert [metric["Name"] for metric in figures["_aws"]["CloudWatchMetrics"][0]["Metrics"]] == [
        "Completed",
        "Duplicates",
        "Ignored",
        "Rejected",
        "Conflicts",
        "Failed",
        "OutcomeUnknown",
        "Retries",
        "Blocked",
        "Misconfigured",
        "Claimed",
        "InProgressStale",
        "EventAge",
        "ReceiveCount",
    ]


# --- FIFO


@pytest.fixture
def fifo_shop(fifo_cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(fifo_cloud, monkeypatch)


def test_nothing_is_touched_behind_a_record_of_its_group_that_comes_back(fifo_shop: Shop) -> None:
    fifo_shop.provider.plan.append(refuse(Retryable("busy", after_seconds=45)))
    answer = fifo_shop.deliver(
        order("m-1", "o-1", group="a"), order("m-2", "o-2", group="a"), order("m-3", "o-3", group="b")
    )
    assert answer == reported("m-1", "m-2")
    assert (fifo_shop.provider.charges, sorted(fifo_shop.cloud.ledger())) == (["o-3"], ["o-1", "o-3"])
    # What waits behind it comes back with it.
    assert fifo_shop.hidden() == [45, 45]


def test_a_group_goes_on_behind_a_record_that_is_dead_lettered(fifo_shop: Shop) -> None:
    fifo_shop.provider.plan.append(refuse(Final("card-declined")))
    assert fifo_shop.deliver(order("m-1", "o-1", group="a"), order("m-2", "o-2", group="a")) == NOTHING_FAILED
    assert fifo_shop.cloud.operations.index("SendMessage") < 4
    assert (fifo_shop.provider.charges, fifo_shop.cloud.reasons()) == (["o-2"], ["card-declined"])


# --- how long a message is hidden


@pytest.mark.parametrize(
    ("lease_seconds", "receives", "age_seconds", "hidden"),
    [
        (180, 2, 0, 180),
        # SQS hides a message for 12 hours at most.
        (43_200, 2, 0, 43_200),
        # Of four days 1,000 s are left, for a hundred receives: it must reach the dead-letter queue before it is lost.
        (43_200, 1, 344_600, 360),
    ],
)
def test_a_message_waits_for_the_lease_but_is_never_lost_by_waiting(
    new_shop: NewShop, lease_seconds: int, receives: int, age_seconds: int, hidden: int
) -> None:
    shop = new_shop(OPERATION_LEASE_MS=str(lease_seconds * 1000), MAX_RECEIVE_COUNT="3" if receives > 1 else "100")
    begin_and_die(shop)
    message = order("m-2", receives=receives)
    message["attributes"]["SentTimestamp"] = str(NOW_MS - age_seconds * 1000)
    assert shop.deliver(message) == reported("m-2")
    assert shop.hidden() == [hidden]


def test_sqs_hides_no_message_for_longer_than_12_hours(new_shop: NewShop) -> None:
    shop = new_shop(OPERATION_UNCERTAIN="reconcile", OPERATION_LEASE_MS="43200000", MAX_RECEIVE_COUNT="3")
    shop.provider.plan.append(refuse(TimeoutError()))
    assert shop.deliver(order(receives=2)) == reported("m-1")
    assert shop.hidden() == [43_200]


def test_a_wait_counts_from_now_however_long_the_invocation_has_run(shop: Shop) -> None:
    begin_and_die(shop)
    shop.context_costs = {UPDATE: 20_000}
    assert shop.deliver(order("m-2")) == reported("m-2")
    assert shop.hidden() == [LEASE_SECONDS]


def test_a_message_of_several_events_comes_back_for_the_first_that_is_due(new_shop: NewShop) -> None:
    shop = new_shop(EVENT_ENVELOPE="s3")
    objects = [{"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "1"}}} for key in ("a", "c")]
    shop.provider.plan += [refuse(Retryable("busy", after_seconds=seconds)) for seconds in (3000, 45)]
    assert shop.deliver(record("m-1", {"Records": objects})) == reported("m-1")
    assert shop.hidden() == [45]
