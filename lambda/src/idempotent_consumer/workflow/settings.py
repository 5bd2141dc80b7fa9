"""The environment variables of a workflow's starter as one frozen value, checked when the function starts."""

from collections.abc import Mapping
from dataclasses import dataclass

from idempotent_consumer.expression import Expression
from idempotent_consumer.settings import DEFAULT_FINGERPRINT, DEFAULT_ID, Backoff, Envelope, Reader

# What a key begins with that is a message's own id.
MESSAGE_ID_KEY = "sqs:"
# Ten years.
MAX_CLAIM_SECONDS = 316_224_000


@dataclass(frozen=True)
class WorkflowSettings:
    """See `modules/workflow` for where each value comes from.

    event_id: None where a message's own id is the key. table, namespace, retention_seconds: where the guard claims, and
    how long a claim lasts; for operators.
    """

    consumer_name: str
    state_machine_arn: str
    table: str
    namespace: str
    retention_seconds: int
    dead_letter_queue_url: str
    envelope: Envelope
    event_id: Expression | None
    fingerprint: Expression
    backoff: Backoff

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "WorkflowSettings":
        """Raises SettingsError on the first variable that is missing or wrong."""
        read = Reader(environment)
        envelope = read.choice("EVENT_ENVELOPE", Envelope, "raw")
        # A message of S3 can hold several events: its own id cannot tell them apart.
        default_id = DEFAULT_ID[envelope] if envelope is Envelope.S3 else None
        has_id = default_id is not None or "EVENT_ID" in environment
        return cls(
            consumer_name=read.text("CONSUMER_NAME"),
            state_machine_arn=read.text("STATE_MACHINE_ARN"),
            table=read.text("IDEMPOTENCY_TABLE"),
            namespace=read.text("WORKFLOW_NAMESPACE"),
            retention_seconds=read.integer("WORKFLOW_RETENTION_SECONDS", 1, MAX_CLAIM_SECONDS),
            dead_letter_queue_url=read.text("DEAD_LETTER_QUEUE_URL"),
            envelope=envelope,
            event_id=read.expression("EVENT_ID", default_id) if has_id else None,
            fingerprint=read.expression("EVENT_FINGERPRINT", DEFAULT_FINGERPRINT[envelope]),
            backoff=read.backoff(),
        )
