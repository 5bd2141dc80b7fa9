"""The environment of an operation's function: what it means, and what keeps the function from starting."""

from __future__ import annotations

from typing import Any

import pytest

from idempotent_consumer.operation_settings import OperationSettings, WhenUncertain
from idempotent_consumer.settings import Backoff, Envelope, SettingsError

ENVIRONMENT = {
    "CONSUMER_NAME": "payments",
    "LEDGER_TABLE": "payments-processed-events",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.test/payments-dlq",
    "QUEUE_URL": "https://sqs.test/payments",
    "VISIBILITY_TIMEOUT_SECONDS": "360",
    "BACKOFF_MAX_SECONDS": "900",
    "RETENTION_SECONDS": "345600",
    "MAX_RECEIVE_COUNT": "15",
    "TTL_WINDOW_DAYS": "30",
    "OPERATION_UNCERTAIN": "reconcile",
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "180000",
    "OPERATION_SETTLE_SECONDS": "130",
    "OPERATION_MAX_ATTEMPTS": "5",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_RETRY_SECONDS": "30",
}


def test_the_environment_is_read_with_its_units() -> None:
    settings = OperationSettings.from_environment(ENVIRONMENT)
    assert (settings.consumer_name, settings.ledger_table) == ("payments", "payments-processed-events")
    assert settings.uncertain is WhenUncertain.RECONCILE
    assert (settings.effect_timeout_ms, settings.lease_ms, settings.settle_ms) == (10_000, 180_000, 130_000)
    assert (settings.max_attempts, settings.max_age_ms, settings.retry_seconds) == (5, 82_800_000, 30)
    assert (settings.ttl_window_seconds, settings.envelope) == (2_592_000, Envelope.RAW)
    assert settings.backoff == Backoff("https://sqs.test/payments", 360, 900, 345_600, 15)


def test_the_default_policy_leaves_it_to_a_person() -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "OPERATION_UNCERTAIN"}
    assert OperationSettings.from_environment(environment).uncertain is WhenUncertain.PARK


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"OPERATION_UNCERTAIN": "retry"}, "OPERATION_UNCERTAIN is 'retry', not one of park, provider_key, reconcile"),
        (
            {"OPERATION_EFFECT_TIMEOUT_SECONDS": "0"},
            "OPERATION_EFFECT_TIMEOUT_SECONDS is '0', not a whole number from 1 to 900",
        ),
        ({"OPERATION_LEASE_MS": "0"}, "OPERATION_LEASE_MS is '0', not a whole number from 1 to 43200000"),
        ({"OPERATION_LEASE_MS": "43200001"}, "OPERATION_LEASE_MS is '43200001', not a whole number from 1 to 43200000"),
        ({"OPERATION_LEASE_MS": "9999"}, "OPERATION_LEASE_MS is 9999, below the 10000 of the effect: none could start"),
        ({"OPERATION_SETTLE_SECONDS": "-1"}, "OPERATION_SETTLE_SECONDS is '-1', not a whole number from 0 to 1209600"),
        ({"OPERATION_MAX_ATTEMPTS": "101"}, "OPERATION_MAX_ATTEMPTS is '101', not a whole number from 1 to 100"),
        ({"OPERATION_MAX_AGE_SECONDS": ""}, "OPERATION_MAX_AGE_SECONDS is missing or blank"),
        ({"OPERATION_RETRY_SECONDS": "1.5"}, "OPERATION_RETRY_SECONDS is '1.5', not a whole number from 1 to 39600"),
        ({"QUEUE_URL": ""}, "QUEUE_URL is missing or blank"),
        ({"EVENT_ID": "["}, "EVENT_ID is '['"),
    ],
)
def test_what_cannot_work_keeps_the_function_from_starting(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        OperationSettings.from_environment({**ENVIRONMENT, **changes})
    assert str(refused.value).startswith(message)


@pytest.mark.case("C55")
def test_a_lease_is_always_present() -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "OPERATION_LEASE_MS"}
    with pytest.raises(SettingsError, match="OPERATION_LEASE_MS is missing"):
        OperationSettings.from_environment(environment)
