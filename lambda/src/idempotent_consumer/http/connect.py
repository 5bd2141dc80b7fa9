"""A connection to a host, made until a given moment.

urllib3 would bound neither the look-up of a name nor all of a host's addresses together.
"""

import socket
import threading
import time


class NotSent(Exception):
    """Nothing was sent, for certain. detail: names kinds of errors, and quotes nothing."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def connect(host: str, port: int, until: float) -> socket.socket:
    """Connect to the first of the host's addresses that answers. until: on the monotonic clock, in seconds.

    What is left of the time is the socket's timeout. Raises NotSent: `name-not-resolved`, `not-connected`,
    `connect-timeout`.
    """
    addresses = _resolve(host, port, until)
    failure = NotSent("name-not-resolved", f"{host} has no address")
    for index, address in enumerate(addresses):
        share = (until - time.monotonic()) / (len(addresses) - index)
        if share <= 0:
            raise _timeout(host, port)
        try:
            connected = _connect_one(address, share)
            connected.settimeout(max(until - time.monotonic(), 0.001))
            return connected
        except TimeoutError:
            failure = _timeout(host, port)
        except OSError as error:
            failure = NotSent("not-connected", f"{host}:{port}: {type(error).__name__}, errno {error.errno}")
    raise failure


_Address = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def _resolve(host: str, port: int, until: float) -> list[_Address]:
    """In a thread, since nothing else bounds the system's look-up; one that is late ends unheard."""
    found: list[_Address] = []
    failures: list[str] = []

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failures.append(f"{type(error).__name__}, errno {getattr(error, 'errno', None)}")

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(max(until - time.monotonic(), 0.001))
    if failures:
        raise NotSent("name-not-resolved", f"{host}: {failures[0]}")
    if thread.is_alive():
        raise NotSent("name-not-resolved", f"{host}: no answer in time")
    return list(found)


def _connect_one(address: _Address, seconds: float) -> socket.socket:
    family, kind, protocol, _, place = address
    connected = socket.socket(family, kind, protocol)
    try:
        connected.settimeout(seconds)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.connect(place)
    except BaseException:
        connected.close()
        raise
    return connected


def _timeout(host: str, port: int) -> NotSent:
    return NotSent("connect-timeout", f"{host}:{port}")
