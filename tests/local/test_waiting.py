from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from local.waiting import NotInTime, wait_for, wait_until_steady


def test_the_first_truthy_answer_ends_the_wait() -> None:
    answers = iter([0, "", "there"])
    assert wait_for(lambda: next(answers), "it", interval=0) == "there"


def test_the_deadline_names_what_was_awaited_and_the_last_answer() -> None:
    with pytest.raises(NotInTime, match=r"not within 0 s: a row \(last answer: None\)"):
        wait_for(lambda: None, "a row", seconds=0)


def test_a_reading_is_steady_once_it_stays_the_same() -> None:
    readings: Iterator[int] = iter([1, 2, 3, *[4] * 1000])
    began = time.monotonic()
    assert wait_until_steady(lambda: next(readings), "it", steady_seconds=0.2, interval=0.01) == 4
    assert time.monotonic() - began >= 0.2


def test_a_first_reading_that_takes_longer_than_the_limit_may_still_be_steady() -> None:
    def reading() -> int:
        time.sleep(0.05)
        return 1

    assert wait_until_steady(reading, "it", steady_seconds=0.1, seconds=0.01, interval=0.01) == 1


def test_a_reading_that_keeps_changing_is_not_steady() -> None:
    with pytest.raises(NotInTime, match="not steady within"):
        wait_until_steady(time.monotonic, "the clock", steady_seconds=1, seconds=0.1, interval=0.01)
