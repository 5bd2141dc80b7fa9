"""`replay --wait`: what became of each letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer_cli import clock
from tests.cli.letters_support import Dead, deploy
from tests.cli.support import LEDGER, World, client_error


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch)


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def work_after_sending(dead: Dead, *refused: str, reason: str = "row-exists") -> None:
    """The worker comes when all is sent: at the first question to the ledger of what became of it."""

    def at_question(request: Any, effect: Callable[[], Any]) -> Any:
        if dead.queued:
            dead.world._play(lambda: dead.work(refused=refused, reason=reason))
        return effect()

    dead.world.on("BatchGetItem", answers=at_question)


def outcomes(run: Any) -> dict[str, str]:
    return {line["event_ids"][0]: line["outcome"] for line in run.documents if line["kind"] == "outcome"}


def test_each_letter_is_followed_to_its_end(dead: Dead) -> None:
    dead.world.settle(order("sent"))
    dead.world.commit(order("pending"))
    for name in ("new", "sent", "pending", "bad"):
        dead.letter(order(name))
    work_after_sending(dead, "bad")
    run = dead.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"sent": "no-op", "new": "applied", "pending": "published", "bad": "refused"}
    assert run.documents[-1]["outcomes"] == {"refused": 1, "applied": 1, "published": 1, "no-op": 1}
    assert run.exit_code == 1


def test_what_was_refused_again_is_listed_with_its_reason(dead: Dead) -> None:
    dead.letter(order("good"))
    dead.letter(order("bad"))
    work_after_sending(dead, "bad", reason="id-blank")
    run = dead.run("replay", "--all", "--wait", "--quiet")
    lines = run.stdout.splitlines()
    assert [cell.strip() for cell in lines[4].strip("│").split("│")] == [
        "bad",
        "refused again",
        "id-blank",
        "no",
    ]
    assert run.verdict == "2 letters sent: 1 refused again, 1 applied."
    assert run.exit_code == 1


def test_each_outcome_is_a_line(dead: Dead) -> None:
    dead.world.commit(order("pending"))
    for name in ("new", "pending", "bad"):
        dead.letter(order(name))
    work_after_sending(dead, "bad")
    lines = dead.run("replay", "--all", "--wait").stdout.splitlines()
    assert sorted(lines[3:6]) == ["bad refused again: row-exists", "new applied", "pending published"]


def test_when_all_is_applied_all_is_well(dead: Dead) -> None:
    for number in range(12):
        dead.letter(order(f"order-{number}"))
    work_after_sending(dead)
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "12 letters sent: 12 applied."
    assert (run.exit_code, dead.all) == (0, [])


def test_a_letter_that_is_under_way_for_too_long_is_said_to_be_so(dead: Dead) -> None:
    dead.letter(order())
    run = dead.run("replay", "--all", "--wait", "--timeout", "30s", "--json")
    assert outcomes(run) == {"order-1": "under-way"}
    assert (run.exit_code, dead.visible) == (1, [])
    assert 30 <= dead.clock.seconds <= 40


def test_a_pending_event_is_not_settled_yet(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("PutMetricData", answers={})

    def commit(request: Any, effect: Callable[[], Any]) -> Any:
        if dead.queued and "order-1" not in dead.world.statuses():
            dead.world.commit(order())
        return effect()

    dead.world.on("BatchGetItem", answers=commit)
    assert outcomes(dead.run("replay", "--all", "--wait", "--timeout", "5s", "--json")) == {"order-1": "under-way"}


def test_nothing_has_to_be_waited_for_where_all_is_a_no_op(dead: Dead) -> None:
    dead.world.settle(order())
    dead.letter(order())
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "1 letter sent: 1 was a no-op."
    assert run.exit_code == 0
    assert sum(dead.clock.slept) <= 1


def test_a_copy_is_a_no_op_once_the_first_is_applied(dead: Dead) -> None:
    dead.letter(order())
    dead.letter(order())
    work_after_sending(dead)
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "2 letters sent: 1 applied, 1 was a no-op."
    assert run.exit_code == 0


def test_each_copy_that_comes_back_is_counted(dead: Dead) -> None:
    dead.letter(order())
    dead.letter(order())
    work_after_sending(dead, "order-1")
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "2 letters sent: 2 refused again."
    assert run.exit_code == 1


def test_a_conflict_is_not_taken_for_settled_because_the_ledger_says_sent(dead: Dead) -> None:
    dead.world.settle(order(total=6))
    dead.letter(order(), "id-reused")
    dead.world.on("DeleteMessageBatch", runs=lambda: dead.work(refused=["order-1"], reason="id-reused"))
    run = dead.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"order-1": "refused"}


def test_an_event_that_another_content_overtook_is_not_taken_for_applied(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("SendMessageBatch", runs=lambda: dead.world.settle(order(total=6)))
    run = dead.run("replay", "--all", "--wait", "--timeout", "5s", "--json")
    assert outcomes(run) == {"order-1": "under-way"}


def test_a_letter_without_an_event_is_followed_by_its_body(dead: Dead) -> None:
    dead.letter("{", "bad-json")

    def refuse() -> None:
        dead.clock.seconds += 1
        for message in dead.world.queued():
            dead.letter(message["Body"], "bad-json", "again")

    dead.world.on("PutMetricData", answers={})
    dead.world.on("DeleteMessageBatch", runs=refuse)
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "1 letter sent: 1 refused again."


def test_a_letter_that_sqs_moved_again_is_refused_too(dead: Dead) -> None:
    dead.letter(order())

    def move(request: Any, effect: Callable[[], Any]) -> Any:
        if dead.queued:
            dead.clock.seconds += 1
            for message in dead.world._play(dead.world.queued):
                dead.world._play(partial(dead.letter, message["Body"]))
        return effect()

    dead.world.on("BatchGetItem", answers=move)
    run = dead.run("replay", "--all", "--wait", "--json")
    (line,) = [line for line in run.documents if line["kind"] == "outcome"]
    assert (line["outcome"], line["reason"]) == ("refused", "moved by SQS")
    assert line["detail"] == "it failed again and again: `inspect` tells why"


def test_dead_letters_of_others_are_not_taken_for_those_sent(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("SendMessageBatch", runs=lambda: dead.letter(order("stranger"), "row-exists"))
    work_after_sending(dead)
    run = dead.run("replay", "--all", "--wait")
    assert run.verdict == "1 letter sent: 1 applied."
    assert (run.exit_code, len(dead.visible)) == (0, 1)


def test_letters_that_were_left_are_visible_while_it_waits(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [dead.letter(order(f"left-{number}"), "row-exists") for number in range(12)]
    dead.letter(order())
    seen: list[list[str]] = []

    def sleep(seconds: float) -> None:
        seen.append(dead.visible)
        dead.clock.sleep(seconds)

    monkeypatch.setattr(clock, "sleep", sleep)
    dead.run("replay", "--reason", "none", "--wait", "--timeout", "5m")
    assert seen[1:] == [left] * (len(seen) - 1)
    assert (dead.visible, len(seen) > 10) == (left, True)


def test_letters_of_the_queue_are_visible_too_while_those_of_a_file_are_waited_for(
    dead: Dead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gone.jsonl"
    dead.letter(order())
    dead.run("drop", "--all", "--output", str(file))
    other = dead.letter(order("other"))
    seen: list[list[str]] = []

    def sleep(seconds: float) -> None:
        seen.append(dead.visible)
        dead.clock.sleep(seconds)

    monkeypatch.setattr(clock, "sleep", sleep)
    dead.run("replay", "--from-drop", str(file), "--wait", "--timeout", "30s")
    assert seen == [[other]] * len(seen)


# --- what is said of what is under way


@pytest.mark.parametrize(("states", "word"), [(["Disabled"], "disabled"), ([], "gone")])
def test_what_is_under_way_behind_a_mapping_that_is_off_is_said_to_be_so(
    dead: Dead, states: list[str], word: str
) -> None:
    dead.world.set_mapping(*states)
    dead.letter(order())
    run = dead.run("replay", "--all", "--wait", "--timeout", "5s", "--json")
    remark = f"Nothing takes messages off the queue: its event source mapping is {word}."
    assert (run.documents[-1]["remarks"], run.exit_code) == ([remark], 1)


def test_a_mapping_that_works_or_cannot_be_read_is_not_spoken_of(dead: Dead) -> None:
    for number in range(2):
        dead.letter(order(f"order-{number}"))
        run = dead.run("replay", "--all", "--wait", "--timeout", "5s", "--json")
        assert (run.documents[-1]["remarks"], run.exit_code) == ([], 1)
        dead.world.deny("ListEventSourceMappings")


def test_several_events_of_a_message_are_followed_together(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}
    dead = deploy(new_world, monkeypatch, settings=settings)
    records = [
        {"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "1"}}, "eventTime": "x"} for key in "xyz"
    ]
    dead.world.commit(records[1])
    dead.letter({"Records": records})
    statuses: list[list[str]] = []

    def one_by_one(request: Any, effect: Callable[[], Any]) -> Any:
        if dead.queued:
            statuses.append(sorted(dead.world.statuses().values()))
            if len(statuses) == 1:
                dead.world.settle(records[0])
            elif len(statuses) == 2:
                dead.world.settle(records[2])
            else:
                dead.world.mark("b/y//1")
        return effect()

    dead.world.on("BatchGetItem", answers=one_by_one)
    run = dead.run("replay", "--all", "--wait", "--json")
    (line,) = [line for line in run.documents if line["kind"] == "outcome"]
    assert (line["outcome"], line["event_ids"]) == ("applied", ["b/x//1", "b/y//1", "b/z//1"])
    assert len(statuses) == 3
    assert run.exit_code == 0


def test_what_own_code_did_is_told_by_the_ledger(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = deploy(new_world, monkeypatch, handler="my_orders.handler")
    dead.letter(order("good"))
    dead.letter(order("bad"))
    work_after_sending(dead, "bad")
    assert outcomes(dead.run("replay", "--all", "--wait", "--json")) == {"good": "applied", "bad": "refused"}


def test_an_interruption_while_waiting_says_what_is_not_known(dead: Dead) -> None:
    dead.letter(order("order-1"))
    dead.letter(order("order-2"))
    dead.world.on("BatchGetItem", raises=KeyboardInterrupt(), calls=[3])
    run = dead.run("replay", "--all", "--wait")
    assert run.exit_code == 130
    assert run.stderr == (
        "Stopped. 2 letters sent and deleted; about 0 are left in the dead-letter queue. Run it again to go on. Of 2 "
        "letters it is not known what became.\n"
    )


def test_an_error_while_waiting_says_that_all_was_sent(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("BatchGetItem", raises=client_error("AccessDeniedException", "BatchGetItem"), calls=[3])
    run = dead.run("replay", "--all", "--wait")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[0].startswith("1 letter sent and deleted")


def test_the_ledger_is_asked_without_the_stored_notifications(dead: Dead) -> None:
    dead.letter(order())
    work_after_sending(dead)
    dead.run("replay", "--all", "--wait")
    request = dead.world.requests("BatchGetItem")[-1]["RequestItems"][LEDGER]
    assert sorted(request["ExpressionAttributeNames"].values()) == ["event_id", "fingerprint", "status"]
    assert request["ConsistentRead"] is True
    assert json.dumps(request["Keys"]) == '[{"event_id": {"S": "order-1"}}]'
