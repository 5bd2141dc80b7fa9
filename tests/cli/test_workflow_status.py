"""`status` for a workflow, how it is found, and the commands that make no sense for one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from idempotent_consumer_cli.consumer import executions
from idempotent_consumer_cli.consumer.discovery import consumers_in
from tests.cli.support import DAY, FUNCTION, HOUR, World, client_error
from tests.cli.workflow_support import Workflow, deploy_workflow, order


@pytest.fixture
def workflow(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Workflow:
    return deploy_workflow(new_world, monkeypatch)


# --- status


def test_a_workflow_without_work_is_well(workflow: Workflow) -> None:
    run = workflow.run("status")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("Workflow orders\n")
    assert "executions        0 running\nmapping           enabled\n" in run.stdout
    assert run.verdict == "All is well: nothing is stuck."
    assert "pending" not in run.stdout


def test_executions_are_counted_by_how_they_are(workflow: Workflow) -> None:
    workflow.execution("a", age=3 * HOUR)
    workflow.execution("b", age=60)
    workflow.execution("c", "FAILED", age=HOUR, ended=60)
    workflow.execution("d", "ABORTED", age=3 * DAY, ended=DAY - 60)
    workflow.execution("e", "FAILED", age=3 * DAY, ended=DAY + 60)
    workflow.execution("f", "SUCCEEDED")
    run = workflow.run("status")
    assert "executions        2 running, the oldest for 3h; in the last day 1 failed, 1 aborted\n" in run.stdout
    assert workflow.run("status", "--json").document["executions"] == {
        "running": 2,
        "oldest_running_age_seconds": 3 * HOUR,
        "last_day": {"failed": 1, "timed out": 0, "aborted": 1},
        "is_cut": False,
    }


def test_executions_that_were_stopped_in_the_last_day_need_a_look(workflow: Workflow) -> None:
    """EventBridge may fail to tell of one, and then its key is kept and no letter says so."""
    workflow.execution("a", "ABORTED", ended=60)
    workflow.execution("b", "ABORTED", ended=HOUR, age=2 * HOUR)
    workflow.execution("c", "TIMED_OUT", ended=60)
    workflow.execution("d", "ABORTED", age=3 * DAY, ended=DAY + 60)
    run = workflow.run("status")
    assert (run.exit_code, run.verdict) == (1, "1 thing to see to.")
    assert (
        "3 executions stopped in the last day (2 aborted, 1 timed out): see whether each has its dead letter, or is "
        "settled; runbook, executions-aborted\n"
    ) in run.stdout


def test_of_executions_that_failed_the_letters_tell(workflow: Workflow) -> None:
    workflow.execution("a", "FAILED", ended=60)
    run = workflow.run("status")
    assert (run.exit_code, run.verdict) == (0, "All is well: nothing is stuck.")
    assert (
        "executions        0 running; in the last day 1 failed\n"
        "                  those that failed have sent their letters to the dead-letter queue; what became of letters "
        "that are gone is not known here\n"
    ) in run.stdout


@pytest.mark.parametrize(
    ("metric", "what"),
    [
        (
            "Errors",
            "2 calls of the guard failed in the last ten minutes: the log /aws/lambda/orders-guard; runbook, "
            "guard-errors",
        ),
        (
            "Throttles",
            "2 calls of the guard were throttled in the last ten minutes: the log /aws/lambda/orders-guard; runbook, "
            "throttles",
        ),
    ],
)
def test_a_guard_that_fails_needs_a_hand(workflow: Workflow, metric: str, what: str) -> None:
    workflow.world.measure(metric, 2, namespace="AWS/Lambda", FunctionName="orders-guard")
    run = workflow.run("status")
    assert (run.exit_code, run.verdict) == (1, "1 thing to see to.")
    assert f"{what}\n" in run.stdout


def test_a_guard_that_failed_an_hour_ago_is_well(workflow: Workflow) -> None:
    workflow.world.measure("Errors", 2, age=HOUR / 2, namespace="AWS/Lambda", FunctionName="orders-guard")
    assert workflow.run("status").exit_code == 0


def test_of_very_many_executions_a_part_is_counted(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "MOST_PAGES", 2)
    for number in range(2001):
        workflow.execution(f"r-{number}", age=number)
    run = workflow.run("status")
    assert "executions        2,000 running (there are more)\n" in run.stdout
    assert workflow.run("status", "--json").document["executions"]["oldest_running_age_seconds"] is None


def test_executions_that_began_long_before_the_last_day_are_not_all_listed(workflow: Workflow) -> None:
    for number in range(2001):
        workflow.execution(f"f-{number}", "FAILED", age=2 * DAY + number, ended=2 * DAY)
    workflow.run("status")
    asked = [each["statusFilter"] for each in workflow.world.requests("ListExecutions")]
    assert asked == ["RUNNING", "FAILED", "TIMED_OUT", "ABORTED"]


def test_no_table_is_read(workflow: Workflow) -> None:
    workflow.run("status")
    called = {call.operation for call in workflow.world.calls}
    assert called.isdisjoint({"Scan", "Query", "DescribeTable", "GetItem", "BatchGetItem"})


def test_dead_letters_need_a_hand(workflow: Workflow) -> None:
    workflow.letter(order(), "outcome-unknown", key="order-1")
    run = workflow.run("status")
    assert run.exit_code == 1
    assert "1 dead letter: idempotent-consumer inspect --name orders\n" in run.stdout


def test_the_last_hour_has_the_metrics_of_starter_and_guard(workflow: Workflow) -> None:
    for name, value in {"Started": 5, "Claimed": 3, "Skipped": 2}.items():
        workflow.world.measure(name, value)
    assert workflow.run("status", "--json").document["last_hour"] == {"Started": 5, "Claimed": 3, "Skipped": 2}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("AccessDeniedException", "you may not call ListExecutions: "),
        ("StateMachineDoesNotExist", "ListExecutions found nothing (the text of the service): check --name"),
    ],
)
def test_where_executions_cannot_be_read_nobody_says_that_all_is_well(workflow: Workflow, code: str, why: str) -> None:
    workflow.world.on("ListExecutions", raises=client_error(code, "ListExecutions"))
    run = workflow.run("status")
    assert (run.exit_code, run.verdict) == (2, "Nothing is stuck in what could be read. Not read: executions.")
    assert "executions        unknown\n" in run.stdout
    assert f"not read: executions: {why}" in run.stdout
    assert workflow.run("status", "--json").document["executions"] is None


# --- how it is found


WHOLE = {
    "dead_letter_queue_url": "https://sqs/orders-dlq",
    "function_name": "orders-worker",
    "guard_function_name": None,
    "idempotency_table_name": "orders-idempotency",
    "queue_url": "https://sqs/orders",
    "state_machine_arn": "arn:aws:states:us-east-1:123456789012:stateMachine:orders",
}


def test_a_workflow_is_found_among_terraforms_outputs() -> None:
    assert consumers_in({"ingestion": WHOLE, "queue": "q"}) == {"ingestion": "orders-worker"}
    assert consumers_in(WHOLE) == {"": "orders-worker"}


@pytest.mark.parametrize("name", ["idempotency_table_name", "state_machine_arn", "function_name", "queue_url"])
def test_outputs_that_lack_one_of_a_workflows_are_none(name: str) -> None:
    assert consumers_in({"ingestion": {key: value for key, value in WHOLE.items() if key != name}}) == {}


@pytest.mark.parametrize("name", ["WORKFLOW_NAMESPACE", "WORKFLOW_RETENTION_SECONDS"])
def test_a_starter_of_another_version_is_told_so(workflow: Workflow, name: str) -> None:
    changes: dict[str, str | None] = {name: None}
    workflow.world.deploy(FUNCTION, **changes)
    run = workflow.run("status")
    assert run.exit_code == 2
    assert f"({name} is missing or blank): apply the module again" in run.stderr


# --- what makes no sense for one


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (
            ("pending",),
            "nothing waits to be announced. `status` shows its executions, `inspect` the letters and their claims, "
            "`release` gives a claim back",
        ),
        (
            ("reconcile",),
            "it announces nothing. `status` shows its executions, `inspect` what is in the dead-letter queue and what "
            "to do about it",
        ),
        (
            ("verify",),
            "it has no business table to compare its claims with. `status` says what needs a hand, `inspect` shows the "
            "letters beside their claims",
        ),
        (
            ("resolve", "order-1", "--retry"),
            "see whether the effect ran, then `release` gives the claim back and a `replay` runs it once more, or "
            "`drop` deletes the letter",
        ),
    ],
)
def test_commands_for_others_say_what_to_use_instead(
    workflow: Workflow, command: tuple[str, ...], instead: str
) -> None:
    run = workflow.run(*command)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == f"Error: orders is a workflow: {instead}\n"
