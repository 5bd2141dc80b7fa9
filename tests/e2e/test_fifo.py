"""FIFO: effects follow the order of each message group, and one group never waits for another."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from local.faults import Faults
from tests.e2e.pipeline import Pipeline, attributes, bodies, now_ms
from tests.e2e.test_faults import failing_commit


def test_rows_and_notifications_follow_the_order_of_each_group(fifo: Pipeline, new_id: Callable[[], str]) -> None:
    groups = {group: [f"{group}-{number:02d}" for number in range(12)] for group in (new_id(), new_id())}
    for start in (0, 6):
        for group, event_ids in groups.items():
            fifo.send(*({"id": event_id} for event_id in event_ids[start : start + 6]), group=group)
    fifo.wait_until_sent(*(event_id for event_ids in groups.values() for event_id in event_ids))

    for event_ids in groups.values():
        assert fifo.business_writes(*event_ids) == event_ids
        heard = [attributes(message)["event_id"] for message in fifo.steady_notifications(*event_ids)]
        assert heard == event_ids


@pytest.mark.case("C04")
def test_a_failing_head_blocks_its_group_and_no_other(
    fifo: Pipeline, faults: Faults, new_id: Callable[[], str]
) -> None:
    blocked, free = new_id(), new_id()
    head, *followers = [f"{blocked}-{number}" for number in range(3)]
    others = [f"{free}-{number}" for number in range(3)]
    since = now_ms()
    with faults.rules(failing_commit(head)), fifo.visibility(2):
        fifo.send(*({"id": event_id} for event_id in [head, *followers]), group=blocked)
        fifo.send(*({"id": event_id} for event_id in others), group=free)
        for event_id in others:
            fifo.wait_for_status(event_id, "sent")
        fifo.wait_for_metric("Blocked", since)
        assert [fifo.ledger_row(event_id) for event_id in [head, *followers]] == [None, None, None]
    fifo.wait_until_sent(head, *followers)

    assert fifo.business_writes(head, *followers) == [head, *followers]
    assert fifo.business_writes(*others) == others


@pytest.mark.case("O07")
def test_poison_in_a_group_is_dead_lettered_before_the_next_of_its_group_is_committed(
    fifo: Pipeline, faults: Faults, new_id: Callable[[], str]
) -> None:
    group = new_id()
    before, after = f"{group}-before", f"{group}-after"
    poison = json.dumps({"name": group})
    since = now_ms()
    with faults.rules({"service": "sqs", "error": {"code": "ServiceUnavailable", "status": 503}}), fifo.visibility(2):
        fifo.send({"id": before}, poison, {"id": after}, group=group)
        fifo.wait_for_status(before, "sent")
        fifo.wait_for_metric("Blocked", since)
        assert fifo.ledger_row(after) is None
        assert fifo.dead_letters(poison) == []
    fifo.wait_until_sent(after)

    (letter,) = fifo.dead_letters(poison)
    assert attributes(letter)["dead_letter_reason"] == "id-missing"
    assert letter["Attributes"]["MessageGroupId"] == group
    assert fifo.business_writes(before, after) == [before, after]


def test_a_dead_letter_is_deduplicated_by_the_message_s_own_id(fifo: Pipeline, new_id: Callable[[], str]) -> None:
    """With the producer's id, a repeat within five minutes would be dropped in silence."""
    group = new_id()
    poison = json.dumps({"name": group})
    message_ids = fifo.send(poison, poison, group=group)
    fifo.wait_until_drained()

    letters = fifo.dead_letters(poison)
    assert bodies(letters) == [poison, poison]
    assert [letter["Attributes"]["MessageDeduplicationId"] for letter in letters] == message_ids
