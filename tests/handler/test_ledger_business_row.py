"""A refused business row decides only where a consistent read of the ledger, made after the refusal, finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer.calls import ATTEMPTS
from tests.handler.support import (
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    NOTHING_FAILED,
    NOW,
    PUBLISH,
    PUT,
    READ,
    TTL,
    Cloud,
    Item,
    Killed,
    cancelled,
    client_error,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
FAILED = "ConditionalCheckFailed"

EVENT = {"id": "s-1", "event": "e-1", "version": 5, "text": "a"}
SAME_ID_OTHER_CONTENT = {**EVENT, "text": "b"}

INSERT: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "insert"}
UPSERT: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "upsert"}
NEWER: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}

each_mode = pytest.mark.parametrize("mode", [INSERT, UPSERT, NEWER], ids=["insert", "upsert", "newer"])


def stored(cloud: Cloud, event: dict[str, Any], mode: dict[str, Any]) -> Item:
    """The event is long done: its business row stands, its ledger row has expired. Returns the business row."""
    cloud.deliver(record("m-0", event), **mode)
    cloud.expire(event["event"])
    cloud.forget()
    return cloud.rows()["s-1"]


def refuse_business_row(cloud: Cloud, row: Item, **more: Any) -> None:
    cloud.on(COMMIT, raises=cancelled("None", {"Code": FAILED, "Item": row}), **more)


# The ledger knows the event after all


@each_mode
def test_ledger_read_that_finds_the_event_pending_publishes_it(cloud: Cloud, mode: dict[str, Any]) -> None:
    """The copy that is being committed by somebody else has written its business row first, then its ledger row."""
    cloud.commit_without_publishing(record("m-0", EVENT), **mode)
    refuse_business_row(cloud, cloud.rows()["s-1"])
    assert cloud.deliver(record("m-1", EVENT), **mode) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, PUBLISH, MARK]
    assert cloud.requests(READ)[0]["RequestItems"][LEDGER]["ConsistentRead"] is True
    assert cloud.notified() == ["e-1"]
    assert cloud.statuses() == {"e-1": "sent"}
    assert cloud.dead_letters() == []


@each_mode
def test_ledger_read_that_finds_the_event_sent_makes_it_a_duplicate(cloud: Cloud, mode: dict[str, Any]) -> None:
    cloud.deliver(record("m-0", EVENT), **mode)
    refuse_business_row(cloud, {"id": {"S": "s-1"}, "event_id": {"S": "e-2"}, "event_fingerprint": {"S": "f"}})
    assert cloud.deliver(record("m-1", EVENT), **mode) == NOTHING_FAILED
    assert cloud.notified() == ["e-1"]
    assert cloud.dead_letters() == []


@each_mode
def test_ledger_read_that_finds_other_content_makes_it_a_conflict(cloud: Cloud, mode: dict[str, Any]) -> None:
    cloud.deliver(record("m-0", EVENT), **mode)
    refuse_business_row(cloud, {"id": {"S": "s-1"}, "event_id": {"S": "e-2"}, "event_fingerprint": {"S": "f"}})
    assert cloud.deliver(record("m-1", SAME_ID_OTHER_CONTENT), **mode) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("id-reused", "the ledger holds this event id with other content")


@each_mode
@pytest.mark.parametrize("code", ["AccessDeniedException", "InternalServerError", "ThrottlingException"])
def test_business_row_gives_no_verdict_while_the_ledger_cannot_be_read(
    cloud: Cloud, mode: dict[str, Any], code: str
) -> None:
    refuse_business_row(cloud, stored(cloud, EVENT, mode))
    cloud.on(READ, raises=client_error(code, READ))
    answer = cloud.deliver(record("m-1", EVENT), record("m-2", "{"), **mode)
    assert answer == reported("m-1")
    assert cloud.reasons() == ["bad-json"]


# The ledger knows nothing: the event's own row


@each_mode
def test_own_row_with_the_same_content_is_a_duplicate_whose_ledger_row_has_expired(
    cloud: Cloud, mode: dict[str, Any]
) -> None:
    row = stored(cloud, EVENT, mode)
    assert (row["event_id"], row["event_consumer"]) == ({"S": "e-1"}, {"S": "orders"})
    assert cloud.deliver(record("m-1", EVENT), **mode) == NOTHING_FAILED
    assert cloud.operations == ["TransactWriteItems", "BatchGetItem"]
    assert cloud.rows() == {"s-1": row}
    assert cloud.ledger() == {}
    assert cloud.notified() == ["e-1"]
    assert cloud.dead_letters() == []


@each_mode
def test_own_row_with_other_content_is_a_conflict(cloud: Cloud, mode: dict[str, Any]) -> None:
    row = stored(cloud, EVENT, mode)
    assert cloud.deliver(record("m-1", SAME_ID_OTHER_CONTENT), **mode) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("id-reused", "the business row holds this event id with other content")
    assert cloud.rows() == {"s-1": row}
    assert cloud.ledger() == {}


def test_own_row_under_a_number_key_is_known(cloud: Cloud) -> None:
    cloud.deliver(record("m-0", {"id": 7}))
    cloud.expire("7")
    assert cloud.deliver(record("m-1", {"id": 7})) == NOTHING_FAILED
    assert cloud.dead_letters() == []
    assert cloud.notified() == ["7"]


# The ledger knows nothing: somebody else's row


def test_insert_refuses_to_overwrite_the_row_of_another_event(cloud: Cloud) -> None:
    row = stored(cloud, {**EVENT, "event": "e-0"}, INSERT)
    assert cloud.deliver(record("m-1", EVENT), **INSERT) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.detail) == ("row-exists", "a row of this key is stored that must not be overwritten")
    assert cloud.rows() == {"s-1": row}
    assert cloud.ledger() == {}


def test_upsert_overwrites_the_row_of_another_event(cloud: Cloud) -> None:
    cloud.deliver(record("m-0", {**EVENT, "event": "e-0"}), **UPSERT)
    assert cloud.deliver(record("m-1", EVENT), **UPSERT) == NOTHING_FAILED
    assert cloud.rows()["s-1"]["event_id"] == {"S": "e-1"}
    assert cloud.notified() == ["e-0", "e-1"]
    assert cloud.statuses() == {"e-0": "sent", "e-1": "sent"}


def test_insert_refuses_to_overwrite_what_another_consumer_wrote_for_the_same_event(cloud: Cloud) -> None:
    row = stored(cloud, EVENT, INSERT)
    assert cloud.deliver(record("m-1", EVENT), CONSUMER_NAME="invoices", **INSERT) == NOTHING_FAILED
    assert cloud.reasons() == ["row-exists"]
    assert cloud.rows() == {"s-1": row}


def test_upsert_overwrites_what_another_consumer_wrote_for_the_same_event(cloud: Cloud) -> None:
    row = stored(cloud, EVENT, UPSERT)
    assert cloud.deliver(record("m-1", EVENT), CONSUMER_NAME="invoices", **UPSERT) == NOTHING_FAILED
    assert cloud.rows() == {"s-1": {**row, "event_consumer": {"S": "invoices"}}}
    assert cloud.statuses() == {"e-1": "sent"}


def test_upsert_overwrites_a_row_that_no_event_wrote(cloud: Cloud) -> None:
    cloud.store(BUSINESS, {"id": {"S": "s-1"}, "owner": {"S": "somebody else"}})
    assert cloud.deliver(record("m-1", EVENT), **UPSERT) == NOTHING_FAILED
    assert "owner" not in cloud.rows()["s-1"]


def test_newer_overwrites_an_older_version(cloud: Cloud) -> None:
    cloud.deliver(record("m-0", {**EVENT, "event": "e-0", "version": 4}), **NEWER)
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.rows()["s-1"]["event_version"] == {"N": "5"}
    assert cloud.notified() == ["e-0", "e-1"]


@pytest.mark.parametrize(("stored_version", "version"), [(6, 5), (5, 5), (10, 9), ("b", "a"), ("a", "a"), ("é", "z")])
def test_newer_leaves_a_version_that_is_not_older(cloud: Cloud, stored_version: Any, version: Any) -> None:
    row = stored(cloud, {**EVENT, "event": "e-0", "version": stored_version}, NEWER)
    assert cloud.deliver(record("m-1", {**EVENT, "version": version}), **NEWER) == NOTHING_FAILED
    assert cloud.operations == ["TransactWriteItems", "BatchGetItem", "PutItem"]
    assert cloud.rows() == {"s-1": row}
    assert cloud.statuses() == {"e-1": "sent"}
    assert cloud.notified() == ["e-0"]
    assert cloud.dead_letters() == []


@pytest.mark.parametrize(
    "row",
    [
        {"id": {"S": "s-1"}, "owner": {"S": "somebody else"}},
        {"id": {"S": "s-1"}, "event_version": {"S": "9"}},
    ],
    ids=["no version", "version of another type"],
)
def test_newer_refuses_a_row_that_it_cannot_compare(cloud: Cloud, row: Item) -> None:
    cloud.store(BUSINESS, row)
    refuse_business_row(cloud, row)
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.reasons() == ["row-exists"]
    assert cloud.rows() == {"s-1": row}
    assert cloud.ledger() == {}


# The row is not in the answer


@each_mode
def test_refused_row_that_is_not_returned_is_tried_again(cloud: Cloud, mode: dict[str, Any]) -> None:
    cloud.on(COMMIT, raises=cancelled("None", FAILED), calls=[1])
    assert cloud.deliver(record("m-1", EVENT), **mode) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK]
    assert cloud.statuses() == {"e-1": "sent"}


@each_mode
def test_refused_row_that_is_never_returned_is_reported_in_the_end(
    cloud: Cloud, mode: dict[str, Any], logged: Logged
) -> None:
    cloud.on(COMMIT, raises=cancelled("None", FAILED))
    assert cloud.deliver(record("m-1", EVENT), **mode) == reported("m-1")
    assert cloud.operations == [COMMIT, READ] * ATTEMPTS
    assert cloud.dead_letters() == []
    assert [verdict[:3] for verdict in logged()] == [("m-1", "retry", "ledger-undecided")]


# Superseded: one conditional put of the ledger row


def test_superseded_event_is_written_to_the_ledger_as_sent(cloud: Cloud) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.deliver(record("m-1", EVENT), **NEWER)
    row = cloud.ledger()["e-1"]
    fingerprint = row.pop("fingerprint")
    assert len(fingerprint["S"]) == 64
    assert row == {
        "event_id": {"S": "e-1"},
        "status": {"S": "sent"},
        "message_id": {"S": "m-1"},
        "created_at": NOW,
        "sent_at": NOW,
        "ttl": TTL,
    }


def test_superseded_event_that_another_delivery_has_committed_meanwhile_is_published(cloud: Cloud) -> None:
    """Between the read of the ledger and the put, a copy of the event is committed."""
    newer_row = stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)

    def another_delivery_commits() -> None:
        cloud.real.dynamodb.delete_item(TableName=BUSINESS, Key={"id": {"S": "s-1"}})
        with pytest.raises(Killed):
            cloud.deliver(record("m-2", EVENT), **NEWER)

    cloud.on(PUBLISH, raises=Killed(), calls=[1])
    cloud.on(PUT, runs=another_delivery_commits, calls=[1])
    refuse_business_row(cloud, newer_row, calls=[1])
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, PUT, COMMIT, PUBLISH, READ, PUBLISH, MARK]
    assert cloud.statuses() == {"e-1": "sent"}
    assert cloud.notified() == ["e-0", "e-1"]


def test_superseded_event_that_another_delivery_has_settled_meanwhile_is_a_duplicate(cloud: Cloud) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.on(PUT, runs=lambda: cloud.deliver(record("m-2", EVENT), **NEWER), calls=[1])
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, PUT, COMMIT, READ, PUT, READ]
    assert cloud.ledger()["e-1"]["message_id"] == {"S": "m-2"}
    assert cloud.notified() == ["e-0"]


def test_superseded_event_whose_id_another_event_has_taken_meanwhile_is_a_conflict(cloud: Cloud) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.on(PUT, runs=lambda: cloud.deliver(record("m-2", SAME_ID_OTHER_CONTENT), **NEWER), calls=[1])
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.reasons() == ["id-reused"]


def test_superseded_event_whose_put_is_refused_by_a_row_that_is_gone_is_reported(cloud: Cloud, logged: Logged) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.on(PUT, raises=client_error("ConditionalCheckFailedException", PUT))
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == reported("m-1")
    assert [verdict[:3] for verdict in logged()] == [("m-1", "retry", "ledger-undecided")]


@pytest.mark.parametrize("code", ["ThrottlingException", "TransactionConflictException", "InternalServerError"])
def test_superseded_event_whose_put_fails_is_reported(cloud: Cloud, code: str) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.on(PUT, raises=client_error(code, PUT))
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == reported("m-1")
    assert cloud.ledger() == {}
    cloud.heal()
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.statuses() == {"e-1": "sent"}


def test_superseded_put_whose_answer_is_lost_is_settled_by_the_retry(cloud: Cloud) -> None:
    stored(cloud, {**EVENT, "event": "e-0", "version": 6}, NEWER)
    cloud.on(PUT, raises=client_error("InternalServerError", PUT), after=True, calls=[1])
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == reported("m-1")
    assert cloud.deliver(record("m-1", EVENT), **NEWER) == NOTHING_FAILED
    assert cloud.statuses() == {"e-1": "sent"}
    assert cloud.notified() == ["e-0"]


def test_business_row_is_judged_after_the_ledger_was_read_and_not_before(cloud: Cloud) -> None:
    """The ledger row appears just before the read: it decides, though the row in the reason would be a conflict."""
    foreign = {"id": {"S": "s-1"}, "owner": {"S": "somebody else"}}
    cloud.deliver(record("m-0", EVENT), **INSERT)
    row = cloud.ledger()["e-1"]
    cloud.expire("e-1")
    cloud.forget()
    refuse_business_row(cloud, foreign)
    cloud.on(READ, runs=lambda: cloud.store(LEDGER, row))
    assert cloud.deliver(record("m-1", EVENT), **INSERT) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ]
    assert cloud.dead_letters() == []
