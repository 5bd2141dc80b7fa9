"""The library's time budget, for a command that takes the time it needs."""

from __future__ import annotations

from idempotent_consumer.aws import Budget


class _NoDeadline:
    def get_remaining_time_in_millis(self) -> int:
        return 10**9


def endless() -> Budget:
    """What an invocation has so much of, an operator's command does not run out of."""
    return Budget(_NoDeadline())
