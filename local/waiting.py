"""Waiting for conditions, with deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotInTime(AssertionError):
    """A condition did not come true before its deadline."""


def wait_for(condition: Callable[[], T], what: str, *, seconds: float = 30.0, interval: float = 0.2) -> T:
    """Call `condition` until it answers something truthy, and return that.

    Raises `NotInTime`, naming `what` and the last answer, when `seconds` have passed.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise NotInTime(f"not within {seconds:g} s: {what} (last answer: {answer!r})")
        time.sleep(interval)


def wait_until_steady(
    reading: Callable[[], T],
    what: str,
    *,
    steady_seconds: float = 2.0,
    seconds: float = 30.0,
    interval: float = 0.2,
) -> T:
    """Call `reading` until it has answered the same for `steady_seconds`, and return that answer.

    Raises `NotInTime`, naming `what` and the last answer, when it still changes after `seconds`. A reading that takes
    longer than that by itself is no reason: the first may have to fetch thousands of messages.
    """
    deadline = time.monotonic() + seconds
    last, since = reading(), time.monotonic()
    while time.monotonic() - since < steady_seconds:
        time.sleep(interval)
        answer = reading()
        if answer != last:
            last, since = answer, time.monotonic()
            if since >= deadline:
                raise NotInTime(f"not steady within {seconds:g} s: {what} (last answer: {last!r})")
    return last
