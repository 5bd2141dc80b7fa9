"""A cancelled transaction is read by reason, each at the index of its action; the ledger's outranks the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer.calls import ATTEMPTS
from tests.handler.support import (
    BUSINESS,
    COMMIT,
    LEDGER,
    NOTHING_FAILED,
    READ,
    Cloud,
    cancelled,
    client_error,
    record,
    reported,
)

ORDER = {"id": "o-1", "amount": 10}
Logged = Callable[[], list[tuple[str, str, str, str]]]
FAILED = "ConditionalCheckFailed"


def pending_row(cloud: Cloud) -> dict[str, Any]:
    cloud.commit_without_publishing(record("m-0", ORDER))
    return cloud.ledger()["o-1"]


def sent_row(cloud: Cloud) -> dict[str, Any]:
    cloud.deliver(record("m-0", ORDER))
    cloud.forget()
    return cloud.ledger()["o-1"]


def refuse(cloud: Cloud, *reasons: Any, **more: Any) -> None:
    cloud.on(COMMIT, raises=cancelled(*reasons), **more)


# The ledger's action is refused


def test_ledger_refused_with_a_pending_row_is_published_without_a_read(cloud: Cloud) -> None:
    refuse(cloud, {"Code": FAILED, "Item": pending_row(cloud)}, "None")
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.history == [("published", "o-1"), ("marked", "o-1")]
    assert cloud.count(READ) == 0


def test_ledger_refused_with_a_sent_row_is_a_duplicate_without_a_read(cloud: Cloud) -> None:
    refuse(cloud, {"Code": FAILED, "Item": sent_row(cloud)}, "None")
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT]
    assert cloud.notified() == ["o-1"]


@pytest.mark.case("C47")
def test_ledger_refused_with_another_fingerprint_is_a_conflict(cloud: Cloud) -> None:
    refuse(cloud, {"Code": FAILED, "Item": sent_row(cloud)}, "None")
    assert cloud.deliver(record("m-1", {"id": "o-1", "amount": 99})) == NOTHING_FAILED
    assert cloud.reasons() == ["id-reused"]


def test_ledger_reason_outranks_a_refused_business_row(cloud: Cloud) -> None:
    foreign = {"id": {"S": "o-1"}, "event_id": {"S": "another"}, "event_fingerprint": {"S": "another"}}
    refuse(cloud, {"Code": FAILED, "Item": sent_row(cloud)}, {"Code": FAILED, "Item": foreign})
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT]
    assert cloud.dead_letters() == []


@pytest.mark.case("C24")
@pytest.mark.parametrize("other", ["TransactionConflict", "ThrottlingError", "ValidationError"])
def test_ledger_reason_outranks_any_other_reason(cloud: Cloud, other: str) -> None:
    refuse(cloud, {"Code": FAILED, "Item": sent_row(cloud)}, other)
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT]
    assert cloud.dead_letters() == []


@pytest.mark.parametrize(
    "row",
    [
        {"status": {"S": "pending"}},
        {"status": {"S": "IN_PROGRESS"}},
        {"status": {"S": "pending"}, "notification": {"S": "{}"}},
    ],
)
def test_unreadable_ledger_row_is_reported_and_left_alone(cloud: Cloud, row: dict[str, Any], logged: Logged) -> None:
    before = {**sent_row(cloud), **row}
    cloud.store(LEDGER, before)
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.ledger() == {"o-1": before}
    assert [verdict[:3] for verdict in logged()] == [("m-1", "retry", "ledger-row-unreadable")]


# Its row is not in the answer


@pytest.mark.case("C33")
def test_missing_item_is_read_consistently_and_a_pending_row_is_published(cloud: Cloud) -> None:
    pending_row(cloud)
    refuse(cloud, FAILED, "None")
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == ["TransactWriteItems", "BatchGetItem", "PublishBatch", "BatchExecuteStatement"]
    assert cloud.requests(READ) == [
        {"RequestItems": {"orders-processed-events": {"Keys": [{"event_id": {"S": "o-1"}}], "ConsistentRead": True}}}
    ]
    assert cloud.notified() == ["o-1"]


@pytest.mark.case("C33")
def test_missing_item_is_read_consistently_and_a_sent_row_is_a_duplicate(cloud: Cloud) -> None:
    sent_row(cloud)
    refuse(cloud, FAILED, "None")
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ]


@pytest.mark.case("C33")
def test_row_that_is_gone_when_it_is_read_is_tried_again(cloud: Cloud, pauses: list[int]) -> None:
    refuse(cloud, FAILED, "None", calls=[1])
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, COMMIT, "PublishBatch", "BatchExecuteStatement"]
    assert cloud.statuses() == {"o-1": "sent"}
    assert pauses == [0]


@pytest.mark.case("C33")
def test_row_that_is_never_there_when_it_is_read_is_reported_in_the_end(cloud: Cloud, logged: Logged) -> None:
    refuse(cloud, FAILED, "None")
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.operations == [COMMIT, READ] * ATTEMPTS
    assert cloud.ledger() == {}
    assert [verdict[:3] for verdict in logged()] == [("m-1", "retry", "ledger-undecided")]


def test_deciding_read_that_fails_is_no_verdict(cloud: Cloud, logged: Logged) -> None:
    sent_row(cloud)
    refuse(cloud, FAILED, "None")
    cloud.on(READ, raises=client_error("InternalServerError", READ))
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert logged() == [("m-1", "retry", "unavailable", "BatchGetItem: InternalServerError")]


# The answer does not say which action was refused


@pytest.mark.case("C32")
@pytest.mark.parametrize(
    "error",
    [
        client_error("TransactionCanceledException"),
        client_error("TransactionCanceledException", CancellationReasons=None),
        cancelled(),
        cancelled(FAILED),
        cancelled("None", FAILED, "None"),
    ],
    ids=["no reasons", "null", "empty", "one too few", "one too many"],
)
class TestReasonsThatDoNotFitTheActions:
    def test_sent_row_is_a_duplicate(self, cloud: Cloud, error: Exception) -> None:
        sent_row(cloud)
        cloud.on(COMMIT, raises=error)
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ]

    def test_pending_row_is_published(self, cloud: Cloud, error: Exception) -> None:
        pending_row(cloud)
        cloud.on(COMMIT, raises=error)
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.notified() == ["o-1"]
        assert cloud.statuses() == {"o-1": "sent"}

    def test_no_row_is_tried_again(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error, calls=[1])
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]

    def test_no_row_is_never_taken_for_a_duplicate(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error)
        assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
        assert cloud.count(COMMIT) == ATTEMPTS
        assert cloud.ledger() == {}


# Reasons that pass


@pytest.mark.case("C24", "C26")
@pytest.mark.parametrize(
    "reasons",
    [
        ("TransactionConflict", "None"),
        ("None", "TransactionConflict"),
        ("TransactionConflict", "TransactionConflict"),
        ("ThrottlingError", "None"),
        ("None", "ThrottlingError"),
        ("ProvisionedThroughputExceeded", "None"),
        ("None", "ProvisionedThroughputExceeded"),
        ("TransactionConflict", FAILED),
        ("ThrottlingError", FAILED),
    ],
)
class TestPassingReasons:
    def test_second_attempt_commits(self, cloud: Cloud, reasons: tuple[str, str], pauses: list[int]) -> None:
        refuse(cloud, *reasons, calls=[1])
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.count(COMMIT) == 2
        assert cloud.history == [("committed", "o-1"), ("published", "o-1"), ("marked", "o-1")]
        assert pauses == [0]

    @pytest.mark.alone
    def test_attempts_are_bounded_and_the_record_is_reported(
        self, cloud: Cloud, reasons: tuple[str, str], pauses: list[int]
    ) -> None:
        refuse(cloud, *reasons)
        assert cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"})) == reported("m-1", "m-2")
        assert cloud.count(COMMIT) == 5 + 5
        assert pauses == [0, 1, 2, 3, 0, 1, 2, 3]
        assert cloud.ledger() == {}
        assert cloud.dead_letters() == []


@pytest.mark.case("C24")
def test_business_refusal_beside_a_conflict_on_the_ledger_is_no_verdict(cloud: Cloud) -> None:
    """A copy of the event is being committed by somebody else: its business row is there before its ledger row."""
    own = {"id": {"S": "o-1"}, "event_id": {"S": "o-1"}, "event_fingerprint": {"S": "whatever"}}
    refuse(cloud, "TransactionConflict", {"Code": FAILED, "Item": own}, calls=[1])
    cloud.on(COMMIT, raises=cancelled({"Code": FAILED, "Item": pending_row(cloud)}, {"Code": FAILED, "Item": own}))
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, "PublishBatch", "BatchExecuteStatement"]
    assert cloud.dead_letters() == []


def test_conflict_reasons_then_the_ledger_decides(cloud: Cloud) -> None:
    row = sent_row(cloud)
    refuse(cloud, "TransactionConflict", "None", calls=[1])
    refuse(cloud, {"Code": FAILED, "Item": row}, "None", calls=[2])
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT]


# Reasons that do not pass


@pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
@pytest.mark.parametrize("index", [0, 1])
class TestReasonsThatCanNeverSucceed:
    def test_event_is_rejected_once_the_ledger_knows_nothing(self, cloud: Cloud, code: str, index: int) -> None:
        refuse(cloud, *(code if place == index else "None" for place in (0, 1)))
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.operations == ["TransactWriteItems", "BatchGetItem", "SendMessage"]
        (letter,) = cloud.dead_letters()
        assert (letter.reason, letter.detail) == ("refused-by-dynamodb", f"TransactWriteItems: {code}")

    def test_event_that_the_ledger_knows_is_decided_by_it(self, cloud: Cloud, code: str, index: int) -> None:
        pending_row(cloud)
        refuse(cloud, *(code if place == index else "None" for place in (0, 1)))
        assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
        assert cloud.dead_letters() == []
        assert cloud.notified() == ["o-1"]

    @pytest.mark.alone
    def test_only_that_event_of_the_batch_is_rejected(self, cloud: Cloud, code: str, index: int) -> None:
        refuse(cloud, *(code if place == index else "None" for place in (0, 1)), calls=[2])
        answer = cloud.deliver(*(record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)))
        assert answer == NOTHING_FAILED
        assert [letter.body for letter in cloud.dead_letters()] == ['{"id":"o-2"}']
        assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.parametrize("ledger_reason", ["TransactionConflict", "ThrottlingError"])
def test_event_is_not_rejected_while_the_ledger_is_undecided(cloud: Cloud, ledger_reason: str) -> None:
    refuse(cloud, ledger_reason, "ValidationError", calls=[1])
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.count(COMMIT) == 2
    assert cloud.dead_letters() == []
    assert cloud.statuses() == {"o-1": "sent"}


@pytest.mark.parametrize("reasons", [("SomethingNew", "None"), ("None", "SomethingNew"), ("None", {"Message": "?"})])
def test_unknown_reason_is_reported_after_one_attempt(cloud: Cloud, reasons: tuple[Any, Any], logged: Logged) -> None:
    refuse(cloud, *reasons)
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.operations == [COMMIT]
    assert cloud.dead_letters() == []
    ((_, outcome, reason, _),) = logged()
    assert (outcome, reason) == ("retry", "unavailable")


@pytest.mark.case("C24")
def test_reasons_that_name_no_action_are_tried_again(cloud: Cloud) -> None:
    refuse(cloud, "None", "None")
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.count(COMMIT) == ATTEMPTS


@pytest.mark.case("C24")
@pytest.mark.parametrize("text", ["[ConditionalCheckFailed, None]", "[None, None]"])
def test_the_text_of_the_error_is_never_read(cloud: Cloud, text: str) -> None:
    error = cancelled("TransactionConflict", "None")
    error.response["Error"]["Message"] = f"Transaction cancelled, please refer cancellation reasons {text}"
    cloud.on(COMMIT, raises=error)
    assert cloud.deliver(record("m-1", ORDER)) == reported("m-1")
    assert cloud.count(READ) == 0


def test_two_events_that_want_one_row_conflict_only_for_the_second(cloud: Cloud) -> None:
    by_event: dict[str, Any] = {"EVENT_ID": "event"}
    answer = cloud.deliver(
        record("m-1", {"id": "s-1", "event": "e-1"}), record("m-2", {"id": "s-1", "event": "e-2"}), **by_event
    )
    assert answer == NOTHING_FAILED
    assert cloud.statuses() == {"e-1": "sent"}
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
        ('{"id":"s-1","event":"e-2"}', "row-exists")
    ]
    assert cloud.rows()["s-1"]["event_id"] == {"S": "e-1"}


def test_row_of_somebody_else_is_never_overwritten(cloud: Cloud) -> None:
    foreign = {"id": {"S": "o-1"}, "owner": {"S": "somebody else"}}
    cloud.store(BUSINESS, foreign)
    assert cloud.deliver(record("m-1", ORDER)) == NOTHING_FAILED
    assert cloud.rows() == {"o-1": foreign}
    assert cloud.reasons() == ["row-exists"]
    assert cloud.ledger() == {}
