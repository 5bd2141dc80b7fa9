"""Marking: after the publish, only rows that are there, and an event that could not be marked is published again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from idempotent_consumer.calls import ATTEMPTS
from idempotent_consumer.ledger import MAX_STATEMENTS
from tests.handler.support import (
    COMMIT,
    LEDGER,
    MARK,
    NOTHING_FAILED,
    NOW,
    PUBLISH,
    TTL,
    Cloud,
    client_error,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
Answer = Callable[[dict[str, Any], Callable[[], Any]], Any]

ORDERS = [record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)]
TIMEOUT = ReadTimeoutError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com/")


def statement_errors(codes: dict[int, str]) -> Answer:
    """An answer that succeeded as a whole, in which statements failed."""

    def answer(request: dict[str, Any], _effect: Callable[[], Any]) -> dict[str, Any]:
        responses: list[dict[str, Any]] = [{"TableName": LEDGER} for _ in request["Statements"]]
        for index, code in codes.items():
            responses[index]["Error"] = {"Code": code, "Message": "the text of the service"}
        return {"Responses": responses}

    return answer


@pytest.mark.case("C61")
@pytest.mark.alone
def test_nothing_is_marked_before_it_is_published(cloud: Cloud) -> None:
    cloud.deliver(*ORDERS)
    assert cloud.operations == [COMMIT, COMMIT, COMMIT, PUBLISH, MARK]
    assert [what for what, _ in cloud.history] == ["committed"] * 3 + ["published"] * 3 + ["marked"] * 3


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize("failed", [{0}, {1}, {0, 2}])
def test_event_that_was_not_published_is_not_marked(cloud: Cloud, failed: set[int]) -> None:
    def answer(request: dict[str, Any], _effect: Callable[[], Any]) -> dict[str, Any]:
        entries = request["PublishBatchRequestEntries"]
        return {
            "Successful": [{"Id": entry["Id"]} for entry in entries if int(entry["Id"]) not in failed],
            "Failed": [
                {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False}
                for entry in entries
                if int(entry["Id"]) in failed
            ],
        }

    cloud.on(PUBLISH, answers=answer)
    assert cloud.deliver(*ORDERS) == reported(*(f"m-{index + 1}" for index in sorted(failed)))
    assert cloud.statuses() == {f"o-{n + 1}": "pending" if n in failed else "sent" for n in range(3)}
    assert all(("ttl" in row) == (row["status"] == {"S": "sent"}) for row in cloud.ledger().values())


@pytest.mark.case("C61")
@pytest.mark.parametrize(
    "error",
    [client_error("InternalServerError", MARK), TIMEOUT, client_error("SomethingNew", MARK)],
    ids=["5xx", "timeout", "unknown"],
)
def test_records_are_reported_when_marking_fails_and_published_again(cloud: Cloud, error: Exception) -> None:
    cloud.on(MARK, raises=error, calls=[1])
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert cloud.count(MARK) == 1
    assert set(cloud.statuses().values()) == {"pending"}
    assert all("ttl" not in row for row in cloud.ledger().values())
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-1", "o-1", "o-2", "o-2", "o-3", "o-3"]
    assert set(cloud.statuses().values()) == {"sent"}


def test_marking_whose_answer_is_lost_is_a_duplicate_the_next_time(cloud: Cloud) -> None:
    cloud.on(MARK, raises=TIMEOUT, after=True)
    assert cloud.deliver(ORDERS[0]) == reported("m-1")
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]


@pytest.mark.parametrize("code", ["ThrottlingException", "ProvisionedThroughputExceededException"])
def test_throttled_marking_is_tried_again(cloud: Cloud, code: str, pauses: list[int]) -> None:
    cloud.on(MARK, raises=client_error(code, MARK), calls=[1, 2])
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert cloud.count(MARK) == 3
    assert pauses == [0, 1]
    assert sorted(cloud.notified()) == ["o-1", "o-2", "o-3"]


def test_marking_attempts_are_bounded(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(MARK, raises=client_error("ThrottlingException", MARK))
    assert cloud.deliver(ORDERS[0]) == reported("m-1")
    assert cloud.count(MARK) == ATTEMPTS
    assert pauses == [0, 1, 2, 3]


@pytest.mark.parametrize("code", ["InternalServerError", "ValidationError", "ConditionalCheckFailed", "SomethingNew"])
def test_only_the_statement_that_failed_is_reported(cloud: Cloud, code: str) -> None:
    cloud.on(MARK, answers=statement_errors({1: code}))
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert cloud.count(MARK) == 1


@pytest.mark.parametrize("code", ["AccessDenied", "ResourceNotFound"])
def test_refused_statement_counts_as_misconfigured(
    cloud: Cloud, code: str, metrics: Callable[[], dict[str, Any]]
) -> None:
    cloud.on(MARK, answers=statement_errors({1: code}))
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert metrics()["Misconfigured"] == 1


@pytest.mark.parametrize(
    "code", ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded", "TransactionConflict"]
)
def test_only_the_statements_that_may_pass_are_tried_again(cloud: Cloud, code: str) -> None:
    cloud.on(MARK, answers=statement_errors({0: code, 2: "InternalServerError"}), calls=[1])
    assert cloud.deliver(*ORDERS) == reported("m-3")
    first, second = cloud.requests(MARK)
    assert [statement["Parameters"][4] for statement in first["Statements"]] == [
        {"S": "o-1"},
        {"S": "o-2"},
        {"S": "o-3"},
    ]
    assert [statement["Parameters"][4] for statement in second["Statements"]] == [{"S": "o-1"}]
    assert cloud.statuses()["o-1"] == "sent"


def test_row_that_is_gone_is_not_made_anew(cloud: Cloud, logged: Logged) -> None:
    cloud.on(MARK, runs=lambda: cloud.expire("o-2"))
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}
    assert logged() == [("m-2", "retry", "unavailable", "BatchExecuteStatement: ConditionalCheckFailed")]


@pytest.mark.parametrize("answer", [{}, {"Responses": []}, {"Responses": [{}, {}]}, {"Responses": [{}, {}, {}, {}]}])
def test_answer_of_another_length_marks_nothing(cloud: Cloud, answer: dict[str, Any], logged: Logged) -> None:
    cloud.on(MARK, answers=answer)
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert {verdict[1:] for verdict in logged()} == {
        ("retry", "unavailable", "BatchExecuteStatement: IncompleteAnswer")
    }


def test_large_batch_is_marked_by_25_statements_a_call(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(60)]
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert [len(request["Statements"]) for request in cloud.requests(MARK)] == [25, 25, 10]
    assert MAX_STATEMENTS == 25
    assert set(cloud.statuses().values()) == {"sent"}
    assert len(cloud.notified()) == 60


def test_message_of_more_events_than_one_marking_call_takes(cloud: Cloud) -> None:
    s3_record = {"s3": {"bucket": {"name": "b"}, "object": {"key": "k", "sequencer": "1"}}}
    keys = [f"k-{number}" for number in range(27)]
    body = {"Records": [{"s3": {**s3_record["s3"], "object": {"key": key, "sequencer": "1"}}} for key in keys]}
    cloud.on(MARK, raises=client_error("InternalServerError", MARK), calls=[2])
    s3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}
    assert cloud.deliver(record("m-1", body), **s3) == reported("m-1")
    assert [len(request["Statements"]) for request in cloud.requests(MARK)] == [25, 2]
    assert sorted(cloud.statuses().values()) == ["pending"] * 2 + ["sent"] * 25
    assert cloud.deliver(record("m-1", body), **s3) == NOTHING_FAILED
    assert sorted(cloud.statuses().values()) == ["sent"] * 27
    assert len(cloud.notified()) == 29


def test_marking_removes_the_notification_and_the_index_key(cloud: Cloud) -> None:
    cloud.commit_without_publishing(ORDERS[0])
    cloud.deliver(ORDERS[0])
    row = cloud.ledger()["o-1"]
    assert "notification" not in row
    assert "pending_shard" not in row
    assert (row["status"], row["sent_at"], row["ttl"]) == ({"S": "sent"}, NOW, TTL)
    assert row["created_at"] == NOW


def test_statement_whose_error_says_nothing_is_not_taken_for_marked(cloud: Cloud) -> None:
    cloud.on(MARK, answers={"Responses": [{"Error": {}}]})
    assert cloud.deliver(record("m-1", {"id": "o-1"})) == reported("m-1")
    assert cloud.statuses() == {"o-1": "pending"}
