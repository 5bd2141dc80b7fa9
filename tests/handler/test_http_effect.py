"""The shipped effect as a whole: one call an attempt, and what became of it told as an effect has to."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer import http_operation
from idempotent_consumer.effect import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.http.effect import HttpEffect
from idempotent_consumer.http.secret import Secret
from idempotent_consumer.settings import SettingsError
from tests.handler.http_provider import KEY, SECONDS, Provider, effect, event, ok, provider, reset, settings
from tests.handler.test_http_secret import SECRET_ARN, Clock, Store, error

ROOT = Path(__file__).parents[2]
# A traceback quotes the lines of the tests, too: there it goes by this name.
HIDDEN = "s3cr3t"
ASK = {"applied": "body.found", "result": "body.id"}


def with_secret(made: Provider, store: Store, **fields: Any) -> HttpEffect:
    chosen = settings(made, secret={"secret_arn": SECRET_ARN}, **fields)
    assert chosen.secret
    return HttpEffect(chosen, SECONDS, Secret(chosen.secret, store, Clock()))


def test_effect_sends_the_event_with_its_key_and_returns_what_is_stored() -> None:
    with provider(ok(b'{"id":"ch-1"}', "201 Created")) as made:
        assert effect(made, result="{status: status, id: body.id}")(event(), KEY) == {"status": 201, "id": "ch-1"}
    assert made.head()[0] == "POST /charges HTTP/1.1"
    assert made.headers() == {
        "Host": f"127.0.0.1:{made.port}",
        "Content-Length": "22",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": "idempotent-consumer",
        "Idempotency-Key": KEY,
        "Content-Type": "application/json",
    }
    assert made.body() == b'{"id":"o-1","total":5}'


def test_repeated_attempt_sends_the_same_request() -> None:
    with provider(ok()) as made:
        charge = effect(made)
        charge(event(), KEY)
        charge(event(), KEY)
    assert made.requests[0] == made.requests[1]


@pytest.mark.parametrize(
    ("status", "kind"),
    [("402 No", Final), ("301 Moved", Final), ("429 Slow", Retryable), ("409 Busy", Uncertain), ("503 No", Uncertain)],
)
def test_failure_is_told_as_what_it_is(status: str, kind: type[Any]) -> None:
    with provider(ok(b"{}", status)) as made, pytest.raises(kind) as caught:
        effect(made)(event(), KEY)
    assert caught.value.reason == f"http-{status[:3]}"
    assert made.connections == 1


def test_request_that_was_not_sent_is_tried_again() -> None:
    with provider(ok()) as made:
        pass
    with pytest.raises(Retryable) as caught:
        effect(made)(event(), KEY)
    assert caught.value.reason == "not-connected"
    assert made.connections == 0


def test_request_whose_answer_is_lost_is_uncertain() -> None:
    with provider(reset) as made, pytest.raises(Uncertain) as caught:
        effect(made)(event(), KEY)
    assert caught.value.reason == "connection-lost"
    assert len(made.requests) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"url": "https://evil.example/"}, "url-not-allowed"),
        ({"url": None}, "url-missing"),
        ({"url": "", "header": "x"}, "url-missing"),
    ],
)
def test_url_of_the_event_is_refused_before_anything_is_sent(data: Any, reason: str) -> None:
    with provider(ok()) as made, pytest.raises(Final) as caught:
        effect(made, url="event.url")(event(data), KEY)
    assert caught.value.reason == reason
    assert made.connections == 0


def test_header_of_the_event_is_refused_before_anything_is_sent() -> None:
    with provider(ok()) as made, pytest.raises(Final) as caught:
        effect(made, headers={"X-A": "event.a"})(event({"a": "b\r\nX-Admin: yes"}), KEY)
    assert caught.value.reason == "header-not-allowed"
    assert made.connections == 0


# The secret


def test_secret_goes_into_its_header_behind_its_prefix() -> None:
    with provider(ok()) as made:
        with_secret(made, Store("s3cr3t"))(event(), KEY)
    assert made.headers()["Authorization"] == "Bearer s3cr3t"


@pytest.mark.parametrize("status", ["401 No", "403 No"])
def test_refused_secret_is_asked_for_again(status: str) -> None:
    store = Store("old", "new")
    with provider(ok(b"{}", status)) as made:
        charge = with_secret(made, store)
        for _ in range(2):
            charge.prepare()
            with pytest.raises(Retryable):
                charge(event(), KEY)
    assert [made.headers(index)["Authorization"] for index in range(2)] == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize("status", ["200 OK", "400 No", "429 No", "500 No"])
def test_secret_that_was_not_refused_is_kept(status: str) -> None:
    store = Store("s3cr3t")
    with provider(ok(b"{}", status)) as made:
        charge = with_secret(made, store, statuses={"completed": [400, 429, 500]})
        charge(event(), KEY)
        charge(event(), KEY)
    assert len(store.calls) == 1


def test_secret_that_cannot_be_had_sends_nothing() -> None:
    with provider(ok()) as made:
        charge = with_secret(made, Store(*[error("AccessDeniedException")] * 2))
        for attempt in (charge.prepare, lambda: charge(event(), KEY)):
            with pytest.raises(Retryable) as caught:
                attempt()
            assert caught.value.reason == "misconfigured"
    assert made.connections == 0


def test_effect_without_a_secret_has_nothing_to_prepare() -> None:
    with provider(ok()) as made:
        effect(made).prepare()
    assert made.connections == 0


def test_secret_that_the_answer_echoes_is_not_stored() -> None:
    with provider(ok(b'{"you":"Bearer s3cr3t"}', headers="X-You: s3cr3t\r\n")) as made:
        result = with_secret(made, Store("s3cr3t"), result='[body.you, headers."x-you"]')(event(), KEY)
    assert result == ["Bearer [secret]", "[secret]"]


@pytest.mark.parametrize(
    "sent",
    [
        ok(b'{"you":"s3cr3t"}', "400 s3cr3t"),
        ok(b'{"you":"s3cr3t"}', "429 s3cr3t"),
        ok(b'{"you":"s3cr3t"}', "500 s3cr3t"),
        b"s3cr3t s3cr3t\r\n",
        reset,
    ],
)
def test_secret_is_in_no_failure_and_no_log(sent: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with provider(sent) as made, pytest.raises((Final, Retryable, Uncertain)) as caught:
        with_secret(made, Store(HIDDEN))(event(), KEY)
    error: Any = caught.value
    shown = error.reason + error.detail + repr(error) + "".join(traceback.format_exception(error))
    assert "s3cr3t" not in shown
    assert "s3cr3t" not in caplog.text


# Asking the provider


def asking(made: Provider, **fields: Any) -> Any:
    return effect(made, reconcile={"url": f"['{made.url}/charges', key]", **ASK, **fields}).reconcile(event(), KEY)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (ok(b'{"found":true,"id":"ch-1"}'), Applied("ch-1")),
        (ok(b'{"found":false}'), NotApplied()),
        (ok(b'{"found":"yes"}'), Unknown()),
        (ok(b"", "404 No"), NotApplied()),
        (ok(b'{"found":false}', "500 No"), Unknown()),
        (ok(b'{"found":false}', "302 No", "Location: /\r\n"), Unknown()),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"found":false}', Unknown()),
        (b"HTTP/1.1 200 OK\r\n", Unknown()),
        (b"", Unknown()),
        (reset, Unknown()),
    ],
)
def test_provider_is_asked(sent: Any, said: Any) -> None:
    with provider(sent) as made:
        assert asking(made) == said
    assert made.head()[0] == f"GET /charges/{KEY} HTTP/1.1"
    assert made.connections == 1


def test_provider_that_cannot_be_reached_has_not_said_anything() -> None:
    with provider(ok()) as made:
        pass
    assert asking(made) == Unknown()


@pytest.mark.parametrize("url", ["event.none", "'https://evil.example/'", "length(key)", "length(`5`)"])
def test_question_that_may_not_be_asked_is_not_answered(url: str) -> None:
    with provider(ok(b'{"found":false}')) as made:
        assert asking(made, url=url) == Unknown()
    assert made.connections == 0


def test_effect_without_a_question_knows_nothing() -> None:
    with provider(ok()) as made:
        assert effect(made).reconcile(event(), KEY) == Unknown()
    assert made.connections == 0


def test_question_carries_the_secret() -> None:
    with provider(ok(b'{"found":true,"id":"s3cr3t"}')) as made:
        charge = with_secret(made, Store("s3cr3t"), reconcile={"url": f"'{made.url}/'", **ASK})
        assert charge.reconcile(event(), KEY) == Applied("[secret]")
    assert made.headers()["Authorization"] == "Bearer s3cr3t"
    assert "Idempotency-Key" not in made.headers()
    assert made.body() == b""


def test_question_without_a_secret_is_not_asked() -> None:
    with provider(ok(b'{"found":false}')) as made:
        charge = with_secret(made, Store(error("InternalServiceError")), reconcile={"url": f"'{made.url}/'", **ASK})
        assert charge.reconcile(event(), KEY) == Unknown()
    assert made.connections == 0


def test_question_whose_secret_is_refused_has_it_asked_for_again() -> None:
    store = Store("old", "new")
    with provider(ok(b"", "401 No")) as made:
        charge = with_secret(made, store, reconcile={"url": f"'{made.url}/'", **ASK})
        assert charge.reconcile(event(), KEY) == Unknown()
        charge.prepare()
    assert len(store.calls) == 2


# The shipped function


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_for(made: Provider, **fields: Any) -> None:
        chosen = {"url": f"'{made.url}/'", "hosts": [f"127.0.0.1:{made.port}"], "allow_http": True, **fields}
        monkeypatch.setenv("OPERATION_HTTP", json.dumps(chosen))
        monkeypatch.setenv("OPERATION_EFFECT_TIMEOUT_SECONDS", "30")
        http_operation._effect.cache_clear()

    return set_for


def test_shipped_function_calls_what_its_environment_says(environment: Callable[..., None]) -> None:
    with provider(ok(b'{"found":true}')) as made:
        environment(made, reconcile={"url": f"'{made.url}/'", "applied": "body.found"})
        http_operation.prepare()
        assert http_operation.call(event(), KEY) == {"status": 200}
        assert http_operation.reconcile(event(), KEY) == Applied({"status": 200})
    assert [made.head(index)[0] for index in range(2)] == ["POST / HTTP/1.1", "GET / HTTP/1.1"]


def imported(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new process that imports the shipped function as `module`, and runs the code."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys, idempotent_consumer.http_operation as module\n{code}"],
        env={"PYTHONPATH": str(ROOT / "lambda" / "src"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_shipped_function_is_imported_without_an_environment_or_an_sdk() -> None:
    ran = imported("print(callable(module.handler), sorted({'botocore', 'urllib3', 'ssl'} & set(sys.modules)))")
    assert (ran.returncode, ran.stdout) == (0, "True []\n")


# As the module sets it.
IN_LAMBDA = {
    "AWS_LAMBDA_FUNCTION_NAME": "charges",
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "CONSUMER_NAME": "charges",
    "LEDGER_TABLE": "charges-processed-events",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/charges-dlq",
    "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/charges",
    "VISIBILITY_TIMEOUT_SECONDS": "360",
    "BACKOFF_MAX_SECONDS": "900",
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "180000",
    "OPERATION_SETTLE_SECONDS": "130",
    "OPERATION_MAX_ATTEMPTS": "5",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_RETRY_SECONDS": "30",
}


def test_shipped_function_starts_inside_lambda_with_its_effect_made() -> None:
    http = {"url": "'https://api.example.com/'", "hosts": ["api.example.com"], "secret": {"secret_arn": SECRET_ARN}}
    ran = imported("print(module._effect.cache_info().currsize)", OPERATION_HTTP=json.dumps(http), **IN_LAMBDA)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")


def test_shipped_function_does_not_start_inside_lambda_on_settings_that_cannot_work() -> None:
    ran = imported("print('started')", OPERATION_HTTP='{"url": "a"}', **IN_LAMBDA)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.endswith("SettingsError: OPERATION_HTTP.hosts is [], not a list of 1 to 50 host names\n")


def test_shipped_function_does_not_start_on_settings_that_cannot_work(environment: Callable[..., None]) -> None:
    with provider(ok()) as made:
        environment(made, method="GET")
    with pytest.raises(SettingsError) as caught:
        http_operation.prepare()
    assert str(caught.value) == "OPERATION_HTTP.method is 'GET', not one of POST, PUT, PATCH, DELETE"


@pytest.mark.filterwarnings("error")
def test_call_leaves_nothing_open() -> None:
    with provider(ok()) as made:
        effect(made)(event(), KEY)
        gc.collect()
    with provider(reset) as made, pytest.raises(Uncertain):
        effect(made)(event(), KEY)
    gc.collect()
