"""A message with its events: what their verdicts make of it, and what may follow it on FIFO."""

from __future__ import annotations

import pytest

from idempotent_consumer.answer import BLOCKED, UNDECIDED, Outcome, Verdict
from idempotent_consumer.delivery import (
    Delivery,
    Work,
    awaiting_publishing,
    fail_events,
    hold_group,
    settle_events,
)
from idempotent_consumer.event import Event
from idempotent_consumer.message import Message
from idempotent_consumer.notification import RenderedNotification

HELLO = RenderedNotification("hello", {"event_id": ("String", "o-1")}, "g", "d")
APPLIED = Verdict(Outcome.APPLIED)
PUBLISHING = Verdict(Outcome.APPLIED, notification=HELLO)
RESUMED = Verdict(Outcome.RESUMED, notification=HELLO)
DUPLICATE = Verdict(Outcome.DUPLICATE)
SUPERSEDED = Verdict(Outcome.SUPERSEDED)
IGNORED = Verdict(Outcome.IGNORED)
REJECTED = Verdict(Outcome.REJECTED, "bad-json", "at character 1")
CONFLICT = Verdict(Outcome.CONFLICT, "row-exists", "a row")
RETRY = Verdict(Outcome.RETRY, "throttled", "BatchGetItem: Throttled")

DONE = [APPLIED, PUBLISHING, RESUMED, DUPLICATE, SUPERSEDED, IGNORED]
DEAD = [REJECTED, CONFLICT]
REPORTED = [RETRY, BLOCKED]


def delivery(*verdicts: Verdict, group: str | None = None, is_dead_lettered: bool = False) -> Delivery:
    """A message with the events o-1, o-2, … of these verdicts."""
    message = Message("m-1", "{}", group, 0, 1, {})
    works = [
        Work(message, Event(f"o-{number}", {}, "a" * 64, group), verdict) for number, verdict in enumerate(verdicts, 1)
    ]
    return Delivery(message, works, is_dead_lettered)


def verdicts(of: Delivery) -> list[Verdict]:
    return [work.verdict for work in of.works]


# --- an event


def test_an_event_begins_undecided() -> None:
    (work,) = delivery(UNDECIDED).works
    assert Work(work.message, work.event).verdict is UNDECIDED
    assert not work.is_decided
    assert not work.has_failed


@pytest.mark.parametrize("verdict", [*DONE, *DEAD, *REPORTED])
def test_any_verdict_decides_an_event(verdict: Verdict) -> None:
    assert delivery(verdict).works[0].is_decided


def test_a_verdict_that_reads_as_undecided_is_one() -> None:
    """An event of which nothing else can be said has a verdict, and is not taken up for ever."""
    verdict = Verdict(UNDECIDED.outcome, UNDECIDED.reason, UNDECIDED.detail)
    assert verdict == UNDECIDED
    assert delivery(verdict).works[0].is_decided


@pytest.mark.parametrize(
    ("verdict", "has_failed"),
    [*((verdict, False) for verdict in [*DONE, UNDECIDED]), *((verdict, True) for verdict in [*DEAD, *REPORTED])],
)
def test_an_event_has_failed_where_its_message_cannot_be_deleted_for_it(verdict: Verdict, has_failed: bool) -> None:
    assert delivery(verdict).works[0].has_failed is has_failed
    assert delivery(APPLIED, verdict, DUPLICATE).has_failed is has_failed


def test_a_body_without_an_event_has_no_id() -> None:
    message = Message("m-1", "{", None, 0, 1, {})
    broken = Delivery(message, [Work(message, None, REJECTED)])
    assert broken.works[0].event_id is None
    assert (broken.event_id, broken.verdict, broken.detail) == (None, REJECTED, "at character 1")


# --- a message


