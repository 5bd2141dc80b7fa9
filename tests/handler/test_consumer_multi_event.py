"""S3 messages hold several events: each has its own id and outcome, and the message takes the worst of them."""

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
    Cloud,
    client_error,
    fixture,
    record,
    reported,
)

S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key, size: s3.object.size}"}
BODY = fixture("body_s3_put_three_objects")
KEYS = [f"in/2030/invoice-000{number}.csv" for number in (1, 2, 3)]
IDS = [f"example-invoices/{key}//0070DBD1C0000000{number}0" for number, key in enumerate(KEYS, 1)]
Metrics = Callable[[], dict[str, Any]]
Logged = Callable[[], list[tuple[str, str, str, str]]]


def body(*changes: dict[str, Any] | None) -> dict[str, Any]:
    """The message with some of its records' objects changed."""
    records = [
        {**original, "s3": {**original["s3"], "object": {**original["s3"]["object"], **(change or {})}}}
        for original, change in zip(BODY["Records"], changes, strict=True)
    ]
    return {"Records": records}


BAD = {"sequencer": None}
FOREIGN = {"id": {"S": KEYS[1]}, "owner": {"S": "somebody else"}}


@pytest.mark.case("C18")
@pytest.mark.alone
def test_each_record_of_a_message_is_an_event_of_its_own(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", BODY), **S3) == NOTHING_FAILED
    assert cloud.statuses() == dict.fromkeys(IDS, "sent")
    assert sorted(cloud.rows()) == KEYS
    assert sorted(cloud.notified()) == IDS
    assert cloud.operations == [COMMIT, COMMIT, COMMIT, PUBLISH, MARK]


@pytest.mark.case("C18")
@pytest.mark.alone
def test_message_comes_back_for_one_event_and_the_others_are_duplicates_then(cloud: Cloud, metrics: Metrics) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
    assert cloud.deliver(record("m-1", BODY), **S3) == reported("m-1")
    assert cloud.statuses() == {IDS[0]: "sent", IDS[2]: "sent"}
    assert cloud.dead_letters() == []
    metrics()
    assert cloud.deliver(record("m-1", BODY), **S3) == NOTHING_FAILED
    assert sorted(cloud.notified()) == IDS
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"]) == (1, 2)


@pytest.mark.alone
def test_message_goes_to_the_dead_letter_queue_once_all_its_events_are_settled(cloud: Cloud) -> None:
    cloud.store(BUSINESS, FOREIGN)
    assert cloud.deliver(record("m-1", body(None, None, BAD)), **S3) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, "BatchGetItem", PUBLISH, MARK, BURY]
    assert cloud.statuses() == {IDS[0]: "sent"}
    (letter,) = cloud.dead_letters()
    assert letter.body == record("m-1", body(None, None, BAD))["body"]
    # A conflict is worse than a rejection; each event's outcome stands in the detail.
    assert letter.reason == "row-exists"
    first, second, third = letter.detail.split("; ")
    assert first == "1: applied"
    assert second == "2: conflict row-exists a row of this key is stored that must not be overwritten"
    assert third.startswith("3: rejected id-missing ")


