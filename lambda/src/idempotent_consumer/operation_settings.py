"""The environment variables of an operation's function as one frozen value, checked when the function starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from idempotent_consumer.expression import Expression
from idempotent_consumer.settings import (
    DEFAULT_FINGERPRINT,
    DEFAULT_ID,
    MAX_HIDDEN_SECONDS,
    Backoff,
    Envelope,
    Reader,
    SettingsError,
)

MAX_AGE_SECONDS = 1_209_600
MAX_RETRY_SECONDS = 39_600


class WhenUncertain(Enum):
    """What is done about an attempt of which nobody knows whether it was applied.

    PARK: a person decides. PROVIDER_KEY: repeated, since the provider tells a repeated key. RECONCILE: the provider is
    asked.
    """

    PARK = "park"
    PROVIDER_KEY = "provider_key"
    RECONCILE = "reconcile"


@dataclass(frozen=True)
class OperationSettings:
    """See `modules/operation` for where each value comes from.

    effect_timeout_ms: after so long an effect is stopped. lease_ms: how long a claim lasts. settle_ms: how long after a
    lease's end a provider may still apply what it was asked for; it is asked no earlier. max_attempts, max_age_ms:
    neither more attempts nor later ones are made. retry_seconds: the least wait after the first failure.
    """

    consumer_name: str
    ledger_table: str
    dead_letter_queue_url: str
    ttl_window_seconds: int
    envelope: Envelope
    event_id: Expression
    fingerprint: Expression
    uncertain: WhenUncertain
    effect_timeout_ms: int
    lease_ms: int
    settle_ms: int
    max_attempts: int
    max_age_ms: int
    retry_seconds: int
    backoff: Backoff

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "OperationSettings":
        """Raises SettingsError on the first variable that is missing or wrong."""
        read = Reader(environment)
        envelope = read.choice("EVENT_ENVELOPE", Envelope, "raw")
        effect_timeout_ms = read.integer("OPERATION_EFFECT_TIMEOUT_SECONDS", 1, 900) * 1000
        lease_ms = read.integer("OPERATION_LEASE_MS", 1, MAX_HIDDEN_SECONDS * 1000)
        if lease_ms < effect_timeout_ms:
            raise SettingsError(
                f"OPERATION_LEASE_MS is {lease_ms}, below the {effect_timeout_ms} of the effect: none could start"
            )
        return cls(
            consumer_name=read.text("CONSUMER_NAME"),
            ledger_table=read.text("LEDGER_TABLE"),
            dead_letter_queue_url=read.text("DEAD_LETTER_QUEUE_URL"),
            ttl_window_seconds=read.ttl_window_seconds(),
            envelope=envelope,
            event_id=read.expression("EVENT_ID", DEFAULT_ID[envelope]),
            fingerprint=read.expression("EVENT_FINGERPRINT", DEFAULT_FINGERPRINT[envelope]),
            uncertain=read.choice("OPERATION_UNCERTAIN", WhenUncertain, "park"),
            effect_timeout_ms=effect_timeout_ms,
            lease_ms=lease_ms,
            settle_ms=read.integer("OPERATION_SETTLE_SECONDS", 0, MAX_AGE_SECONDS) * 1000,
            max_attempts=read.integer("OPERATION_MAX_ATTEMPTS", 1, 100),
            max_age_ms=read.integer("OPERATION_MAX_AGE_SECONDS", 1, MAX_AGE_SECONDS) * 1000,
            retry_seconds=read.integer("OPERATION_RETRY_SECONDS", 1, MAX_RETRY_SECONDS),
            backoff=read.backoff(),
        )
