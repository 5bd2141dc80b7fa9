"""Crashes and failing services: nothing is lost, nothing is written twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.emulator import Emulator
from local.faults import Faults
from tests.e2e.pipeline import Pipeline, now_ms


@pytest.mark.case("C62")
def test_a_function_killed_between_commit_and_publish_announces_the_event_when_it_comes_back(
    standard: Pipeline, emulator: Emulator, faults: Faults, event_id: str
) -> None:
    with faults.rules({"service": "sns", "timeout_ms": 30_000}), standard.visibility(3):
        standard.send({"id": event_id})
        standard.wait_for_status(event_id, "pending")
        assert emulator.kill_workers(standard.function) >= 1
    assert standard.notifications(event_id) == []
    since = now_ms()
    standard.wait_until_sent(event_id)
    standard.wait_for_metric("Resumed", since)

    assert standard.business_writes(event_id) == [event_id]
    assert standard.commits(event_id) == 1
    assert len(standard.steady_notifications(event_id)) == 1


@pytest.mark.case("C61")
def test_a_function_killed_between_publish_and_mark_announces_the_event_again(
    standard: Pipeline, emulator: Emulator, faults: Faults, event_id: str
) -> None:
    with (
        faults.rules({"service": "dynamodb", "operation": "BatchExecuteStatement", "timeout_ms": 30_000}),
        standard.visibility(3),
    ):
        standard.send({"id": event_id})
        standard.wait_for_status(event_id, "pending")
        standard.wait_for_notification(event_id)
        assert emulator.kill_workers(standard.function) >= 1
    standard.wait_until_sent(event_id)

    assert standard.business_writes(event_id) == [event_id]
    assert standard.commits(event_id) == 1
    first, again = standard.steady_notifications(event_id)
    assert first["Body"] == again["Body"]


@pytest.mark.case("C28")
def test_a_commit_whose_answer_is_lost_counts_once(standard: Pipeline, faults: Faults, event_id: str) -> None:
    lost_answer = {"service": "dynamodb", "operation": "TransactWriteItems", "response": {"abort_bytes": 0}, "times": 1}
    with faults.rules(lost_answer):
        standard.send({"id": event_id})
        standard.wait_until_sent(event_id)
        assert faults.fired("dynamodb") == 1

    assert standard.business_writes(event_id) == [event_id]
    assert standard.commits(event_id) == 1
    assert len(standard.steady_notifications(event_id)) == 1


@pytest.mark.case("C26")
def test_a_throttled_commit_is_tried_again(standard: Pipeline, faults: Faults, event_id: str) -> None:
    throttle = {
        "service": "dynamodb",
        "operation": "TransactWriteItems",
        "error": {"code": "ThrottlingException", "status": 400},
        "times": 4,
    }
    with faults.rules(throttle):
        standard.send({"id": event_id})
        standard.wait_until_sent(event_id)
        assert faults.fired("dynamodb") == 4

    assert standard.business_writes(event_id) == [event_id]


@pytest.mark.case("C65")
def test_a_table_that_never_answers_is_reported_before_the_function_is_stopped(
    standard: Pipeline, faults: Faults, event_id: str
) -> None:
    since = now_ms()
    with faults.rules({"service": "dynamodb", "timeout_ms": 30_000}), standard.visibility(8):
        standard.send({"id": event_id})
        # The function's own line: one that is stopped at its timeout writes none.
        standard.wait_for_metric("Retries", since)
    standard.wait_until_sent(event_id)

    assert standard.commits(event_id) == 1


@pytest.mark.case("C58")
def test_an_unavailable_topic_leaves_the_event_pending_until_it_is_back(
    standard: Pipeline, faults: Faults, event_id: str
) -> None:
    since = now_ms()
    with (
        faults.rules({"service": "sns", "error": {"code": "ServiceUnavailable", "status": 503}}),
        standard.visibility(2),
    ):
        standard.send({"id": event_id})
        standard.wait_for_metric("Retries", since)
        assert (standard.ledger_row(event_id) or {})["status"] == "pending"
        assert standard.notifications(event_id) == []
    standard.wait_until_sent(event_id)

    assert standard.commits(event_id) == 1
    assert len(standard.steady_notifications(event_id)) == 1


def test_a_topic_that_refuses_the_role_leaves_the_event_pending_until_it_is_allowed(
    standard: Pipeline, emulator: Emulator, event_id: str
) -> None:
    since = now_ms()
    with denied(emulator, standard.role, "sns:Publish"), standard.visibility(2):
        standard.send({"id": event_id})
        standard.wait_for_metric("Misconfigured", since)
        assert (standard.ledger_row(event_id) or {})["status"] == "pending"
        assert standard.notifications(event_id) == []
    standard.wait_until_sent(event_id)

    assert standard.commits(event_id) == 1
    assert len(standard.steady_notifications(event_id)) == 1


@pytest.mark.case("C03")
def test_a_failing_record_leaves_the_others_of_its_batch_alone(
    standard: Pipeline, faults: Faults, event_id: str
) -> None:
    healthy = [f"{event_id}-{number}" for number in range(4)]
    with faults.rules(failing_commit(f"{event_id}-bad")), standard.visibility(2):
        standard.send(*({"id": name} for name in [*healthy[:2], f"{event_id}-bad", *healthy[2:]]))
        for name in healthy:
            standard.wait_for_status(name, "sent")
        assert standard.ledger_row(f"{event_id}-bad") is None
    standard.wait_until_sent(f"{event_id}-bad")

    assert sorted(standard.business_writes(*healthy, f"{event_id}-bad")) == [*healthy, f"{event_id}-bad"]
    assert len(standard.steady_notifications(*healthy)) == 4


def test_poison_that_the_dead_letter_queue_does_not_take_stays_in_the_queue(
    standard: Pipeline, faults: Faults, event_id: str
) -> None:
    body = f'{{"broken": "{event_id}"'
    since = now_ms()
    with (
        faults.rules({"service": "sqs", "error": {"code": "ServiceUnavailable", "status": 503}}),
        standard.visibility(2),
    ):
        standard.send(body)
        standard.wait_for_metric("Retries", since)
        assert standard.dead_letters(body) == []
        assert not standard.is_drained()
    standard.wait_until_drained()

    assert len(standard.dead_letters(body)) == 1


def failing_commit(event_id: str) -> dict[str, object]:
    """A rule that fails the commits of one event."""
    return {
        "service": "dynamodb",
        "operation": "TransactWriteItems",
        "body": f"contains(to_string(@), '\"{event_id}\"')",
        "error": {"code": "InternalServerError", "status": 500},
    }


@contextmanager
def denied(emulator: Emulator, role: str, action: str) -> Iterator[None]:
    iam = emulator.client("iam")
    statement = {"Effect": "Deny", "Action": action, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName=role, PolicyName="deny", PolicyDocument=document)
    try:
        yield
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="deny")
