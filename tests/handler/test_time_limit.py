"""Code that takes too long is stopped, and nothing of that is left behind."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer.time_limit import TimeIsUp, call_within


def compute() -> None:
    while True:
        pass


def listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()


def swallow() -> None:
    try:
        compute()
    except Exception:
        compute()


def swallow_all() -> None:
    for _ in range(2):
        try:
            compute()
        except BaseException:
            continue
    compute()


def join_what_hangs() -> None:
    """As a pool's `with` does with the call that it waits for: the first alarm ends in its exit."""
    try:
        compute()
    finally:
        compute()


@pytest.mark.parametrize("code", [compute, listen, swallow, swallow_all, join_what_hangs])
def test_code_that_takes_too_long_is_stopped(code: Callable[[], None]) -> None:
    with pytest.raises(TimeIsUp):
        call_within(0.05, code)


def test_code_in_time_is_left_alone_and_no_alarm_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert call_within(60, lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_an_exception_of_the_code_goes_on_and_no_alarm_is_left_behind() -> None:
    with pytest.raises(KeyError):
        call_within(60, lambda: signal.Signals["missing"])
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_that_comes_late_stops_nothing() -> None:
    handler = call_within(60, lambda: signal.getsignal(signal.SIGALRM))
    assert callable(handler)
    handler(signal.SIGALRM, None)


def test_it_can_be_used_time_and_again() -> None:
    for _ in range(3):
        with pytest.raises(TimeIsUp):
            call_within(0.01, compute)


def test_no_time_at_all_stops_at_once() -> None:
    with pytest.raises(TimeIsUp):
        call_within(0, compute)


def test_in_another_thread_there_is_no_limit() -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: call_within(0, ended.set)).start()
    assert ended.wait(5)


@pytest.mark.parametrize("line", range(1, 40))
def test_an_alarm_at_whatever_line_is_off_once_the_code_has_ended(line: int) -> None:
    """The alarm is rung by hand before each line of the function itself, the clean-up included."""
    handler = signal.getsignal(signal.SIGALRM)
    seen = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_name != "call_within":
            return None
        if event == "line":
            seen += 1
            if seen == line and signal.getsignal(signal.SIGALRM) is not handler:
                signal.raise_signal(signal.SIGALRM)
        return trace

    before = sys.gettrace()  # such as that of coverage
    sys.settrace(trace)
    try:
        with contextlib.suppress(TimeIsUp):
            call_within(60, int)
    finally:
        sys.settrace(before)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is handler
