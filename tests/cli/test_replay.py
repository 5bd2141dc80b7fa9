"""`replay`: what is sent, what is said before, what is left, and what is checked first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.letters import queue as letters
from idempotent_consumer_cli.letters.sending import Pace
from tests.cli.letters_support import Dead, deploy, text
from tests.cli.support import DAY, NAME, World, client_error


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch)


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def orders(dead: Dead, count: int, **options: Any) -> list[str]:
    return [dead.letter(order(f"order-{number}"), **options) for number in range(count)]


def queued_ids(dead: Dead) -> list[str]:
    return [json.loads(body)["id"] for body in dead.queued_bodies]


# --- what is sent


def test_all_letters_go_back_to_the_queue_and_leave_the_dead_letter_queue(dead: Dead) -> None:
    orders(dead, 23)
    run = dead.run("replay", "--all")
    assert queued_ids(dead) == [f"order-{number}" for number in range(23)]
    assert dead.all == []
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.verdict == "23 letters sent: 23 will apply."


def test_a_letter_keeps_body_and_attributes_without_what_was_added(dead: Dead) -> None:
    body = '{"id": "order-1",  "total": 5.00, "note": "ä\\u00e4\\u2028"}'
    attributes = {
        "source": text("checkout"),
        "priority": {"DataType": "Number.int", "StringValue": "7"},
        "digest": {"DataType": "Binary.sha256", "BinaryValue": b"\x00\xff"},
    }
    dead.letter(body, "row-exists", "a row of this key is stored", attributes=attributes)
    assert dead.run("replay", "--all").exit_code == 0
    (message,) = dead.queued
    assert message.body == body
    assert message.message_attributes == attributes
    (request,) = dead.world.requests("SendMessageBatch")
    assert request == {
        "QueueUrl": dead.world.queue_url,
        "Entries": [{"Id": "0", "MessageBody": body, "MessageAttributes": attributes}],
    }


def test_the_trace_of_the_first_attempt_is_not_taken_along(dead: Dead) -> None:
    """Lambda counts a message's hops by it, and would stop the message as a loop."""

    def traced(request: Mapping[str, Any], effect: Callable[[], Any]) -> Any:
        answer = effect()
        for message in answer.get("Messages", ()):
            message["Attributes"]["AWSTraceHeader"] = "Root=1-70dbd1a5-3f1c0a9be2d84c6f5a7b9e10;Lineage=5:a1b2c3d4:16"
        return answer

    dead.letter(order())
    dead.world.on("ReceiveMessage", answers=traced)
    dead.run("replay", "--all")
    (request,) = dead.world.requests("SendMessageBatch")
    assert "MessageSystemAttributes" not in request["Entries"][0]


def test_a_group_on_a_standard_queue_is_kept(dead: Dead) -> None:
    def grouped(request: Mapping[str, Any], effect: Callable[[], Any]) -> Any:
        answer = effect()
        for message in answer.get("Messages", ()):
            message["Attributes"]["MessageGroupId"] = "tenant-7"
        return answer

    dead.letter(order())
    dead.world.on("ReceiveMessage", answers=grouped)
    dead.world.on("SendMessageBatch", answers={"Successful": [{"Id": "0", "MessageId": "new"}]})
    assert dead.run("replay", "--all").exit_code == 0
    (entry,) = dead.world.requests("SendMessageBatch")[0]["Entries"]
    assert entry["MessageGroupId"] == "tenant-7"
    assert "MessageDeduplicationId" not in entry


def test_a_letter_is_deleted_only_after_it_was_sent(dead: Dead) -> None:
    orders(dead, 12)
    dead.run("replay", "--all")
    operations = [call.operation for call in dead.world.calls]
    changes = [name for name in operations if name in ("SendMessageBatch", "DeleteMessageBatch")]
    assert changes == ["SendMessageBatch", "DeleteMessageBatch", "SendMessageBatch", "DeleteMessageBatch"]


