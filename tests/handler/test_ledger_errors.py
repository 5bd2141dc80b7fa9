"""Commits whose call fails as a whole: refusals, lost answers, missing rights. None of them ever means duplicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from idempotent_consumer import calls
from idempotent_consumer.calls import ATTEMPTS, pause
from tests.handler.support import (
    BURY,
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
Logged = Callable[[], list[tuple[str, str, str, str]]]

URL = "https://dynamodb.us-east-1.amazonaws.com/"
LOST_ANSWERS = [
    ReadTimeoutError(endpoint_url=URL),
    ConnectionClosedError(endpoint_url=URL),
    client_error("InternalServerError"),
]


# The transaction is refused as a whole


@pytest.mark.parametrize("code", ["ValidationException"])
class TestRefusalOfTheWholeTransaction:
    def test_ledger_is_asked_first_and_then_the_event_is_rejected(self, cloud: Cloud, code: str) -> None:
        cloud.on(COMMIT, raises=client_error(code))
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, BURY]
        (letter,) = cloud.dead_letters()
        assert (letter.reason, letter.detail) == ("refused-by-dynamodb", "TransactWriteItems: ValidationException")
        assert cloud.ledger() == {}

    def test_event_that_the_ledger_knows_as_pending_is_published(self, cloud: Cloud, code: str) -> None:
        cloud.commit_without_publishing(record("m-0", ORDER))
        cloud.on(COMMIT, raises=client_error(code))
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, PUBLISH, MARK]
        assert cloud.dead_letters() == []

    def test_event_that_the_ledger_knows_as_sent_is_a_duplicate(self, cloud: Cloud, code: str) -> None:
        cloud.deliver(record("m-0", ORDER))
        cloud.on(COMMIT, raises=client_error(code))
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.notified() == ["o-1"]
        assert cloud.dead_letters() == []

    def test_event_is_reported_while_the_ledger_cannot_be_read(self, cloud: Cloud, code: str) -> None:
        cloud.on(COMMIT, raises=client_error(code))
        cloud.on(READ, raises=client_error("InternalServerError", READ))
        assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
        assert cloud.dead_letters() == []

    @pytest.mark.case("C30")
    @pytest.mark.alone
    def test_others_of_the_batch_are_committed(self, cloud: Cloud, code: str) -> None:
        cloud.on(COMMIT, raises=client_error(code), calls=[2])
        answer = cloud.deliver(*(record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)))
        assert answer == NOTHING_FAILED
        assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}
        assert [letter.body for letter in cloud.dead_letters()] == ['{"id":"o-2"}']


# Errors that pass


@pytest.mark.parametrize(
    "code",
    [
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "TransactionInProgressException",
        "TransactionConflictException",
    ],
)
class TestErrorsThatPass:
    def test_second_attempt_commits(self, cloud: Cloud, code: str, pauses: list[int]) -> None:
        cloud.on(COMMIT, raises=client_error(code), calls=[1])
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]
        assert pauses == [0]

    def test_attempts_are_bounded(self, cloud: Cloud, code: str, pauses: list[int]) -> None:
        cloud.on(COMMIT, raises=client_error(code))
        assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
        assert cloud.operations == [COMMIT] * ATTEMPTS
        assert pauses == [0, 1, 2, 3]
        assert cloud.dead_letters() == []


def test_attempts_are_five() -> None:
    assert ATTEMPTS == 5


# Errors that wait for the next delivery


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (client_error("InternalServerError"), "InternalServerError"),
        (client_error("ServiceUnavailable"), "ServiceUnavailable"),
        (client_error("SomethingNew"), "SomethingNew"),
        (ReadTimeoutError(endpoint_url=URL), "ReadTimeoutError"),
        (ConnectTimeoutError(endpoint_url=URL), "ConnectTimeoutError"),
        (ConnectionClosedError(endpoint_url=URL), "ConnectionClosedError"),
        (EndpointConnectionError(endpoint_url=URL), "EndpointConnectionError"),
        (ResponseParserError("Unable to parse response"), "ResponseParserError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unavailable_table_is_reported_after_one_attempt(
    cloud: Cloud, error: Exception, detail: str, logged: Logged
) -> None:
    cloud.on(COMMIT, raises=error)
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.operations == [COMMIT]
    assert logged() == [("m-1", "retry", "unavailable", f"TransactWriteItems: {detail}")]
    assert cloud.dead_letters() == []


@pytest.mark.case("C29")
def test_mismatch_of_the_request_token_is_unknown_and_never_a_duplicate(cloud: Cloud, logged: Logged) -> None:
    cloud.on(COMMIT, raises=client_error("IdempotentParameterMismatchException"))
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.operations == [COMMIT]
    assert logged() == [("m-1", "retry", "unavailable", "TransactWriteItems: IdempotentParameterMismatchException")]
    assert cloud.dead_letters() == []


@pytest.mark.case("C29")
def test_request_token_is_never_derived_from_the_event(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER))
    assert "ClientRequestToken" not in cloud.requests(COMMIT)[0]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (client_error("AccessDeniedException"), "AccessDeniedException"),
        (client_error("ResourceNotFoundException"), "ResourceNotFoundException"),
        (client_error("UnrecognizedClientException"), "UnrecognizedClientException"),
        (client_error("ExpiredTokenException"), "ExpiredTokenException"),
        (NoCredentialsError(), "NoCredentialsError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.alone
def test_missing_right_or_table_is_a_misconfiguration_of_the_events_it_touches(
    cloud: Cloud, error: Exception, detail: str, logged: Logged, metrics: Callable[[], dict[str, Any]]
) -> None:
    cloud.on(COMMIT, raises=error, calls=[2])
    assert cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"})) == reported("m-2")
    what = f"TransactWriteItems: {detail} (it writes to order_records)"
    assert logged() == [("m-2", "retry", "misconfigured", what)]
    counted = metrics()
    assert (counted["Misconfigured"], counted["Retries"], counted["Applied"]) == (1, 1, 1)


# The answer is lost


@pytest.mark.case("C28")
@pytest.mark.parametrize("error", LOST_ANSWERS, ids=["timeout", "closed", "5xx"])
class TestCommitWhoseAnswerIsLost:
    def test_redelivery_publishes(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error, after=True, calls=[1])
        assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
        assert cloud.statuses() == {"o-1": "pending"}
        assert "ttl" not in cloud.ledger()["o-1"]
        assert cloud.notifications() == []
        assert cloud.deliver(record("m-1", ORDER, receive_count=2)) == NOTHING_FAILED
        assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]

    def test_copy_later_in_the_batch_publishes(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error, after=True, calls=[1])
        assert cloud.deliver(record("m-1", ORDER), record("m-2", ORDER)) == reported("m-1")
        assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.notified() == ["o-1"]

    def test_redelivery_without_a_topic_is_a_duplicate(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error, after=True, calls=[1])
        assert cloud.deliver(record("m-1", ORDER), TOPIC_ARN=None) == reported("m-1")
        assert cloud.deliver(record("m-1", ORDER), TOPIC_ARN=None) == NOTHING_FAILED
        assert cloud.history == [("committed", "o-1")]


@pytest.mark.case("C28")
def test_throttled_attempt_that_had_committed_is_resumed_by_the_next_one(cloud: Cloud) -> None:
    """The SDK's own second attempt meets the row of its first one: the ledger says pending, so it is published."""
    cloud.on(COMMIT, raises=client_error("ThrottlingException"), after=True, calls=[1])
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]


@pytest.mark.case("C26")
def test_one_conflict_after_another_is_paused_longer_and_jittered(
    monkeypatch: pytest.MonkeyPatch, cloud: Cloud
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(calls, "pause", lambda attempt: pause(attempt, sleep=slept.append))
    cloud.on(COMMIT, raises=client_error("TransactionConflictException"))
    cloud.deliver(record("m-1", ORDER))
    assert len(slept) == 4
    assert all(0 <= seconds <= 0.05 * 2**attempt for attempt, seconds in enumerate(slept))
    assert len(set(slept)) == 4
