"""`inspect`, `replay` and `drop` for an operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.operation_support import Operation, deploy_operation, order
from tests.cli.support import DAY, LEDGER, Run, World

Deploy = Callable[..., Operation]


@pytest.fixture
def deploy(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Deploy:
    def create(uncertain: str = "park", **options: Any) -> Operation:
        return deploy_operation(new_world, monkeypatch, uncertain, **options)

    return create


@pytest.fixture
def operation(deploy: Deploy) -> Operation:
    return deploy()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def letters(run: Run) -> dict[str, dict[str, Any]]:
    """The lines of letters by their event."""
    return {line["event_ids"][0]: line for line in run.documents if line["kind"] == "letter" and line["event_ids"]}


def fates(run: Run) -> dict[str, str]:
    return {event_id: line["replay"] for event_id, line in letters(run).items()}


def outcomes(run: Run) -> dict[str, tuple[str, str]]:
    return {
        line["event_ids"][0]: (line["outcome"], line["reason"]) for line in run.documents if line["kind"] == "outcome"
    }


def one_of_each(operation: Operation) -> None:
    """An operation in each state, and its letter."""
    operation.park(order("parked"), age=7200)
    operation.claim(order("held"), age=20)
    operation.stale(order("stale"), age=120)
    operation.fail_for_now(order("later"), retry_in=600)
    operation.fail_for_now(order("due"), retry_in=-1)
    operation.fail(order("failed"), "card-declined", "insufficient funds", age=3600)
    operation.complete(order("done"), {"charge": "ch_1"}, age=60)
    reasons = {"parked": ("outcome-unknown", "see the key"), "failed": ("card-declined", "insufficient funds")}
    for name in ("parked", "held", "stale", "later", "due", "failed", "done", "new"):
        operation.letter(order(name), *reasons.get(name, ()))


# --- inspect


def test_each_letter_is_shown_beside_its_operation(operation: Operation) -> None:
    operation.park(order("parked"), age=7830)
    operation.fail(order("failed"), "card-declined", age=4230)
    operation.complete(order("done"), age=90)
    operation.letter(order("parked"), "outcome-unknown")
    operation.letter(order("failed"), "card-declined")
    operation.letter(order("done"), "outcome-unknown")
    operation.letter(order("new"), "too-old")
    run = operation.run("inspect")
    lines = run.stdout.splitlines()
    assert cells(lines[2].replace("┃", "│"))[5:] == ["ledger", "for", "attempt", "a replay", "to do"]
    rows = [cells(line) for line in lines if line.startswith("│")]
    shown = {row[0]: row[5:] for row in rows if row[0]}
    assert shown["parked"] == ["parked", "2h 10m", "1", "will be parked: outcome-unknown", "resolve"]
    assert shown["failed"] == ["failed", "1h 10m", "1", "will fail: card-declined", "resolve --retry, or drop"]
    assert shown["done"][:3] == ["completed", "1m 30s", "1"]
    assert shown["done"][4] == "replay (is skipped), or drop"
    assert shown["new"] == ["never seen", "-", "-", "will try (the ledger does not know it)", "replay"]
    assert "Ledger:   1 parked, 1 failed, 1 never seen, 1 completed" in lines
    assert "A replay: 1 will be parked, 1 will fail, 1 will try, 1 is a no-op" in lines
    assert run.verdict == (
        "4 letters, 1 of them for `resolve`: see at the provider first whether it was applied; then `replay` or `drop` "
        "the letter."
    )
    assert run.exit_code == 1


def test_programs_get_the_whole_row_but_its_result(operation: Operation) -> None:
    operation.world.now_ms = 1_893_553_446_000
    operation.park(order(), age=600)
    key = operation.row("order-1").idempotency_key
    operation.letter(order(), "outcome-unknown")
    line = letters(operation.run("inspect", "--json"))["order-1"]
    assert line["to_do"] == "resolve"
    assert line["events"][0]["operation"] == {
        "status": "IN_PROGRESS",
        "attempt": 1,
        "tries": 1,
        "idempotency_key": key,
        "created_at": "2030-01-02T02:51:06+00:00",
        "since": "2030-01-02T02:51:06+00:00",
        "lease_until": "2030-01-02T02:54:06+00:00",
        "next_attempt_at": None,
        "uncertain_at": None,
        "parked_at": "2030-01-02T02:54:06+00:00",
        "settled_at": None,
        "reason": "outcome-unknown",
        "detail": "1 attempt, the last one: answer-timeout",
        "audit": [],
    }


@pytest.mark.parametrize(
    ("uncertain", "fate", "to_do"), [("park", "park", "resolve"), ("provider_key", "try", "replay")]
)
def test_what_is_done_about_an_uncertain_outcome_is_the_policys(
    deploy: Deploy, uncertain: str, fate: str, to_do: str
) -> None:
    operation = deploy(uncertain)
    operation.stale(order(), age=600)
    operation.letter(order())
    line = letters(operation.run("inspect", "--json"))["order-1"]
    assert (line["ledger"], line["replay"], line["to_do"]) == ("stale", fate, to_do)


def test_where_the_provider_is_asked_it_is_asked_once_it_can_know(deploy: Deploy) -> None:
    operation = deploy("reconcile")
    operation.stale(order("early"), age=100)
    operation.stale(order("settled"), age=300)
    operation.letter(order("early"))
    operation.letter(order("settled"))
    run = operation.run("inspect", "--json")
    assert fates(run) == {"early": "wait", "settled": "ask"}
    assert letters(run)["early"]["replay_detail"].endswith(": then the provider is asked")


def test_where_all_would_fail_again_no_replay_is_advised(operation: Operation) -> None:
    operation.fail(order())
    operation.letter(order(), "card-declined")
    assert operation.run("inspect").verdict == ("1 letter that would fail again: `resolve --retry`, or `drop` them.")


def test_used_up_attempts_are_foretold(operation: Operation) -> None:
    operation.fail_for_now(order(), "too-busy", retry_in=-1)
    operation.change("order-1", tries={"N": "5"})
    operation.letter(order())
    line = letters(operation.run("inspect", "--json"))["order-1"]
    assert (line["replay"], line["replay_reason"], line["replay_detail"]) == (
        "fail",
        "attempts-exhausted",
        "5 attempts, the last one: too-busy",
    )
    assert line["to_do"] == "resolve --retry or --failed"


def test_other_content_under_the_same_id_is_a_conflict(operation: Operation) -> None:
    operation.complete(order())
    operation.letter(order(total=6), "id-reused")
    line = letters(operation.run("inspect", "--json"))["order-1"]
    assert (line["ledger"], line["replay"], line["replay_reason"], line["to_do"]) == (
        "conflict",
        "refuse",
        "id-reused",
        "mend the cause, or drop",
    )


def test_a_row_that_no_operation_wrote_is_said_to_be_unreadable(operation: Operation) -> None:
    operation.world.store(LEDGER, {"event_id": {"S": "order-1"}, "status": {"S": "sent"}})
    operation.letter(order())
    line = letters(operation.run("inspect", "--json"))["order-1"]
    assert (line["ledger"], line["replay"], line["to_do"]) == ("unreadable", "refuse", "look at the row")


def test_a_body_without_an_event_is_told_by_its_message(operation: Operation) -> None:
    message_id = operation.letter("{", "bad-json")
    (line, _) = operation.run("inspect", "--json").documents
    assert (line["message_id"], line["ledger"], line["replay"]) == (message_id, "no-event", "refuse")


def test_no_business_table_is_asked(operation: Operation) -> None:
    one_of_each(operation)
    operation.run("inspect")
    tables = [name for request in operation.world.requests("BatchGetItem") for name in request["RequestItems"]]
    assert tables == ["orders-processed-events"]


def test_on_fifo_what_stands_behind_another_is_taken_for_blocked(deploy: Deploy) -> None:
    operation = deploy(fifo=True)
    operation.fail(order("first"))
    operation.letter(order("first"), group="a")
    operation.letter(order("second"), group="a")
    run = operation.run("inspect", "--json")
    assert [line["ledger"] for line in letters(run).values()] == ["failed", "blocked"]


# --- replay


def test_before_a_replay_it_is_said_what_the_operation_will_do(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("replay", "--all", "--dry-run", "--json")
    assert fates(run) == {
        "parked": "park",
        "held": "wait",
        "stale": "park",
        "later": "wait",
        "due": "try",
        "failed": "fail",
        "done": "no-op",
        "new": "try",
    }
    assert run.exit_code == 1
    assert operation.dead.queued == []


def test_it_is_said_in_words_too(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("replay", "--all", "--dry-run")
    lines = run.stdout.splitlines()
    assert "parked: will be parked: outcome-unknown (until `resolve` settles it: 1 attempt, the last one: " in lines[0]
    assert "failed: will fail: card-declined (insufficient funds)" in lines
    assert "done: is a no-op (completed: it is skipped)" in lines
    assert "due: will try (after 1 attempt)" in lines


def test_a_letter_keeps_its_identity(operation: Operation) -> None:
    body = '{"id": "order-1",  "total": 5.00}'
    operation.letter(body, "outcome-unknown", "see the key")
    assert operation.run("replay", "--all").exit_code == 0
    (message,) = operation.dead.queued
    assert (message.body, message.message_attributes) == (body, {})


def test_those_that_come_straight_back_are_sent_unless_told_otherwise(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("replay", "--all")
    assert len(operation.dead.queued) == 8
    assert "3 letters will come back to the dead-letter queue: `inspect` says what to do first.\n" in run.stdout
    assert run.exit_code == 1


def test_those_that_come_straight_back_can_be_left(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("replay", "--all", "--skip-refused")
    assert sorted(json.loads(body)["id"] for body in operation.dead.bodies) == ["failed", "parked", "stale"]
    assert sorted(json.loads(body)["id"] for body in operation.dead.queued_bodies) == [
        "done",
        "due",
        "held",
        "later",
        "new",
    ]
    assert "3 letters left: would come straight back: settle it with `resolve` first.\n" in run.stdout


def test_of_two_letters_with_one_event_the_second_is_not_foretold(operation: Operation) -> None:
    for data in (order(), order(), order(total=6)):
        operation.letter(data)
    run = operation.run("replay", "--all", "--dry-run", "--json")
    lines = [line for line in run.documents if line["kind"] == "letter"]
    assert [(line["replay"], line["replay_reason"]) for line in lines] == [
        ("try", ""),
        ("unknown", ""),
        ("refuse", "id-reused"),
    ]


def test_what_the_ledger_may_have_forgotten_is_left(operation: Operation) -> None:
    """A completed row goes after the window, and the effect would run once more."""
    operation.world.deploy(TTL_WINDOW_DAYS="1")
    operation.letter(order("old"), age=2 * DAY)
    operation.letter(order("young"))
    run = operation.run("replay", "--all")
    assert [json.loads(body)["id"] for body in operation.dead.queued_bodies] == ["young"]
    assert "1 letter left: may have been applied before the ledger forgot it: --beyond-window sends it.\n" in run.stdout
    assert run.exit_code == 1
    operation.dead.heal()
    assert letters(operation.run("inspect", "--json"))["old"]["to_do"] == (
        "see whether it was applied; replay --beyond-window, or drop"
    )
    assert operation.run("replay", "--all", "--beyond-window").exit_code == 0
    assert len(operation.dead.queued) == 2


def test_a_copy_of_a_letter_that_is_left_is_the_first(operation: Operation) -> None:
    operation.world.deploy(TTL_WINDOW_DAYS="1")
    operation.letter(order(), age=2 * DAY)
    operation.letter(order())
    run = operation.run("replay", "--all", "--dry-run", "--json")
    lines = [line for line in run.documents if line["kind"] == "letter"]
    assert [(line["left"] is not None, line["replay"]) for line in lines] == [(True, "try"), (False, "try")]


def work_after_sending(operation: Operation, fates: dict[str, str]) -> None:
    """The worker comes when all is sent: at the first question to the ledger of what became of it."""

    def at_question(request: Any, effect: Callable[[], Any]) -> Any:
        if operation.dead.queued:
            operation.world._play(lambda: operation.work(fates))
        return effect()

    operation.world.on("BatchGetItem", answers=at_question)


def test_with_wait_each_letter_is_followed_to_its_end(operation: Operation) -> None:
    operation.complete(order("done"))
    operation.park(order("parked"), age=600)
    for name in ("done", "parked", "good", "declined", "lost", "reused", "again"):
        operation.letter(order(name))
    work_after_sending(
        operation,
        {
            "done": "later",
            "parked": "outcome-unknown",
            "good": "completed",
            "declined": "card-declined",
            "lost": "outcome-unknown",
            "reused": "id-reused",
            "again": "completed",
        },
    )
    run = operation.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {
        "done": ("no-op", ""),
        "parked": ("parked", "outcome-unknown"),
        "good": ("completed", ""),
        "declined": ("failed", "card-declined"),
        "lost": ("parked", "outcome-unknown"),
        "reused": ("refused", "id-reused"),
        "again": ("completed", ""),
    }
    assert run.documents[-1]["outcomes"] == {"refused": 1, "parked": 2, "failed": 1, "completed": 2, "no-op": 1}
    assert run.exit_code == 1


def test_with_wait_all_is_well_once_all_is_completed(operation: Operation) -> None:
    operation.letter(order("a"))
    operation.letter(order("b"))
    work_after_sending(operation, {"a": "completed", "b": "completed"})
    run = operation.run("replay", "--all", "--wait")
    assert (run.exit_code, run.verdict) == (0, "2 letters sent: 2 completed.")
    assert {"a completed", "b completed"} <= set(run.stdout.splitlines())


def test_what_is_still_under_way_says_how_far_it_is(operation: Operation) -> None:
    operation.claim(order("held"))
    operation.fail_for_now(order("later"), retry_in=3600)
    operation.letter(order("held"))
    operation.letter(order("later"))
    operation.letter(order("new"))
    run = operation.run("replay", "--all", "--wait", "--timeout", "30s", "--json")
    assert outcomes(run) == {
        "held": ("under-way", "in progress"),
        "later": ("under-way", "to be retried"),
        "new": ("under-way", ""),
    }
    assert run.exit_code == 1


def test_what_was_on_the_way_and_is_completed_is_said_to_be_so_only(operation: Operation) -> None:
    operation.fail_for_now(order(), retry_in=-1)
    operation.letter(order())
    looks: list[int] = []

    def at_question(request: Any, effect: Callable[[], Any]) -> Any:
        if operation.dead.queued:
            looks.append(1)
            if len(looks) == 3:
                operation.world._play(operation.world.queued)
                operation.change("order-1", status={"S": "COMPLETED"})
        return effect()

    operation.world.on("BatchGetItem", answers=at_question)
    run = operation.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"order-1": ("completed", "")}
    assert len(looks) == 3


def test_a_completed_operation_of_other_content_settles_no_letter(operation: Operation) -> None:
    operation.complete(order())
    operation.letter(order(total=6), "id-reused")
    operation.world.on("DeleteMessageBatch", runs=lambda: operation.work({"order-1": "id-reused"}))
    run = operation.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"order-1": ("refused", "id-reused")}


def test_a_letter_that_sqs_moves_again_was_refused(operation: Operation) -> None:
    operation.letter(order())

    def move(request: Any, effect: Callable[[], Any]) -> Any:
        if operation.dead.queued:
            operation.world._play(lambda: operation.work({"order-1": "moved"}))
        return effect()

    operation.world.on("BatchGetItem", answers=move)
    run = operation.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"order-1": ("refused", "moved by SQS")}
    assert run.exit_code == 1


# --- drop


def test_a_drop_warns_of_operations_that_are_not_finished(
    operation: Operation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one_of_each(operation)
    run = operation.run("drop", "--all", "--output", "dropped.jsonl")
    assert run.exit_code == 0
    assert (
        "5 letters with an operation that is parked or unfinished: without its letter only `resolve` finishes it; "
        "`pending` lists it.\n"
    ) in run.stdout
    assert run.verdict.endswith(
        ": 1 parked, 1 lease over, 1 failed, 1 never seen, 1 in progress, 2 to be retried, 1 completed."
    )
    assert operation.dead.all == []
    assert operation.run("replay", "--from-drop", "dropped.jsonl", "--dry-run", "--json").documents[-1][
        "by_replay"
    ] == {
        "park": 2,
        "fail": 1,
        "try": 2,
        "wait": 2,
        "no-op": 1,
    }


def test_a_dry_run_of_a_drop_warns_too(operation: Operation) -> None:
    operation.park(order(), age=600)
    operation.letter(order(), "outcome-unknown")
    run = operation.run("drop", "--all", "--dry-run")
    assert "order-1: parked\n" in run.stdout
    assert "1 letter with an operation that is parked or unfinished: " in run.stdout


def test_settled_operations_need_no_warning(operation: Operation, tmp_path: Path) -> None:
    operation.fail(order("failed"))
    operation.complete(order("done"))
    for name in ("failed", "done"):
        operation.letter(order(name))
    run = operation.run("drop", "--all", "--output", str(tmp_path / "dropped.jsonl"))
    assert "unfinished" not in run.stdout
