"""`replay` is interrupted, killed or refused: no letter is lost, and the next run goes on."""

from __future__ import annotations

import errno
import gc
import json
import os
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.screen import Screen
from tests.cli.letters_support import Dead, Killed, deploy
from tests.cli.support import World, client_error, denied


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch)


def orders(dead: Dead, count: int) -> list[str]:
    return [dead.letter({"id": f"order-{number}", "total": 5}) for number in range(count)]


def queued_ids(dead: Dead) -> list[str]:
    return [json.loads(body)["id"] for body in dead.queued_bodies]


def names(count: int) -> list[str]:
    return [f"order-{number}" for number in range(count)]


# --- partial failures


def fail_entry(number: int, **failure: Any) -> Callable[[dict[str, Any], Callable[[], Any]], Any]:
    """A batch call of which one entry fails."""

    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        (failed,) = [entry for entry in request["Entries"] if entry["Id"] == str(number)]
        request["Entries"].remove(failed)
        done = effect() if request["Entries"] else {}
        return {**done, "Failed": [{"Id": failed["Id"], "Code": "InternalError", "SenderFault": False, **failure}]}

    return answer


def test_a_send_that_fails_in_part_is_repeated_for_what_failed(dead: Dead) -> None:
    orders(dead, 3)
    dead.world.on("SendMessageBatch", answers=fail_entry(1), calls=[1])
    run = dead.run("replay", "--all")
    assert queued_ids(dead) == ["order-0", "order-2", "order-1"]
    assert (run.exit_code, dead.all) == (0, [])


def test_a_letter_that_cannot_be_sent_stays_and_is_reported(dead: Dead) -> None:
    sent = orders(dead, 3)
    refusal = fail_entry(1, Code="InvalidMessageContents", SenderFault=True)
    dead.world.on("SendMessageBatch", answers=refusal, calls=[1])
    run = dead.run("replay", "--all")
    assert (queued_ids(dead), dead.visible) == (["order-0", "order-2"], [sent[1]])
    assert run.stdout.splitlines()[3:] == [
        "order-1: not sent (InvalidMessageContents)",
        "1 letter left: could not be sent.",
        "2 letters sent: 2 will apply.",
    ]
    assert run.exit_code == 1
    assert len(dead.world.requests("SendMessageBatch")) == 1


def test_a_letter_that_fails_each_time_stays_too(dead: Dead) -> None:
    sent = orders(dead, 1)
    dead.world.on("SendMessageBatch", answers=fail_entry(0))
    run = dead.run("replay", "--all", "--json")
    assert (dead.queued, dead.visible, run.exit_code) == ([], sent, 1)
    assert run.documents[1:] == [
        {"kind": "failure", "message_id": sent[0], "reason": "InternalError"},
        {
            "kind": "summary",
            "dry_run": False,
            "read": 1,
            "sent": 0,
            "by_replay": {},
            "left": {"could not be sent": 1},
            "outcomes": {},
            "remarks": [],
            "done": False,
        },
    ]


def test_what_an_answer_does_not_mention_is_sent_again_rather_than_lost(dead: Dead) -> None:
    orders(dead, 2)
    dead.world.on("SendMessageBatch", answers={"Successful": [{"Id": "0"}]}, calls=[1])
    dead.run("replay", "--all")
    assert queued_ids(dead) == ["order-1"]
    assert [len(request["Entries"]) for request in dead.world.requests("SendMessageBatch")] == [2, 1]


def test_what_was_sent_before_a_repeat_was_refused_is_deleted(dead: Dead) -> None:
    sent = orders(dead, 2)
    dead.world.on("SendMessageBatch", answers=fail_entry(1), calls=[1])
    dead.world.on("SendMessageBatch", raises=client_error("ServiceUnavailable", "SendMessageBatch"), calls=[2])
    run = dead.run("replay", "--all")
    assert (queued_ids(dead), dead.visible, run.exit_code) == (["order-0"], [sent[1]], 1)


def test_a_deletion_that_fails_for_good_is_reported(dead: Dead) -> None:
    sent = orders(dead, 2)
    dead.world.on("DeleteMessageBatch", answers=lambda request, effect: fail_first(request, effect, sent[0]))
    run = dead.run("replay", "--all")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[2:] == [
        "1 letter sent, but not deleted: the next replay sends them once more, which the ledger absorbs.",
        "2 letters sent: 2 will apply.",
    ]
    assert dead.all == [sent[0]]


