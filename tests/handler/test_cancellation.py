"""What a failed transaction says of each of its events: reasons stand at the index of their action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import error_code, failed_call
from idempotent_consumer.cancellation import Next, Reasons, Refusal, read_error
from idempotent_consumer.cancellation import read_reasons as read_reasons_at
from idempotent_consumer.commit import Commit
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.settings import WriteMode
from idempotent_consumer.transaction import combine
from idempotent_consumer.write import Write
from tests.handler.support import client_error

FAILED = "ConditionalCheckFailed"
PRINT = "a" * 64
CONSUMER: AttributeValue = {"S": "orders"}
URL = "https://dynamodb.us-east-1.amazonaws.com/"

DUPLICATE = Refusal(Next.SETTLED, Verdict(Outcome.DUPLICATE))
EXPIRED = Refusal(
    Next.UNLESS_KNOWN, Verdict(Outcome.DUPLICATE, "ledger-row-expired", "the business row carries this event")
)
SUPERSEDED = Refusal(Next.UNLESS_KNOWN, Verdict(Outcome.SUPERSEDED))
ROW_EXISTS = Refusal(
    Next.UNLESS_KNOWN,
    Verdict(Outcome.CONFLICT, "row-exists", "a row of this key is stored that must not be overwritten"),
)
CONFLICT = Refusal(
    Next.AGAIN, Verdict(Outcome.RETRY, "transaction-conflict", "TransactWriteItems: TransactionConflict")
)
UNDECIDED = Refusal(
    Next.ASK_AND_AGAIN, Verdict(Outcome.RETRY, "ledger-undecided", "the transaction was refused without saying why")
)


def commit(event_id: str, *versions: int | None) -> Commit:
    """An event with a business write for each of versions: None inserts, a number replaces what is older."""
    writes = [
        Write({}, WriteMode.INSERT, None, CONSUMER)
        if version is None
        else Write({}, WriteMode.NEWER, {"N": str(version)}, CONSUMER)
        for version in versions
    ]
    return Commit(Event(event_id, {}, PRINT), "ledger", {}, {}, writes, None)


# One, three and two actions: reasons 0, 1 to 3, 4 and 5.


def read_reasons(commits: Sequence[Commit], answer: Reasons | None) -> list[Refusal | None]:
    return read_reasons_at(commits, combine(commits).indexes, answer)


THREE = [commit("a"), commit("b", None, 3), commit("c", None)]
ACTIONS = 6


def sent(event_id: str = "a", fingerprint: str = PRINT) -> dict[str, Any]:
    return refused({"event_id": {"S": event_id}, "fingerprint": {"S": fingerprint}, "status": {"S": "sent"}})


def refused(row: Item | None = None) -> dict[str, Any]:
    return {"Code": FAILED, "Message": "The conditional request failed", **({"Item": row} if row is not None else {})}


def row_of(event_id: str, **more: AttributeValue) -> Item:
    return {"event_id": {"S": event_id}, "event_fingerprint": {"S": PRINT}, "event_consumer": CONSUMER, **more}


def reasons(**by_index: Any) -> list[dict[str, Any]]:
    """The reasons of THREE; the keywords are `at` and an index, the values a code or a whole reason."""
    result: list[dict[str, Any]] = [{"Code": "None"} for _ in range(ACTIONS)]
    for name, reason in by_index.items():
        result[int(name.removeprefix("at"))] = {"Code": reason} if isinstance(reason, str) else reason
    return result


# --- each event by the index of its actions


@pytest.mark.parametrize(("index", "event"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_a_reason_is_that_of_the_event_whose_action_stands_at_its_index(index: int, event: int) -> None:
    expected: list[Refusal | None] = [None, None, None]
    expected[event] = CONFLICT
    assert read_reasons(THREE, reasons(**{f"at{index}": "TransactionConflict"})) == expected


@pytest.mark.parametrize(("index", "event"), [(0, 0), (1, 1), (4, 2)])
def test_a_row_of_the_ledger_is_read_at_the_first_action_of_an_event(index: int, event: int) -> None:
    expected: list[Refusal | None] = [None, None, None]
    expected[event] = DUPLICATE
    assert read_reasons(THREE, reasons(**{f"at{index}": sent("abc"[event])})) == expected


def test_each_event_has_its_own_refusal() -> None:
    answer = read_reasons(THREE, reasons(at0=sent("a"), at2="TransactionConflict", at5=refused(row_of("c"))))
    assert answer == [DUPLICATE, CONFLICT, EXPIRED]


def test_each_event_is_compared_with_its_own_row() -> None:
    other = Refusal(
        Next.SETTLED, Verdict(Outcome.CONFLICT, "id-reused", "the ledger holds this event id with other content")
    )
    assert read_reasons(THREE, reasons(at1=sent("b", "b" * 64), at4=sent("c"))) == [None, other, DUPLICATE]
    assert read_reasons(THREE, reasons(at2=refused(row_of("c")), at5=refused(row_of("b")))) == [
        None,
        ROW_EXISTS,
        ROW_EXISTS,
    ]


def test_a_pending_row_brings_its_notification() -> None:
    stored = RenderedNotification("hello", {"event_id": ("String", "b")}, "g", "d")
    row = sent("b")["Item"] | {"status": {"S": "pending"}, "notification": {"S": stored.to_text()}}
    resumed = Refusal(Next.SETTLED, Verdict(Outcome.RESUMED, notification=stored))
    assert read_reasons(THREE, reasons(at1=refused(row))) == [None, resumed, None]


def test_each_refused_row_is_compared_with_its_own_write() -> None:
    newer = refused(row_of("other", event_version={"N": "4"}))
    assert read_reasons(THREE, reasons(at2=newer)) == [None, ROW_EXISTS, None]
    assert read_reasons(THREE, reasons(at3=newer)) == [None, SUPERSEDED, None]


def test_the_first_refused_row_of_an_event_decides() -> None:
    newer = refused(row_of("other", event_version={"N": "4"}))
    assert read_reasons(THREE, reasons(at2=refused(row_of("b")), at3=newer)) == [None, EXPIRED, None]


def test_an_event_of_several_that_no_reason_names_is_not_refused() -> None:
    assert read_reasons(THREE, reasons()) == [None, None, None]
    assert read_reasons(THREE[:2], reasons()[:4]) == [None, None]


def test_the_only_event_is_refused_even_where_no_reason_names_it() -> None:
    assert read_reasons(THREE[1:2], reasons()[:3]) == [UNDECIDED]
    assert read_reasons(THREE[:1], [{"Code": "None"}]) == [UNDECIDED]


# --- each code


def refused_by_dynamodb(code: str) -> Refusal:
    return Refusal(Next.UNLESS_KNOWN, Verdict(Outcome.REJECTED, "refused-by-dynamodb", f"TransactWriteItems: {code}"))


def retry(following: Next, reason: str, code: str) -> Refusal:
    return Refusal(following, Verdict(Outcome.RETRY, reason, f"TransactWriteItems: {code}"))


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("TransactionConflict", CONFLICT),
        ("ThrottlingError", retry(Next.AGAIN, "throttled", "ThrottlingError")),
        ("ProvisionedThroughputExceeded", retry(Next.AGAIN, "throttled", "ProvisionedThroughputExceeded")),
        ("RequestLimitExceeded", retry(Next.AGAIN, "throttled", "RequestLimitExceeded")),
        ("ValidationError", refused_by_dynamodb("ValidationError")),
        ("ItemCollectionSizeLimitExceeded", refused_by_dynamodb("ItemCollectionSizeLimitExceeded")),
        ("AccessDenied", retry(Next.SETTLED, "misconfigured", "AccessDenied")),
        ("DuplicateItem", retry(Next.SETTLED, "unavailable", "DuplicateItem")),
        ("SomethingNew", retry(Next.SETTLED, "unavailable", "SomethingNew")),
    ],
)
@pytest.mark.parametrize("index", [1, 2, 3])
def test_each_code_has_its_refusal_on_the_ledger_and_on_a_business_row(code: str, index: int, refusal: Refusal) -> None:
    answer = reasons(**{f"at{index}": code})
    assert read_reasons(THREE, answer) == [None, refusal, None]
    assert read_reasons(THREE[1:2], answer[1:4]) == [refusal]


@pytest.mark.parametrize("index", [1, 3])
def test_a_reason_without_a_code_is_not_taken_for_none(index: int) -> None:
    answer = reasons(**{f"at{index}": {"Message": "?"}})
    assert read_reasons(THREE, answer) == [None, retry(Next.SETTLED, "unavailable", "Unknown"), None]


@pytest.mark.parametrize("index", [1, 2, 3])
@pytest.mark.parametrize("reason", [refused(), refused({})], ids=["no row", "an empty row"])
def test_a_refused_condition_without_its_row_is_no_verdict(index: int, reason: dict[str, Any]) -> None:
    answer = reasons(**{f"at{index}": reason})
    assert read_reasons(THREE, answer) == [None, UNDECIDED, None]
    assert read_reasons(THREE[1:2], answer[1:4]) == [UNDECIDED]


# --- several reasons for one event


@pytest.mark.parametrize(
    "other",
    [
        "TransactionConflict",
        "ThrottlingError",
        "ValidationError",
        "ItemCollectionSizeLimitExceeded",
        "SomethingNew",
        refused(row_of("b")),
        refused(),
    ],
)
@pytest.mark.parametrize(
    ("ledger", "refusal"),
    [
        (sent("b"), DUPLICATE),
        (refused(), UNDECIDED),
        ("TransactionConflict", CONFLICT),
        ("ProvisionedThroughputExceeded", retry(Next.AGAIN, "throttled", "ProvisionedThroughputExceeded")),
        ("Unheard", retry(Next.SETTLED, "unavailable", "Unheard")),
    ],
    ids=["sent", "no row", "conflict", "throttled", "unknown"],
)
def test_the_ledger_s_reason_outranks_the_others(ledger: Any, refusal: Refusal, other: Any) -> None:
    assert read_reasons(THREE, reasons(at1=ledger, at2=other)) == [None, refusal, None]
    assert read_reasons(THREE, reasons(at1=ledger, at3=other)) == [None, refusal, None]


@pytest.mark.parametrize("other", ["TransactionConflict", "SomethingNew", refused(row_of("b"))])
def test_what_can_never_succeed_outranks_the_other_business_rows(other: Any) -> None:
    refusal = refused_by_dynamodb("ValidationError")
    assert read_reasons(THREE, reasons(at2=other, at3="ValidationError")) == [None, refusal, None]
    assert read_reasons(THREE, reasons(at2="ValidationError", at3=other)) == [None, refusal, None]
    assert read_reasons(THREE, reasons(at1="ValidationError", at3=other)) == [None, refusal, None]


def test_a_conflict_outranks_a_refused_business_row() -> None:
    refusal = refused(row_of("b"))
    assert read_reasons(THREE, reasons(at2=refusal, at3="TransactionConflict")) == [None, CONFLICT, None]
    assert read_reasons(THREE, reasons(at2="TransactionConflict", at3=refusal)) == [None, CONFLICT, None]


def test_reasons_of_one_event_say_nothing_of_the_next() -> None:
    answer = reasons(at0="TransactionConflict", at3="ValidationError", at5=refused(row_of("c")))
    assert read_reasons(THREE, answer) == [CONFLICT, refused_by_dynamodb("ValidationError"), EXPIRED]


# --- reasons that do not fit the actions


@pytest.mark.parametrize(
    "answer",
    [None, [], [sent("b")], [sent("b")] * 2, [sent("b")] * 4],
    ids=["none", "empty", "one for an event", "one too few", "one too many"],
)
def test_reasons_that_do_not_fit_the_only_event_are_no_verdict(answer: list[dict[str, Any]] | None) -> None:
    assert read_reasons(THREE[1:2], answer) == [UNDECIDED]


@pytest.mark.parametrize(
    "answer",
    [None, [], [sent("a")] * 3, [sent("a")] * 5, [sent("a")] * 7],
    ids=["none", "empty", "one for an event", "one too few", "one too many"],
)
def test_reasons_that_do_not_fit_several_events_name_none_of_them(answer: list[dict[str, Any]] | None) -> None:
    assert read_reasons(THREE, answer) == [None, None, None]


# --- without reasons


def read(error: Exception, events: int) -> list[Refusal | None]:
    return read_error(THREE[:events], error_code(error), failed_call(error, "TransactWriteItems"))


@pytest.mark.parametrize("events", [1, 2, 3])
@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("ThrottlingException", retry(Next.AGAIN, "throttled", "ThrottlingException")),
        ("RequestLimitExceeded", retry(Next.AGAIN, "throttled", "RequestLimitExceeded")),
        (
            "ProvisionedThroughputExceededException",
            retry(Next.AGAIN, "throttled", "ProvisionedThroughputExceededException"),
        ),
        (
            "TransactionConflictException",
            retry(Next.AGAIN, "transaction-conflict", "TransactionConflictException"),
        ),
        (
            "TransactionInProgressException",
            retry(Next.AGAIN, "transaction-conflict", "TransactionInProgressException"),
        ),
        ("AccessDeniedException", retry(Next.SETTLED, "misconfigured", "AccessDeniedException")),
        ("ResourceNotFoundException", retry(Next.SETTLED, "misconfigured", "ResourceNotFoundException")),
        ("UnrecognizedClientException", retry(Next.SETTLED, "misconfigured", "UnrecognizedClientException")),
        ("KMSDisabledException", retry(Next.SETTLED, "misconfigured", "KMSDisabledException")),
        ("KMSThrottlingException", retry(Next.AGAIN, "throttled", "KMSThrottlingException")),
    ],
)
def test_an_error_that_concerns_all_events_is_the_refusal_of_each(code: str, refusal: Refusal, events: int) -> None:
    assert read(client_error(code), events) == [refusal] * events


@pytest.mark.parametrize("error", [NoCredentialsError(), PartialCredentialsError(provider="env", cred_var="key")])
def test_missing_credentials_concern_all_events(error: Exception) -> None:
    refusal = retry(Next.SETTLED, "misconfigured", type(error).__name__)
    assert read(error, 1) == [refusal]
    assert read(error, 3) == [refusal, refusal, refusal]


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (client_error("ValidationException"), refused_by_dynamodb("ValidationException")),
        (client_error("InternalServerError"), retry(Next.SETTLED, "unavailable", "InternalServerError")),
        (client_error("ServiceUnavailable"), retry(Next.SETTLED, "unavailable", "ServiceUnavailable")),
        (
            client_error("IdempotentParameterMismatchException"),
            retry(Next.SETTLED, "unavailable", "IdempotentParameterMismatchException"),
        ),
        (client_error("ValidationError"), retry(Next.SETTLED, "refused", "ValidationError")),
        (client_error("SomethingNew"), retry(Next.SETTLED, "unavailable", "SomethingNew")),
        (ReadTimeoutError(endpoint_url=URL), retry(Next.SETTLED, "unavailable", "ReadTimeoutError")),
        (ConnectTimeoutError(endpoint_url=URL), retry(Next.SETTLED, "unavailable", "ConnectTimeoutError")),
        (EndpointConnectionError(endpoint_url=URL), retry(Next.SETTLED, "unavailable", "EndpointConnectionError")),
    ],
    ids=lambda value: error_code(value) if isinstance(value, Exception) else "",
)
class TestErrorThatOneEventMayHaveCaused:
    def test_is_the_refusal_of_the_only_event(self, error: Exception, refusal: Refusal) -> None:
        assert read(error, 1) == [refusal]

    def test_names_none_of_several(self, error: Exception, refusal: Refusal) -> None:
        assert read(error, 2) == [None, None]
        assert read(error, 3) == [None, None, None]
