"""What the demo sends."""

from __future__ import annotations

import json

import pytest

from local.traffic import orders


def test_the_demo_sends_enough_and_enough_duplicates() -> None:
    traffic = orders()
    assert traffic.sent >= 1000
    assert traffic.duplicates / traffic.sent >= 0.2
    assert traffic.duplicates == 300


def test_the_same_seed_gives_the_same_messages() -> None:
    assert orders(events=50, resends=20, twins=5) == orders(events=50, resends=20, twins=5)


def test_no_call_has_more_than_ten_messages() -> None:
    traffic = orders()
    assert {len(batch) for batch in [*traffic.batches, *traffic.late]} <= set(range(1, 11))


def test_some_calls_hold_the_same_event_twice() -> None:
    traffic = orders(events=100, resends=20, twins=5)
    assert sum(len(set(batch)) < len(batch) for batch in traffic.batches) >= 5


def test_each_event_is_sent_and_first_with_its_own_content() -> None:
    traffic = orders()
    first: dict[str, str] = {}
    for body in (body for batch in [*traffic.batches, *traffic.late] for body in batch):
        if body not in traffic.poison:
            first.setdefault(json.loads(body)["id"], body)
    assert first == traffic.events


def test_each_impostor_has_an_id_of_before_and_comes_late() -> None:
    traffic = orders(events=100, resends=40, twins=5, impostors=3)
    assert len({json.loads(body)["id"] for body in traffic.impostors} & traffic.events.keys()) == 3
    assert not set(traffic.impostors) & set(traffic.events.values())
    assert [batch[-1] for batch in traffic.late] == traffic.impostors
    assert traffic.duplicates == 45


@pytest.mark.parametrize("poison", [8, 20])
def test_every_poison_is_sent_once(poison: int) -> None:
    traffic = orders(poison=poison)
    assert len(set(traffic.poison)) == poison
    sent = [body for batch in [*traffic.batches, *traffic.late] for body in batch]
    assert {body: sent.count(body) for body in traffic.poison} == dict.fromkeys(traffic.poison, 1)


def test_all_of_it_is_told_apart_by_its_prefix() -> None:
    traffic = orders(events=50, resends=30, twins=5, prefix="soak-1", poison=16, impostors=2)
    assert all("soak-1-" in body for batch in [*traffic.batches, *traffic.late] for body in batch)
