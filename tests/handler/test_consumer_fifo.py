"""FIFO: within a group, database effects follow the queue's order; other groups and standard queues do not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    READ,
    Cloud,
    Context,
    cancelled,
    client_error,
    fixture,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]


def order(number: int, group: str = "g", **more: Any) -> dict[str, Any]:
    return record(f"m-{number}", {"id": f"o-{number}", **more}, group=group)


def poison(number: int, group: str = "g") -> dict[str, Any]:
    return record(f"m-{number}", f"poison {number}", group=group)


def test_events_of_a_group_are_committed_in_the_order_of_the_queue(fifo_cloud: Cloud) -> None:
    assert fifo_cloud.deliver(*(order(number) for number in (3, 1, 2))) == NOTHING_FAILED
    committed = [event_id for what, event_id in fifo_cloud.history if what == "committed"]
    assert committed == ["o-3", "o-1", "o-2"]
    assert set(fifo_cloud.statuses().values()) == {"sent"}


@pytest.mark.case("C59")
def test_event_sent_again_after_the_five_minutes_of_the_queue_is_a_duplicate(fifo_cloud: Cloud) -> None:
    fifo_cloud.deliver(order(1))
    again = record("m-2", {"id": "o-1"}, group="g")
    assert fifo_cloud.deliver(again) == NOTHING_FAILED
    assert fifo_cloud.notified() == ["o-1"]
    assert fifo_cloud.dead_letters() == []


# A record that must be tried again


@pytest.mark.case("C04")
@pytest.mark.alone
def test_record_to_retry_blocks_all_that_follow_in_its_group(
    fifo_cloud: Cloud, metrics: Metrics, logged: Logged
) -> None:
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[3])
    assert fifo_cloud.deliver(*(order(number) for number in (1, 2, 3, 4, 5))) == {
        "batchItemFailures": [{"itemIdentifier": "m-3"}, {"itemIdentifier": "m-4"}, {"itemIdentifier": "m-5"}]
    }
    assert fifo_cloud.count(COMMIT) == 3
    assert fifo_cloud.statuses() == {"o-1": "sent", "o-2": "sent"}
    counted = metrics()
    assert (counted["Applied"], counted["Retries"], counted["Blocked"]) == (2, 1, 2)
    assert ("m-3", "retry", "unavailable", "TransactWriteItems: InternalServerError") in logged()


@pytest.mark.case("C04", "C06")
@pytest.mark.alone
def test_blocked_records_are_processed_when_they_come_again(fifo_cloud: Cloud) -> None:
    consumer = fifo_cloud.consumer()
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    batch = {"Records": [order(1), order(2)]}
    assert consumer.handle(batch, Context(fifo_cloud)) == reported("m-1", "m-2")
    assert consumer.handle(batch, Context(fifo_cloud)) == NOTHING_FAILED
    assert [event_id for what, event_id in fifo_cloud.history if what == "committed"] == ["o-1", "o-2"]


@pytest.mark.alone
def test_groups_do_not_wait_for_each_other(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    answer = fifo_cloud.deliver(order(1, "a"), order(2, "b"), order(3, "a"), order(4, "b"))
    assert answer == reported("m-1", "m-3")
    assert fifo_cloud.statuses() == {"o-2": "sent", "o-4": "sent"}


def test_poison_behind_a_record_to_retry_stays_in_the_queue(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert fifo_cloud.deliver(order(1), poison(2), order(3)) == reported("m-1", "m-2", "m-3")
    assert fifo_cloud.operations == [COMMIT]
    assert fifo_cloud.dead_letters() == []


@pytest.mark.alone
def test_pending_event_behind_a_record_to_retry_stays_pending(fifo_cloud: Cloud) -> None:
    fifo_cloud.commit_without_publishing(order(2))
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert fifo_cloud.deliver(order(1), order(2)) == reported("m-1", "m-2")
    assert fifo_cloud.statuses() == {"o-2": "pending"}
    assert fifo_cloud.notifications() == []


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_record_whose_publish_fails_takes_all_later_ones_along_committed_or_not(
    fifo_cloud: Cloud, operation: str
) -> None:
    fifo_cloud.deliver(order(3))
    fifo_cloud.forget()
    fifo_cloud.on(operation, raises=client_error("InternalError", operation))
    # m-3 is a duplicate by now and would be settled; m-5 is of another group.
    answer = fifo_cloud.deliver(order(1), order(2), order(3), poison(4), record("m-5", {"id": "o-3"}, group="h"))
    assert answer == reported("m-1", "m-2", "m-3", "m-4")


def test_partly_failed_publish_reports_the_later_ones_of_its_group_only(fifo_cloud: Cloud) -> None:
    def answer(request: dict[str, Any], _effect: Callable[[], Any]) -> dict[str, Any]:
        failed = {"Id": "1", "Code": "InternalError", "SenderFault": False}
        return {"Successful": [{"Id": "0"}, {"Id": "2"}, {"Id": "3"}], "Failed": [failed]}

    fifo_cloud.on(PUBLISH, answers=answer, calls=[1])
    batch = [order(1, "a"), order(2, "a"), order(3, "a"), order(4, "b")]
    assert fifo_cloud.deliver(*batch) == reported("m-2", "m-3")
    assert fifo_cloud.statuses() == {"o-1": "sent", "o-2": "pending", "o-3": "sent", "o-4": "sent"}
    assert fifo_cloud.deliver(*batch[1:3]) == NOTHING_FAILED
    assert set(fifo_cloud.statuses().values()) == {"sent"}


def test_record_before_the_one_whose_publish_fails_is_deleted(fifo_cloud: Cloud) -> None:
    fifo_cloud.deliver(order(1))
    fifo_cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH))
    assert fifo_cloud.deliver(order(1), order(2), order(3)) == reported("m-2", "m-3")


@pytest.mark.alone
def test_fault_of_our_own_blocks_its_group(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(COMMIT, raises=TypeError("text"), calls=[2])
    answer = fifo_cloud.deliver(order(1, "a"), order(2, "a"), order(3, "a"), order(4, "b"))
    assert answer == reported("m-2", "m-3")
    assert fifo_cloud.statuses() == {"o-1": "sent", "o-4": "sent"}


# A record that can never succeed


def test_dead_letter_is_sent_before_the_next_event_of_the_group_is_committed(fifo_cloud: Cloud) -> None:
    assert fifo_cloud.deliver(order(1), poison(2), order(3)) == NOTHING_FAILED
    assert fifo_cloud.operations == [COMMIT, BURY, COMMIT, PUBLISH, MARK]
    assert fifo_cloud.history[:3] == [("committed", "o-1"), ("dead-lettered", "poison 2"), ("committed", "o-3")]
    assert [(letter.body, letter.group, letter.deduplication_id) for letter in fifo_cloud.dead_letters()] == [
        ("poison 2", "g", "m-2")
    ]


@pytest.mark.alone
def test_conflict_is_sent_before_the_next_event_of_the_group_is_committed(fifo_cloud: Cloud) -> None:
    fifo_cloud.store(BUSINESS, {"id": {"S": "o-2"}, "owner": {"S": "somebody else"}})
    assert fifo_cloud.deliver(order(1), order(2), order(3)) == NOTHING_FAILED
    assert fifo_cloud.operations == [COMMIT, COMMIT, READ, BURY, COMMIT, PUBLISH, MARK]
    assert fifo_cloud.reasons() == ["row-exists"]


def test_dead_letter_that_cannot_be_sent_blocks_its_group_and_no_other(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(BURY, raises=client_error("InternalError", BURY))
    answer = fifo_cloud.deliver(order(1, "a"), poison(2, "a"), order(3, "a"), order(4, "b"))
    assert answer == reported("m-2", "m-3")
    assert fifo_cloud.statuses() == {"o-1": "sent", "o-4": "sent"}
    fifo_cloud.heal()
    assert fifo_cloud.deliver(poison(2, "a"), order(3, "a")) == NOTHING_FAILED
    assert fifo_cloud.reasons() == ["bad-json"]
    assert fifo_cloud.statuses() == {"o-1": "sent", "o-3": "sent", "o-4": "sent"}


def test_dead_letter_that_cannot_be_sent_is_tried_once_an_invocation(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(BURY, raises=client_error("InternalError", BURY))
    fifo_cloud.deliver(poison(1), poison(2), order(3))
    assert fifo_cloud.operations == [BURY]


def test_dead_letter_that_does_not_fit_blocks_its_group(fifo_cloud: Cloud) -> None:
    ten = {f"a-{number}": {"stringValue": "x", "dataType": "String"} for number in range(10)}
    crowded = record("m-1", "poison", group="g", attributes=ten)
    assert fifo_cloud.deliver(crowded, order(2)) == reported("m-1", "m-2")
    assert fifo_cloud.statuses() == {}


def test_dead_lettered_record_behind_a_failed_publish_is_reported_and_then_dropped_by_the_queue(
    fifo_cloud: Cloud,
) -> None:
    fifo_cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH), calls=[1])
    batch = [order(1), poison(2), order(3)]
    assert fifo_cloud.deliver(*batch) == reported("m-1", "m-2", "m-3")
    assert fifo_cloud.deliver(*batch) == NOTHING_FAILED
    assert len(fifo_cloud.dead_letters()) == 1
    assert sorted(fifo_cloud.notified()) == ["o-1", "o-3"]


@pytest.mark.parametrize("reason", ["ThrottlingError", "TransactionConflict"])
def test_throttled_head_is_tried_again_before_its_group_goes_on(fifo_cloud: Cloud, reason: str) -> None:
    fifo_cloud.on(COMMIT, raises=cancelled(reason, "None"), calls=[1])
    assert fifo_cloud.deliver(order(1), order(2)) == NOTHING_FAILED
    assert [event_id for what, event_id in fifo_cloud.history if what == "committed"] == ["o-1", "o-2"]


def test_superseded_and_duplicate_events_let_their_group_go_on(fifo_cloud: Cloud) -> None:
    newer: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}
    fifo_cloud.deliver(record("m-0", {"id": "s-1", "event": "e-2", "version": 2}, group="g"), **newer)
    answer = fifo_cloud.deliver(
        record("m-1", {"id": "s-1", "event": "e-1", "version": 1}, group="g"),
        record("m-2", {"id": "s-1", "event": "e-2", "version": 2}, group="g"),
        record("m-3", {"id": "s-1", "event": "e-3", "version": 3}, group="g"),
        **newer,
    )
    assert answer == NOTHING_FAILED
    assert fifo_cloud.statuses() == {"e-1": "sent", "e-2": "sent", "e-3": "sent"}
    assert fifo_cloud.rows()["s-1"]["event_version"] == {"N": "3"}


def test_misconfigured_head_with_its_blocked_group_raises(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(COMMIT, raises=client_error("AccessDeniedException"))
    with pytest.raises(RuntimeError):
        fifo_cloud.deliver(order(1), order(2))
    assert fifo_cloud.count(COMMIT) == 1


@pytest.mark.alone
def test_real_records_of_a_fifo_queue_are_settled_group_by_group(fifo_cloud: Cloud) -> None:
    records = fixture("sqs_fifo")["Records"]
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    # The first and the third are of customer-42, the second of customer-43.
    assert fifo_cloud.deliver(*records) == reported(
        "429bc47d-bb72-5ebe-88aa-7ca8d2942fee", "e361aaa7-9cde-535b-9a78-536773018a47"
    )
    assert fifo_cloud.statuses() == {"order-7002": "sent"}


# A message of several events, forwarded into a FIFO queue


S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}


def s3_body(*keys: str | None) -> dict[str, Any]:
    return {"Records": [{"s3": {"bucket": {"name": "b"}, "object": {"key": key, "sequencer": "1"}}} for key in keys]}


@pytest.mark.alone
def test_event_to_retry_blocks_the_later_events_of_its_message(fifo_cloud: Cloud) -> None:
    fifo_cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
    message = record("m-1", s3_body("a", "b", "c"), group="g")
    assert fifo_cloud.deliver(message, record("m-2", s3_body("d"), group="g"), **S3) == reported("m-1", "m-2")
    assert fifo_cloud.statuses() == {"b/a//1": "sent"}
    assert fifo_cloud.deliver(message, record("m-2", s3_body("d"), group="g"), **S3) == NOTHING_FAILED
    committed = [event_id for what, event_id in fifo_cloud.history if what == "committed"]
    assert committed == ["b/a//1", "b/b//1", "b/c//1", "b/d//1"]


def test_dead_event_at_the_end_of_a_message_holds_the_group_until_it_is_dead_lettered(fifo_cloud: Cloud) -> None:
    message = record("m-1", s3_body("a", None), group="g")
    answer = fifo_cloud.deliver(message, record("m-2", s3_body("d"), group="g"), **S3)
    # The first event has to be published before the message may go, so the next message waits.
    assert answer == reported("m-2")
    assert fifo_cloud.operations == [COMMIT, PUBLISH, MARK, BURY]
    assert fifo_cloud.deliver(record("m-2", s3_body("d"), group="g"), **S3) == NOTHING_FAILED


def test_dead_event_before_others_of_its_message_leaves_them_to_the_redrive_policy(fifo_cloud: Cloud) -> None:
    """Its message cannot go to the dead-letter queue alone, and what follows must not overtake it."""
    message = record("m-1", s3_body(None, "b"), group="g")
    assert fifo_cloud.deliver(message, record("m-2", s3_body("c"), group="g"), **S3) == reported("m-1", "m-2")
    assert fifo_cloud.operations == []
    assert fifo_cloud.ledger() == {}


@pytest.mark.alone
def test_group_that_is_held_in_the_first_part_of_a_large_batch_is_held_in_the_next(fifo_cloud: Cloud) -> None:
    """Lambda hands over ten records of a FIFO queue at most; the order must not hang on that."""
    fifo_cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH), calls=[1])
    batch = [order(number) for number in range(30)]
    assert fifo_cloud.deliver(*batch) == reported(*(f"m-{number}" for number in range(30)))
    assert fifo_cloud.count(COMMIT) == 25
    assert fifo_cloud.deliver(*batch) == NOTHING_FAILED
    committed = [event_id for what, event_id in fifo_cloud.history if what == "committed"]
    assert committed == [f"o-{number}" for number in range(30)]


# A standard queue


@pytest.mark.alone
def test_record_to_retry_blocks_nothing_on_a_standard_queue(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert cloud.deliver(record("m-1", {"id": "o-1"}), record("m-2", {"id": "o-2"})) == reported("m-1")
    assert cloud.statuses() == {"o-2": "sent"}


@pytest.mark.alone
def test_message_group_of_a_fair_queue_is_no_order(cloud: Cloud) -> None:
    records = fixture("sqs_standard_fair")["Records"]
    for fair in records:
        fair["attributes"]["MessageGroupId"] = "one-tenant"
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert cloud.deliver(*records) == reported("7b2a3ea9-ca0a-5230-82f4-e35bde3ce0f4")
    assert cloud.statuses() == {"order-7002": "sent"}


def test_group_of_a_fair_queue_is_not_the_group_on_a_fifo_topic(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_topic=True)
    cloud.deliver(fixture("sqs_standard_fair")["Records"][0])
    (notification,) = cloud.notifications()
    assert notification.group == notification.deduplication_id
