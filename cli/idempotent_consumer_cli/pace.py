"""Time that passes while a command runs."""

from __future__ import annotations

import time

# SQS's most for one call.
MOST_AT_ONCE = 10


def monotonic() -> float:
    """Seconds since some moment, whatever happens to the machine's clock."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


class Pace:
    """Holds messages back to a rate. rate: messages a second; None: as fast as they go."""

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._next = monotonic()

    @property
    def batch(self) -> int:
        """How many messages go together, so that none of them has to wait for more than about a second's worth."""
        return MOST_AT_ONCE if self._rate is None else max(1, min(MOST_AT_ONCE, int(self._rate)))

    def page(self, seconds: float) -> int:
        """How many messages can be sent in so many seconds, 1 to 10."""
        return MOST_AT_ONCE if self._rate is None else max(1, min(MOST_AT_ONCE, int(self._rate * seconds)))

    def wait_for(self, messages: int) -> None:
        """Returns once so many messages may be sent."""
        if self._rate is None:
            return
        now = monotonic()
        if self._next > now:
            sleep(self._next - now)
        self._next = max(self._next, now) + messages / self._rate
