"""What a message costs grows with its length and no faster, whatever a stranger fills it with.

The cost is counted, not timed: calls inside the process, and the lengths of the texts that they are handed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.handler.hostile import examples, sendable
from tests.handler.hostile_json import values
from tests.handler.hostile_world import Context, HostileWorld
from tests.handler.support import record

# Raw events whose row, notification and attributes are all selected, one way or another.
WHOLE: dict[str, str] = {}
ROW_ALONE = {"NOTIFICATION_MESSAGE": "id"}
SELECTING = {
    "EVENT_ITEM": "{id: id, note: note, lines: lines, more: @}",
    "NOTIFICATION_MESSAGE": "{id: id, sorted: sort_by(lines[?a], &a), least: min(numbers), joined: join('', texts)}",
    "NOTIFICATION_ATTRIBUTES": '{"sum":"sum(numbers)","texts":"texts","length":"length(lines)"}',
}
SNS = {"EVENT_ENVELOPE": "sns", **ROW_ALONE}
S3 = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}", "EVENT_WRITE_MODE": "upsert"}


@contextmanager
def counted(total: list[int]) -> Iterator[None]:
    """Add to the total: one for each call, and the length of each text among its arguments."""

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "c_call":
            total[0] += 1
        elif event == "call":
            code, given_values = frame.f_code, frame.f_locals
            texts = [given_values.get(name) for name in code.co_varnames[: code.co_argcount]]
            total[0] += 1 + sum(len(text) for text in texts if type(text) is str)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def cost(body: str, settings: dict[str, str]) -> int:
    consumer = HostileWorld().consumer(**settings)
    invocation = {"Records": [record("m-1", body)]}
    total = [0]
    with counted(total):
        answer = consumer.handle(invocation, Context())
    assert answer == {"batchItemFailures": []}
    return total[0]


def check_linear(make: Callable[[int], str], size: int, settings: dict[str, str]) -> None:
    """Twice as much more costs twice as much more; what is quadratic costs four times as much."""
    once, twice, four_times = (cost(make(times * size), settings) for times in (1, 2, 4))
    assert four_times - twice <= 2.2 * max(0, twice - once) + 2_000


def event(members: str) -> str:
    return f'{{"id":"o-1",{members}}}'


def texts(count: int) -> str:
    return ",".join(f'"{number}"' for number in range(count))


def keys(count: int) -> str:
    return ",".join(f'"{number}":1' for number in range(count))


SHAPES: dict[str, Callable[[int], str]] = {
    "one text": lambda n: event(f'"note":"{"x" * 20 * n}"'),
    "many texts": lambda n: event(f'"texts":[{texts(n)}]'),
    "many numbers": lambda n: event(f'"numbers":[{",".join(["1.5"] * n)}]'),
    "many members": lambda n: event(f'"note":{{{keys(n)}}}'),
    "many objects": lambda n: event('"lines":[' + ",".join(['{"a":1,"b":[]}'] * n) + "]"),
    "a long key before many members": lambda n: event(f'"{"k" * 10 * n}":{{{keys(n)}}}'),
    "a long key before many items": lambda n: event(f'"{"k" * 10 * n}":[{",".join(["1"] * n)}]'),
    "long keys inside each other": lambda n: event("".join(f'"{"k" * n}":{{' for _ in range(20)) + "}" * 20),
    "a long number": lambda n: event(f'"total":0.{"1" * 20 * n}'),
    "a longer integer": lambda n: event(f'"total":{"1" * 20 * n}'),
    "zeros": lambda n: event(f'"total":0.{"0" * 20 * n}'),
    "numbers that unfold": lambda n: event(f'"lines":[{",".join(["1e125"] * n)}]'),
    "escapes": lambda n: event('"note":"' + "\\u0000\\ud83d\\ude00" * n + '"'),
    "half of a pair at the end": lambda n: event('"note":"' + "\\ud83d\\ude00" * n + '\\ud83d"'),
    "one key many times": lambda n: event(",".join(['"a":1'] * n)),
    "brackets": lambda n: "[" * 20 * n,
    "blanks": lambda n: " " * 20 * n,
    "quotes": lambda n: '"' * 20 * n,
    "backslashes": lambda n: event('"note":"' + "\\\\" * 10 * n),
    "an SNS message": lambda n: '{"Type":"Notification","Message":"' + "{" * 20 * n + '"}',
    "a key full of percent signs": lambda n: f'{{"Records":[{{"s3":{{"object":{{"key":"{"%" * 20 * n}"}}}}}}]}}',
    "records without a key": lambda n: f'{{"Records":[{",".join(["{}"] * n)}]}}',
}
SETTINGS = {"whole": WHOLE, "row alone": ROW_ALONE, "selecting": SELECTING, "sns": SNS, "s3": S3}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_body_costs_at_most_twice_as_much(shape: str, settings: str) -> None:
    check_linear(SHAPES[shape], 200, SETTINGS[settings])


@pytest.mark.parametrize("settings", ["whole", "row alone", "selecting"])
def test_whatever_is_repeated_costs_no_more_than_it_is_long(settings: str) -> None:
    @examples(15)
    @given(values, st.sampled_from(("note", "lines", "numbers", "texts")))
    def check(value: str, name: str) -> None:
        assume(len(value) <= 2_000)
        check_linear(lambda n: sendable(event(f'"{name}":[{",".join([value] * n)}]')), 25, SETTINGS[settings])

    check()


def test_events_that_write_one_row_take_a_transaction_each_and_no_more() -> None:
    def calls(count: int) -> int:
        world = HostileWorld()
        records = (
            f'{{"s3":{{"bucket":{{"name":"b"}},"object":{{"key":"k","sequencer":"{n}"}}}}}}' for n in range(count)
        )
        body = f'{{"Records":[{",".join(records)}]}}'
        world.consumer(**S3).handle({"Records": [record("m-1", body)]}, Context())
        return len(world.calls)

    assert [calls(count) for count in (10, 100, 1_000, 1_001)] == [12, 114, 1_140, 1]
