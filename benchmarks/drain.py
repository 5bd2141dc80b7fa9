"""Messages drained per second on the emulator, both zips through the same mapping.

drain/main.tf makes the module twice, in one apply. A full queue waits behind a disabled mapping; the clock runs from
the first message that leaves it until none is left or in work. Both functions print a line a call: the emulator waits
50 ms for one that prints none.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.events import body
from benchmarks.sides import WORK, CannotMeasure, Side
from local.emulator import Emulator
from local.screen import ticking
from local.terraform import Root
from local.traffic import BATCH
from local.waiting import wait_for
from local.watching import Queue, Tables

SOURCE = "benchmarks/drain"
PATIENCE_SECONDS = 120
# The emulator starts a process for each of the function's concurrent calls; two rounds warm them all.
WARM_UP_ROUNDS = 2


@dataclass
class Pipeline:
    """One of the two pipelines, as its outputs name it. sent: the messages sent so far, each a new event."""

    name: str
    emulator: Emulator
    outputs: dict[str, Any]
    sent: int = 0

    def __post_init__(self) -> None:
        self._queue = Queue(self.emulator, self.outputs["queue_url"])
        self._functions = self.emulator.client("lambda")
        answer = self._functions.list_event_source_mappings(FunctionName=self.outputs["function_name"])
        self._mapping = answer["EventSourceMappings"][0]["UUID"]

    def messages_per_second(self, messages: int) -> float:
        """Fill the queue, let it drain, and check that each event has its rows."""
        for start in range(0, messages, BATCH):
            bodies = [body(self.sent + start + index, self.name) for index in range(BATCH)]
            if self._queue.send_batch(bodies) != BATCH:
                raise CannotMeasure(f"the queue of {self.name} refused messages")
        self.sent += messages
        self._enable(True)
        try:
            wait_for(lambda: self._queue.depth().waiting < messages, f"{self.name} begins", interval=0.005)
            began = time.perf_counter()
            wait_for(
                lambda: self._queue.depth().is_empty, f"{self.name} drains", seconds=PATIENCE_SECONDS, interval=0.01
            )
            seconds = time.perf_counter() - began
        finally:
            self._enable(False)
        self._check()
        return messages / seconds

    def _enable(self, enabled: bool) -> None:
        self._functions.update_event_source_mapping(UUID=self._mapping, Enabled=enabled)

    def _check(self) -> None:
        for table in (self.outputs["business_table_name"], self.outputs["ledger_table_name"]):
            rows = len(Tables(self.emulator).rows(table))
            if rows != self.sent:
                raise CannotMeasure(f"{self.sent} events were sent to {self.name}, {table} holds {rows} rows")


@contextmanager
def pipelines(peer: Side, show: Callable[[int, int], None]) -> Iterator[dict[str, Pipeline]]:
    """Both pipelines on an emulator, which ends with the block. show: hears of the resources done and planned."""
    folder = WORK / "terraform"
    try:
        with Emulator(WORK / "emulator.log") as emulator:
            variables = {"peer_handler": peer.handler, "peer_package": str(peer.zip)}
            root = Root(SOURCE, folder, emulator.endpoint, variables=variables)
            root.init()
            progress = [0, 0]

            def follow(done: int, planned: int) -> None:
                progress[:] = done, planned

            with ticking(lambda: show(*progress)):  # an apply is silent for half a minute
                root.apply(follow)
            outputs = root.output()
            yield {name: Pipeline(name, emulator, outputs[name]) for name in ("ours", "peer")}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
