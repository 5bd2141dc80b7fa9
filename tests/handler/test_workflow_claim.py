"""Claims of a workflow: one write decides, and the row that stands says why not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer.workflow.claim import ClaimRequest, ClaimUnavailable
from tests.handler.support import UPDATE, Cloud, client_error
from tests.handler.workflow_support import ONE, OTHER, TABLE, Workflow

# What the state machine leaves of an attempt, and a person of a release.
AUDIT: dict[str, Any] = {
    "L": [{"M": {"at": {"N": "1"}, "by": {"S": "ann"}, "how": {"S": "release"}, "why": {"S": "asked them"}}}]
}
PARKED: dict[str, Any] = {"parkedAt": {"N": "1"}, "reason": {"S": "outcome-unknown"}, "detail": {"S": "no answer"}}
RELEASED: dict[str, Any] = {
    "status": {"S": "RELEASED"},
    "releasedAt": {"N": "2"},
    "reason": {"S": "not-applied"},
    "detail": {"S": "no such function"},
}
COMPLETED: dict[str, Any] = {"status": {"S": "COMPLETED"}, "completedAt": {"N": "3"}, "result": {"S": "7"}}


@pytest.fixture
def workflow(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    return Workflow(cloud, monkeypatch)


def reason(answer: dict[str, Any]) -> str:
    assert answer["proceed"] is (answer["reason"] == "claimed")
    return str(answer["reason"])


# The row


@pytest.mark.case("C50")
def test_a_claim_is_one_row_with_its_times_in_their_units(workflow: Workflow) -> None:
    workflow.ask(key="o-1", messageId="m-1", fingerprint="f-1", owner=ONE)
    assert workflow.row() == {
        "status": {"S": "IN_PROGRESS"},
        "owner": {"S": "arn:aws:states:eu-central-1:111122223333:execution:orders:one"},
        "claimedAt": {"N": "1893553446000"},
        "expiresAt": {"N": "1893639846"},
        "messageId": {"S": "m-1"},
        "fingerprint": {"S": "f-1"},
    }
    assert workflow.cloud.operations == [UPDATE]


def test_what_is_not_told_is_not_in_the_row(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    assert sorted(workflow.row()) == ["claimedAt", "expiresAt", "owner", "status"]


@pytest.mark.case("C50")
@pytest.mark.parametrize(
    ("asked", "expires_at"),
    [({}, "1893639846"), ({"retentionSeconds": 1}, "1893553447"), ({"retentionSeconds": 1_555_200}, "1895108646")],
)
def test_a_row_expires_so_many_whole_seconds_after_its_claim(
    workflow: Workflow, asked: dict[str, int], expires_at: str
) -> None:
    workflow.clock.wait(0.999)
    workflow.ask(key="o-1", owner=ONE, **asked)
    assert workflow.row()["expiresAt"] == {"N": expires_at}


def test_an_owner_that_asks_again_is_remembered_from_then_on(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE, messageId="m-1", fingerprint="f-1")
    workflow.clock.wait(60)
    assert reason(workflow.ask(key="o-1", owner=ONE, messageId="m-1", fingerprint="f-1")) == "claimed"
    row = workflow.row()
    assert (row["claimedAt"], row["expiresAt"]) == ({"N": "1893553506000"}, {"N": "1893639906"})


def test_whoever_is_refused_changes_nothing(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    before = workflow.row()
    workflow.clock.wait(60)
    workflow.ask(key="o-1", owner=OTHER, messageId="m-2", fingerprint="f-2", retentionSeconds=1)
    assert workflow.row() == before


def test_owners_without_a_name_are_never_the_same() -> None:
    owners = {ClaimRequest.read({"key": "o-1"}).owner for _ in range(50)}
    assert len(owners) == 50
    assert {len(owner) for owner in owners} == {32}


# Who may claim


@pytest.mark.parametrize(
    ("row", "same_owner", "another"),
    [
        ({}, "claimed", "duplicate"),
        (COMPLETED, "duplicate", "duplicate"),
        (PARKED, "parked", "parked"),
        (RELEASED, "claimed", "claimed"),
        ({**PARKED, **RELEASED}, "claimed", "claimed"),
        ({"status": {"S": "UNHEARD-OF"}}, "duplicate", "duplicate"),
    ],
)
def test_what_stands_decides_who_may_claim(
    workflow: Workflow, row: dict[str, Any], same_owner: str, another: str
) -> None:
    for key, owner, expected in (("o-1", ONE, same_owner), ("o-2", OTHER, another)):
        workflow.ask(key=key, owner=ONE)
        workflow.write(key, **row)
        assert reason(workflow.ask(key=key, owner=owner)) == expected


def test_a_row_without_an_owner_is_nobodys(workflow: Workflow) -> None:
    """Written by hand: to run the effect for it could be once too often."""
    workflow.write(status={"S": "IN_PROGRESS"})
    assert reason(workflow.ask(key="o-1", owner=ONE)) == "duplicate"


@pytest.mark.case("C51")
@pytest.mark.parametrize("row", [{}, PARKED, COMPLETED])
def test_a_row_past_its_time_to_live_stands_until_it_is_deleted(workflow: Workflow, row: dict[str, Any]) -> None:
    workflow.ask(key="o-1", owner=ONE, retentionSeconds=60)
    workflow.write(**row)
    workflow.clock.wait(10_000_000)
    assert workflow.ask(key="o-1", owner=OTHER)["proceed"] is False
    workflow.delete()
    assert reason(workflow.ask(key="o-1", owner=OTHER)) == "claimed"


def test_a_released_row_is_claimed_as_if_it_were_new_and_keeps_its_audit(workflow: Workflow) -> None:
    workflow.ask(key="o-1", messageId="m-1", fingerprint="f-1", owner=ONE)
    workflow.write(**PARKED, result={"S": "7"}, completedAt={"N": "3"})
    workflow.write(**RELEASED, audit=AUDIT)
    workflow.clock.wait(60)
    assert reason(workflow.ask(key="o-1", messageId="m-2", fingerprint="f-2", owner=OTHER)) == "claimed"
    assert workflow.row() == {
        "status": {"S": "IN_PROGRESS"},
        "owner": {"S": OTHER},
        "claimedAt": {"N": "1893553506000"},
        "expiresAt": {"N": "1893639906"},
        "messageId": {"S": "m-2"},
        "fingerprint": {"S": "f-2"},
        "audit": AUDIT,
    }


def test_a_claim_takes_along_nothing_of_the_one_before(workflow: Workflow) -> None:
    workflow.ask(key="o-1", messageId="m-1", fingerprint="f-1", owner=ONE)
    workflow.write(**RELEASED)
    workflow.ask(key="o-1", owner=OTHER)
    assert sorted(workflow.row()) == ["claimedAt", "expiresAt", "owner", "status"]
    assert reason(workflow.ask(key="o-1", fingerprint="f-2", owner=ONE)) == "duplicate"


# Other content


@pytest.mark.parametrize("row", [{}, PARKED, COMPLETED])
def test_other_content_under_a_claimed_key_is_a_conflict(workflow: Workflow, row: dict[str, Any]) -> None:
    workflow.ask(key="o-1", fingerprint="f-1", owner=ONE)
    workflow.write(**row)
    assert reason(workflow.ask(key="o-1", fingerprint="f-2", owner=OTHER)) == "conflict"


@pytest.mark.parametrize(("first", "second"), [(None, "f-1"), ("f-1", None), (None, None), ("f-1", "f-1")])
def test_content_that_is_not_known_is_no_conflict(workflow: Workflow, first: str | None, second: str | None) -> None:
    workflow.ask(key="o-1", fingerprint=first, owner=ONE)
    assert reason(workflow.ask(key="o-1", fingerprint=second, owner=OTHER)) == "duplicate"


# What became of it


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, {"id": "ch-1", "lines": [1, 2.5, "é"]}])
def test_a_result_is_given_back_whatever_it_is(workflow: Workflow, result: Any) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.write(status={"S": "COMPLETED"}, result={"S": json.dumps(result)})
    answer = workflow.ask(key="o-1", owner=OTHER, returnResult=True)
    assert answer == {
        "proceed": False,
        "reason": "duplicate",
        "idempotencyKey": {"pk": "o-1", "sk": "ingestion"},
        "status": "COMPLETED",
        "result": result,
    }
    assert type(answer["result"]) is type(result)


@pytest.mark.parametrize(
    ("row", "told", "status"),
    [
        ({}, "duplicate", "IN_PROGRESS"),
        (PARKED, "parked", "IN_PROGRESS"),
        ({"status": {"S": "COMPLETED"}}, "duplicate", "COMPLETED"),
        # Too large to be recorded.
        ({"status": {"S": "COMPLETED"}, "result": {"NULL": True}}, "duplicate", "COMPLETED"),
        # Written by hand.
        ({"status": {"S": "COMPLETED"}, "result": {"S": "no JSON"}}, "duplicate", "COMPLETED"),
    ],
)
def test_without_a_recorded_result_there_is_none_in_the_answer(
    workflow: Workflow, row: dict[str, Any], told: str, status: str
) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.write(**row)
    assert workflow.ask(key="o-1", owner=OTHER, returnResult=True) == {
        "proceed": False,
        "reason": told,
        "idempotencyKey": {"pk": "o-1", "sk": "ingestion"},
        "status": status,
    }


def test_who_proceeds_is_told_no_status(workflow: Workflow) -> None:
    answer = workflow.ask(key="o-1", owner=ONE, returnResult=True)
    assert sorted(answer) == ["idempotencyKey", "proceed", "reason"]


def test_a_refusal_that_names_no_row_still_is_one(workflow: Workflow) -> None:
    workflow.cloud.on(UPDATE, raises=client_error("ConditionalCheckFailedException"))
    answer = workflow.ask(key="o-1", owner=ONE, returnResult=True)
    assert (answer["proceed"], answer["reason"], answer["status"]) == (False, "duplicate", None)


# Races


def ask(workflow: Workflow, owner: str | None, answers: list[str]) -> Callable[[], None]:
    return lambda: answers.append(reason(workflow.ask(key="o-1", owner=owner)))


@pytest.mark.parametrize("row", [None, RELEASED])
@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_guards_at_once_exactly_one_proceeds(
    workflow: Workflow, row: dict[str, Any] | None, is_first: bool
) -> None:
    """The other one runs wholly before, or wholly after the first one's write, before that is answered."""
    if row is not None:
        workflow.ask(key="o-1", owner="before")
        workflow.write(**row)
    answers: list[str] = []
    other = ask(workflow, OTHER, answers)

    def write_then_other(_request: Any, effect: Callable[[], Any]) -> Any:
        answer = effect()
        other()
        return answer

    if is_first:
        workflow.cloud.on(UPDATE, answers=write_then_other, calls=[1])
    else:
        workflow.cloud.on(UPDATE, runs=other, calls=[1])
    ask(workflow, ONE, answers)()
    assert answers == (["duplicate", "claimed"] if is_first else ["claimed", "duplicate"])
    assert workflow.row()["owner"] == {"S": ONE if is_first else OTHER}


