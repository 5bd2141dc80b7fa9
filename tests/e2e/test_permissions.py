"""The role has no right to spare: without any one of them something does not settle, and with it again it heals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.emulator import Emulator
from tests.e2e.pipeline import Pipeline, attributes, now_ms

# The emulator polls, logs and traces without asking the role.
NOT_CHECKED_HERE = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}


def test_every_action_of_the_role_is_taken_away_by_a_test_below(standard: Pipeline, emulator: Emulator) -> None:
    assert actions_of(policy_of(emulator, standard.role)) - NOT_CHECKED_HERE == {
        "dynamodb:BatchGetItem",
        "dynamodb:PartiQLUpdate",
        "dynamodb:PutItem",
        "sns:Publish",
        "sqs:ChangeMessageVisibility",
        "sqs:SendMessage",
    }


@pytest.mark.parametrize("table", ["ledger_table_arn", "business_table_arn"])
def test_without_put_item_nothing_is_committed(
    standard: Pipeline, emulator: Emulator, event_id: str, table: str
) -> None:
    with _taken_away(standard, emulator, "dynamodb:PutItem", standard.outputs[table]) as wait_for_refusal:
        standard.send({"id": event_id})
        wait_for_refusal()
        assert standard.business_row(event_id) is None
        assert standard.ledger_row(event_id) is None
        assert standard.notifications(event_id) == []
    standard.wait_until_sent(event_id)
    assert standard.business_row(event_id) is not None


def test_without_batch_get_item_a_row_in_the_way_is_not_judged(
    standard: Pipeline, emulator: Emulator, event_id: str
) -> None:
    standard.put_business_row({"id": event_id, "owner": "somebody else"})
    body = {"id": event_id}
    with _taken_away(standard, emulator, "dynamodb:BatchGetItem") as wait_for_refusal:
        standard.send(body)
        wait_for_refusal()
        assert standard.dead_letters(body) == []
        assert not standard.is_drained()
    standard.wait_until_drained()
    (letter,) = standard.dead_letters(body)
    assert attributes(letter)["dead_letter_reason"] == "row-exists"


def test_without_partiql_update_an_announced_event_stays_pending(
    standard: Pipeline, emulator: Emulator, event_id: str
) -> None:
    with _taken_away(standard, emulator, "dynamodb:PartiQLUpdate") as wait_for_refusal:
        standard.send({"id": event_id})
        wait_for_refusal()
        assert (standard.ledger_row(event_id) or {})["status"] == "pending"
        assert not standard.is_drained()
    standard.wait_until_sent(event_id)
    assert standard.commits(event_id) == 1


def test_without_publish_a_committed_event_stays_pending(standard: Pipeline, emulator: Emulator, event_id: str) -> None:
    with _taken_away(standard, emulator, "sns:Publish") as wait_for_refusal:
        standard.send({"id": event_id})
        wait_for_refusal()
        assert (standard.ledger_row(event_id) or {})["status"] == "pending"
        assert standard.notifications(event_id) == []
    standard.wait_until_sent(event_id)
    assert standard.commits(event_id) == 1


def test_without_send_message_poison_stays_in_the_queue(standard: Pipeline, emulator: Emulator, event_id: str) -> None:
    body = f'{{"broken": "{event_id}"'
    with _taken_away(standard, emulator, "sqs:SendMessage") as wait_for_refusal:
        standard.send(body)
        wait_for_refusal()
        assert standard.dead_letters(body) == []
        assert not standard.is_drained()
    standard.wait_until_drained()
    (letter,) = standard.dead_letters(body)
    assert attributes(letter)["dead_letter_reason"] == "bad-json"


@contextmanager
def _taken_away(
    pipeline: Pipeline, emulator: Emulator, action: str, resource: str | None = None
) -> Iterator[Callable[[], None]]:
    """Take an action (on one resource, or on all) from the role inside the block; yields a wait for a refused call."""
    document = policy_of(emulator, pipeline.role)
    since = now_ms()
    with pipeline.visibility(2):
        write_policy(emulator, pipeline.role, without(document, action, resource))
        try:
            yield lambda: pipeline.wait_for_metric("Misconfigured", since)
        finally:
            write_policy(emulator, pipeline.role, document)


def without(document: dict[str, Any], action: str, resource: str | None) -> dict[str, Any]:
    """The policy without this action, on this resource or on all."""
    statements = []
    for statement in document["Statement"]:
        actions, resources = _listed(statement["Action"]), _listed(statement["Resource"])
        if action not in actions:
            statements.append(statement)
            continue
        others = [name for name in actions if name != action]
        if others:
            statements.append(statement | {"Action": others})
        spared = [arn for arn in resources if resource is not None and arn != resource]
        if spared:
            statements.append(statement | {"Action": [action], "Resource": spared})
    numbered = [statement | {"Sid": f"S{index}"} for index, statement in enumerate(statements)]
    return {**document, "Statement": numbered}


def write_policy(emulator: Emulator, role: str, document: dict[str, Any], name: str = "consume") -> None:
    emulator.client("iam").put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))


def policy_of(emulator: Emulator, role: str, name: str = "consume") -> dict[str, Any]:
    answer = emulator.client("iam").get_role_policy(RoleName=role, PolicyName=name)
    document: dict[str, Any] = answer["PolicyDocument"]
    return document


def actions_of(document: dict[str, Any]) -> set[str]:
    return {action for statement in document["Statement"] for action in _listed(statement["Action"])}


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
