"""What is pending for too long is published from its row, whoever else is at work, and nothing holds up the others."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError
from botocore.parsers import ResponseParserError

from idempotent_consumer import reconciliation, telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import Budget
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.pending import PendingIndex
from idempotent_consumer.reconciliation import Reconciler, Reconciliation
from tests.handler.pending_model import ENDLESS, RECONCILER, Clock, IndexedWorld, notification, pending_row, shard_of
from tests.handler.support import (
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    MARK_STATEMENT,
    NOTHING_FAILED,
    NOW_MS,
    PUBLISH,
    QUERY,
    READ,
    Cloud,
    Context,
    Killed,
    client_error,
    record,
    reported,
)
from tests.handler.table_model import Effect, Request

# When the reconciler runs: by then what was committed at NOW_MS is 15 minutes old.
LATER_MS = NOW_MS + 900_000
LATER = {"N": "1893554346000"}
TTL_FROM_LATER = {"N": "1896146346"}
LONG_AGO_MS = NOW_MS - 86_400_000

CLOSED = ConnectionClosedError(endpoint_url="https://aws.example")
UNREADABLE_ANSWER = ResponseParserError("the text of the answer, which may quote data")
ROW_UNREADABLE = Verdict(Outcome.RETRY, "ledger-row-unreadable", "pending, without a notification")


@pytest.fixture(autouse=True)
def _chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "_random", Random(0))


@pytest.fixture
def indexed(new_cloud: Callable[..., Cloud]) -> Cloud:
    return new_cloud(pending_index=True)


@pytest.fixture
def world() -> IndexedWorld:
    return IndexedWorld()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """15 minutes pass."""
    return lambda: monkeypatch.setattr(telemetry, "now_ms", lambda: LATER_MS)


def run(
    around: Cloud | IndexedWorld,
    until_ms: int = NOW_MS,
    *,
    budget: Budget | None = None,
    topic_arn: str | None = RECONCILER["TOPIC_ARN"],
    follow: Callable[[Reconciliation], None] = lambda run: None,
) -> Reconciliation:
    """One run over the rows that were written until then."""
    clients = around.clients
    reconciler = Reconciler(
        PendingIndex(clients.dynamodb, LEDGER),
        Ledger(clients.dynamodb, LEDGER),
        Outbox(clients.sns, around.topic_arn if isinstance(around, Cloud) else topic_arn),
        2_592_000,
        lambda: LATER_MS,
    )
    return reconciler.run(until_ms, budget or ENDLESS, follow)


def unavailable(operation: str, code: str = "InternalServerError") -> Verdict:
    return Verdict(Outcome.RETRY, "unavailable", f"{operation}: {code}")


def spoil(operation: str, event_ids: set[str], error: Exception) -> Callable[[str, Request, Effect], Any]:
    """An interference: calls of this operation fail where they have to do with these events."""

    def interfere(called: str, request: Request, effect: Effect) -> Any:
        if called == operation and any(f'"{event_id}"' in json.dumps(request) for event_id in event_ids):
            raise error
        return effect()

    return interfere


# What is published


@pytest.mark.case("C61")
def test_stuck_event_is_published_and_marked_by_literal_calls(indexed: Cloud, later: Callable[[], None]) -> None:
    attributes = '{"kind": "kind", "total": "total"}'
    order = {"id": "o-1", "kind": "order", "total": 9.5}
    indexed.commit_without_publishing(record("m-1", order), NOTIFICATION_ATTRIBUTES=attributes)
    later()
    done = indexed.reconciler().handle(Context(indexed))
    assert done == {"published": 1, "still_stale": 0}
    assert indexed.requests(PUBLISH) == [
        {
            "TopicArn": indexed.topic_arn,
            "PublishBatchRequestEntries": [
                {
                    "Id": "0",
                    "Message": '{"id":"o-1","kind":"order","total":9.5}',
                    "MessageAttributes": {
                        "kind": {"DataType": "String", "StringValue": "order"},
                        "total": {"DataType": "Number", "StringValue": "9.5"},
                        "event_id": {"DataType": "String", "StringValue": "o-1"},
                    },
                }
            ],
        }
    ]
    assert indexed.requests(MARK) == [
        {
            "Statements": [
                {
                    "Statement": MARK_STATEMENT,
                    "Parameters": [{"S": "sent"}, LATER, TTL_FROM_LATER, {"S": "m-1"}, {"S": "o-1"}],
                }
            ]
        }
    ]
    assert indexed.history == [("published", "o-1"), ("marked", "o-1")]
    row = indexed.ledger()["o-1"]
    assert (row["status"], row["sent_at"], row["ttl"]) == ({"S": "sent"}, LATER, TTL_FROM_LATER)
    assert (row["created_at"], row["message_id"]) == ({"N": str(NOW_MS)}, {"S": "m-1"})
    assert "notification" not in row
    assert "pending_shard" not in row


def test_row_that_is_published_is_out_of_the_index(indexed: Cloud) -> None:
    indexed.commit_without_publishing(record("m-1", {"id": "o-1"}))
    assert run(indexed).published == 1
    indexed.forget()
    again = run(indexed)
    assert (again.stale, again.oldest_ms, again.published, again.gone) == (0, None, 0, 0)
    assert indexed.operations == [QUERY] * 16


def test_window_is_that_of_the_settings(indexed: Cloud, later: Callable[[], None]) -> None:
    indexed.commit_without_publishing(record("m-1", {"id": "o-1"}))
    later()
    indexed.reconciler(TTL_WINDOW_DAYS="45").handle(Context(indexed))
    assert indexed.ledger()["o-1"]["ttl"] == {"N": "1897442346"}


def test_fifo_topic_gets_group_and_deduplication_id_of_the_row(
    new_cloud: Callable[..., Cloud], later: Callable[[], None]
) -> None:
    cloud = new_cloud(pending_index=True, fifo_queue=True, fifo_topic=True)
    cloud.commit_without_publishing(record("m-1", {"id": "o-1"}, group="customer-42"))
    later()
    assert cloud.reconciler().handle(Context(cloud)) == {"published": 1, "still_stale": 0}
    (sent,) = cloud.notifications()
    assert (sent.message, sent.group) == ('{"id":"o-1"}', "customer-42")
    assert sent.deduplication_id == "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"


def test_fifo_topic_takes_the_retry_of_a_publish_whose_answer_was_lost_for_the_same(
    new_cloud: Callable[..., Cloud],
) -> None:
    cloud = new_cloud(pending_index=True, fifo_queue=True, fifo_topic=True)
    cloud.commit_without_publishing(record("m-1", {"id": "o-1"}, group="customer-42"))
    cloud.on(PUBLISH, raises=CLOSED, after=True, calls=[1])
    assert run(cloud).left == {"o-1": unavailable("PublishBatch", "ConnectionClosedError")}
    assert run(cloud).published == 1
    assert cloud.notified() == ["o-1"]


def test_row_without_a_message_id_is_marked_all_the_same(world: IndexedWorld) -> None:
    world.add(pending_row("o-1", LONG_AGO_MS, message_id=None))
    assert run(world).published == 1
    assert world.ledger["o-1"]["message_id"] == {"S": ""}


def test_oldest_is_published_first(world: IndexedWorld) -> None:
    """In the order of their age, from wherever the run begins: on a FIFO topic this order shows."""
    world.add(*(pending_row(f"o-{number}", LONG_AGO_MS + number, shard="3") for number in range(5)))

    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        """DynamoDB answers in no order."""
        answer = effect()
        if operation == READ:
            answer["Responses"][LEDGER].reverse()
        return answer

    world.interfere = interfere
    assert run(world, topic_arn="arn:aws:sns:us-east-1:123456789012:orders.fifo").published == 5
    published = world.published()
    start = published.index("o-0")
    assert published[start:] + published[:start] == ["o-0", "o-1", "o-2", "o-3", "o-4"]


# Which rows


@pytest.mark.parametrize(("age_ms", "published"), [(899_999, 0), (900_000, 1), (900_001, 1), (0, 0), (-5_000, 0)])
def test_row_younger_than_the_threshold_is_untouched(
    world: IndexedWorld, age_ms: int, published: int, capsys: pytest.CaptureFixture[str]
) -> None:
    row = pending_row("o-1", NOW_MS - age_ms)
    world.add(row)
    done = world.reconciler().handle(Clock(world, 30_000, {}))
    assert done == {"published": published, "still_stale": 0}
    assert world.statuses() == {"o-1": "sent" if published else "pending"}
    assert (world.ledger["o-1"] == row) is not published
    line = json.loads(capsys.readouterr().out)
    assert line["OldestPendingAge"] == max(0, age_ms)


def test_fresh_rows_beside_a_stuck_one_are_untouched(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{n}", NOW_MS + n - 2, shard="7") for n in range(5)))
    done = run(world)
    assert (done.stale, done.published, done.still_stale, done.oldest_ms) == (3, 3, 0, NOW_MS - 2)
    assert world.statuses() == {"o-0": "sent", "o-1": "sent", "o-2": "sent", "o-3": "pending", "o-4": "pending"}


def test_shard_whose_rows_are_all_fresh_costs_one_call(world: IndexedWorld) -> None:
    world.add(pending_row("o-1", NOW_MS + 1))
    done = run(world)
    assert (done.stale, done.oldest_ms) == (0, NOW_MS + 1)
    assert [call.operation for call in world.calls] == [QUERY] * 16


def test_oldest_row_of_all_shards_is_told(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{shard}", LONG_AGO_MS + (shard - 7) ** 2, shard=str(shard)) for shard in range(16)))
    assert run(world).oldest_ms == LONG_AGO_MS


@pytest.mark.parametrize("seed", range(10))
def test_hundreds_of_rows_over_all_shards_are_published_once_in_pages_of_50(world: IndexedWorld, seed: int) -> None:
    chance = Random(seed)
    names = [f"o-{number}" for number in range(600)]
    # Many of one millisecond, and one shard that has a third of them.
    world.add(
        *(
            pending_row(name, LONG_AGO_MS + chance.randrange(40), shard="5" if number % 3 else None)
            for number, name in enumerate(names)
        )
    )
    done = run(world)
    assert (done.stale, done.published, done.still_stale, done.left, done.unread) == (600, 600, 0, {}, {})
    assert sorted(world.published()) == sorted(names)
    assert set(world.statuses().values()) == {"sent"}
    reads = [len(call.request["RequestItems"][LEDGER]["Keys"]) for call in world.calls if call.operation == READ]
    assert sum(reads) == 600
    assert max(reads) == 50
    assert max(len(call.request["Statements"]) for call in world.calls if call.operation == MARK) == 25


class Chosen:
    """Each run begins at this row of the first shard; out of how many it was drawn is noted."""

    def __init__(self, at: int) -> None:
        self.drawn_from: list[int] = []
        self._at = at

    def randrange(self, stop: int) -> int:
        self.drawn_from.append(stop)
        return self._at

    def shuffle(self, shards: list[str]) -> None:
        """They stay in order."""


@pytest.mark.parametrize("at", [0, 1, 49, 50, 99, 100])
def test_all_rows_are_reached_wherever_the_run_begins(
    world: IndexedWorld, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = Chosen(at)
    monkeypatch.setattr(reconciliation, "_random", chosen)
    names = [f"o-{number:03}" for number in range(101)]
    world.add(*(pending_row(name, LONG_AGO_MS + number, shard="3") for number, name in enumerate(names)))
    assert run(world).published == 101
    assert chosen.drawn_from == [101]
    assert world.published() == names[at:] + names[:at]


def test_shards_are_taken_in_another_order_each_time(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{shard}", LONG_AGO_MS, shard=str(shard)) for shard in range(16)))
    orders = []
    for _ in range(3):
        world.history.clear()
        run(world)
        orders.append(world.published())
        for shard in range(16):
            world.add(pending_row(f"o-{shard}", LONG_AGO_MS, shard=str(shard)))
    assert len({tuple(order) for order in orders}) == 3


def test_row_of_the_year_1970_is_reached(world: IndexedWorld) -> None:
    world.add(pending_row("o-1", 0))
    assert run(world).published == 1


@pytest.mark.parametrize("until_ms", [-1, 0])
def test_time_before_all_rows_holds_nothing(world: IndexedWorld, until_ms: int) -> None:
    world.add(pending_row("o-1", LONG_AGO_MS))
    done = run(world, until_ms)
    assert (done.stale, done.published, done.oldest_ms) == (0, 0, LONG_AGO_MS)


# What the index still shows


def test_row_is_read_consistently_before_it_is_published(indexed: Cloud) -> None:
    indexed.commit_without_publishing(record("m-1", {"id": "o-1"}))
    run(indexed)
    assert indexed.requests(READ) == [
        {
            "RequestItems": {
                "orders-processed-events": {"Keys": [{"event_id": {"S": "o-1"}}], "ConsistentRead": True},
            }
        }
    ]
    assert indexed.operations.index(READ) < indexed.operations.index(PUBLISH)


def test_row_that_was_settled_meanwhile_is_not_published_again(world: IndexedWorld) -> None:
    world.add(*(pending_row(name, LONG_AGO_MS, shard="3") for name in ("sent", "gone", "stuck")))
    world.is_lagging = True
    world.ledger["sent"] = {"event_id": {"S": "sent"}, "status": {"S": "sent"}, "ttl": {"N": "1"}}
    del world.ledger["gone"]
    done = run(world)
    assert (done.stale, done.published, done.gone, done.left, done.still_stale) == (3, 1, 2, {}, 0)
    assert world.published() == ["stuck"]
    assert world.ledger["sent"] == {"event_id": {"S": "sent"}, "status": {"S": "sent"}, "ttl": {"N": "1"}}
    assert "gone" not in world.ledger


def test_nothing_pending_in_a_page_makes_no_call_to_publish_or_mark(world: IndexedWorld) -> None:
    world.add(pending_row("gone", LONG_AGO_MS))
    world.is_lagging = True
    del world.ledger["gone"]
    run(world)
    assert (world.count(READ), world.count(PUBLISH), world.count(MARK)) == (1, 0, 0)


def test_lagging_index_makes_a_row_neither_published_twice_nor_counted_twice(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{number}", LONG_AGO_MS + number, shard="3") for number in range(120)))
    world.is_lagging = True
    first, second = run(world), run(world)
    assert (first.published, first.gone, first.still_stale) == (120, 0, 0)
    assert (second.stale, second.published, second.gone, second.still_stale) == (120, 0, 120, 0)
    assert len(world.published()) == 120


# What cannot be published, and those behind it

NAMES = [f"o-{number:02}" for number in range(60)]
# In two pages.
CULPRITS = {"o-00", "o-07", "o-59"}
OTHERS = sorted(set(NAMES) - CULPRITS)


@pytest.fixture
def sixty(world: IndexedWorld) -> IndexedWorld:
    """Sixty stuck rows of one shard."""
    world.add(*(pending_row(name, LONG_AGO_MS + number, shard="3") for number, name in enumerate(NAMES)))
    return world


def check_others(world: IndexedWorld, done: Reconciliation, verdict: Verdict) -> None:
    """The culprits are left with this verdict, all others are published and marked."""
    assert done.left == dict.fromkeys(sorted(CULPRITS), verdict)
    assert (done.stale, done.published, done.gone, done.still_stale) == (60, 57, 0, 3)
    assert done.unread == {}
    assert sorted(name for name, status in world.statuses().items() if status == "sent") == OTHERS


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {"S": ""},
        {"S": "{"},
        {"S": "null"},
        {"S": '{"message": "{}"}'},
        {"S": '{"message":1,"attributes":{},"group":"g","deduplication_id":"d"}'},
        {"B": b"{}"},
    ],
)
def test_unreadable_row_is_left_and_those_behind_it_are_published(
    sixty: IndexedWorld, stored: dict[str, Any] | None
) -> None:
    for name in CULPRITS:
        sixty.add(pending_row(name, LONG_AGO_MS, shard="3", notification=stored))
    done = run(sixty)
    check_others(sixty, done, ROW_UNREADABLE)
    assert sorted(sixty.published()) == OTHERS


def test_row_that_sns_refuses_is_left_and_those_behind_it_are_published(sixty: IndexedWorld) -> None:
    sixty.interfere = spoil(PUBLISH, CULPRITS, client_error("InvalidParameter", PUBLISH))
    done = run(sixty)
    check_others(sixty, done, Verdict(Outcome.RETRY, "refused", "PublishBatch: InvalidParameter"))
    assert sorted(sixty.published()) == OTHERS


def test_row_that_fails_inside_an_answer_of_sns_is_left_and_those_behind_it_are_published(sixty: IndexedWorld) -> None:
    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        answer = effect()
        if operation == PUBLISH:
            ids = {
                entry["Id"]: entry["MessageAttributes"]["event_id"]["StringValue"]
                for entry in request["PublishBatchRequestEntries"]
            }
            answer["Failed"] = [{"Id": key, "Code": "InternalError"} for key in ids if ids[key] in CULPRITS]
            answer["Successful"] = [{"Id": key} for key in ids if ids[key] not in CULPRITS]
        return answer

    sixty.interfere = interfere
    check_others(sixty, run(sixty), unavailable("PublishBatch", "InternalError"))


def test_row_that_cannot_be_marked_is_left_and_published_again_by_the_next_run(sixty: IndexedWorld) -> None:
    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        answer = effect(**{} if operation != MARK else {"Statements": [*map(without, request["Statements"])]})
        if operation == MARK:
            for statement, response in zip(request["Statements"], answer["Responses"], strict=True):
                response.pop("Error", None)
                if statement["Parameters"][4]["S"] in CULPRITS:
                    response["Error"] = {"Code": "InternalServerError"}
        return answer

    def without(statement: dict[str, Any]) -> dict[str, Any]:
        """The culprits' statements do not take effect."""
        *values, event_id = statement["Parameters"]
        return statement | {"Parameters": [*values, {"S": "nobody"} if event_id["S"] in CULPRITS else event_id]}

    sixty.interfere = interfere
    check_others(sixty, run(sixty), unavailable("BatchExecuteStatement"))
    assert sorted(sixty.published()) == NAMES
    sixty.interfere = lambda _operation, _request, effect: effect()
    again = run(sixty)
    assert (again.stale, again.published, again.still_stale) == (3, 3, 0)
    assert Counter(sixty.published()) == Counter(NAMES) + Counter(CULPRITS)


