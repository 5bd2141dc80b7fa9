"""The function's environment variables as one frozen value, checked when the function starts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from idempotent_consumer.expression import Expression

_Choice = TypeVar("_Choice", bound=Enum)

_SECONDS_PER_DAY = 86_400
# SNS takes ten attributes through to a raw SQS subscriber; one of them is the event's id.
MAX_CONFIGURED_ATTRIBUTES = 9
# The ledger row, 400 KB at most, has to hold the notification.
MAX_NOTIFICATION_BYTES = 350_000
# A message is hidden for 12 hours at most (Amazon SQS API Reference, ChangeMessageVisibility).
MAX_HIDDEN_SECONDS = 43_200
MAX_RETENTION_SECONDS = 1_209_600


class SettingsError(ValueError):
    """An environment variable is missing or has a value that cannot work; the message names it and the rule."""


class Envelope(Enum):
    """What the SQS message body wraps around the event."""

    RAW = "raw"
    SNS = "sns"
    EVENTBRIDGE = "eventbridge"
    S3 = "s3"


class WriteMode(Enum):
    """What a business write does where a row of its key is stored already."""

    INSERT = "insert"
    UPSERT = "upsert"
    NEWER = "newer"


DEFAULT_ID = {
    Envelope.RAW: "id",
    Envelope.SNS: "id",
    Envelope.EVENTBRIDGE: "id",
    Envelope.S3: "join('/', [s3.bucket.name, s3.object.key, s3.object.versionId || '', s3.object.sequencer])",
}

# A replay from an EventBridge archive adds `replay-name` to the event, which is still the same event.
DEFAULT_FINGERPRINT = {
    Envelope.RAW: "@",
    Envelope.SNS: "@",
    Envelope.EVENTBRIDGE: '[source, "detail-type", detail]',
    Envelope.S3: "@",
}


@dataclass(frozen=True)
class KeyAttribute:
    """A key attribute of the business table; `kind` is `S` or `N`."""

    name: str
    kind: str


@dataclass(frozen=True)
class Backoff:
    """Where and how long a message that has to come back is hidden, in seconds.

    visibility_seconds: the queue's own timeout, the least. max_seconds: the most; at or below that there is no backoff.
    retention_seconds: after so long in the queue a message is lost. max_receives: after so many it is dead-lettered.
    """

    queue_url: str
    visibility_seconds: int
    max_seconds: int
    retention_seconds: int = MAX_RETENTION_SECONDS
    max_receives: int = 1


@dataclass(frozen=True)
class Settings:
    """See `modules/function` and the root module for where each value comes from."""

    consumer_name: str
    ledger_table: str
    business_table: str
    hash_key: KeyAttribute
    range_key: KeyAttribute | None
    ttl_window_seconds: int
    envelope: Envelope
    event_id: Expression
    item: Expression
    version: Expression | None
    write_mode: WriteMode
    fingerprint: Expression
    topic_arn: str | None
    message: Expression
    attributes: Mapping[str, Expression]
    max_notification_bytes: int
    dead_letter_queue_url: str
    backoff: Backoff | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Raises SettingsError on the first variable that is missing or wrong."""
        read = Reader(environment)
        envelope = read.choice("EVENT_ENVELOPE", Envelope, "raw")
        write_mode = read.choice("EVENT_WRITE_MODE", WriteMode, "insert")
        version = read.expression("EVENT_VERSION") if "EVENT_VERSION" in environment else None
        if write_mode is WriteMode.NEWER and version is None:
            raise SettingsError("EVENT_VERSION is missing: EVENT_WRITE_MODE newer compares versions")
        return cls(
            consumer_name=read.text("CONSUMER_NAME"),
            ledger_table=read.text("LEDGER_TABLE"),
            business_table=read.text("BUSINESS_TABLE"),
            hash_key=read.key("BUSINESS_HASH_KEY", "id"),
            range_key=read.key("BUSINESS_RANGE_KEY") if "BUSINESS_RANGE_KEY" in environment else None,
            ttl_window_seconds=read.ttl_window_seconds(),
            envelope=envelope,
            event_id=read.expression("EVENT_ID", DEFAULT_ID[envelope]),
            item=read.expression("EVENT_ITEM", "@"),
            version=version,
            write_mode=write_mode,
            fingerprint=read.expression("EVENT_FINGERPRINT", DEFAULT_FINGERPRINT[envelope]),
            topic_arn=read.topic_arn(),
            message=read.expression("NOTIFICATION_MESSAGE", "@"),
            attributes=read.attributes("NOTIFICATION_ATTRIBUTES"),
            max_notification_bytes=read.integer("NOTIFICATION_MAX_BYTES", 1, MAX_NOTIFICATION_BYTES, "262144"),
            dead_letter_queue_url=read.text("DEAD_LETTER_QUEUE_URL"),
            backoff=read.backoff() if "QUEUE_URL" in environment else None,
        )


