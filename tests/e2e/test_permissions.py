"""The role has no right to spare: without any one of them something does not settle, and with it again it heals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from local.emulator import Emulator
from tests.e2e.permissions import Role
from tests.e2e.pipeline import Pipeline, attributes, now_ms
from tests.plan.rights import GIVEN_TOPIC
from tests.plan.roles import PIPELINE


def test_every_action_that_the_emulator_asks_the_role_for_is_taken_away(standard: Pipeline, emulator: Emulator) -> None:
    """sqs:ChangeMessageVisibility by a test of the backoff, the others below."""
    assert Role(emulator, standard.role).checked() == PIPELINE.checked(GIVEN_TOPIC)


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
    since = now_ms()
    with Role(emulator, pipeline.role).without(action, resource=resource), pipeline.visibility(2):
        yield lambda: pipeline.wait_for_metric("Misconfigured", since)
