"""What became of the messages: which come back, how old the others were, and whether all of it waits for a person."""

from __future__ import annotations

import pytest

from idempotent_consumer.answer import BLOCKED, UNDECIDED, Outcome, Verdict
from idempotent_consumer.delivery import Delivery, Work
from idempotent_consumer.event import Event
from idempotent_consumer.message import Message
from idempotent_consumer.settlement import Report, returning_messages

NOW_MS = 1_893_553_446_000
APPLIED = Verdict(Outcome.APPLIED)
DUPLICATE = Verdict(Outcome.DUPLICATE)
SUPERSEDED = Verdict(Outcome.SUPERSEDED)
IGNORED = Verdict(Outcome.IGNORED)
REJECTED = Verdict(Outcome.REJECTED, "bad-json")
CONFLICT = Verdict(Outcome.CONFLICT, "row-exists")
RETRY = Verdict(Outcome.RETRY, "throttled", "BatchGetItem: Throttled")
MISCONFIGURED = Verdict(Outcome.RETRY, "misconfigured", "TransactWriteItems: AccessDeniedException")
REFUSED = Verdict(Outcome.RETRY, "refused", "PublishBatch: InvalidParameter")


def delivery(
    message_id: str, *verdicts: Verdict, group: str | None = None, sent_ms: int = NOW_MS, receive_count: int = 1
) -> Delivery:
    """A message with an event for each verdict."""
    message = Message(message_id, "{}", group, sent_ms, receive_count, {})
    works = [
        Work(message, Event(f"{message_id}/{number}", {}, "a" * 64, group), verdict)
        for number, verdict in enumerate(verdicts, 1)
    ]
    return Delivery(message, works)


def report(*parts: list[Delivery]) -> Report:
    result, held = Report(), set[str]()
    for part in parts:
        result.add(part, returning_messages(part, held), NOW_MS)
    return result


# --- which messages come back


@pytest.mark.parametrize("verdict", [APPLIED, DUPLICATE, SUPERSEDED, IGNORED, REJECTED, CONFLICT])
def test_a_message_that_is_done_or_dead_lettered_does_not_come_back(verdict: Verdict) -> None:
    assert returning_messages([delivery("m-1", verdict)], set()) == []


@pytest.mark.parametrize("verdict", [RETRY, MISCONFIGURED, BLOCKED, UNDECIDED])
def test_a_message_that_is_not_done_comes_back(verdict: Verdict) -> None:
    assert returning_messages([delivery("m-1", verdict)], set()) == ["m-1"]
    assert returning_messages([delivery("m-1", APPLIED, verdict, REJECTED)], set()) == ["m-1"]


def test_only_the_message_that_failed_comes_back() -> None:
    batch = [delivery("m-1", APPLIED), delivery("m-2", RETRY), delivery("m-3", REJECTED), delivery("m-4", RETRY)]
    held: set[str] = set()
    assert returning_messages(batch, held) == ["m-2", "m-4"]
    assert held == set()


def test_all_that_follows_in_its_message_group_comes_back_committed_or_not() -> None:
    batch = [
        delivery("m-1", APPLIED, group="g"),
        delivery("m-2", RETRY, group="g"),
        delivery("m-3", APPLIED, group="h"),
        delivery("m-4", APPLIED, group="g"),
        delivery("m-5", REJECTED, group="g"),
        delivery("m-6", BLOCKED, group="g"),
        delivery("m-7", DUPLICATE, group="h"),
    ]
    held: set[str] = set()
    assert returning_messages(batch, held) == ["m-2", "m-4", "m-5", "m-6"]
    assert held == {"g"}


def test_a_message_group_is_held_over_the_parts_of_a_batch() -> None:
    held: set[str] = set()
    assert returning_messages([delivery("m-1", APPLIED, group="g"), delivery("m-2", APPLIED, group="h")], held) == []
    assert returning_messages([delivery("m-3", RETRY, group="g"), delivery("m-4", APPLIED, group="h")], held) == ["m-3"]
    assert returning_messages([delivery("m-5", APPLIED, group="g"), delivery("m-6", RETRY, group="h")], held) == [
        "m-5",
        "m-6",
    ]
    assert held == {"g", "h"}


