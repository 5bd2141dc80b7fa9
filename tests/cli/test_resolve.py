"""`resolve`: a person settles what no worker can decide."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer.claims.resolution import Decision, Resolution
from idempotent_consumer.claims.row import StoredResult
from tests.cli.operation_support import OPERATOR, Operation, deploy_operation, order
from tests.cli.support import LEDGER, World, client_error

KEY = "order-1"
_TTL = 30 * 86_400


@pytest.fixture
def operation(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Operation:
    operation = deploy_operation(new_world, monkeypatch)
    operation.world.on("GetCallerIdentity", answers={"Arn": OPERATOR})
    return operation


def row(operation: Operation, event_id: str = KEY) -> dict[str, Any]:
    """Without what no decision touches."""
    kept = ("fingerprint", "idempotency_key", "message_id", "created_at", "claimed_at", "event_id")
    return {name: value for name, value in operation.world.ledger()[event_id].items() if name not in kept}


def entry(operation: Operation, how: str, why: str, by: str = OPERATOR) -> dict[str, Any]:
    values = {"at": {"N": str(operation.world.now_ms)}, "by": {"S": by}, "how": {"S": how}, "why": {"S": why}}
    return {"M": values}


# --- what is written


def test_a_parked_operation_is_completed_with_the_providers_reference(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--completed", "ch_1", "--why", "seen in the dashboard")
    now_ms = operation.world.now_ms
    assert row(operation) == {
        "status": {"S": "COMPLETED"},
        "attempt": {"N": "2"},
        "tries": {"N": "1"},
        "since": {"N": str(now_ms - 780_000)},
        "lease_until": {"N": str(now_ms - 600_000)},
        "result": {"S": '"ch_1"'},
        "settled_at": {"N": str(now_ms)},
        "ttl": {"N": str(now_ms // 1000 + _TTL)},
        "audit": {"L": [entry(operation, "completed", "seen in the dashboard")]},
    }
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-3:] == [
        f"order-1: completed, with the result ch_1 (attempt 2, decided by {OPERATOR})",
        "Next: idempotent-consumer replay --name orders --id order-1 (the letter is skipped, and gone).",
        "1 operation settled: completed.",
    ]


def test_a_parked_operation_fails_for_the_reason_that_is_given(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--failed", "the customer has cancelled")
    now_ms = operation.world.now_ms
    assert row(operation) == {
        "status": {"S": "FAILED_FINAL"},
        "attempt": {"N": "2"},
        "tries": {"N": "1"},
        "since": {"N": str(now_ms - 780_000)},
        "lease_until": {"N": str(now_ms - 600_000)},
        "reason": {"S": "resolved-failed"},
        "detail": {"S": "the customer has cancelled"},
        "settled_at": {"N": str(now_ms)},
        "ttl": {"N": str(now_ms // 1000 + _TTL)},
        "audit": {"L": [entry(operation, "failed", "the customer has cancelled")]},
    }
    assert run.exit_code == 0
    assert run.stdout.splitlines()[-2] == (
        "Next: idempotent-consumer drop --name orders --id order-1 (the letter would only come back)."
    )


def test_a_parked_operation_is_tried_again_with_its_attempts_counted_anew(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--retry", "--why", "the provider has no charge", "--by", "ann")
    now_ms = operation.world.now_ms
    stored = row(operation)
    assert stored.pop("pending_shard")["S"] in map(str, range(16))
    assert stored == {
        "status": {"S": "FAILED_RETRYABLE"},
        "attempt": {"N": "2"},
        "tries": {"N": "0"},
        "since": {"N": str(now_ms)},
        "next_attempt_at": {"N": str(now_ms)},
        "lease_until": {"N": str(now_ms - 600_000)},
        "audit": {"L": [entry(operation, "retry", "the provider has no charge", "ann")]},
    }
    assert run.exit_code == 0
    assert operation.world.requests("GetCallerIdentity") == []
    assert run.stdout.splitlines()[-3:] == [
        "order-1: to be retried at once (attempt 2, decided by ann)",
        "Next: idempotent-consumer replay --name orders --id order-1 "
        "(the letter brings the next attempt; where there is none, send the event again).",
        "1 operation settled: to be retried.",
    ]


def test_a_late_worker_can_change_nothing_any_more(operation: Operation) -> None:
    """The attempt's number is its fence."""
    claim = operation.stale(order(), age=600)
    operation.run("resolve", KEY, "--failed", "no")
    before = operation.world.ledger()[KEY]
    refused = operation._claims.complete(claim, StoredResult.of("late"), operation._budget)
    assert refused is not None
    assert operation.world.ledger()[KEY] == before


