"""Stops code that takes too long."""

import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_AGAIN_SECONDS = 1
_Value = TypeVar("_Value")


class TimeIsUp(BaseException):
    """Raised inside the code that took too long. No Exception, so that it is not taken for one of the code's own."""


def call_within(seconds: float, code: Callable[[], _Value]) -> _Value:
    """Call the code, and raise TimeIsUp in it once `seconds` are over, at its next step in Python or in a system call.

    It is raised again each second until the code has ended, since some code swallows it. Only the main thread, in which
    Lambda calls a handler, can be stopped; in another one there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        return code()
    is_running = False

    def ring(*_: Any) -> None:
        if is_running:
            raise TimeIsUp(f"over {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            is_running = True
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), _AGAIN_SECONDS)
            return code()
        finally:
            is_running = False
    finally:  # also where the alarm rings in the line above: its next time is a second away
        is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