def test_large_letters_go_in_calls_that_every_queue_takes(dead: Dead) -> None:
    for number in range(5):
        dead.letter(order(f"order-{number}", text="x" * 100_000))
    dead.run("replay", "--all")
    calls = [[json.loads(entry["MessageBody"])["id"] for entry in request["Entries"]] for request in sends(dead)]
    assert calls == [["order-0", "order-1"], ["order-2", "order-3"], ["order-4"]]


def test_the_size_of_an_attribute_is_counted_in_bytes(dead: Dead) -> None:
    for number in range(2):
        dead.letter(order(f"order-{number}"), attributes={"title": text("語" * 50_000)})
    dead.run("replay", "--all")
    assert [len(request["Entries"]) for request in sends(dead)] == [1, 1]


def sends(dead: Dead) -> list[dict[str, Any]]:
    return dead.world.requests("SendMessageBatch")


# --- what is said


def test_before_a_letter_is_sent_it_is_said_what_will_happen_to_it(dead: Dead) -> None:
    dead.world.settle(order("sent"))
    dead.world.commit(order("pending"))
    dead.letter(order("new"))
    dead.letter(order("sent"))
    dead.letter(order("pending"))
    bad = dead.letter("{", "bad-json")
    run = dead.run("replay", "--all")
    assert run.stdout.splitlines() == [
        "new: will apply",
        "sent: is a no-op",
        "pending: will only publish",
        f"message {bad}: will be refused again: bad-json (Expecting property name enclosed in double quotes at "
        "character 1)",
        "1 letter will come back to the dead-letter queue: mend the cause first.",
        "4 letters sent: 1 will be refused again, 1 will apply, 1 will only publish, 1 is a no-op.",
    ]
    assert run.exit_code == 1


def test_the_line_comes_before_the_call(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("SendMessageBatch", raises=KeyboardInterrupt())
    assert dead.run("replay", "--all").stdout == "order-1: will apply\n"


def test_quiet_leaves_the_lines_out(dead: Dead) -> None:
    orders(dead, 3)
    assert dead.run("replay", "--all", "--quiet").stdout == "3 letters sent: 3 will apply.\n"


def test_with_json_each_letter_is_a_line_and_the_sums_are_the_last(dead: Dead) -> None:
    (message_id,) = orders(dead, 1)
    letter, summary = dead.run("replay", "--all", "--json").documents
    assert (letter["kind"], letter["message_id"], letter["event_ids"]) == ("letter", message_id, ["order-0"])
    assert (letter["ledger"], letter["replay"], letter["left"]) == ("never-seen", "apply", None)
    assert summary == {
        "kind": "summary",
        "dry_run": False,
        "read": 1,
        "sent": 1,
        "by_replay": {"apply": 1},
        "left": {},
        "outcomes": {},
        "remarks": [],
        "done": True,
    }


def test_of_two_letters_with_one_event_the_second_is_a_no_op(dead: Dead) -> None:
    dead.letter(order())
    dead.letter(order())
    assert dead.run("replay", "--all").stdout.splitlines() == [
        "order-1: will apply",
        "order-1: is a no-op (an earlier letter holds the same event)",
        "2 letters sent: 1 will apply, 1 is a no-op.",
    ]


def test_an_empty_queue_has_nothing_to_replay(dead: Dead) -> None:
    run = dead.run("replay", "--all")
    assert (run.exit_code, run.stdout) == (0, "Nothing was sent.\n")


# --- what is chosen


def test_without_a_choice_nothing_is_sent(dead: Dead) -> None:
    orders(dead, 1)
    run = dead.run("replay")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: which letters? Choose them by --id, --reason, --older-than, --newer-than or --file, or give --all\n"
    )
    assert dead.queued == []


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (["--id", "order-1"], ["order-1"]),
        (["--reason", "row-exists", "--reason", "fault"], ["order-2", "order-3"]),
        (["--reason", "none"], ["order-0", "order-1"]),
        (["--older-than", "2h"], ["order-0", "order-2"]),
        (["--newer-than", "2h", "--reason", "none"], ["order-1"]),
    ],
)
def test_only_chosen_letters_are_sent_and_the_others_given_back(
    dead: Dead, arguments: list[str], chosen: list[str]
) -> None:
    dead.letter(order("order-0"), age=3 * 3600)
    dead.letter(order("order-1"))
    dead.letter(order("order-2"), "row-exists", age=3 * 3600)
    dead.letter(order("order-3"), "fault")
    before = dead.all
    run = dead.run("replay", *arguments)
    assert (queued_ids(dead), run.exit_code) == (chosen, 0)
    assert len(dead.all) == 4 - len(chosen)
    assert dead.visible == [message_id for message_id in before if message_id in dead.all]


