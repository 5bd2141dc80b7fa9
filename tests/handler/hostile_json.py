"""JSON as text, chosen to break whoever reads it: strategies for values, and for events with odd ones in odd places.

Text, since what is hostile in it (a key named twice, 1e400, half of a surrogate pair) is lost in Python's values. Two
markers stand for what is secret: as a key of an object, and as a value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from tests.handler.support import BUSINESS, LEDGER

KEY_MARKER, VALUE_MARKER = "key-4111-1111", "value-4111-1111"

Texts = st.SearchStrategy[str]


NUMBERS = (
    *("0", "-0", "-0.0", "0e-390", "7", "7.0", "1e0", "1.50E+2", "19.99"),
    *("9" * 38, "9" * 39, "-0." + "1" * 38, "0." + "1" * 39, "1" + "0" * 125, "1" + "0" * 126),
    *("1E+125", "1e126", "1e-130", "1e-131", "1e400", "-1e-400", "1e401", "9" * 400, "9" * 401, "9" * 5_000),
    *("0." + "1" * 5_000, "1e999999999", "-1e-999999999", "1e" + "9" * 30),
)
NO_VALUES = (
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "1_000",
    "\u0661",
    "-",
    "1e",
    "True",
    "'a'",
    '"\\x41"',
    '"\\u12"',
    '"\t"',
)
# As they stand between the quotes of a JSON string.
STRINGS = (
    *(VALUE_MARKER, "", " ", "o-1", "7", "1e999", "%00", "%zz", "%ff", "a+b", "../..", "x" * 1_025, "x" * 2_049),
    *(
        "\\u0000",
        "\\ud800",
        "\\udfff",
        "\\ude00\\ud83d",
        "\\ud83d\\ude00",
        "\U0001f600",
        "\\ufeff",
        "\\ufffe",
        "\\uffff",
    ),
    *(
        "\\u202egpj",
        "e\\u0301" * 3,
        "\\u200b",
        "\\u0085\\u2028",
        "\\u001b[2J",
        "\\r\\n",
        "\u0639\u0631",
        "\u00e9" * 1_025,
    ),
    *("\\\\", '\\"', "\\/", "{}", '{\\"id\\":1}', "[" * 40),
    *(LEDGER, BUSINESS, "arn:aws:sns:us-east-1:999999999999:theirs", "https://sqs.us-east-1.amazonaws.com/9/theirs"),
    *("@", "sum(@)", "`1`", "id || 'x'", "[?id > `1`]", "#key", ":version", "attribute_exists(id)", "' OR 1=1 --"),
    f'UPDATE \\"{LEDGER}\\" SET \\"status\\"=? WHERE \\"event_id\\"=?',
)
KEYS = (
    *(
        KEY_MARKER,
        "",
        "id",
        "version",
        "number",
        "total",
        "lines",
        "type",
        "S",
        "N",
        "M",
        "L",
        "NULL",
        "B",
        "SS",
        "__proto__",
    ),
    *("event_id", "event_fingerprint", "event_consumer", "event_version", "event_committed_at", "fingerprint"),
    *("ttl", "status", "pending_shard", "notification", "message_id", "created_at", "#key", ":version", "a.b", "a[0]"),
    *("Type", "Message", "Records", "Event", "detail", "detail-type", "source", "s3", LEDGER, "\\u0000", "\\ud800"),
)
TYPED = ('{"S":"x"}', '{"N":"1"}', '{"N":1e400}', '{"M":{"a":{"S":"x"}}}', '{"NULL":true}', '{"B":"eA=="}', '{"SS":[]}')


def _quoted(content: str) -> str:
    return f'"{content}"'


def json_object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in members) + "}"


def nested(depth: int, opening: str, closing: str, inner: str = "1") -> str:
    return depth * opening + inner + depth * closing


_nests = st.builds(
    nested,
    st.sampled_from((29, 30, 31, 32, 33, 34, 300, 3_000)) | st.integers(100, 1_000),
    *(st.just(text) for text in ("[", "]")),
) | st.builds(
    nested,
    st.sampled_from((29, 30, 31, 32, 33, 34, 300, 3_000)) | st.integers(100, 1_000),
    *(st.just(text) for text in ('{"a":', "}")),
)
_strings = (st.sampled_from(STRINGS) | st.text(max_size=6).map(lambda text: json.dumps(text)[1:-1])).map(_quoted)
_scalars = (
    st.sampled_from(("null", "true", "false", *NUMBERS, *TYPED)) | st.integers(-(10**40), 10**40).map(str) | _strings
)
_keys = st.sampled_from(KEYS)
# Each kind of value that JSON has, and some that it has not.
values: Texts = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(_keys, inner), max_size=4).map(json_object)
    ),
    max_leaves=6,
)
odd_values = st.one_of(*[values] * 6, _nests, st.sampled_from(NO_VALUES))
# What stands beside what the settings select.
more_members = st.tuples(st.sampled_from([key for key in KEYS if key not in ("id", "version", "total")]), values)
_versions = st.sampled_from(("1", "2", "2.0", '"b"'))
_ids = st.sampled_from(('"o-1"', '"o-2"', "7", f'"{VALUE_MARKER}"')) | st.integers(0, 10**9).map(lambda n: f'"n-{n}"')


@st.composite
def events(draw: st.DrawFn) -> str:
    """An object in which each place that a setting may select holds what it should, something odd, or nothing."""
    members: list[tuple[str, str]] = []
    for key, good, most in (("id", _ids, 9), ("version", _versions, 7), ("total", st.just("19.99"), 5)):
        # Mostly good, or nothing behind the reader of JSON would ever be reached.
        kind = draw(st.integers(0, most))
        if kind:
            members.append((key, draw(good if kind > 2 else odd_values)))
    members += draw(st.lists(more_members, max_size=3))
    members += draw(
        st.sampled_from(([], [], [("lines", "[1,2.5]")], [("type", '"7"'), ("number", "7")], [("id", '"twice"')]))
    )
    return json_object(draw(st.permutations(members)))
