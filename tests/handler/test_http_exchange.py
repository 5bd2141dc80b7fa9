"""A call over real sockets: what fails before the request's first byte was not sent; after it, nobody knows."""

from __future__ import annotations

import gzip
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from idempotent_consumer.http import exchange as http_exchange
from idempotent_consumer.http.answer import Answer
from idempotent_consumer.http.connect import NotSent, connect
from idempotent_consumer.http.exchange import MAX_BODY_BYTES, AnswerLost, exchange
from idempotent_consumer.http.request import Request
from idempotent_consumer.http.url import Url
from tests.handler.http_provider import (
    SECONDS,
    Provider,
    ok,
    provider,
    reset,
    then_hang,
    then_reset,
    then_trickle,
)
from tests.handler.http_provider import Answer as Sent

# Where the call is to run out of time, while connecting on loopback still takes a small part of half of it.
SOON = 1.5
TLS = ssl.create_default_context()
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "tests"}


def request(port: int, **changes: Any) -> Request:
    fields = {"method": "POST", "headers": HEADERS, "body": b"{}", **changes}
    return Request(url=Url("http", "127.0.0.1", port, fields.pop("target", "/charges")), **fields)


def call(made: Provider, seconds: float = SECONDS) -> Answer:
    return exchange(request(made.port), seconds, TLS)


def failure(port: int, seconds: float = SECONDS, method: str = "POST") -> tuple[str, str]:
    with pytest.raises((NotSent, AnswerLost)) as caught:
        exchange(request(port, method=method), seconds, TLS)
    error: Any = caught.value
    return type(error).__name__, error.reason


# Answers


def test_request_goes_out_as_it_is_and_its_answer_comes_back() -> None:
    with provider(ok(b'{"id":7}', "201 Created", "Location: /7\r\nX-Two: a\r\nx-two: b\r\n")) as made:
        answer = exchange(request(made.port, body=b"{}", headers={**HEADERS, "X-A": "caf\u00e9"}), SECONDS, TLS)
    assert answer == Answer(201, {"content-length": "8", "location": "/7", "x-two": "a, b"}, b'{"id":7}')
    assert made.head()[0] == "POST /charges HTTP/1.1"
    assert made.headers() == {"Host": f"127.0.0.1:{made.port}", "Content-Length": "2", **HEADERS, "X-A": "caf\u00e9"}
    assert made.body() == b"{}"


def test_target_is_requested_letter_by_letter() -> None:
    target = "/~a-b_c.d!$&'()*+,;=:@e/%2F%C3%A9/?f=/g?h%5B%5D=i"
    with provider(ok()) as made:
        exchange(request(made.port, target=target), SECONDS, TLS)
    assert made.head()[0] == f"POST {target} HTTP/1.1"


def test_request_without_a_body_says_so() -> None:
    with provider(ok()) as made:
        exchange(request(made.port, body=None), SECONDS, TLS)
    assert made.headers()["Content-Length"] == "0"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_an_answer_and_is_not_followed(status: int) -> None:
    with provider(ok(b"", f"{status} Moved", "Location: /elsewhere\r\n")) as made:
        assert call(made).status == status
    assert made.connections == 1


# The library would repeat all but POST and PATCH.
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GET"])
@pytest.mark.parametrize("status", [413, 429, 500, 503])
def test_no_answer_is_asked_for_again(status: int, method: str) -> None:
    with provider(ok(b"", f"{status} No", "Retry-After: 0\r\n")) as made:
        assert exchange(request(made.port, method=method), SECONDS, TLS).status == status
    assert made.connections == 1


def test_each_call_has_a_connection_of_its_own() -> None:
    with provider(ok()) as made:
        call(made)
        call(made)
    assert made.connections == 2


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{_closed_port()}")
    with provider(ok()) as made:
        assert call(made).status == 200


def test_answer_that_is_announced_is_waited_for() -> None:
    early = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    )
    with provider(early + ok(b"{}", "201 Created")) as made:
        assert call(made) == Answer(201, {"content-length": "2"}, b"{}")


