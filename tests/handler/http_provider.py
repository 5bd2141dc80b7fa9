"""A provider on loopback that answers, or fails to, byte by byte as a test says."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.http.effect import HttpEffect
from idempotent_consumer.http.settings import HttpSettings
from idempotent_consumer.json_text import dumps

KEY = "0b9f1f0a-6f0e-5c57-9d6f-2f3a54c1c0de"
# Far over what anything here takes, where nothing is to time out.
SECONDS = 30.0


@dataclass
class Provider:
    """requests: each with its head and body as they came. connections: how many were accepted."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def head(self, index: int = 0) -> list[str]:
        """The lines of a request before its body."""
        return self.requests[index].partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")

    def headers(self, index: int = 0) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.head(index)[1:])

    def body(self, index: int = 0) -> bytes:
        return self.requests[index].partition(b"\r\n\r\n")[2]


Answer = bytes | Callable[[socket.socket, Provider], None]


@contextmanager
def provider(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """Answers each request with `answer`, bytes or what to do with the connection, and closes it then."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = Provider(listener.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            made.connections += 1
            connection: socket.socket = accepted
            try:
                accepted.settimeout(SECONDS)
                connection = tls.wrap_socket(accepted, server_side=True) if tls else accepted
                made.requests.append(_read_request(connection))
                if callable(answer):
                    answer(connection, made)
                else:
                    connection.sendall(answer)
            except OSError:  # the caller went away
                pass
            finally:
                with suppress(OSError):
                    connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.ended.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(SECONDS)


def reset(connection: socket.socket, _: Provider) -> None:
    """Close by a reset, as a proxy that restarts does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def then_hang(sent: bytes) -> Answer:
    """Send that, then nothing, until the test is over."""

    def answer(connection: socket.socket, made: Provider) -> None:
        connection.sendall(sent)
        made.ended.wait(SECONDS)

    return answer


def then_reset(sent: bytes) -> Answer:
    """Send that, see it taken, then reset the connection."""

    def answer(connection: socket.socket, made: Provider) -> None:
        connection.sendall(sent)
        # What is unread at a reset is thrown away with it, so the reader comes first.
        made.ended.wait(0.5)
        reset(connection, made)

    return answer


def then_trickle(sent: bytes, drop: bytes) -> Answer:
    """Send that, then drop after drop, always before any timeout for a single read."""

    def answer(connection: socket.socket, made: Provider) -> None:
        connection.sendall(sent)
        while not made.ended.wait(0.02):
            connection.sendall(drop)

    return answer


def ok(body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def settings(made: Provider, **fields: Any) -> HttpSettings:
    """Calls the provider by plain HTTP; `fields` are those of `http`."""
    defaults = {
        "url": f"'{made.url}/charges'",
        "hosts": [f"127.0.0.1:{made.port}"],
        "body": "event",
        "idempotency_header": "Idempotency-Key",
        "allow_http": True,
    }
    return HttpSettings.from_json(dumps({**defaults, **fields}))


def effect(made: Provider, seconds: float = SECONDS, **fields: Any) -> HttpEffect:
    return HttpEffect(settings(made, **fields), seconds)


def event(data: Any = None) -> Event:
    return Event("o-1", {"id": "o-1", "total": 5} if data is None else data, "f")


def _read_request(connection: socket.socket) -> bytes:
    read = b""
    while b"\r\n\r\n" not in read:
        chunk = connection.recv(65_536)
        if not chunk:
            raise ConnectionResetError("no request came")
        read += chunk
    head, _, body = read.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
