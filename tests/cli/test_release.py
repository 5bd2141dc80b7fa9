"""`release`: a person gives a claim back, so that a replay runs the effect once more."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.operation_support import deploy_operation
from tests.cli.support import World, client_error
from tests.cli.workflow_support import EXECUTION, OPERATOR, Workflow, deploy_workflow, order

KEY = "order-1"


@pytest.fixture
def workflow(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Workflow:
    return deploy_workflow(new_world, monkeypatch)


def row(workflow: Workflow, key: str = KEY) -> dict[str, Any]:
    """Without what no release touches."""
    kept = ("fingerprint", "messageId", "claimedAt", "expiresAt", "pk", "sk")
    return {name: value for name, value in workflow.rows()[key].items() if name not in kept}


def entry(workflow: Workflow, why: str, by: str = OPERATOR) -> dict[str, Any]:
    at = {"N": str(workflow.world.now_ms)}
    return {"M": {"at": at, "by": {"S": by}, "how": {"S": "release"}, "why": {"S": why}}}


def release(workflow: Workflow, *arguments: str, why: str = "never arrived") -> Any:
    return workflow.run("release", *(arguments or (KEY,)), "--why", why)


# --- what is written


def test_a_parked_claim_is_given_back_with_who_and_why(workflow: Workflow) -> None:
    owner = workflow.park(order(), age=600)
    before = workflow.rows()[KEY]
    run = release(workflow)
    assert row(workflow) == {
        "status": {"S": "RELEASED"},
        "owner": {"S": owner},
        "releasedAt": {"N": str(workflow.world.now_ms)},
        "audit": {"L": [entry(workflow, "never arrived")]},
    }
    assert workflow.rows()[KEY]["expiresAt"] == before["expiresAt"]
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-4:] == [
        f"order-1: released by {OPERATOR}",
        "The effect may have been applied, and a replay runs it once more: see whether it was.",
        "Next: idempotent-consumer replay --name orders --id order-1 "
        "(where there is no letter, send the message again).",
        "1 claim released.",
    ]


def test_the_next_execution_claims_it(workflow: Workflow) -> None:
    workflow.park(order())
    release(workflow)
    workflow.world.send(order())
    workflow.work({})
    assert workflow.ran == [KEY]
    assert row(workflow)["audit"] == {"L": [entry(workflow, "never arrived")]}


def test_who_gives_no_reason_is_noted_so(workflow: Workflow) -> None:
    workflow.park(order())
    assert workflow.run("release", KEY).exit_code == 0
    assert row(workflow)["audit"] == {"L": [entry(workflow, "not said")]}


def test_each_release_stays_on_the_row(workflow: Workflow) -> None:
    workflow.park(order())
    release(workflow, why="a")
    workflow.world.send(order())
    workflow.work({KEY: "unknown"})
    workflow.run("release", KEY, "--why", "b", "--by", "bob")
    assert row(workflow)["audit"]["L"] == [entry(workflow, "a"), entry(workflow, "b", "bob")]


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT", "FAILED", "SUCCEEDED"])
def test_a_claim_whose_execution_has_ended_is_given_back(workflow: Workflow, status: str) -> None:
    workflow.claim(order(), status)
    assert release(workflow).exit_code == 0
    assert row(workflow)["status"] == {"S": "RELEASED"}


def test_the_claims_are_shown_before_they_are_released(workflow: Workflow) -> None:
    owner = workflow.park(order(), age=600, detail="boom")
    run = release(workflow)
    shown = [cell.strip() for cell in run.stdout.splitlines()[4].strip("│").split("│")]
    assert run.stdout.startswith("Claims of orders\n")
    assert shown == ["order-1", "parked", "10m", owner, "outcome-unknown: boom"]


def test_only_the_workflows_own_namespace_is_touched(workflow: Workflow) -> None:
    workflow.park(order())
    theirs = {**workflow.rows()[KEY], "sk": {"S": "other"}}
    workflow.world.store("orders-idempotency", theirs)
    release(workflow)
    stored = workflow.world.dynamodb.get_item(
        TableName="orders-idempotency", Key={"pk": {"S": KEY}, "sk": {"S": "other"}}
    )
    assert stored["Item"] == theirs


def test_the_key_of_a_message_is_its_id(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = deploy_workflow(new_world, monkeypatch, key="")
    workflow.park({"a": 1}, key="sqs:m-7")
    run = release(workflow, "sqs:m-7")
    assert row(workflow, "sqs:m-7")["status"] == {"S": "RELEASED"}
    assert "--id sqs:m-7 (where there is no letter, send the message with the attribute dead_letter_key)." in run.stdout


def test_a_key_that_a_shell_would_take_apart_is_quoted(workflow: Workflow) -> None:
    workflow.park(order("a b; c"))
    (line,) = [line for line in release(workflow, "a b; c").stdout.splitlines() if line.startswith("Next: ")]
    assert shlex.split(line)[4:7] == ["orders", "--id", "a b; c"]


@pytest.mark.parametrize(
    ("reason", "warnings"),
    [
        (
            "outcome-not-recorded",
            ["The effect has run, and a replay runs it once more: order-1. Rather `drop` the letter."],
        ),
        ("not-applied", []),
        ("guard-failed", []),
        ("claim-kept", ["The effect may have been applied, and a replay runs it once more: see whether it was."]),
        (None, ["The effect may have been applied, and a replay runs it once more: see whether it was."]),
    ],
)
def test_the_warning_goes_by_what_the_execution_says(
    workflow: Workflow, reason: str | None, warnings: list[str]
) -> None:
    workflow.claim(order(), "FAILED", reason=reason)
    run = release(workflow)
    assert run.exit_code == 0
    lines = run.stdout.splitlines()
    assert lines[lines.index(f"order-1: released by {OPERATOR}") + 1 : -2] == warnings
    shown = [cell.strip() for cell in lines[4].strip("│").split("│")]
    assert shown[4] == (reason or "-")


def test_of_several_claims_those_whose_effect_ran_are_named(workflow: Workflow) -> None:
    workflow.claim(order("a"), "FAILED", reason="outcome-not-recorded")
    workflow.park(order("b"))
    run = release(workflow, "a", "b")
    assert run.stdout.splitlines()[-4:-2] == [
        "The effect has run, and a replay runs it once more: a. Rather `drop` the letter.",
        "The effect may have been applied, and a replay runs it once more: see whether it was.",
    ]


def test_a_claim_whose_execution_is_gone_is_given_back(workflow: Workflow) -> None:
    """Step Functions keeps what runs, and what has ended for 90 days."""
    workflow.claim(order())
    workflow.world.executions.clear()
    run = release(workflow)
    assert (run.exit_code, row(workflow)["status"]) == (0, {"S": "RELEASED"})


# --- what is refused


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (
            lambda w: None,
            "there is no such claim: is the key written as `inspect` shows it? Case counts, and that of a message id "
            "begins with sqs:. If it has expired, replay --beyond-window",
        ),
        (
            lambda w: w.complete(order()),
            "it is completed: the effect has run. To run it again, send the event under another key",
        ),
        (
            lambda w: w.claim(order()),
            "its execution runs, and the effect could run twice: wait for its end, or stop it; else --force",
        ),
        (
            lambda w: w.claim(order(), "PENDING_REDRIVE"),
            "its execution runs, and the effect could run twice: wait for its end, or stop it; else --force",
        ),
    ],
    ids=["no claim", "completed", "running", "to be redriven"],
)
def test_what_is_not_to_be_released_is_left(workflow: Workflow, before: Callable[[Workflow], Any], why: str) -> None:
    before(workflow)
    rows = workflow.rows()
    run = release(workflow)
    assert (run.exit_code, workflow.rows(), workflow.world.requests("UpdateItem")) == (1, rows, [])
    assert f"order-1: not released: {why}\n" in run.stdout
    assert run.verdict == "0 claims released, 1 left."


def test_a_row_that_no_workflow_wrote_is_left_even_if_forced(workflow: Workflow) -> None:
    workflow.claim(order(), "FAILED")
    workflow.change(KEY, status={"S": "sent"})
    run = release(workflow, KEY, "--force")
    assert (run.exit_code, row(workflow)["status"]) == (1, {"S": "sent"})
    assert "order-1: not released: its row was written by no workflow\n" in run.stdout


def test_a_completed_claim_is_left_even_if_forced(workflow: Workflow) -> None:
    workflow.complete(order())
    assert release(workflow, KEY, "--force").exit_code == 1
    assert row(workflow)["status"] == {"S": "COMPLETED"}


def test_who_knows_better_can_force_it(workflow: Workflow) -> None:
    workflow.claim(order())
    run = release(workflow, KEY, "--force")
    assert (run.exit_code, row(workflow)["status"]) == (0, {"S": "RELEASED"})


@pytest.mark.parametrize("is_denied", [True, False])
def test_where_the_execution_cannot_be_read_it_has_to_be_forced(workflow: Workflow, is_denied: bool) -> None:
    workflow.claim(order(), "FAILED")
    if is_denied:
        workflow.world.deny("DescribeExecution")
        why = "its execution cannot be read (AccessDeniedException): you need states:DescribeExecution"
    else:
        workflow.change(KEY, owner={"S": "by hand"})
        why = "its owner is no execution"
    run = release(workflow)
    assert run.exit_code == 1
    assert f"order-1: not released: {why}. If you know that it does not run: --force\n" in run.stdout
    assert release(workflow, KEY, "--force").exit_code == 0


def test_a_parked_claim_needs_no_execution(workflow: Workflow) -> None:
    workflow.park(order())
    workflow.world.deny("DescribeExecution")
    assert release(workflow).exit_code == 0


@pytest.mark.parametrize("twice", [True, False])
def test_what_is_released_already_is_said_to_be_so(workflow: Workflow, twice: bool) -> None:
    if twice:
        workflow.park(order())
        release(workflow)
    else:
        workflow.release(order())
    rows = workflow.rows()
    run = release(workflow, why="once more")
    assert (run.exit_code, workflow.rows()) == (0, rows)
    assert "order-1: released already: a replay runs the effect\n" in run.stdout
    assert run.verdict == "0 claims released, 1 released before."


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"status": {"S": "COMPLETED"}, "parkedAt": None}, "completed"),
        ({"status": {"S": "RELEASED"}, "parkedAt": None}, "released"),
        ({"owner": {"S": EXECUTION + "two"}}, "parked"),
        ({"parkedAt": {"N": "1"}}, "parked"),
        ({"parkedAt": None, "owner": {"S": EXECUTION + "two"}}, f"claimed by {EXECUTION}two"),
    ],
    ids=["completed", "released", "another owner", "parked anew", "claimed anew"],
)
def test_what_has_changed_since_it_was_shown_is_left_alone(
    workflow: Workflow, change: dict[str, Any], what: str
) -> None:
    workflow.park(order())
    workflow.world.on("UpdateItem", runs=lambda: workflow.change(KEY, **change), calls=[1])
    run = release(workflow)
    assert run.exit_code == 1
    assert f"order-1: not released: it was changed meanwhile: it is {what} now. Look again\n" in run.stdout
    assert "audit" not in row(workflow)


def test_a_claim_that_is_parked_since_it_was_shown_is_left_alone(workflow: Workflow) -> None:
    workflow.claim(order(), "FAILED")
    workflow.world.on("UpdateItem", runs=lambda: workflow.change(KEY, parkedAt={"N": "1"}), calls=[1])
    run = release(workflow)
    assert (run.exit_code, row(workflow)["status"]) == (1, {"S": "IN_PROGRESS"})
    assert "it was changed meanwhile: it is parked now. Look again\n" in run.stdout


def test_a_row_that_is_gone_since_it_was_shown_is_not_made_anew(workflow: Workflow) -> None:
    workflow.park(order())
    workflow.world.on("UpdateItem", runs=lambda: workflow.forget(KEY), calls=[1])
    run = release(workflow)
    assert (run.exit_code, workflow.rows()) == (1, {})
    assert "order-1: not released: it was changed meanwhile: its row is gone. Look again\n" in run.stdout


def test_an_answer_that_is_lost_is_no_refusal(workflow: Workflow) -> None:
    """The SDK's second try finds the row as the first has made it."""
    workflow.park(order())

    def twice(request: Any, effect: Callable[[], Any]) -> Any:
        effect()
        return effect()

    workflow.world.on("UpdateItem", answers=twice)
    run = release(workflow)
    assert (run.exit_code, run.verdict) == (0, "1 claim released.")
    assert len(row(workflow)["audit"]["L"]) == 1


