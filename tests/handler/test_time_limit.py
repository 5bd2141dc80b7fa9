"""Code that takes too long is stopped, and nothing of that is left behind."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable

import pytest

from idempotent_consumer.time_limit import TimeIsUp, time_limit


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
    with pytest.raises(TimeIsUp), time_limit(0.05):
        code()


def test_code_in_time_is_left_alone_and_no_alarm_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_an_exception_of_the_code_goes_on_and_no_alarm_is_left_behind() -> None:
    with pytest.raises(KeyError), time_limit(60):
        raise KeyError
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_that_comes_late_stops_nothing() -> None:
    with time_limit(60):
        handler = signal.getsignal(signal.SIGALRM)
    assert callable(handler)
    handler(signal.SIGALRM, None)


def test_it_can_be_used_time_and_again() -> None:
    for _ in range(3):
        with pytest.raises(TimeIsUp), time_limit(0.01):
            compute()


def test_no_time_at_all_stops_at_once() -> None:
    with pytest.raises(TimeIsUp), time_limit(0):
        compute()


def test_in_another_thread_there_is_no_limit() -> None:
    ended = threading.Event()

    def work() -> None:
        with time_limit(0):
            ended.set()

    threading.Thread(target=work).start()
    assert ended.wait(5)
