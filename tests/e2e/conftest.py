"""One emulator, one apply, for all end-to-end tests."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.emulator import Emulator
from local.faults import Faults
from local.terraform import Root
from tests.e2e.pipeline import Pipeline


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What destroys the pipelines comes after all that uses them."""
    items.sort(key=lambda item: "destroyed" in getattr(item, "fixturenames", ()))


class Traces:
    """Listens where the X-Ray daemon would, and keeps what is sent there."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._received: list[tuple[float, dict[str, Any]]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def since(self, moment: float) -> list[dict[str, Any]]:
        """The segment documents that have come since this time.time()."""
        return [document for arrival, document in list(self._received) if arrival >= moment]

    def close(self) -> None:
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                packet = self._socket.recv(65_536)
            except OSError:
                return  # closed
            # A header line, then the document.
            self._received.append((time.time(), json.loads(packet.split(b"\n", 1)[1])))


@dataclass(frozen=True)
class Deployment:
    """The applied fixture. `changes`: what a plan right after the apply would still do."""

    root: Root
    pipelines: Mapping[str, Mapping[str, Any]]
    changes: Mapping[str, list[str]]


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def emulator(logs: Path) -> Iterator[Emulator]:
    with Emulator(logs / "emulator.log") as running:
        yield running


@pytest.fixture(scope="session")
def faults(emulator: Emulator, logs: Path) -> Iterator[Faults]:
    with Faults(emulator.endpoint, logs / "faults.log") as running:
        yield running


@pytest.fixture(scope="session")
def traces() -> Iterator[Traces]:
    listening = Traces()
    yield listening
    listening.close()


@pytest.fixture(scope="session")
def deployment(
    emulator: Emulator, faults: Faults, traces: Traces, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    """All pipelines, applied. All AWS calls of the functions go through `faults`."""
    environment = {"AWS_ENDPOINT_URL": faults.endpoint, "AWS_XRAY_DAEMON_ADDRESS": traces.address}
    root = Root(
        "tests/fixtures/e2e",
        tmp_path_factory.mktemp("terraform"),
        emulator.endpoint,
        variables={"function_environment": environment},
    )
    root.init()
    root.apply()
    return Deployment(root, root.output()["pipelines"], root.changes())


@pytest.fixture(scope="session")
def pipelines(deployment: Deployment, emulator: Emulator) -> dict[str, Pipeline]:
    """All pipelines, each of which has processed a message: no test waits for a cold start."""
    running = {name: Pipeline(emulator, outputs) for name, outputs in deployment.pipelines.items()}
    for pipeline in running.values():
        pipeline.record_changes()
        pipeline.send({"id": "warm-up"}, group="warm-up")
    for pipeline in running.values():
        pipeline.wait_until_sent("warm-up")
    return running


@pytest.fixture
def standard(pipelines: dict[str, Pipeline]) -> Pipeline:
    return pipelines["standard"]


@pytest.fixture
def outage(pipelines: dict[str, Pipeline]) -> Pipeline:
    return pipelines["outage"]


@pytest.fixture
def fifo(pipelines: dict[str, Pipeline]) -> Pipeline:
    return pipelines["fifo"]


@pytest.fixture
def new_id(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes event ids that no other test uses, and that tell whose they are."""
    test = re.sub(r"\W+", "-", request.node.name)[:60]
    return lambda: f"{test}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def event_id(new_id: Callable[[], str]) -> str:
    return new_id()


@pytest.fixture(scope="session")
def destroyed(deployment: Deployment, pipelines: dict[str, Pipeline]) -> Deployment:
    """The deployment after terraform destroy."""
    deployment.root.destroy()
    return deployment
