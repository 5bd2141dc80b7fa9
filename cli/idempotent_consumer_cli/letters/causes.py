"""Why SQS moved letters: what the function's log says of their messages.

A letter that the consumer sent says why itself. One that was received too often does not, but each failure stands in
the function's log.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.calls import CALL_ERRORS, MISCONFIGURATIONS, error_code

# Words that the lines in question have, as the search takes them.
_VERDICTS = "event"
_TIMEOUTS = '"Task timed out"'
# One page searches or returns about a megabyte.
MOST_PAGES = 100
_FIRST_SLICE_MS = 3_600_000
_AFTERWARDS_MS = 60_000

_FAILURES = ("retry", "rejected", "conflict", "blocked", "failed", "parked")
_PLAIN = re.compile(rf"\bevent ({'|'.join(_FAILURES)}): ([a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class Cause:
    reason: str
    detail: str = ""


@dataclass(slots=True)
class Causes:
    """by_message: the newest cause by message id. anonymous: causes of lines without a message id, with their number.

    timeouts: how often the function was stopped for its timeout. is_partial: the log is longer than what was read.
    problem: why it could not be read.
    """

    by_message: dict[str, Cause] = field(default_factory=dict)
    anonymous: Counter[str] = field(default_factory=Counter)
    timeouts: int = 0
    is_partial: bool = False
    problem: str = ""


def read_causes(
    logs: Any,
    log_group: str,
    message_ids: Collection[str],
    from_ms: int,
    until_ms: int,
    follow: Callable[[int], None] = lambda found: None,
) -> Causes:
    """The causes for these messages from the log of that time, epoch milliseconds.

    logs: a boto3 client. follow: hears how many are found. The search goes from the newest part to the oldest, and ends
    once each message has a cause, or after 100 pages.
    """
    causes = Causes()
    search = _Search(logs, log_group)
    wanted = set(message_ids)
    try:
        for start_ms, end_ms in _slices(from_ms, until_ms + _AFTERWARDS_MS):
            found: dict[str, Cause] = {}
            for line in search.lines(_VERDICTS, start_ms, end_ms):
                message_id, cause = read_line(line)
                if cause is not None and message_id in wanted:
                    found[message_id] = cause
                    follow(len(causes.by_message) + len(found))
                elif cause is not None and message_id is None:
                    causes.anonymous[cause.reason] += 1
            causes.by_message |= found
            wanted -= found.keys()
            if not wanted:
                return causes
        causes.timeouts = sum(1 for _ in search.lines(_TIMEOUTS, from_ms, until_ms + _AFTERWARDS_MS))
    except CALL_ERRORS as error:
        causes.problem = _explain(error, log_group)
    causes.is_partial = search.is_exhausted
    return causes


def read_line(line: str) -> tuple[str | None, Cause | None]:
    """The message that a line of the log is about, and the failure that it tells, where it does.

    Lambda writes the function's lines as JSON; as text, they lack the message's id.
    """
    try:
        fields = json.loads(line) if line.startswith("{") else None
    except ValueError:
        fields = None
    if not isinstance(fields, Mapping):
        match = _PLAIN.search(line)
        return None, Cause(match[2]) if match else None
    message_id, reason = fields.get("message_id"), fields.get("reason")
    if fields.get("outcome") not in _FAILURES or not isinstance(message_id, str) or not isinstance(reason, str):
        return None, None
    return message_id, Cause(reason, str(fields.get("detail") or ""))


class _Search:
    """A bounded number of pages of one log group."""

    def __init__(self, logs: Any, log_group: str) -> None:
        self._logs = logs
        self._log_group = log_group
        self._pages = MOST_PAGES
        self.is_exhausted = False

    def lines(self, pattern: str, from_ms: int, until_ms: int) -> Iterator[str]:
        request = {
            "logGroupName": self._log_group,
            "filterPattern": pattern,
            "startTime": from_ms,
            "endTime": until_ms,
        }
        while True:
            if not self._pages:
                self.is_exhausted = True
                return
            self._pages -= 1
            answer = self._logs.filter_log_events(**request)
            for event in answer.get("events", ()):
                yield event["message"]
            if not answer.get("nextToken"):
                return
            request["nextToken"] = answer["nextToken"]


def _slices(from_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """The time in parts, the newest first, each four times as long as the one before."""
    length, end = _FIRST_SLICE_MS, until_ms
    while end > from_ms:
        start = max(from_ms, end - length)
        yield start, end
        # Both ends of a search count.
        length, end = 4 * length, start - 1


def _explain(error: Exception, log_group: str) -> str:
    code = error_code(error)
    if code.startswith("ResourceNotFound"):
        return f"there is no log group {log_group}"
    if code in MISCONFIGURATIONS:
        return f"the log cannot be read ({code}): you need logs:FilterLogEvents on {log_group}"
    return f"the log group {log_group} could not be read ({code}): run it again later"
