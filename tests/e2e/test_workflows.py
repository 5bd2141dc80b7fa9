"""Effects of a workflow run at most once, and exactly once where nothing hits them, whatever befalls the rest."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.emulator import Emulator
from local.faults import Faults
from local.operating import Operator
from local.terraform import Root
from local.waiting import wait_for
from local.watching import attribute
from tests.e2e.permissions import Role, environment, refused
from tests.e2e.test_terraform import ALARM
from tests.e2e.workflow_script import play
from tests.e2e.workflow_storm import MESSAGES, Storm
from tests.e2e.workflows import ROOT, Attributes, Execution, Workflow, pack_effect, text
from tests.plan.workflow_roles import GUARD, STARTER

GUARDS = ("direct", "guarded")
COMPLETED = ("SUCCEEDED", "completed")
# What an execution adds to the attributes of its message.
ADDED = {"dead_letter_key", "dead_letter_reason", "dead_letter_execution", "dead_letter_detail"}
NewId = Callable[[], str]
LaterFunction = Callable[[], AbstractContextManager[None]]
# The retries of a state machine last an hour, those of the emulator a quarter of that; here a few seconds.
QUICK = {"SFN_WAIT_SCALE": "0.003"}
LOST_ANSWER = {"service": "dynamodb", "operation": "UpdateItem", "probability": 0.05, "response": {"abort_bytes": 0}}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("workflows") / "emulator.log", environment=QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def faults(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with Faults(emulator.endpoint, tmp_path_factory.mktemp("workflows") / "faults.log") as running:
        yield running


@dataclass(frozen=True)
class Deployed:
    """The applied fixture. changes: what a plan right after the apply would still do."""

    root: Root
    outputs: Mapping[str, Any]
    changes: Mapping[str, list[str]]


@pytest.fixture(scope="module")
def deployed(emulator: Emulator, faults: Faults, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """All workflows, applied. What the guards ask of DynamoDB goes through `faults`."""
    folder = tmp_path_factory.mktemp("workflows")
    variables = {
        "effect_package": str(pack_effect(folder)),
        "function_environment": {"AWS_ENDPOINT_URL_DYNAMODB": faults.endpoint},
    }
    root = Root(ROOT, folder / "terraform", emulator.endpoint, variables=variables)
    root.init()
    root.apply()
    return Deployed(root, root.output(), root.changes())


@pytest.fixture(scope="module")
def workflows(deployed: Deployed, emulator: Emulator) -> dict[str, Workflow]:
    runs_table = deployed.outputs["runs_table_name"]
    return {name: Workflow(emulator, each, runs_table) for name, each in deployed.outputs["workflows"].items()}


@pytest.fixture(params=GUARDS)
def workflow(request: pytest.FixtureRequest, workflows: dict[str, Workflow]) -> Workflow:
    """Each of the two guards."""
    return workflows[request.param]


@pytest.fixture
def fragment(workflows: dict[str, Workflow]) -> Workflow:
    return workflows["fragment"]


@pytest.fixture
def later(workflows: dict[str, Workflow]) -> Workflow:
    """Has no event ids, and the function of its effect is not there."""
    return workflows["later"]


@pytest.fixture
def later_function(later: Workflow, deployed: Deployed, emulator: Emulator, tmp_path: Path) -> LaterFunction:
    """Inside the block that this opens the function is there."""

    @contextmanager
    def is_there() -> Iterator[None]:
        functions = emulator.client("lambda")
        functions.create_function(
            FunctionName="effect-later",
            Runtime="python3.13",
            Handler="effect.handler",
            Role=deployed.outputs["effect_role_arn"],
            Code={"ZipFile": pack_effect(tmp_path).read_bytes()},
            Environment={"Variables": {"RUNS_TABLE": deployed.outputs["runs_table_name"]}},
            Timeout=10,
        )
        try:
            yield
        finally:
            functions.delete_function(FunctionName="effect-later")

    return is_there


def release(workflow: Workflow, key: str, *options: str) -> None:
    """What an operator does who has seen that the effect may run again."""
    answer = Operator(workflow).run("release", key, "--why", "looked for it, and found nothing", *options)
    assert answer.status == 0, answer


def skipped(key: str, reason: str) -> dict[str, Any]:
    return {"status": "skipped", "reason": reason, "idempotencyKey": {"pk": key, "sk": "ingestion"}}


# --- the storm


@pytest.fixture(scope="module")
def storms(workflows: dict[str, Workflow], faults: Faults, expired: dict[str, Expired]) -> dict[str, Storm]:
    storms = {guard: Storm(workflows[guard]) for guard in GUARDS}
    # One after the other: what has too much to do at once does not answer in time, and is then asked again.
    with faults.rules(LOST_ANSWER):
        for storm in storms.values():
            storm.rage()
        assert faults.fired("dynamodb") >= 10
    return storms


@pytest.fixture(params=GUARDS)
def storm(request: pytest.FixtureRequest, storms: dict[str, Storm]) -> Storm:
    return storms[request.param]


def test_processes_are_killed_while_messages_come_again_and_again(storm: Storm) -> None:
    functions = {name for name in (storm.workflow.starter, storm.workflow.guard) if name}
    assert storm.killed.keys() == functions
    assert min(storm.killed.values()) >= 5
    assert len(storm.first) == len(storm.again) == MESSAGES == 500
    assert storm.repeats > 800


def test_the_effect_runs_exactly_once_for_each_key(storm: Storm) -> None:
    runs = storm.workflow.all_runs()
    assert {key: runs.get(key, 0) for key in storm.keys} == dict.fromkeys(storm.keys, 1)


def test_each_message_has_one_execution_and_one_of_each_key_has_run_the_effect(storm: Storm) -> None:
    first = storm.workflow.executions(storm.arns(storm.first))
    assert [each and each.outcome for each in first] == [("SUCCEEDED", "completed")] * MESSAGES
    assert [each and each.result["result"] for each in first] == [{"run": 1}] * MESSAGES


def test_a_replay_with_a_new_message_id_succeeds_as_skipped_and_has_the_result(storm: Storm) -> None:
    again = storm.workflow.executions(storm.arns(storm.again))
    assert [each and each.result for each in again] == [
        {
            "status": "skipped",
            "reason": "duplicate",
            "idempotencyKey": {"pk": key, "sk": "ingestion"},
            "result": {"run": 1},
        }
        for key in storm.keys
    ]


def test_nothing_is_dead_lettered_and_each_claim_is_completed(storm: Storm) -> None:
    rows = storm.workflow.rows()
    assert {key: rows[key]["status"] for key in storm.keys} == dict.fromkeys(storm.keys, "COMPLETED")
    assert {rows[key]["messageId"] for key in storm.keys} == {message.id for message in storm.first}
    keys = set(storm.keys)
    assert [letter for letter in storm.workflow.dead_letters.take() if any(key in letter["Body"] for key in keys)] == []


# --- an effect that may have acted


def test_an_effect_that_fails_after_it_acted_runs_again_only_when_its_key_is_released(
    workflow: Workflow, event_id: str
) -> None:
    body = {"id": event_id, "does": "fails-once"}
    attributes: Attributes = {"trace": text("t-1"), "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
    failed = workflow.run(event_id, body, attributes)
    assert failed.outcome == ("FAILED", "IdempotentConsumer.outcome-unknown")
    letter, row = workflow.letter(), workflow.row(event_id)
    assert json.loads(letter["Body"]) == body
    assert letter["MessageAttributes"].keys() == {*attributes, *ADDED}
    assert letter["MessageAttributes"]["blob"] == attributes["blob"]
    told = {name: attribute(letter, name) for name in ("trace", *ADDED)}
    assert "acted, then failed" in told.pop("dead_letter_detail")
    assert told == {
        "trace": "t-1",
        "dead_letter_key": event_id,
        "dead_letter_reason": "outcome-unknown",
        "dead_letter_execution": failed.arn,
    }
    assert (row["status"], row["reason"], row["owner"]) == ("IN_PROGRESS", "outcome-unknown", failed.arn)
    assert row["claimedAt"] <= row["parkedAt"]

    # A duplicate is skipped; the letter itself is not, since what it asks for has perhaps not been done.
    assert workflow.run(event_id, body).result == skipped(event_id, "parked")
    kept = workflow.ended(event_id, workflow.replay(letter))
    assert kept.outcome == ("FAILED", "IdempotentConsumer.claim-kept")
    letter = workflow.letter()
    assert json.loads(letter["Body"]) == body
    assert attribute(letter, "dead_letter_reason") == "claim-kept"
    assert (attribute(letter, "trace"), letter["MessageAttributes"]["blob"]) == ("t-1", attributes["blob"])
    assert workflow.runs(event_id) == 1

    release(workflow, event_id)
    again = workflow.ended(event_id, workflow.replay(letter))
    assert (again.outcome, again.result["result"]) == (COMPLETED, {"run": 2})
    twice = workflow.ended(event_id, workflow.replay(letter))
    assert twice.result == skipped(event_id, "duplicate") | {"result": {"run": 2}}
    assert workflow.runs(event_id) == 2
    assert workflow.dead_letters.depth().is_empty


def test_an_effect_whose_process_is_killed_does_not_run_again_by_itself(workflow: Workflow, event_id: str) -> None:
    body = {"id": event_id, "does": "waits-once"}
    message = workflow.send(body)
    wait_for(lambda: workflow.runs(event_id), "the effect runs")
    assert workflow.emulator.kill_workers("effect")

    assert workflow.ended(event_id, message).outcome == ("FAILED", "IdempotentConsumer.outcome-unknown")
    assert attribute(workflow.letter(), "dead_letter_reason") == "outcome-unknown"
    assert workflow.row(event_id)["reason"] == "outcome-unknown"
    assert [workflow.run(event_id, body).result for _ in range(3)] == [skipped(event_id, "parked")] * 3
    assert workflow.runs(event_id) == 1
    release(workflow, event_id)


def test_an_execution_that_is_stopped_during_its_effect_comes_back_as_the_message_it_had(
    later: Workflow, later_function: LaterFunction
) -> None:
    """Its key is a message's id, which no replay keeps."""
    with later_function():
        body = {"does": "waits-once"}
        message = later.send(body, {"trace": text("t-2")})
        key = f"sqs:{message.id}"
        wait_for(lambda: later.runs(key), "the effect runs")
        later.stop(key, message)
        later.let_end(key)
        stopped = later.ended(key, message)
        assert stopped.status == "ABORTED"
        letter = later.letter()
        told = json.loads(letter["Body"])
        assert (told["source"], told["detail"]["status"]) == ("aws.states", "ABORTED")
        assert told["detail"]["executionArn"] == stopped.arn
        assert "parkedAt" not in later.row(key)

        kept = later.ended(key, later.replay(letter))
        assert kept.outcome == ("FAILED", "IdempotentConsumer.claim-kept")
        letter = later.letter()
        assert json.loads(letter["Body"]) == body
        assert (attribute(letter, "dead_letter_key"), attribute(letter, "trace")) == (key, "t-2")
        assert later.runs(key) == 1

        release(later, key)
        assert later.ended(key, later.replay(letter)).outcome == COMPLETED
        assert later.runs(key) == 2