# --- what else ends it


def test_several_keys_are_settled_one_by_one(workflow: Workflow) -> None:
    workflow.park(order("a"))
    workflow.complete(order("b"))
    workflow.claim(order("c"), "FAILED")
    run = release(workflow, "a", "b", "a", "c")
    assert (run.exit_code, run.verdict) == (1, "2 claims released, 1 left.")
    assert {key: each["status"]["S"] for key, each in workflow.rows().items()} == {
        "a": "RELEASED",
        "b": "COMPLETED",
        "c": "RELEASED",
    }


def test_a_dry_run_changes_nothing(workflow: Workflow) -> None:
    workflow.park(order("a"))
    workflow.complete(order("b"))
    before = workflow.rows()
    run = release(workflow, "a", "b", "--dry-run")
    assert (run.exit_code, workflow.rows(), workflow.world.requests("UpdateItem")) == (1, before, [])
    assert run.stdout.splitlines()[-4:] == [
        "a: would be released",
        "b: not released: it is completed: the effect has run. To run it again, send the event under another key",
        "The effect may have been applied, and a replay runs it once more: see whether it was.",
        "1 claim would be released, 1 left. Nothing was changed.",
    ]


def test_with_json_each_claim_is_a_line(workflow: Workflow) -> None:
    owner = workflow.park(order("a"))
    run = release(workflow, "a", "b", "--json")
    parked, unknown, summary = run.documents
    assert (parked["kind"], parked["key"], parked["outcome"], parked["by"]) == ("claim", "a", "released", OPERATOR)
    assert (parked["before"]["owner"], parked["before"]["reason"]) == (owner, "outcome-unknown")
    assert (unknown["key"], unknown["outcome"], unknown["before"]) == ("b", "left", None)
    assert summary == {
        "kind": "summary",
        "dry_run": False,
        "released": 1,
        "released_before": 0,
        "left": 1,
        "then": "Next: idempotent-consumer replay --name orders --id a (where there is no letter, send the message "
        "again).",
    }


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--why", "w"), "Missing argument 'KEY...'"),
        ((KEY, "--why", " "), "--why is blank: give how you know"),
        ((KEY, "--why", "w", "--by", ""), "--by is blank: give who decides"),
        ((KEY, "--why", "w" * 1001), "--why has 1001 characters, over 1000: say it in fewer"),
    ],
)
def test_bad_input_changes_nothing(workflow: Workflow, arguments: tuple[str, ...], complaint: str) -> None:
    workflow.park(order())
    run = workflow.run("release", *arguments)
    assert (run.exit_code, workflow.world.requests("UpdateItem")) == (2, [])
    assert complaint in run.stderr


