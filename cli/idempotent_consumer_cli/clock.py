"""The one clock of the command line."""

from __future__ import annotations

import time
from datetime import UTC, datetime

_LAST_MS = 253_402_300_799_000


def now_ms() -> int:
    """The time as epoch milliseconds."""
    return time.time_ns() // 1_000_000


def moment(ms: int) -> str:
    """Epoch milliseconds as people and programs read them: `2029-12-31T23:59:59+00:00`."""
    return datetime.fromtimestamp(min(max(ms, 0), _LAST_MS) // 1000, UTC).isoformat()


def moment_or_none(ms: int | None) -> str | None:
    return None if ms is None else moment(ms)
