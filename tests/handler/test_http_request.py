"""The request that an event asks for: only where it may go, with nothing in it that was not meant."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer.effect import Final
from idempotent_consumer.http.request import Request, effect_request, reconcile_request
from idempotent_consumer.http.settings import HttpSettings
from idempotent_consumer.http.url import Host, Url, read_url
from idempotent_consumer.json_text import dumps

HOSTS = (Host("api.example.com"), Host("other.example.com", 8443))
KEY = "0b9f1f0a-6f0e-5c57-9d6f-2f3a54c1c0de"
EVENT: dict[str, Any] = {"id": "o-1", "total": Decimal("9.90"), "tenant": "acme"}
OWN = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "idempotent-consumer"}


def url(value: Any, allow_http: bool = False) -> Url:
    return read_url(value, HOSTS, allow_http)


def refused(value: Any, allow_http: bool = False) -> tuple[str, str]:
    with pytest.raises(Final) as caught:
        url(value, allow_http)
    return caught.value.reason, caught.value.detail


def request(event: Any = EVENT, **fields: Any) -> Request:
    needed = {"url": "'https://api.example.com/charges'", "hosts": ["api.example.com"]}
    return effect_request(HttpSettings.from_json(dumps({**needed, **fields})), event, KEY)


def reason(event: Any = EVENT, **fields: Any) -> tuple[str, str]:
    with pytest.raises(Final) as caught:
        request(event, **fields)
    return caught.value.reason, caught.value.detail


# The URL


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://api.example.com", Url("https", "api.example.com", 443, "/")),
        ("https://api.example.com/", Url("https", "api.example.com", 443, "/")),
        ("https://api.example.com?a=b", Url("https", "api.example.com", 443, "/?a=b")),
        ("https://api.example.com/a/b/?c=d&e=/f?", Url("https", "api.example.com", 443, "/a/b/?c=d&e=/f?")),
        ("HTTPS://API.Example.COM/Path", Url("https", "api.example.com", 443, "/Path")),
        ("https://api.example.com./a", Url("https", "api.example.com", 443, "/a")),
        ("https://api.example.com:443/a", Url("https", "api.example.com", 443, "/a")),
        ("https://api.example.com.:443/a", Url("https", "api.example.com", 443, "/a")),
        ("https://other.example.com:8443/a", Url("https", "other.example.com", 8443, "/a")),
        ("https://api.example.com/a%2fb%c3%a9", Url("https", "api.example.com", 443, "/a%2Fb%C3%A9")),
        ("https://api.example.com/~a-b_c.d!$&'", Url("https", "api.example.com", 443, "/~a-b_c.d!$&'")),
        ("https://api.example.com/()*+,;=:@e", Url("https", "api.example.com", 443, "/()*+,;=:@e")),
        ("https://api.example.com/a...b/..c", Url("https", "api.example.com", 443, "/a...b/..c")),
        (["https://api.example.com/a"], Url("https", "api.example.com", 443, "/a")),
        (["https://api.example.com", "a"], Url("https", "api.example.com", 443, "/a")),
        (["https://api.example.com/a/", "b"], Url("https", "api.example.com", 443, "/a/b")),
        (["https://api.example.com/a", "b", 7, "c"], Url("https", "api.example.com", 443, "/a/b/7/c")),
        (["https://api.example.com", "a/b?c#d%e"], Url("https", "api.example.com", 443, "/a%2Fb%3Fc%23d%25e")),
        (["https://api.example.com", " é&=+\\"], Url("https", "api.example.com", 443, "/%20%C3%A9%26%3D%2B%5C")),
        (["https://api.example.com", -5], Url("https", "api.example.com", 443, "/-5")),
    ],
)
def test_url_that_may_be_called(value: Any, expected: Url) -> None:
    assert url(value) == expected


@pytest.mark.parametrize("value", [None, "", [None], [None, "a"], ["https://api.example.com", None]])
def test_url_that_the_event_does_not_name_is_missing(value: Any) -> None:
    assert refused(value)[0] == "url-missing"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (5, "it is neither a string nor a list that begins with one"),
        ([], "it is neither a string nor a list that begins with one"),
        ({"a": "b"}, "it is neither a string nor a list that begins with one"),
        ("/charges", "it is no absolute URL"),
        ("//api.example.com/charges", "it is no absolute URL"),
        ("https:/api.example.com", "it is no absolute URL"),
        (" https://api.example.com", "it is no absolute URL"),
        ("https:\\\\api.example.com", "it is no absolute URL"),
        ("http://api.example.com/", "its scheme is http, not https"),
        ("ftp://api.example.com/", "its scheme is ftp, not https"),
        ("file:///etc/passwd", "its scheme is file, not https"),
        ("http\u017f://api.example.com/", "it is no absolute URL"),
        ("https://evil.example/", "its host evil.example is not one of http.hosts"),
        ("https://api.example.com.evil.example/", "its host api.example.com.evil.example is not one of http.hosts"),
        ("https://xapi.example.com/", "its host xapi.example.com is not one of http.hosts"),
        ("https://api.example.com:8443/", "its host api.example.com:8443 is not one of http.hosts"),
        ("https://api.example.com:80/", "its host api.example.com:80 is not one of http.hosts"),
        ("https://other.example.com/", "its host other.example.com is not one of http.hosts"),
        ("https://2130706433/", "its host 2130706433 is not one of http.hosts"),
        ("https:///charges", "its host is not a host name, nor host:port"),
        ("https://api.example.com:/", "its host is not a host name, nor host:port"),
        ("https://api.example.com:443:443/", "its host is not a host name, nor host:port"),
        ("https://api.example.com:99999/", "its host is not a port from 1 to 65535"),
        ("https://api.example.com\\.evil.example/", "its host is not a host name, nor host:port"),
        ("https://evil.example\\@api.example.com/", "it names a user"),
        ("https://api.example.com@evil.example/", "it names a user"),
        ("https://user:password@api.example.com/", "it names a user"),
        ("https://api.example.com%2f@evil.example/", "it names a user"),
        ("https://api.example.com%00.evil.example/", "its host is not a host name, nor host:port"),
        ("https://api.example\u3002com/", "its host is not a host name, nor host:port"),
        ("https://\u212apia.example.com/", "its host is not a host name, nor host:port"),
        ("https://[::1]/", "its host is not a host name, nor host:port"),
        ("https://api.example.com\t/", "its host is not a host name, nor host:port"),
        ("https://api.example.com\n/", "its host is not a host name, nor host:port"),
        ("https://api.example.com/#", "it has a fragment"),
        ("https://api.example.com/#@evil.example", "it has a fragment"),
        ("https://api.example.com#@evil.example/", "it has a fragment"),
        ("https://api.example.com/a b", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a\\b", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a\r\nb", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a\n", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/é", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a%", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a%2", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/a%zz", "its path holds a character that has to be percent-encoded"),
        ("https://api.example.com/?a=b c", "its query holds a character that has to be percent-encoded"),
        ("https://api.example.com/?a=\x00", "its query holds a character that has to be percent-encoded"),
        ("https://api.example.com/?a[]=b", "its query holds a character that has to be percent-encoded"),
        ("https://api.example.com//evil.example/", "it has an empty path segment"),
        ("https://api.example.com/a//b", "it has an empty path segment"),
        ("https://api.example.com/a//", "it has an empty path segment"),
        ("https://api.example.com/a/../b", "it has a path segment of dots"),
        ("https://api.example.com/..", "it has a path segment of dots"),
        ("https://api.example.com/a/./b", "it has a path segment of dots"),
        ("https://api.example.com/%2e%2E/b", "it has a path segment of dots"),
        ("https://api.example.com/.%2e/b", "it has a path segment of dots"),
        ("https://api.example.com/..;a/b", "it has a path segment of dots"),
        ("https://api.example.com/a%2f..%2fb", "it has a path segment of dots"),
        ("https://api.example.com/a%5c..%5cb", "it has a path segment of dots"),
        ("https://api.example.com/a%0d%0ab", "a path segment holds a control character"),
        ("https://api.example.com/a%00", "a path segment holds a control character"),
        (["https://api.example.com", ""], "it has an empty path segment"),
        (["https://api.example.com//", "a"], "it has an empty path segment"),
        (["https://api.example.com", "."], "it has a path segment of dots"),
        (["https://api.example.com", "..", "b"], "it has a path segment of dots"),
        (["https://api.example.com", "a/../b"], "it has a path segment of dots"),
        (["https://api.example.com", "a\r\nb"], "a path segment holds a control character"),
        (["https://api.example.com", True], "a part of it is neither a string nor an integer"),
        (["https://api.example.com", Decimal("1.5")], "a part of it is neither a string nor an integer"),
        (["https://api.example.com", ["a"]], "a part of it is neither a string nor an integer"),
        (["https://api.example.com", "\ud800"], "a part of it holds half of a surrogate pair"),
        (["https://api.example.com?a=b", "c"], "it has a query before the path segments of the list"),
        (["https://evil.example", "c"], "its host evil.example is not one of http.hosts"),
    ],
)
def test_url_that_may_not_be_called(value: Any, why: str) -> None:
    assert refused(value) == ("url-not-allowed", f"the URL may not be called: {why}")


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (["https://api.example.com/charges", {"reference": "o-1"}], "/charges?reference=o-1"),
        (["https://api.example.com/charges/", "a/b", {"q": 7}], "/charges/a%2Fb?q=7"),
        (["https://api.example.com", {"a b": "1&admin=true#x", "c": ""}], "/?a%20b=1%26admin%3Dtrue%23x&c="),
        (["https://api.example.com/charges", {}], "/charges"),
    ],
)
def test_object_at_the_end_of_a_list_is_a_query(value: Any, target: str) -> None:
    """No value of an event can add a parameter, or leave the path."""
    assert url(value).target == target


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        (["https://api.example.com", {"q": None}], "url-missing"),
        (["https://api.example.com", {"q": ["a"]}], "url-not-allowed"),
        (["https://api.example.com?a=b", {"q": "c"}], "url-not-allowed"),
        (["https://api.example.com", {"q": "c"}, "a"], "url-not-allowed"),
    ],
)
def test_query_that_cannot_be_put_together_is_refused(value: Any, refusal: str) -> None:
    assert refused(value)[0] == refusal


def test_plain_http_is_for_tests_and_has_a_port_of_its_own() -> None:
    assert url("http://api.example.com/a", allow_http=True) == Url("http", "api.example.com", 80, "/a")
    assert url("http://api.example.com:80/a", allow_http=True) == Url("http", "api.example.com", 80, "/a")
    assert refused("http://api.example.com:443/a", allow_http=True)[0] == "url-not-allowed"
    assert refused("ftp://api.example.com/a", allow_http=True)[0] == "url-not-allowed"


def test_url_does_not_show_its_query() -> None:
    assert "secret" not in repr(url("https://api.example.com/?token=secret"))
    assert "secret" not in refused("https://api.example.com/?token=secret#")[1]
    assert "secret" not in refused("https://api.example.com/secret?token= secret")[1]


def test_url_comes_from_event_and_key() -> None:
    assert request(url="['https://api.example.com/orders', event.id, key]").url.target == f"/orders/o-1/{KEY}"


# Headers


def test_request_says_what_it_is() -> None:
    assert request() == Request("POST", Url("https", "api.example.com", 443, "/charges"), OWN, None)


def test_key_goes_into_its_header() -> None:
    assert request(idempotency_header="Idempotency-Key").headers == {**OWN, "Idempotency-Key": KEY}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event.tenant", "acme"),
        ("event.total", "9.90"),
        ("`7`", "7"),
        ("`true`", "true"),
        ("''", ""),
        ("'caf\u00e9'", "caf\u00e9"),
        ("key", KEY),
    ],
)
def test_header_takes_texts_numbers_and_booleans(path: str, value: str) -> None:
    assert request(headers={"X-Value": path}).headers == {**OWN, "X-Value": value}


def test_header_that_selects_nothing_is_left_out() -> None:
    assert request(headers={"X-None": "event.none", "user-agent": "event.none"}).headers == OWN


def test_header_of_the_settings_replaces_the_own_one() -> None:
    headers = request(headers={"user-agent": "'acme'"}).headers
    assert headers == {"Accept-Encoding": "identity", "Connection": "close", "user-agent": "acme"}


@pytest.mark.parametrize(
    "value",
    ["a\r\nX-Admin: yes", "a\nb", "a\rb", "a\x00b", "a\tb", "a\x7fb", "a\x85b", "\u20ac", "a\u0100b", "\ud800", "a\n"],
)
def test_header_value_that_would_begin_another_header_is_refused(value: str) -> None:
    assert reason({"value": value}, headers={"X-Value": "event.value"}) == (
        "header-not-allowed",
        "the header X-Value holds a character that no header can carry",
    )


@pytest.mark.parametrize("value", [[], ["a"], {}, {"a": "b"}])
def test_header_value_that_is_no_text_is_refused(value: Any) -> None:
    assert reason({"value": value}, headers={"X-Value": "event.value"}) == (
        "header-not-allowed",
        "the header X-Value is neither a text nor a number nor a boolean",
    )


def test_request_shows_neither_headers_nor_body() -> None:
    shown = repr(request({"a": "secret-1"}, body="event").with_header("Authorization", "secret-2"))
    assert "secret" not in shown


# The body


def test_body_is_exact_json() -> None:
    made = request({"id": "o-1", "total": Decimal("0.10"), "huge": 12345678901234567890123}, body="event")
    assert made.body == b'{"id":"o-1","total":0.10,"huge":12345678901234567890123}'
    assert made.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("value", "body"),
    [(0, b"0"), (False, b"false"), ([], b"[]"), ({}, b"{}"), ("caf\u00e9", "caf\u00e9".encode()), ("", b"")],
)
def test_body_may_be_any_value(value: Any, body: bytes) -> None:
    assert request({"value": value}, body="event.value").body == body


def test_body_that_is_a_text_has_the_type_that_its_header_says() -> None:
    assert "Content-Type" not in request(body="event.id").headers
    made = request(body="event.id", headers={"content-type": "'text/csv'"})
    assert made.headers == {**OWN, "content-type": "text/csv"}


def test_json_has_the_type_that_the_header_says() -> None:
    made = request(body="event", headers={"content-type": "'application/vnd.acme+json'"})
    assert made.headers == {**OWN, "content-type": "application/vnd.acme+json"}


def test_body_that_selects_nothing_is_none() -> None:
    assert request(body="event.none").body is None
    assert "Content-Type" not in request(body="event.none").headers


def test_body_that_cannot_be_sent_is_refused() -> None:
    assert reason({"text": "\ud800"}, body="event.text")[0] == "body-not-allowed"
    assert reason({"text": "\ud800"}, body="event")[0] == "body-not-allowed"


@pytest.mark.parametrize("name", ["url", "body"])
def test_expression_that_fails_says_so(name: str) -> None:
    assert reason(**{name: "length(event.total)"}) == ("expression-failed", "length(event.total): JMESPathTypeError")
    assert reason(headers={"X-A": "length(event.total)"})[0] == "expression-failed"


# The question


def test_question_is_a_get_without_body_or_key_header() -> None:
    settings = HttpSettings.from_json(
        dumps(
            {
                "url": "'https://api.example.com/charges'",
                "hosts": ["api.example.com"],
                "body": "event",
                "idempotency_header": "Idempotency-Key",
                "headers": {"X-Tenant": "event.tenant"},
                "reconcile": {
                    "url": "['https://api.example.com/charges', key]",
                    "headers": {"X-Ask": "event.id"},
                    "applied": "body.found",
                },
            }
        )
    )
    assert settings.reconcile
    assert reconcile_request(settings, settings.reconcile, EVENT, KEY) == Request(
        "GET",
        Url("https", "api.example.com", 443, f"/charges/{KEY}"),
        {**OWN, "Cache-Control": "no-cache", "X-Ask": "o-1"},
        None,
    )


def test_question_goes_to_the_same_hosts_only() -> None:
    settings = HttpSettings.from_json(
        dumps(
            {
                "url": "'https://api.example.com/charges'",
                "hosts": ["api.example.com"],
                "reconcile": {"url": "'https://evil.example/'", "applied": "body.found"},
            }
        )
    )
    assert settings.reconcile
    with pytest.raises(Final) as caught:
        reconcile_request(settings, settings.reconcile, EVENT, KEY)
    assert caught.value.reason == "url-not-allowed"
