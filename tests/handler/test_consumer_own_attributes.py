"""What the consumer writes into each row beside the event's values, where the event brings a value of that name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handler.support import NOTHING_FAILED, Cloud, record

NEWER: dict[str, Any] = {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_integer_id_that_is_sent_again_as_text_is_a_duplicate_after_the_ledger_row_has_expired(
    cloud: Cloud, mode: str
) -> None:
    select: dict[str, Any] = {"EVENT_ID": "event_id", "EVENT_FINGERPRINT": "amount", "EVENT_WRITE_MODE": mode}
    cloud.deliver(record("m-1", {"id": "s-1", "event_id": 7, "amount": 10}), **select)
    row = cloud.rows()["s-1"]
    assert row["event_id"] == {"S": "7"}
    cloud.expire("7")
    assert cloud.deliver(record("m-2", {"id": "s-1", "event_id": "7", "amount": 10}), **select) == NOTHING_FAILED
    assert cloud.rows() == {"s-1": row}
    assert cloud.notified() == ["7"]
    assert cloud.ledger() == {}
    assert cloud.dead_letters() == []


def test_version_of_the_event_s_own_is_kept_where_versions_are_not_compared(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", {"id": "o-1", "event_version": 3})) == NOTHING_FAILED
    assert cloud.rows()["o-1"]["event_version"] == {"N": "3"}
    assert cloud.dead_letters() == []


def test_version_may_stand_in_the_event_under_the_name_that_the_row_gives_it(cloud: Cloud) -> None:
    newer: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "event_version"}
    cloud.deliver(record("m-2", {"id": "s-1", "event": "e-2", "event_version": 2}), **newer)
    cloud.deliver(record("m-1", {"id": "s-1", "event": "e-1", "event_version": 1}), **newer)
    cloud.deliver(record("m-3", {"id": "s-1", "event": "e-3", "event_version": 3}), **newer)
    assert cloud.rows()["s-1"]["event_version"] == {"N": "3"}
    assert cloud.notified() == ["e-2", "e-3"]
    assert cloud.dead_letters() == []


def test_version_of_the_event_s_own_that_differs_from_the_compared_one_is_dead_lettered(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", {"id": "s-1", "version": 2, "event_version": 3}), **NEWER) == NOTHING_FAILED
    assert [(letter.reason, letter.detail) for letter in cloud.dead_letters()] == [
        ("reserved-attribute", "event_version is written by the consumer; select another name")
    ]
    assert cloud.rows() == {}
