"""The demo's verdict: each way to lose or to double an event shows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from local.audit import Found, audit, has_content
from local.traffic import Traffic

TRAFFIC = Traffic(
    events={"a": '{"id": "a", "total": 19.99}', "b": '{"id": "b", "total": 5}'},
    batches=[['{"id": "a", "total": 19.99}', '{"id": "b", "total": 5}', '{"id": "b", "total": 5}', "poison"]],
    late=[['{"id": "a", "total": 0}']],
    poison=["poison"],
    impostors=['{"id": "a", "total": 0}'],
)
CLEAN = Found(
    business_rows=[
        {"id": "a", "total": Decimal("19.99"), "event_id": "a", "event_fingerprint": "f", "event_consumer": "c"},
        {"id": "b", "total": Decimal(5), "event_id": "b", "event_fingerprint": "f", "event_consumer": "c"},
    ],
    ledger_rows=[{"event_id": "a", "status": "sent"}, {"event_id": "b", "status": "sent"}],
    notifications=[("a", '{"total":19.990,"id":"a"}'), ("b", '{"id":"b","total":5}'), ("b", '{"id":"b","total":5}')],
    dead_letters=[("poison", "bad-json"), ('{"id": "a", "total": 0}', "id-reused")],
    business_writes=["a", "b"],
    commits=["a", "b"],
)


def test_all_is_well_when_each_event_has_one_row_and_a_notification() -> None:
    report = audit(TRAFFIC, CLEAN)
    assert report.is_clean
    assert report.as_dict() == {
        "sent": 5,
        "duplicates_sent": 1,
        "unique_events": 2,
        "business_rows": 2,
        "ledger_sent": 2,
        "notifications_total": 3,
        "notifications_unique": 2,
        "dead_lettered": {"bad-json": 1, "id-reused": 1},
        "dead_lettered_unique": 2,
        "lost": 0,
        "doubled": 0,
        "unexpected": 0,
        "problems": [],
    }


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (replace(CLEAN, business_rows=CLEAN.business_rows[:1]), "b has no business row"),
        (replace(CLEAN, notifications=CLEAN.notifications[:1]), "b was never announced"),
        (
            replace(CLEAN, notifications=[*CLEAN.notifications, ("b", '{"id": "b", "total": 6}')]),
            "b was announced with other content",
        ),
        (replace(CLEAN, notifications=[("a", "a"), *CLEAN.notifications[1:]]), "a was announced with other content"),
        (replace(CLEAN, dead_letters=CLEAN.dead_letters[1:]), "poison is gone"),
        (replace(CLEAN, dead_letters=CLEAN.dead_letters[:1]), '{"id": "a", "total": 0} is gone'),
        (
            replace(CLEAN, ledger_rows=[CLEAN.ledger_rows[0], {"event_id": "b", "status": "pending"}]),
            "b is not settled in the ledger: pending",
        ),
    ],
)
def test_what_is_missing_is_lost(found: Found, problem: str) -> None:
    report = audit(TRAFFIC, found)
    assert (report.lost, report.doubled, report.is_clean) == (1, 0, False)
    assert report.problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (replace(CLEAN, business_writes=["a", "b", "a"]), "a was written 2 times"),
        (replace(CLEAN, business_rows=[*CLEAN.business_rows, CLEAN.business_rows[1]]), "b was written 2 times"),
        (replace(CLEAN, commits=["a", "b", "b"]), "b was committed 2 times"),
        (
            replace(CLEAN, business_rows=[{**CLEAN.business_rows[0], "total": Decimal(0)}, CLEAN.business_rows[1]]),
            "a does not carry the content that was sent first",
        ),
    ],
)
def test_what_happened_twice_is_doubled(found: Found, problem: str) -> None:
    report = audit(TRAFFIC, found)
    assert (report.lost, report.doubled, report.is_clean) == (0, 1, False)
    assert report.problems == [problem]


def test_a_business_row_without_its_ledger_row_could_be_doubled() -> None:
    report = audit(TRAFFIC, replace(CLEAN, ledger_rows=CLEAN.ledger_rows[:1]))
    assert (report.lost, report.doubled) == (1, 1)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (replace(CLEAN, notifications=[*CLEAN.notifications, ("c", "{}")]), "notification of c, which was not sent"),
        (
            replace(CLEAN, business_rows=[*CLEAN.business_rows, {"id": "c", "event_id": "c"}]),
            "business row of c, which was not sent",
        ),
        (
            replace(CLEAN, ledger_rows=[*CLEAN.ledger_rows, {"event_id": "c", "status": "sent"}]),
            "ledger row of c, which was not sent",
        ),
        (
            replace(CLEAN, dead_letters=[*CLEAN.dead_letters, ('{"id": "b", "total": 5}', "")]),
            'dead letter that could be processed: {"id": "b", "total": 5}',
        ),
    ],
)
def test_what_belongs_to_nothing_is_unexpected(found: Found, problem: str) -> None:
    report = audit(TRAFFIC, found)
    assert (report.lost, report.doubled, report.unexpected, report.is_clean) == (0, 0, 1, False)
    assert report.problems == [problem]


def test_a_dead_letter_without_a_reason_is_counted_as_such() -> None:
    report = audit(TRAFFIC, replace(CLEAN, dead_letters=[*CLEAN.dead_letters, ("poison", "")]))
    assert report.dead_lettered == {"(none)": 1, "bad-json": 1, "id-reused": 1}


def test_numbers_are_compared_by_value() -> None:
    row = {"id": "a", "n": Decimal("1.50"), "m": Decimal(10), "event_id": "a", "event_version": Decimal(1)}
    assert has_content(row, '{"id": "a", "n": 1.5, "m": 10}')
    assert not has_content(row, '{"id": "a", "n": 1.5, "m": 11}')
    assert not has_content(row, '{"id": "a", "n": 1.5}')