def test_answer_before_the_whole_request_was_taken_is_read() -> None:
    def refuse(connection: socket.socket, _: Provider) -> None:
        connection.sendall(ok(b"", "413 Too Large"))

    with provider(refuse) as made:
        assert exchange(request(made.port, body=b"x" * 10_000_000), SECONDS, TLS).status == 413


def test_call_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with provider(b"HTTP/1.1 200 OK\r\nno header at all\r\nContent-Length: 2\r\n\r\n{}") as made:
        exchange(request(made.port, target="/?token=s3cr3t"), SECONDS, TLS)
    assert caplog.records == []


# Not sent


def test_refused_connection_sent_nothing() -> None:
    assert failure(_closed_port()) == ("NotSent", "not-connected")


def test_name_that_is_not_resolved_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert failure(443) == ("NotSent", "name-not-resolved")


def test_name_whose_look_up_hangs_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(SECONDS) and [])
    try:
        with pytest.raises(NotSent) as caught:
            exchange(request(443), 0.2, TLS)
    finally:
        is_over.set()
    assert (caught.value.reason, caught.value.detail) == ("name-not-resolved", "127.0.0.1: no answer in time")


def test_host_without_an_address_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    assert failure(443) == ("NotSent", "name-not-resolved")


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """Of a listener whose queue is full: Linux then answers no further attempt to connect."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(8):
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(listener.getsockname())
            yield listener.getsockname()[1]
        finally:
            for connection in waiting:
                connection.close()


def test_connection_that_does_not_come_about_sent_nothing(deaf_port: int) -> None:
    assert failure(deaf_port, 1.0) == ("NotSent", "connect-timeout")


def test_address_that_does_not_answer_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch, deaf_port: int) -> None:
    with provider(ok()) as made:
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in (deaf_port, made.port)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        assert call(made, SOON).status == 200


@pytest.mark.parametrize(("seconds", "share"), [(1.0, 0.5), (10.0, 5.0), (60.0, 5.0)])
def test_time_is_left_for_the_answer(monkeypatch: pytest.MonkeyPatch, seconds: float, share: float) -> None:
    until: list[float] = []

    def give_up(_: str, __: int, moment: float) -> socket.socket:
        until.append(moment)
        raise NotSent("not-connected")

    monkeypatch.setattr(http_exchange, "connect", give_up)
    began = time.monotonic()
    assert failure(443, seconds) == ("NotSent", "not-connected")
    assert began + share <= until[0] <= time.monotonic() + share


def test_time_to_connect_is_over_before_the_first_address() -> None:
    with pytest.raises(NotSent) as caught:
        connect("127.0.0.1", _closed_port(), 0.0)
    assert caught.value.reason in ("connect-timeout", "name-not-resolved")


# Perhaps sent


def _never_accepted() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=5)


def test_connection_that_nobody_accepts_may_have_taken_the_request() -> None:
    with _never_accepted() as listener:
        assert failure(listener.getsockname()[1], SOON) == ("AnswerLost", "answer-timeout")


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "connection-lost"),
        (reset, "connection-lost"),
        (then_reset(b"HTTP/1.1 2"), "connection-lost"),
        (b"HTTP/1.1 2", "answer-unreadable"),
        (b"HTTP/1.1 20", "answer-unreadable"),
        (b"HTTP/1.1 ", "answer-unreadable"),
        (b"220 smtp.example.com ESMTP\r\n", "answer-unreadable"),
        (b"HTTP/2 200 OK\r\n\r\n", "answer-unreadable"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "answer-unreadable"),
        (b"HTTP/1.1 " + b"2" * 70_000, "answer-unreadable"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "answer-unreadable"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "connection-lost"),
    ],
)
def test_request_whose_answer_is_lost_is_uncertain(sent: Sent, reason: str, method: str) -> None:
    with provider(sent) as made:
        assert failure(made.port, method=method) == ("AnswerLost", reason)
    assert (made.connections, len(made.requests)) == (1, 1)


@pytest.mark.parametrize(
    "sent",
    [
        then_hang(b""),
        then_hang(b"HTTP/1.1 20"),
        then_trickle(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        then_trickle(b"HTTP/1.1 ", b" "),
    ],
)
def test_request_whose_answer_is_late_is_uncertain(sent: Sent) -> None:
    with provider(sent) as made:
        assert failure(made.port, SOON) == ("AnswerLost", "answer-timeout")
    assert (made.connections, len(made.requests)) == (1, 1)


def test_connection_lost_while_the_request_is_sent_is_uncertain() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept_and_reset() -> None:
            connection, _ = listener.accept()
            connection.recv(10)
            reset(connection, Provider(0))

        thread = threading.Thread(target=accept_and_reset, daemon=True)
        thread.start()
        with pytest.raises(AnswerLost):
            exchange(request(listener.getsockname()[1], body=b"x" * 10_000_000), SECONDS, TLS)
        thread.join(SECONDS)


# A status decides, whatever follows it


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: b",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 100_000 + b"\r\n\r\n",
        then_reset(b"HTTP/1.1 200 OK\r\n"),
        then_reset(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        then_reset(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    ],
)
def test_status_decides_where_the_rest_is_lost(sent: Sent) -> None:
    with provider(sent) as made:
        answer = call(made)
    assert answer.status == 200
    assert answer.body in (None, b"")
    assert made.connections == 1


@pytest.mark.parametrize(
    "sent",
    [
        then_hang(b"HTTP/1.1 402 No\r\n"),
        then_hang(b"HTTP/1.1 402 No\r\nX-A: b"),
        then_hang(b"HTTP/1.1 402 No\r\nContent-Length: 9\r\n\r\n{}"),
        then_hang(b"HTTP/1.1 402 No\r\n\r\n{}"),
        then_trickle(b"HTTP/1.1 402 No\r\n", b"X"),
        then_trickle(b"HTTP/1.1 402 No\r\nContent-Length: 1000000\r\n\r\n", b"x"),
        then_trickle(b"HTTP/1.1 402 No\r\n\r\n", b"1"),
        then_trickle(b"HTTP/1.1 402 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_status_decides_where_the_rest_does_not_come_in_time(sent: Sent) -> None:
    with provider(sent) as made:
        answer = call(made, SOON)
    assert (answer.status, answer.body) == (402, None)


def _endless(head: bytes, chunk: bytes) -> Sent:
    def answer(connection: socket.socket, made: Provider) -> None:
        connection.sendall(head)
        while not made.ended.is_set():
            connection.sendall(chunk)

    return answer


@pytest.mark.parametrize(
    "sent",
    [
        _endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536),
        _endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1_024 + b"\r\n"),
        ok(b"x" * (MAX_BODY_BYTES + 1)),
        ok(b"x" * 10_000_000),
    ],
)
def test_body_over_the_limit_is_left(sent: Sent) -> None:
    with provider(sent) as made:
        answer = call(made)
    assert (answer.status, answer.body) == (200, None)


def test_body_at_the_limit_is_read() -> None:
    with provider(ok(b"x" * 262_144)) as made:
        assert call(made).body == b"x" * 262_144


def test_chunks_are_put_together() -> None:
    with provider(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n") as made:
        assert call(made).body == b"{}"


def test_packed_body_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * 10_000_000)
    with provider(ok(packed, headers="Content-Encoding: gzip\r\n")) as made:
        assert call(made).body == packed


def test_failure_quotes_neither_the_path_nor_the_body() -> None:
    with provider(b"s3cr3t") as made, pytest.raises(AnswerLost) as caught:
        exchange(request(made.port, target="/?token=s3cr3t", body=b"s3cr3t"), SECONDS, TLS)
    assert "s3cr3t" not in repr(caught.value) + caught.value.detail
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
