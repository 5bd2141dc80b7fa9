"""microburst on a free loopback port: a proxy that makes AWS calls slow, fail or vanish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from local.processes import Server, clean_environment, get, post, start_on_free_port

Rule = Mapping[str, Any]


class Faults:
    """A running microburst in front of `upstream`; use it as a context manager. Without rules it only forwards."""

    def __init__(self, upstream: str, log: Path) -> None:
        self.upstream = upstream
        self.log = log

    def __enter__(self) -> Faults:
        self._server, port = start_on_free_port(self._start, _health)
        self.endpoint = f"http://127.0.0.1:{port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Replace the rules. The first that fires wins."""
        post(f"{self.endpoint}/_microburst/rules", json.dumps(list(rules)).encode())

    @contextmanager
    def rules(self, *rules: Rule) -> Iterator[None]:
        """These rules inside the block, none after it."""
        post(f"{self.endpoint}/_microburst/fired", b"", method="DELETE")
        self.set_rules(rules)
        try:
            yield
        finally:
            self.set_rules([])

    def fired(self, service: str) -> int:
        """How often a rule has fired on calls to `service` since the last `rules` block began."""
        return len(json.loads(get(f"{self.endpoint}/_microburst/fired?service={service}&limit=10000")))

    def fired_by_rule(self) -> list[int]:
        """How often each of the rules has fired since they were set, in their order."""
        return [rule["fired_count"] for rule in json.loads(get(f"{self.endpoint}/_microburst/rules"))]

    def _start(self, port: int) -> Server:
        arguments = ["--upstream", self.upstream, "--port", str(port), "--no-resign"]
        return Server("launch_microburst.py", arguments, clean_environment({}), self.log, keep=False)


def _health(port: int) -> str:
    return f"http://127.0.0.1:{port}/_microburst/health"
