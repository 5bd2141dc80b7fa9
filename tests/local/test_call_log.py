"""What the emulator notes of each call of a function, and what is read from it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local.call_log import Call, Handed, Logged, calls_in, read_calls, record_calls

EVENT = {
    "Records": [
        {
            "messageId": "m-1",
            "body": '{"id": "a"}',
            "attributes": {"SentTimestamp": "1500", "ApproximateReceiveCount": "2"},
            "eventSource": "aws:sqs",
        }
    ]
}
LOG = "\n".join(
    [
        "START RequestId: 1",
        '{"level": "INFO", "message": "Found credentials in environment variables."}',
        '{"message": "event rejected: bad-json", "message_id": "m-1", "event_id": null, "outcome": "rejected",'
        ' "reason": "bad-json"}',
        '{"_aws": {"Timestamp": 1}, "Consumer": "orders", "Applied": 0, "Resumed": 3, "ReceiveCount": [1, 2]}',
        "[1]",
    ]
)


def service(answer: dict[str, Any]) -> Any:
    return SimpleNamespace(_execute_function=lambda function, event: answer)


def test_a_call_is_noted_with_its_messages_and_its_log(tmp_path: Path) -> None:
    path, answer = tmp_path / "calls.jsonl", {"body": {"batchItemFailures": []}, "log": LOG}
    emulator = service(answer)
    record_calls(emulator, path)
    assert emulator._execute_function({}, EVENT) is answer
    (call,) = calls_in(path)
    assert call.records == (Handed("m-1", '{"id": "a"}', 1500, 2),)
    assert call.logged == {"m-1": Logged("rejected", "bad-json")}
    assert call.counts == {"Applied": 0, "Resumed": 3}
    assert (call.error, call.is_killed) == ("", False)
    assert call.began_ms <= call.ended_ms


def test_a_killed_call_is_told_from_one_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    messages = {
        "Worker process died": True,
        "Worker process exited immediately. stderr: ": True,
        "Worker process exited immediately. stderr: ImportError: no module": False,
        "Task timed out after 15.00 seconds": False,
    }
    for message in messages:
        emulator = service({"error": True, "body": {"errorType": "Runtime.ExitError", "errorMessage": message}})
        record_calls(emulator, path)
        emulator._execute_function({}, EVENT)
    assert {call.error: call.is_killed for call in calls_in(path)} == messages


def test_a_call_within_the_call_is_not_noted_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    emulator = SimpleNamespace()
    depths: list[int] = []

    def execute(function: Any, event: Any) -> dict[str, Any]:
        depths.append(len(depths))
        return emulator._execute_function(function, event) if len(depths) == 1 else {}

    emulator._execute_function = execute
    record_calls(emulator, path)
    emulator._execute_function({}, EVENT)
    assert (len(depths), len(calls_in(path))) == (2, 1)


def test_a_call_without_messages_of_a_queue_is_not_noted(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    emulator = service({})
    record_calls(emulator, path)
    for event in ({"source": "aws.scheduler"}, {"Records": [{"eventSource": "aws:s3"}]}, "text"):
        emulator._execute_function({}, event)
    assert calls_in(path) == []


def test_calls_are_read_in_the_order_of_their_beginning() -> None:
    lines = [
        json.dumps({"began_ms": began, "ended_ms": ended, "records": [], "error": "", "log": ""})
        for began, ended in ((5, 9), (1, 20), (5, 7))
    ]
    assert read_calls(lines) == [Call(1, 20, ()), Call(5, 7, ()), Call(5, 9, ())]
