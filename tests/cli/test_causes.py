"""What the function's log says of the letters that SQS moved."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from idempotent_consumer_cli.letters import causes
from idempotent_consumer_cli.letters.causes import Cause, Causes, read_causes, read_line
from tests.cli.support import client_error

GROUP = "/aws/lambda/orders-worker"
NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000


def line(message_id: str, reason: str, outcome: str = "retry", detail: str = "PublishBatch: InternalError") -> str:
    """As Lambda writes a verdict in its JSON format."""
    return json.dumps(
        {
            "timestamp": "2030-01-02T03:04:06Z",
            "level": "WARNING",
            "message": f"event {outcome}: {reason}",
            "logger": "idempotent_consumer",
            "requestId": "8f1ee1c0-0000-4000-8000-000000000000",
            "message_id": message_id,
            "event_id": "e-1",
            "outcome": outcome,
            "reason": reason,
            "detail": detail,
        }
    )


class Logs:
    """The log group in process."""

    def __init__(self) -> None:
        self.client = boto3.client("logs")
        self.client.create_log_group(logGroupName=GROUP)
        self.client.create_log_stream(logGroupName=GROUP, logStreamName="s")
        self.requests: list[dict[str, Any]] = []

    def write(self, *lines: str, age_ms: int = 1000) -> None:
        events = [{"timestamp": NOW_MS - age_ms + index, "message": text} for index, text in enumerate(lines)]
        self.client.put_log_events(logGroupName=GROUP, logStreamName="s", logEvents=events)

    def filter_log_events(self, **request: Any) -> Any:
        self.requests.append(dict(request))
        return self.client.filter_log_events(**request)

    def read(self, *message_ids: str, since_ms: int = NOW_MS - 100 * HOUR_MS) -> Causes:
        return read_causes(self, GROUP, message_ids, since_ms, NOW_MS)


@pytest.fixture
def logs() -> Iterator[Logs]:
    with mock_aws():
        yield Logs()


def test_the_newest_line_of_a_message_is_its_cause(logs: Logs) -> None:
    logs.write(line("m-1", "throttled"), line("m-2", "out-of-time", detail=""), line("m-1", "unavailable"))
    assert logs.read("m-1", "m-2").by_message == {
        "m-1": Cause("unavailable", "PublishBatch: InternalError"),
        "m-2": Cause("out-of-time", ""),
    }


def test_lines_of_other_messages_and_of_success_say_nothing(logs: Logs) -> None:
    logs.write(line("m-9", "throttled"), line("m-1", "ledger-row-expired", "duplicate"))
    found = logs.read("m-1")
    assert (found.by_message, found.anonymous) == ({}, {})


def test_the_log_is_searched_from_its_end_and_no_further_than_needed(logs: Logs) -> None:
    logs.write(line("m-1", "throttled"), age_ms=3 * HOUR_MS)
    logs.write(line("m-1", "unavailable"), age_ms=2 * HOUR_MS)
    assert logs.read("m-1").by_message["m-1"].reason == "unavailable"
    spans = [(request["endTime"] - request["startTime"]) / HOUR_MS for request in logs.requests]
    assert spans == [1, 4]
    assert logs.requests[1]["endTime"] == logs.requests[0]["startTime"] - 1


def test_the_search_goes_back_to_when_the_first_letter_was_sent(logs: Logs) -> None:
    logs.read("m-1", since_ms=NOW_MS - 2 * HOUR_MS)
    verdicts = [request for request in logs.requests if request["filterPattern"] == "event"]
    assert min(request["startTime"] for request in verdicts) == NOW_MS - 2 * HOUR_MS
    assert max(request["endTime"] for request in verdicts) == NOW_MS + 60_000


def test_the_pages_of_an_answer_are_followed(logs: Logs) -> None:
    pages = [
        {"events": [{"message": line("m-1", "throttled")}], "nextToken": "t"},
        {"events": []},
        {"events": [{"message": line("m-2", "fault")}]},
    ]

    class Paged:
        def filter_log_events(self, **request: Any) -> Any:
            assert request.get("nextToken") == ("t" if len(pages) == 2 else None)
            return pages.pop(0)

    found = read_causes(Paged(), GROUP, ["m-1", "m-2"], NOW_MS - 5 * HOUR_MS, NOW_MS)
    assert {message_id: cause.reason for message_id, cause in found.by_message.items()} == {
        "m-1": "throttled",
        "m-2": "fault",
    }


def test_a_log_without_end_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "MOST_PAGES", 3)

    class Endless:
        calls = 0

        def filter_log_events(self, **request: Any) -> Any:
            self.calls += 1
            return {"events": [], "nextToken": "more"}

    logs = Endless()
    found = read_causes(logs, GROUP, ["m-1"], NOW_MS - HOUR_MS, NOW_MS)
    assert (logs.calls, found.is_partial) == (3, True)


def test_a_log_that_was_read_whole_is_not_partial(logs: Logs) -> None:
    assert not logs.read("m-1").is_partial


def test_lines_of_the_text_format_name_no_message(logs: Logs) -> None:
    logs.write("[WARNING]\t2030-01-02T03:04:06Z\t8f1e\tevent retry: misconfigured", "event retry: misconfigured")
    logs.write("event rejected: bad-json", "event duplicate: ledger-row-expired", "START RequestId: 8f1e event")
    assert logs.read("m-1").anonymous == {"misconfigured": 2, "bad-json": 1}


@pytest.mark.case("O01")
def test_timeouts_are_counted_where_a_message_has_no_line(logs: Logs) -> None:
    logs.write("2030-01-02T03:04:06Z 8f1e Task timed out after 30.00 seconds")
    assert logs.read("m-1").timeouts == 1
    logs.write(line("m-1", "throttled"))
    assert logs.read("m-1").timeouts == 0


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("ResourceNotFoundException", f"there is no log group {GROUP}"),
        (
            "AccessDeniedException",
            f"the log cannot be read (AccessDeniedException): you need logs:FilterLogEvents on {GROUP}",
        ),
        ("ThrottlingException", f"the log group {GROUP} could not be read (ThrottlingException): run it again later"),
    ],
)
def test_a_log_that_cannot_be_read_is_no_error(code: str, problem: str) -> None:
    class Refusing:
        def filter_log_events(self, **request: Any) -> Any:
            raise client_error(code, "FilterLogEvents")

    found = read_causes(Refusing(), GROUP, ["m-1"], NOW_MS - HOUR_MS, NOW_MS)
    assert (found.by_message, found.problem) == ({}, problem)


@pytest.mark.parametrize("outcome", ["retry", "rejected", "conflict", "blocked", "failed", "parked"])
def test_each_outcome_that_is_no_success_is_a_cause(outcome: str) -> None:
    assert read_line(line("m-1", "why", outcome)) == ("m-1", Cause("why", "PublishBatch: InternalError"))
    assert read_line(f"[WARNING] event {outcome}: why") == (None, Cause("why"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[1]",
        '{"message_id": 5, "outcome": "retry", "reason": "x"}',
        '{"message_id": "m", "outcome": "retry", "reason": null}',
        '{"message_id": "m", "outcome": ["retry"], "reason": "x"}',
        '{"_aws": {}, "Retries": 1, "message": "event"}',
        '{"message_id": "m", "error": "KeyError", "where": "a.py:1"}',
    ],
)
def test_a_line_that_tells_no_failure_is_passed_over(text: str) -> None:
    assert read_line(text) == (None, None)