def test_the_command_line_sends_a_stopped_execution_back_once_its_key_is_released(
    workflows: dict[str, Workflow], event_id: str
) -> None:
    guarded, operator = workflows["guarded"], Operator(workflows["guarded"])
    message = guarded.send({"id": event_id, "does": "waits-once"}, {"trace": text("t-3")})
    wait_for(lambda: guarded.runs(event_id), "the effect runs")
    guarded.stop(event_id, message)
    guarded.let_end(event_id)
    wait_for(lambda: guarded.dead_letters.depth().waiting, "EventBridge's letter")
    refused = operator.json("replay", "--id", event_id)
    assert refused.status == 1, refused
    assert guarded.dead_letters.depth().waiting == 1

    release(guarded, event_id)
    replayed = operator.json("replay", "--id", event_id, "--wait")
    assert (replayed.status, replayed.last["sent"], replayed.last["outcomes"]) == (0, 1, {"completed": 1}), replayed
    assert guarded.runs(event_id) == 2
    assert guarded.dead_letters.depth().is_empty
    assert [entry["how"] for entry in guarded.row(event_id)["audit"]] == ["release"]


@pytest.mark.parametrize("meanwhile", ["gone", "released"])
def test_what_became_of_an_effect_is_recorded_although_its_claim_was_taken_from_it(
    workflow: Workflow, event_id: str, meanwhile: str
) -> None:
    body = {"id": event_id, "does": "waits-once"}
    message = workflow.send(body)
    wait_for(lambda: workflow.runs(event_id), "the effect runs")
    if meanwhile == "gone":
        workflow.forget(event_id)
    else:
        refused = Operator(workflow).run("release", event_id, "--why", "it hangs")
        assert refused.status == 1, refused
        release(workflow, event_id, "--force")
    workflow.let_end(event_id)

    assert workflow.ended(event_id, message).outcome == COMPLETED
    row = workflow.row(event_id)
    assert (row["status"], row["messageId"]) == ("COMPLETED", message.id)
    assert "releasedAt" not in row
    assert workflow.run(event_id, body).result == skipped(event_id, "duplicate") | {"result": {"run": 1}}
    assert workflow.runs(event_id) == 1


