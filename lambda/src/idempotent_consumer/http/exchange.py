"""One HTTP request on one fresh connection: its answer, or what is known where there is none.

Every step up to the request's first byte is told apart from those after it: what fails before was certainly not sent.
"""

import logging
import socket
import ssl
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ProtocolError
from urllib3.exceptions import TimeoutError as LibraryTimeoutError

from idempotent_consumer.http.answer import Answer
from idempotent_consumer.http.connect import NotSent, connect
from idempotent_consumer.http.request import Request

MAX_BODY_BYTES = 256 * 1024
_MAX_CONNECT_SECONDS = 5.0
# It logs the paths it requests, queries included.
logging.getLogger("urllib3").setLevel(logging.ERROR)


class AnswerLost(Exception):
    """The request may have been sent, and no status came back. detail: names kinds of errors, and quotes nothing."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def exchange(request: Request, timeout_seconds: float, tls: ssl.SSLContext) -> Answer:
    """Send the request, once, and read its answer; a redirect is an answer as any other.

    timeout_seconds: for all of it. To connect may take half of that, at most 5 s, so that time is left for an answer.

    Raises NotSent, and AnswerLost (`answer-timeout`, `connection-lost`, `answer-unreadable`).
    """
    call = _Call(timeout_seconds)
    pool = _pool(request, tls, call)
    try:
        response = _send(pool, request, call)
        if response is None:
            return Answer(call.status or 0)
        headers = {name.lower(): response.headers[name] for name in response.headers}
        return Answer(response.status, headers, _body(response, call))
    finally:
        call.end()
        pool.close()


class _Call:
    """How far one call has come. At its deadline it closes the connection, whatever trickles in.

    status: of the last status line that was read, also where nothing that can be read followed it.
    """

    def __init__(self, seconds: float) -> None:
        now = time.monotonic()
        self.deadline = now + seconds
        self.connect_by = now + min(seconds / 2, _MAX_CONNECT_SECONDS)
        self.is_connected = False
        self.is_over = False
        self.status: int | None = None
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def begin(self, connected: socket.socket) -> None:
        """From here on the request may be sent."""
        seconds = max(self.deadline - time.monotonic(), 0.001)
        connected.settimeout(seconds)
        self._socket = connected
        timer = threading.Timer(seconds, self._stop)
        timer.daemon = True
        timer.start()
        self._timer = timer  # only one that runs can be joined
        self.is_connected = True

    def end(self) -> None:
        with self._lock:  # or the number of a closed socket could already be another's
            self._socket = None
        if self._timer:
            self._timer.cancel()
            self._timer.join()  # nothing may outlive the call

    def _stop(self) -> None:
        with self._lock:
            if self._socket is not None:
                self.is_over = True
                # Not the TLS socket's own, which would leave its reader with bytes that were never decrypted.
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Response(HTTPResponse):
    """Tells its status as soon as its line has been read; reading the headers may still fail."""

    def __init__(self, call: _Call, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._call = call

    def begin(self) -> None:
        try:
            super().begin()
            while 102 <= self.status < 200:  # such as early hints: the answer itself follows
                self.headers = None  # type: ignore[assignment]
                super().begin()
        finally:
            if isinstance(self.version, int):  # set after the status, for a version of HTTP that is understood
                self._call.status = self.status


class _Plain(HTTPConnection):
    """A connection that tells its call how far it has come."""

    def __init__(self, *args: Any, call: _Call, **options: Any) -> None:
        super().__init__(*args, **options)
        self._call = call
        self.response_class = partial(_Response, call)  # type: ignore[assignment]

    def connect(self) -> None:
        self.sock = connect(self.host, self.port, self._call.connect_by)
        self._call.begin(self.sock)


class _Encrypted(HTTPSConnection):
    """The same by TLS, which urllib3's releases wrap around an address in different ways."""

    def __init__(self, *args: Any, call: _Call, tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(*args, **options)
        self._call = call
        self._tls = tls
        self.response_class = partial(_Response, call)  # type: ignore[assignment]

    def connect(self) -> None:
        plain = connect(self.host, self.port, self._call.connect_by)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except Exception as error:
            plain.close()
            raise _not_encrypted(error) from None
        self.is_verified = True  # by the context, or the handshake would have failed
        self._call.begin(self.sock)


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


def _pool(request: Request, tls: ssl.SSLContext, call: _Call) -> HTTPConnectionPool:
    host, port = request.url.host, request.url.port
    if request.url.scheme == "http":
        return _PlainPool(host, port, call=call)
    return _EncryptedPool(host, port, call=call, tls=tls)


def _send(pool: HTTPConnectionPool, request: Request, call: _Call) -> urllib3.HTTPResponse | None:
    """None where no more than the status could be read."""
    try:
        return pool.urlopen(  # type: ignore[return-value]
            request.method,
            request.url.target,
            body=request.body,
            headers=dict(request.headers),
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=urllib3.Timeout(total=max(call.deadline - time.monotonic(), 0.001)),
            preload_content=False,
            decode_content=False,
            enforce_content_length=True,
        )
    except NotSent:
        raise
    except Exception as error:
        if call.status is not None:
            return None
        if not call.is_connected:
            raise NotSent("not-connected", type(error).__name__) from None
        raise _lost(error, call) from None


def _body(response: urllib3.HTTPResponse, call: _Call) -> bytes | None:
    """None where it is too large or did not arrive whole: the status has decided, whatever becomes of the body."""
    body = b""
    try:
        while chunk := response.read(MAX_BODY_BYTES + 1 - len(body), decode_content=False):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
    except Exception:
        return None
    finally:
        response.close()
    return None if call.is_over else body


def _not_encrypted(error: Exception) -> NotSent:
    if isinstance(error, TimeoutError):
        return NotSent("connect-timeout", "the TLS handshake took too long")
    what = getattr(error, "verify_message", "") or getattr(error, "reason", "") or type(error).__name__
    return NotSent("tls-failed", f"{type(error).__name__}: {what}")


def _lost(error: Exception, call: _Call) -> AnswerLost:
    cause = error.args[1] if isinstance(error, ProtocolError) and len(error.args) > 1 else error
    if call.is_over or isinstance(cause, TimeoutError | LibraryTimeoutError):
        return AnswerLost("answer-timeout", "the connection was made, and no status came back in time")
    # A connection closed without an answer counts as both.
    if isinstance(cause, HTTPException) and not isinstance(cause, OSError):
        return AnswerLost("answer-unreadable", type(cause).__name__)
    return AnswerLost("connection-lost", type(cause).__name__)
