"""The provider's secret: fetched before an attempt, kept for a while, and never shown."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError
from moto import mock_aws

from idempotent_consumer.effect import Retryable
from idempotent_consumer.http.secret import Secret
from idempotent_consumer.http.settings import SecretSettings

REGION = "eu-central-1"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Store:
    """A client of Secrets Manager, or of SSM, that counts its calls."""

    def __init__(self, *texts: Any) -> None:
        self._texts = list(texts)
        self.calls: list[dict[str, Any]] = []

    def _next(self, call: dict[str, Any]) -> Any:
        self.calls.append(call)
        text = self._texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return text

    def get_secret_value(self, **call: Any) -> dict[str, Any]:
        return {"SecretString": self._next(call)}

    def get_parameter(self, **call: Any) -> dict[str, Any]:
        return {"Parameter": {"Value": self._next(call)}}


SECRET_ARN = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:api-key-a1b2c3"
PARAMETER_ARN = f"arn:aws:ssm:{REGION}:123456789012:parameter/orders/api-key"


def settings(arn: str = SECRET_ARN, json_key: str | None = None) -> SecretSettings:
    return SecretSettings(arn, json_key, "Authorization", "Bearer ", 300)


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "s3cr3t"}}, "GetSecretValue")


def refusal(secret: Secret) -> tuple[str, str]:
    with pytest.raises(Retryable) as caught:
        secret.refresh()
    return caught.value.reason, caught.value.detail


# The stores


@pytest.fixture
def stores() -> Iterator[None]:
    with mock_aws():
        yield


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(
    ("stored", "json_key", "value"),
    [
        ("s3cr3t", None, "s3cr3t"),
        ("s3cr3t\n", None, "s3cr3t"),
        ("s3cr3t\r\n", None, "s3cr3t"),
        ('{"token": "s3cr3t", "other": 1}', "token", "s3cr3t"),
        ('{"token": "s3cr3t"}', None, '{"token": "s3cr3t"}'),
    ],
)
def test_secret_comes_from_either_store(stored: str, json_key: str | None, value: str) -> None:
    arn = boto3.client("secretsmanager", region_name=REGION).create_secret(Name="api-key", SecretString=stored)["ARN"]
    assert Secret(settings(arn, json_key)).value() == value
    boto3.client("ssm", region_name=REGION).put_parameter(Name="/orders/api-key", Value=stored, Type="SecureString")
    assert Secret(settings(PARAMETER_ARN, json_key)).value() == value


@pytest.mark.usefixtures("stores")
def test_secret_may_lie_in_another_region() -> None:
    client = boto3.client("secretsmanager", region_name="us-west-2")
    arn = client.create_secret(Name="api-key", SecretString="s3cr3t")["ARN"]
    assert Secret(settings(arn)).value() == "s3cr3t"


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(
    ("arn", "detail"),
    [
        (SECRET_ARN, "GetSecretValue: ResourceNotFoundException"),
        (PARAMETER_ARN, "GetParameter: ParameterNotFound"),
    ],
)
def test_secret_that_is_not_there_is_a_misconfiguration(arn: str, detail: str) -> None:
    assert refusal(Secret(settings(arn))) == ("misconfigured", detail)


def test_parameter_is_asked_for_decrypted() -> None:
    store = Store("s3cr3t")
    Secret(settings(PARAMETER_ARN), store).refresh()
    assert store.calls == [{"Name": PARAMETER_ARN, "WithDecryption": True}]


# Age


def test_secret_is_kept_until_it_is_too_old() -> None:
    clock, store = Clock(), Store("first", "second")
    secret = Secret(settings(), store, clock)
    for now in (1_000.0, 1_299.9):
        clock.now = now
        secret.refresh()
        assert secret.value() == "first"
    clock.now = 1_300.0
    secret.refresh()
    assert secret.value() == "second"
    assert store.calls == [{"SecretId": SECRET_ARN}] * 2


def test_secret_of_a_restored_snapshot_is_asked_for_again() -> None:
    clock, store = Clock(), Store("first", "second")
    secret = Secret(settings(), store, clock)
    secret.refresh()
    clock.now = 5.0
    secret.refresh()
    assert secret.value() == "second"


def test_effect_asks_for_no_secret_that_it_has() -> None:
    clock, store = Clock(), Store("first")
    secret = Secret(settings(), store, clock)
    secret.refresh()
    clock.now = 9_999.0
    assert secret.value() == "first"


def test_dropped_secret_is_asked_for_again() -> None:
    secret = Secret(settings(), Store("first", "second"), Clock())
    secret.refresh()
    secret.drop()
    assert secret.value() == "second"


def test_old_secret_is_not_used_where_the_store_fails() -> None:
    clock = Clock()
    secret = Secret(settings(), Store("first", error("InternalServiceError"), "second"), clock)
    secret.refresh()
    clock.now = 1_300.0
    assert refusal(secret) == ("secret-unavailable", "GetSecretValue: InternalServiceError")
    assert secret.value() == "second"


# Failures


@pytest.mark.parametrize(
    ("raised", "reason", "detail"),
    [
        (error("AccessDeniedException"), "misconfigured", "GetSecretValue: AccessDeniedException"),
        (error("ResourceNotFoundException"), "misconfigured", "GetSecretValue: ResourceNotFoundException"),
        (error("DecryptionFailure"), "misconfigured", "GetSecretValue: DecryptionFailure"),
        (error("InvalidRequestException"), "misconfigured", "GetSecretValue: InvalidRequestException"),
        (error("InvalidParameterException"), "misconfigured", "GetSecretValue: InvalidParameterException"),
        (NoCredentialsError(), "misconfigured", "GetSecretValue: NoCredentialsError"),
        (error("ThrottlingException"), "secret-unavailable", "GetSecretValue: ThrottlingException"),
        (error("InternalServiceError"), "secret-unavailable", "GetSecretValue: InternalServiceError"),
        (ConnectTimeoutError(endpoint_url="https://x"), "secret-unavailable", "GetSecretValue: ConnectTimeoutError"),
    ],
)
def test_store_that_fails_is_no_attempt(raised: Exception, reason: str, detail: str) -> None:
    assert refusal(Secret(settings(), Store(raised), Clock())) == (reason, detail)


@pytest.mark.parametrize(
    ("stored", "json_key", "detail"),
    [
        (None, None, "the secret holds no text"),
        ("", None, "the secret holds no text"),
        ("\n", None, "the secret holds no text"),
        ("s3cr3t\r\nX-Admin: yes", None, "the secret holds a character that no header can carry"),
        ("s3cr3t\x00", None, "the secret holds a character that no header can carry"),
        ("\u20acs3cr3t", None, "the secret holds a character that no header can carry"),
        ("s3cr3t", "token", "the secret holds no text under 'token'"),
        ('["s3cr3t"]', "token", "the secret holds no text under 'token'"),
        ('{"other": "s3cr3t"}', "token", "the secret holds no text under 'token'"),
        ('{"token": {"a": "s3cr3t"}}', "token", "the secret holds no text under 'token'"),
        ('{"token": 5}', "token", "the secret holds no text under 'token'"),
        ("[" * 100_000, "token", "the secret holds no text under 'token'"),
    ],
)
def test_secret_that_cannot_be_sent_is_a_misconfiguration(
    stored: str | None, json_key: str | None, detail: str
) -> None:
    assert refusal(Secret(settings(json_key=json_key), Store(stored), Clock())) == (
        "misconfigured",
        f"GetSecretValue: {detail}",
    )


def test_secret_is_not_shown() -> None:
    secret = Secret(settings(), Store("s3cr3t"), Clock())
    secret.refresh()
    assert repr(secret) == f"Secret('{SECRET_ARN}')"


@pytest.mark.parametrize("stored", [error("AccessDeniedException"), "s3cr3t\x00", '"s3cr3t"'])
def test_failure_shows_nothing_of_the_secret(stored: Any) -> None:
    secret = Secret(settings(json_key="token"), Store(stored), Clock())
    with pytest.raises(Retryable) as caught:
        secret.refresh()
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("stores")
def test_secret_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = boto3.client("secretsmanager", region_name=REGION)
    arn = client.create_secret(Name="api-key", SecretString=json.dumps({"token": "s3cr3t"}))["ARN"]
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    assert Secret(settings(arn, "token")).value() == "s3cr3t"
    assert "s3cr3t" not in "\n".join(record.getMessage() for record in caplog.records)