def test_an_execution_that_ends_at_an_error_that_no_state_catches_comes_back_too(
    fragment: Workflow, event_id: str
) -> None:
    body = {"id": event_id, "does": "dies"}
    died = fragment.run(event_id, body)
    assert died.outcome == ("FAILED", "States.Runtime")
    letter = fragment.letter()
    assert json.loads(letter["Body"])["detail"]["error"] == "States.Runtime"
    assert fragment.row(event_id)["status"] == "IN_PROGRESS"
    # While nobody has looked, a duplicate is skipped, and the letter is not.
    assert fragment.run(event_id, body).result == skipped(event_id, "duplicate")
    kept = fragment.ended(event_id, fragment.replay(letter))
    assert kept.outcome == ("FAILED", "IdempotentConsumer.claim-kept")
    letter = fragment.letter()
    assert json.loads(letter["Body"]) == body
    assert letter["MessageAttributes"].keys() == ADDED


# --- an effect that has not begun


def test_an_effect_whose_function_is_not_there_is_tried_again_and_then_released(
    later: Workflow, later_function: LaterFunction
) -> None:
    message = later.send({"any": "thing"})
    key = f"sqs:{message.id}"
    failed = later.ended(key, message)
    assert failed.outcome == ("FAILED", "IdempotentConsumer.not-applied")
    assert later.events(failed).count("TaskFailed") == 3
    letter, row = later.letter(), later.row(key)
    assert (attribute(letter, "dead_letter_reason"), attribute(letter, "dead_letter_key")) == ("not-applied", key)
    assert (row["status"], row["reason"], "parkedAt" in row) == ("RELEASED", "not-applied", False)

    with later_function():
        assert later.ended(key, later.replay(letter)).outcome == COMPLETED
    assert later.runs(key) == 1
    row = later.row(key)
    assert row["status"] == "COMPLETED"
    assert row.keys().isdisjoint({"releasedAt", "reason", "detail"})


