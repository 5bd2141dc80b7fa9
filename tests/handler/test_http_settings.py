"""OPERATION_HTTP: what cannot work is refused when the function starts, by its field, its value and the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from idempotent_consumer.http.effect import HttpEffect
from idempotent_consumer.http.settings import HttpSettings, StatusMeaning
from idempotent_consumer.http.url import Host
from idempotent_consumer.settings import SettingsError

URL = "'https://api.example.com/v1/charges'"
NEEDED: dict[str, Any] = {"url": URL, "hosts": ["api.example.com"]}
SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:api-key-a1b2c3"
PARAMETER_ARN = "arn:aws:ssm:eu-central-1:123456789012:parameter/orders/api-key"


def parsed(**fields: Any) -> HttpSettings:
    return HttpSettings.from_json(json.dumps({**NEEDED, **fields}))


def refusal(**fields: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        parsed(**fields)
    return str(caught.value)


def test_needed_fields_alone_have_the_defaults_of_the_rest() -> None:
    settings = parsed()
    assert settings.url.text == URL
    assert settings.hosts == frozenset({Host("api.example.com")})
    assert settings.method == "POST"
    assert settings.result.text == "{status: status}"
    assert dict(settings.headers) == {}
    assert dict(settings.statuses) == {}
    assert settings.secret is None
    assert settings.reconcile is None
    assert settings.allow_http is False


def test_body_and_idempotency_header_that_are_absent_or_null_are_not_sent() -> None:
    assert (parsed().body, parsed().idempotency_header) == (None, None)
    settings = parsed(body=None, idempotency_header=None)
    assert (settings.body, settings.idempotency_header) == (None, None)


def test_null_counts_as_absent() -> None:
    names = ("method", "headers", "result", "secret", "statuses", "reconcile", "allow_http")
    settings = parsed(**dict.fromkeys(names))
    assert settings.method == "POST"
    assert settings.result.text == "{status: status}"
    assert settings.allow_http is False


def test_all_fields_are_read() -> None:
    settings = parsed(
        hosts=["API.example.com.", "status.example.com:8443"],
        method="PUT",
        body="event.order",
        headers={"X-Tenant": "event.tenant"},
        result="body.id",
        idempotency_header="X-Key",
        secret={
            "parameter_arn": PARAMETER_ARN,
            "json_key": "token",
            "header": "X-Token",
            "prefix": "",
            "max_age_seconds": 60,
        },
        statuses={"completed": [409], "final": [500], "retryable": [503], "uncertain": [404, 102]},
        reconcile={
            "url": URL,
            "headers": {"X-Ask": "key"},
            "applied": "body.found",
            "not_applied_statuses": [404, 410],
        },
        allow_http=True,
    )
    assert settings.hosts == frozenset({Host("api.example.com"), Host("status.example.com", 8443)})
    assert (settings.method, settings.idempotency_header, settings.allow_http) == ("PUT", "X-Key", True)
    assert settings.body and settings.body.text == "event.order"
    assert settings.headers["X-Tenant"].text == "event.tenant"
    assert settings.secret
    assert (settings.secret.arn, settings.secret.json_key) == (PARAMETER_ARN, "token")
    assert (settings.secret.header, settings.secret.prefix, settings.secret.max_age_seconds) == ("X-Token", "", 60)
    assert dict(settings.statuses) == {
        409: StatusMeaning.COMPLETED,
        500: StatusMeaning.FINAL,
        503: StatusMeaning.RETRYABLE,
        404: StatusMeaning.UNCERTAIN,
        102: StatusMeaning.UNCERTAIN,
    }
    assert settings.reconcile
    assert settings.reconcile.applied.text == "body.found"
    assert settings.reconcile.result.text == "{status: status}"
    assert settings.reconcile.not_applied_statuses == frozenset({404, 410})


def test_secret_goes_into_the_authorization_header_by_default() -> None:
    secret = parsed(secret={"secret_arn": SECRET_ARN}).secret
    assert secret
    assert (secret.header, secret.prefix, secret.max_age_seconds) == ("Authorization", "Bearer ", 300)


def test_not_found_means_not_applied_by_default() -> None:
    reconcile = parsed(reconcile={"url": URL, "applied": "body.found"}).reconcile
    assert reconcile
    assert reconcile.not_applied_statuses == frozenset({404})
    none = parsed(reconcile={"url": URL, "applied": "body.found", "not_applied_statuses": []}).reconcile
    assert none
    assert none.not_applied_statuses == frozenset()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": None}, "OPERATION_HTTP.url is missing"),
        ({"url": " "}, "OPERATION_HTTP.url is ' ', not a text, or blank"),
        ({"body": ""}, "OPERATION_HTTP.body is '', not a text, or blank"),
        ({"hosts": []}, "OPERATION_HTTP.hosts is [], not a list of 1 to 50 host names"),
        ({"hosts": "api.example.com"}, "OPERATION_HTTP.hosts is 'api.example.com', not a list of texts"),
        ({"method": "GET"}, "OPERATION_HTTP.method is 'GET', not one of POST, PUT, PATCH, DELETE"),
        ({"method": "post"}, "OPERATION_HTTP.method is 'post', not one of POST, PUT, PATCH, DELETE"),
        ({"allow_http": "true"}, "OPERATION_HTTP.allow_http is 'true', neither true nor false"),
        ({"metod": "PUT"}, "OPERATION_HTTP.metod is 'PUT', not a field of it"),
        (
            {"secret": {}},
            "OPERATION_HTTP.secret.secret_arn is None, and parameter_arn: exactly one of the two is needed",
        ),
        (
            {"secret": {"secret_arn": "api-key"}},
            "OPERATION_HTTP.secret.secret_arn is 'api-key', not the ARN of a secret",
        ),
        (
            {"secret": {"parameter_arn": SECRET_ARN}},
            f"OPERATION_HTTP.secret.parameter_arn is '{SECRET_ARN}', not the ARN of a parameter",
        ),
        (
            {"secret": {"secret_arn": SECRET_ARN, "prefix": "a\r\nb: "}},
            "OPERATION_HTTP.secret.prefix is 'a\\r\\nb: ', not up to 100 printable ASCII characters",
        ),
        (
            {"secret": {"secret_arn": SECRET_ARN, "max_age_seconds": 0}},
            "OPERATION_HTTP.secret.max_age_seconds is 0, not a whole number from 1 to 86400",
        ),
        (
            {"secret": {"secret_arn": SECRET_ARN, "ttl": 5}},
            "OPERATION_HTTP.secret.ttl is 5, not a field of it",
        ),
        (
            {
                "secret": {"secret_arn": SECRET_ARN, "header": "idempotency-key"},
                "idempotency_header": "Idempotency-Key",
            },
            "OPERATION_HTTP.secret.header is 'idempotency-key', the idempotency key's header",
        ),
        (
            {"statuses": {"final": [99]}},
            "OPERATION_HTTP.statuses.final is [99], not a list of statuses from 100 to 599",
        ),
        (
            {"statuses": {"final": ["4xx"]}},
            "OPERATION_HTTP.statuses.final is ['4xx'], not a list of statuses from 100 to 599",
        ),
        (
            {"statuses": {"final": [409], "retryable": [409]}},
            "OPERATION_HTTP.statuses.retryable is 409, named twice in statuses",
        ),
        (
            {"statuses": {"completed": [103]}},
            "OPERATION_HTTP.statuses.completed is 103, not a last answer, so it can only be uncertain",
        ),
        ({"reconcile": {"url": URL}}, "OPERATION_HTTP.reconcile.applied is missing"),
        (
            {"reconcile": {"url": URL, "applied": "a", "not_applied_statuses": [500]}},
            "OPERATION_HTTP.reconcile.not_applied_statuses is [500], not a list of statuses from 400 to 499",
        ),
        (
            {"reconcile": {"url": URL, "applied": "a", "not_applied_statuses": [404, 429]}},
            "OPERATION_HTTP.reconcile.not_applied_statuses is [404, 429], with one that says nothing of the effect",
        ),
    ],
)
def test_field_that_cannot_work_is_named_with_its_value_and_the_rule(fields: dict[str, Any], message: str) -> None:
    assert refusal(**fields) == message


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429])
def test_answer_that_says_nothing_of_the_effect_never_means_not_applied(status: int) -> None:
    assert "says nothing of the effect" in refusal(
        reconcile={"url": URL, "applied": "a", "not_applied_statuses": [status]}
    )


@pytest.mark.parametrize("name", ["url", "body", "result"])
def test_expression_that_does_not_compile_is_named(name: str) -> None:
    assert refusal(**{name: "a["}).startswith(f"OPERATION_HTTP.{name} is 'a[', not a JMESPath expression: ")


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "https://api.example.com",
        "api.example.com/v1",
        "*.example.com",
        "user@api.example.com",
        "api.example.com:",
        "api.example.com:0",
        "api.example.com:65536",
        "api.example.com:0443",
        "-api.example.com",
        "api..example.com",
        "bücher.example",
        "[::1]",
        "api.example.com\n",
        "a." * 127 + "example",
    ],
)
def test_host_that_is_none_is_refused(host: str) -> None:
    assert refusal(hosts=["api.example.com", host]).startswith("OPERATION_HTTP.hosts is ['api.example.com', ")


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Upgrade",
        "Expect",
        "TE",
        "Trailer",
        "Accept-Encoding",
        "Proxy-Authorization",
    ],
)
def test_header_that_frames_the_request_is_refused(name: str) -> None:
    rule = "a header that belongs to the connection"
    assert refusal(headers={name: "'x'"}) == f"OPERATION_HTTP.headers is {name!r}, {rule}"
    assert refusal(idempotency_header=name) == f"OPERATION_HTTP.idempotency_header is {name!r}, {rule}"
    assert refusal(secret={"secret_arn": SECRET_ARN, "header": name}) == (
        f"OPERATION_HTTP.secret.header is {name!r}, {rule}"
    )


@pytest.mark.parametrize("name", ["", "X Token", "X-Token:", "X-Tökén", "X-Token\r\nX-Other"])
def test_header_name_that_is_none_is_refused(name: str) -> None:
    assert refusal(headers={name: "'x'"}) == f"OPERATION_HTTP.headers is {name!r}, not a header name"


@pytest.mark.parametrize("name", ["idempotency-key", "AUTHORIZATION", "x-tenant"])
def test_header_is_sent_once(name: str) -> None:
    assert refusal(
        headers={"X-Tenant": "'x'", name: "'x'"},
        idempotency_header="Idempotency-Key",
        secret={"secret_arn": SECRET_ARN},
    ) == (f"OPERATION_HTTP.headers is {name!r}, a header that is named twice, or that the effect sends itself")


@pytest.mark.parametrize("name", ["idempotency-key", "AUTHORIZATION"])
def test_header_of_the_question_is_sent_once(name: str) -> None:
    assert refusal(
        reconcile={"url": URL, "applied": "a", "headers": {name: "'x'"}},
        idempotency_header="Idempotency-Key",
        secret={"secret_arn": SECRET_ARN},
    ) == (
        f"OPERATION_HTTP.reconcile.headers is {name!r}, a header that is named twice, or that the effect sends itself"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "OPERATION_HTTP is not JSON: Expecting value at character 0"),
        ("{", "OPERATION_HTTP is not JSON: "),
        ('{"url": "a", "url": "b"}', "OPERATION_HTTP is not JSON: an object names the same key twice"),
        ("[]", "OPERATION_HTTP is [], not a JSON object"),
        ("[" * 100_000, "OPERATION_HTTP is not JSON: nested too deep"),
    ],
)
def test_text_that_is_no_object_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        HttpSettings.from_json(text)
    assert str(caught.value).startswith(message)


def test_effect_reads_its_environment() -> None:
    environment = {"OPERATION_HTTP": json.dumps(NEEDED), "OPERATION_EFFECT_TIMEOUT_SECONDS": "10"}
    assert isinstance(HttpEffect.from_environment(environment), HttpEffect)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"OPERATION_HTTP": ""}, "OPERATION_HTTP is missing or blank"),
        (
            {"OPERATION_EFFECT_TIMEOUT_SECONDS": "0"},
            "OPERATION_EFFECT_TIMEOUT_SECONDS is '0', not a whole number from 1 to 900",
        ),
        ({"OPERATION_UNCERTAIN": "reconcile"}, "OPERATION_HTTP.reconcile is missing: OPERATION_UNCERTAIN is reconcile"),
    ],
)
def test_environment_that_cannot_work_is_refused(changes: dict[str, str], message: str) -> None:
    environment = {"OPERATION_HTTP": json.dumps(NEEDED), "OPERATION_EFFECT_TIMEOUT_SECONDS": "10"}
    with pytest.raises(SettingsError) as caught:
        HttpEffect.from_environment(environment | changes)
    assert str(caught.value) == message