def test_each_decision_stays_on_the_row(operation: Operation) -> None:
    operation.park(order(), age=600)
    operation.run("resolve", KEY, "--failed", "no charge is there")
    operation.run("resolve", KEY, "--retry", "--by", "bob")
    assert row(operation)["attempt"] == {"N": "3"}
    assert row(operation)["audit"]["L"] == [
        entry(operation, "failed", "no charge is there"),
        entry(operation, "retry", "", "bob"),
    ]
    run = operation.run("resolve", KEY, "--completed", "ch_9", "--json")
    assert [decision["by"] for decision in run.documents[0]["before"]["audit"]] == [OPERATOR, "bob"]


def test_the_row_is_shown_before_it_is_settled(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--completed", "ch_1")
    key = operation.row(KEY).idempotency_key
    cells = [cell.strip() for cell in run.stdout.splitlines()[4].strip("│").split("│")]
    assert cells[:5] == ["order-1", "parked", "10m", "1", "1"]
    assert cells[6:] == [
        key,
        "outcome-unknown: 1 attempt, the last one: answer-timeout",
    ]


@pytest.mark.parametrize(("way", "state"), [("--completed", "COMPLETED"), ("--retry", "FAILED_RETRYABLE")])
def test_what_the_runbook_says_settles_a_parked_one(operation: Operation, way: str, state: str) -> None:
    """Its commands as they stand there: the dry run, then the decision."""
    text = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("idempotent-consumer resolve ") and way in line]
    operation.park(order("order-17"), age=600)
    states = []
    for line in lines:
        _, *arguments = shlex.split(line.replace("--name payments ", ""))
        assert operation.run(*arguments, "--by", "ann").exit_code == 0
        states.append(operation.row("order-17").state.value)
    assert states == ["IN_PROGRESS", state]


def test_several_operations_are_settled_at_once(operation: Operation) -> None:
    for number in range(5):
        operation.park(order(f"order-{number}"), age=600)
    keys = [f"order-{number}" for number in range(5)]
    run = operation.run("resolve", *keys, "order-3", "--retry")
    assert operation.world.statuses() == dict.fromkeys(keys, "FAILED_RETRYABLE")
    assert run.exit_code == 0
    assert run.stdout.splitlines()[-2].startswith(
        "Next: idempotent-consumer replay --name orders "
        "--id order-0 --id order-1 --id order-2 --id order-3 --id order-4 ("
    )
    assert run.verdict == "5 operations settled: to be retried."
    assert len(operation.world.requests("UpdateItem")) == 5


def test_an_id_is_quoted_as_a_shell_takes_it(operation: Operation) -> None:
    operation.park(order("it's $HOME"), age=600)
    run = operation.run("resolve", "it's $HOME", "--retry")
    assert """--id 'it'"'"'s $HOME' (""" in run.stdout


def test_one_that_failed_can_be_retried_or_completed(operation: Operation) -> None:
    operation.fail(order("a"))
    operation.fail(order("b"))
    assert operation.run("resolve", "a", "--retry").exit_code == 0
    assert operation.run("resolve", "b", "--completed", "ch_1").exit_code == 0
    assert operation.world.statuses() == {"a": "FAILED_RETRYABLE", "b": "COMPLETED"}
    assert "ttl" not in row(operation, "a")


