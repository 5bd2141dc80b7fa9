"""Strategies for what strangers may send, message bodies and attributes, and how many of them are tried."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from idempotent_consumer.message import REFUSED_CHARACTER
from tests.handler.hostile_json import (
    KEY_MARKER,
    VALUE_MARKER,
    Texts,
    events,
    json_object,
    more_members,
    nested,
    odd_values,
    values,
)

# HOSTILE_TIMES=50 pytest tests/handler/test_hostile_*.py: so many times the examples, and others in every run.
_TIMES = int(os.environ.get("HOSTILE_TIMES", "0"))


def examples(count: int) -> settings:
    """The same examples in every run, and nothing left behind in the checkout."""
    return settings(
        max_examples=count * max(1, _TIMES),
        derandomize=_TIMES == 0,
        database=None,
        deadline=None,
        print_blob=True,
        # An explanation of a failure takes longer than finding it.
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_JUNK = (
    *(
        "",
        " ",
        "\n\t",
        "null",
        "true",
        "5",
        '"text"',
        "[]",
        "{}",
        "[[[",
        "}",
        VALUE_MARKER,
        f'{{"{KEY_MARKER}"',
        "<a/>",
    ),
    *('{"id":"o-1"} trailing', '{"id":"o-1"}{"id":"o-2"}', '\ufeff{"id":"o-1"}', "{'id':'o-1'}", '{"id":"o-1",}'),
    *('{"id":"o-1"/*c*/}', "eyJpZCI6Im8tMSJ9", '"{\\"id\\":\\"o-1\\"}"', "id=o-1", "NaN", "1e400", "9" * 5_000),
    *(nested(3_000, "[", "]"), "[" * 5_000, '{"a":' * 5_000, '{"id":' + "[" * 5_000),
)


def _sns(event: str) -> str:
    return json_object([("Type", '"Notification"'), ("Message", json.dumps(event)), ("MessageId", '"6f0a"')])


def _eventbridge(event: str) -> str:
    members = [("id", '"7bf73129"'), ("detail-type", '"Order"'), ("source", '"shop"'), ("detail", event)]
    return json_object(members)


def _rarely_odd(draw: st.DrawFn, good: str) -> str:
    return good if draw(st.integers(0, 9)) else draw(odd_values)


@st.composite
def _s3_records(draw: st.DrawFn) -> str:
    parts = []
    for number in range(draw(st.integers(1, 3))):
        thing = json_object([("key", _rarely_odd(draw, '"k"')), ("sequencer", _rarely_odd(draw, f'"0{number}"'))])
        content = json_object([("bucket", _rarely_odd(draw, '{"name":"b"}')), ("object", _rarely_odd(draw, thing))])
        parts.append(json_object([("s3", _rarely_odd(draw, content)), *draw(st.lists(more_members, max_size=1))]))
    records = _rarely_odd(draw, "[" + ",".join(parts) + "]")
    return json_object([("Records", records), *draw(st.sampled_from(([], [], [("Event", '"s3:TestEvent"')])))])


_WRAPPED: dict[str, Texts] = {
    "raw": events(),
    "sns": (events() | st.sampled_from(_JUNK)).map(_sns),
    "eventbridge": (events() | odd_values).map(_eventbridge),
    "s3": _s3_records(),
}


def bodies(envelope: str = "raw") -> Texts:
    """Bodies with what a stranger may put into this envelope, and with all that does not belong there."""
    wrapped = _WRAPPED[envelope]
    others = st.one_of(events(), values, st.sampled_from(_JUNK), st.text(max_size=20))
    return st.integers(0, 3).flatmap(lambda kind: wrapped if kind else others).map(sendable)


def sendable(body: str) -> str:
    """Without the characters that no SQS message can have."""
    return REFUSED_CHARACTER.sub("?", body)


@dataclass(frozen=True)
class Stranger:
    """A message of a stranger. receives: how often it has come. group: of a FIFO queue."""

    body: str
    attributes: dict[str, Any] = field(default_factory=dict)
    receives: int = 1
    group: str = "g-1"


def body_of(stranger: Stranger) -> str:
    """Tells messages apart where their dead letters are looked for."""
    return stranger.body


_ATTRIBUTE_NAMES = (
    *("dead_letter_reason", "dead_letter_detail", "dead_letter_key", "dead_letter_execution", "event_id", "trace"),
    *("a" * 256, "a.b-c_d", "x1", "x2", "x3", "x4", "x5", KEY_MARKER),
)
_attributes = st.builds(
    lambda text, kind: {"stringValue": text, "dataType": kind, "stringListValues": [], "binaryListValues": []},
    st.sampled_from((VALUE_MARKER, "id-reused", "sqs:m-1", "\u202e\U0001f600", "x" * 2_049, "{}", "@")),
    st.sampled_from(("String", "String.Array", "String.theirs")),
) | st.builds(
    lambda content, kind: {"binaryValue": base64.b64encode(content).decode(), "dataType": kind},
    st.sampled_from((b"\0\xff", VALUE_MARKER.encode())),
    st.sampled_from(("Binary", "Binary.png")),
)


def strangers(envelope: str = "raw", body: Texts | None = None) -> st.SearchStrategy[Stranger]:
    return st.builds(
        Stranger,
        bodies(envelope) if body is None else body,
        st.just({})
        | st.dictionaries(st.sampled_from(_ATTRIBUTE_NAMES), _attributes, max_size=4)
        | st.dictionaries(st.sampled_from(_ATTRIBUTE_NAMES), _attributes, min_size=9, max_size=10),
        st.sampled_from((1, 1, 2, 5)),
        st.sampled_from(("g-1", "g-2")),
    )


# The worst that is known, each on its own; many of a megabyte, so they are made where they are used.
WORST: dict[str, Callable[[], str]] = {
    "a megabyte of text": lambda: f'{{"id":"o-1","note":"{VALUE_MARKER * 65_000}"}}',
    "a hundred thousand brackets": lambda: nested(100_000, "[", "]"),
    "a hundred thousand objects in the id": lambda: '{"id":' + nested(100_000, '{"a":', "}") + "}",
    "nested as deep as can be read": lambda: '{"id":"o-1","a":' + nested(300, "[", "]") + "}",
    "an integer of half a million digits": lambda: f'{{"id":"o-1","total":{"9" * 500_000}}}',
    "a fraction of half a million digits": lambda: f'{{"id":"o-1","total":0.{"1" * 500_000}}}',
    "numbers that unfold": lambda: '{"id":"o-1","lines":[' + ",".join(["1e400"] * 20_000) + "]}",
    "exponents without end": lambda: '{"id":"o-1","lines":[' + ",".join(["1e" + "9" * 40] * 5_000) + "]}",
    "a key of a quarter megabyte": lambda: f'{{"id":"o-1","{KEY_MARKER * 20_000}":{{"a":1e999}}}}',
    "half a million escapes": lambda: '{"id":"o-1","note":"' + "\\u0000" * 150_000 + '"}',
    "halves of surrogate pairs": lambda: '{"id":"o-1","note":"' + "\\ud83d\\ude00" * 50_000 + '\\ud83d"}',
    "a key named ten thousand times": lambda: '{"id":"o-1",' + ",".join(['"a":1'] * 10_000) + "}",
    "a megabyte of blanks": lambda: " " * 1_000_000,
    "a megabyte of quotes": lambda: '"' * 1_000_000,
    "three hundred events": lambda: _s3(range(300)),
}


def _s3(numbers: range) -> str:
    records = (f'{{"s3":{{"bucket":{{"name":"b"}},"object":{{"key":"k","sequencer":"{n}"}}}}}}' for n in numbers)
    return '{"Records":[' + ",".join(records) + "]}"