@pytest.mark.parametrize("owners", [[f"{ONE}{number}" for number in range(8)], [None] * 8])
def test_of_many_guards_in_threads_exactly_one_proceeds(workflow: Workflow, owners: list[str | None]) -> None:
    """All of them have asked before the first is answered."""
    meeting = threading.Barrier(8)
    workflow.cloud.on(UPDATE, runs=lambda: meeting.wait(60))
    answers: list[str] = []
    threads = [threading.Thread(target=ask(workflow, owner, answers)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == ["claimed", *["duplicate"] * 7]


def test_an_owner_that_asks_twice_at_once_is_one_owner(workflow: Workflow) -> None:
    """Step Functions gave up on a guard that was slow, and asked another one."""
    answers: list[str] = []
    workflow.cloud.on(UPDATE, runs=ask(workflow, ONE, answers), calls=[1])
    ask(workflow, ONE, answers)()
    assert answers == ["claimed", "claimed"]


@pytest.mark.parametrize(("row", "expected"), [(PARKED, "parked"), (COMPLETED, "duplicate")])
def test_a_slow_guard_of_the_owner_takes_back_no_outcome(
    workflow: Workflow, row: dict[str, Any], expected: str
) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.write(**row)
    before = workflow.row()
    assert reason(workflow.ask(key="o-1", owner=ONE)) == expected
    assert workflow.row() == before


def test_a_failed_call_says_why_as_a_verdict(workflow: Workflow) -> None:
    workflow.cloud.on(UPDATE, raises=client_error("ThrottlingException"))
    with pytest.raises(ClaimUnavailable) as failed:
        workflow.ask(key="o-1", owner=ONE)
    assert failed.value.verdict.outcome.value == "retry"
    assert (failed.value.verdict.reason, failed.value.verdict.detail) == (
        "throttled",
        "UpdateItem: ThrottlingException",
    )


def test_the_write_asks_for_the_row_in_its_way(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    (request,) = workflow.cloud.requests(UPDATE)
    assert (request["TableName"], request["ReturnValuesOnConditionCheckFailure"]) == (TABLE, "ALL_OLD")
