"""What became of each event, and the answer to the poller."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idempotent_consumer.notification import RenderedNotification


class Outcome(Enum):
    """What became of an event."""

    APPLIED = "applied"
    RESUMED = "resumed"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    IGNORED = "ignored"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    RETRY = "retry"
    BLOCKED = "blocked"
    # Of operations only.
    COMPLETED = "completed"
    FAILED = "failed"
    PARKED = "parked"
    # Of workflows only.
    STARTED = "started"

    @property
    def is_reported(self) -> bool:
        """The message comes back."""
        return self in (Outcome.RETRY, Outcome.BLOCKED)

    @property
    def is_dead(self) -> bool:
        """The message belongs in the dead-letter queue."""
        return self in _DEAD


_DEAD = (Outcome.REJECTED, Outcome.CONFLICT, Outcome.FAILED, Outcome.PARKED)

# Worth another attempt at once; every other failure waits for the message's next visibility.
PASSING_REASONS = frozenset({"throttled", "transaction-conflict"})
# Wait for a person: they count as `Misconfigured`, which has an alarm.
MISCONFIGURED_REASONS = frozenset({"misconfigured", "plan-invalid", "refused"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome with its reason.

    reason: one of the codes in docs/reasons.md. detail: for operators; of a dead event it may name fields of the body.
    notification: what has still to be published, where the outcome is applied or resumed. retry_at_ms: when the message
    is worth another look, epoch milliseconds; None leaves it to the backoff.
    """

    outcome: Outcome
    reason: str = ""
    detail: str = ""
    notification: "RenderedNotification | None" = None
    retry_at_ms: int | None = None

    @property
    def is_misconfigured(self) -> bool:
        """Nothing heals before a person acts. A plan can dead-letter by any reason, so the outcome counts too."""
        return self.outcome is Outcome.RETRY and self.reason in MISCONFIGURED_REASONS


# The verdict until there is another. Should it ever be the last one, the message comes back.
UNDECIDED = Verdict(Outcome.RETRY, "fault", "its turn never came")
BLOCKED = Verdict(Outcome.BLOCKED, "group-blocked", "an earlier message of its group is not settled")

_WORST_FIRST = (
    Outcome.RETRY,
    Outcome.BLOCKED,
    Outcome.PARKED,
    Outcome.FAILED,
    Outcome.CONFLICT,
    Outcome.REJECTED,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a message of several events: the one that decides what happens to the message."""
    verdicts = list(verdicts)
    for outcome in _WORST_FIRST:
        for verdict in verdicts:
            if verdict.outcome is outcome:
                return verdict
    return verdicts[0]


def partial_batch_response(message_ids: Iterable[str]) -> dict[str, Any]:
    """The answer that returns these messages to the queue and deletes all others of the batch.

    The keys are read literally: with others the poller takes the answer for a success (AWS Lambda Developer
    Guide, "Reporting batch item failures").
    """
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}