def test_one_that_waits_for_its_retry_can_be_settled(operation: Operation) -> None:
    """No worker holds it."""
    operation.fail_for_now(order(), retry_in=600)
    assert operation.run("resolve", KEY, "--failed", "too late").exit_code == 0
    assert operation.world.statuses() == {KEY: "FAILED_FINAL"}
    assert not {"pending_shard", "next_attempt_at", "owner"} & row(operation).keys()


# --- what is refused


def test_a_completed_operation_is_not_settled_again(operation: Operation) -> None:
    operation.complete(order())
    run = operation.run("resolve", KEY, "--retry")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2:] == [
        "order-1: not settled: it is completed already",
        "0 operations settled: to be retried, 1 left.",
    ]
    assert operation.world.statuses() == {KEY: "COMPLETED"}


def test_a_failed_operation_does_not_fail_again(operation: Operation) -> None:
    operation.fail(order())
    run = operation.run("resolve", KEY, "--failed", "no")
    assert (run.exit_code, run.stdout.splitlines()[-2]) == (1, "order-1: not settled: it has failed already")


def test_what_a_worker_may_hold_is_left_until_two_minutes_after_its_lease(operation: Operation) -> None:
    operation.stale(order(), age=119)
    run = operation.run("resolve", KEY, "--retry", "--json")
    line = run.documents[0]
    assert (run.exit_code, line["outcome"], line["reason"].split(",")[0]) == (
        1,
        "left",
        "a worker may hold its claim",
    )
    assert operation.world.statuses() == {KEY: "IN_PROGRESS"}
    operation.world.now_ms += 1_000
    assert operation.run("resolve", KEY, "--retry").exit_code == 0


def test_until_when_a_worker_may_hold_it_is_said(operation: Operation) -> None:
    operation.world.now_ms = 1_893_553_446_000
    operation._now_ms = operation.world.now_ms
    operation.claim(order())
    run = operation.run("resolve", KEY, "--retry")
    assert run.stdout.splitlines()[-2] == (
        "order-1: not settled: a worker may hold its claim, until 2030-01-02T03:09:06+00:00 (in 5m)"
    )