def test_detail_names_duplicates_and_superseded_events_too(cloud: Cloud) -> None:
    newer: dict[str, Any] = {**S3, "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "s3.object.sequencer"}
    cloud.deliver(record("m-1", body(None, {"sequencer": "9"}, None)), **newer)
    cloud.deliver(record("m-2", body(None, {"sequencer": "8"}, BAD)), **newer)
    (letter,) = cloud.dead_letters()
    assert letter.reason == "id-missing"
    assert letter.detail.split("; ")[:2] == ["1: duplicate", "2: superseded"]


@pytest.mark.parametrize("failing", [COMMIT, PUBLISH, MARK])
@pytest.mark.alone
def test_message_with_an_event_to_retry_is_no_dead_letter_yet(cloud: Cloud, failing: str) -> None:
    cloud.on(failing, raises=client_error("InternalServerError", failing), calls=[1])
    message = record("m-1", body(None, BAD, None))
    assert cloud.deliver(message, **S3) == reported("m-1")
    assert cloud.dead_letters() == []
    assert cloud.deliver(message, **S3) == NOTHING_FAILED
    assert cloud.reasons() == ["id-missing"]
    assert cloud.statuses() == {IDS[0]: "sent", IDS[2]: "sent"}


def test_dead_letter_is_sent_after_the_publish_of_the_message(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", body(BAD, None, None)), **S3)
    assert cloud.operations[-3:] == [PUBLISH, MARK, BURY]


def test_dead_letter_that_cannot_be_sent_reports_the_message_though_its_events_are_settled(cloud: Cloud) -> None:
    cloud.on(BURY, raises=client_error("InternalError", BURY), calls=[1])
    message = record("m-1", body(None, BAD, None))
    assert cloud.deliver(message, **S3) == reported("m-1")
    assert cloud.statuses() == {IDS[0]: "sent", IDS[2]: "sent"}
    assert cloud.deliver(message, **S3) == NOTHING_FAILED
    assert sorted(cloud.notified()) == [IDS[0], IDS[2]]
    assert cloud.reasons() == ["id-missing"]


def test_one_partly_failed_publish_holds_its_message_back(cloud: Cloud) -> None:
    cloud.on(
        PUBLISH,
        answers={
            "Successful": [{"Id": "0"}, {"Id": "2"}],
            "Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}],
        },
    )
    assert cloud.deliver(record("m-1", BODY), **S3) == reported("m-1")
    assert cloud.statuses() == {IDS[0]: "sent", IDS[1]: "pending", IDS[2]: "sent"}


@pytest.mark.alone
def test_other_messages_of_the_batch_are_not_touched(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
    single = fixture("body_s3_put_percent_key")
    assert cloud.deliver(record("m-1", BODY), record("m-2", single), **S3) == reported("m-1")
    assert len(cloud.statuses()) == 3
    assert set(cloud.statuses().values()) == {"sent"}


def test_same_event_twice_in_one_message_is_published_once(cloud: Cloud, metrics: Metrics) -> None:
    twice = {"Records": [BODY["Records"][0], BODY["Records"][0]]}
    assert cloud.deliver(record("m-1", twice), **S3) == NOTHING_FAILED
    assert cloud.notified() == [IDS[0]]
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"]) == (1, 1)


def test_malformed_record_is_rejected_alone(cloud: Cloud) -> None:
    message = {"Records": [BODY["Records"][0], {"x": 1}, "text", BODY["Records"][2]]}
    assert cloud.deliver(record("m-1", message), **S3) == NOTHING_FAILED
    assert cloud.statuses() == {IDS[0]: "sent", IDS[2]: "sent"}
    (letter,) = cloud.dead_letters()
    assert letter.reason == "not-an-s3-notification"
    assert letter.detail.split("; ")[3] == "4: applied"


def test_all_events_rejected_is_one_dead_letter(cloud: Cloud, metrics: Metrics, logged: Logged) -> None:
    assert cloud.deliver(record("m-1", body(BAD, BAD, BAD)), **S3) == NOTHING_FAILED
    assert len(cloud.dead_letters()) == 1
    assert metrics()["Rejected"] == 3
    assert logged() == [("m-1", "rejected", "id-missing", "")]


def test_dead_message_is_logged_once_with_the_event_that_decided(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.store(BUSINESS, FOREIGN)
    cloud.deliver(record("m-1", body(None, None, BAD)), **S3)
    (entry,) = [entry.__dict__ for entry in caplog.records if "outcome" in entry.__dict__]
    assert (entry["message_id"], entry["event_id"], entry["reason"]) == ("m-1", IDS[1], "row-exists")


def test_redelivered_message_with_a_rejected_event_is_dead_lettered_again_and_settles(cloud: Cloud) -> None:
    """The function died after the send: a second copy is the price of losing none."""
    message = record("m-1", body(None, BAD, None))
    cloud.deliver(message, **S3)
    assert cloud.deliver(message, **S3) == NOTHING_FAILED
    assert len(cloud.dead_letters()) == 2
    assert sorted(cloud.notified()) == [IDS[0], IDS[2]]


def test_dead_message_of_500_bad_events_is_one_line_in_the_log(cloud: Cloud, logged: Logged, metrics: Metrics) -> None:
    message = record("m-1", {"Records": [0] * 500})
    assert cloud.deliver(message, record("m-2", fixture("body_s3_put_percent_key")), **S3) == NOTHING_FAILED
    assert logged() == [("m-1", "rejected", "not-an-s3-notification", "")]
    assert cloud.reasons() == ["not-an-s3-notification"]
    counted = metrics()
    assert (counted["Rejected"], counted["Applied"]) == (500, 1)


def test_message_of_1000_records_is_still_opened(cloud: Cloud, metrics: Metrics) -> None:
    assert cloud.deliver(record("m-1", {"Records": [0] * 1_000}), **S3) == NOTHING_FAILED
    assert cloud.reasons() == ["not-an-s3-notification"]
    assert metrics()["Rejected"] == 1_000


@pytest.mark.parametrize("records", [1_001, 120_000])
def test_message_of_more_records_than_can_be_processed_is_one_rejection(
    cloud: Cloud, records: int, logged: Logged, metrics: Metrics
) -> None:
    message = record("m-1", {"Records": [0] * records})
    assert cloud.deliver(message, record("m-2", BODY), **S3) == NOTHING_FAILED
    assert logged() == [("m-1", "rejected", "too-many-events", "")]
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.body) == ("too-many-events", message["body"])
    assert letter.detail == f"the body has {records} Records, over 1000"
    assert cloud.statuses() == dict.fromkeys(IDS, "sent")
    assert metrics()["Rejected"] == 1