def test_row_with_a_text_nested_too_deep_is_left_and_those_behind_it_are_published(sixty: IndexedWorld) -> None:
    for name in CULPRITS:
        sixty.add(pending_row(name, LONG_AGO_MS, shard="3", notification={"S": "[" * 200_000}))
    done = run(sixty)
    check_others(sixty, done, ROW_UNREADABLE)
    assert sorted(sixty.published()) == OTHERS


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_call_that_meets_a_fault_of_our_own_fails_only_its_own_row(sixty: IndexedWorld, operation: str) -> None:
    sixty.interfere = spoil(operation, CULPRITS, TypeError("of our own"))
    done = run(sixty)
    check_others(sixty, done, Verdict(Outcome.RETRY, "fault", "TypeError"))
    assert set(sixty.published()) >= set(OTHERS)


def test_row_that_is_left_unread_is_left_pending_and_those_behind_it_are_published(sixty: IndexedWorld) -> None:
    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        if operation != READ:
            return effect()
        keys = request["RequestItems"][LEDGER]["Keys"]
        left = [key for key in keys if key["event_id"]["S"] in CULPRITS]
        others = [key for key in keys if key not in left]
        answer: dict[str, Any] = {"Responses": {LEDGER: []}}
        if others:
            answer = effect(RequestItems={LEDGER: {"Keys": others, "ConsistentRead": True}})
        return {**answer, "UnprocessedKeys": {LEDGER: {"Keys": left}} if left else {}}

    sixty.interfere = interfere
    check_others(sixty, run(sixty), Verdict(Outcome.RETRY, "throttled", "BatchGetItem: Throttled"))


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (client_error("InternalServerError"), unavailable("BatchGetItem")),
        (CLOSED, unavailable("BatchGetItem", "ConnectionClosedError")),
        (UNREADABLE_ANSWER, unavailable("BatchGetItem", "ResponseParserError")),
        (client_error("ThrottlingException"), Verdict(Outcome.RETRY, "throttled", "BatchGetItem: ThrottlingException")),
    ],
)
def test_page_that_cannot_be_read_is_left_with_the_reason(
    sixty: IndexedWorld, error: Exception, verdict: Verdict
) -> None:
    sixty.interfere = spoil(READ, set(NAMES), error)
    done = run(sixty)
    assert done.left == dict.fromkeys(NAMES, verdict)
    assert (done.published, done.gone, done.still_stale) == (0, 0, 60)
    assert (sixty.count(PUBLISH), sixty.count(MARK)) == (0, 0)