@dataclass(frozen=True)
class ReconcilerSettings:
    """threshold_ms: how old a pending row must be to be taken for stuck, in milliseconds."""

    consumer_name: str
    ledger_table: str
    topic_arn: str | None
    ttl_window_seconds: int
    threshold_ms: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "ReconcilerSettings":
        """Raises SettingsError on the first variable that is missing or wrong."""
        read = Reader(environment)
        return cls(
            consumer_name=read.text("CONSUMER_NAME"),
            ledger_table=read.text("LEDGER_TABLE"),
            topic_arn=read.topic_arn(),
            ttl_window_seconds=read.ttl_window_seconds(),
            threshold_ms=read.integer("RECONCILER_THRESHOLD_SECONDS", 0, 10**7) * 1000,
        )


class Reader:
    """Reads one variable after the other; each method raises SettingsError, naming the variable and the rule."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(name, default)
        if value is None or not value.strip():
            raise SettingsError(f"{name} is missing or blank")
        return value

    def topic_arn(self) -> str | None:
        if "TOPIC_ARN" not in self._environment:
            return None
        text = self.text("TOPIC_ARN")
        if not text.startswith("arn:") or text.count(":") < 5:
            raise SettingsError(f"TOPIC_ARN is {text!r}, not an ARN")
        return text

    def ttl_window_seconds(self) -> int:
        return self.integer("TTL_WINDOW_DAYS", 1, 3650, "30") * _SECONDS_PER_DAY

    def backoff(self) -> Backoff:
        return Backoff(
            queue_url=self.text("QUEUE_URL"),
            visibility_seconds=self.integer("VISIBILITY_TIMEOUT_SECONDS", 0, MAX_HIDDEN_SECONDS),
            max_seconds=self.integer("BACKOFF_MAX_SECONDS", 0, MAX_HIDDEN_SECONDS),
            retention_seconds=self.integer("RETENTION_SECONDS", 60, MAX_RETENTION_SECONDS, str(MAX_RETENTION_SECONDS)),
            max_receives=self.integer("MAX_RECEIVE_COUNT", 1, 1000, "1"),
        )

    def integer(self, name: str, least: int, most: int, default: str | None = None) -> int:
        text = self.text(name, default)
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise SettingsError(f"{name} is {text!r}, not a whole number from {least} to {most}")
        return int(text)

    def choice(self, name: str, choices: type[_Choice], default: str) -> _Choice:
        text = self.text(name, default)
        try:
            return choices(text)
        except ValueError:
            allowed = ", ".join(choice.value for choice in choices)
            raise SettingsError(f"{name} is {text!r}, not one of {allowed}") from None

    def expression(self, name: str, default: str | None = None) -> Expression:
        return _expression(name, self.text(name, default))

    def key(self, name: str, default: str | None = None) -> KeyAttribute:
        kind = self.text(f"{name}_TYPE", "S")
        if kind not in ("S", "N"):
            raise SettingsError(f"{name}_TYPE is {kind!r}, not S or N")
        return KeyAttribute(self.text(name, default), kind)

    def attributes(self, name: str) -> dict[str, Expression]:
        text = self.text(name, "{}")
        try:
            value: Any = json.loads(text)
        except (RecursionError, ValueError):
            value = None
        if not isinstance(value, dict) or not all(isinstance(path, str) for path in value.values()):
            raise SettingsError(f"{name} is {text!r}, not a JSON object of attribute names and JMESPath expressions")
        if len(value) > MAX_CONFIGURED_ATTRIBUTES:
            raise SettingsError(
                f"{name} has {len(value)} attributes, over {MAX_CONFIGURED_ATTRIBUTES}: SNS takes ten, event_id is one"
            )
        if "event_id" in value:
            raise SettingsError(f"{name} names event_id, which every notification carries already")
        return {key: _expression(f"{name}.{key}", path) for key, path in value.items()}


def _expression(name: str, text: str) -> Expression:
    try:
        return Expression(text)
    except ValueError as error:
        raise SettingsError(f"{name} is {text!r}: {error}") from None