def test_an_id_that_the_ledger_does_not_hold_is_told(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", "typo", KEY, "--retry")
    assert run.exit_code == 1
    assert "typo: not settled: the ledger holds no such event\n" in run.stdout
    assert run.verdict == "1 operation settled: to be retried, 1 left."


def test_a_row_that_no_operation_wrote_is_left_alone(operation: Operation) -> None:
    operation.world.store(LEDGER, {"event_id": {"S": KEY}, "status": {"S": "sent"}})
    run = operation.run("resolve", KEY, "--retry")
    assert run.exit_code == 1
    assert f"{KEY}: not settled: its row was written by no operation\n" in run.stdout
    assert operation.world.statuses() == {KEY: "sent"}


def test_what_has_changed_since_it_was_shown_is_left_alone(operation: Operation) -> None:
    operation.park(order(), age=600)

    def someone_else() -> None:
        theirs = Resolution(Decision.COMPLETED, "bob", "", "ch_theirs")
        assert operation._claims.resolve(operation.row(KEY), theirs, operation._budget) is None

    operation.world.on("UpdateItem", runs=someone_else, calls=[1])
    run = operation.run("resolve", KEY, "--retry", "--by", "ann")
    assert run.exit_code == 1
    assert (
        f"{KEY}: not settled: it was changed meanwhile: it is completed now, at attempt 2. Look again\n" in run.stdout
    )
    assert row(operation)["result"] == {"S": '"ch_theirs"'}


def test_an_answer_that_is_lost_is_no_refusal(operation: Operation) -> None:
    """The SDK's second try finds the row as the first has made it."""
    operation.park(order(), age=600)

    def twice(request: Any, effect: Callable[[], Any]) -> Any:
        effect()
        return effect()

    operation.world.on("UpdateItem", answers=twice)
    run = operation.run("resolve", KEY, "--completed", "ch_1")
    assert (run.exit_code, run.verdict) == (0, "1 operation settled: completed.")


# --- what else ends it


def test_a_dry_run_changes_nothing(operation: Operation) -> None:
    operation.park(order("a"), age=600)
    operation.complete(order("b"))
    before = operation.world.ledger()
    run = operation.run("resolve", "a", "b", "--retry", "--dry-run")
    assert run.exit_code == 1
    assert operation.world.ledger() == before
    assert operation.world.requests("UpdateItem") == []
    assert run.stdout.splitlines()[-3:] == [
        "a: would be retried at once",
        "b: not settled: it is completed already",
        "1 operation would be settled: to be retried, 1 left. Nothing was changed.",
    ]


def test_a_result_belongs_to_one_event(operation: Operation) -> None:
    for name in ("a", "b"):
        operation.park(order(name), age=600)
    run = operation.run("resolve", "a", "b", "--completed", "ch_1")
    assert (run.exit_code, operation.world.requests("UpdateItem")) == (2, [])
    assert "--completed takes one event" in run.stderr


@pytest.mark.parametrize("decision", [["--retry"], ["--failed", "gone"]])
def test_who_says_not_applied_too_early_is_warned(operation: Operation, decision: list[str]) -> None:
    """The provider may still apply what it was asked for, for as long as reconcile would wait."""
    operation.park(order(), age=10)
    run = operation.run("resolve", KEY, *decision, "--by", "ann")
    assert run.exit_code == 0
    assert "The provider may still apply an earlier attempt until" in run.stdout


@pytest.mark.parametrize(("decision", "age"), [(["--completed", "ch_1"], 10), (["--retry"], 600)])
def test_who_says_it_in_time_is_not_warned(operation: Operation, decision: list[str], age: int) -> None:
    operation.park(order(), age=age)
    assert "may still apply" not in operation.run("resolve", KEY, *decision, "--by", "ann").stdout


def test_with_json_each_operation_is_a_line(operation: Operation) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--completed", "ch_1", "--why", "seen", "--json")
    line, summary = run.documents
    before = line.pop("before")
    assert line == {
        "kind": "operation",
        "event_id": KEY,
        "outcome": "settled",
        "reason": "",
        "until": None,
        "decision": "completed",
        "by": OPERATOR,
        "why": "seen",
        "result": "ch_1",
    }
    assert {name: before[name] for name in ("state", "status", "attempt", "tries", "reason")} == {
        "state": "parked",
        "status": "IN_PROGRESS",
        "attempt": 1,
        "tries": 1,
        "reason": "outcome-unknown",
    }
    assert summary == {
        "kind": "summary",
        "dry_run": False,
        "decision": "completed",
        "settled": 1,
        "left": 0,
        "then": "Next: idempotent-consumer replay --name orders --id order-1 (the letter is skipped, and gone).",
    }


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--completed", "ch_1", "--retry"),
        ("--completed", "ch_1", "--failed", "no"),
        ("--failed", "no", "--retry"),
    ],
)
def test_one_decision_is_asked_for(operation: Operation, options: tuple[str, ...]) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, *options)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == "Error: was it applied? Say one of --completed REF, --failed WHY and --retry\n"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--completed", " "), "--completed is blank: give the provider's id of what was applied"),
        (("--failed", ""), "--failed is blank: give why it shall not be applied"),
        (("--failed", "no", "--why", "so"), "--failed says why already: leave out --why"),
    ],
)
def test_a_decision_without_its_words_is_refused(operation: Operation, options: tuple[str, ...], text: str) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, *options)
    assert (run.exit_code, run.stderr) == (2, f"Error: {text}\n")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--failed", "x" * 1001), "why has 1001 characters, over 1000"),
        (("--retry", "--by", "x" * 1001), "by has 1001 characters, over 1000"),
    ],
)
def test_a_decision_of_too_many_words_is_refused(operation: Operation, options: tuple[str, ...], text: str) -> None:
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, *options)
    assert (run.exit_code, run.stderr) == (2, f"Error: {text}: say it in fewer\n")