def test_the_lines_of_inspect_choose_letters(dead: Dead, tmp_path: Any) -> None:
    orders(dead, 3)
    dead.letter(order("bad"), "row-exists")
    file = tmp_path / "letters.jsonl"
    file.write_text(dead.run("inspect", "--json", "--reason", "row-exists").stdout)
    run = dead.run("replay", "--file", str(file))
    assert (queued_ids(dead), run.exit_code) == (["bad"], 0)


def test_an_id_without_a_letter_is_named_and_something_is_left_to_do(dead: Dead) -> None:
    orders(dead, 1)
    run = dead.run("replay", "--id", "order-0", "--id", "order-9")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[1:] == ["No letter has this id: order-9.", "1 letter sent: 1 will apply."]


def test_an_id_whose_letter_another_option_leaves_out_is_said_to_be_so(dead: Dead) -> None:
    orders(dead, 1, reason="row-exists")
    run = dead.run("replay", "--id", "order-0", "--reason", "id-reused")
    assert run.exit_code == 1
    assert run.stdout.splitlines() == [
        "Another option leaves out the letter with this id: order-0.",
        "Nothing was sent.",
    ]


def test_of_a_letter_with_several_events_the_others_are_foretold_too(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "EVENT_ENVELOPE": "s3",
        "EVENT_ID": "s3.object.key",
        "EVENT_ITEM": "{id: s3.object.key, n: s3.object.size}",
    }
    dead = deploy(new_world, monkeypatch, settings=settings)
    records = [{"s3": {"bucket": {"name": "b"}, "object": {"key": key, "size": 2}}} for key in "abc"]
    dead.world.settle({"s3": {"bucket": {"name": "b"}, "object": {"key": "a", "size": 1}}})
    dead.world.settle(records[1])
    dead.letter({"Records": records})
    others = "; its other events: 1 will apply, 1 is a no-op"
    lines = [
        dead.run("replay", "--all", "--dry-run", *more).stdout.splitlines()[0] for more in ([], ["--skip-refused"])
    ]
    assert lines[0].startswith("a, b, c: will be refused again: id-reused")
    assert lines[0].endswith(others)
    assert lines[1] == f"a, b, c: is left, it would be refused again{others}"


def test_letters_that_would_be_refused_again_can_be_left(dead: Dead) -> None:
    dead.letter(order("new"))
    bad = dead.letter("{", "bad-json")
    run = dead.run("replay", "--all", "--skip-refused")
    assert run.stdout.splitlines() == [
        "new: will apply",
        f"message {bad}: is left, it would be refused again",
        "1 letter left: would be refused again.",
        "1 letter sent: 1 will apply.",
    ]
    assert (run.exit_code, dead.visible) == (1, [bad])


def test_a_dry_run_says_all_and_changes_nothing(dead: Dead) -> None:
    sent = orders(dead, 12)
    run = dead.run("replay", "--all", "--dry-run", "--wait")
    assert run.stdout.splitlines()[0] == "order-0: will apply"
    assert run.verdict == "12 letters would be sent: 12 will apply. Nothing was changed."
    assert run.exit_code == 0
    assert (dead.queued, dead.visible) == ([], sent)
    assert dead.world.requests("PutMetricData") == []


