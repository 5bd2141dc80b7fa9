"""Stops code that takes too long."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN_SECONDS = 1


class TimeIsUp(BaseException):
    """Raised inside the code that took too long. No Exception, so that it is not taken for one of the code's own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp in the code inside once `seconds` are over, at its next step in Python or in a system call.

    It is raised again each second until the code has ended, since some code swallows it. Only the main thread, in which
    Lambda calls a handler, can be stopped; in another one there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_inside = True

    def stop(*_: Any) -> None:
        if is_inside:
            raise TimeIsUp(f"over {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), _AGAIN_SECONDS)
        yield
    finally:
        is_inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
