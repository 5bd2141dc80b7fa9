"""`replay` on a FIFO queue: each group in its order, whatever fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.letters_support import Dead, Killed, deploy
from tests.cli.support import World, denied


@pytest.fixture
def fifo(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch, fifo=True)


def letter(dead: Dead, name: str, reason: str | None = None) -> str:
    """A letter named by its group and its place in it, such as a-1."""
    return dead.letter({"id": name, "total": 5}, reason, group=name.split("-")[0])


def queued(dead: Dead, group: str) -> list[str]:
    """The letters of a group in the queue, in order."""
    return [json.loads(message.body)["id"] for message in dead.queued if message.group_id == group]


def batches(dead: Dead) -> list[list[str]]:
    return [
        [json.loads(entry["MessageBody"])["id"] for entry in request["Entries"]]
        for request in dead.world.requests("SendMessageBatch")
    ]


def test_a_letter_keeps_its_group_and_is_deduplicated_by_its_own_message_id(fifo: Dead) -> None:
    message_id = letter(fifo, "a-1", "row-exists")
    run = fifo.run("replay", "--all")
    assert run.exit_code == 0
    assert fifo.world.requests("SendMessageBatch")[0]["Entries"] == [
        {
            "Id": "0",
            "MessageBody": '{"id": "a-1", "total": 5}',
            "MessageGroupId": "a",
            "MessageDeduplicationId": message_id,
        }
    ]
    assert (queued(fifo, "a"), fifo.all) == (["a-1"], [])


def test_letters_of_a_group_go_one_after_the_other(fifo: Dead) -> None:
    for name in ("a-1", "a-2", "b-1", "a-3", "c-1", "b-2"):
        letter(fifo, name)
    assert fifo.run("replay", "--all").exit_code == 0
    assert batches(fifo) == [["a-1", "b-1", "c-1"], ["a-2", "b-2"], ["a-3"]]


def test_a_long_group_is_replayed_whole_and_in_order(fifo: Dead) -> None:
    names = [f"a-{number}" for number in range(33)]
    for name in names:
        letter(fifo, name)
    run = fifo.run("replay", "--all")
    assert (queued(fifo, "a"), fifo.all) == (names, [])
    assert run.verdict == "33 letters sent: 33 will apply."
    assert run.exit_code == 0


def test_behind_a_letter_that_cannot_be_sent_nothing_of_its_group_goes(fifo: Dead) -> None:
    for name in ("a-1", "a-2", "b-1", "a-3", "b-2"):
        letter(fifo, name)

    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        bad = [entry for entry in request["Entries"] if json.loads(entry["MessageBody"])["id"] == "a-2"]
        request["Entries"] = [entry for entry in request["Entries"] if entry not in bad]
        done = effect() if request["Entries"] else {}
        failed = [{"Id": entry["Id"], "Code": "InvalidMessageContents", "SenderFault": True} for entry in bad]
        return {**done, "Failed": failed}

    fifo.world.on("SendMessageBatch", answers=refuse)
    run = fifo.run("replay", "--all")
    assert (queued(fifo, "a"), queued(fifo, "b")) == (["a-1"], ["b-1", "b-2"])
    assert [json.loads(body)["id"] for body in fifo.bodies] == ["a-2", "a-3"]
    assert run.stdout.splitlines()[5:] == [
        "a-2: not sent (InvalidMessageContents)",
        "a-3: not sent (an earlier letter of its group could not be sent)",
        "2 letters left: could not be sent.",
        "3 letters sent: 3 will apply.",
    ]
    assert run.exit_code == 1


def test_a_group_that_was_stopped_stays_so_for_the_pages_to_come(fifo: Dead) -> None:
    for number in range(15):
        letter(fifo, f"a-{number:02}")
        letter(fifo, f"b-{number:02}")

    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        bad = [entry for entry in request["Entries"] if entry["MessageGroupId"] == "b"]
        request["Entries"] = [entry for entry in request["Entries"] if entry not in bad]
        done = effect() if request["Entries"] else {}
        return {**done, "Failed": [{"Id": each["Id"], "Code": "InternalError", "SenderFault": False} for each in bad]}

    fifo.world.on("SendMessageBatch", answers=refuse, calls=range(1, 6))  # the attempts at b-00
    fifo.run("replay", "--all")
    assert queued(fifo, "b") == []
    assert queued(fifo, "a") == [f"a-{number:02}" for number in range(15)]


def test_an_attempt_that_failed_in_passing_is_repeated_before_the_next_of_its_group(fifo: Dead) -> None:
    for name in ("a-1", "b-1", "a-2"):
        letter(fifo, name)

    def fail_a(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        request["Entries"] = [entry for entry in request["Entries"] if entry["MessageGroupId"] != "a"]
        return {**effect(), "Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}

    fifo.world.on("SendMessageBatch", answers=fail_a, calls=[1])
    assert fifo.run("replay", "--all").exit_code == 0
    assert batches(fifo)[1:] == [["a-1"], ["a-2"]]
    assert queued(fifo, "a") == ["a-1", "a-2"]


def test_a_refused_call_leaves_the_rest_of_each_group_in_order(fifo: Dead) -> None:
    for number in range(1, 5):
        letter(fifo, f"a-{number}")
    fifo.world.on("SendMessageBatch", raises=denied("SendMessageBatch"), calls=[3])
    assert fifo.run("replay", "--all").exit_code == 2
    assert queued(fifo, "a") == ["a-1", "a-2"]
    fifo.heal()
    assert fifo.run("replay", "--all").exit_code == 0
    assert (queued(fifo, "a"), fifo.all) == (["a-1", "a-2", "a-3", "a-4"], [])


@pytest.mark.parametrize("operation", ["SendMessageBatch", "DeleteMessageBatch"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_and_run_again_each_group_is_in_order_and_whole(fifo: Dead, operation: str, after: bool) -> None:
    names = [f"{group}-{number}" for number in range(6) for group in "ab"]
    for name in names:
        letter(fifo, name)
    for call in (2, 3):
        fifo.kill_at(operation, call, after=after)
        with pytest.raises(Killed):
            fifo.run("replay", "--all")
        fifo.heal()
    assert fifo.run("replay", "--all").exit_code == 0
    assert fifo.all == []
    for group in "ab":
        arrived = list(dict.fromkeys(queued(fifo, group)))
        assert arrived == [name for name in names if name[0] == group]


def test_letters_that_stay_can_hide_others_of_their_group(fifo: Dead) -> None:
    for number in range(12):
        letter(fifo, f"a-{number:02}", "row-exists")
    letter(fifo, "a-99")
    letter(fifo, "b-1")
    run = fifo.run("replay", "--reason", "none")
    assert (queued(fifo, "a"), queued(fifo, "b")) == ([], ["b-1"])
    assert (
        "11 of about 14 letters were read: of a message group SQS gives out ten at most, until those are gone."
        in run.stdout.splitlines()
    )
    assert run.exit_code == 1


@pytest.mark.parametrize("command", ["replay", "drop", "inspect"])
def test_an_id_behind_ten_others_of_its_group_is_not_said_to_be_nowhere(
    fifo: Dead, tmp_path: Path, command: str
) -> None:
    for number in range(14):
        letter(fifo, f"a-{number:02}")
    output = ["--output", str(tmp_path / "gone.jsonl")] if command == "drop" else []
    run = fifo.run(command, "--id", "a-12", *output)
    assert "No letter that was read has this id: a-12." in run.stdout.splitlines()
    assert len(fifo.visible) == 14


def test_a_letter_that_may_have_come_back_behind_ten_others_is_said_to_be_so(fifo: Dead) -> None:
    for number in range(14):
        letter(fifo, f"a-{number:02}")
    run = fifo.run("replay", "--id", "a-03", "--wait", "--timeout", "5s", "--json")
    assert run.documents[-1]["remarks"][-1] == (
        "Of a message group SQS shows ten letters at a time: one that was refused again may stand behind ten others."
    )


def test_a_letter_may_be_chosen_out_of_the_middle_of_its_group(fifo: Dead) -> None:
    for name in ("a-1", "a-2", "a-3"):
        letter(fifo, name)
    run = fifo.run("replay", "--id", "a-2")
    assert (queued(fifo, "a"), run.exit_code) == (["a-2"], 0)
    assert len(fifo.visible) == 2


def test_it_waits_for_a_group_that_a_killed_run_had_in_hand(fifo: Dead) -> None:
    for name in ("a-1", "a-2", "b-1"):
        letter(fifo, name)
    fifo.hold(1)
    assert fifo.run("replay", "--all").exit_code == 0
    assert (queued(fifo, "a"), queued(fifo, "b")) == (["a-1", "a-2"], ["b-1"])


def test_wait_finds_letters_that_came_back_behind_others_of_their_group(fifo: Dead) -> None:
    letter(fifo, "a-1", "row-exists")
    letter(fifo, "a-2")
    letter(fifo, "b-1")
    fifo.world.on("PutMetricData", answers={})
    fifo.world.on("ChangeMessageVisibilityBatch", runs=lambda: fifo.work(refused=["a-2"]), calls=[1])
    run = fifo.run("replay", "--reason", "none", "--wait")
    assert run.verdict == "2 letters sent: 1 refused again, 1 applied."
    assert run.exit_code == 1
    assert [json.loads(body)["id"] for body in fifo.bodies] == ["a-1", "a-2"]
    assert len(fifo.visible) == 2
