from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer_cli.rows.pending import ScannedRows
from tests.cli.support import HOUR, World, client_error

NewWorld = Callable[..., World]
DENIED = (
    "User: arn:aws:iam::123456789012:user/op is not authorized to perform this action ({}). Ask for this right, or use "
    "another --profile"
)


def test_a_consumer_without_work_is_well(world: World) -> None:
    run = world.run("status")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.verdict == "All is well: nothing is stuck."
    assert "pending events    none\nmapping           enabled\n" in run.stdout
    assert "last hour         no metrics: no messages came, or the metrics do not arrive\n" in run.stdout


def test_everything_is_on_one_screen(world: World) -> None:
    for number in range(3):
        world.send({"id": f"waiting-{number}"})
    world.sqs.receive_message(QueueUrl=world.queue_url, MaxNumberOfMessages=1)
    world.measure("ApproximateAgeOfOldestMessage", 125, namespace="AWS/SQS", QueueName="orders")
    world.commit({"id": "young"}, age=30)
    world.measure("Applied", 1200, age=HOUR - 120)
    world.measure("Applied", 34, age=120)
    world.measure("Duplicates", 5)
    world.measure("Applied", 9999, age=HOUR + 120)
    world.measure("Applied", 9999, Consumer="billing")
    world.measure("Invocations", 130, namespace="AWS/Lambda", FunctionName="orders-worker")
    world.measure("Errors", 2, namespace="AWS/Lambda", FunctionName="orders-worker", age=1200)
    run = world.run("status")
    assert run.exit_code == 0
    assert [line.rstrip() for line in run.stdout.splitlines()] == [
        "Consumer orders",
        "┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━┓",
        "┃ messages in       ┃ waiting ┃ in flight ┃ delayed ┃ oldest ┃",
        "┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━┩",
        "│ queue             │ 2       │ 1         │ 0       │ 2m 5s  │",
        "│ dead-letter queue │ 0       │ 0         │ 0       │ -      │",
        "└───────────────────┴─────────┴───────────┴─────────┴────────┘",
        "pending events    1, the oldest for 30s",
        "mapping           enabled",
        "Last hour",
        "┏━━━━━━━━━━━━┳━━━━━━━┓",
        "┃ outcome    ┃ count ┃",
        "┡━━━━━━━━━━━━╇━━━━━━━┩",
        "│ Applied    │ 1,234 │",
        "│ Duplicates │ 5     │",
        "└────────────┴───────┘",
        "function          130 invocations, 2 errors",
        "All is well: nothing is stuck.",
    ]


@pytest.mark.parametrize(
    ("metric", "namespace", "dimension", "line"),
    [
        (
            "Misconfigured",
            "IdempotentConsumer",
            {"Consumer": "orders"},
            "7 events failed for want of a right or a resource in the last ten minutes: "
            "the log /aws/lambda/orders-worker; runbook, misconfigured",
        ),
        (
            "Errors",
            "AWS/Lambda",
            {"FunctionName": "orders-worker"},
            "7 calls of the function failed in the last ten minutes: "
            "the log /aws/lambda/orders-worker; runbook, errors",
        ),
        (
            "Throttles",
            "AWS/Lambda",
            {"FunctionName": "orders-worker"},
            "7 calls of the function were throttled in the last ten minutes: "
            "the log /aws/lambda/orders-worker; runbook, throttles",
        ),
    ],
)
def test_what_fails_now_needs_a_hand(
    world: World, metric: str, namespace: str, dimension: dict[str, str], line: str
) -> None:
    world.measure(metric, 7, namespace=namespace, age=120, **dimension)
    world.measure(metric, 100, namespace=namespace, age=1200, **dimension)
    run = world.run("status")
    assert (run.exit_code, run.stdout.splitlines()[-2:]) == (1, [line, "1 thing to see to."])


def test_messages_that_wait_for_long_need_a_hand(world: World) -> None:
    world.send({"id": "waiting"})
    world.measure("ApproximateAgeOfOldestMessage", 340_000, namespace="AWS/SQS", QueueName="orders")
    run = world.run("status")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2] == "the oldest message has waited for 3d 22h: runbook, oldest-message"


def test_with_a_short_retention_half_of_it_is_long(world: World) -> None:
    world.deploy(RETENTION_SECONDS="1200")
    world.send({"id": "waiting"})
    world.measure("ApproximateAgeOfOldestMessage", 601, namespace="AWS/SQS", QueueName="orders")
    assert world.run("status").exit_code == 1


def test_dead_letters_need_a_hand(world: World) -> None:
    world.send("poison", dead=True)
    world.measure("ApproximateAgeOfOldestMessage", 7200, namespace="AWS/SQS", QueueName="orders-dlq")
    run = world.run("status")
    assert run.exit_code == 1
    assert "│ dead-letter queue │ 1       │ 0         │ 0       │ 2h     │" in run.stdout
    assert run.stdout.splitlines()[-2:] == [
        "1 dead letter: idempotent-consumer inspect --name orders",
        "1 thing to see to.",
    ]


