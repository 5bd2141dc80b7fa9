"""One claim of a workflow, as an operator looks at it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer_cli.clock import moment_or_none
from idempotent_consumer_cli.rows.stored import decisions, whole_number

IN_PROGRESS, COMPLETED, RELEASED = STATUSES = ("IN_PROGRESS", "COMPLETED", "RELEASED")
# All that is read of a row: its result may be large, and is nobody's business here.
ATTRIBUTES = (
    "audit",
    "claimedAt",
    "completedAt",
    "detail",
    "expiresAt",
    "fingerprint",
    "messageId",
    "owner",
    "parkedAt",
    "pk",
    "reason",
    "releasedAt",
    "status",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """status: one of `STATUSES`; anything else was written by no workflow. owner: the ARN of its execution.

    Times are epoch milliseconds, None where the row has none. parked_ms: since when its effect has failed, and may have
    acted. item: the row itself.
    """

    key: str
    status: str
    owner: str
    fingerprint: str
    claimed_ms: int | None
    completed_ms: int | None
    parked_ms: int | None
    released_ms: int | None
    expires_ms: int | None
    reason: str
    detail: str
    message_id: str
    audit: Sequence[AttributeValue]
    item: Item

    @property
    def is_readable(self) -> bool:
        return self.status in STATUSES

    @property
    def why(self) -> str:
        """Why its effect has failed."""
        return ": ".join(part for part in (self.reason, self.detail) if part)

    @property
    def since_ms(self) -> int | None:
        """Since when it is in its state."""
        in_progress = self.claimed_ms if self.parked_ms is None else self.parked_ms
        since = {IN_PROGRESS: in_progress, COMPLETED: self.completed_ms, RELEASED: self.released_ms}
        return since.get(self.status)


def read_claim(item: Item) -> Claim:
    """A row of the idempotency table."""

    def text(name: str) -> str:
        return str(item.get(name, {}).get("S", ""))

    expires = whole_number(item, "expiresAt")
    return Claim(
        key=text("pk"),
        status=text("status"),
        owner=text("owner"),
        fingerprint=text("fingerprint"),
        claimed_ms=whole_number(item, "claimedAt"),
        completed_ms=whole_number(item, "completedAt"),
        parked_ms=whole_number(item, "parkedAt"),
        released_ms=whole_number(item, "releasedAt"),
        expires_ms=None if expires is None else expires * 1000,
        reason=text("reason"),
        detail=text("detail"),
        message_id=text("messageId"),
        audit=item.get("audit", {}).get("L", ()),
        item=item,
    )


def claim_document(claim: Claim) -> dict[str, Any]:
    """For programs; without its key."""
    return {
        "status": claim.status,
        "owner": claim.owner,
        "message_id": claim.message_id,
        "claimed_at": moment_or_none(claim.claimed_ms),
        "completed_at": moment_or_none(claim.completed_ms),
        "parked_at": moment_or_none(claim.parked_ms),
        "released_at": moment_or_none(claim.released_ms),
        "expires_at": moment_or_none(claim.expires_ms),
        "reason": claim.reason,
        "detail": claim.detail,
        "audit": decisions(claim.audit),
    }
