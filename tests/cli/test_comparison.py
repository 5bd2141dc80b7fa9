from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from idempotent_consumer.settings import Settings
from idempotent_consumer_cli.verification.comparison import Comparison, Judge
from tests.cli.support import World

NOW_MS = 1_893_553_446_000


@pytest.fixture
def settings(world: World) -> Settings:
    return world.read_settings()


def ledger_row(event_id: str, ttl: int | None = None) -> dict[str, Any]:
    row = {"event_id": {"S": event_id}, "status": {"S": "sent" if ttl else "pending"}}
    return row | ({"ttl": {"N": str(ttl)}} if ttl else {})


def business_row(event_id: str, committed_ms: int = NOW_MS) -> dict[str, Any]:
    return {
        "id": {"S": f"key of {event_id}"},
        "event_id": {"S": event_id},
        "event_consumer": {"S": "orders"},
        "event_committed_at": {"N": str(committed_ms)},
    }


def test_ids_of_all_kinds_are_told_apart(settings: Settings) -> None:
    ids = ["a", "A", "ä", "a\u0308", "a ", "a\x00b", "a\x00", "", "注文", "'; DROP TABLE ledger", "x" * 2048]
    comparison = Comparison(Judge(settings, NOW_MS))
    comparison.add_ledger([ledger_row(event_id) for event_id in ids])
    comparison.add_business([business_row(event_id) for event_id in ids[::2]])
    assert list(comparison.without_business_row()) == ids[1::2]
    assert list(comparison.without_ledger_row()) == []


def test_a_row_read_twice_is_one(settings: Settings) -> None:
    comparison = Comparison(Judge(settings, NOW_MS))
    comparison.add_ledger([ledger_row("a"), ledger_row("a")])
    comparison.add_business([business_row("a"), business_row("b")])
    assert list(comparison.without_business_row()) == []
    assert [row.key for row in comparison.without_ledger_row()] == [{"id": "key of b"}]


def test_the_memory_does_not_grow_with_the_tables(settings: Settings) -> None:
    """What is compared stands on disk; a set of the ids alone would take over 5 MB."""
    comparison = Comparison(Judge(settings, NOW_MS))
    tracemalloc.start()
    try:
        for start in range(0, 30_000, 1000):
            ids = [f"{number:060}" for number in range(start, start + 1000)]
            comparison.add_ledger(map(ledger_row, ids))
            comparison.add_business(map(business_row, ids))
        assert sum(1 for _ in comparison.without_business_row()) == 0
        assert sum(1 for _ in comparison.without_ledger_row()) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_an_expired_ledger_row_is_no_suspect(settings: Settings) -> None:
    comparison = Comparison(Judge(settings, NOW_MS))
    comparison.add_ledger([ledger_row("expired", NOW_MS // 1000), ledger_row("due", NOW_MS // 1000 + 1)])
    assert list(comparison.without_business_row()) == ["due"]


@pytest.mark.parametrize(
    ("ttl", "is_due"), [({"N": "1.5"}, False), ({"N": "9E+125"}, True), ({"N": "-1"}, False), ({"S": "1"}, True)]
)
def test_a_ttl_edited_by_hand_is_judged_as_dynamodb_does(settings: Settings, ttl: dict[str, str], is_due: bool) -> None:
    """It deletes no row whose ttl is no number."""
    assert Judge(settings, NOW_MS).is_due({**ledger_row("a"), "ttl": ttl}) is is_due


@pytest.mark.parametrize(
    ("committed", "not_judged"),
    [
        ({"N": f"{NOW_MS}.5"}, (0, 0)),
        ({"N": "1.5"}, (0, 1)),
        ({"N": "9E+125"}, (0, 0)),
        ({"S": "1"}, (1, 0)),
    ],
)
def test_a_business_row_whose_time_was_edited_by_hand_is_compared_or_counted(
    settings: Settings, committed: dict[str, str], not_judged: tuple[int, int]
) -> None:
    judge = Judge(settings, NOW_MS)
    comparison = Comparison(judge)
    comparison.add_business([{**business_row("a"), "event_committed_at": committed}])
    assert (judge.counts.ageless, judge.counts.old) == not_judged
    assert len(list(comparison.without_ledger_row())) == judge.counts.young
