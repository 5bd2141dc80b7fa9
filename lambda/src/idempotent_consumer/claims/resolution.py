"""What a person decides about an operation that no worker can decide. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.items import AttributeValue

# A worker's clock may be wrong by a minute, and a person's too.
CLOCK_SKEW_MS = 120_000

# The row has to hold them beside a result.
MAX_TEXT = 1_000
MAX_DECISIONS = 20


class Decision(Enum):
    """COMPLETED: it was applied. FAILED: it was not, and shall not be. RETRY: it was not, and shall be."""

    COMPLETED = "completed"
    FAILED = "failed"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Resolution:
    """A decision, who made it, and why: at most 1,000 characters each, else ValueError.

    result: with COMPLETED, a JSON value, stored as an effect's own would be.
    """

    decision: Decision
    by: str
    why: str
    result: Any = None

    def __post_init__(self) -> None:
        for name, text in (("by", self.by), ("why", self.why)):
            if len(text) > MAX_TEXT:
                raise ValueError(f"{name} has {len(text)} characters, over {MAX_TEXT}")

    def entry(self, now_ms: int) -> AttributeValue:
        """Its entry in the row's `audit`."""
        return {
            "M": {
                "at": {"N": str(now_ms)},
                "by": {"S": self.by},
                "how": {"S": self.decision.value},
                "why": {"S": self.why},
            }
        }


class NotResolvable(Exception):
    """There is nothing to decide. until_ms: with a claim that a worker may hold, until when (epoch milliseconds)."""

    def __init__(self, text: str, until_ms: int | None = None) -> None:
        super().__init__(text)
        self.until_ms = until_ms


def check_resolvable(row: Row, decision: Decision, now_ms: int) -> None:
    """Raises NotResolvable where it is completed, has failed as decided, or is perhaps in a worker's hands."""
    if row.state is State.COMPLETED:
        raise NotResolvable("it is completed already")
    if row.state is State.FAILED_FINAL and decision is Decision.FAILED:
        raise NotResolvable("it has failed already")
    if len(row.audit) >= MAX_DECISIONS and decision is Decision.RETRY:
        raise NotResolvable(f"it has been decided {len(row.audit)} times: say that it was completed, or has failed")
    free_ms = row.lease_until_ms + CLOCK_SKEW_MS
    if row.state is State.IN_PROGRESS and row.parked_ms is None and now_ms < free_ms:
        raise NotResolvable("a worker may hold its claim", free_ms)
