"""The pending rows of the ledger are found by shard and age, with as little read as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError
from botocore.parsers import ResponseParserError

from idempotent_consumer import commit, pending
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import OUT_OF_TIME, Budget
from idempotent_consumer.pending import PendingIndex, PendingRows, PendingUnread
from tests.handler.pending_model import ENDLESS, pending_row, shard_of
from tests.handler.support import LEDGER, NOW_MS, QUERY, Cloud, Context, client_error, record

KEYS = {"event_id": {"S": "o-1"}, "pending_shard": {"S": "3"}, "created_at": {"N": "1000"}}


@pytest.fixture
def indexed(new_cloud: Callable[..., Cloud]) -> Cloud:
    return new_cloud(pending_index=True)


def index(cloud: Cloud) -> PendingIndex:
    return PendingIndex(cloud.clients.dynamodb, LEDGER)


def store(cloud: Cloud, *created_ms: int, shard: str = "3") -> None:
    for at in created_ms:
        cloud.store(LEDGER, pending_row(f"o-{at}", at, shard=shard))


def query(**more: Any) -> dict[str, Any]:
    return {
        "TableName": "orders-processed-events",
        "IndexName": "pending",
        "KeyConditionExpression": "pending_shard = :shard AND created_at <= :until",
        **more,
    }


def values(shard: str, until_ms: int) -> dict[str, Any]:
    return {":shard": {"S": shard}, ":until": {"N": str(until_ms)}}


# Shards


def test_shards_are_those_that_the_consumer_writes(indexed: Cloud) -> None:
    rows: PendingRows = index(indexed)
    assert list(rows.shards) == ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"]
    assert commit.PENDING_SHARDS == 16


def test_each_event_that_is_committed_is_in_one_of_the_shards(indexed: Cloud) -> None:
    names = [f"order-{number}" for number in range(100)]
    for half in (names[:50], names[50:]):
        indexed.commit_without_publishing(*(record(f"m-{name}", {"id": name}) for name in half))
    found = {
        shard: [event_id for page in index(indexed).pages(shard, NOW_MS, 0, 50, ENDLESS) for event_id in page]
        for shard in index(indexed).shards
    }
    assert sorted(event_id for event_ids in found.values() for event_id in event_ids) == sorted(names)
    assert all(shard_of(event_id) == shard for shard, event_ids in found.items() for event_id in event_ids)
    assert all(found.values()), "spread over all of them"


def test_index_has_the_name_of_the_module_s() -> None:
    assert pending.INDEX == "pending"


# The oldest


def test_oldest_row_is_found_by_one_literal_call_that_reads_one(indexed: Cloud) -> None:
    store(indexed, 3_000, 1_000, 2_000)
    store(indexed, 500, shard="4")
    assert index(indexed).oldest_ms("3", ENDLESS) == 1_000
    assert indexed.requests(QUERY) == [
        {
            "TableName": "orders-processed-events",
            "IndexName": "pending",
            "KeyConditionExpression": "pending_shard = :shard",
            "ExpressionAttributeValues": {":shard": {"S": "3"}},
            "Limit": 1,
            "ProjectionExpression": "created_at",
        }
    ]


def test_shard_without_rows_has_no_oldest(indexed: Cloud) -> None:
    store(indexed, 1_000)
    assert index(indexed).oldest_ms("4", ENDLESS) is None


def test_a_time_that_was_edited_by_hand_stops_no_run(indexed: Cloud) -> None:
    indexed.on(QUERY, answers={"Items": [{"created_at": {"N": "1000.5"}}], "Count": 1})
    assert index(indexed).oldest_ms("3", ENDLESS) == 1_000


def test_row_of_the_year_1970_is_the_oldest_and_not_nothing(indexed: Cloud) -> None:
    store(indexed, 0)
    assert index(indexed).oldest_ms("3", ENDLESS) == 0


# Counting


def test_rows_are_counted_by_a_literal_call_that_returns_none_of_them(indexed: Cloud) -> None:
    store(indexed, 1_000, 2_000, 2_001)
    store(indexed, 1_500, shard="13")
    assert list(index(indexed).counts("3", 2_000, ENDLESS)) == [2]
    assert indexed.requests(QUERY) == [query(ExpressionAttributeValues=values("3", 2_000), Select="COUNT")]


def test_counting_goes_on_where_a_call_has_ended(indexed: Cloud) -> None:
    indexed.on(QUERY, answers={"Count": 7, "LastEvaluatedKey": KEYS}, calls=[1, 2])
    indexed.on(QUERY, answers={"Count": 4}, calls=[3])
    assert list(index(indexed).counts("3", 2_000, ENDLESS)) == [7, 7, 4]
    assert [request.get("ExclusiveStartKey") for request in indexed.requests(QUERY)] == [None, KEYS, KEYS]
    assert {request["Select"] for request in indexed.requests(QUERY)} == {"COUNT"}


def test_each_count_is_one_call_that_is_made_when_it_is_asked_for(indexed: Cloud) -> None:
    indexed.on(QUERY, answers={"Count": 7, "LastEvaluatedKey": KEYS})
    counts = index(indexed).counts("3", 2_000, ENDLESS)
    assert indexed.count(QUERY) == 0
    assert [next(counts), next(counts)] == [7, 7]
    assert indexed.count(QUERY) == 2


# Pages


def test_page_is_read_by_a_literal_call_for_the_ids(indexed: Cloud) -> None:
    store(indexed, 2_000, 3_000, 4_000)
    assert list(index(indexed).pages("3", 3_000, 0, 50, ENDLESS)) == [["o-2000", "o-3000"]]
    assert indexed.requests(QUERY) == [
        query(ExpressionAttributeValues=values("3", 3_000), Limit=50, ProjectionExpression="event_id")
    ]


def test_pages_hold_the_oldest_first_and_follow_each_other(indexed: Cloud) -> None:
    store(indexed, 5_000, 1_000, 4_000, 2_000, 3_000)
    assert list(index(indexed).pages("3", 9_000, 0, 2, ENDLESS)) == [
        ["o-1000", "o-2000"],
        ["o-3000", "o-4000"],
        ["o-5000"],
    ]
    starts = [request.get("ExclusiveStartKey", {}).get("created_at") for request in indexed.requests(QUERY)]
    assert starts == [None, {"N": "2000"}, {"N": "4000"}]
    assert {request["Limit"] for request in indexed.requests(QUERY)} == {2}


@pytest.mark.parametrize(
    ("first", "pages"),
    [
        (0, [["o-1", "o-2"], ["o-3", "o-4"], ["o-5"]]),
        (1, [["o-2", "o-3"], ["o-4", "o-5"], ["o-1"]]),
        (2, [["o-3", "o-4"], ["o-5"], ["o-1", "o-2"]]),
        (3, [["o-4", "o-5"], ["o-1", "o-2"], ["o-3"]]),
        (4, [["o-5"], ["o-1", "o-2"], ["o-3", "o-4"]]),
        (5, [["o-1", "o-2"], ["o-3", "o-4"], ["o-5"]]),
        (6, [["o-1", "o-2"], ["o-3", "o-4"], ["o-5"]]),
    ],
)
def test_pages_begin_at_a_row_and_end_with_those_before_it(indexed: Cloud, first: int, pages: list[list[str]]) -> None:
    store(indexed, 1, 2, 3, 4, 5, 7)
    assert list(index(indexed).pages("3", 5, first, 2, ENDLESS)) == pages


def test_first_row_is_found_by_a_literal_call_that_counts_those_before_it(indexed: Cloud) -> None:
    store(indexed, 1, 2, 3, 4)
    assert next(index(indexed).pages("3", 9_000, 3, 50, ENDLESS)) == ["o-4"]
    before = {"event_id": {"S": "o-3"}, "pending_shard": {"S": "3"}, "created_at": {"N": "3"}}
    assert indexed.requests(QUERY) == [
        query(ExpressionAttributeValues=values("3", 9_000), Select="COUNT", Limit=3),
        query(
            ExpressionAttributeValues=values("3", 9_000),
            Limit=50,
            ProjectionExpression="event_id",
            ExclusiveStartKey=before,
        ),
    ]


def test_way_to_the_first_row_may_take_several_calls(indexed: Cloud) -> None:
    """One reads 1 MB at most."""
    indexed.on(QUERY, answers={"Count": 400, "LastEvaluatedKey": KEYS}, calls=[1, 2])
    indexed.on(QUERY, answers={"Count": 100, "LastEvaluatedKey": KEYS | {"created_at": {"N": "7"}}}, calls=[3])
    indexed.on(QUERY, answers={"Count": 1, "Items": [KEYS]}, calls=[4])
    assert next(index(indexed).pages("3", 9_000, 900, 50, ENDLESS)) == ["o-1"]
    requests = indexed.requests(QUERY)
    assert [request["Limit"] for request in requests] == [900, 500, 100, 50]
    assert [request.get("ExclusiveStartKey", {}).get("created_at") for request in requests] == [
        None,
        {"N": "1000"},
        {"N": "1000"},
        {"N": "7"},
    ]


def test_row_that_is_there_no_more_makes_the_pages_begin_with_the_oldest(indexed: Cloud) -> None:
    store(indexed, 1, 2)
    assert list(index(indexed).pages("3", 9_000, 500, 50, ENDLESS)) == [["o-1", "o-2"]]
    assert indexed.count(QUERY) == 2


def test_rows_that_are_settled_between_two_pages_are_no_obstacle(indexed: Cloud) -> None:
    store(indexed, *range(1_000, 1_006))
    pages = index(indexed).pages("3", 9_000, 0, 2, ENDLESS)
    assert next(pages) == ["o-1000", "o-1001"]
    for at in range(1_000, 1_003):
        indexed.expire(f"o-{at}")
    assert list(pages) == [["o-1003", "o-1004"], ["o-1005"]]


def test_rows_before_the_first_are_read_though_the_others_are_settled(indexed: Cloud) -> None:
    store(indexed, *range(1, 7))
    pages = index(indexed).pages("3", 9_000, 3, 2, ENDLESS)
    found = []
    for page in pages:
        found.append(page)
        for event_id in page:
            indexed.expire(event_id)
    assert found == [["o-4", "o-5"], ["o-6"], ["o-1", "o-2"], ["o-3"]]


def test_last_page_that_is_empty_is_none(indexed: Cloud) -> None:
    indexed.on(QUERY, answers={"Items": [KEYS], "Count": 1, "LastEvaluatedKey": KEYS}, calls=[1])
    indexed.on(QUERY, answers={"Items": [], "Count": 0}, calls=[2])
    assert list(index(indexed).pages("3", 9_000, 0, 1, ENDLESS)) == [["o-1"]]


def test_empty_page_in_the_middle_does_not_end_the_reading(indexed: Cloud) -> None:
    indexed.on(QUERY, answers={"Items": [], "Count": 0, "LastEvaluatedKey": KEYS}, calls=[1])
    indexed.on(QUERY, answers={"Items": [KEYS], "Count": 1}, calls=[2])
    assert list(index(indexed).pages("3", 9_000, 0, 1, ENDLESS)) == [["o-1"]]
    assert indexed.count(QUERY) == 2


def test_page_is_read_when_it_is_asked_for(indexed: Cloud) -> None:
    store(indexed, 1_000, 2_000)
    pages = index(indexed).pages("3", 9_000, 0, 1, ENDLESS)
    assert indexed.count(QUERY) == 0
    assert next(pages) == ["o-1000"]
    assert indexed.count(QUERY) == 1


def test_row_of_the_last_millisecond_belongs_to_it_and_later_ones_do_not(indexed: Cloud) -> None:
    store(indexed, 1_000, 1_001)
    assert list(index(indexed).pages("3", 1_000, 0, 50, ENDLESS)) == [["o-1000"]]
    assert list(index(indexed).pages("3", 999, 0, 50, ENDLESS)) == []
    assert list(index(indexed).counts("3", 1_000, ENDLESS)) == [1]
    assert list(index(indexed).counts("3", -1, ENDLESS)) == [0]


# Failures

READS: dict[str, Callable[[PendingIndex, Budget], Any]] = {
    "oldest_ms": lambda rows, budget: rows.oldest_ms("3", budget),
    "counts": lambda rows, budget: list(rows.counts("3", 9_000, budget)),
    "pages": lambda rows, budget: list(rows.pages("3", 9_000, 0, 50, budget)),
    "first row": lambda rows, budget: list(rows.pages("3", 9_000, 5, 50, budget)),
}
FAILURES: dict[str, tuple[dict[str, Any], Verdict]] = {
    "denied": (
        {"raises": client_error("AccessDeniedException", QUERY)},
        Verdict(Outcome.RETRY, "misconfigured", "Query: AccessDeniedException"),
    ),
    "no such index": (
        {"raises": client_error("ValidationException", QUERY)},
        Verdict(Outcome.RETRY, "refused", "Query: ValidationException"),
    ),
    "throttled": (
        {"raises": client_error("ProvisionedThroughputExceededException", QUERY)},
        Verdict(Outcome.RETRY, "throttled", "Query: ProvisionedThroughputExceededException"),
    ),
    "no connection": (
        {"raises": ConnectionClosedError(endpoint_url="https://aws.example")},
        Verdict(Outcome.RETRY, "unavailable", "Query: ConnectionClosedError"),
    ),
    "unreadable": (
        {"raises": ResponseParserError("the text of the answer")},
        Verdict(Outcome.RETRY, "unavailable", "Query: ResponseParserError"),
    ),
    "empty answer": ({"answers": {}}, Verdict(Outcome.RETRY, "unavailable", "Query: IncompleteAnswer")),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("read", READS)
def test_read_that_fails_says_why(indexed: Cloud, read: str, failure: str) -> None:
    fault, verdict = FAILURES[failure]
    indexed.on(QUERY, **fault)
    with pytest.raises(PendingUnread) as caught:
        READS[read](index(indexed), ENDLESS)
    assert caught.value.verdict == verdict
    assert indexed.count(QUERY) == 1


@pytest.mark.parametrize("read", ["oldest_ms", "pages"])
def test_answer_that_counts_rows_and_does_not_hold_them_is_incomplete(indexed: Cloud, read: str) -> None:
    indexed.on(QUERY, answers={"Count": 1})
    with pytest.raises(PendingUnread) as caught:
        READS[read](index(indexed), ENDLESS)
    assert caught.value.verdict.detail == "Query: IncompleteAnswer"


@pytest.mark.case("C55")
@pytest.mark.parametrize("read", READS)
def test_no_call_starts_that_might_not_end_in_time(indexed: Cloud, read: str) -> None:
    with pytest.raises(PendingUnread) as caught:
        READS[read](index(indexed), Budget(Context(indexed, 7_499)))
    assert caught.value.verdict is OUT_OF_TIME
    assert indexed.calls == []
    READS[read](index(indexed), Budget(Context(indexed, 7_500)))


@pytest.mark.case("C55")
@pytest.mark.parametrize("read", ["counts", "pages", "first row"])
def test_time_is_asked_for_before_each_call(indexed: Cloud, read: str) -> None:
    indexed.on(QUERY, answers={"Count": 1, "Items": [KEYS], "LastEvaluatedKey": KEYS})
    with pytest.raises(PendingUnread) as caught:
        READS[read](index(indexed), Budget(Context(indexed, 10_000, {QUERY: 1_000})))
    assert caught.value.verdict is OUT_OF_TIME
    # Begun with 10,000, 9,000 and 8,000 ms left.
    assert indexed.count(QUERY) == 3


def test_failure_at_a_later_page_keeps_those_before_it(indexed: Cloud) -> None:
    store(indexed, 1_000, 2_000)
    indexed.on(QUERY, raises=client_error("InternalServerError", QUERY), calls=[2])
    pages = index(indexed).pages("3", 9_000, 0, 1, ENDLESS)
    assert next(pages) == ["o-1000"]
    with pytest.raises(PendingUnread):
        next(pages)


@pytest.mark.case("C76")
def test_text_of_an_error_is_not_passed_on(indexed: Cloud) -> None:
    indexed.on(QUERY, raises=client_error("AccessDeniedException", QUERY))
    with pytest.raises(PendingUnread) as caught:
        index(indexed).oldest_ms("3", ENDLESS)
    assert str(caught.value) == "misconfigured"
    assert "quote data" not in caught.value.verdict.detail
