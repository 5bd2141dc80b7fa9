"""Server processes that end with the program that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

LAUNCHERS = Path(__file__).parent
# Nothing of the user's own AWS, proxy or Python set-up may reach an emulator or the functions it runs.
_PRIVATE_PREFIXES = ("AWS_", "PYTHON", "COV_CORE_", "COVERAGE_", "LOCALSTACK_")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
# A proxy variable would send loopback calls away.
_NO_PROXY_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerError(RuntimeError):
    """A local server did not start; the message says where its log is."""


def interrupt_on_signals() -> None:
    """Whoever asks this program to end, with-blocks close and what it has started ends with it."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without the user's AWS, proxy and Python settings, plus `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_PRIVATE_PREFIXES) and name.lower() not in _PROXIES
    }
    return {**kept, **extra}


def free_port() -> int:
    """A loopback TCP port that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str, *, timeout: float = 2.0) -> bytes:
    """The body of a GET answered with 200."""
    with _NO_PROXY_OPENER.open(url, timeout=timeout) as answer:
        return bytes(answer.read())


def post(url: str, body: bytes, *, method: str = "POST", timeout: float = 5.0) -> bytes:
    """The body of the answer to a JSON request."""
    request = urllib.request.Request(url, data=body, method=method, headers={"content-type": "application/json"})
    with _NO_PROXY_OPENER.open(request, timeout=timeout) as answer:
        return bytes(answer.read())


class Server:
    """One of the launchers in this folder, as a process in a group of its own.

    The launcher ends when its standard input closes, so it goes with this process even when that is
    killed; `keep` leaves it running instead.
    """

    def __init__(
        self, launcher: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path, *, keep: bool
    ) -> None:
        self.log = log
        self.keep = keep
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-P", str(LAUNCHERS / launcher), *arguments]
        if not keep:
            command.append("--end-with-parent")
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if keep else subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C in the terminal reaches this program first, which then ends it
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Return once it has ended by itself."""
        self._process.wait()

    def wait_until_healthy(self, url: str, *, seconds: float = 30.0) -> None:
        """Return once `url` answers; raise `ServerError` if the process ends or the time passes first."""
        deadline = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None:
                raise ServerError(f"ended with status {self._process.returncode}:\n{self.log_tail()}")
            try:
                get(url)
                return
            except (urllib.error.URLError, OSError):
                if time.monotonic() > deadline:
                    raise ServerError(f"no answer from {url} in {seconds:g} s:\n{self.log_tail()}") from None
            time.sleep(0.05)

    def log_tail(self, lines: int = 20) -> str:
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"(the end of {self.log})", *text[-lines:]])

    def stop(self, *, grace_seconds: float = 5.0) -> None:
        """End the process and everything it started."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._signal_group(signal.SIGTERM)
        try:
            self._process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self._signal_group(signal.SIGKILL)
            self._process.wait()
        # The workers of an emulator that is gone have nobody left to end them.
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def start_on_free_port(start: Callable[[int], Server], health: Callable[[int], str]) -> tuple[Server, int]:
    """Start a server on a free port; again on another one if somebody else took the port meanwhile."""
    for attempt in range(3):
        port = free_port()
        server = start(port)
        try:
            server.wait_until_healthy(health(port))
            return server, port
        except ServerError:
            server.stop()
            if attempt == 2:
                raise
        except BaseException:
            server.stop()
            raise
    raise AssertionError("unreachable")
