"""`status` and `pending` for an operation, and the commands that make no sense for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer_cli.consumer.discovery import consumers_in
from idempotent_consumer_cli.rows import unfinished
from tests.cli.operation_support import Operation, deploy_operation, order
from tests.cli.support import LEDGER, World

ANNOUNCES_NOTHING = (
    "it announces nothing. `pending` lists what is unfinished; `resolve` settles what is parked, `replay` brings back "
    "what is in the dead-letter queue"
)

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


def one_of_each(operation: Operation) -> None:
    """An operation in each state, the oldest first."""
    operation.park(order("parked"), age=7200)
    operation.stale(order("stale"), age=60)
    operation.claim(order("held"), age=20)
    operation.fail_for_now(order("later"), retry_in=100, age=5)
    operation.fail(order("failed"))
    operation.complete(order("done"))


# --- status


def test_an_operation_without_work_is_well(operation: Operation) -> None:
    run = operation.run("status")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("Operation orders\n")
    assert "operations        none unfinished\nmapping           enabled\n" in run.stdout
    assert run.verdict == "All is well: nothing is stuck."
    assert "pending" not in run.stdout


def test_unfinished_operations_are_counted_by_their_states(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("status")
    assert (
        "operations        1 parked, 1 lease over, 1 in progress, 1 to be retried, the oldest for 2h 3m\n" in run.stdout
    )


def test_what_is_in_work_needs_no_hand(operation: Operation) -> None:
    operation.stale(order("stale"), age=899)
    operation.claim(order("held"), age=20)
    operation.fail_for_now(order("due"), retry_in=-899, age=899)
    run = operation.run("status")
    assert (run.exit_code, run.verdict) == (0, "All is well: nothing is stuck.")


def test_parked_operations_need_a_hand(operation: Operation) -> None:
    operation.park(order())
    run = operation.run("status")
    assert (run.exit_code, run.stdout.splitlines()[-2:]) == (
        1,
        [
            "1 operation parked, of which nobody knows whether it was applied: "
            "see at the provider, then idempotent-consumer resolve --name orders <event id>",
            "1 thing to see to.",
        ],
    )


def test_what_nobody_takes_up_again_needs_a_hand(operation: Operation) -> None:
    """Longer than a message is ever hidden."""
    operation.stale(order("stale"), age=901)
    operation.fail_for_now(order("due"), retry_in=-901, age=1000)
    run = operation.run("status")
    assert (run.exit_code, run.stdout.splitlines()[-2:]) == (
        1,
        [
            "2 operations unfinished, and due for over 15m: their messages wait in the queue, or are dead, or gone: "
            "idempotent-consumer inspect --name orders",
            "1 thing to see to.",
        ],
    )


def test_where_the_provider_is_asked_its_time_is_granted(deploy: Deploy) -> None:
    operation = deploy("reconcile")
    operation.stale(order(), age=1029)
    assert operation.run("status").exit_code == 0
    operation.world.now_ms += 2_000
    assert operation.run("status").exit_code == 1


def test_a_row_that_no_operation_wrote_needs_a_hand(operation: Operation) -> None:
    operation.claim(order())
    operation.change("order-1", attempt=None)
    run = operation.run("status")
    assert (run.exit_code, run.stdout.splitlines()[-2]) == (
        1,
        "1 row of the ledger that no operation wrote: idempotent-consumer pending --name orders lists them",
    )


def test_the_last_hour_has_the_outcomes_of_operations(operation: Operation) -> None:
    for number, name in enumerate(
        ("Claimed", "Completed", "Duplicates", "Failed", "OutcomeUnknown", "InProgressStale", "Retries"), start=1
    ):
        operation.world.measure(name, number)
    operation.world.measure("Applied", 99)
    run = operation.run("status", "--json")
    assert run.document["last_hour"] == {
        "Claimed": 1,
        "Completed": 2,
        "Duplicates": 3,
        "Failed": 4,
        "OutcomeUnknown": 5,
        "InProgressStale": 6,
        "Retries": 7,
    }


def test_programs_get_the_states_as_numbers(operation: Operation) -> None:
    one_of_each(operation)
    document = operation.run("status", "--json").document
    assert document["pending"] is None
    assert document["operations"] == {
        "total": 4,
        "by_state": {"parked": 1, "stale": 1, "in-progress": 1, "to-retry": 1, "unreadable": 0},
        "overdue": 0,
        "uncounted": 0,
        "oldest_age_seconds": 7380,
    }


@pytest.mark.parametrize("call", ["Query", "BatchGetItem", "DescribeTable"])
def test_without_a_look_at_the_operations_nobody_says_that_all_is_well(operation: Operation, call: str) -> None:
    operation.claim(order())
    operation.world.deny(call)
    run = operation.run("status")
    assert (run.exit_code, run.verdict) == (2, "Nothing is stuck in what could be read. Not read: operations.")
    assert f"not read: operations: you may not call {call}: " in run.stdout
    assert "operations        unknown\n" in run.stdout


def test_dead_letters_of_an_operation_need_a_hand_too(operation: Operation) -> None:
    operation.letter(order(), "card-declined")
    run = operation.run("status")
    assert run.stdout.splitlines()[-2] == "1 dead letter: idempotent-consumer inspect --name orders"


# --- pending


def test_no_unfinished_operation_is_said(operation: Operation) -> None:
    operation.complete(order())
    run = operation.run("pending")
    assert (run.exit_code, run.stdout) == (0, "No operation is unfinished.\n")


def test_unfinished_operations_are_listed_oldest_first(operation: Operation) -> None:
    one_of_each(operation)
    run = operation.run("pending")
    lines = run.stdout.splitlines()
    assert cells(lines[2].replace("┃", "│")) == ["event id", "state", "for", "attempt", "age", "next", "why"]
    assert [cells(line) for line in lines[4:8]] == [
        [
            "parked",
            "parked",
            "2h",
            "1",
            "2h 3m",
            "resolve",
            "outcome-unknown: 1 attempt, the last one: answer-timeout",
        ],
        ["stale", "lease over", "1m", "1", "4m", "when its message comes", "-"],
        ["held", "in progress", "-", "1", "20s", "in 2m 40s", "-"],
        ["later", "to be retried", "-", "1", "6s", "in 1m 40s", "too-busy"],
    ]
    assert lines[9:] == [
        "4 operations unfinished: 1 parked, 1 lease over, 1 in progress, 1 to be retried.",
        "1 parked: see at the provider, then idempotent-consumer resolve --name orders <event id>",
    ]
    assert run.exit_code == 1


def test_what_is_in_work_is_listed_without_alarm(operation: Operation) -> None:
    operation.claim(order())
    run = operation.run("pending")
    assert (run.exit_code, run.verdict) == (0, "1 operation unfinished: 1 in progress.")


def test_what_is_overdue_is_told(operation: Operation) -> None:
    operation.stale(order(), age=1000)
    run = operation.run("pending", "--json")
    assert run.exit_code == 1
    document = run.document
    assert (document["overdue"], document["operations"][0]["overdue"]) == (1, True)
    assert document["verdict"] == (
        "1 operation unfinished: 1 lease over. 1 unfinished, and due for over 15m: their messages wait in the queue, "
        "or are dead, or gone: idempotent-consumer inspect --name orders"
    )


def test_programs_get_each_row(operation: Operation) -> None:
    operation.world.now_ms = 1_893_553_446_000
    operation.fail_for_now(order(), "too-busy", age=10, retry_in=20)
    key = operation.row("order-1").idempotency_key
    document = operation.run("pending", "--json").document
    assert (document["consumer"], document["by"], document["total"]) == ("orders", "index", 1)
    assert document["operations"] == [
        {
            "event_id": "order-1",
            "state": "to-retry",
            "age_seconds": 11,
            "created_at": "2030-01-02T03:03:55+00:00",
            "overdue": False,
            "status": "FAILED_RETRYABLE",
            "attempt": 1,
            "tries": 1,
            "idempotency_key": key,
            "since": "2030-01-02T03:03:55+00:00",
            "lease_until": "2030-01-02T03:06:55+00:00",
            "next_attempt_at": "2030-01-02T03:04:26+00:00",
            "uncertain_at": None,
            "parked_at": None,
            "settled_at": None,
            "reason": "too-busy",
            "detail": "",
            "audit": [],
        }
    ]


def test_only_those_of_an_age_are_listed(operation: Operation) -> None:
    operation.park(order("old"), age=3600)
    operation.park(order("young"), age=60)
    run = operation.run("pending", "--older-than", "30m", "--json")
    assert [each["event_id"] for each in run.document["operations"]] == ["old"]
    assert run.document["verdict"].startswith("1 operation unfinished for over 30m: 1 parked. ")


def test_only_so_many_are_listed_and_all_are_counted(operation: Operation) -> None:
    for number in range(5):
        operation.park(order(f"order-{number}"), age=600 - number)
    run = operation.run("pending", "--limit", "2")
    assert "order-1" in run.stdout
    assert "order-2" not in run.stdout
    assert "and 3 more: list them with --limit 5\n" in run.stdout
    assert "5 operations unfinished: 5 parked.\n" in run.stdout


def test_beyond_what_is_read_they_are_counted_only(operation: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "MOST", 3)
    for number in range(5):
        operation.park(order(f"order-{number}"), age=600 - number)
    run = operation.run("pending")
    assert "5 operations unfinished: 3 parked, and 2 more whose state was not read.\n" in run.stdout
    assert "3 parked, 2 more, the oldest for 13m\n" in operation.run("status").stdout


def test_what_was_not_looked_at_is_not_well(operation: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "MOST", 1)
    for number in range(3):
        operation.claim(order(f"order-{number}"))
    run = operation.run("status")
    assert run.exit_code == 1
    assert "2 unfinished operations more than can be looked at: one may be parked" in run.stdout


def test_what_is_final_by_now_is_left_out(operation: Operation) -> None:
    """The index lags behind the table."""
    operation.claim(order("held"))
    operation.complete(order("done"))
    row = {**operation.world.ledger()["done"], "pending_shard": {"S": "0"}}
    operation.world.store(LEDGER, row)
    run = operation.run("pending", "--json")
    assert [each["event_id"] for each in run.document["operations"]] == ["held"]


def test_without_the_index_the_table_is_scanned(deploy: Deploy) -> None:
    operation = deploy(index=False)
    one_of_each(operation)
    run = operation.run("pending", "--json")
    assert (run.document["by"], run.document["total"]) == ("scan", 4)
    assert [each["event_id"] for each in run.document["operations"]] == ["parked", "stale", "held", "later"]
    assert run.stderr == ("orders-processed-events has no index of pending rows, so the whole table is scanned.\n")
    (request,) = operation.world.requests("Scan")
    assert sorted(value["S"] for value in request["ExpressionAttributeValues"].values()) == [
        "FAILED_RETRYABLE",
        "IN_PROGRESS",
    ]


def test_a_row_that_no_operation_wrote_is_listed_as_such(operation: Operation) -> None:
    operation.claim(order(), age=90)
    operation.change("order-1", attempt=None)
    run = operation.run("pending")
    assert cells(run.stdout.splitlines()[4]) == ["order-1", "unreadable", "-", "-", "1m 30s", "-", "-"]
    assert run.exit_code == 1


def test_each_decision_is_in_the_row(operation: Operation) -> None:
    operation.world.now_ms = 1_893_553_446_000
    operation.park(order(), age=600)
    operation.run("resolve", "order-1", "--retry", "--why", "no charge there", "--by", "ann")
    (listed,) = operation.run("pending", "--json").document["operations"]
    assert (listed["state"], listed["attempt"], listed["tries"]) == ("to-retry", 2, 0)
    assert listed["audit"] == [
        {"at": "2030-01-02T03:04:06+00:00", "by": "ann", "how": "retry", "why": "no charge there"}
    ]


# --- what makes no sense for an operation


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("reconcile",),
            ANNOUNCES_NOTHING,
        ),
        (
            ("reconcile", "--dry-run"),
            ANNOUNCES_NOTHING,
        ),
        (
            ("verify",),
            "it has no business table to compare its ledger with. `pending` lists what is unfinished, `status` says "
            "what needs a hand",
        ),
    ],
)
def test_what_is_for_pipelines_only_says_what_to_use_instead(
    operation: Operation, arguments: tuple[str, ...], text: str
) -> None:
    run = operation.run(*arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == f"Error: orders is an operation: {text}\n"


def test_an_operation_of_another_version_is_refused(operation: Operation) -> None:
    operation.world.deploy(OPERATION_LEASE_MS=None)
    run = operation.run("status")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: orders-worker is not a consumer of this version of the module (OPERATION_LEASE_MS is missing or blank)"
        ": apply the module again, or use the command line of its version\n"
    )


def test_an_operation_is_found_among_terraform_outputs_as_a_pipeline_is(operation: Operation) -> None:
    """Its outputs have the names that tell a consumer."""
    outputs = {
        "dead_letter_queue_url": "https://sqs/payments-dlq",
        "function_name": "payments-worker",
        "ledger_table_name": "payments-processed-events",
        "queue_url": "https://sqs/payments",
    }
    assert consumers_in({"payments": outputs}) == {"payments": "payments-worker"}
