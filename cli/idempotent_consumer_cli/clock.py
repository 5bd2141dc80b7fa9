"""The one clock of the command line, and the time that a command may take."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from idempotent_consumer.calls import Budget

_LAST_MS = 253_402_300_799_000


def now_ms() -> int:
    """The time as epoch milliseconds."""
    return time.time_ns() // 1_000_000


def moment(ms: int) -> str:
    """Epoch milliseconds as people and programs read them: `2029-12-31T23:59:59+00:00`."""
    return datetime.fromtimestamp(min(max(ms, 0), _LAST_MS) // 1000, UTC).isoformat()


def moment_or_none(ms: int | None) -> str | None:
    return None if ms is None else moment(ms)


def monotonic() -> float:
    """Seconds since some moment, whatever happens to the machine's clock."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


class _NoDeadline:
    def get_remaining_time_in_millis(self) -> int:
        return 10**9


def endless() -> Budget:
    """What an invocation has so much of, an operator's command does not run out of."""
    return Budget(_NoDeadline())