@pytest.mark.parametrize("operation", [READ, PUBLISH, MARK])
def test_a_run_ends_with_the_first_page_that_is_refused_as_a_whole(
    sixty: IndexedWorld, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """To read all the others, run after run, would cost much and mend nothing; to announce them would be worse."""
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    sixty.interfere = spoil(operation, set(NAMES), client_error("AccessDeniedException", operation))
    done = run(sixty)
    assert {verdict.reason for verdict in done.left.values()} == {"misconfigured"}
    assert (len(done.left), done.published, done.still_stale) == (50, 0, 60)
    assert sixty.count(READ) == 1


def test_a_page_that_is_refused_in_part_does_not_end_the_run(
    sixty: IndexedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    sixty.interfere = spoil(PUBLISH, set(NAMES[:10]), client_error("AuthorizationError", PUBLISH))
    done = run(sixty)
    assert (sorted(done.left), done.published) == (NAMES[:10], 50)


def test_without_a_topic_all_are_left_as_misconfigured(sixty: IndexedWorld, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Verdict(Outcome.RETRY, "misconfigured", "a notification is pending, but no topic is configured")
    assert set(run(sixty, topic_arn=None).left.values()) == {verdict}
    assert set(sixty.statuses().values()) == {"pending"}
    assert sixty.count(MARK) == 0
    sixty.reconciler(TOPIC_ARN=None).handle(Clock(sixty, 30_000, {}))
    line = json.loads(capsys.readouterr().out)
    assert line["Misconfigured"] > 0
    assert (line["StalePending"], line["Reconciled"]) == (60, 0)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("InternalError", PUBLISH), "unavailable"),
        (CLOSED, "unavailable"),
        (client_error("Throttled", PUBLISH), "throttled"),
    ],
)
def test_where_sns_is_down_all_are_left_and_the_next_run_publishes_them(
    sixty: IndexedWorld, error: Exception, reason: str
) -> None:
    sixty.interfere = spoil(PUBLISH, set(NAMES), error)
    done = run(sixty)
    assert sorted(done.left) == NAMES
    assert {verdict.reason for verdict in done.left.values()} == {reason}
    assert (done.published, done.still_stale) == (0, 60)
    assert set(sixty.statuses().values()) == {"pending"}
    sixty.interfere = lambda _operation, _request, effect: effect()
    assert run(sixty).published == 60
    assert sorted(sixty.published()) == NAMES


