"""ministack on a free loopback port, with IAM enforced under AWS's action names."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import boto3
import psutil
from botocore.config import Config

from local.processes import Server, clean_environment, start_on_free_port

REGION = "us-east-1"
ACCOUNT = "000000000000"
_CLIENT_SETTINGS = Config(
    region_name=REGION,
    proxies={},  # loopback calls never take a proxy
    connect_timeout=2,
    read_timeout=30,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=20,
)


def client(service: str, endpoint: str) -> Any:
    """A boto3 client of `service` at `endpoint` with the emulator's root credentials."""
    return boto3.client(
        service,
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=_CLIENT_SETTINGS,
    )


class Emulator:
    """A running ministack; use it as a context manager.

    Its state lies in a temporary folder that goes with it. `keep` leaves it running after the program ends.
    `environment`: further settings of ministack, such as {"SFN_WAIT_SCALE": "0.01"} for short retries of workflows.
    """

    def __init__(self, log: Path, *, keep: bool = False, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.keep = keep
        self._environment = dict(environment or {})
        self._state: Path | None = None

    def __enter__(self) -> Emulator:
        self._state = Path(tempfile.mkdtemp(prefix="emulator-"))
        try:
            self._server, self.port = start_on_free_port(self._start, _health)
        except BaseException:
            shutil.rmtree(self._state, ignore_errors=True)
            self._state = None
            raise
        self.endpoint = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.keep:
            self.stop()

    @property
    def pid(self) -> int:
        return self._server.pid

    def wait(self) -> None:
        """Return once it has ended by itself."""
        self._server.wait()

    def stop(self) -> None:
        """End the emulator and its functions, and remove its state; nothing if it does not run."""
        if self._state is not None:
            self._server.stop()
            shutil.rmtree(self._state, ignore_errors=True)
            self._state = None

    def client(self, service: str) -> Any:
        """A boto3 client with the emulator's root credentials."""
        return client(service, self.endpoint)

    def workers(self, function: str) -> list[psutil.Process]:
        """The processes that run the Lambda function named `function`."""
        folder = re.compile(rf"ministack-lambda-{re.escape(function)}-[a-z0-9_]{{8}}(/|$)")
        found = []
        for process in psutil.Process(self.pid).children(recursive=True):
            try:
                if folder.search(process.cwd()):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue  # it ended while being looked at
        return found

    def kill_workers(self, function: str, most: int | None = None) -> int:
        """Kill the function's processes, or so many of them at the most, as a crash would; the number of them."""
        killed = 0
        for process in self.workers(function)[:most]:
            try:
                process.kill()
                killed += 1
            except psutil.NoSuchProcess:
                continue  # it ended by itself
        return killed

    def _start(self, port: int) -> Server:
        assert self._state is not None
        temporary = self._state / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environment = clean_environment(
            {
                "AUTH": "true",
                "BIND_HOST": "127.0.0.1",
                "GATEWAY_PORT": str(port),
                "MINISTACK_HOST": "127.0.0.1",
                "MINISTACK_REGION": REGION,
                "PERSIST_STATE": "0",
                "S3_DATA_DIR": str(self._state / "s3"),
                "STATE_DIR": str(self._state / "state"),
                "TMPDIR": str(temporary),
                # Nothing here runs in a container, and a Docker engine of the user's is left alone.
                "DOCKER_HOST": f"unix://{self._state}/no-docker.sock",
                # These listen on fixed ports, which two emulators would fight over.
                "IOT_MTLS_ENABLED": "0",
                "SFTP_ENABLED": "0",
                "PYTHONUNBUFFERED": "1",
            }
            | self._environment
        )
        for name in ("EDGE_PORT", "SERVICES", "USE_SSL"):
            environment.pop(name, None)
        return Server("launch_ministack.py", ["--state", str(self._state)], environment, self.log, keep=self.keep)


def _health(port: int) -> str:
    return f"http://127.0.0.1:{port}/_ministack/health"
