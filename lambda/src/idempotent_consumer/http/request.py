"""The HTTP request that an event asks for. Pure: nothing is sent here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from idempotent_consumer.effect import Final
from idempotent_consumer.expression import Expression
from idempotent_consumer.http.settings import HttpSettings, ReconcileSettings
from idempotent_consumer.http.url import Url, read_url
from idempotent_consumer.json_text import dumps
from idempotent_consumer.rejection import Rejected

_OWN_HEADERS: Mapping[str, str] = {
    # A packed body could unpack to any size.
    "Accept-Encoding": "identity",
    # While the function is frozen, a connection dies unseen; what is sent on it then is lost without a word.
    "Connection": "close",
    "User-Agent": "idempotent-consumer",
}
# Latin-1 without its control characters: what a header can carry.
_HEADER_VALUE = re.compile("[ -~\xa0-\xff]*")


@dataclass(frozen=True)
class Request:
    """headers, body: not shown; they may hold a secret, and what the event holds."""

    method: str
    url: Url
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False, default=None)

    def with_header(self, name: str, value: str) -> "Request":
        return replace(self, headers={**self.headers, name: value})


def effect_request(settings: HttpSettings, event: Any, key: str) -> Request:
    """The request that applies the effect.

    Raises Final: `url-missing`, `url-not-allowed`, `header-not-allowed`, `body-not-allowed`, or what an expression
    fails with.
    """
    data = {"event": event, "key": key}
    headers = _headers(settings.headers, data)
    if settings.idempotency_header:
        headers[settings.idempotency_header] = key
    body, is_json = _body(settings.body, data)
    if is_json and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return Request(settings.method, _url(settings.url, settings, data), headers, body)


def reconcile_request(settings: HttpSettings, reconcile: ReconcileSettings, event: Any, key: str) -> Request:
    """The request that asks whether the effect was applied. Raises Final, as above."""
    data = {"event": event, "key": key}
    # A cache may still say "not found" of what has been applied since.
    headers = {"Cache-Control": "no-cache", **_headers(reconcile.headers, data)}
    return Request("GET", _url(reconcile.url, settings, data), headers)


def is_header_value(text: str) -> bool:
    """Whether a header can carry it; a line break in it would begin a header of its own."""
    return _HEADER_VALUE.fullmatch(text) is not None


def _url(expression: Expression, settings: HttpSettings, data: Any) -> Url:
    return read_url(_search(expression, data), settings.hosts, settings.allow_http)


def _headers(expressions: Mapping[str, Expression], data: Any) -> dict[str, str]:
    values = {name: _search(expression, data) for name, expression in expressions.items()}
    chosen = {name: _header_value(name, value) for name, value in values.items() if value is not None}
    named = {name.lower() for name in chosen}
    return {name: value for name, value in _OWN_HEADERS.items() if name.lower() not in named} | chosen


def _header_value(name: str, value: Any) -> str:
    if isinstance(value, bool | int | Decimal):
        value = dumps(value)
    if not isinstance(value, str):
        raise Final("header-not-allowed", f"the header {name} is neither a text nor a number nor a boolean")
    if not is_header_value(value):
        raise Final("header-not-allowed", f"the header {name} holds a character that no header can carry")
    return value


def _body(expression: Expression | None, data: Any) -> tuple[bytes | None, bool]:
    """The body, and whether it is JSON."""
    value = _search(expression, data) if expression else None
    if value is None:
        return None, False
    is_text = isinstance(value, str)
    try:
        return (value if is_text else dumps(value)).encode(), not is_text
    except Rejected as rejected:
        raise Final(rejected.reason, rejected.detail) from None
    except (TypeError, ValueError, RecursionError):
        raise Final("body-not-allowed", "the body is not JSON, or holds half of a surrogate pair") from None


def _search(expression: Expression, data: Any) -> Any:
    try:
        return expression.search(data)
    except Rejected as rejected:
        raise Final(rejected.reason, rejected.detail) from None
