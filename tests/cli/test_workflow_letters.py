"""`inspect` and `drop` for a workflow, and what EventBridge says of executions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.letters_support import text
from tests.cli.support import Run, World
from tests.cli.workflow_support import EXECUTION, Workflow, deploy_workflow, order, status_event

Deploy = Callable[..., Workflow]


@pytest.fixture
def deploy(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Deploy:
    def create(key: str = "id", **options: Any) -> Workflow:
        return deploy_workflow(new_world, monkeypatch, key, **options)

    return create


@pytest.fixture
def workflow(deploy: Deploy) -> Workflow:
    return deploy()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def letters(run: Run) -> dict[str, dict[str, Any]]:
    """The lines of letters by their key."""
    return {line["event_ids"][0]: line for line in run.documents if line["kind"] == "letter" and line["event_ids"]}


def one_of_each(workflow: Workflow) -> None:
    """A key in each state, and its letter."""
    workflow.park(order("parked"), age=7200)
    workflow.claim(order("running"), age=20)
    workflow.claim(order("stopped"), "ABORTED", age=600)
    workflow.release(order("released"), age=3600)
    workflow.complete(order("done"), age=60)
    reasons = {"parked": "outcome-unknown", "released": "not-applied", "running": "claim-kept"}
    for name, reason in reasons.items():
        workflow.letter(order(name), reason, key=name, execution=EXECUTION + name)
    workflow.event_letter(order("stopped"), execution=EXECUTION + "of-stopped")
    workflow.letter(order("done"))
    workflow.letter(order("new"))


# --- inspect


def test_each_letter_is_shown_beside_the_claim_of_its_key(workflow: Workflow) -> None:
    one_of_each(workflow)
    run = workflow.run("inspect")
    lines = run.stdout.splitlines()
    assert cells(lines[2].replace("┃", "│"))[5:] == ["claim", "a replay", "to do"]
    rows = [cells(line) for line in lines if line.startswith("│")]
    shown = {row[0]: [row[1], *row[5:]] for row in rows if row[0]}
    assert shown["running"] == [
        "claim-kept",
        "in progress",
        "will come back: claim-kept (its execution runs)",
        "wait for its execution",
    ]
    assert shown["stopped"][0:2] == ["aborted", "execution ended"]
    assert shown["parked"][1] == "parked"
    assert shown["parked"][3] == "see whether it ran; release, or drop"
    assert shown["released"][1:] == ["released", "will run the effect (its claim was released)", "replay"]
    assert shown["done"][1] == "completed"
    assert shown["done"][3] == "replay (is skipped), or drop"
    assert shown["new"][1:] == ["never seen", "will run the effect (its key is free)", "replay"]
    assert f"parked: {EXECUTION}parked" in lines
    assert f"stopped: {EXECUTION}of-stopped" in lines
    assert "Claim:    1 parked, 1 execution ended, 1 released, 1 never seen, 1 in progress, 1 completed" in lines
    assert "A replay: 3 will come back, 2 will run the effect, 1 is a no-op" in lines
    assert run.verdict == (
        "6 letters, 3 of them with a claim that is kept: see first whether the effect ran; then `release` and "
        "`replay`, or `drop` the letter."
    )
    assert run.exit_code == 1


@pytest.mark.parametrize(
    ("reason", "to_do", "verdict"),
    [
        ("outcome-not-recorded", "drop: the effect ran", "1 letter. Of 1 the effect ran: `drop`."),
        (
            "not-applied",
            "release: the effect did not run",
            "1 letter. Of 1 it did not run, but the claim is kept: `release` and `replay`.",
        ),
        (
            "guard-failed",
            "release: the effect did not run",
            "1 letter. Of 1 it did not run, but the claim is kept: `release` and `replay`.",
        ),
        (
            "claim-kept",
            "see whether it ran; release, or drop",
            "1 letter, 1 of them with a claim that is kept: see first whether the effect ran; then `release` and "
            "`replay`, or `drop` the letter.",
        ),
    ],
)
def test_what_to_do_about_a_claim_that_is_kept_goes_by_the_letters_reason(
    workflow: Workflow, reason: str, to_do: str, verdict: str
) -> None:
    owner = workflow.claim(order(), "FAILED")
    workflow.letter(order(), reason, key="order-1", execution=owner)
    assert workflow.run("inspect", "--json").documents[0]["to_do"] == to_do
    assert workflow.run("inspect").verdict == verdict


def test_letters_are_counted_by_what_is_known_of_their_effects(workflow: Workflow) -> None:
    for name, reason in {"a": "outcome-not-recorded", "b": "not-applied", "c": "outcome-unknown"}.items():
        owner = workflow.claim(order(name), "FAILED")
        workflow.letter(order(name), reason, key=name, execution=owner)
    assert workflow.run("inspect", "--limit", "1").verdict == (
        "3 letters, 1 of them with a claim that is kept: see first whether the effect ran; then `release` and "
        "`replay`, or `drop` the letter. Of 1 the effect ran: `drop`. Of 1 it did not run, but the claim is kept: "
        "`release` and `replay`."
    )


@pytest.mark.parametrize("how", ["parked", "ended", "running"])
@pytest.mark.parametrize("reason", ["not-applied", "guard-failed"])
def test_a_letter_says_nothing_of_another_executions_claim(workflow: Workflow, reason: str, how: str) -> None:
    """Its own did not run the effect; the one that has claimed the key since may have."""
    if how == "parked":
        workflow.park(order())
    else:
        workflow.claim(order(), "FAILED" if how == "ended" else "RUNNING")
    workflow.letter(order(), reason, key="order-1", execution=EXECUTION + "earlier")
    line = workflow.run("inspect", "--json").documents[0]
    assert line["to_do"] == ("wait for its execution" if how == "running" else "see whether it ran; release, or drop")


def test_a_letter_of_an_effect_that_ran_is_dropped_also_after_a_release(workflow: Workflow) -> None:
    owner = workflow.claim(order(), "FAILED")
    workflow.letter(order(), "outcome-not-recorded", key="order-1", execution=owner)
    workflow.run("release", "order-1", "--why", "w")
    assert workflow.run("inspect", "--json").documents[0]["to_do"] == "drop: the effect ran"


def test_a_letter_of_an_effect_that_is_completed_after_all_is_skipped(workflow: Workflow) -> None:
    workflow.complete(order())
    workflow.letter(order(), "outcome-not-recorded", key="order-1")
    assert workflow.run("inspect", "--json").documents[0]["to_do"] == "replay (is skipped), or drop"


def test_a_conflict_names_the_execution_that_has_the_key(workflow: Workflow) -> None:
    owner = workflow.claim(order(total=6))
    workflow.letter(order(), "id-reused", key="order-1", execution=EXECUTION + "two")
    line = workflow.run("inspect", "--json").documents[0]
    assert line["replay_detail"] == f"the key is claimed for other content, by {owner}"


def test_of_many_letters_a_few_executions_are_listed(workflow: Workflow) -> None:
    for number in range(12):
        workflow.letter(order(f"o-{number}"), "not-applied", key=f"o-{number}", execution=f"{EXECUTION}{number}")
    run = workflow.run("inspect")
    assert run.stdout.count(f": {EXECUTION}") == 10
    assert [line["execution"] for line in letters(workflow.run("inspect", "--json")).values()] == [
        f"{EXECUTION}{number}" for number in range(12)
    ]


def test_programs_get_the_claim_but_not_its_result(workflow: Workflow) -> None:
    workflow.world.now_ms = 1_893_553_446_000
    owner = workflow.park(order(), age=600, detail="Boom: it broke")
    workflow.letter(order(), "outcome-unknown", key="order-1", execution=owner, detail="Boom: it broke")
    line = letters(workflow.run("inspect", "--json"))["order-1"]
    assert (line["execution"], line["to_do"]) == (owner, "see whether it ran; release, or drop")
    assert line["replay_detail"] == "parked, `release` it first: outcome-unknown: Boom: it broke"
    assert line["events"][0]["claim"] == {
        "status": "IN_PROGRESS",
        "owner": owner,
        "message_id": "m-1",
        "claimed_at": "2030-01-02T02:53:06+00:00",
        "completed_at": None,
        "parked_at": "2030-01-02T02:54:06+00:00",
        "released_at": None,
        "expires_at": "2030-01-20T02:53:06+00:00",
        "reason": "outcome-unknown",
        "detail": "Boom: it broke",
        "audit": [],
    }


def test_a_parked_and_a_completed_claim_need_no_execution(workflow: Workflow) -> None:
    workflow.park(order("a"))
    workflow.complete(order("b"))
    workflow.letter(order("a"))
    workflow.letter(order("b"))
    workflow.run("inspect")
    assert workflow.world.requests("DescribeExecution") == []


def test_an_execution_that_has_ended_is_asked_for_once(workflow: Workflow) -> None:
    workflow.claim(order("a"), "FAILED")
    workflow.claim(order("b"))
    for _ in range(2):
        workflow.letter(order("a"))
        workflow.letter(order("b"))
    workflow.run("inspect")
    asked = [request["executionArn"] for request in workflow.world.requests("DescribeExecution")]
    assert sorted(asked) == [f"{EXECUTION}of-a", f"{EXECUTION}of-b", f"{EXECUTION}of-b"]


@pytest.mark.parametrize(
    ("status", "error", "reason", "detail"),
    [
        ("ABORTED", None, "aborted", None),
        ("TIMED_OUT", "States.Timeout", "timed-out", "States.Timeout"),
        ("FAILED", "States.Runtime", "failed", "States.Runtime"),
    ],
)
def test_an_event_of_an_executions_end_is_shown_as_the_message_inside(
    workflow: Workflow, status: str, error: str | None, reason: str, detail: str | None
) -> None:
    owner = workflow.claim(order(), status)
    earlier = {name: text("of an earlier stay") for name in ("dead_letter_reason", "dead_letter_detail")}
    message_id = workflow.event_letter(order(), status, execution=owner, error=error, attributes=earlier)
    line = letters(workflow.run("inspect", "--json"))["order-1"]
    assert (line["message_id"], line["reason"], line["detail"], line["execution"]) == (
        message_id,
        reason,
        detail,
        owner,
    )
    assert (line["ledger"], line["moved_by_sqs"]) == ("ended", False)
    assert line["replay_detail"] == f"its execution has ended ({status}), and recorded no outcome"
    assert workflow.run("inspect", "--reason", reason, "--id", "order-1", "--json").documents[-1]["letters"] == 1


NO_BYTES = {"a": {"DataType": "Binary", "BinaryValue": "?"}}


@pytest.mark.parametrize("given", [None, '{"foo": 1}', json.dumps({"key": "k", "body": "{}", "attributes": NO_BYTES})])
def test_an_event_without_the_message_says_so(workflow: Workflow, given: str | None) -> None:
    workflow.dead.letter(status_event("ABORTED", EXECUTION + "one", given))
    (line, _) = workflow.run("inspect", "--json").documents
    assert (line["event_ids"], line["reason"], line["execution"]) == ([], "aborted", EXECUTION + "one")
    assert (line["replay"], line["replay_reason"], line["to_do"]) == (
        "refuse",
        "input-missing",
        "mend the cause, or drop",
    )


def test_an_event_of_another_state_machine_is_an_event_like_any_other(workflow: Workflow) -> None:
    event = json.loads(status_event("ABORTED", EXECUTION + "one", None))
    event["detail"]["stateMachineArn"] += "-2"
    workflow.dead.letter(event)
    assert workflow.run("inspect", "--json").documents[0]["event_ids"] == [event["id"]]


def test_a_message_without_a_business_key_is_known_by_its_id(deploy: Deploy) -> None:
    workflow = deploy(key="")
    first, second = workflow.letter({"a": 1}), workflow.letter({"a": 2}, "outcome-unknown", key="sqs:m-7")
    workflow.complete({"a": 1}, key=f"sqs:{first}")
    workflow.park({"a": 2}, key="sqs:m-7")
    lines = letters(workflow.run("inspect", "--json"))
    assert {key: (line["message_id"], line["ledger"]) for key, line in lines.items()} == {
        f"sqs:{first}": (first, "completed"),
        "sqs:m-7": (second, "parked"),
    }
    assert workflow.run("inspect", "--id", "sqs:m-7", "--json").documents[0]["message_id"] == second


def test_the_execution_of_a_letter_that_sqs_moved_again_is_of_an_earlier_stay(workflow: Workflow) -> None:
    message_id = workflow.letter(order(), "not-applied", key="order-1", execution=EXECUTION + "one")
    workflow.dead.mark_moved(message_id)
    line = letters(workflow.run("inspect", "--json"))["order-1"]
    assert (line["reason"], "execution" in line) == (None, False)


# --- drop


def test_a_drop_warns_of_claims_that_are_kept(workflow: Workflow, tmp_path: Path) -> None:
    one_of_each(workflow)
    run = workflow.run("drop", "--all", "--output", str(tmp_path / "dropped.jsonl"))
    assert run.exit_code == 0
    assert (
        "3 letters with a key whose claim is kept: until it expires, or `release` gives it back, another message with "
        "this key is skipped.\n"
    ) in run.stdout
    assert ("2 letters of which no claim says that the effect ran: the message is in the file alone.\n") in run.stdout
    assert workflow.dead.all == []


def test_an_event_is_dropped_as_it_was_received_and_comes_back_as_the_message_inside(
    workflow: Workflow, tmp_path: Path
) -> None:
    path = tmp_path / "dropped.jsonl"
    workflow.release(order())
    workflow.event_letter(order(), attributes={"kind": text("k")})
    (body,) = workflow.dead.bodies
    workflow.run("drop", "--id", "order-1", "--output", str(path))
    line = json.loads(path.read_text())
    assert (line["body"], line["attributes"], line["reason"], line["event_ids"]) == (body, {}, "aborted", ["order-1"])
    assert workflow.run("replay", "--from-drop", str(path)).exit_code == 0
    assert workflow.queued == [(json.dumps(order()), {"kind": "k", "dead_letter_key": "order-1"})]
