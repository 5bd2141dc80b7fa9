"""Strangers write the messages: none crashes the pipeline, tells on its body, changes its neighbours or steers it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.handler.hostile import WORST, Stranger, body_of, examples, strangers
from tests.handler.hostile_world import (
    DEAD,
    Configured,
    Delivered,
    check_calls,
    check_letter,
    deliver,
    event_ids,
    hostile_record,
)
from tests.handler.support import record

SELECTING = {
    "EVENT_ITEM": "{id: id, total: total, lines: lines[?@ > `1`], type: type}",
    "EVENT_FINGERPRINT": "[id, total, lines]",
    "NOTIFICATION_MESSAGE": "{id: id, total: total, most: max(lines), typed: to_number(type)}",
    "NOTIFICATION_ATTRIBUTES": '{"type":"type","total":"total","sum":"sum(lines)"}',
}
# Name to envelope and further settings.
PIPELINES: dict[str, tuple[str, dict[str, str]]] = {
    "insert": ("raw", {}),
    "upsert": ("raw", {"EVENT_WRITE_MODE": "upsert"}),
    "newer": ("raw", {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}),
    "selecting": ("raw", SELECTING),
    "rows of the id alone": ("raw", {"EVENT_ITEM": "{id: to_string(id)}", "NOTIFICATION_MESSAGE": "id"}),
    "keys that are numbers": (
        "raw",
        {"EVENT_ITEM": "{id: number, order: id, more: total}", "BUSINESS_HASH_KEY_TYPE": "N"},
    ),
    "sns": ("sns", {}),
    "eventbridge": ("eventbridge", {"EVENT_ITEM": "{id: id, order: detail}", "EVENT_WRITE_MODE": "upsert"}),
    "s3": ("s3", {"EVENT_ITEM": "{id: s3.object.key, bucket: s3.bucket.name}", "EVENT_WRITE_MODE": "upsert"}),
}
CONFIGURED = {
    "selecting": Configured(attributes=frozenset({"total", "type", "sum"})),
    "keys that are numbers": Configured(key_type="N"),
}
# Name to number.
GOOD = {"good-first": "4111", "good-last": "4112"}
# Ids of the good messages' events, where the envelope makes them.
IDS = {"s3": ("b/good-first//0A", "b/good-last//0A")}
TEN = {f"x-{number}": {"stringValue": "x", "dataType": "String"} for number in range(10)}
NINE = {name: value for name, value in TEN.items() if name != "x-0"}
# At most so many strangers in a batch, each with at most three events, and so many calls for all of it.
MOST_STRANGERS, MOST_CALLS = 6, 40


def good_body(name: str, envelope: str) -> str:
    order = f'{{"id":"{name}","number":{GOOD[name]},"version":1,"total":19.99,"lines":[1,2.5]}}'
    return {
        "raw": order,
        "sns": '{"Type":"Notification","Message":"' + order.replace('"', '\\"') + '"}',
        "eventbridge": f'{{"id":"{name}","source":"shop","detail-type":"Order","detail":{order}}}',
        "s3": f'{{"Records":[{{"s3":{{"bucket":{{"name":"b"}},"object":{{"key":"{name}","sequencer":"0A"}}}}}}]}}',
    }[envelope]


def good_records(pipeline: str, *, is_fifo: bool = False) -> list[dict[str, Any]]:
    envelope, _ = PIPELINES[pipeline]
    return [record(f"m-{name}", good_body(name, envelope), group=name if is_fifo else None) for name in GOOD]


def settings_of(pipeline: str) -> dict[str, str]:
    envelope, settings = PIPELINES[pipeline]
    return {"EVENT_ENVELOPE": envelope, **settings}


def ids_of_good(pipeline: str) -> tuple[str, ...]:
    return IDS.get(PIPELINES[pipeline][0], tuple(GOOD))


@cache
def alone(pipeline: str, is_fifo: bool) -> Delivered:
    """What comes of the good messages in a batch of their own."""
    return deliver(good_records(pipeline, is_fifo=is_fifo), settings_of(pipeline))


def deliver_among(pipeline: str, hostile: Sequence[Stranger], *, is_fifo: bool = False) -> Delivered:
    """One good message, those of strangers, the other good one; and that all is as it must be."""
    first, last = good_records(pipeline, is_fifo=is_fifo)
    records = {f"m-{number}": stranger for number, stranger in enumerate(hostile, 1)}
    among = [hostile_record(message_id, stranger, is_fifo=is_fifo) for message_id, stranger in records.items()]
    delivered = deliver([first, *among, last], settings_of(pipeline))

    delivered.seen.check()
    check_calls(delivered.world.calls, CONFIGURED.get(pipeline, Configured()))
    check_outcomes(delivered, records, PIPELINES[pipeline][0])
    mine = ids_of_good(pipeline)
    rows = [*mine, *GOOD, *GOOD.values()]
    assert delivered.of(rows) == alone(pipeline, is_fifo).of(rows)
    assert all(row is not None for row in delivered.of(mine)["ledger"].values())
    assert not {"m-good-first", "m-good-last"} & set(delivered.returned)
    return delivered


def check_outcomes(delivered: Delivered, strangers: dict[str, Stranger], envelope: str) -> None:
    """Each message is settled, or dead, or comes back with a reason that is no fault."""
    returned, reasons = delivered.returned, delivered.seen.reasons
    dead = list(delivered.buried)
    for message_id, stranger in strangers.items():
        if message_id in returned:
            assert reasons.get(message_id, "group-blocked") in ("dead-letter-does-not-fit", "group-blocked")
            continue
        letter = next((each for each in dead if each["MessageBody"] == stranger.body), None)
        if letter is not None:
            check_letter(letter, stranger, DEAD)
            dead.remove(letter)
            continue
        for event_id in event_ids(stranger.body, envelope):
            assert delivered.world.ledger[event_id]["status"] == {"S": "sent"}
    assert dead == []


def batches(pipeline: str) -> st.SearchStrategy[list[Stranger]]:
    return st.lists(strangers(PIPELINES[pipeline][0]), min_size=2, max_size=MOST_STRANGERS, unique_by=body_of)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_strangers_harm_nobody_whatever_they_send(pipeline: str) -> None:
    @examples(70)
    @given(batches(pipeline), st.booleans())
    @example([Stranger('{"id":"\\ud800"}'), Stranger('{"id":"o-1","total":NaN}'), Stranger("")], True)
    @example([Stranger('{"id":{"a":"value-4111-1111"}}'), Stranger('{"id":"o-1","number":"7"}')], False)
    @example([Stranger('{"id":"o-1","total":1e400}'), Stranger('{"id":"o-1","id":"o-2"}')], False)
    @example(
        [Stranger("{", TEN), Stranger('{"id":"o-1"}'), Stranger("[", {**NINE, "dead_letter_reason": TEN["x-1"]})], True
    )
    def check(hostile: list[Stranger], is_fifo: bool) -> None:
        delivered = deliver_among(pipeline, hostile, is_fifo=is_fifo)
        assert len(delivered.world.calls) <= MOST_CALLS

    check()


@pytest.mark.parametrize("name", WORST)
def test_the_worst_that_is_known_harms_nobody(name: str) -> None:
    body = WORST[name]()
    for pipeline in ("insert", "rows of the id alone", "s3"):
        delivered = deliver_among(pipeline, [Stranger(body)])
        # The events of one message that write the same row follow each other, a transaction for each.
        is_many = (name, pipeline) == ("three hundred events", "s3")
        assert len(delivered.world.calls) <= (360 if is_many else MOST_CALLS)
