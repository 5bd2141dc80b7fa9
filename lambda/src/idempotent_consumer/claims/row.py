"""An operation's row in the ledger: its states, and how it is read. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.json_text import dumps, loads

# The row, 400 KB at most, has to hold the result.
MAX_RESULT_BYTES = 350_000


class State(Enum):
    """How far an operation has come.

    IN_PROGRESS: an attempt has begun, and nobody has recorded its outcome. FAILED_RETRYABLE, FAILED_FINAL: certainly
    not applied; the first is tried again.
    """

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED_RETRYABLE = "FAILED_RETRYABLE"
    FAILED_FINAL = "FAILED_FINAL"

    @property
    def is_final(self) -> bool:
        return self in (State.COMPLETED, State.FAILED_FINAL)


@dataclass(frozen=True, slots=True)
class Row:
    """What the ledger holds of an operation; times are epoch milliseconds, None where the row has none.

    attempt: the fencing token, raised by each claim and each decision of a person. tries: attempts since `since_ms`,
    the first claim or the last time that a person said to try again. uncertain_ms: since when an attempt may have been
    applied. result_text: the result as JSON; result_bytes, result_sha256: of one that is too large to be stored.
    """

    event_id: str
    state: State
    fingerprint: str
    idempotency_key: str
    attempt: int
    tries: int
    owner: str | None
    lease_until_ms: int
    created_ms: int
    since_ms: int
    next_attempt_ms: int | None = None
    uncertain_ms: int | None = None
    parked_ms: int | None = None
    settled_ms: int | None = None
    reason: str = ""
    detail: str = ""
    result_text: str | None = None
    result_bytes: int | None = None
    result_sha256: str | None = None
    audit: Sequence[AttributeValue] = ()

    @property
    def result(self) -> Any:
        """The stored result; None for JSON's null, and where there is none (`result_text` tells)."""
        return None if self.result_text is None else loads(self.result_text)

    def is_stale(self, now_ms: int) -> bool:
        """Whether its attempt has no worker any more, and nobody knows what became of it."""
        return self.state is State.IN_PROGRESS and self.parked_ms is None and now_ms >= self.lease_until_ms


def read_row(item: Item) -> Row:
    """Raises ValueError for a row that no operation wrote."""
    try:
        return Row(
            event_id=item["event_id"]["S"],
            state=State(item["status"]["S"]),
            fingerprint=item["fingerprint"]["S"],
            idempotency_key=item["idempotency_key"]["S"],
            attempt=_number(item["attempt"]),
            tries=_number(item["tries"]),
            owner=item["owner"]["S"] if "owner" in item else None,
            lease_until_ms=_number(item["lease_until"]),
            created_ms=_number(item["created_at"]),
            since_ms=_number(item["since"]),
            next_attempt_ms=_optional(item, "next_attempt_at"),
            uncertain_ms=_optional(item, "uncertain_at"),
            parked_ms=_optional(item, "parked_at"),
            settled_ms=_optional(item, "settled_at"),
            reason=_text(item, "reason") or "",
            detail=_text(item, "detail") or "",
            result_text=_text(item, "result"),
            result_bytes=_optional(item, "result_bytes"),
            result_sha256=_text(item, "result_sha256"),
            audit=item["audit"]["L"] if "audit" in item else (),
        )
    except (ArithmeticError, KeyError, TypeError) as error:
        raise ValueError(f"not the row of an operation: {error}") from None


@dataclass(frozen=True, slots=True)
class StoredResult:
    """How a result is stored. An effect that was applied is completed, whatever it returned.

    problem: `result-too-large` (stored are its size and SHA-256), `result-not-json` (stored is null), or empty.
    """

    attributes: Item
    problem: str = ""

    @classmethod
    def of(cls, result: Any) -> "StoredResult":
        try:
            text = dumps(result)
            encoded = text.encode()
            if len(encoded) <= MAX_RESULT_BYTES:
                loads(text)  # or nobody could read it
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a user's code returns
            return cls({"result": {"S": "null"}}, "result-not-json")
        if len(encoded) <= MAX_RESULT_BYTES:
            return cls({"result": {"S": text}})
        digest = hashlib.sha256(encoded).hexdigest()
        size = {"N": str(len(encoded))}
        return cls({"result_bytes": size, "result_sha256": {"S": digest}}, "result-too-large")


def _number(value: AttributeValue) -> int:
    return int(Decimal(value["N"]))


def _optional(item: Item, name: str) -> int | None:
    return _number(item[name]) if name in item else None


def _text(item: Item, name: str) -> str | None:
    return str(item[name]["S"]) if name in item else None