# --- beyond the window


@pytest.mark.case("O05")
def test_what_could_be_applied_a_second_time_is_left(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"EVENT_WRITE_MODE": "upsert", "TTL_WINDOW_DAYS": "1"}
    dead = deploy(new_world, monkeypatch, settings=settings)
    old = dead.letter(order("old"), age=2 * DAY + 5400)
    dead.letter(order("young"))
    run = dead.run("replay", "--all")
    assert run.stdout.splitlines() == [
        "old, 2d 1h old: is left, it may have been applied before the ledger forgot it: --beyond-window sends it",
        "young: will apply",
        "1 letter left: may have been applied before the ledger forgot it: --beyond-window sends it.",
        "1 letter sent: 1 will apply.",
    ]
    assert (run.exit_code, dead.visible, queued_ids(dead)) == (1, [old], ["young"])
    run = dead.run("replay", "--all", "--beyond-window")
    assert (run.exit_code, queued_ids(dead)) == (0, ["young", "old"])


@pytest.mark.case("O05")
@pytest.mark.parametrize("mode", ["insert", "newer"])
def test_where_the_business_row_tells_an_old_letter_is_sent_and_its_age_said(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    settings = {"EVENT_WRITE_MODE": mode, "EVENT_VERSION": "total", "TTL_WINDOW_DAYS": "1"}
    dead = deploy(new_world, monkeypatch, settings=settings)
    dead.letter(order("old"), age=2 * DAY + 5400)
    run = dead.run("replay", "--all")
    assert run.stdout.splitlines()[0] == "old, 2d 1h old: will apply"
    assert run.exit_code == 0


# --- how fast


def test_messages_can_be_sent_at_a_rate(dead: Dead) -> None:
    orders(dead, 10)
    dead.run("replay", "--all", "--rate", "4")
    assert [len(request["Entries"]) for request in sends(dead)] == [4, 4, 2]
    # The first wait is for SQS's clock.
    assert [round(seconds, 1) for seconds in dead.clock.slept[1:]] == [1.0, 1.0]


def test_a_slow_rate_receives_no_more_than_it_can_send_before_letters_come_back(dead: Dead) -> None:
    orders(dead, 7)
    dead.run("replay", "--all", "--rate", "0.1", "--visibility", "60s")
    assert {request["MaxNumberOfMessages"] for request in dead.world.requests("ReceiveMessage")} == {3}
    assert len(dead.queued) == 7
    assert 55 < sum(dead.clock.slept) < 65


@pytest.mark.parametrize("rate", ["0", "-1", "x"])
def test_a_rate_is_more_than_none(dead: Dead, rate: str) -> None:
    assert dead.run("replay", "--all", "--rate", rate).exit_code == 2


def test_without_a_rate_nothing_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "sleep", lambda seconds: pytest.fail("slept"))
    held = Pace()
    for _ in range(3):
        held.wait_for(10)
    assert (held.batch, held.page(1)) == (10, 10)


# --- what comes back meanwhile


def test_letters_that_are_refused_again_meanwhile_are_not_sent_again(dead: Dead) -> None:
    names = [f"order-{number}" for number in range(15)]
    orders(dead, 15)
    dead.world.on("DeleteMessageBatch", runs=lambda: dead.work(refused=names))
    run = dead.run("replay", "--all")
    assert run.verdict == "15 letters sent: 15 will apply."
    assert sum(len(request["Entries"]) for request in sends(dead)) == 15
    assert len(dead.visible) == 15


def test_the_first_letter_is_sent_once_newcomers_can_be_told_by_sqs_clock(dead: Dead) -> None:
    orders(dead, 1)
    dead.run("replay", "--all")
    (pause,) = dead.clock.slept
    assert 0 < pause <= 1


# --- checks