def test_a_message_of_a_group_that_is_held_comes_back() -> None:
    assert returning_messages([delivery("m-1", APPLIED, group="g"), delivery("m-2", APPLIED)], {"g"}) == ["m-1"]


# --- what is reported


def test_nothing_is_reported_of_nothing() -> None:
    empty = Report()
    assert (empty.returning, empty.verdicts, empty.event_ages_ms, empty.receive_counts) == ([], [], [], [])
    assert not empty.is_misconfigured


def test_a_batch_is_reported_part_by_part() -> None:
    first = [
        delivery("m-1", APPLIED, sent_ms=NOW_MS - 10, receive_count=1),
        delivery("m-2", RETRY, sent_ms=NOW_MS - 20, receive_count=2),
    ]
    second = [
        delivery("m-3", REJECTED, sent_ms=NOW_MS - 30, receive_count=3),
        delivery("m-4", APPLIED, DUPLICATE, sent_ms=NOW_MS - 40, receive_count=4),
    ]
    result = report(first, second)
    assert result.returning == ["m-2"]
    assert result.verdicts == [APPLIED, RETRY, REJECTED, APPLIED, DUPLICATE]
    assert result.event_ages_ms == [10, 30, 40]
    assert result.receive_counts == [1, 2, 3, 4]


def test_a_message_that_comes_back_only_for_its_group_has_no_age_yet() -> None:
    result = report(
        [
            delivery("m-1", APPLIED, group="g", sent_ms=NOW_MS - 10),
            delivery("m-2", RETRY, group="g", sent_ms=NOW_MS - 20),
            delivery("m-3", APPLIED, group="g", sent_ms=NOW_MS - 30),
        ]
    )
    assert result.returning == ["m-2", "m-3"]
    assert result.event_ages_ms == [10]
    assert result.verdicts == [APPLIED, RETRY, APPLIED]


@pytest.mark.parametrize(("sent_ms", "age_ms"), [(NOW_MS + 5, 0), (NOW_MS, 0), (NOW_MS - 1, 1), (0, NOW_MS)])
def test_an_age_is_never_negative(sent_ms: int, age_ms: int) -> None:
    assert report([delivery("m-1", APPLIED, sent_ms=sent_ms)]).event_ages_ms == [age_ms]


def test_a_message_of_several_events_has_one_age_and_one_receive_count() -> None:
    result = report([delivery("m-1", APPLIED, APPLIED, APPLIED, sent_ms=NOW_MS - 7, receive_count=2)])
    assert (result.event_ages_ms, result.receive_counts, len(result.verdicts)) == ([7], [2], 3)


# --- whether all of it waits for a person


@pytest.mark.parametrize("verdict", [MISCONFIGURED, REFUSED])
class TestMisconfigured:
    def test_where_nothing_is_settled(self, verdict: Verdict) -> None:
        assert report([delivery("m-1", verdict)]).is_misconfigured
        assert report([delivery("m-1", RETRY), delivery("m-2", verdict)], [delivery("m-3", RETRY)]).is_misconfigured
        assert report([delivery("m-1", verdict, group="g"), delivery("m-2", BLOCKED, group="g")]).is_misconfigured

    def test_with_one_event_of_a_message(self, verdict: Verdict) -> None:
        assert report([delivery("m-1", APPLIED, verdict)]).is_misconfigured
        assert report([delivery("m-1", RETRY, verdict)]).is_misconfigured

    @pytest.mark.parametrize("settled", [APPLIED, DUPLICATE, REJECTED, IGNORED])
    def test_not_where_a_message_of_any_part_is_settled(self, verdict: Verdict, settled: Verdict) -> None:
        assert not report([delivery("m-1", settled)], [delivery("m-2", verdict)]).is_misconfigured
        assert not report([delivery("m-1", verdict)], [delivery("m-2", settled)]).is_misconfigured


def test_events_that_fail_for_another_reason_are_not_misconfigured() -> None:
    assert not report([delivery("m-1", RETRY), delivery("m-2", BLOCKED)]).is_misconfigured


def test_a_rejected_event_is_not_misconfigured_whatever_else_comes_back() -> None:
    assert not report([delivery("m-1", REJECTED, RETRY)]).is_misconfigured
