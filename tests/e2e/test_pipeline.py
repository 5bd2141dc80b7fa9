"""From a message to a row and a notification, once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.e2e.pipeline import Pipeline, attributes, bodies, now_ms


def test_a_message_becomes_one_row_and_one_notification(standard: Pipeline, event_id: str) -> None:
    event = {"id": event_id, "total": 19.99, "paid": 30.40, "lines": [{"sku": "A-1", "quantity": 0}], "note": ""}
    sent_ms = now_ms()
    standard.send(event)
    standard.wait_until_sent(event_id)

    row = standard.business_row(event_id)
    assert row is not None
    assert len(row.pop("event_fingerprint")) == 64
    assert row.pop("event_consumer") == "e2e-standard"
    assert sent_ms <= row.pop("event_committed_at") <= now_ms()
    assert row == {
        "id": event_id,
        "event_id": event_id,
        "total": Decimal("19.99"),
        "paid": Decimal("30.4"),
        "lines": [{"sku": "A-1", "quantity": Decimal(0)}],
        "note": "",
    }
    (notification,) = standard.steady_notifications(event_id)
    assert json.loads(notification["Body"]) == event
    assert attributes(notification) == {"event_id": event_id}


@pytest.mark.case("C50")
def test_a_settled_ledger_row_expires_in_seconds_and_keeps_no_notification(standard: Pipeline, event_id: str) -> None:
    standard.send({"id": event_id})
    standard.wait_until_sent(event_id)

    row = standard.ledger_row(event_id)
    assert row is not None
    assert set(row) == {"event_id", "status", "fingerprint", "created_at", "sent_at", "ttl", "message_id"}
    assert row["status"] == "sent"
    assert abs(int(row["ttl"]) - (time.time() + 30 * 86_400)) < 120


@pytest.mark.case("C59")
@pytest.mark.parametrize("kind", ["standard", "fifo"])
def test_a_message_sent_again_changes_nothing(pipelines: dict[str, Pipeline], kind: str, event_id: str) -> None:
    pipeline = pipelines[kind]
    for _ in range(2):
        pipeline.send({"id": event_id, "total": 5}, group=event_id)
        pipeline.wait_until_sent(event_id)

    assert pipeline.business_writes(event_id) == [event_id]
    assert pipeline.commits(event_id) == 1
    assert len(pipeline.steady_notifications(event_id)) == 1


@pytest.mark.case("C30")
def test_the_same_event_twice_in_one_batch_is_processed_once(standard: Pipeline, event_id: str) -> None:
    event = {"id": event_id, "total": 5}
    standard.send(event, event, event)
    standard.wait_until_sent(event_id)

    assert standard.business_writes(event_id) == [event_id]
    assert standard.commits(event_id) == 1


@pytest.mark.case("C22")
def test_copies_of_many_events_at_once_are_written_once_each(standard: Pipeline, new_id: Callable[[], str]) -> None:
    event_ids = [new_id() for _ in range(20)]
    for _ in range(3):
        for start in (0, 10):
            standard.send(*({"id": event_id} for event_id in event_ids[start : start + 10]))
    standard.wait_until_sent(*event_ids)

    assert sorted(standard.business_writes(*event_ids)) == sorted(event_ids)
    assert {standard.commits(event_id) for event_id in event_ids} == {1}


@pytest.mark.case("C40")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": "NEW", "total": ', "bad-json"),
        ('{"total": 1, "note": "NEW"}', "id-missing"),
        ('{"id": " ", "note": "NEW"}', "id-blank"),
        ('{"id": "NEW", "total": 0.1000000000000000055511151231257827021181583404541015625}', "number-out-of-range"),
    ],
)
def test_poison_is_dead_lettered_at_once_with_its_reason(
    standard: Pipeline, event_id: str, text: str, reason: str
) -> None:
    body = text.replace("NEW", event_id)
    healthy = f"{event_id}-healthy"
    standard.send(body, {"id": healthy}, attributes={"tenant": "t-1"})
    standard.wait_until_sent(healthy)

    (letter,) = standard.dead_letters(body)
    assert attributes(letter)["dead_letter_reason"] == reason
    assert attributes(letter)["tenant"] == "t-1"
    assert standard.business_row(event_id) is None
    assert standard.ledger_row(event_id) is None


@pytest.mark.case("C47")
def test_the_same_id_with_other_content_is_a_conflict(standard: Pipeline, event_id: str) -> None:
    first, other = {"id": event_id, "amount": 10}, {"id": event_id, "amount": 99}
    standard.send(first)
    standard.wait_until_sent(event_id)
    standard.send(other)
    standard.wait_until_drained()

    (letter,) = standard.dead_letters(other)
    assert attributes(letter)["dead_letter_reason"] == "id-reused"
    assert bodies(standard.steady_notifications(event_id)) == [json.dumps(first, separators=(",", ":"))]
    row = standard.business_row(event_id)
    assert row is not None
    assert row["amount"] == Decimal(10)


def test_a_row_that_another_writer_stored_is_not_overwritten(standard: Pipeline, event_id: str) -> None:
    standard.put_business_row({"id": event_id, "owner": "somebody else"})
    body = {"id": event_id, "amount": 1}
    standard.send(body)
    standard.wait_until_drained()

    (letter,) = standard.dead_letters(body)
    assert attributes(letter)["dead_letter_reason"] == "row-exists"
    assert standard.business_row(event_id) == {"id": event_id, "owner": "somebody else"}
    assert standard.ledger_row(event_id) is None
    assert standard.steady_notifications(event_id) == []