def test_dead_letters_that_someone_is_looking_at_count_too(world: World) -> None:
    world.send("poison", dead=True)
    world.sqs.receive_message(QueueUrl=world.dead_letter_url)
    assert world.run("status").exit_code == 1


@pytest.mark.parametrize(("age", "code"), [(179, 0), (180, 1)])
def test_a_pending_event_is_stuck_from_the_visibility_timeout_on(world: World, age: int, code: int) -> None:
    world.commit({"id": "a"}, age=age)
    assert world.run("status").exit_code == code


def test_stuck_pending_events_need_a_hand(world: World) -> None:
    for number in range(3):
        world.commit({"id": f"stuck-{number}"}, age=3725 + number)
    world.commit({"id": "young"})
    world.settle({"id": "done"}, age=9999)
    run = world.run("status")
    assert run.exit_code == 1
    assert "pending events    4, the oldest for 1h 2m\n" in run.stdout
    assert (
        "3 events committed but not announced for over 3m: idempotent-consumer reconcile --name orders\n"
    ) in run.stdout


def test_pending_events_of_a_consumer_without_a_topic_need_it_back(world: World) -> None:
    world.commit({"id": "stuck"}, age=400)
    world.deploy(TOPIC_ARN=None)
    assert world.run("status").stdout.splitlines()[-2] == (
        "1 event committed but not announced for over 3m: the topic has to come back (notification.create_topic or "
        "topic_arn), then idempotent-consumer reconcile --name orders"
    )


def test_without_the_index_the_ledger_is_scanned_and_it_is_said(new_world: NewWorld) -> None:
    world = new_world(index=False)
    world.commit({"id": "a"}, age=400)
    run = world.run("status", "--json")
    assert run.exit_code == 1
    assert run.document["pending"] == {"count": 1, "stale": 1, "oldest_age_seconds": 400, "by": "scan"}
    assert run.stderr == (
        "orders-processed-events has no index of pending rows (the reconciler is off, or new), so the whole table is "
        "scanned.\n"
    )
    assert world.requests("Query") == []
    assert [request["ConsistentRead"] for request in world.requests("Scan")] == [True]


def test_a_paused_mapping_needs_a_hand(world: World) -> None:
    world.set_mapping("Disabled")
    run = world.run("status")
    assert run.exit_code == 1
    assert "mapping           disabled\n" in run.stdout
    assert (
        "orders-worker gets no messages, its mapping is disabled: apply with function.enabled = true, or aws lambda "
        "update-event-source-mapping --uuid u-0 --enabled\n"
    ) in run.stdout


def test_a_mapping_that_cannot_read_the_queue_needs_a_hand(world: World) -> None:
    world.mappings[0]["LastProcessingResult"] = "PROBLEM: The function's role may not call ReceiveMessage."
    run = world.run("status")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2] == (
        "the queue is not read: The function's role may not call ReceiveMessage.: see the function's role, the queue "
        "and its key"
    )


def test_of_a_mapping_that_is_off_its_last_problem_is_none(world: World) -> None:
    world.set_mapping("Disabled")
    world.mappings[0]["LastProcessingResult"] = "PROBLEM: Function call failed"
    assert world.run("status", "--json").document["findings"] == [
        {
            "what": "orders-worker gets no messages, its mapping is disabled",
            "todo": "apply with function.enabled = true, or aws lambda update-event-source-mapping --uuid u-0 "
            "--enabled",
        }
    ]


def test_a_mapping_without_a_problem_is_well(world: World) -> None:
    world.mappings[0]["LastProcessingResult"] = "No records processed"
    assert world.run("status").exit_code == 0


def test_a_missing_mapping_needs_a_hand(world: World) -> None:
    world.set_mapping()
    run = world.run("status")
    assert run.exit_code == 1
    assert (
        "nothing gives the queue's messages to orders-worker: its event source mapping is gone: apply the module "
        "again\n"
    ) in run.stdout


def test_the_mapping_of_another_function_is_none(world: World) -> None:
    world.mappings[0]["FunctionArn"] += "-2"
    assert world.run("status").exit_code == 1


def test_a_mapping_on_an_alias_of_the_function_is_one(world: World) -> None:
    world.mappings[0]["FunctionArn"] += ":live"
    assert world.run("status").exit_code == 0
    assert world.requests("ListEventSourceMappings") == [
        {"EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:orders"}
    ]


def test_a_mapping_on_its_way_is_not_off(world: World) -> None:
    world.set_mapping("Updating")
    assert world.run("status").exit_code == 0


def test_metrics_that_do_not_arrive_though_the_function_runs_are_said(world: World) -> None:
    world.measure("Invocations", 12, namespace="AWS/Lambda", FunctionName="orders-worker")
    assert (
        "last hour         no metrics, though orders-worker ran 12 times: is its log level above INFO, or may it not "
        "write to /aws/lambda/orders-worker?\n"
    ) in world.run("status").stdout


def test_of_a_level_the_last_value_counts(world: World) -> None:
    world.measure("StalePending", 40, age=1800)
    world.measure("StalePending", 2, age=120)
    assert world.run("status", "--json").document["last_hour"] == {"StalePending": 2}