@pytest.mark.parametrize(
    ("of_events", "verdict", "event_id"),
    [
        ([APPLIED], APPLIED, "o-1"),
        ([APPLIED, DUPLICATE], APPLIED, "o-1"),
        ([APPLIED, REJECTED], REJECTED, "o-2"),
        ([REJECTED, CONFLICT], CONFLICT, "o-2"),
        ([CONFLICT, BLOCKED, REJECTED], BLOCKED, "o-2"),
        ([CONFLICT, BLOCKED, RETRY], RETRY, "o-3"),
        ([APPLIED, UNDECIDED, REJECTED], UNDECIDED, "o-2"),
    ],
)
def test_the_verdict_on_a_message_is_its_worst_event_s(
    of_events: list[Verdict], verdict: Verdict, event_id: str
) -> None:
    assert delivery(*of_events).verdict is verdict
    assert delivery(*of_events).event_id == event_id


def test_the_undecided_events_of_a_message_keep_their_order() -> None:
    message = delivery(UNDECIDED, APPLIED, UNDECIDED, RETRY, UNDECIDED)
    assert [work.event_id for work in message.undecided] == ["o-1", "o-3", "o-5"]
    assert delivery(APPLIED, RETRY).undecided == []


def test_events_that_share_a_verdict_are_told_by_the_first() -> None:
    message = delivery(RETRY, BLOCKED, RETRY, BLOCKED, APPLIED, BLOCKED)
    assert {work.event_id for work in message.distinct} == {"o-1", "o-2", "o-5"}
    assert len(message.distinct) == 3


@pytest.mark.parametrize(
    ("of_events", "is_under_way"),
    [
        ([PUBLISHING], True),
        ([RESUMED], True),
        ([APPLIED, REJECTED, RESUMED], True),
        ([APPLIED], False),
        ([UNDECIDED, DUPLICATE, CONFLICT], False),
    ],
)
def test_a_message_is_under_way_while_something_of_it_is_to_be_published(
    of_events: list[Verdict], is_under_way: bool
) -> None:
    assert delivery(*of_events).is_under_way is is_under_way


def test_the_detail_of_a_message_of_one_event_is_the_event_s() -> None:
    assert delivery(RETRY).detail == "BatchGetItem: Throttled"
    assert delivery(APPLIED).detail == ""


def test_the_detail_of_a_message_of_several_events_says_what_became_of_each() -> None:
    assert delivery(APPLIED, REJECTED, DUPLICATE, CONFLICT).detail == (
        "1: applied; 2: rejected bad-json at character 1; 3: duplicate; 4: conflict row-exists a row"
    )


# --- what may follow on FIFO


@pytest.mark.parametrize(
    ("of_events", "is_dead_lettered", "is_settled"),
    [
        *(([verdict], False, True) for verdict in DONE),
        *(([verdict], False, False) for verdict in [*DEAD, *REPORTED, UNDECIDED]),
        *(([verdict], True, True) for verdict in DEAD),
        ([APPLIED, DUPLICATE], False, True),
        ([APPLIED, REJECTED], False, False),
        ([APPLIED, REJECTED], True, True),
        ([APPLIED, UNDECIDED], False, False),
        ([REJECTED, RETRY], False, False),
        ([REJECTED, RETRY], True, False),
    ],
)
def test_a_message_is_settled_once_it_is_done_or_dead_lettered(
    of_events: list[Verdict], is_dead_lettered: bool, is_settled: bool
) -> None:
    assert delivery(*of_events, is_dead_lettered=is_dead_lettered).is_settled is is_settled


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([UNDECIDED, UNDECIDED], [UNDECIDED, UNDECIDED]),
        ([APPLIED, DUPLICATE, UNDECIDED], [APPLIED, DUPLICATE, UNDECIDED]),
        ([RETRY, UNDECIDED, UNDECIDED], [RETRY, BLOCKED, BLOCKED]),
        ([REJECTED, UNDECIDED], [REJECTED, BLOCKED]),
        ([PUBLISHING, CONFLICT, UNDECIDED], [PUBLISHING, CONFLICT, BLOCKED]),
        ([UNDECIDED, REJECTED, UNDECIDED], [UNDECIDED, REJECTED, BLOCKED]),
        ([RETRY, APPLIED, UNDECIDED], [RETRY, BLOCKED, BLOCKED]),
        ([REJECTED, RESUMED], [REJECTED, BLOCKED]),
        ([UNDECIDED, BLOCKED, UNDECIDED], [UNDECIDED, BLOCKED, BLOCKED]),
        ([UNDECIDED, RETRY], [UNDECIDED, RETRY]),
    ],
)
def test_events_behind_the_first_that_failed_are_blocked(before: list[Verdict], after: list[Verdict]) -> None:
    message = delivery(*before)
    message.block_after_failure()
    assert verdicts(message) == after
    assert [work.is_decided for work in message.works] == [verdict is not UNDECIDED for verdict in after]
    message.block_after_failure()
    assert verdicts(message) == after


