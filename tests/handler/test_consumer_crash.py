"""The process dies, or the network fails, at any AWS call, before or after its effect: what comes back settles all.

The same batch is run once for every call that it makes. After each run, what was not deleted is delivered again
until nothing is left, and then the invariants of the design must hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    MARK,
    PUBLISH,
    READ,
    Cloud,
    Killed,
    client_error,
    record,
)

NewCloud = Callable[..., Cloud]
Record = dict[str, Any]
CLOSED = ConnectionClosedError(endpoint_url="https://aws.example")
S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}", "EVENT_ID": "s3.object.key"}

# Each fault with whether the call takes effect all the same.
FAULTS: dict[str, tuple[BaseException, bool]] = {
    "killed before": (Killed(), False),
    "killed after": (Killed(), True),
    "request lost": (CLOSED, False),
    "answer lost": (CLOSED, True),
    "denied": (client_error("AccessDeniedException"), False),
}


def s3_body(*keys: str | None) -> dict[str, Any]:
    return {"Records": [{"s3": {"object": {"key": key}}} for key in keys]}


@dataclass
class Scenario:
    """A batch, what is there before it, and what must be there after it.

    done: the events that must be in the database in the end; the others must not. dead: message ids. before:
    what was published and marked already.
    """

    records: list[Record]
    prepare: Callable[[Cloud], None]
    done: set[str]
    dead: set[str]
    before: set[str] = field(default_factory=set)
    settings: dict[str, Any] = field(default_factory=dict)
    is_fifo: bool = False

    def cloud(self, new_cloud: NewCloud) -> Cloud:
        cloud = new_cloud(fifo_queue=self.is_fifo)
        self.prepare(cloud)
        cloud.heal()
        cloud.forget()
        return cloud


def standard() -> Scenario:
    """S3 messages: new, pending, sent, a copy, poison, an id used again, a mixed message, a message of three."""

    def prepare(cloud: Cloud) -> None:
        cloud.commit_without_publishing(record("old-1", s3_body("pending")), **S3)
        cloud.deliver(record("old-2", s3_body("sent")), **S3)
        cloud.store(BUSINESS, {"id": {"S": "foreign"}, "owner": {"S": "somebody else"}})

    reused = s3_body("sent")
    reused["Records"][0]["size"] = 1
    return Scenario(
        records=[
            record("m-new", s3_body("new")),
            record("m-pending", s3_body("pending")),
            record("m-sent", s3_body("sent")),
            record("m-copy", s3_body("new")),
            record("m-poison", "poison"),
            record("m-reused", reused),
            record("m-three", s3_body("three-1", "three-2", "three-3")),
            record("m-mixed", s3_body("mixed-1", None, "foreign")),
            record("m-test", {"Event": "s3:TestEvent"}),
        ],
        prepare=prepare,
        done={"new", "pending", "sent", "three-1", "three-2", "three-3", "mixed-1"},
        dead={"m-poison", "m-reused", "m-mixed"},
        before={"sent"},
        settings=S3,
    )


def small() -> Scenario:
    """One new event and one poisonous message: few calls, so that each pair of them can fail."""
    return Scenario(
        records=[record("m-new", {"id": "new"}), record("m-poison", "poison"), record("m-copy", {"id": "new"})],
        prepare=lambda cloud: None,
        done={"new"},
        dead={"m-poison"},
    )


def fifo() -> Scenario:
    """Two groups, each with poison in its middle; one event of each is pending or sent already."""

    def of(message_id: str, body: Any, group: str) -> Record:
        return record(message_id, body, group=group)

    def prepare(cloud: Cloud) -> None:
        cloud.commit_without_publishing(of("a-1", {"id": "a-1"}, "a"))
        cloud.deliver(of("b-1", {"id": "b-1"}, "b"))

    return Scenario(
        records=[
            of("a-1", {"id": "a-1"}, "a"),
            of("a-2", {"id": "a-2"}, "a"),
            of("b-1", {"id": "b-1"}, "b"),
            of("a-3", "poison a-3", "a"),
            of("b-2", {"id": "b-1", "other": True}, "b"),
            of("a-4", {"id": "a-4"}, "a"),
            of("b-3", {"id": "b-3"}, "b"),
            of("a-5", {"id": "a-2"}, "a"),
        ],
        prepare=prepare,
        done={"a-1", "a-2", "a-4", "b-1", "b-3"},
        dead={"a-3", "b-2"},
        before={"b-1"},
        is_fifo=True,
    )


class Queue:
    """What the poller does with the answers: deletes, or delivers again; and what must hold after each of them."""

    def __init__(self, scenario: Scenario, cloud: Cloud) -> None:
        self._scenario = scenario
        self._cloud = cloud
        self.left = list(scenario.records)

    def deliver(self) -> None:
        try:
            answer = self._cloud.deliver(*self.left, **self._scenario.settings)
        except (Killed, Misconfigured):
            self._check_pending()
            return
        assert set(answer) == {"batchItemFailures"}
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        assert failed == [message["messageId"] for message in self.left if message["messageId"] in failed]
        if self._scenario.is_fifo:
            self._check_groups(failed)
        self._check_pending()
        self._check_deleted(failed)
        self.left = [message for message in self.left if message["messageId"] in failed]

    def until_empty(self, tries: int = 6) -> None:
        for _ in range(tries):
            if not self.left:
                return
            self.deliver()
        assert self.left == []

    def _check_pending(self) -> None:
        """I4: a pending row has its notification and no ttl, a sent row the opposite."""
        for row in self._cloud.ledger().values():
            is_pending = row["status"] == {"S": "pending"}
            assert ("notification" in row, "ttl" in row) == (is_pending, not is_pending)

    def _check_deleted(self, failed: list[str]) -> None:
        """I3: a message is deleted only if its events are settled, or its body and reason are in the DLQ."""
        statuses = self._cloud.statuses()
        buried = {letter.body for letter in self._cloud.dead_letters() if letter.reason}
        for message in self.left:
            if message["messageId"] not in failed and message["body"] not in buried:
                assert {statuses.get(event_id) for event_id in event_ids(message)} <= {"sent"}

    def _check_groups(self, failed: list[str]) -> None:
        """I6: once a message is reported, all later ones of its group are."""
        held: set[str] = set()
        for message in self.left:
            group = message["attributes"]["MessageGroupId"]
            if message["messageId"] in failed:
                held.add(group)
            assert group not in held or message["messageId"] in failed


def event_ids(message: Record) -> set[str]:
    if message["body"].startswith("poison"):
        return set()
    body = json.loads(message["body"])
    if "id" in body:
        return {body["id"]}
    return {entry["s3"]["object"]["key"] for entry in body.get("Records", [])}


def check_invariants(scenario: Scenario, cloud: Cloud) -> None:
    """What must hold once everything is settled."""
    happened = cloud.history
    committed = [event_id for what, event_id in happened if what == "committed"]
    # I1: committed once; what was there before is not committed again.
    assert len(committed) == len(set(committed))
    assert cloud.statuses() == dict.fromkeys(scenario.done, "sent")
    own_rows = {key for key, row in cloud.rows().items() if "event_id" in row}
    assert own_rows == scenario.done
    # I2: published before it is marked. Nothing lost: each is published at least once.
    for event_id in scenario.done - scenario.before:
        assert happened.index(("published", event_id)) < happened.index(("marked", event_id))
    assert set(cloud.notified()) == scenario.done
    # I3, I5: what can never succeed is in the dead-letter queue, and nothing else is.
    bodies = {message["body"] for message in scenario.records if message["messageId"] in scenario.dead}
    assert {letter.body for letter in cloud.dead_letters()} == bodies
    if scenario.is_fifo:
        check_order(scenario, cloud)


def check_order(scenario: Scenario, cloud: Cloud) -> None:
    """I6: in each group, commits and dead letters come in the order of the queue."""
    for group in ("a", "b"):
        messages = [message for message in scenario.records if message["attributes"]["MessageGroupId"] == group]
        effects: list[str] = []
        for what, which in cloud.history:
            if what == "committed" and which.startswith(group):
                effects.append(which)
            if what == "dead-lettered" and which in [message["body"] for message in messages] and which not in effects:
                effects.append(which)
        in_order = [
            effect
            for message in messages
            for effect in (message["body"], *event_ids(message))
            if effect in effects and (effect != message["body"] or message["messageId"] in scenario.dead)
        ]
        assert effects == list(dict.fromkeys(in_order))


def calls_of(scenario: Scenario, new_cloud: NewCloud) -> range:
    """The numbers of the calls that the batch makes where nothing fails."""
    cloud = scenario.cloud(new_cloud)
    queue = Queue(scenario, cloud)
    queue.deliver()
    assert queue.left == []
    check_invariants(scenario, cloud)
    return range(1, len(cloud.calls) + 1)


def play(scenario: Scenario, new_cloud: NewCloud, *faults: tuple[str, int]) -> None:
    """Deliver until all is settled, with these faults at these calls, and check what must hold then."""
    cloud = scenario.cloud(new_cloud)
    for fault, call in faults:
        error, takes_effect = FAULTS[fault]
        cloud.on("*", raises=error, after=takes_effect, calls=[call])
    Queue(scenario, cloud).until_empty()
    check_invariants(scenario, cloud)


@pytest.mark.alone
def test_batches_hold_what_they_are_meant_to_hold(new_cloud: NewCloud) -> None:
    scenario = standard()
    cloud = scenario.cloud(new_cloud)
    Queue(scenario, cloud).deliver()
    assert {operation: cloud.count(operation) for operation in (COMMIT, READ, PUBLISH, MARK, BURY)} == {
        COMMIT: 10,
        READ: 1,
        PUBLISH: 1,
        MARK: 1,
        BURY: 3,
    }
    assert sorted(cloud.notified()) == sorted(scenario.done)


@pytest.mark.case("C28", "C61", "C62")
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_at_any_call_of_a_standard_batch_is_made_good(new_cloud: NewCloud, fault: str) -> None:
    scenario = standard()
    for call in calls_of(scenario, new_cloud):
        play(scenario, new_cloud, (fault, call))


@pytest.mark.case("C04", "C61", "C62")
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_at_any_call_of_a_fifo_batch_is_made_good_in_order(new_cloud: NewCloud, fault: str) -> None:
    scenario = fifo()
    for call in calls_of(scenario, new_cloud):
        play(scenario, new_cloud, (fault, call))


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("killed after", "killed before"),
        ("killed after", "killed after"),
        ("answer lost", "killed after"),
        ("killed before", "answer lost"),
    ],
)
def test_second_fault_during_the_redelivery_is_made_good_too(new_cloud: NewCloud, first: str, second: str) -> None:
    scenario = small()
    calls = calls_of(scenario, new_cloud)
    for one in calls:
        for two in calls:
            play(scenario, new_cloud, (first, one), (second, one + two))


@pytest.mark.parametrize("operation", [COMMIT, PUBLISH, MARK, BURY])
def test_long_outage_of_one_call_loses_nothing(new_cloud: NewCloud, operation: str) -> None:
    scenario = standard()
    cloud = scenario.cloud(new_cloud)
    cloud.on(operation, raises=client_error("InternalServerError"))
    queue = Queue(scenario, cloud)
    for _ in range(3):
        queue.deliver()
        assert queue.left != []
    cloud.heal()
    queue.until_empty()
    check_invariants(scenario, cloud)
