"""What an answer says: applied, certainly not, or nobody knows; and nothing of it shows the secret."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

from idempotent_consumer.effect import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.http.answer import Answer, meaning, retry_after, settle, verdict, view
from idempotent_consumer.http.settings import HttpSettings, StatusMeaning
from idempotent_consumer.json_text import dumps

COMPLETED, FINAL = StatusMeaning.COMPLETED, StatusMeaning.FINAL
RETRYABLE, UNCERTAIN = StatusMeaning.RETRYABLE, StatusMeaning.UNCERTAIN
KEY = "0b9f1f0a-6f0e-5c57-9d6f-2f3a54c1c0de"
EVENT = {"id": "o-1"}
# 6 November 1994, 08:49:37 GMT.
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
DATE_SECONDS = 784_111_777.0


def settings(**fields: Any) -> HttpSettings:
    needed = {"url": "'https://api.example.com/'", "hosts": ["api.example.com"]}
    return HttpSettings.from_json(dumps({**needed, **fields}))


def settled(answer: Answer, secret: str = "", **fields: Any) -> Any:
    return settle(settings(**fields), answer, view(answer, secret, EVENT, KEY), DATE_SECONDS)


def judged(answer: Answer, applied: str = "body.found", **fields: Any) -> Applied | NotApplied | Unknown:
    asked = settings(reconcile={"url": "'https://api.example.com/'", "applied": applied, **fields}).reconcile
    assert asked
    return verdict(asked, answer, view(answer, "", EVENT, KEY))


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    return Answer(status, headers, None if body is None else json.dumps(body).encode())


# Statuses


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((200, 201, 202, 204, 206, 226, 299), COMPLETED),
        ((301, 307, 308), FINAL),
        ((400, 402, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424), FINAL),
        ((426, 428, 431, 451), FINAL),
        ((401, 403, 425, 429), RETRYABLE),
        ((408, 409, 452, 460, 499), UNCERTAIN),
        ((100, 101, 103, 199), UNCERTAIN),
        ((300, 302, 303, 304, 305, 399), UNCERTAIN),
        ((500, 501, 502, 503, 504, 520, 599, 600, 999), UNCERTAIN),
    ],
)
def test_status_has_its_meaning(statuses: tuple[int, ...], expected: StatusMeaning) -> None:
    assert {meaning(status, {}) for status in statuses} == {expected}


def test_settings_overrule_the_meaning_of_a_status() -> None:
    lists = {"completed": [409], "final": [500], "retryable": [503, 404], "uncertain": [200]}
    exceptions = settings(statuses=lists).statuses
    assert [meaning(status, exceptions) for status in (409, 500, 503, 404, 200, 201)] == [
        COMPLETED,
        FINAL,
        RETRYABLE,
        RETRYABLE,
        UNCERTAIN,
        COMPLETED,
    ]


@pytest.mark.parametrize(("status", "kind"), [(402, Final), (429, Retryable), (503, Uncertain)])
def test_failure_has_the_status_as_its_reason_and_quotes_the_json(status: int, kind: type[Any]) -> None:
    with pytest.raises(kind) as caught:
        settled(answer(status, {"error": "card_declined"}))
    assert caught.value.reason == f"http-{status}"
    assert caught.value.detail == f'the answer was {status}: {{"error":"card_declined"}}'


def test_failure_quotes_no_more_than_what_is_useful() -> None:
    with pytest.raises(Final) as caught:
        settled(answer(400, "x" * 10_000))
    assert caught.value.detail == 'the answer was 400: "' + "x" * 499


def test_failure_quotes_nothing_but_json() -> None:
    with pytest.raises(Final) as caught:
        settled(Answer(400, {}, b"<html>token</html>"))
    assert caught.value.detail == "the answer was 400"


# Results


def test_result_is_the_status_unless_the_settings_say_more() -> None:
    assert settled(answer(201, {"id": "ch-1"})) == {"status": 201}


def test_result_selects_from_status_headers_body_event_and_key() -> None:
    assert settled(
        answer(201, {"id": "ch-1"}, location="/ch-1"), result="[status, headers.location, body.id, event.id, key]"
    ) == [201, "/ch-1", "ch-1", "o-1", KEY]


def test_result_keeps_numbers_exact() -> None:
    assert settled(Answer(200, {}, b'{"total": 0.10}'), result="body.total") == Decimal("0.10")


def test_body_need_not_be_as_strict_as_an_event() -> None:
    assert settled(Answer(200, {}, b'\xef\xbb\xbf{"id": 1, "id": 2}'), result="body.id") == 2


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"OK",
        b"{",
        b'{"id": NaN}',
        b"\xff\xfe",
        b'"\\ud800"',
        b"1e999999999",
        b"[" * 100_000,
        b'{"id":' + b"[" * 101 + b"]" * 101 + b"}",
        b"\x1f\x8b\x08\x00",
    ],
)
def test_body_that_is_no_json_never_hinders_completion(body: bytes | None) -> None:
    assert settled(Answer(200, {}, body), result="{status: status, id: body.id}") == {"status": 200, "id": None}
    assert settled(Answer(200, {}, body), result="body") is None


def test_body_as_deep_as_it_may_be_is_read() -> None:
    body = b"[" * 100 + b"]" * 100
    assert dumps(settled(Answer(200, {}, body), result="body")) == body.decode()


def test_result_that_fails_is_null() -> None:
    assert settled(answer(200, {"id": 5}), result="length(body.id)") is None


# Retry-After


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("000000000120", 120),
        ("39600", 39_600),
        ("39601", 39_600),
        ("9" * 10_000, 39_600),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        (DATE, 0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ("Sun, 06 Nov 2094 08:49:37 GMT", 39_600),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("\u0665", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 99999 08:49:37 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_bounds(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, DATE_SECONDS) == seconds


def test_refusal_for_now_waits_as_long_as_it_says() -> None:
    with pytest.raises(Retryable) as caught:
        settled(answer(429, None, **{"retry-after": "120"}))
    assert caught.value.after_seconds == 120
    with pytest.raises(Retryable) as caught:
        settled(answer(429))
    assert caught.value.after_seconds is None


# The secret


@pytest.mark.parametrize("secret", ["s3cr3t+/=&<'", "abc", "caf\u00e9 100%"])
def test_secret_that_the_answer_quotes_is_in_no_result(secret: str) -> None:
    body = {
        secret: "name",
        "plain": f"Bearer {secret}",
        "list": [{"deep": secret + secret}],
        "url": f"https://x/?key={quote(secret, safe='')}",
    }
    result = settled(answer(200, body, echo=f"<{secret}>"), secret, result="[headers, body]")
    assert result == [
        {"echo": "<[secret]>"},
        {
            "[secret]": "name",
            "plain": "Bearer [secret]",
            "list": [{"deep": "[secret][secret]"}],
            "url": "https://x/?key=[secret]",
        },
    ]


def test_secret_as_html_spells_it_is_in_no_result() -> None:
    assert settled(answer(200, "a&amp;b&lt;c"), "a&b<c", result="body") == "[secret]"


def test_secret_is_found_behind_the_escapes_of_json() -> None:
    assert settled(Answer(200, {}, b'"a\\/\\u0062"'), "a/b", result="body") == "[secret]"


def test_secret_that_is_a_number_is_in_no_result() -> None:
    assert settled(answer(200, {"pin": 12345678, "n": 1.5}), "12345678", result="body") == {
        "pin": "[secret]",
        "n": Decimal("1.5"),
    }


@pytest.mark.parametrize(("status", "kind"), [(402, Final), (429, Retryable), (503, Uncertain)])
def test_secret_is_in_no_detail(status: int, kind: type[Any]) -> None:
    with pytest.raises(kind) as caught:
        settled(answer(status, {"error": "bad key s3cr3t"}), "s3cr3t")
    assert caught.value.detail == f'the answer was {status}: {{"error":"bad key [secret]"}}'


def test_answer_shows_neither_headers_nor_body() -> None:
    assert repr(answer(200, "s3cr3t", echo="s3cr3t")) == "Answer(status=200)"


# Reconciliation


def test_true_is_applied_and_false_is_not() -> None:
    assert judged(answer(200, {"found": True})) == Applied({"status": 200})
    assert judged(answer(200, {"found": False})) == NotApplied()


@pytest.mark.parametrize("value", [None, 0, 1, "", "true", "false", [], [True], {}])
def test_anything_but_true_and_false_is_unknown(value: Any) -> None:
    assert judged(answer(200, {"found": value})) == Unknown()
    assert judged(answer(200, {})) == Unknown()


def test_question_that_fails_is_unknown() -> None:
    assert judged(answer(200, {"found": 5}), "length(body.found) > `0`") == Unknown()


@pytest.mark.parametrize("applied", ["body.data != `null`", "status == `201`"])
@pytest.mark.parametrize("body", [None, b"", b"<html>", b'{"data": [1'])
def test_answer_that_cannot_be_read_is_unknown_whatever_the_question(applied: str, body: bytes | None) -> None:
    assert judged(Answer(200, {}, body), applied) == Unknown()


def test_answer_that_has_no_body_by_its_status_is_read() -> None:
    assert judged(Answer(204, {}, b""), "status == `200`") == NotApplied()


def test_not_found_is_not_applied() -> None:
    assert judged(answer(404, {})) == NotApplied()
    assert judged(Answer(404, {}, b"")) == NotApplied()
    assert judged(answer(410, {})) == Unknown()
    assert judged(answer(410, {}), not_applied_statuses=[410]) == NotApplied()
    assert judged(answer(404, {}), not_applied_statuses=[410]) == Unknown()
    assert judged(answer(404, {"found": True}), not_applied_statuses=[]) == Unknown()


def test_not_found_of_which_a_part_is_lost_says_nothing() -> None:
    assert judged(Answer(404, {}, None)) == Unknown()


@pytest.mark.parametrize("status", [401, 403])
def test_what_a_provider_says_of_the_secret_is_not_quoted(status: int) -> None:
    with pytest.raises(Retryable) as raised:
        settled(answer(status, {"error": "bad token: c2VjcmV0"}))
    assert raised.value.detail == f"the answer was {status}"


@pytest.mark.parametrize("status", [100, 301, 302, 400, 401, 403, 408, 409, 425, 429, 500, 503])
def test_any_other_failure_is_unknown(status: int) -> None:
    assert judged(answer(status, {"found": False})) == Unknown()
    assert judged(answer(status, {"found": True})) == Unknown()


def test_result_of_what_was_found_is_stored() -> None:
    assert judged(answer(200, {"found": True, "id": "ch-1"}), result="body.id") == Applied("ch-1")
    assert judged(answer(200, {"found": True, "id": 5}), result="length(body.id)") == Applied(None)


def test_question_sees_the_event_and_the_key() -> None:
    assert judged(answer(200, {"key": KEY}), "body.key == key && event.id == 'o-1'") == Applied({"status": 200})
    assert judged(answer(200, {"key": "another"}), "body.key == key") == NotApplied()
