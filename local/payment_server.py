"""A payment provider on a free loopback port, whose faults are planned and whose charges outlive it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from local.processes import LAUNCHERS, Server, clean_environment, get, post, start_on_free_port

Rule = Mapping[str, Any]


class PaymentServer:
    """A running `local.launch_payment_server`; use it as a context manager. Without a plan all goes well.

    Its ledger lies in a temporary folder that goes with it.
    """

    def __init__(self, log: Path) -> None:
        self.log = log

    def __enter__(self) -> PaymentServer:
        self._state = Path(tempfile.mkdtemp(prefix="payments-"))
        try:
            self._server, self._port = start_on_free_port(self._start, _health)
        except BaseException:
            shutil.rmtree(self._state, ignore_errors=True)
            raise
        self.endpoint = f"http://127.0.0.1:{self._port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        shutil.rmtree(self._state, ignore_errors=True)

    @property
    def pid(self) -> int:
        return self._server.pid

    def plan(self, *rules: Rule, honours_keys: bool = True, concurrent: str = "wait") -> None:
        """Replace the plan by these rules, of which the first that fits an order decides; see `local.payment_plan`."""
        plan = {"rules": rules, "honours_keys": honours_keys, "concurrent": concurrent}
        post(f"{self.endpoint}/_plan", json.dumps(plan).encode())

    def charges(self, order: str | None = None) -> list[dict[str, Any]]:
        """The charges that were made, oldest first, of one order or all: id, order, amount, key, at_ms.

        Asking like this is no request that a plan counts.
        """
        charges = json.loads(get(f"{self.endpoint}/_charges"))["charges"]
        return [charge for charge in charges if order in (None, charge["order"])]

    def charged(self) -> Counter[str]:
        """How often each order was charged."""
        return Counter(charge["order"] for charge in self.charges())

    def requests(self, order: str | None = None) -> list[dict[str, Any]]:
        """What was asked, oldest first: at_ms, method, path, order, key, headers, body, outcome ("begun" at first)."""
        requests = json.loads(get(f"{self.endpoint}/_requests"))["requests"]
        return [request for request in requests if order in (None, request["order"])]

    def outcomes(self, order: str) -> list[str]:
        """What became of the charges that were asked for an order."""
        return [request["outcome"] for request in self.requests(order) if request["method"] == "POST"]

    def kill(self) -> None:
        """End it as a crash would; `start_again` brings it back at the same address with the same ledger."""
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.stop()

    def start_again(self) -> None:
        self._server = self._start(self._port)
        self._server.wait_until_healthy(_health(self._port))

    def _start(self, port: int) -> Server:
        arguments = ["--port", str(port), "--ledger", str(self._state / "ledger.sqlite")]
        # The launcher is isolated from what lies around it; it needs the modules beside it.
        environment = clean_environment({"PYTHONPATH": str(LAUNCHERS.parent), "PYTHONDONTWRITEBYTECODE": "1"})
        return Server("launch_payment_server.py", arguments, environment, self.log, keep=False)


def _health(port: int) -> str:
    return f"http://127.0.0.1:{port}/_health"
