"""The reconciler: what nobody else will announce goes out, by the schedule, with no right to spare."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from idempotent_consumer.notification import RenderedNotification
from local.emulator import Emulator
from tests.e2e.permissions import Role
from tests.e2e.pipeline import Pipeline, attributes, now_ms
from tests.plan.rights import GIVEN_TOPIC
from tests.plan.roles import RECONCILER

HOUR_MS = 3_600_000


@pytest.fixture
def stuck(outage: Pipeline, event_id: str) -> Iterator[str]:
    """An event that was committed an hour ago, and whose message is gone; taken away after the test."""
    store_pending(outage, event_id, age_ms=HOUR_MS)
    yield event_id
    outage.delete_ledger_row(event_id)


def test_what_is_pending_for_too_long_is_announced_from_its_row_and_marked(outage: Pipeline, stuck: str) -> None:
    since = now_ms()
    assert invoke(outage)["published"] == 1

    row = outage.ledger_row(stuck)
    assert row is not None
    assert (row["status"], row["message_id"]) == ("sent", "the-last-message")
    assert row.keys() == {"event_id", "status", "fingerprint", "created_at", "message_id", "sent_at", "ttl"}
    (message,) = outage.steady_notifications(stuck)
    assert message["Body"] == f"stored for {stuck}"
    assert attributes(message) == {"event_id": stuck, "kind": "order"}
    (line,) = outage.reconciler_metrics(since)
    assert (line["Reconciled"], line["StalePending"], line["Misconfigured"]) == (1, 0, 0)
    assert line["OldestPendingAge"] >= HOUR_MS


def test_what_may_still_be_in_work_is_left_alone(outage: Pipeline, event_id: str) -> None:
    store_pending(outage, event_id, age_ms=1_000)
    assert invoke(outage) == {"published": 0, "still_stale": 0}
    assert (outage.ledger_row(event_id) or {})["status"] == "pending"
    # Leave nothing behind.
    outage.delete_ledger_row(event_id)


def test_the_schedule_runs_it(standard: Pipeline, event_id: str) -> None:
    store_pending(standard, event_id, age_ms=HOUR_MS)
    standard.wait_for_status(event_id, "sent", seconds=120)
    assert len(standard.steady_notifications(event_id)) == 1


def test_every_action_of_its_role_is_taken_away_below(outage: Pipeline, emulator: Emulator) -> None:
    assert role_of(outage, emulator).checked() == RECONCILER.checked(GIVEN_TOPIC)


@pytest.mark.parametrize("action", ["dynamodb:BatchGetItem", "dynamodb:PartiQLUpdate", "sns:Publish"])
def test_without_one_of_its_rights_a_row_stays_pending_and_counts_as_stale(
    outage: Pipeline, emulator: Emulator, stuck: str, action: str
) -> None:
    since = now_ms()
    with role_of(outage, emulator).without(action):
        assert invoke(outage) == {"published": 0, "still_stale": 1}
        assert (outage.ledger_row(stuck) or {})["status"] == "pending"
    assert [(line["StalePending"], line["Misconfigured"]) for line in outage.reconciler_metrics(since)] == [(1, 1)]
    assert invoke(outage)["published"] == 1


def test_without_the_right_to_query_a_run_fails(outage: Pipeline, emulator: Emulator, stuck: str) -> None:
    with role_of(outage, emulator).without("dynamodb:Query"):
        error = invoke(outage)
        assert "16 shards of the index could not be read" in error["errorMessage"]
    assert invoke(outage)["published"] == 1


def invoke(pipeline: Pipeline) -> dict[str, Any]:
    """One run of the reconciler: its answer, or its error."""
    answer = pipeline.emulator.client("lambda").invoke(FunctionName=pipeline.outputs["reconciler_function_name"])
    payload: dict[str, Any] = json.loads(answer["Payload"].read())
    return payload


def store_pending(pipeline: Pipeline, event_id: str, *, age_ms: int) -> None:
    """The ledger row of an event that was committed so long ago, and not announced."""
    notification = RenderedNotification(
        f"stored for {event_id}", {"event_id": ("String", event_id), "kind": ("String", "order")}, "g", "d"
    )
    pipeline.put_ledger_row(
        {
            "event_id": {"S": event_id},
            "status": {"S": "pending"},
            "fingerprint": {"S": "f"},
            "notification": {"S": notification.to_text()},
            "pending_shard": {"S": str(zlib.crc32(event_id.encode()) % 16)},
            "created_at": {"N": str(now_ms() - age_ms)},
            "message_id": {"S": "the-last-message"},
        }
    )


def role_of(pipeline: Pipeline, emulator: Emulator) -> Role:
    return Role(emulator, pipeline.reconciler_role)
