"""What is foretold of a workflow's letter is what starter, guard and state machine then do, on the same claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.letters_support import text
from tests.cli.support import World
from tests.cli.workflow_support import Workflow, deploy_workflow, order

Before = Callable[[Workflow], Any]


def nothing(workflow: Workflow) -> None:
    """Nothing has happened before."""


def given_back(workflow: Workflow) -> None:
    workflow.park(order())
    assert workflow.run("release", "order-1", "--why", "w").exit_code == 0


def of_an_unknown_kind(workflow: Workflow) -> None:
    workflow.claim(order())
    workflow.change("order-1", status={"S": "sent"})


def without_a_fingerprint(workflow: Workflow) -> None:
    workflow.complete(order(total=6))
    workflow.change("order-1", fingerprint=None)


# The letter's data, if not an order; what has happened; the state and the fate that are shown.
CASES: list[tuple[str, Any, Before, str, str]] = [
    ("free", order(), nothing, "never-seen", "run"),
    ("released", order(), lambda w: w.release(order()), "released", "run"),
    ("released by an operator", order(), given_back, "released", "run"),
    ("released with other content", order(), lambda w: w.release(order(total=6)), "released", "run"),
    ("running", order(), lambda w: w.claim(order()), "in-progress", "keep"),
    ("to be redriven", order(), lambda w: w.claim(order(), "PENDING_REDRIVE"), "in-progress", "keep"),
    ("aborted", order(), lambda w: w.claim(order(), "ABORTED"), "ended", "keep"),
    ("parked", order(), lambda w: w.park(order()), "parked", "keep"),
    ("completed", order(), lambda w: w.complete(order()), "completed", "no-op"),
    ("completed with other content", order(), lambda w: w.complete(order(total=6)), "conflict", "refuse"),
    ("running with other content", order(), lambda w: w.claim(order(total=6)), "conflict", "refuse"),
    ("parked with other content", order(), lambda w: w.park(order(total=6)), "conflict", "refuse"),
    ("completed without a fingerprint", order(), without_a_fingerprint, "completed", "no-op"),
    ("a row that no workflow wrote", order(), of_an_unknown_kind, "unreadable", "keep"),
    ("no key", {"total": 5}, nothing, "no-event", "refuse"),
    ("too large", order(filler="x" * 140_000), nothing, "never-seen", "refuse"),
]


@pytest.mark.parametrize(
    ("data", "before", "state", "fate"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_foretold_is_done(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, data: Any, before: Before, state: str, fate: str
) -> None:
    workflow = deploy_workflow(new_world, monkeypatch)
    before(workflow)
    workflow.letter(data)
    line = workflow.run("inspect", "--json").documents[0]
    assert (line["ledger"], line["replay"]) == (state, fate)
    workflow.world.sqs.purge_queue(QueueUrl=workflow.world.dead_letter_url)
    key = {"dead_letter_key": data["id"]} if "id" in data else {}
    workflow.world.send(json.dumps(data), attributes=key)
    workflow.work({})
    assert done(workflow) == (fate, line["replay_reason"] if fate in ("keep", "refuse") else "")


def done(workflow: Workflow) -> tuple[str, str]:
    """What became of the one message, as the command line names it, and the reason on its dead letter."""
    letters = workflow.world.dead_letters()
    if letters:
        reason = letters[0]["MessageAttributes"]["dead_letter_reason"]["StringValue"]
        return ("keep" if reason == "claim-kept" else "refuse"), reason
    return ("run" if workflow.ran else "no-op"), ""


@pytest.mark.parametrize(
    ("how", "state", "detail", "to_do"),
    [
        (
            "ExecutionDoesNotExist",
            "ended",
            "its execution is gone: Step Functions keeps one for 90 days",
            "see whether it ran; release, or drop",
        ),
        (
            "AccessDeniedException",
            "in-progress",
            "its execution cannot be read (AccessDeniedException): you need states:DescribeExecution",
            "see whether it runs, then release --force",
        ),
        ("no execution", "in-progress", "its owner is no execution", "see whether it runs, then release --force"),
    ],
)
def test_an_execution_that_cannot_be_read_may_run_and_one_that_is_gone_does_not(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, how: str, state: str, detail: str, to_do: str
) -> None:
    workflow = deploy_workflow(new_world, monkeypatch)
    workflow.claim(order())
    if how == "ExecutionDoesNotExist":
        workflow.world.executions.clear()
    elif how == "AccessDeniedException":
        workflow.world.deny("DescribeExecution")
    else:
        workflow.change("order-1", owner={"S": "by hand"})
    workflow.letter(order())
    line = workflow.run("inspect", "--json").documents[0]
    assert (line["ledger"], line["replay"], line["replay_detail"]) == (state, "keep", detail)
    assert line["to_do"] == to_do


def test_of_two_letters_with_one_key_the_second_is_not_foretold(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = deploy_workflow(new_world, monkeypatch)
    for data in (order(), order(), order(total=6)):
        workflow.letter(data)
    lines = workflow.run("inspect", "--json").documents[:-1]
    assert [(line["replay"], line["replay_reason"]) for line in lines] == [
        ("run", ""),
        ("unknown", ""),
        ("refuse", "id-reused"),
    ]


def test_a_key_that_no_claim_can_have_hides_no_other_letter(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer may set the attribute too."""
    workflow = deploy_workflow(new_world, monkeypatch, key="")
    workflow.letter({"a": 1}, attributes={"dead_letter_key": text("sqs:" + "x" * 2100)})
    workflow.letter({"a": 2})
    lines = workflow.run("inspect", "--json").documents[:-1]
    assert [(line["replay"], line["replay_reason"]) for line in lines] == [("refuse", "guard-failed"), ("run", "")]
    # DynamoDB would refuse to read any of a page that has such a key.
    (request,) = workflow.world.requests("BatchGetItem")
    assert len(request["RequestItems"]["orders-idempotency"]["Keys"]) == 1