def test_a_guard_that_may_not_write_runs_no_effect_and_loses_no_message(
    workflows: dict[str, Workflow], emulator: Emulator, event_id: str
) -> None:
    guarded = workflows["guarded"]
    assert guarded.guard is not None
    with Role(emulator, guarded.guard).without("dynamodb:UpdateItem"):
        failed = guarded.run(event_id, {"id": event_id})
    assert failed.outcome == ("FAILED", "IdempotentConsumer.guard-failed")
    letter = guarded.letter()
    assert attribute(letter, "dead_letter_reason") == "guard-failed"
    assert (guarded.row(event_id), guarded.runs(event_id)) == ({}, 0)

    assert guarded.ended(event_id, guarded.replay(letter)).outcome == COMPLETED
    assert guarded.runs(event_id) == 1


def test_a_direct_guard_without_its_table_runs_no_effect_and_loses_no_message(
    fragment: Workflow, emulator: Emulator, event_id: str
) -> None:
    dynamodb, table = emulator.client("dynamodb"), fragment.table
    made = dynamodb.describe_table(TableName=table)["Table"]
    dynamodb.delete_table(TableName=table)
    try:
        failed = fragment.run(event_id, {"id": event_id})
    finally:
        same = {name: made[name] for name in ("AttributeDefinitions", "KeySchema", "TableName")}
        dynamodb.create_table(**same, BillingMode="PAY_PER_REQUEST")
    assert failed.outcome == ("FAILED", "IdempotentConsumer.guard-failed")
    letter = fragment.letter()
    assert (attribute(letter, "dead_letter_reason"), fragment.runs(event_id)) == ("guard-failed", 0)

    assert fragment.ended(event_id, fragment.replay(letter)).outcome == COMPLETED
    assert fragment.runs(event_id) == 1


