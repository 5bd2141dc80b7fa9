"""What an HTTP answer says of the effect. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from decimal import Decimal
from email.utils import parsedate_to_datetime
from html import escape
from typing import Any
from urllib.parse import quote

from idempotent_consumer.effect import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.expression import Expression
from idempotent_consumer.http.settings import HttpSettings, ReconcileSettings, StatusMeaning
from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.operation_settings import MAX_RETRY_SECONDS
from idempotent_consumer.rejection import Rejected

REMOVED = "[secret]"
# The secret is not, or no longer, the right one.
REFUSED_SECRET = (401, 403)
_MAX_QUOTED = 500
_MAX_LEVELS = 100
# RFC 7725; above it proxies have statuses of their own, such as 499 for a client that did not wait.
_LAST_REGISTERED = 451
_SECONDS = re.compile("[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Answer:
    """status: of the last status line. headers: names in lower case. body: None where it did not arrive whole."""

    status: int
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    body: bytes | None = field(repr=False, default=None)


def meaning(status: int, exceptions: Mapping[int, StatusMeaning]) -> StatusMeaning:
    """exceptions: what differs from the defaults.

    408, 409, 5xx and what is not registered are uncertain: a gateway answers so after it has passed a request on, too.
    """
    if status in exceptions:
        return exceptions[status]
    if 200 <= status < 300:
        return StatusMeaning.COMPLETED
    if status in (401, 403, 425, 429):
        return StatusMeaning.RETRYABLE
    if status in (301, 307, 308) or (400 <= status <= _LAST_REGISTERED and status not in (408, 409)):
        return StatusMeaning.FINAL
    return StatusMeaning.UNCERTAIN


def view(answer: Answer, secret: str, event: Any, key: str) -> dict[str, Any]:
    """What expressions see of an answer; the secret that it may quote is taken out first. secret: "" for none."""
    spellings = _spellings(secret)
    headers = _without(spellings, dict(answer.headers))
    return {
        "status": answer.status,
        "headers": headers,
        "body": _json(answer.body, spellings),
        "event": event,
        "key": key,
    }


def settle(settings: HttpSettings, answer: Answer, seen: Mapping[str, Any], now: float) -> Any:
    """The effect's result. now: epoch seconds.

    Raises Retryable, Final and Uncertain, each with the reason `http-<status>`.
    """
    reason, detail = f"http-{answer.status}", _detail(answer.status, seen["body"])
    match meaning(answer.status, settings.statuses):
        case StatusMeaning.COMPLETED:
            return _result(settings.result, seen)
        case StatusMeaning.FINAL:
            raise Final(reason, detail)
        case StatusMeaning.RETRYABLE:
            raise Retryable(reason, detail, after_seconds=retry_after(answer.headers.get("retry-after"), now))
        case StatusMeaning.UNCERTAIN:
            raise Uncertain(reason, detail)


def verdict(reconcile: ReconcileSettings, answer: Answer, seen: Mapping[str, Any]) -> Applied | NotApplied | Unknown:
    """What the provider says of an earlier attempt. Only a whole answer is believed."""
    if answer.status in reconcile.not_applied_statuses and answer.body is not None:
        return NotApplied()
    if not 200 <= answer.status < 300 or (seen["body"] is None and answer.status != 204):
        return Unknown()
    applied = _result(reconcile.applied, seen)
    if applied is True:
        return Applied(_result(reconcile.result, seen))
    return NotApplied() if applied is False else Unknown()


def retry_after(text: str | None, now: float) -> float | None:
    """A Retry-After (RFC 9110, 10.2.3) in seconds from `now`, 0 to 39,600; None for none, or one that says nothing."""
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return float(min(int(text[-6:]), MAX_RETRY_SECONDS) if len(text.lstrip("0")) <= 6 else MAX_RETRY_SECONDS)
    try:
        date = parsedate_to_datetime(text)
        at = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return float(min(max(at - now, 0), MAX_RETRY_SECONDS))


def _result(expression: Expression, seen: Mapping[str, Any]) -> Any:
    """None where the expression fails: what has been applied stays applied."""
    try:
        return expression.search(seen)
    except Rejected:
        return None


def _json(body: bytes | None, spellings: Sequence[str]) -> Any:
    """None where the body is no JSON, or is nested so deep that what reads it next could fail."""
    try:
        # Others are less strict than our own producers have to be.
        return _without(spellings, loads(body.decode("utf-8-sig"), takes_last=True)) if body else None
    except (Rejected, UnicodeDecodeError, RecursionError):
        return None


def _detail(status: int, body: Any) -> str:
    """Only JSON is quoted, and none about the secret itself: it could be spelt in ways that are not found."""
    if body is None or status in REFUSED_SECRET:
        return f"the answer was {status}"
    return f"the answer was {status}: {dumps(body)[:_MAX_QUOTED]}"


def _spellings(secret: str) -> Sequence[str]:
    """The secret as it is, and as URLs and HTML spell it; the longest first, since one may hold another."""
    return sorted({secret, quote(secret), quote(secret, safe=""), escape(secret)} - {""}, key=len, reverse=True)


def _without(spellings: Sequence[str], value: Any, levels: int = _MAX_LEVELS) -> Any:
    """The value with each of the spellings taken out. Raises RecursionError where it is nested deeper than that."""
    if levels < 0:
        raise RecursionError
    if isinstance(value, dict):
        return {
            _without(spellings, name, levels): _without(spellings, item, levels - 1) for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without(spellings, item, levels - 1) for item in value]
    if isinstance(value, str):
        for spelling in spellings:
            value = value.replace(spelling, REMOVED)
    elif isinstance(value, int | Decimal) and any(spelling in str(value) for spelling in spellings):
        return REMOVED
    return value