def test_where_aws_does_not_tell_who_it_is_the_machine_does(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow.park(order())
    workflow.world.heal()
    workflow.world.deny("GetCallerIdentity")
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    release(workflow)
    assert row(workflow)["audit"]["L"] == [entry(workflow, "never arrived", "ann")]


def test_a_missing_right_ends_it_with_what_is_done(workflow: Workflow) -> None:
    workflow.park(order("a"))
    workflow.park(order("b"))
    workflow.world.on("UpdateItem", raises=client_error("AccessDeniedException", "UpdateItem"), calls=[2])
    run = release(workflow, "a", "b")
    assert run.exit_code == 2
    assert run.stderr.startswith(
        "1 claim released (a). Run it again for the others.\nError: you may not call UpdateItem"
    )


def test_an_interrupt_says_how_far_it_came(workflow: Workflow) -> None:
    workflow.park(order("a"))
    workflow.park(order("b"))
    workflow.world.on("UpdateItem", raises=KeyboardInterrupt(), calls=[2])
    run = release(workflow, "a", "b")
    assert (run.exit_code, run.stderr) == (130, "Stopped. 1 claim released (a). Run it again for the others.\n")


def test_a_pipeline_has_no_claims(world: World) -> None:
    run = world.run("release", KEY, "--why", "w")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: orders is no workflow, so there is no claim to release: `inspect` says what to do about letters\n"
    )


def test_an_operation_is_resolved_instead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    run = deploy_operation(new_world, monkeypatch).run("release", KEY, "--why", "w")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: orders is an operation: `resolve` says what became of it, --retry lets it run again\n"
    )