def test_queues_of_two_kinds_are_refused(dead: Dead) -> None:
    dead.world.deploy(QUEUE_URL=dead.world.queue_url + ".fifo")
    run = dead.run("replay", "--all")
    assert run.exit_code == 2
    assert "are not of one kind, only one is a FIFO queue: apply the module again" in run.stderr


@pytest.mark.case("O10")
@pytest.mark.parametrize("status", ["RUNNING", "CANCELLING"])
def test_beside_sqs_own_redrive_nothing_is_sent(dead: Dead, status: str) -> None:
    orders(dead, 1)
    dead.world.heal()
    dead.world.on("ListMessageMoveTasks", answers={"Results": [{"Status": status}]})
    run = dead.run("replay", "--all")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: SQS's own redrive of this dead-letter queue is running: wait for its end, or cancel it (aws sqs "
        "cancel-message-move-task)\n"
    )
    assert len(dead.visible) == 1
    arn = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
    assert dead.world.requests("ListMessageMoveTasks") == [{"SourceArn": arn, "MaxResults": 1}]


@pytest.mark.case("O10")
def test_a_redrive_that_has_ended_is_no_obstacle(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.heal()
    dead.world.on("ListMessageMoveTasks", answers={"Results": [{"Status": "COMPLETED"}]})
    assert dead.run("replay", "--all").exit_code == 0


@pytest.mark.case("O10")
@pytest.mark.parametrize("code", ["InvalidAction", "UnsupportedOperation"])
def test_an_emulator_that_does_not_know_redrives_is_no_obstacle(dead: Dead, code: str) -> None:
    orders(dead, 1)
    dead.world.heal()
    dead.world.on("ListMessageMoveTasks", raises=client_error(code, "ListMessageMoveTasks"))
    run = dead.run("replay", "--all")
    assert (run.exit_code, run.stderr) == (0, "")


@pytest.mark.case("O10")
def test_without_the_right_to_see_redrives_it_is_said(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.heal()
    dead.world.deny("ListMessageMoveTasks")
    run = dead.run("replay", "--all")
    assert run.exit_code == 0
    assert run.stderr == (
        "You need sqs:ListMessageMoveTasks to see whether SQS's own redrive runs (AccessDeniedException).\n"
    )


# --- the metric


def test_how_many_were_sent_is_a_metric(dead: Dead) -> None:
    orders(dead, 3)
    dead.run("replay", "--all")
    assert dead.world.requests("PutMetricData") == [
        {
            "Namespace": "IdempotentConsumer",
            "MetricData": [
                {
                    "MetricName": "Replayed",
                    "Dimensions": [{"Name": "Consumer", "Value": NAME}],
                    "Unit": "Count",
                    "Value": 3,
                }
            ],
        }
    ]


def test_a_metric_that_cannot_be_put_changes_nothing_else(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.deny("PutMetricData")
    run = dead.run("replay", "--all")
    assert run.exit_code == 0
    assert run.stderr == ("The metric Replayed could not be put (AccessDeniedException); nothing else depends on it.\n")


def test_where_nothing_was_sent_there_is_no_metric(dead: Dead) -> None:
    dead.run("replay", "--all")
    assert dead.world.requests("PutMetricData") == []


# --- what cannot be read


def test_letters_that_another_run_keeps_are_said_to_be_unread(dead: Dead) -> None:
    orders(dead, 3)
    dead.hold(2, seconds=600)
    run = dead.run("replay", "--all")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[1:] == [
        "1 of about 3 letters were read: another run has the others in hand, or had. Try again in a minute.",
        "1 letter sent: 1 will apply.",
    ]


def test_sqs_limit_of_letters_in_flight_is_said(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "MOST_IN_FLIGHT", 10)
    for number in range(12):
        dead.letter(order(f"order-{number}"), "row-exists")
    dead.world.on("ReceiveMessage", answers={}, calls=[2])
    run = dead.run("replay", "--reason", "none")
    assert run.exit_code == 1
    assert "SQS gives out 10 letters at a time: those beyond were not read." in run.stdout