# --- rights


def test_every_action_that_the_emulator_asks_the_roles_for_is_taken_away(workflows: dict[str, Workflow]) -> None:
    """Of the guard above, of the starter below."""
    guarded = workflows["guarded"]
    assert guarded.guard is not None
    assert Role(guarded.emulator, guarded.guard).checked() == GUARD.checked()
    assert Role(guarded.emulator, guarded.starter).checked() == STARTER.checked()


def test_without_start_execution_a_message_stays_in_the_queue(workflows: dict[str, Workflow], event_id: str) -> None:
    guarded = workflows["guarded"]
    with refused(guarded.emulator, guarded.outputs, "states:StartExecution"):
        message = guarded.send({"id": event_id})
    assert guarded.ended(event_id, message).outcome == COMPLETED
    assert guarded.runs(event_id) == 1


def test_without_send_message_poison_stays_in_the_queue(workflows: dict[str, Workflow], event_id: str) -> None:
    guarded, body = workflows["guarded"], f'{{"broken": "{event_id}"'
    with refused(guarded.emulator, guarded.outputs, "sqs:SendMessage"):
        guarded.send(body)
    letter = guarded.letter()
    assert (letter["Body"], attribute(letter, "dead_letter_reason")) == (body, "bad-json")


def test_without_the_right_to_hide_it_a_message_comes_back_after_the_queues_timeout(
    workflows: dict[str, Workflow], event_id: str
) -> None:
    guarded = workflows["guarded"]
    backoff = {"BACKOFF_MAX_SECONDS": "3", "VISIBILITY_TIMEOUT_SECONDS": "1"}
    # It is hidden where it cannot be started.
    taken = ("sqs:ChangeMessageVisibility", "states:StartExecution")
    with environment(guarded.emulator, guarded.starter, backoff):
        with refused(guarded.emulator, guarded.outputs, *taken, says="no backoff: AccessDenied"):
            message = guarded.send({"id": event_id})
        assert guarded.ended(event_id, message).outcome == COMPLETED
    assert guarded.runs(event_id) == 1


# --- a fragment


def test_a_fragment_s_result_is_recorded_and_returned_to_duplicates(fragment: Workflow, event_id: str) -> None:
    body = {"id": event_id}
    counted = {"counted": {"run": 1}}
    assert fragment.run(event_id, body).result == {
        "status": "completed",
        "idempotencyKey": {"pk": event_id, "sk": "ingestion"},
        "result": counted,
    }
    assert json.loads(fragment.row(event_id)["result"]) == counted
    assert fragment.run(event_id, body).result == skipped(event_id, "duplicate") | {"result": counted}
    assert fragment.runs(event_id) == 1


def test_an_error_that_a_fragment_calls_not_applied_releases_the_claim(fragment: Workflow, event_id: str) -> None:
    body = {"id": event_id, "does": "refuses"}
    assert fragment.run(event_id, body).outcome == ("FAILED", "IdempotentConsumer.not-applied")
    letter, row = fragment.letter(), fragment.row(event_id)
    assert attribute(letter, "dead_letter_detail") == "Refused: before anything was done"
    assert (row["status"], row["detail"]) == ("RELEASED", "Refused: before anything was done")
    # Free again: each try is refused anew.
    again = fragment.ended(event_id, fragment.replay(letter))
    assert again.outcome == ("FAILED", "IdempotentConsumer.not-applied")
    assert attribute(fragment.letter(), "dead_letter_execution") == again.arn


def test_any_other_error_of_a_fragment_keeps_the_claim(fragment: Workflow, event_id: str) -> None:
    body = {"id": event_id, "does": "fails-once"}
    assert fragment.run(event_id, body).outcome == ("FAILED", "IdempotentConsumer.outcome-unknown")
    assert attribute(fragment.letter(), "dead_letter_reason") == "outcome-unknown"
    assert fragment.run(event_id, body).result == skipped(event_id, "parked")
    assert fragment.runs(event_id) == 1


