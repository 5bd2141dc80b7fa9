"""The shipped effect: an HTTP call, with the idempotency key in a header, that needs no code of the user's."""

import ssl
import time
from collections.abc import Mapping
from typing import Any

from idempotent_consumer.effect import Applied, EffectFailed, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.event import Event
from idempotent_consumer.http.answer import REFUSED_SECRET, Answer, settle, verdict, view
from idempotent_consumer.http.connect import NotSent
from idempotent_consumer.http.exchange import AnswerLost, exchange
from idempotent_consumer.http.request import Request, effect_request, reconcile_request
from idempotent_consumer.http.secret import Secret
from idempotent_consumer.http.settings import VARIABLE, HttpSettings
from idempotent_consumer.operation_settings import WhenUncertain
from idempotent_consumer.settings import Reader, SettingsError

# The call ends by itself before it is stopped from outside, which tells less.
_MARGIN_SHARE, _MAX_MARGIN_SECONDS = 0.1, 0.5


class HttpEffect:
    """An effect, with what finds out about it and what has to be ready before a claim.

    settings: what is called. timeout_seconds: for a whole call.
    """

    def __init__(self, settings: HttpSettings, timeout_seconds: float, secret: Secret | None = None) -> None:
        self._settings = settings
        self._seconds = timeout_seconds - min(timeout_seconds * _MARGIN_SHARE, _MAX_MARGIN_SECONDS)
        self._secret = secret or (Secret(settings.secret) if settings.secret else None)
        # The system's certificates, or SSL_CERT_FILE's; names are checked.
        self._tls = ssl.create_default_context()
        self._tls.set_alpn_protocols(["http/1.1"])

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "HttpEffect":
        """Raises SettingsError on the first variable that is missing or wrong."""
        read = Reader(environment)
        settings = HttpSettings.from_json(read.text(VARIABLE))
        policy = read.choice("OPERATION_UNCERTAIN", WhenUncertain, "park")
        if policy is WhenUncertain.RECONCILE and settings.reconcile is None:
            raise SettingsError(f"{VARIABLE}.reconcile is missing: OPERATION_UNCERTAIN is reconcile")
        return cls(settings, read.integer("OPERATION_EFFECT_TIMEOUT_SECONDS", 1, 900))

    def prepare(self) -> None:
        """Have the secret ready; a call without it would be no attempt.

        Raises Retryable `secret-unavailable` or `misconfigured`. Makes one AWS call at most.
        """
        if self._secret:
            self._secret.refresh()

    def __call__(self, event: Event, key: str) -> Any:
        """Make the call once. Returns what `http.result` selects from an answer that says it was applied.

        Raises Retryable and Final where it was certainly not applied, Uncertain where nobody knows.
        """
        request = effect_request(self._settings, event.data, key)
        try:
            answer, secret = self._exchange(request)
        except NotSent as error:
            raise Retryable(error.reason, error.detail) from None
        except AnswerLost as error:
            raise Uncertain(error.reason, error.detail) from None
        return settle(self._settings, answer, view(answer, secret, event.data, key), time.time())

    def reconcile(self, event: Event, key: str) -> Applied | NotApplied | Unknown:
        """Ask the provider. Whatever fails, nothing is known then."""
        reconcile = self._settings.reconcile
        if reconcile is None:
            return Unknown()
        try:
            answer, secret = self._exchange(reconcile_request(self._settings, reconcile, event.data, key))
        except (EffectFailed, NotSent, AnswerLost):
            return Unknown()
        return verdict(reconcile, answer, view(answer, secret, event.data, key))

    def _exchange(self, request: Request) -> tuple[Answer, str]:
        """The answer, and the secret that was sent, "" for none."""
        secret = self._secret.value() if self._secret else ""
        if self._secret and self._settings.secret:
            request = request.with_header(self._settings.secret.header, self._settings.secret.prefix + secret)
        answer = exchange(request, self._seconds, self._tls)
        if self._secret and answer.status in REFUSED_SECRET:
            self._secret.drop()
        return answer, secret
