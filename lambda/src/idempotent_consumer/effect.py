"""What an effect and its reconciliation can say: the values and errors that a user's code gives back.

An effect is `effect(event, key) -> result`: it does something outside the database, once, and returns a JSON value to
be stored. What it raises says what is known: `Retryable` and `Final` that nothing was done, anything else that nobody
knows.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.rejection import short_reason

OUTCOME_UNKNOWN = "outcome-unknown"


class EffectFailed(Exception):
    """The effect was certainly not applied. reason: a short text that people search by. detail: never logged."""

    # Of an exception of a user's that does not call this class's constructor.
    reason = "effect-failed"
    detail = ""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = short_reason(reason, "effect-failed")
        self.detail = str(detail)


class Retryable(EffectFailed):
    """Certainly not applied, and worth another attempt, such as "too many requests" or a refused connection.

    after_seconds: how long to wait before it at least, such as a Retry-After, and at most 11 hours; the backoff may be
    longer. None, or what is no finite number, leaves it to the backoff.
    """

    after_seconds: float | None = None

    def __init__(self, reason: str, detail: str = "", *, after_seconds: float | None = None) -> None:
        super().__init__(reason, detail)
        self.after_seconds = after_seconds


class Final(EffectFailed):
    """Certainly not applied, and never will be, such as a declined card. The message goes to the dead-letter queue."""


class Uncertain(Exception):
    """Nobody knows whether the effect was applied. Any exception but those above says so; this one says why.

    reason, detail: as in `EffectFailed`.
    """

    reason = OUTCOME_UNKNOWN
    detail = ""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = short_reason(reason, OUTCOME_UNKNOWN)
        self.detail = str(detail)


@dataclass(frozen=True)
class Applied:
    """The provider says that the effect was applied. result: a JSON value, stored as the effect's own would be."""

    result: Any = None


@dataclass(frozen=True)
class NotApplied:
    """The provider says that it was not applied, and that no earlier request can still be."""


@dataclass(frozen=True)
class Unknown:
    """The provider cannot tell, or did not answer: it is asked again later."""


def idempotency_key(consumer_name: str, event_id: str) -> str:
    """The key that a provider tells a repeated request by: the same for all attempts at an event, and replays of it.

    In the form of a UUID (RFC 9562, version 8), since providers take from 36 characters on. The consumer's name is in
    it: a charge and a refund may share the event's id, and the provider.
    """
    digest = hashlib.sha256(f"{consumer_name}\0{event_id}".encode()).digest()
    octets = bytearray(digest[:16])
    octets[6] = octets[6] & 0x0F | 0x80
    octets[8] = octets[8] & 0x3F | 0x80
    text = octets.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


Effect = Callable[[Event, str], Any]
Prepare = Callable[[], None]
Reconcile = Callable[[Event, str], Applied | NotApplied | Unknown]
