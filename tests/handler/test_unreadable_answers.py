"""An answer that cannot be read fails what its call was for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.parsers import ResponseParserError

from tests.handler.support import (
    BURY,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    PUT,
    READ,
    Cloud,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
UNREADABLE = ResponseParserError("the text of the answer, which may quote data")
NEWER: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}


def test_second_publish_of_15_events_fails_only_its_own_five(cloud: Cloud, logged: Logged) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(15)]
    cloud.on(PUBLISH, raises=UNREADABLE, after=True, calls=[2])
    assert cloud.deliver(*batch) == reported("m-10", "m-11", "m-12", "m-13", "m-14")
    assert sorted(event_id for event_id, status in cloud.statuses().items() if status == "pending") == [
        "o-10",
        "o-11",
        "o-12",
        "o-13",
        "o-14",
    ]
    assert {verdict[1:] for verdict in logged()} == {("retry", "unavailable", "PublishBatch: ResponseParserError")}
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert sorted(cloud.notified()) == sorted([f"o-{n}" for n in range(15)] + [f"o-{n}" for n in range(10, 15)])


def test_second_marking_of_30_events_fails_only_its_own_five(cloud: Cloud, logged: Logged) -> None:
    def body(numbers: range) -> dict[str, Any]:
        objects = [{"key": f"k-{number}", "sequencer": "1"} for number in numbers]
        return {"Records": [{"s3": {"bucket": {"name": "b"}, "object": item}} for item in objects]}

    s3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}
    cloud.on(MARK, raises=UNREADABLE, calls=[2])
    answer = cloud.deliver(record("m-1", body(range(25))), record("m-2", body(range(25, 30))), **s3)
    assert answer == reported("m-2")
    assert sorted(cloud.statuses().values()) == ["pending"] * 5 + ["sent"] * 25
    assert {verdict[1:] for verdict in logged()} == {
        ("retry", "unavailable", "BatchExecuteStatement: ResponseParserError")
    }


@pytest.mark.alone
def test_commit_that_took_effect_is_published_by_the_next_delivery(cloud: Cloud, logged: Logged) -> None:
    batch = [record("m-1", {"id": "o-1"}), record("m-2", {"id": "o-2"})]
    cloud.on(COMMIT, raises=UNREADABLE, after=True, calls=[1])
    assert cloud.deliver(*batch) == reported("m-1")
    assert logged() == [("m-1", "retry", "unavailable", "TransactWriteItems: ResponseParserError")]
    assert cloud.statuses() == {"o-1": "pending", "o-2": "sent"}
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-1", "o-2"]


def test_read_of_the_ledger_gives_no_verdict(cloud: Cloud, logged: Logged) -> None:
    cloud.on(READ, raises=UNREADABLE)
    rejected = record("m-1", {"id": "o-1", "event_id": "other"})
    assert cloud.deliver(rejected, record("m-2", {"id": "o-2"})) == reported("m-1")
    assert logged() == [("m-1", "retry", "unavailable", "BatchGetItem: ResponseParserError")]
    assert cloud.dead_letters() == []


def test_put_of_a_superseded_event_is_settled_by_the_next_delivery(cloud: Cloud, logged: Logged) -> None:
    cloud.deliver(record("m-2", {"id": "s-1", "event": "e-2", "version": 2}), **NEWER)
    late = record("m-1", {"id": "s-1", "event": "e-1", "version": 1})
    cloud.on(PUT, raises=UNREADABLE, after=True, calls=[1])
    assert cloud.deliver(late, **NEWER) == reported("m-1")
    assert logged() == [("m-1", "retry", "unavailable", "PutItem: ResponseParserError")]
    assert cloud.deliver(late, **NEWER) == NOTHING_FAILED
    assert cloud.statuses() == {"e-1": "sent", "e-2": "sent"}
    assert cloud.notified() == ["e-2"]


def test_copy_to_the_dead_letter_queue_is_made_again(cloud: Cloud, logged: Logged) -> None:
    cloud.on(BURY, raises=UNREADABLE, calls=[1])
    assert cloud.deliver(record("m-1", "{"), record("m-2", "}")) == reported("m-1")
    assert ("m-1", "retry", "unavailable", "SendMessage: ResponseParserError") in logged()
    assert cloud.deliver(record("m-1", "{")) == NOTHING_FAILED
    assert [letter.body for letter in cloud.dead_letters()] == ["}", "{"]