def fail_first(request: dict[str, Any], effect: Callable[[], Any], _message_id: str) -> Any:
    if len(request["Entries"]) == 1:
        return {"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}
    return fail_entry(0)(request, effect)


# --- killed and run again


def test_killed_between_send_and_delete_a_letter_comes_twice_and_is_not_lost(dead: Dead) -> None:
    orders(dead, 3)
    dead.kill_at("DeleteMessageBatch", 1)
    with pytest.raises(Killed):
        dead.run("replay", "--all")
    assert (queued_ids(dead), dead.visible, len(dead.all)) == (names(3), [], 3)
    dead.heal()
    dead.work()
    run = dead.run("replay", "--all")
    assert run.stdout.splitlines()[0] == "order-0: is a no-op"
    assert run.verdict == "3 letters sent: 3 is a no-op."
    assert (queued_ids(dead), dead.all, run.exit_code) == (names(3), [], 0)
    assert dead.clock.seconds > 55  # it waited for what the killed run had in hand


@pytest.mark.parametrize("operation", ["ReceiveMessage", "BatchGetItem", "SendMessageBatch", "DeleteMessageBatch"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_anywhere_and_run_again_nothing_is_lost(dead: Dead, operation: str, after: bool) -> None:
    orders(dead, 45)
    for call in (1, 2, 1):
        dead.kill_at(operation, call, after=after)
        with pytest.raises(Killed):
            dead.run("replay", "--all")
        dead.heal()
        assert set(queued_ids(dead)) | {json.loads(body)["id"] for body in dead.bodies} == set(names(45))
    assert dead.run("replay", "--all").exit_code == 0
    assert (set(queued_ids(dead)), dead.all) == (set(names(45)), [])
    dead.work()
    assert dead.world.statuses() == dict.fromkeys(names(45), "sent")


# --- interrupted


def test_an_interruption_gives_back_the_rest_and_says_how_far_it_came(dead: Dead) -> None:
    sent = orders(dead, 25)
    dead.world.on("SendMessageBatch", raises=KeyboardInterrupt(), calls=[2])
    run = dead.run("replay", "--all")
    assert run.exit_code == 130
    assert run.stderr == (
        "Stopped. 10 letters sent and deleted; about 15 are left in the dead-letter queue. Run it again to go on.\n"
    )
    assert (queued_ids(dead), dead.visible) == (names(10), sent[10:])
    assert dead.world.requests("PutMetricData")[0]["MetricData"][0]["Value"] == 10


def test_interrupted_between_send_and_delete_the_letters_are_deleted_all_the_same(dead: Dead) -> None:
    sent = orders(dead, 12)
    dead.world.on("DeleteMessageBatch", raises=KeyboardInterrupt(), calls=[1])
    run = dead.run("replay", "--all")
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped. 10 letters sent and deleted; about 2 are left")
    assert (queued_ids(dead), dead.visible) == (names(10), sent[10:])


def test_after_an_interruption_the_next_run_goes_on(dead: Dead) -> None:
    orders(dead, 25)
    dead.world.on("BatchGetItem", raises=KeyboardInterrupt(), calls=[3])
    assert dead.run("replay", "--all").exit_code == 130
    assert dead.run("replay", "--all").exit_code == 0
    assert Counter(queued_ids(dead)) == Counter(names(25))


def test_a_second_interruption_does_not_hide_how_far_it_came(dead: Dead) -> None:
    orders(dead, 25)
    dead.world.on("SendMessageBatch", raises=KeyboardInterrupt(), calls=[2])
    dead.world.on("ChangeMessageVisibilityBatch", raises=KeyboardInterrupt())
    run = dead.run("replay", "--all")
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped. 10 letters sent and deleted; about 15 are left")
    assert queued_ids(dead) == names(10)


def test_a_second_interruption_while_deleting_says_what_is_not_deleted(dead: Dead) -> None:
    orders(dead, 12)
    dead.world.on("DeleteMessageBatch", raises=KeyboardInterrupt())
    run = dead.run("replay", "--all")
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped. 10 letters sent, 10 of them not deleted; about 12 are left")


@pytest.mark.parametrize("operation", ["PutMetricData", "ChangeMessageVisibilityBatch"])
def test_an_interruption_after_the_last_letter_says_that_all_was_sent(dead: Dead, operation: str) -> None:
    orders(dead, 13)
    dead.world.on(operation, raises=KeyboardInterrupt(), calls=[1])
    chosen = [argument for name in names(12) for argument in ("--id", name)]
    run = dead.run("replay", *chosen)
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped. 12 letters sent and deleted; about 1 are left")
    assert (queued_ids(dead), len(dead.visible)) == (names(12), 1)


# --- nobody reads the output


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (errno.EPIPE, "nobody reads the output any more"),
        (errno.ENOSPC, "see whether the disk is full"),
    ],
)
@pytest.mark.parametrize(
    ("lines", "far"),
    [
        (13, "10 letters sent and deleted; about 15 are left"),
        (25, "25 letters sent and deleted; about 0 are left"),
    ],
)
def test_where_the_output_ends_it_is_said_how_far_it_came(
    dead: Dead, monkeypatch: pytest.MonkeyPatch, error: int, why: str, lines: int, far: str
) -> None:
    sent = orders(dead, 25)
    close_output_after(lines, error, monkeypatch)
    run = dead.run("replay", "--all")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[0].startswith(far)
    assert why in run.stderr.splitlines()[1]
    assert (queued_ids(dead), dead.visible) == (names(int(far[:2])), sent[int(far[:2]) :])


def test_where_the_output_ends_with_an_outcome_the_letter_is_deleted_all_the_same(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead.world.settle({"id": "order-0", "total": 5})
    orders(dead, 1)
    close_output_after(1, errno.EPIPE, monkeypatch)
    run = dead.run("replay", "--all", "--wait")
    assert (run.exit_code, queued_ids(dead), dead.all) == (2, names(1), [])


def close_output_after(lines: int, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write(_screen: Screen, line: str) -> None:
        written.append(line)
        if len(written) > lines:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Screen, "_write", write)


# --- refused


@pytest.mark.parametrize("operation", ["SendMessageBatch", "DeleteMessageBatch", "BatchGetItem", "ReceiveMessage"])
def test_a_refused_call_ends_the_run_in_one_line_and_nothing_is_lost(dead: Dead, operation: str) -> None:
    sent = orders(dead, 3)
    dead.world.deny(operation)
    run = dead.run("replay", "--all")
    assert run.exit_code == 2
    lines = run.stderr.splitlines()
    assert lines[-1].startswith("Error: ")
    assert "AccessDenied" in lines[-1] or "you may not call" in lines[-1]
    assert dead.visible == sent
    assert queued_ids(dead) == (names(3) if operation == "DeleteMessageBatch" else [])


def test_an_error_in_the_middle_says_how_far_it_came(dead: Dead) -> None:
    sent = orders(dead, 25)
    dead.world.on("SendMessageBatch", raises=denied("SendMessageBatch"), calls=[2])
    run = dead.run("replay", "--all")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[0] == (
        "10 letters sent and deleted; about 15 are left in the dead-letter queue. Run it again to go on."
    )
    assert (queued_ids(dead), dead.visible) == (names(10), sent[10:])


def test_letters_that_were_sent_and_could_not_be_deleted_are_counted(dead: Dead) -> None:
    orders(dead, 3)
    dead.world.deny("DeleteMessageBatch")
    run = dead.run("replay", "--all")
    assert run.stderr.splitlines()[0].startswith("3 letters sent, 3 of them not deleted; about 3 are left")


# --- bounded memory


def test_2500_letters_of_20_kilobytes_are_never_in_memory_together(dead: Dead) -> None:
    made, most = 0, 0

    def receive(_request: Mapping[str, Any], _effect: Callable[[], Any]) -> Any:
        nonlocal made, most
        dead.world.calls.clear()  # they keep the bodies
        if made % 250 == 0:
            most = max(most, sum(isinstance(each, Letter) for each in gc.get_objects()))
        page = [message(number) for number in range(made, min(made + 10, 2500))]
        made += len(page)
        return {"Messages": page}

    done = {"Successful": [{"Id": str(number), "MessageId": "m"} for number in range(10)]}
    dead.world.on("ReceiveMessage", answers=receive)
    dead.world.on("SendMessageBatch", answers=done)
    dead.world.on("DeleteMessageBatch", answers=done)
    gc.collect()
    tracemalloc.start()
    try:
        run = dead.run("replay", "--all", "--quiet")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert run.verdict == "2,500 letters sent: 2,500 will apply."
    assert 10 <= most <= 30
    assert peak < 20_000_000  # the bodies have 50 MB


def message(number: int) -> dict[str, Any]:
    return {
        "MessageId": f"m-{number}",
        "ReceiptHandle": f"r-{number}",
        "Body": json.dumps({"id": f"order-{number}", "text": f"{number:020000}"}),
        "Attributes": {"SentTimestamp": "1700000000000"},
    }
