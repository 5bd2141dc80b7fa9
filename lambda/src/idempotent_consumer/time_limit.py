"""Stops code that takes too long."""

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TimeIsUp(BaseException):
    """Raised inside the code that took too long. No Exception, so that it is not taken for one of the code's own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp in the code inside once `seconds` are over, at its next step in Python or in a system call.

    Only the main thread, in which Lambda calls a handler, can be stopped; in another one there is no limit.
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
        signal.setitimer(signal.ITIMER_REAL, max(seconds, math.ulp(1.0)))
        yield
    finally:
        is_inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