def test_an_age_of_a_quarter_of_an_hour_ago_says_nothing_of_now(world: World) -> None:
    world.send("poison", dead=True)
    world.measure("ApproximateAgeOfOldestMessage", 50, namespace="AWS/SQS", QueueName="orders-dlq", age=1200)
    run = world.run("status")
    assert "│ dead-letter queue │ 1       │ 0         │ 0       │ unknown │" in run.stdout


def test_json_is_one_document(new_world: NewWorld) -> None:
    world = new_world()
    world.now_ms = 1_893_553_446_000
    world.send("poison", dead=True)
    world.commit({"id": "a"}, age=60)
    world.measure("Rejected", 1)
    run = world.run("status", "--json")
    assert (run.exit_code, run.stderr) == (1, "")
    assert run.document == {
        "consumer": "orders",
        "at": "2030-01-02T03:04:06+00:00",
        "queue": {"visible": 0, "in_flight": 0, "delayed": 0, "oldest_age_seconds": None},
        "dead_letter_queue": {"visible": 1, "in_flight": 0, "delayed": 0, "oldest_age_seconds": None},
        "pending": {"count": 1, "stale": 0, "oldest_age_seconds": 60, "by": "index"},
        "last_hour": {"Rejected": 1},
        "function_last_hour": {},
        "mappings": [{"uuid": "u-0", "state": "Enabled", "problem": ""}],
        "unread": {},
        "findings": [{"what": "1 dead letter", "todo": "idempotent-consumer inspect --name orders"}],
        "verdict": "1 thing to see to.",
    }


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("Query", "pending rows"),
        ("DescribeTable", "pending rows"),
        ("ListEventSourceMappings", "mapping"),
    ],
)
def test_a_part_that_may_not_be_read_hides_no_other(world: World, operation: str, part: str) -> None:
    world.deny(operation)
    run = world.run("status")
    assert run.exit_code == 2
    assert f"not read: {part}: you may not call {operation}: {DENIED.format(operation)}\n" in run.stdout
    assert run.verdict == f"Nothing is stuck in what could be read. Not read: {part}."
    assert "│ queue             │ 0       │ 0         │ 0       │ -      │" in run.stdout


def test_a_part_that_fails_on_this_machine_hides_no_other(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ScannedRows, "__init__", full)
    run = new_world(index=False).run("status")
    assert (run.exit_code, run.verdict) == (2, "Nothing is stuck in what could be read. Not read: pending rows.")
    assert "not read: pending rows: no room in the temporary folder, it seems (database or disk is full)" in run.stdout
    assert "│ queue             │ 0       │ 0         │ 0       │ -      │" in run.stdout


def test_a_part_that_is_answered_in_another_way_hides_no_other(world: World) -> None:
    world.on("ListEventSourceMappings", answers={"EventSourceMappings": [None]})
    run = world.run("status")
    assert (run.exit_code, run.verdict) == (2, "Nothing is stuck in what could be read. Not read: mapping.")


def test_queues_that_may_not_be_read_are_unknown(world: World) -> None:
    world.deny("GetQueueAttributes")
    run = world.run("status")
    assert run.exit_code == 2
    assert "│ queue             │ -       │ -         │ -       │ unknown │" in run.stdout
    assert run.verdict == "Nothing is stuck in what could be read. Not read: queue, dead-letter queue."
    assert world.requests("ListEventSourceMappings") == [{"FunctionName": "orders-worker"}]


def test_without_metrics_the_verdict_stands(world: World) -> None:
    world.deny("GetMetricData")
    run = world.run("status")
    assert (run.exit_code, run.verdict) == (0, "All is well: nothing is stuck.")
    assert f"not read: last hour: you may not call GetMetricData: {DENIED.format('GetMetricData')}\n" in run.stdout


def test_without_the_intake_queue_nobody_can_say_that_all_is_well(world: World) -> None:
    world.sqs.delete_queue(QueueUrl=world.queue_url)
    run = world.run("status")
    assert (run.exit_code, run.verdict) == (2, "Nothing is stuck in what could be read. Not read: queue.")


def test_what_is_found_stuck_outweighs_what_could_not_be_read(world: World) -> None:
    world.send("poison", dead=True)
    world.deny("Query")
    assert world.run("status").exit_code == 1


def test_a_queue_that_is_gone_is_said(world: World) -> None:
    world.on(
        "GetQueueAttributes",
        raises=client_error("AWS.SimpleQueueService.NonExistentQueue", "GetQueueAttributes", "No such queue."),
    )
    run = world.run("status", "--json")
    assert run.exit_code == 2
    unread: Any = run.document["unread"]
    assert unread["queue"] == (
        "GetQueueAttributes found nothing (No such queue.): check --name, --region and --profile"
    )


def test_fifo_queues_are_read_alike(new_world: NewWorld) -> None:
    world = new_world(fifo=True)
    world.send({"id": "a"}, dead=True)
    assert world.run("status", "--json").document["dead_letter_queue"]["visible"] == 1
