"""Publishing: only what was answered as published counts, and one bad entry does not hold up the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from idempotent_consumer.calls import ATTEMPTS, Budget
from idempotent_consumer.outbox import MAX_BATCH_BYTES, MAX_ENTRIES, Outbox
from tests.handler.support import (
    BUSINESS,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    Cloud,
    Context,
    Notification,
    client_error,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]
Answer = Callable[[dict[str, Any], Callable[[], Any]], Any]

URL = "https://sns.us-east-1.amazonaws.com/"
ORDERS = [record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)]


def failed_entries(codes: dict[str, str | None]) -> Answer:
    """The entries of these events fail; with None for a code the answer does not mention them."""

    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> dict[str, Any]:
        entries = request["PublishBatchRequestEntries"]
        bad = [entry for entry in entries if _event_id(entry) in codes]
        good = [entry for entry in entries if _event_id(entry) not in codes]
        request["PublishBatchRequestEntries"] = good
        successful = effect()["Successful"] if good else []
        request["PublishBatchRequestEntries"] = entries
        failed = [
            {"Id": entry["Id"], "Code": codes[_event_id(entry)], "Message": "text", "SenderFault": True}
            for entry in bad
            if codes[_event_id(entry)] is not None
        ]
        return {"Successful": successful, "Failed": failed}

    return answer


def _event_id(entry: dict[str, Any]) -> str:
    return str(entry["MessageAttributes"]["event_id"]["StringValue"])


def pending_without_ttl(cloud: Cloud) -> set[str]:
    """The pending events, each of which must have its notification and no ttl."""
    rows = {event_id: row for event_id, row in cloud.ledger().items() if row["status"] == {"S": "pending"}}
    assert all("ttl" not in row and "notification" in row for row in rows.values())
    return set(rows)


# What is sent


def test_entries_of_a_standard_topic_have_no_group(cloud: Cloud) -> None:
    cloud.deliver(ORDERS[0], NOTIFICATION_ATTRIBUTES='{"kind": "`7`"}')
    assert cloud.requests(PUBLISH) == [
        {
            "TopicArn": "arn:aws:sns:us-east-1:123456789012:orders-notifications",
            "PublishBatchRequestEntries": [
                {
                    "Id": "0",
                    "Message": '{"id":"o-1"}',
                    "MessageAttributes": {
                        "kind": {"DataType": "Number", "StringValue": "7"},
                        "event_id": {"DataType": "String", "StringValue": "o-1"},
                    },
                }
            ],
        }
    ]


@pytest.mark.case("C68")
def test_no_subject_is_sent(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", {"id": "a\nb" + "c" * 101}))
    assert "Subject" not in cloud.requests(PUBLISH)[0]["PublishBatchRequestEntries"][0]
    assert cloud.statuses() == {"a\nb" + "c" * 101: "sent"}


@pytest.mark.case("C69")
def test_entries_of_a_fifo_topic_carry_group_and_deduplication_id(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_topic=True)
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    (entry,) = cloud.requests(PUBLISH)[0]["PublishBatchRequestEntries"]
    # SHA-256 of orders, a zero byte, o-1
    digest = "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"
    assert (entry["MessageGroupId"], entry["MessageDeduplicationId"]) == (digest, digest)
    assert cloud.notifications() == [Notification('{"id":"o-1"}', {"event_id": ("String", "o-1")}, digest, digest)]


@pytest.mark.case("C69")
def test_group_of_a_fifo_queue_is_the_group_on_a_fifo_topic(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_queue=True, fifo_topic=True)
    cloud.deliver(record("m-1", {"id": "o-1"}, group="customer-42"), record("m-2", {"id": "x" * 2048}, group="g"))
    first, second = cloud.notifications()
    assert first.group == "customer-42"
    assert first.deduplication_id == "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"
    assert len(second.deduplication_id or "") == 64


@pytest.mark.case("C69")
def test_two_consumers_of_one_event_are_both_heard_on_one_fifo_topic(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_queue=True, fifo_topic=True)
    order = record("m-1", {"id": "o-1"}, group="customer-42")
    cloud.deliver(order)
    cloud.expire("o-1")  # the other consumer has a ledger and a table of its own
    cloud.real.dynamodb.delete_item(TableName=BUSINESS, Key={"id": {"S": "o-1"}})
    cloud.deliver(order, CONSUMER_NAME="invoices")
    first, second = cloud.notifications()
    assert first.group == second.group == "customer-42"
    assert first.deduplication_id != second.deduplication_id


@pytest.mark.case("C61", "C69")
def test_second_publish_of_a_fifo_event_has_the_same_deduplication_id(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_queue=True, fifo_topic=True)
    cloud.on(MARK, raises=client_error("InternalServerError", MARK), calls=[1])
    order = record("m-1", {"id": "o-1"}, group="customer-42")
    assert cloud.deliver(order) == reported("m-1")
    assert cloud.deliver(order) == NOTHING_FAILED
    first, second = cloud.requests(PUBLISH)
    assert first == second
    assert cloud.notified() == ["o-1"]


@pytest.mark.case("C21")
def test_ten_attributes_are_the_most_and_the_event_id_is_one_of_them(cloud: Cloud) -> None:
    nine = "{" + ",".join(f'"a{number}":"id"' for number in range(9)) + "}"
    cloud.deliver(ORDERS[0], NOTIFICATION_ATTRIBUTES=nine)
    (notification,) = cloud.notifications()
    assert len(notification.attributes) == 10
    with pytest.raises(ValueError, match="NOTIFICATION_ATTRIBUTES has 10 attributes"):
        cloud.consumer(NOTIFICATION_ATTRIBUTES=nine[:-1] + ',"a9":"id"}')


# How it is grouped


def test_ten_events_are_published_by_one_call(cloud: Cloud) -> None:
    cloud.deliver(*(record(f"m-{number}", {"id": f"o-{number}"}) for number in range(10)))
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [10]
    assert MAX_ENTRIES == 10


def test_more_than_ten_events_are_published_by_ten(cloud: Cloud) -> None:
    cloud.deliver(*(record(f"m-{number}", {"id": f"o-{number}"}) for number in range(23)))
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [10, 10, 3]
    assert sorted(cloud.notified()) == sorted(f"o-{number}" for number in range(23))


def test_batch_is_split_where_its_bytes_would_pass_the_limit(cloud: Cloud) -> None:
    assert MAX_BATCH_BYTES == 262_144
    # Each counts 100,000 bytes: the message with its 2 quotes less, event_id (8), String (6) and the id (1).
    text = "x" * (100_000 - 8 - 6 - 1)
    batch = [record(f"m-{number}", {"id": str(number), "text": text}) for number in range(5)]
    assert cloud.deliver(*batch, NOTIFICATION_MESSAGE="text") == NOTHING_FAILED
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [2, 2, 1]


@pytest.mark.parametrize(("last", "calls"), [(62_144, [3]), (62_145, [2, 1])])
def test_batch_is_filled_to_the_last_byte(cloud: Cloud, last: int, calls: list[int]) -> None:
    sizes = [100_000, 100_000, last]
    batch = [record(f"m-{n}", {"id": str(n), "text": "x" * (size - 15)}) for n, size in enumerate(sizes)]
    cloud.on(PUBLISH, answers={})
    cloud.deliver(*batch, NOTIFICATION_MESSAGE="text")
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == calls


def test_attributes_count_for_the_bytes_of_a_batch(cloud: Cloud) -> None:
    batch = [record(f"m-{n}", {"id": str(n), "text": "x" * 131_000}) for n in range(2)]
    cloud.on(PUBLISH, answers={})
    cloud.deliver(*batch, NOTIFICATION_MESSAGE="id", NOTIFICATION_ATTRIBUTES='{"a":"text"}')
    cloud.forget()
    batch = [record(f"m-{n}", {"id": f"again-{n}", "text": "x" * 131_060}) for n in range(2)]
    cloud.deliver(*batch, NOTIFICATION_MESSAGE="id", NOTIFICATION_ATTRIBUTES='{"a":"text"}')
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [1, 1]


# The call fails


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("AuthorizationError", PUBLISH), "misconfigured"),
        (client_error("NotFound", PUBLISH), "misconfigured"),
        (client_error("KMSAccessDenied", PUBLISH), "misconfigured"),
        (client_error("InternalError", PUBLISH), "unavailable"),
        (client_error("ServiceUnavailable", PUBLISH), "unavailable"),
        (ReadTimeoutError(endpoint_url=URL), "unavailable"),
        (ConnectionClosedError(endpoint_url=URL), "unavailable"),
        (ResponseParserError("Unable to parse response"), "unavailable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.alone
def test_published_records_are_reported_when_the_call_fails(
    cloud: Cloud, error: Exception, reason: str, logged: Logged
) -> None:
    cloud.deliver(record("m-0", {"id": "o-0"}))
    cloud.forget()
    cloud.on(PUBLISH, raises=error)
    # The duplicate is settled: it has nothing to publish.
    assert cloud.deliver(*ORDERS, record("m-0", {"id": "o-0"})) == reported("m-1", "m-2", "m-3")
    assert cloud.operations == [COMMIT] * 4 + [PUBLISH]
    assert pending_without_ttl(cloud) == {"o-1", "o-2", "o-3"}
    assert {verdict[2] for verdict in logged()} == {reason}
    cloud.heal()
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-0", "o-1", "o-2", "o-3"]
    assert set(cloud.statuses().values()) == {"sent"}


@pytest.mark.parametrize("code", ["Throttled", "Throttling", "ThrottledException", "TooManyRequestsException"])
def test_throttled_call_is_tried_again(cloud: Cloud, code: str, pauses: list[int]) -> None:
    cloud.on(PUBLISH, raises=client_error(code, PUBLISH), calls=[1, 2])
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert cloud.count(PUBLISH) == 3
    assert pauses == [0, 1]
    assert sorted(cloud.notified()) == ["o-1", "o-2", "o-3"]


def test_attempts_are_bounded(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(PUBLISH, raises=client_error("Throttled", PUBLISH))
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert cloud.count(PUBLISH) == ATTEMPTS
    assert pauses == [0, 1, 2, 3]
    assert pending_without_ttl(cloud) == {"o-1", "o-2", "o-3"}


def test_publish_whose_answer_is_lost_is_sent_again(cloud: Cloud) -> None:
    cloud.on(PUBLISH, raises=ReadTimeoutError(endpoint_url=URL), after=True, calls=[1])
    assert cloud.deliver(ORDERS[0]) == reported("m-1")
    assert pending_without_ttl(cloud) == {"o-1"}
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    assert cloud.notified() == ["o-1", "o-1"]


def test_first_ten_are_settled_though_the_next_call_fails(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(12)]
    cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH), calls=[2])
    assert cloud.deliver(*batch) == reported("m-10", "m-11")
    assert pending_without_ttl(cloud) == {"o-10", "o-11"}


# Entries fail


@pytest.mark.parametrize("code", ["InternalError", "InvalidParameter", "AuthorizationError", "SomethingNew"])
def test_only_the_entry_that_failed_is_reported(cloud: Cloud, code: str) -> None:
    cloud.on(PUBLISH, answers=failed_entries({"o-2": code}))
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert pending_without_ttl(cloud) == {"o-2"}
    assert sorted(cloud.notified()) == ["o-1", "o-3"]
    cloud.heal()
    assert cloud.deliver(ORDERS[1]) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-1", "o-2", "o-3"]


@pytest.mark.parametrize("code", ["Throttled", "ThrottledException"])
def test_only_the_throttled_entry_is_tried_again(cloud: Cloud, code: str) -> None:
    cloud.on(PUBLISH, answers=failed_entries({"o-2": code, "o-3": "InternalError"}), calls=[1])
    assert cloud.deliver(*ORDERS) == reported("m-3")
    assert [
        [_event_id(entry) for entry in request["PublishBatchRequestEntries"]] for request in cloud.requests(PUBLISH)
    ] == [["o-1", "o-2", "o-3"], ["o-2"]]
    assert sorted(cloud.notified()) == ["o-1", "o-2"]
    assert pending_without_ttl(cloud) == {"o-3"}


def test_entry_that_the_answer_does_not_mention_is_not_taken_for_published(cloud: Cloud, logged: Logged) -> None:
    cloud.on(PUBLISH, answers=failed_entries({"o-1": None, "o-3": None}))
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-3")
    assert pending_without_ttl(cloud) == {"o-1", "o-3"}
    assert [verdict[2:] for verdict in logged()] == [("unavailable", "PublishBatch: NotAnswered")] * 2


@pytest.mark.parametrize("answer", [{}, {"Successful": [], "Failed": []}])
def test_empty_answer_publishes_nothing(cloud: Cloud, answer: dict[str, Any]) -> None:
    cloud.on(PUBLISH, answers=answer)
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert cloud.count(MARK) == 0


def test_every_entry_that_fails_leaves_nothing_to_mark(cloud: Cloud) -> None:
    cloud.on(PUBLISH, answers=failed_entries({"o-1": "InternalError", "o-2": "InternalError", "o-3": "InternalError"}))
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert cloud.count(MARK) == 0


# SNS refuses the batch as a whole for one entry of it


@pytest.mark.parametrize(
    "code", ["InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid", "BatchRequestTooLong"]
)
def test_refused_batch_is_published_one_by_one(cloud: Cloud, code: str, logged: Logged, metrics: Metrics) -> None:
    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        if any(_event_id(entry) == "o-2" for entry in request["PublishBatchRequestEntries"]):
            raise client_error(code, PUBLISH)
        return effect()

    cloud.on(PUBLISH, answers=refuse)
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [3, 1, 1, 1]
    assert pending_without_ttl(cloud) == {"o-2"}
    assert sorted(cloud.notified()) == ["o-1", "o-3"]
    assert logged() == [("m-2", "retry", "refused", f"PublishBatch: {code}")]
    assert metrics()["Misconfigured"] == 1


def test_throttled_single_of_a_refused_batch_is_tried_again(cloud: Cloud) -> None:
    cloud.on(PUBLISH, raises=client_error("InvalidParameter", PUBLISH), calls=[1])
    cloud.on(PUBLISH, raises=client_error("Throttled", PUBLISH), calls=[2])
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [3, 1, 1, 1, 1]
    assert sorted(cloud.notified()) == ["o-1", "o-2", "o-3"]


def test_nothing_to_publish_is_no_call(cloud: Cloud) -> None:
    outbox = Outbox(cloud.clients.sns, cloud.topic_arn)
    assert outbox.publish({}, Budget(Context(cloud))) == {}
    assert cloud.operations == []