def test_publish_whose_answer_is_lost_is_made_again_by_the_next_run(sixty: IndexedWorld) -> None:
    def interfere(operation: str, _request: Request, effect: Effect) -> Any:
        answer = effect()
        if operation == PUBLISH:
            raise CLOSED
        return answer

    sixty.interfere = interfere
    assert run(sixty).still_stale == 60
    assert set(sixty.statuses().values()) == {"pending"}
    sixty.interfere = lambda _operation, _request, effect: effect()
    assert run(sixty).published == 60
    assert Counter(sixty.published()) == Counter(NAMES * 2)


# Shards that cannot be read


def refuse_query(shard: str, calls: int = 0) -> Callable[[str, Request, Effect], Any]:
    """Queries on this shard are refused, after so many that are not."""
    seen: list[Request] = []

    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        if operation == QUERY and request["ExpressionAttributeValues"][":shard"] == {"S": shard}:
            seen.append(request)
            if len(seen) > calls:
                raise client_error("AccessDeniedException", QUERY)
        return effect()

    return interfere


@pytest.mark.parametrize("calls", range(3))
def test_shard_whose_query_is_refused_does_not_hold_up_the_others(world: IndexedWorld, calls: int) -> None:
    """At its first call, when its rows are counted, and when they are read."""
    world.add(*(pending_row(f"o-{shard}", LONG_AGO_MS, shard=str(shard)) for shard in range(16)))
    world.interfere = refuse_query("6", calls)
    done = run(world)
    assert done.unread == {"6": Verdict(Outcome.RETRY, "misconfigured", "Query: AccessDeniedException")}
    assert done.published == 15
    assert done.left == {}
    assert [name for name, status in world.statuses().items() if status == "pending"] == ["o-6"]