def test_without_a_key_one_is_asked_for(operation: Operation) -> None:
    run = operation.run("resolve", "--retry")
    assert (run.exit_code, "Missing argument 'KEY...'" in run.stderr) == (2, True)


def test_a_pipeline_has_nothing_to_resolve(world: World) -> None:
    run = world.run("resolve", KEY, "--retry")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: orders is no operation, so nothing waits for a decision: `inspect` says what to do about its letters\n"
    )


def test_where_aws_does_not_say_who_runs_it_the_machine_does(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = deploy_operation(new_world, monkeypatch)
    operation.world.deny("GetCallerIdentity")
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    operation.park(order(), age=600)
    assert operation.run("resolve", KEY, "--retry").exit_code == 0
    assert row(operation)["audit"]["L"] == [entry(operation, "retry", "", "ann")]


def test_where_nobody_says_who_runs_it_a_name_is_asked_for(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise KeyError("uid")

    operation = deploy_operation(new_world, monkeypatch)
    operation.world.deny("GetCallerIdentity")
    monkeypatch.setattr(getpass, "getuser", unknown)
    operation.park(order(), age=600)
    run = operation.run("resolve", KEY, "--retry")
    assert (run.exit_code, run.stderr) == (2, "Error: who decides? Neither AWS nor this machine tells: give --by\n")


def test_without_the_right_to_write_nothing_is_settled(operation: Operation) -> None:
    operation.park(order(), age=600)
    operation.world.deny("UpdateItem")
    run = operation.run("resolve", KEY, "--retry")
    assert run.exit_code == 2
    assert run.stderr == (
        "0 operations settled. Run it again for the others.\n"
        "Error: order-1 is not settled (UpdateItem: AccessDeniedException): you need dynamodb:UpdateItem on "
        "orders-processed-events\n"
    )


def test_what_fails_on_the_way_is_run_again(operation: Operation) -> None:
    for name in ("a", "b"):
        operation.park(order(name), age=600)
    operation.world.on("UpdateItem", raises=client_error("InternalServerError", "UpdateItem"), calls=[2])
    run = operation.run("resolve", "a", "b", "--retry")
    assert run.exit_code == 2
    assert run.stderr == (
        "1 operation settled (a). Run it again for the others.\n"
        "Error: b is perhaps not settled (unavailable: UpdateItem: InternalServerError): run it again\n"
    )


def test_a_dry_run_that_fails_has_changed_nothing(operation: Operation) -> None:
    operation.world.deny("BatchGetItem")
    run = operation.run("resolve", KEY, "--retry", "--dry-run")
    assert run.exit_code == 2
    assert run.stderr.startswith("Nothing was changed.\nError: you may not call BatchGetItem: ")


def test_a_run_that_is_stopped_says_how_far_it_came(operation: Operation) -> None:
    for name in ("a", "b"):
        operation.park(order(name), age=600)
    operation.world.on("UpdateItem", raises=KeyboardInterrupt(), calls=[2])
    run = operation.run("resolve", "a", "b", "--retry")
    assert (run.exit_code, run.stderr) == (
        130,
        "Stopped. 1 operation settled (a). Run it again for the others.\n",
    )


def test_the_result_of_a_row_is_not_read(operation: Operation) -> None:
    """It may be large, or secret."""
    operation.complete(order(), {"secret": "s"})
    operation.run("resolve", KEY, "--retry")
    (request,) = operation.world.requests("BatchGetItem")
    names = request["RequestItems"][LEDGER]["ExpressionAttributeNames"].values()
    assert "result" not in names
    assert "audit" in names
