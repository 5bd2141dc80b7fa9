"""A secret from Secrets Manager or the SSM Parameter Store, kept for a while and never shown."""

import time
from collections.abc import Callable
from typing import Any

from idempotent_consumer.aws import create_client
from idempotent_consumer.calls import CALL_ERRORS, error_code, failed_call
from idempotent_consumer.effect import Retryable
from idempotent_consumer.http.request import is_header_value
from idempotent_consumer.http.settings import SecretSettings
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected

# Beside what is one for every service: the secret is not there, or cannot be decrypted.
_MISCONFIGURATIONS = frozenset(
    {"DecryptionFailure", "InvalidKeyId", "InvalidRequestException", "ParameterNotFound", "ParameterVersionNotFound"}
)


class Secret:
    """Asks for the secret when it is needed and too old. settings: see there.

    Its methods raise Retryable `misconfigured` where a person has to act (no such secret, no permission, not a text
    that a header can carry) and `secret-unavailable` otherwise. Their detail quotes nothing of the secret.
    """

    def __init__(
        self, settings: SecretSettings, client: Any = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._client = client or _client(settings.arn)
        self._clock = clock
        self._value: str | None = None
        self._fetched_at = 0.0

    def refresh(self) -> None:
        """Ask for the secret, in one call, where there is none or it is too old."""
        age = self._clock() - self._fetched_at
        # A clock that went back tells of a restored snapshot.
        if self._value is None or not 0 <= age < self._settings.max_age_seconds:
            self.drop()
            began_at = self._clock()
            self._value = self._fetch()
            self._fetched_at = began_at

    def value(self) -> str:
        """The secret, of whatever age, so that no call comes in between; asked for only where there is none."""
        if self._value is None:
            self.refresh()
        return self._value or ""

    def drop(self) -> None:
        """Forget it, as after an answer that says it is not the right one."""
        self._value = None

    def __repr__(self) -> str:
        return f"Secret({self._settings.arn!r})"

    def _fetch(self) -> str:
        is_parameter = self._settings.arn.split(":")[2] == "ssm"
        operation = "GetParameter" if is_parameter else "GetSecretValue"
        try:
            if is_parameter:
                answer = self._client.get_parameter(Name=self._settings.arn, WithDecryption=True)
                text = answer["Parameter"]["Value"]
            else:
                answer = self._client.get_secret_value(SecretId=self._settings.arn)
                text = answer.get("SecretString")
        except CALL_ERRORS as error:
            raise _unavailable(error, operation) from None
        return self._read(text, operation)

    def _read(self, text: Any, operation: str) -> str:
        if isinstance(text, str) and self._settings.json_key is not None:
            text = _field(text, self._settings.json_key)
        # A line break at the end is what editors and `echo` leave behind.
        value = text.rstrip("\r\n") if isinstance(text, str) else ""
        if not value:
            where = "" if self._settings.json_key is None else f" under {self._settings.json_key!r}"
            raise Retryable("misconfigured", f"{operation}: the secret holds no text{where}")
        if not is_header_value(value):
            raise Retryable("misconfigured", f"{operation}: the secret holds a character that no header can carry")
        return value


def _field(text: str, key: str) -> Any:
    try:
        value = loads(text)
    except (Rejected, RecursionError):
        return None
    return value.get(key) if isinstance(value, dict) else None


def _unavailable(error: Exception, operation: str) -> Retryable:
    verdict = failed_call(error, operation)
    is_misconfigured = verdict.is_misconfigured or error_code(error) in _MISCONFIGURATIONS
    return Retryable("misconfigured" if is_misconfigured else "secret-unavailable", verdict.detail)


def _client(arn: str) -> Any:
    """The service and the Region are the ARN's: the secret may lie in another one than the function."""
    _, _, service, region, *_ = arn.split(":")
    return create_client(service, region)