def test_page_that_is_refused_keeps_what_was_published_of_its_shard(sixty: IndexedWorld) -> None:
    pages: list[int] = []

    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        if operation == QUERY and "event_id" in request.get("ProjectionExpression", "") and pages:
            raise client_error("InternalServerError", QUERY)
        answer = effect()
        pages.extend([1] * (operation == READ))
        return answer

    sixty.interfere = interfere
    done = run(sixty)
    assert done.unread == {"3": unavailable("Query")}
    assert 0 < done.published <= 50
    assert done.published == len(sixty.published())
    assert done.still_stale == 60 - done.published


def test_all_shards_refused_is_told_of_each(world: IndexedWorld) -> None:
    def refuse(_operation: str, _request: Request, _effect: Effect) -> Any:
        raise UNREADABLE_ANSWER

    world.interfere = refuse
    done = run(world)
    assert sorted(done.unread, key=int) == [str(shard) for shard in range(16)]
    assert set(done.unread.values()) == {unavailable("Query", "ResponseParserError")}
    assert len(world.calls) == 16


# Time


def rows_of_all_shards(number: int) -> Iterator[dict[str, Any]]:
    for n in range(number):
        yield pending_row(f"o-{n}", LONG_AGO_MS + n, shard=str(n % 16))


@pytest.mark.case("C55", "C65")
@pytest.mark.parametrize("slow", [QUERY, READ, PUBLISH, MARK])
@pytest.mark.parametrize("call_ms", [100, 900, 2_300, 3_900, 5_000, 6_900])
@pytest.mark.parametrize("most_counted", [3, 10_000])
def test_no_call_starts_that_might_not_end_in_time(
    world: IndexedWorld, slow: str, call_ms: int, most_counted: int
) -> None:
    world.add(*rows_of_all_shards(400))
    world.most_counted = most_counted
    clock = Clock(world, 30_000, {slow: call_ms, QUERY: call_ms if slow == QUERY else 10})
    done = run(world, budget=Budget(clock))
    assert min(remaining_ms for _, remaining_ms in clock.begun) >= 7_500
    assert done.published == sum(status == "sent" for status in world.statuses().values())