def test_nothing_of_a_blocked_message_is_touched() -> None:
    message = delivery(UNDECIDED, REJECTED, RESUMED)
    message.block()
    assert verdicts(message) == [BLOCKED, BLOCKED, BLOCKED]
    assert message.undecided == []
    assert not message.is_under_way
    assert not message.is_settled


@pytest.mark.parametrize(
    ("message", "held"),
    [
        (delivery(APPLIED, group="g"), {"f"}),
        (delivery(RETRY, group="g"), {"f", "g"}),
        (delivery(REJECTED, group="g"), {"f", "g"}),
        (delivery(REJECTED, group="g", is_dead_lettered=True), {"f"}),
        (delivery(RETRY), {"f"}),
        (delivery(APPLIED, group="f"), {"f"}),
    ],
)
def test_the_group_of_a_message_that_is_not_settled_is_held(message: Delivery, held: set[str]) -> None:
    groups = {"f"}
    hold_group(groups, message)
    assert groups == held


# --- publishing


def copies(*of_messages: Verdict) -> list[Delivery]:
    """Messages that each hold the event o-1."""
    return [delivery(verdict) for verdict in of_messages]


def test_events_with_a_notification_wait_to_be_published() -> None:
    first = delivery(PUBLISHING, DUPLICATE, RESUMED)
    pending = awaiting_publishing([first, delivery(APPLIED), delivery(RETRY, REJECTED)])
    assert pending == {"o-1": [first.works[0]], "o-3": [first.works[2]]}


def test_copies_of_an_event_wait_behind_each_other() -> None:
    first, second, third = copies(PUBLISHING, DUPLICATE, RESUMED)
    assert awaiting_publishing([first, second, third]) == {"o-1": [first.works[0], third.works[0]]}


def test_an_event_that_failed_fails_with_all_its_copies() -> None:
    message, copy = delivery(PUBLISHING, PUBLISHING), delivery(RESUMED)
    pending = awaiting_publishing([message, copy])
    fail_events(pending, {"o-1": RETRY})
    assert list(pending) == ["o-2"]
    assert verdicts(message) == [RETRY, PUBLISHING]
    assert verdicts(copy) == [RETRY]


def test_no_failure_leaves_all_of_them_waiting() -> None:
    message = delivery(PUBLISHING, RESUMED)
    pending = awaiting_publishing([message])
    fail_events(pending, {})
    assert list(pending) == ["o-1", "o-2"]
    assert verdicts(message) == [PUBLISHING, RESUMED]


def test_of_the_copies_that_are_published_and_marked_the_first_did_it() -> None:
    first, second, third = copies(PUBLISHING, RESUMED, RESUMED)
    settle_events(awaiting_publishing([first, second, third]))
    assert [verdicts(message) for message in (first, second, third)] == [[APPLIED], [DUPLICATE], [DUPLICATE]]
    assert not first.is_under_way
    assert not second.is_under_way


def test_an_event_that_is_resumed_stays_so_once_it_is_settled() -> None:
    message = delivery(RESUMED)
    settle_events(awaiting_publishing([message]))
    assert verdicts(message) == [Verdict(Outcome.RESUMED)]
