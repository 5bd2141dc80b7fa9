"""The ledger's calls: which request each makes, and what its answer tells of each event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import Budget
from idempotent_consumer.cancellation import Next, Refusal
from idempotent_consumer.commit import Commit, prepare
from idempotent_consumer.event import Event
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.plan import Notification, Plan, Put
from idempotent_consumer.settings import Settings
from tests.handler.support import (
    BUSINESS,
    COMMIT,
    LEDGER,
    NOW,
    NOW_MS,
    PUT,
    READ,
    TTL,
    Cloud,
    Context,
    Item,
    cancelled,
    client_error,
)

PRINT = "a" * 64
THROTTLED = Verdict(Outcome.RETRY, "throttled", "BatchGetItem: Throttled")
INCOMPLETE = Verdict(Outcome.RETRY, "unavailable", "BatchGetItem: IncompleteAnswer")
OUT_OF_TIME = Verdict(Outcome.RETRY, "out-of-time", "the invocation's time is used up")
TIMEOUT = ReadTimeoutError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com/")
Recalled = tuple[dict[str, Item], dict[str, Verdict]]


def ledger(cloud: Cloud) -> Ledger:
    return Ledger(cloud.clients.dynamodb, LEDGER)


def budget(cloud: Cloud, remaining_ms: int = 30_000, **costs_ms: int) -> Budget:
    return Budget(Context(cloud, remaining_ms, costs_ms))


def recall(cloud: Cloud, *event_ids: str) -> Recalled:
    return ledger(cloud).recall(event_ids, budget(cloud))


def row(event_id: str) -> Item:
    return {"event_id": {"S": event_id}, "fingerprint": {"S": PRINT}, "status": {"S": "sent"}}


def keys(*event_ids: str) -> list[Item]:
    return [{"event_id": {"S": event_id}} for event_id in event_ids]


def answer(found: Sequence[str] | None, unprocessed: Sequence[str] = (), table: str = LEDGER) -> dict[str, Any]:
    """What BatchGetItem answers. found: None for an answer that does not name the table."""
    return {
        "Responses": {} if found is None else {table: [row(event_id) for event_id in found]},
        "UnprocessedKeys": {LEDGER: {"Keys": keys(*unprocessed), "ConsistentRead": True}} if unprocessed else {},
    }


def asked(cloud: Cloud) -> list[list[str]]:
    """The events that each call asks for."""
    requests = [request["RequestItems"][LEDGER] for request in cloud.requests(READ)]
    return [[key["event_id"]["S"] for key in request["Keys"]] for request in requests]


def play(cloud: Cloud, *answers: Mapping[str, Any]) -> None:
    """The answers of the next calls, one each."""
    for number, each in enumerate(answers, 1):
        cloud.on(READ, answers=each, calls=[number])


# --- reading rows


def test_events_are_read_by_one_consistent_call(cloud: Cloud) -> None:
    cloud.store(LEDGER, row("o-1"))
    cloud.store(LEDGER, row("o-3"))
    assert recall(cloud, "o-3", "o-2", "o-1") == ({"o-1": row("o-1"), "o-3": row("o-3")}, {})
    assert cloud.requests(READ) == [
        {
            "RequestItems": {
                "orders-processed-events": {
                    "Keys": [{"event_id": {"S": "o-3"}}, {"event_id": {"S": "o-2"}}, {"event_id": {"S": "o-1"}}],
                    "ConsistentRead": True,
                }
            }
        }
    ]
    assert cloud.operations == ["BatchGetItem"]


def test_events_that_the_ledger_does_not_hold_are_neither_rows_nor_failures(cloud: Cloud) -> None:
    assert recall(cloud, "o-1", "o-2") == ({}, {})
    assert cloud.count(READ) == 1


def test_rows_are_told_apart_by_their_own_key_whatever_their_order(cloud: Cloud) -> None:
    play(cloud, answer(["o-2", "o-1"]))
    rows, failures = recall(cloud, "o-1", "o-2")
    assert {event_id: each["event_id"]["S"] for event_id, each in rows.items()} == {"o-1": "o-1", "o-2": "o-2"}
    assert failures == {}


def test_what_a_call_leaves_over_is_asked_for_at_once(cloud: Cloud, pauses: list[int]) -> None:
    play(cloud, answer(["o-1", "o-2"], ["o-3", "o-4"]), answer(["o-3", "o-4"]))
    rows, failures = recall(cloud, "o-1", "o-2", "o-3", "o-4")
    assert rows == {"o-1": row("o-1"), "o-2": row("o-2"), "o-3": row("o-3"), "o-4": row("o-4")}
    assert failures == {}
    assert asked(cloud) == [["o-1", "o-2", "o-3", "o-4"], ["o-3", "o-4"]]
    assert all(request["RequestItems"][LEDGER]["ConsistentRead"] is True for request in cloud.requests(READ))
    assert pauses == []


def test_a_read_goes_on_as_long_as_it_gets_on(cloud: Cloud, pauses: list[int]) -> None:
    events = [f"o-{number}" for number in range(8)]
    play(cloud, *(answer([event], events[number:]) for number, event in enumerate(events, 1)))
    rows, failures = recall(cloud, *events)
    assert (sorted(rows), failures) == (events, {})
    assert [len(each) for each in asked(cloud)] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert pauses == []


def test_an_event_is_unknown_only_once_it_has_been_processed(cloud: Cloud) -> None:
    play(cloud, answer([], ["o-2"]), answer([]))
    assert recall(cloud, "o-1", "o-2") == ({}, {})
    assert asked(cloud) == [["o-1", "o-2"], ["o-2"]]


def test_what_is_left_over_each_time_is_throttled_in_the_end(cloud: Cloud, pauses: list[int]) -> None:
    play(cloud, answer(["o-1"], ["o-2", "o-3"]), *[answer([], ["o-2"])] * 6)
    assert recall(cloud, "o-1", "o-2", "o-3") == ({"o-1": row("o-1")}, {"o-2": THROTTLED})
    assert asked(cloud) == [["o-1", "o-2", "o-3"], ["o-2", "o-3"], *[["o-2"]] * 5]
    assert pauses == [0, 1, 2, 3]


@pytest.mark.parametrize("found", [None, []], ids=["without the table", "with an empty table"])
def test_all_that_is_left_over_is_asked_for_after_a_pause(
    cloud: Cloud, found: list[str] | None, pauses: list[int]
) -> None:
    play(cloud, answer(found, ["o-1", "o-2"]), answer(["o-1"], ["o-2"]), answer(found, ["o-2"]), answer(["o-2"]))
    assert recall(cloud, "o-1", "o-2") == ({"o-1": row("o-1"), "o-2": row("o-2")}, {})
    assert asked(cloud) == [["o-1", "o-2"], ["o-1", "o-2"], ["o-2"], ["o-2"]]
    assert pauses == [0, 1]


@pytest.mark.parametrize(
    "unreadable",
    [
        {},
        {"Responses": {}},
        {"Responses": {}, "UnprocessedKeys": {}},
        {"UnprocessedKeys": {}},
        answer(["o-1", "o-2"], table="billing-processed-events"),
        answer(None, ["o-2"]),
    ],
    ids=["empty", "no table", "no table, none left over", "no responses", "another table", "fewer left over"],
)
def test_an_answer_without_the_table_is_no_knowledge(cloud: Cloud, unreadable: dict[str, Any]) -> None:
    play(cloud, unreadable)
    assert recall(cloud, "o-1", "o-2") == ({}, {"o-1": INCOMPLETE, "o-2": INCOMPLETE})
    assert cloud.count(READ) == 1


def test_what_has_been_read_stays_when_the_next_answer_says_nothing(cloud: Cloud) -> None:
    play(cloud, answer(["o-1"], ["o-2", "o-3"]), {})
    assert recall(cloud, "o-1", "o-2", "o-3") == ({"o-1": row("o-1")}, {"o-2": INCOMPLETE, "o-3": INCOMPLETE})
    assert cloud.count(READ) == 2


def test_an_answer_may_leave_out_what_is_empty(cloud: Cloud) -> None:
    play(cloud, {"Responses": {LEDGER: [row("o-1")]}})
    assert recall(cloud, "o-1", "o-2") == ({"o-1": row("o-1")}, {})


# --- calls that fail


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (
            client_error("InternalServerError", READ),
            Verdict(Outcome.RETRY, "unavailable", "BatchGetItem: InternalServerError"),
        ),
        (
            client_error("AccessDeniedException", READ),
            Verdict(Outcome.RETRY, "misconfigured", "BatchGetItem: AccessDeniedException"),
        ),
        (
            client_error("ValidationException", READ),
            Verdict(Outcome.RETRY, "refused", "BatchGetItem: ValidationException"),
        ),
        (TIMEOUT, Verdict(Outcome.RETRY, "unavailable", "BatchGetItem: ReadTimeoutError")),
        (ResponseParserError("?"), Verdict(Outcome.RETRY, "unavailable", "BatchGetItem: ResponseParserError")),
        (NoCredentialsError(), Verdict(Outcome.RETRY, "misconfigured", "BatchGetItem: NoCredentialsError")),
    ],
    ids=["5xx", "no right", "refused", "timeout", "unreadable", "no credentials"],
)
def test_a_call_that_fails_is_a_verdict_on_each_event(cloud: Cloud, error: Exception, verdict: Verdict) -> None:
    cloud.on(READ, raises=error)
    assert recall(cloud, "o-1", "o-2") == ({}, {"o-1": verdict, "o-2": verdict})
    assert cloud.count(READ) == 1


def test_a_throttled_call_is_made_again(cloud: Cloud, pauses: list[int]) -> None:
    cloud.store(LEDGER, row("o-1"))
    cloud.on(READ, raises=client_error("ThrottlingException", READ), calls=[1, 2])
    assert recall(cloud, "o-1", "o-2") == ({"o-1": row("o-1")}, {})
    assert asked(cloud) == [["o-1", "o-2"]] * 3
    assert pauses == [0, 1]


def test_a_call_that_is_always_throttled_is_a_verdict_in_the_end(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(READ, raises=client_error("ThrottlingException", READ))
    throttled = Verdict(Outcome.RETRY, "throttled", "BatchGetItem: ThrottlingException")
    assert recall(cloud, "o-1", "o-2") == ({}, {"o-1": throttled, "o-2": throttled})
    assert cloud.count(READ) == 5
    assert pauses == [0, 1, 2, 3]


def test_a_later_call_that_fails_concerns_only_what_it_asks_for(cloud: Cloud) -> None:
    play(cloud, answer(["o-1"], ["o-3"]))
    cloud.on(READ, raises=TIMEOUT)
    rows, failures = recall(cloud, "o-1", "o-2", "o-3")
    assert rows == {"o-1": row("o-1")}
    assert failures == {"o-3": Verdict(Outcome.RETRY, "unavailable", "BatchGetItem: ReadTimeoutError")}


def test_a_fault_of_our_own_is_not_taken_for_the_service_s(cloud: Cloud) -> None:
    cloud.on("*", raises=RuntimeError("a fault"))
    for call in (
        lambda: recall(cloud, "o-1"),
        lambda: ledger(cloud).write([commit(cloud, "o-1")]),
        lambda: ledger(cloud).settle_superseded(commit(cloud, "o-1"), budget(cloud)),
    ):
        with pytest.raises(RuntimeError, match="a fault"):
            call()


# --- the time that is left


@pytest.mark.parametrize(("remaining_ms", "calls"), [(7_500, 1), (7_499, 0), (0, 0)])
def test_nothing_is_read_that_might_not_end_in_time(cloud: Cloud, remaining_ms: int, calls: int) -> None:
    rows, failures = ledger(cloud).recall(["o-1", "o-2"], budget(cloud, remaining_ms))
    assert rows == {}
    assert failures == ({} if calls else {"o-1": OUT_OF_TIME, "o-2": OUT_OF_TIME})
    assert cloud.count(READ) == calls


def test_what_is_left_over_when_time_is_up_is_out_of_time(cloud: Cloud) -> None:
    cloud.on(READ, answers=answer(["o-1"], ["o-3"]), calls=[1])
    rows, failures = ledger(cloud).recall(["o-1", "o-2", "o-3"], budget(cloud, 8_000, BatchGetItem=501))
    assert (rows, failures) == ({"o-1": row("o-1")}, {"o-3": OUT_OF_TIME})
    assert cloud.count(READ) == 1


# --- writing events


def settings(cloud: Cloud) -> Settings:
    return Settings.from_environment(cloud.environment())


def commit(cloud: Cloud, event_id: str, *row_ids: str) -> Commit:
    """An event that writes rows of these ids."""
    plan = Plan([Put("order_records", {"id": row_id}) for row_id in row_ids])
    return prepare(Event(event_id, {}, PRINT), plan, f"m-{event_id}", NOW_MS, settings(cloud))


def ledger_put(event_id: str) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": "orders-processed-events",
            "Item": {
                "event_id": {"S": event_id},
                "fingerprint": {"S": PRINT},
                "created_at": NOW,
                "message_id": {"S": f"m-{event_id}"},
                "status": {"S": "sent"},
                "sent_at": NOW,
                "ttl": TTL,
            },
            "ConditionExpression": "attribute_not_exists(event_id)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def business_put(event_id: str, row_id: str) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": "order_records",
            "Item": {
                "id": {"S": row_id},
                "event_id": {"S": event_id},
                "event_fingerprint": {"S": PRINT},
                "event_consumer": {"S": "orders"},
                "event_committed_at": NOW,
            },
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": "id"},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def test_events_are_written_by_one_transaction_each_with_its_ledger_row_first(cloud: Cloud) -> None:
    assert ledger(cloud).write([commit(cloud, "o-1", "k-1", "k-2"), commit(cloud, "o-2", "k-3")]) == []
    assert cloud.requests(COMMIT) == [
        {
            "TransactItems": [
                ledger_put("o-1"),
                business_put("o-1", "k-1"),
                business_put("o-1", "k-2"),
                ledger_put("o-2"),
                business_put("o-2", "k-3"),
            ]
        }
    ]
    assert cloud.operations == ["TransactWriteItems"]
    assert cloud.statuses() == {"o-1": "sent", "o-2": "sent"}
    assert sorted(cloud.rows()) == ["k-1", "k-2", "k-3"]


def test_an_event_without_rows_writes_its_ledger_row_alone(cloud: Cloud) -> None:
    assert ledger(cloud).write([commit(cloud, "o-1")]) == []
    assert cloud.requests(COMMIT) == [{"TransactItems": [ledger_put("o-1")]}]


def test_one_refused_row_keeps_all_events_from_being_written(cloud: Cloud) -> None:
    stored = row("o-2")
    cloud.store(LEDGER, stored)
    refusals = ledger(cloud).write([commit(cloud, "o-1", "k-1"), commit(cloud, "o-2", "k-2"), commit(cloud, "o-3")])
    assert refusals == [None, Refusal(Next.SETTLED, Verdict(Outcome.DUPLICATE)), None]
    assert cloud.ledger() == {"o-2": stored}
    assert cloud.rows() == {}


def test_refused_business_row_is_judged_for_its_event(cloud: Cloud) -> None:
    cloud.store(BUSINESS, {"id": {"S": "k-2"}})
    (first, second) = ledger(cloud).write([commit(cloud, "o-1", "k-1"), commit(cloud, "o-2", "k-3", "k-2")])
    assert first is None
    assert second is not None
    assert (second.next, second.verdict.outcome, second.verdict.reason) == (
        Next.UNLESS_KNOWN,
        Outcome.CONFLICT,
        "row-exists",
    )


@pytest.mark.parametrize(
    ("error", "next_step", "reason", "detail"),
    [
        (cancelled("None", "ThrottlingError"), Next.AGAIN, "throttled", "TransactWriteItems: ThrottlingError"),
        (
            client_error("TransactionCanceledException"),
            Next.ASK_AND_AGAIN,
            "ledger-undecided",
            "the transaction was refused without saying why",
        ),
        (
            client_error("ThrottlingException"),
            Next.AGAIN,
            "throttled",
            "TransactWriteItems: ThrottlingException",
        ),
        (
            client_error("ValidationException"),
            Next.UNLESS_KNOWN,
            "refused-by-dynamodb",
            "TransactWriteItems: ValidationException",
        ),
        (TIMEOUT, Next.SETTLED, "unavailable", "TransactWriteItems: ReadTimeoutError"),
        (
            NoCredentialsError(),
            Next.SETTLED,
            "misconfigured",
            "TransactWriteItems: NoCredentialsError (it writes to order_records)",
        ),
    ],
    ids=["reasons", "no reasons", "throttled", "invalid", "timeout", "no credentials"],
)
def test_a_transaction_that_fails_refuses_its_only_event(
    cloud: Cloud, error: Exception, next_step: Next, reason: str, detail: str
) -> None:
    cloud.on(COMMIT, raises=error)
    (refusal,) = ledger(cloud).write([commit(cloud, "o-1", "k-1")])
    assert refusal is not None
    assert (refusal.next, refusal.verdict.reason, refusal.verdict.detail) == (next_step, reason, detail)
    assert cloud.count(COMMIT) == 1


@pytest.mark.parametrize(
    "error",
    [
        TIMEOUT,
        client_error("ValidationException"),
        client_error("TransactionCanceledException"),
        cancelled("None", "ThrottlingError"),
        cancelled("None", "None", "None", "None"),
    ],
    ids=["timeout", "invalid", "no reasons", "too few reasons", "reasons that name none"],
)
def test_a_transaction_that_fails_without_naming_an_event_names_none(cloud: Cloud, error: Exception) -> None:
    cloud.on(COMMIT, raises=error)
    assert ledger(cloud).write([commit(cloud, "o-1", "k-1"), commit(cloud, "o-2", "k-2")]) == [None, None]


# --- settling a superseded event


def settle(cloud: Cloud, remaining_ms: int = 30_000) -> Verdict | None:
    plan = Plan([Put("order_records", {"id": "k-1"})], Notification("hello"))
    superseded = prepare(Event("o-1", {}, PRINT), plan, "m-o-1", NOW_MS, settings(cloud))
    return ledger(cloud).settle_superseded(superseded, budget(cloud, remaining_ms))


def test_a_superseded_event_leaves_its_ledger_row_and_no_other(cloud: Cloud) -> None:
    assert settle(cloud) == Verdict(Outcome.SUPERSEDED)
    assert cloud.requests(PUT) == [ledger_put("o-1")["Put"]]
    assert cloud.operations == ["PutItem"]
    assert cloud.ledger() == {"o-1": ledger_put("o-1")["Put"]["Item"]}
    assert cloud.rows() == {}


def test_a_row_that_the_ledger_holds_by_now_is_left_alone(cloud: Cloud) -> None:
    stored = row("o-1")
    cloud.store(LEDGER, stored)
    assert settle(cloud) is None
    assert cloud.ledger() == {"o-1": stored}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (client_error("ThrottlingException", PUT), "throttled"),
        (client_error("InternalServerError", PUT), "unavailable"),
        (client_error("AccessDeniedException", PUT), "misconfigured"),
        (client_error("ValidationException", PUT), "refused"),
        (client_error("TransactionConflictException", PUT), "transaction-conflict"),
        (TIMEOUT, "unavailable"),
    ],
)
def test_a_superseded_event_that_cannot_be_settled_comes_back(cloud: Cloud, error: Exception, reason: str) -> None:
    cloud.on(PUT, raises=error)
    verdict = settle(cloud)
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.RETRY, reason)
    assert verdict.detail.startswith("PutItem: ")
    assert cloud.count(PUT) == 1


@pytest.mark.parametrize(("remaining_ms", "calls"), [(7_500, 1), (7_499, 0)])
def test_no_superseded_event_is_settled_that_might_not_end_in_time(cloud: Cloud, remaining_ms: int, calls: int) -> None:
    assert settle(cloud, remaining_ms) == (Verdict(Outcome.SUPERSEDED) if calls else OUT_OF_TIME)
    assert cloud.count(PUT) == calls
