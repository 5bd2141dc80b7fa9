"""One measurement of one side, in a process of its own: `python -m benchmarks.worker '<job>'`, the result as JSON.

Runs under the side's environment, so it imports nothing but the standard library, botocore and the side's handler,
the one that `_HANDLER` names, as in Lambda. The handler's own lines go nowhere.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.events import invocation
from benchmarks.stub import Stub

Handler = Callable[[Any, Any], Any]
BATCH = 10
WARM_UP_BATCHES = 20
# Makes the event of 315 bytes one of 2 KB.
LARGE_BY = 1_700


class WrongAnswer(Exception):
    """The handler did not do what is measured."""


class Context:
    """The runtime's context object."""

    function_name = "orders-worker"
    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def __init__(self, remaining_ms: int) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


class Side:
    """The handler with its stub."""

    def __init__(self, keys: Mapping[str, str], *, remaining_ms: int = 30_000, **options: Any) -> None:
        self.stub = Stub(keys, **options)
        self.stub.attach()
        self._context = Context(remaining_ms)
        self._invocations = 0
        module, _, name = os.environ["_HANDLER"].rpartition(".")
        self._handler: Handler = getattr(importlib.import_module(module), name)

    def handle(self, event: dict[str, Any]) -> None:
        """One invocation, traced. Raises WrongAnswer where it reports a record."""
        self._invocations += 1
        trace = f"Root=1-5759e988-{self._invocations:024x};Parent=53995c3f42cd8ad8;Sampled=1"
        os.environ["_X_AMZN_TRACE_ID"] = trace
        answer = self._handler(event, self._context)
        if answer != {"batchItemFailures": []}:
            raise WrongAnswer(f"expected no failures, got {str(answer)[:300]}")

    def settle(self, event: dict[str, Any]) -> None:
        """From no rows at all, one invocation of new events."""
        self.stub.forget()
        self.handle(event)
        self.check(event)

    def check(self, event: dict[str, Any]) -> None:
        """Raises WrongAnswer unless each of these new events was written and published."""
        size = len(event["Records"])
        rows = [self.stub.rows_of(table) for table in self.stub.keys]
        if self.stub.remembers and (rows != [size, size] or self.stub.published != size):
            raise WrongAnswer(f"of {size} events {rows} rows are written and {self.stub.published} published")

    def warm_up(self) -> None:
        for _ in range(WARM_UP_BATCHES):
            self.settle(invocation(BATCH))
            self.handle(invocation(BATCH, receive_count=2))


def calls(keys: Mapping[str, str]) -> dict[str, Any]:
    """AWS calls by operation for ten records, and the rows that each call touched (for `units`)."""
    side = Side(keys, observes=True)
    result: dict[str, Any] = {}

    def note(name: str) -> None:
        result[name] = {"calls": side.stub.calls(), "accesses": [asdict(access) for access in side.stub.accesses]}
        side.stub.operations.clear()
        side.stub.accesses.clear()

    side.settle(invocation(BATCH))
    note("new")
    side.handle(invocation(BATCH, receive_count=2))
    note("redelivered")
    side.settle(invocation(BATCH, padding=LARGE_BY))
    note("large")
    for kind, receive_count in (("mixed", 2), ("resent", 1)):
        side.settle(invocation(BATCH // 2))
        side.stub.operations.clear()
        side.stub.accesses.clear()
        known = invocation(BATCH // 2, receive_count)["Records"]
        side.handle({"Records": [*known, *invocation(BATCH // 2, first=BATCH // 2)["Records"]]})
        note(kind)
    return result


def cpu(keys: Mapping[str, str], batches: int) -> dict[str, float]:
    """CPU seconds for a batch of ten, all threads, less the stub's own: of new events, and of redelivered ones."""
    side = Side(keys)
    side.warm_up()
    new, redelivered = invocation(BATCH), invocation(BATCH, receive_count=2)
    new_seconds = sum(_cpu_seconds_of_new(side, new) for _ in range(batches))
    redelivered_seconds = sum(_cpu_seconds(side, redelivered) for _ in range(batches))
    return {"new_seconds": new_seconds / batches, "redelivered_seconds": redelivered_seconds / batches}


def latency(keys: Mapping[str, str], batches: int, pause_seconds: float) -> dict[str, float]:
    """Wall seconds for a batch of ten new events where each call takes `pause_seconds`; the median of the batches."""
    side = Side(keys)
    side.warm_up()
    side.stub.pause_seconds = pause_seconds
    new, seconds = invocation(BATCH), []
    for _ in range(batches):
        started = time.perf_counter()
        side.settle(new)
        seconds.append(time.perf_counter() - started)
    return {"new_seconds": median(seconds)}


def batch(keys: Mapping[str, str], size: int, records: int) -> dict[str, float]:
    """New events in batches of `size`, `records` in all: CPU seconds for each, and the peak of the memory.

    The memory is counted from the idle process on, so it holds the batch itself, but no rows of the stub's.
    """
    side = Side(keys, remaining_ms=900_000, remembers=False)
    side.warm_up()
    idle = resident_bytes("VmRSS")
    seconds, done = 0.0, 0
    while done < records:
        event = invocation(size, first=done)
        seconds += _cpu_seconds_of_new(side, event)
        done += size
    return {"seconds_per_record": seconds / done, "peak_bytes": max(0, resident_bytes("VmHWM") - idle)}


JOBS: Mapping[str, Callable[..., dict[str, Any]]] = {"batch": batch, "calls": calls, "cpu": cpu, "latency": latency}


def resident_bytes(line: str) -> int:
    """The process's resident memory, now (VmRSS) or at its peak (VmHWM).

    getrusage's peak begins, after a fork and exec, at the parent's size; so it serves only where there is no /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = next(text for text in status.read_text().splitlines() if text.startswith(f"{line}:"))
        return int(found.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _cpu_seconds_of_new(side: Side, event: dict[str, Any]) -> float:
    side.stub.forget()
    seconds = _cpu_seconds(side, event)
    side.check(event)
    return seconds


def _cpu_seconds(side: Side, event: dict[str, Any]) -> float:
    side.stub.cpu_seconds = 0.0
    started = time.process_time()
    side.handle(event)
    return time.process_time() - started - side.stub.cpu_seconds


def main() -> None:
    job = json.loads(sys.argv[1])
    # A line is a write, as in Lambda.
    with Path(os.devnull).open("w", buffering=1) as nowhere, redirect_stdout(nowhere):
        result = JOBS[job.pop("job")](**job)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
