"""Notes each call that the emulator makes of a function for a queue: what it handed over, and how the call ended.

The function logs what a person has to look into; that an event was applied, or was a duplicate, it only counts. What
was delivered, and what a killed process was at, only the poller knows.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What ministack says of a process that ended in a call, or while it started for one and without a word.
KILLED = ("Worker process died", "Worker process exited immediately. stderr:")


@dataclass(frozen=True)
class Handed:
    """A message in the hands of the function. sent_ms: epoch milliseconds. receive_count: 1 the first time."""

    message_id: str
    body: str
    sent_ms: int
    receive_count: int


@dataclass(frozen=True)
class Logged:
    """What the function's log says of one message."""

    outcome: str
    reason: str


@dataclass(frozen=True)
class Call:
    """One call of the function.

    began_ms, ended_ms: epoch milliseconds. error: why there was no answer, empty where there was one. logged: by
    message id. counts: the function's own, by metric.
    """

    began_ms: int
    ended_ms: int
    records: tuple[Handed, ...]
    error: str = ""
    logged: Mapping[str, Logged] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_killed(self) -> bool:
        return self.error.strip() in KILLED


def recording(path: Path) -> dict[str, str]:
    """What `local.launch_ministack` needs in its environment to record calls in this file."""
    return {"RECORD_CALLS_TO": str(path), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}


def calls_in(path: Path) -> list[Call]:
    """The calls that `record_calls` has written to this file, none where there is no file yet."""
    return read_calls(path.read_text(encoding="utf-8").splitlines()) if path.exists() else []


def read_calls(lines: Iterable[str]) -> list[Call]:
    """The calls of such lines, in the order of their beginning."""
    return sorted(map(_call, lines), key=lambda call: (call.began_ms, call.ended_ms))


def record_calls(lambda_service: Any, path: Path) -> None:
    """Make ministack's `services.lambda_svc` write a line for each call with records of a queue, once it has ended."""
    original: Callable[[Any, Any], Any] = lambda_service._execute_function
    writing = threading.Lock()
    running = threading.local()

    def execute(function: Any, event: Any) -> Any:
        records = _queue_records(event)
        # It calls itself where the function belongs to another account or Region than its caller.
        if not records or getattr(running, "is_inside", False):
            return original(function, event)
        running.is_inside = True
        began_ms = _now_ms()
        try:
            result = original(function, event)
        finally:
            running.is_inside = False
        line = {
            "began_ms": began_ms,
            "ended_ms": _now_ms(),
            "records": records,
            "error": _error(result),
            "log": str(result.get("log") or ""),
        }
        with writing, path.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(line) + "\n")
        return result

    lambda_service._execute_function = execute


def _queue_records(event: Any) -> list[dict[str, Any]]:
    records = event.get("Records", []) if isinstance(event, dict) else []
    return [
        {
            "message_id": record["messageId"],
            "body": record["body"],
            "sent_ms": int(record["attributes"]["SentTimestamp"]),
            "receive_count": int(record["attributes"]["ApproximateReceiveCount"]),
        }
        for record in records
        if record.get("eventSource") == "aws:sqs"
    ]


def _error(result: Mapping[str, Any]) -> str:
    if not result.get("error"):
        return ""
    body = result.get("body")
    said = body.get("errorMessage") or body.get("errorType") if isinstance(body, dict) else body
    return str(said or "failed")


def _call(line: str) -> Call:
    fields = json.loads(line)
    logged: dict[str, Logged] = {}
    counts: dict[str, int] = {}
    for said in filter(None, map(_object, fields["log"].splitlines())):
        if "_aws" in said:
            counts = {name: value for name, value in said.items() if type(value) is int}
        elif "outcome" in said and "message_id" in said:
            logged[said["message_id"]] = Logged(said["outcome"], said.get("reason", ""))
    return Call(
        began_ms=fields["began_ms"],
        ended_ms=fields["ended_ms"],
        records=tuple(Handed(**record) for record in fields["records"]),
        error=fields["error"],
        logged=logged,
        counts=counts,
    )


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