@pytest.mark.case("C55")
@pytest.mark.parametrize("remaining_ms", [0, -1, 7_499])
def test_no_call_is_made_below_the_budget(world: IndexedWorld, remaining_ms: int) -> None:
    world.add(*rows_of_all_shards(16))
    done = run(world, budget=Budget(Clock(world, remaining_ms, {})))
    assert world.calls == []
    assert {verdict.reason for verdict in done.unread.values()} == {"out-of-time"}
    assert len(done.unread) == 16
    assert done.left == {}


def test_what_time_does_not_suffice_for_is_left_and_counted(world: IndexedWorld) -> None:
    world.add(*rows_of_all_shards(800))
    done = run(world, budget=Budget(Clock(world, 30_000, {READ: 1_000, PUBLISH: 200, MARK: 100})))
    assert (done.stale, done.unread, done.gone) == (800, {}, 0)
    assert 300 <= done.published < 800
    assert done.still_stale == 800 - done.published
    assert sum(status == "pending" for status in world.statuses().values()) == done.still_stale


def test_time_that_runs_out_between_two_reads_is_no_failure_to_read(
    world: IndexedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 17 reads of the survey 8.5 seconds are left, after the one that leads to the first row 7.4 are."""
    monkeypatch.setattr(reconciliation, "_random", Chosen(60))
    world.add(*(pending_row(f"o-{n}", LONG_AGO_MS + n, shard="3") for n in range(120)))
    done = run(world, budget=Budget(Clock(world, 27_200, {QUERY: 1_100})))
    assert world.count(QUERY) == 18
    assert (done.unread, done.left, done.published, done.still_stale) == ({}, {}, 0, 120)


def test_runs_that_are_cut_short_publish_all_in_the_end(world: IndexedWorld) -> None:
    world.add(*rows_of_all_shards(800))
    left = [run(world, budget=Budget(Clock(world, 30_000, {READ: 1_000}))).still_stale for _ in range(6)]
    assert left[-1] == 0
    assert left == sorted(left, reverse=True)
    assert Counter(world.published()) == Counter(f"o-{n}" for n in range(800))


def test_counting_stops_when_half_of_the_time_is_used_up(world: IndexedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a large backlog would be counted time and again, and never published."""
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    world.add(*(pending_row(f"o-{n}", LONG_AGO_MS + n, shard="0") for n in range(1_000)))
    world.most_counted = 10
    done = run(world, budget=Budget(Clock(world, 60_000, {QUERY: 500})))
    # One call for the oldest row, and 51 for others until less than half of what the last page leaves is left.
    assert sum(call.request.get("Select") == "COUNT" for call in world.calls) == 51
    assert (done.stale, done.unread) == (510, {})
    assert done.published >= 200
    assert done.still_stale == 510 - done.published


def test_a_short_run_counts_for_so_long_only_that_it_can_publish(
    world: IndexedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    world.add(*(pending_row(f"o-{n}", LONG_AGO_MS + n, shard="0") for n in range(100)))
    world.most_counted = 10
    done = run(world, budget=Budget(Clock(world, 12_000, {QUERY: 60})))
    assert done.published == 100


def test_large_notifications_are_marked_before_the_next_are_published(
    world: IndexedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else publishing could take the time for marking, run after run."""
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    large = {f"o-{n}": {"S": notification(f"o-{n}", "x" * 250_000).to_text()} for n in range(12)}
    world.add(*(pending_row(name, LONG_AGO_MS, shard="0", notification=text) for name, text in large.items()))
    assert run(world).published == 12
    assert [call.operation for call in world.calls if call.operation in (PUBLISH, MARK)] == [
        *([PUBLISH] * 5),
        MARK,
        *([PUBLISH] * 5),
        MARK,
        *([PUBLISH] * 2),
        MARK,
    ]


def test_small_backlog_is_counted_whole(world: IndexedWorld) -> None:
    world.add(*rows_of_all_shards(200))
    world.most_counted = 5
    assert run(world, budget=Budget(Clock(world, 60_000, {QUERY: 10}))).stale == 200


@pytest.mark.parametrize(("remaining_ms", "published"), [(31_000, 60), (30_999, 50)])
def test_time_that_settling_took_is_kept_for_the_next_page(
    sixty: IndexedWorld, remaining_ms: int, published: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a page would be published in the last seconds and not be marked: it would be announced twice.

    The first page takes 3 + 5 * 0.5 + 2 * 3 seconds. The next one needs as long, and 8 more for a slow call.
    """
    monkeypatch.setattr(reconciliation, "_random", Chosen(0))
    clock = Clock(sixty, remaining_ms, {READ: 3_000, PUBLISH: 500, MARK: 3_000})
    assert run(sixty, budget=Budget(clock)).published == published
    assert len(sixty.published()) == published


def test_progress_is_told_page_by_page(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{n:03}", LONG_AGO_MS, shard="3") for n in range(120)))
    told: list[tuple[int, int]] = []
    done = run(world, follow=lambda run: told.append((run.published, run.stale)))
    assert told[-1] == (120, 120)
    assert [published for published, _ in told] == sorted({published for published, _ in told})
    assert len(told) >= 3
    assert done.published == 120


# Rows that can never be published


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("place", [0, 1, 300, 598, 599])
def test_rows_that_can_never_be_published_do_not_starve_one_among_them(
    world: IndexedWorld, seed: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are of one minute of yesterday, and more than a run takes."""
    monkeypatch.setattr(reconciliation, "_random", Random(seed))
    rows = [pending_row(f"p-{n:03}", LONG_AGO_MS + 100 * n, shard="3", notification={"S": "{"}) for n in range(600)]
    world.add(*rows, pending_row("good", LONG_AGO_MS + 100 * place + 50, shard="3"))
    for _ in range(60):
        world.calls.clear()
        run(world, budget=Budget(Clock(world, 30_000, {READ: 6_000})))
        assert world.count(READ) <= 4
        if world.statuses()["good"] == "sent":
            return
    pytest.fail("it is still pending after 60 runs")


@pytest.mark.parametrize("seed", range(5))
def test_shards_full_of_such_rows_do_not_starve_the_others(
    world: IndexedWorld, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "_random", Random(seed))
    for shard in range(15):
        world.add(
            *(
                pending_row(f"p-{shard}-{n}", LONG_AGO_MS + n, shard=str(shard), notification={"S": "{"})
                for n in range(60)
            )
        )
    world.add(pending_row("good", LONG_AGO_MS, shard="15"))
    for _ in range(60):
        world.calls.clear()
        run(world, budget=Budget(Clock(world, 30_000, {READ: 6_000})))
        if world.statuses()["good"] == "sent":
            return
    pytest.fail("it is still pending after 60 runs")


def test_where_a_run_begins_comes_from_the_system_and_not_from_a_state_that_snapstart_would_clone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    assert isinstance(reconciliation._random, random.SystemRandom)


# Beside the consumer, and beside itself


def settled(cloud: Cloud, notifications: int) -> None:
    """Nothing is lost, the business row is written once, and the event is announced so often."""
    assert cloud.statuses() == {"o-1": "sent"}
    row = cloud.ledger()["o-1"]
    assert ("ttl" in row, "notification" in row, "pending_shard" in row) == (True, False, False)
    assert cloud.history.count(("committed", "o-1")) == 0
    assert list(cloud.rows()) == ["o-1"]
    assert cloud.rows()["o-1"]["event_committed_at"] == {"N": str(NOW_MS)}
    assert cloud.notified() == ["o-1"] * notifications
    happened = cloud.history
    assert happened.index(("published", "o-1")) < happened.index(("marked", "o-1"))


REDELIVERY = record("m-1", {"id": "o-1"}, receive_count=2)
# When the other one does its work in the middle of the reconciler's, and how often the event is announced then.
MEANWHILE = [(QUERY, 1), (READ, 1), (PUBLISH, 2), (MARK, 2)]


@pytest.fixture
def stuck(indexed: Cloud) -> Cloud:
    """One event that is committed and not published."""
    indexed.commit_without_publishing(record("m-1", {"id": "o-1"}))
    return indexed


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize(("operation", "notifications"), MEANWHILE)
def test_redelivery_in_the_middle_of_a_run(stuck: Cloud, operation: str, notifications: int) -> None:
    def redeliver() -> None:
        assert stuck.deliver(REDELIVERY) == NOTHING_FAILED

    # Of the queries it is the last one that shows the row.
    calls = [1] if operation != QUERY else [int(shard_of("o-1")) + 1]
    stuck.on(operation, runs=redeliver, calls=calls)
    done = run(stuck)
    assert (done.left, done.unread) == ({}, {})
    settled(stuck, notifications)


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize(("operation", "notifications"), [(READ, 1), (PUBLISH, 2), (MARK, 2)])
def test_run_in_the_middle_of_a_redelivery(stuck: Cloud, operation: str, notifications: int) -> None:
    def reconcile() -> None:
        assert run(stuck).published == 1

    stuck.on(operation, runs=reconcile, calls=[1])
    assert stuck.deliver(REDELIVERY) == NOTHING_FAILED
    settled(stuck, notifications)


@pytest.mark.parametrize(("operation", "notifications"), MEANWHILE)
def test_run_in_the_middle_of_a_run(stuck: Cloud, operation: str, notifications: int) -> None:
    calls = [1] if operation != QUERY else [int(shard_of("o-1")) + 1]
    stuck.on(operation, runs=lambda: run(stuck), calls=calls)
    assert run(stuck).left == {}
    settled(stuck, notifications)


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize("fault", ["killed before", "killed after", "answer lost"])
@pytest.mark.parametrize("operation", [READ, PUBLISH, MARK])
@pytest.mark.parametrize("who", ["reconciler", "redelivery"])
def test_run_that_dies_is_made_good_by_the_next_one_or_by_a_redelivery(
    stuck: Cloud, operation: str, fault: str, who: str
) -> None:
    error: BaseException = CLOSED if fault == "answer lost" else Killed()
    stuck.on(operation, raises=error, after=fault != "killed before", calls=[1])
    if fault == "answer lost":
        run(stuck)
    else:
        with pytest.raises(Killed):
            run(stuck)
    if who == "reconciler":
        run(stuck)
    else:
        assert stuck.deliver(REDELIVERY) == NOTHING_FAILED
    was_published = operation == MARK or (operation == PUBLISH and fault != "killed before")
    was_marked = operation == MARK and fault != "killed before"
    settled(stuck, 2 if was_published and not was_marked else 1)


@pytest.mark.case("C61", "C62")
@pytest.mark.parametrize("fault", ["killed before", "killed after"])
@pytest.mark.parametrize("operation", [COMMIT, PUBLISH, MARK])
def test_consumer_that_dies_and_whose_message_is_gone_is_made_good_by_a_run(
    indexed: Cloud, operation: str, fault: str
) -> None:
    indexed.on(operation, raises=Killed(), after=fault == "killed after", calls=[1])
    with pytest.raises(Killed):
        indexed.deliver(record("m-1", {"id": "o-1"}))
    run(indexed)
    if (operation, fault) == (COMMIT, "killed before"):
        assert (indexed.statuses(), indexed.rows(), indexed.notified()) == ({}, {}, [])
        return
    twice = (operation, fault) in [(PUBLISH, "killed after"), (MARK, "killed before")]
    assert indexed.statuses() == {"o-1": "sent"}
    assert indexed.notified() == ["o-1"] * (2 if twice else 1)
    assert list(indexed.rows()) == ["o-1"]


def test_message_that_comes_back_after_the_run_is_a_duplicate(stuck: Cloud, metrics: Any) -> None:
    run(stuck)
    assert stuck.deliver(REDELIVERY) == NOTHING_FAILED
    assert metrics()["Duplicates"] == 1
    settled(stuck, 1)


def test_other_content_of_a_row_that_was_reconciled_is_a_conflict_as_ever(stuck: Cloud) -> None:
    run(stuck)
    assert stuck.deliver(record("m-2", {"id": "o-1", "total": 1})) == NOTHING_FAILED
    assert stuck.reasons() == ["id-reused"]
    settled(stuck, 1)


def test_row_that_is_deleted_before_it_is_marked_is_not_brought_back(stuck: Cloud) -> None:
    stuck.on(MARK, runs=lambda: stuck.expire("o-1"))
    done = run(stuck)
    assert stuck.statuses() == {}
    assert done.left == {"o-1": unavailable("BatchExecuteStatement", "ConditionalCheckFailed")}
    assert run(stuck).stale == 0


def test_run_writes_nothing_but_the_mark(stuck: Cloud) -> None:
    before = stuck.rows()
    run(stuck)
    assert set(stuck.operations) == {QUERY, READ, PUBLISH, MARK}
    assert stuck.rows() == before
    assert stuck.dead_letters() == []


def test_fifo_group_that_waits_for_its_head_is_announced_by_a_run_and_settled_by_the_queue(
    new_cloud: Callable[..., Cloud],
) -> None:
    cloud = new_cloud(pending_index=True, fifo_queue=True)
    batch = [record(f"m-{n}", {"id": f"o-{n}"}, group="g") for n in (1, 2)]
    cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH), calls=[1])
    assert cloud.deliver(*batch) == reported("m-1", "m-2")
    assert cloud.statuses() == {"o-1": "pending", "o-2": "pending"}
    assert run(cloud).published == 2
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-1", "o-2"]


def test_business_rows_of_another_program_are_of_no_concern(stuck: Cloud) -> None:
    stuck.store(BUSINESS, {"id": {"S": "foreign"}, "status": {"S": "pending"}})
    assert run(stuck).published == 1
    assert stuck.rows()["foreign"] == {"id": {"S": "foreign"}, "status": {"S": "pending"}}


# What is left


@pytest.mark.parametrize(
    ("stale", "published", "gone", "left", "still_stale"),
    [(0, 0, 0, 0, 0), (10, 4, 3, 0, 3), (10, 4, 3, 2, 3), (10, 10, 0, 0, 0), (5, 9, 0, 0, 0), (5, 9, 0, 2, 2)],
)
def test_still_stale_are_those_that_failed_and_those_not_reached(
    stale: int, published: int, gone: int, left: int, still_stale: int
) -> None:
    verdicts = {f"o-{number}": ROW_UNREADABLE for number in range(left)}
    assert Reconciliation(stale, None, published, gone, verdicts).still_stale == still_stale


def test_stored_notification_is_what_the_tests_take_it_for() -> None:
    assert notification("o-1").to_text() == (
        '{"message":"{}","attributes":{"event_id":["String","o-1"]},"group":"g-o-1","deduplication_id":"d-o-1"}'
    )