# --- what a letter carries


@pytest.mark.parametrize("count", [0, 6, 7, 10])
def test_what_a_letter_brings_back_has_all_attributes_of_the_producer(
    fragment: Workflow, event_id: str, count: int
) -> None:
    producers = {f"own-{number}": text(f"value {number}") for number in range(count)}
    fragment.run(event_id, {"id": event_id, "does": "refuses"}, producers)
    letter = fragment.letter()
    # A message can have ten: where the producer's leave no room, they are in the body.
    assert letter["MessageAttributes"].keys() == {*(producers if count <= 6 else ()), *ADDED}
    assert attribute(letter, "dead_letter_key") == event_id

    given = fragment.given(fragment.ended(event_id, fragment.replay(letter)))
    assert json.loads(given["body"]) == {"id": event_id, "does": "refuses"}
    assert {name: value for name, value in given["attributes"].items() if name not in ADDED} == producers
    fragment.letter()


# --- the end of a key


@dataclass(frozen=True)
class Expired:
    """A key whose time is over, and what came of a duplicate before DynamoDB deleted its row."""

    key: str
    duplicate: Execution


@pytest.fixture(scope="module")
def expired(workflows: dict[str, Workflow]) -> dict[str, Expired]:
    """By guard. The sweep comes once a minute: whoever asks for this early waits for it least."""
    return {guard: expire(workflows[guard]) for guard in GUARDS}


def expire(workflow: Workflow) -> Expired:
    for _ in range(3):
        key = f"expires-{uuid.uuid4().hex}"
        workflow.run(key, {"id": key})
        workflow.expire(key)
        duplicate = workflow.run(key, {"id": key})
        if duplicate.outcome != COMPLETED:  # else the sweep came in between
            break
    return Expired(key, duplicate)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_key_past_its_time_is_taken_until_it_is_swept_and_free_then(
    workflows: dict[str, Workflow], expired: dict[str, Expired], guard: str
) -> None:
    workflow, key = workflows[guard], expired[guard].key
    assert expired[guard].duplicate.result == skipped(key, "duplicate") | {"result": {"run": 1}}
    wait_for(lambda: not workflow.row(key), "the row is swept", seconds=90)
    assert workflow.run(key, {"id": key}).result["result"] == {"run": 2}
    # The retention of both queues, from now on.
    assert workflow.row(key)["expiresAt"] > time.time() + 17 * 86_400


# --- both guards


def test_both_guards_give_the_same_results_and_rows_for_the_same_deliveries(
    workflows: dict[str, Workflow], new_id: NewId
) -> None:
    run = new_id()[-8:]
    with ThreadPoolExecutor(2) as threads:
        direct, guarded = threads.map(lambda guard: play(workflows[guard], release, f"{guard}-{run}-"), GUARDS)
    for index, pair in enumerate(zip(direct.results, guarded.results, strict=True)):
        assert pair[0] == pair[1], index
    assert direct.results == guarded.results
    assert direct.rows == guarded.rows
    assert direct.letters == guarded.letters


# --- Terraform


@pytest.mark.case("T08", "T10")
def test_a_plan_after_apply_changes_nothing_but_alarms(deployed: Deployed) -> None:
    assert {address: actions for address, actions in deployed.changes.items() if not ALARM.search(address)} == {}


@pytest.fixture(scope="module")
def destroyed(deployed: Deployed, workflows: dict[str, Workflow]) -> Deployed:
    """The workflows after terraform destroy."""
    deployed.root.destroy()
    return deployed


def test_destroy_leaves_nothing(destroyed: Deployed, emulator: Emulator) -> None:
    assert destroyed.root.resources() == []
    assert emulator.client("sqs").list_queues().get("QueueUrls", []) == []
    assert emulator.client("dynamodb").list_tables()["TableNames"] == []
    assert emulator.client("stepfunctions").list_state_machines()["stateMachines"] == []
    assert emulator.client("events").list_rules()["Rules"] == []
    assert emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []
    assert emulator.client("lambda").list_functions()["Functions"] == []
