"""The one clock of the command line."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The time as epoch milliseconds."""
    return time.time_ns() // 1_000_000
