"""The poller gets exactly the answer it understands, and a message its worst event's verdict."""

from __future__ import annotations

import itertools
import json

import pytest

from idempotent_consumer.answer import BLOCKED, Outcome, Verdict, partial_batch_response, worst


@pytest.mark.case("C01", "C08")
def test_the_answer_has_exactly_the_keys_that_the_poller_reads() -> None:
    assert json.dumps(partial_batch_response(["m-2", "m-5"])) == (
        '{"batchItemFailures": [{"itemIdentifier": "m-2"}, {"itemIdentifier": "m-5"}]}'
    )


@pytest.mark.case("C08")
def test_the_answer_to_a_batch_without_failures_is_an_empty_list_and_never_null() -> None:
    assert partial_batch_response([]) == {"batchItemFailures": []}
    assert partial_batch_response(iter(())) == {"batchItemFailures": []}


@pytest.mark.parametrize(
    ("outcome", "name", "is_reported", "is_dead"),
    [
        (Outcome.APPLIED, "applied", False, False),
        (Outcome.RESUMED, "resumed", False, False),
        (Outcome.DUPLICATE, "duplicate", False, False),
        (Outcome.SUPERSEDED, "superseded", False, False),
        (Outcome.IGNORED, "ignored", False, False),
        (Outcome.REJECTED, "rejected", False, True),
        (Outcome.CONFLICT, "conflict", False, True),
        (Outcome.RETRY, "retry", True, False),
        (Outcome.BLOCKED, "blocked", True, False),
        (Outcome.COMPLETED, "completed", False, False),
        (Outcome.FAILED, "failed", False, True),
        (Outcome.PARKED, "parked", False, True),
    ],
)
def test_an_outcome_says_what_becomes_of_the_message(
    outcome: Outcome, name: str, is_reported: bool, is_dead: bool
) -> None:
    assert (outcome.value, outcome.is_reported, outcome.is_dead) == (name, is_reported, is_dead)


def test_there_are_no_outcomes_but_these_thirteen() -> None:
    assert len(Outcome) == 13


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ("applied", "applied"),
        ("applied duplicate ignored", "applied"),
        ("superseded applied", "superseded"),
        ("applied rejected duplicate", "rejected"),
        ("rejected conflict applied", "conflict"),
        ("conflict rejected", "conflict"),
        ("conflict blocked rejected", "blocked"),
        ("blocked retry", "retry"),
        ("applied conflict rejected blocked retry", "retry"),
    ],
)
@pytest.mark.case("C18")
def test_a_message_of_several_events_takes_the_worst_outcome(outcomes: str, verdict: str) -> None:
    """A message goes to the dead-letter queue only when no event of it is left to retry."""
    assert worst(Verdict(Outcome(name)) for name in outcomes.split()).outcome is Outcome(verdict)


def test_the_worst_outcome_does_not_depend_on_the_order_of_events() -> None:
    verdicts = [Verdict(Outcome(name)) for name in ("applied", "rejected", "conflict", "blocked", "retry")]

    assert {worst(order).outcome for order in itertools.permutations(verdicts)} == {Outcome.RETRY}


def test_of_equal_outcomes_the_first_gives_its_reason() -> None:
    assert worst(
        [Verdict(Outcome.APPLIED), Verdict(Outcome.REJECTED, "id-missing"), Verdict(Outcome.REJECTED, "id-blank")]
    ) == Verdict(Outcome.REJECTED, "id-missing")


def test_an_event_that_waits_for_its_turn_is_blocked() -> None:
    assert BLOCKED.outcome is Outcome.BLOCKED
    assert BLOCKED.reason == "group-blocked"
    assert BLOCKED.notification is None
