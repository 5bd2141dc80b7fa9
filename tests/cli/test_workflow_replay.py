"""`replay` for a workflow: what is sent, what is left where it is, and what became of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.letters_support import text
from tests.cli.support import DAY, HOUR, Run, World
from tests.cli.workflow_support import EXECUTION, Workflow, deploy_workflow, order

Deploy = Callable[..., Workflow]
TEN = {f"a{number}": text("v") for number in range(10)}


@pytest.fixture
def deploy(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Deploy:
    def create(key: str = "id", **options: Any) -> Workflow:
        return deploy_workflow(new_world, monkeypatch, key, **options)

    return create


@pytest.fixture
def workflow(deploy: Deploy) -> Workflow:
    return deploy()


def outcomes(run: Run) -> dict[str, tuple[str, str]]:
    return {
        line["event_ids"][0]: (line["outcome"], line["reason"]) for line in run.documents if line["kind"] == "outcome"
    }


# --- what is sent


def test_a_letter_keeps_its_body_its_producers_attributes_and_its_key(workflow: Workflow) -> None:
    body = '{"id": "order-1",  "total": 5.00}'
    workflow.letter(
        body,
        "not-applied",
        key="order-1",
        execution=EXECUTION + "one",
        detail="throttled",
        attributes={"kind": text("k")},
    )
    assert workflow.run("replay", "--all").exit_code == 0
    assert workflow.queued == [(body, {"kind": "k", "dead_letter_key": "order-1"})]
    assert workflow.dead.all == []


def test_a_letter_that_sqs_moved_gets_its_key(workflow: Workflow) -> None:
    """By it the state machine knows a replay, which it never swallows."""
    workflow.letter(order())
    workflow.run("replay", "--all")
    assert workflow.queued == [(json.dumps(order()), {"dead_letter_key": "order-1"})]


def test_a_key_that_no_attribute_can_hold_is_escaped(workflow: Workflow) -> None:
    workflow.letter(order("a\x01b"))
    workflow.run("replay", "--all")
    assert workflow.queued[0][1] == {"dead_letter_key": "a?b"}
    workflow.work({})
    assert workflow.ran == ["a\x01b"]


def test_a_message_without_a_business_key_keeps_the_id_that_it_had(deploy: Deploy) -> None:
    """A replay has a new message id, which would be a new key."""
    workflow = deploy(key="")
    first = workflow.letter({"a": 1})
    workflow.letter({"a": 2}, "not-applied", key="sqs:m-7")
    stale = workflow.letter({"a": 3}, attributes={"dead_letter_key": text("of-other-times")})
    workflow.run("replay", "--all")
    keys = [f"sqs:{first}", "sqs:m-7", f"sqs:{stale}"]
    assert [attributes["dead_letter_key"] for _, attributes in workflow.queued] == keys
    workflow.work({})
    assert workflow.ran == keys


def test_a_letter_that_is_sent_twice_runs_the_effect_once(deploy: Deploy) -> None:
    """The command dies after the sending; the next one sends the letter again."""
    workflow = deploy(key="")
    workflow.letter({"a": 1})
    workflow.world.on("DeleteMessageBatch", answers={"Successful": [], "Failed": []})
    workflow.run("replay", "--all")
    workflow.dead.clock.seconds += 60
    workflow.dead.heal()
    workflow.run("replay", "--all")
    assert len(workflow.queued) == 2
    workflow.work({})
    assert len(workflow.ran) == 1


def test_without_room_for_its_key_a_message_that_has_no_other_is_left(deploy: Deploy) -> None:
    workflow = deploy(key="")
    message_id = workflow.letter({"a": 1}, attributes=TEN)
    text_of_it = (
        "has ten attributes, and needs one for its key: `drop` it, take one out in the file, replay --from-drop"
    )
    line = workflow.run("inspect", "--json").documents[0]
    assert line["to_do"] == text_of_it
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.queued, workflow.dead.all) == (1, [], [message_id])
    assert f"sqs:{message_id}: is left, it {text_of_it}\n" in run.stdout
    assert f"1 letter left: {text_of_it}.\n" in run.stdout


def test_without_room_for_a_key_its_business_key_is_enough(workflow: Workflow) -> None:
    workflow.letter(order(), attributes=TEN)
    assert workflow.run("replay", "--all").exit_code == 0
    assert workflow.queued[0][1].keys() == TEN.keys()


def test_what_eventbridge_says_goes_back_as_the_message_inside(workflow: Workflow) -> None:
    workflow.release(order())
    body = '{"id": "order-1",  "total": 5}'
    binary = {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\x00\x01").decode()}
    workflow.event_letter(body, attributes={"kind": text("k"), "bin": binary, "dead_letter_reason": text("old")})
    assert workflow.run("replay", "--id", "order-1").exit_code == 0
    (message,) = workflow.dead.queued
    assert message.body == body
    assert workflow.queued[0][1].keys() == {"kind", "bin", "dead_letter_key"}
    workflow.work({})
    assert workflow.ran == ["order-1"]
    assert workflow.dead.all == []


def test_of_a_message_without_a_business_key_the_event_tells_which_it_was(deploy: Deploy) -> None:
    workflow = deploy(key="")
    workflow.event_letter({"a": 1}, key="sqs:m-7")
    workflow.run("replay", "--all", "--beyond-window")
    assert workflow.queued == [('{"a": 1}', {"dead_letter_key": "sqs:m-7"})]


@pytest.mark.parametrize("key", ["id", ""])
def test_without_room_for_the_key_the_event_itself_goes_back(deploy: Deploy, key: str) -> None:
    """The starter opens it, and finds the key there."""
    workflow = deploy(key=key)
    workflow.event_letter(order(), attributes=TEN, key=None if key else "sqs:m-7")
    (body,) = workflow.dead.bodies
    assert workflow.run("replay", "--all", "--beyond-window").exit_code == 0
    assert workflow.queued[0][0] == body
    workflow.work({})
    assert workflow.ran == ["order-1" if key else "sqs:m-7"]


@pytest.mark.parametrize(("key", "number"), [("id", 7), ("id", 9), ("id", 10), ("", 7), ("", 9)])
def test_a_message_with_many_attributes_comes_back_whole(deploy: Deploy, key: str, number: int) -> None:
    """Its letter has no room for them beside the reason: they are in its body."""
    workflow = deploy(key=key)
    attributes = {f"a{index}": text("v") for index in range(number)}
    workflow.letter(order(), attributes=attributes)
    work_after_sending(workflow, {}, default="not-applied")
    run = workflow.run("replay", "--all", "--wait", "--json")
    assert [outcome for outcome, _ in outcomes(run).values()] == ["failed"]
    workflow.dead.clock.seconds += 60
    workflow.dead.heal()
    line = workflow.run("inspect", "--json").documents[0]
    assert (line["reason"], line["detail"], line["replay"]) == ("not-applied", "d", "run")
    assert line["execution"].startswith(EXECUTION)
    work_after_sending(workflow, {}, default="completed")
    run = workflow.run("replay", "--all", "--wait", "--json")
    assert [outcome for outcome, _ in outcomes(run).values()] == ["completed"]
    assert workflow.ran[0] == workflow.ran[1]
    assert set(workflow.last["attributes"]) == {*attributes, "dead_letter_key"}


# --- what is left


def unread(workflow: Workflow) -> None:
    workflow.claim(order())
    workflow.world.deny("DescribeExecution")


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (lambda w: w.park(order()), "would only come back: its claim is kept, `release` it first"),
        (lambda w: w.claim(order(), "TIMED_OUT"), "would only come back: its claim is kept, `release` it first"),
        (
            lambda w: w.claim(order()),
            "would only come back: its claim is held by an execution that runs",
        ),
        (
            unread,
            "would only come back: its claim is held by an execution that cannot be read, see whether it runs",
        ),
    ],
    ids=["parked", "ended", "running", "unread"],
)
def test_a_letter_that_would_only_come_back_is_left(
    workflow: Workflow, before: Callable[[Workflow], Any], why: str
) -> None:
    before(workflow)
    kept = workflow.letter(order(), "outcome-unknown", key="order-1")
    workflow.letter(order("order-2"))
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.dead.all) == (1, [kept])
    assert [json.loads(body)["id"] for body, _ in workflow.queued] == ["order-2"]
    assert f"order-1: is left, it {why}\n" in run.stdout
    assert f"1 letter left: {why}.\n" in run.stdout


def test_a_letter_of_an_effect_that_ran_is_to_be_dropped(workflow: Workflow) -> None:
    owner = workflow.claim(order(), "FAILED", reason="outcome-not-recorded")
    workflow.letter(order(), "outcome-not-recorded", key="order-1", execution=owner)
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.queued) == (1, [])
    assert "1 letter left: would only come back: its claim is kept, and its effect ran: `drop` it.\n" in run.stdout


def test_after_a_release_it_is_sent_and_runs_once_more(workflow: Workflow) -> None:
    workflow.park(order())
    workflow.letter(order(), "outcome-unknown", key="order-1")
    assert workflow.run("release", "order-1", "--why", "never arrived").exit_code == 0
    assert workflow.run("replay", "--id", "order-1").exit_code == 0
    workflow.work({})
    assert workflow.ran == ["order-1"]


def s3(*keys: str) -> str:
    return json.dumps(
        {
            "Records": [
                {
                    "eventSource": "aws:s3",
                    "eventTime": "2030-01-02T03:04:05.678Z",
                    "s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "1", "size": 1}},
                }
                for key in keys
            ]
        }
    )


def test_a_letter_of_several_events_goes_if_one_of_them_would_run(deploy: Deploy) -> None:
    workflow = deploy(key="", settings={"EVENT_ENVELOPE": "s3"})
    workflow.letter(s3("new", "kept", "done"))
    new, kept, done = workflow.run("inspect", "--json").documents[0]["event_ids"]
    for event_id, before in ((kept, workflow.park), (done, workflow.complete)):
        before(order(), key=event_id)
        workflow.change(event_id, fingerprint=None)
    line = workflow.run("replay", "--all", "--dry-run", "--json").documents[0]
    assert [event["replay"] for event in line["events"]] == ["run", "keep", "no-op"]
    assert (line["left"], line["replay"]) == (None, "keep")
    workflow.complete(order(), key=new)
    workflow.change(new, fingerprint=None)
    line = workflow.run("replay", "--all", "--dry-run", "--json").documents[0]
    assert line["left"] == "would only come back: its claim is kept, `release` it first"


@pytest.mark.parametrize(
    "reason",
    ["aborted", "claim-kept", "failed", "id-reused", "outcome-not-recorded", "outcome-unknown", "timed-out"],
)
def test_what_was_claimed_and_is_forgotten_is_left(workflow: Workflow, reason: str) -> None:
    """The effect may have run, and nothing else tells of it."""
    workflow.letter(order(), reason, key="order-1")
    run = workflow.run("replay", "--all")
    assert workflow.queued == []
    assert "1 letter left: may have been applied before the ledger forgot it: --beyond-window sends it.\n" in run.stdout
    workflow.dead.heal()
    assert workflow.run("inspect", "--json").documents[0]["to_do"] == (
        "drop: the effect ran"
        if reason == "outcome-not-recorded"
        else "see whether the effect ran; replay --beyond-window, or drop"
    )
    assert workflow.run("replay", "--all", "--beyond-window").exit_code == 0


LEFT = "1 letter left: may have been applied before the ledger forgot it: --beyond-window sends it.\n"


@pytest.mark.parametrize("reason", ["not-applied", "guard-failed", None])
def test_what_is_older_than_a_claim_lasts_is_left(deploy: Deploy, reason: str | None) -> None:
    """Another message with its key may have run the effect since, and be forgotten too."""
    workflow = deploy(settings={"WORKFLOW_RETENTION_SECONDS": str(2 * DAY)})
    workflow.letter(order(), reason, age=2 * DAY + 90)
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.queued) == (1, [])
    assert LEFT in run.stdout
    workflow.dead.heal()
    run = workflow.run("replay", "--all", "--beyond-window")
    assert (run.exit_code, len(workflow.queued)) == (0, 1)
    assert run.stdout.startswith("order-1, 2d ")


@pytest.mark.parametrize("left", [-DAY, HOUR])
def test_what_is_completed_and_may_be_forgotten_before_it_arrives_is_left(workflow: Workflow, left: int) -> None:
    """DynamoDB deletes a claim some days after it expires, perhaps while the replay waits in the queue."""
    workflow.complete(order(), age=18 * DAY - left)
    workflow.letter(order())
    assert workflow.run("inspect", "--json").documents[0]["to_do"] == "drop: the effect ran"
    workflow.dead.clock.seconds += 60
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.queued) == (1, [])
    assert LEFT in run.stdout
    workflow.dead.clock.seconds += 60
    workflow.dead.heal()
    assert workflow.run("replay", "--all", "--beyond-window").exit_code == 0


def test_what_is_completed_and_stands_for_longer_than_the_queue_keeps_a_message_is_sent(workflow: Workflow) -> None:
    workflow.complete(order(), age=14 * DAY - HOUR)
    workflow.letter(order())
    assert workflow.run("replay", "--all").exit_code == 0


def test_what_a_file_kept_for_longer_than_a_claim_lasts_is_left(workflow: Workflow, tmp_path: Path) -> None:
    path = tmp_path / "dropped.jsonl"
    workflow.letter(order(), "not-applied", key="order-1")
    workflow.run("drop", "--all", "--output", str(path))
    workflow.complete(order(), age=0)
    workflow.dead.clock.seconds += 18 * DAY + 60
    workflow.forget("order-1")
    run = workflow.run("replay", "--from-drop", str(path))
    assert (run.exit_code, workflow.queued) == (1, [])
    assert LEFT in run.stdout


@pytest.mark.parametrize("key", ["id", ""])
def test_a_letter_with_a_key_whose_reason_is_lost_and_whose_claim_is_gone_is_left(deploy: Deploy, key: str) -> None:
    """SQS moved it after it was sent back: it begins its retention anew, which its claim does not."""
    workflow = deploy(key=key)
    message_id = workflow.letter(order(), "outcome-unknown", key="order-1" if key else "sqs:m-7")
    workflow.dead.mark_moved(message_id)
    run = workflow.run("replay", "--all")
    assert (run.exit_code, workflow.queued) == (1, [])
    assert LEFT in run.stdout


def test_an_event_of_eventbridge_that_sqs_moved_is_left_if_its_claim_is_gone(workflow: Workflow) -> None:
    workflow.dead.mark_moved(workflow.event_letter(order()))
    assert workflow.run("replay", "--all").exit_code == 1
    assert workflow.queued == []


@pytest.mark.parametrize("key", ["id", ""])
def test_a_file_tells_a_letter_that_had_a_key_from_one_that_gets_it(deploy: Deploy, tmp_path: Path, key: str) -> None:
    workflow = deploy(key=key)
    path = tmp_path / "dropped.jsonl"
    message_id = workflow.letter(order())
    workflow.run("drop", "--all", "--output", str(path))
    assert json.loads(path.read_text())["attributes"] == {}
    assert workflow.run("replay", "--from-drop", str(path)).exit_code == 0
    assert workflow.queued[0][1] == {"dead_letter_key": "order-1" if key else f"sqs:{message_id}"}


def test_what_eventbridge_says_of_a_key_that_is_forgotten_is_left(workflow: Workflow) -> None:
    workflow.event_letter(order())
    assert workflow.run("replay", "--all").exit_code == 1
    assert workflow.queued == []


@pytest.mark.parametrize("reason", ["not-applied", "guard-failed", None])
def test_what_certainly_did_nothing_is_sent_whatever_is_forgotten(workflow: Workflow, reason: str | None) -> None:
    workflow.letter(order(), reason, age=3 * 86_400)
    assert workflow.run("replay", "--all").exit_code == 0
    assert len(workflow.queued) == 1


# --- what became of it


def work_after_sending(workflow: Workflow, fates: dict[str, str], default: str = "completed") -> None:
    """Starter and state machine come when all is sent: at the first question of what became of it."""

    def at_question(request: Any, effect: Callable[[], Any]) -> Any:
        if workflow.dead.queued:
            workflow.world._play(lambda: workflow.work(fates, default))
        return effect()

    workflow.world.on("BatchGetItem", answers=at_question)


def test_with_wait_each_letter_is_followed_to_its_end(workflow: Workflow) -> None:
    workflow.complete(order("done"))
    for name in ("done", "good", "lost", "declined", "stopped"):
        workflow.letter(order(name))
    workflow.release(order("again"))
    workflow.event_letter(order("again"))
    fates = {"lost": "unknown", "declined": "not-applied", "stopped": "aborted"}
    work_after_sending(workflow, fates)
    run = workflow.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {
        "done": ("no-op", ""),
        "good": ("completed", ""),
        "again": ("completed", ""),
        "lost": ("parked", "outcome-unknown"),
        "declined": ("failed", "not-applied"),
        "stopped": ("failed", "aborted"),
    }
    assert run.exit_code == 1


def test_with_wait_a_claim_that_is_taken_meanwhile_sends_the_letter_back(workflow: Workflow) -> None:
    workflow.letter(order())
    workflow.world.on("DeleteMessageBatch", runs=lambda: workflow.claim(order()))
    work_after_sending(workflow, {})
    run = workflow.run("replay", "--all", "--wait", "--json")
    assert outcomes(run) == {"order-1": ("refused", "claim-kept")}
    assert workflow.ran == []


def test_what_still_runs_is_said_to_be_under_way(workflow: Workflow) -> None:
    workflow.letter(order())
    work_after_sending(workflow, {"order-1": "runs"})
    run = workflow.run("replay", "--all", "--wait", "--timeout", "20s", "--json")
    assert outcomes(run) == {"order-1": ("under-way", "in progress")}
    assert run.exit_code == 1


def test_messages_that_are_alike_are_told_apart_by_their_keys(deploy: Deploy) -> None:
    workflow = deploy(key="")
    first, second = (f"sqs:{workflow.letter({'a': 1})}" for _ in range(2))
    work_after_sending(workflow, {first: "runs", second: "unknown"})
    run = workflow.run("replay", "--all", "--wait", "--timeout", "20s", "--json")
    assert outcomes(run) == {first: ("under-way", "in progress"), second: ("parked", "outcome-unknown")}
