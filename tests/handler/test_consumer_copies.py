"""One event id in several messages of a batch: one row, one publish, and no message deleted too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.handler.support import (
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    READ,
    Cloud,
    client_error,
    record,
    reported,
)

ORDER = {"id": "o-1", "amount": 10}
Metrics = Callable[[], dict[str, Any]]


@pytest.mark.case("C30")
@pytest.mark.parametrize("copies", [2, 3])
def test_copies_are_committed_and_published_once(cloud: Cloud, copies: int, metrics: Metrics) -> None:
    assert cloud.deliver(*(record(f"m-{number}", ORDER) for number in range(copies))) == NOTHING_FAILED
    assert cloud.operations == [COMMIT] * copies + [PUBLISH, MARK]
    assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]
    assert len(cloud.requests(PUBLISH)[0]["PublishBatchRequestEntries"]) == 1
    counted = metrics()
    assert (counted["Applied"], counted["Resumed"], counted["Duplicates"]) == (1, 0, copies - 1)
    assert cloud.ledger()["o-1"]["message_id"] == {"S": "m-0"}


def test_copies_of_a_pending_event_are_published_once(cloud: Cloud, metrics: Metrics) -> None:
    cloud.commit_without_publishing(record("m-0", ORDER))
    assert cloud.deliver(record("m-1", ORDER), record("m-2", ORDER)) == NOTHING_FAILED
    assert cloud.history == [("published", "o-1"), ("marked", "o-1")]
    counted = metrics()
    assert (counted["Applied"], counted["Resumed"], counted["Duplicates"]) == (0, 1, 1)


def test_copies_of_a_sent_event_are_duplicates(cloud: Cloud, metrics: Metrics) -> None:
    cloud.deliver(record("m-0", ORDER))
    metrics()
    assert cloud.deliver(record("m-1", ORDER), record("m-2", ORDER)) == NOTHING_FAILED
    assert metrics()["Duplicates"] == 2
    assert cloud.notified() == ["o-1"]


def test_copies_without_a_topic_are_duplicates(cloud: Cloud, metrics: Metrics) -> None:
    assert cloud.deliver(record("m-1", ORDER), record("m-2", ORDER), TOPIC_ARN=None) == NOTHING_FAILED
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"]) == (1, 1)


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_all_copies_are_reported_when_the_publish_or_the_marking_fails(cloud: Cloud, operation: str) -> None:
    cloud.on(operation, raises=client_error("InternalError", operation))
    answer = cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"}), record("m-3", ORDER))
    assert answer == reported("m-1", "m-2", "m-3")
    assert cloud.statuses() == {"o-1": "pending", "o-2": "pending"}


def test_copies_are_reported_with_the_entry_that_failed(cloud: Cloud) -> None:
    failed = {"Id": "0", "Code": "InternalError", "SenderFault": False}
    cloud.on(PUBLISH, answers={"Successful": [{"Id": "1"}], "Failed": [failed]})
    answer = cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"}), record("m-3", ORDER))
    assert answer == reported("m-1", "m-3")
    assert cloud.statuses() == {"o-1": "pending", "o-2": "sent"}


def test_copy_is_committed_when_the_first_attempt_could_not(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert cloud.deliver(record("m-1", ORDER), record("m-2", ORDER)) == reported("m-1")
    assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]
    assert cloud.ledger()["o-1"]["message_id"] == {"S": "m-2"}


@pytest.mark.case("C47")
def test_same_id_with_other_content_in_one_batch_is_a_conflict(cloud: Cloud, metrics: Metrics) -> None:
    other = {"id": "o-1", "amount": 99}
    assert cloud.deliver(record("m-1", ORDER), record("m-2", other), record("m-3", ORDER)) == NOTHING_FAILED
    assert cloud.rows()["o-1"]["amount"] == {"N": "10"}
    assert cloud.notified() == ["o-1"]
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
        ('{"id":"o-1","amount":99}', "id-reused")
    ]
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"], counted["Conflicts"]) == (1, 1, 1)


def test_conflict_is_dead_lettered_though_the_publish_of_its_namesake_fails(cloud: Cloud) -> None:
    cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH))
    assert cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-1", "amount": 99})) == reported("m-1")
    assert cloud.reasons() == ["id-reused"]


def test_valid_event_is_committed_after_a_rejected_one_of_its_id(cloud: Cloud) -> None:
    rejected = {"id": "o-1", "event_id": "another"}
    assert cloud.deliver(record("m-1", rejected), record("m-2", ORDER)) == NOTHING_FAILED
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
        ('{"id":"o-1","event_id":"another"}', "reserved-attribute")
    ]
    assert cloud.statuses() == {"o-1": "sent"}
    assert cloud.rows()["o-1"]["amount"] == {"N": "10"}


def test_rejected_event_after_a_committed_one_of_its_id_is_a_conflict(cloud: Cloud) -> None:
    rejected = {"id": "o-1", "event_id": "another"}
    assert cloud.deliver(record("m-1", ORDER), record("m-2", rejected)) == NOTHING_FAILED
    assert cloud.count(READ) == 1
    assert cloud.reasons() == ["id-reused"]
    assert cloud.notified() == ["o-1"]


def test_copies_far_apart_in_a_large_batch_are_published_once(cloud: Cloud, metrics: Metrics) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number % 30}"}) for number in range(60)]
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert len(cloud.notified()) == 30
    counted = metrics()
    assert (counted["Applied"], counted["Resumed"], counted["Duplicates"]) == (30, 0, 30)


@pytest.mark.alone
def test_failed_publish_of_a_large_batch_is_made_up_for_by_a_later_copy(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number % 30}"}) for number in range(31)]
    failed = {"Id": "0", "Code": "InternalError", "SenderFault": False}
    others = [{"Id": str(number)} for number in range(1, 10)]
    cloud.on(PUBLISH, answers={"Successful": others, "Failed": [failed]}, calls=[1])
    # m-30 is a copy of m-0 and comes to its turn after m-0's publish has failed.
    assert cloud.deliver(*batch) == reported("m-0")
    assert cloud.statuses()["o-0"] == "sent"
    assert cloud.notified().count("o-0") == 1
    assert cloud.deliver(batch[0]) == NOTHING_FAILED
    assert cloud.notified().count("o-0") == 1
