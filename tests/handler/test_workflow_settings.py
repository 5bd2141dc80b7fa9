"""The environment of a workflow's starter: what it means, and what keeps the function from starting."""

from __future__ import annotations

from typing import Any

import pytest

from idempotent_consumer.settings import Backoff, Envelope, SettingsError
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.handler.workflow_support import STARTER_ENVIRONMENT


def settings(**changes: str | None) -> WorkflowSettings:
    values = {**STARTER_ENVIRONMENT, **changes}
    return WorkflowSettings.from_environment({name: value for name, value in values.items() if value is not None})


def test_the_environment_is_read_with_its_units() -> None:
    read = settings()
    assert (read.consumer_name, read.table, read.namespace) == ("orders", "orders-idempotency", "ingestion")
    assert read.retention_seconds == 1_555_200
    assert read.state_machine_arn == "arn:aws:states:eu-central-1:111122223333:stateMachine:orders"
    assert read.dead_letter_queue_url == "https://sqs.test/orders-dlq"
    assert read.backoff == Backoff("https://sqs.test/orders", 180, 900, 345_600, 5)


def test_what_may_be_left_out_has_its_default() -> None:
    read = settings(EVENT_ENVELOPE=None, RETENTION_SECONDS=None, MAX_RECEIVE_COUNT=None)
    assert read.envelope is Envelope.RAW
    assert read.backoff == Backoff("https://sqs.test/orders", 180, 900, 1_209_600, 1)


@pytest.mark.parametrize(
    ("envelope", "path"),
    [
        ("raw", None),
        ("sns", None),
        ("eventbridge", None),
        ("s3", "join('/', [s3.bucket.name, s3.object.key, s3.object.versionId || '', s3.object.sequencer])"),
    ],
)
def test_without_a_path_the_message_id_is_the_key_but_for_s3(envelope: str, path: str | None) -> None:
    read = settings(EVENT_ENVELOPE=envelope, EVENT_ID=None)
    assert (read.event_id.text if read.event_id else None) == path


@pytest.mark.parametrize("envelope", ["raw", "sns", "eventbridge", "s3"])
def test_a_path_to_the_key_is_taken_as_it_is(envelope: str) -> None:
    read = settings(EVENT_ENVELOPE=envelope, EVENT_ID="order.id")
    assert read.event_id is not None and read.event_id.text == "order.id"


@pytest.mark.parametrize(
    ("envelope", "path"),
    [("raw", "@"), ("sns", "@"), ("eventbridge", '[source, "detail-type", detail]'), ("s3", "@")],
)
def test_the_fingerprint_is_of_the_whole_event_unless_told_otherwise(envelope: str, path: str) -> None:
    assert settings(EVENT_ENVELOPE=envelope).fingerprint.text == path
    assert settings(EVENT_ENVELOPE=envelope, EVENT_FINGERPRINT="total").fingerprint.text == "total"


@pytest.mark.parametrize(
    "name",
    [
        "CONSUMER_NAME",
        "STATE_MACHINE_ARN",
        "IDEMPOTENCY_TABLE",
        "WORKFLOW_NAMESPACE",
        "WORKFLOW_RETENTION_SECONDS",
        "DEAD_LETTER_QUEUE_URL",
        "QUEUE_URL",
        "VISIBILITY_TIMEOUT_SECONDS",
        "BACKOFF_MAX_SECONDS",
    ],
)
def test_what_is_missing_keeps_the_function_from_starting(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is missing or blank"):
        settings(**{name: None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"EVENT_ID": ""}, "EVENT_ID is missing or blank"),
        ({"EVENT_ID": "["}, "EVENT_ID is '['"),
        ({"EVENT_FINGERPRINT": "a b"}, "EVENT_FINGERPRINT is 'a b'"),
        ({"EVENT_ENVELOPE": "kinesis"}, "EVENT_ENVELOPE is 'kinesis', not one of raw, sns, eventbridge, s3"),
        ({"BACKOFF_MAX_SECONDS": "43201"}, "BACKOFF_MAX_SECONDS is '43201', not a whole number from 0 to 43200"),
        ({"WORKFLOW_NAMESPACE": " "}, "WORKFLOW_NAMESPACE is missing or blank"),
    ],
)
def test_what_cannot_work_keeps_the_function_from_starting(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(**changes)
    assert str(refused.value).startswith(message)
