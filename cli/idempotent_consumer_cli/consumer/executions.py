"""A workflow's executions, as Step Functions tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.calls import CALL_ERRORS, MISCONFIGURATIONS, error_code

_RUNNING = ("RUNNING", "PENDING_REDRIVE")
_FAILED = ("FAILED", "TIMED_OUT", "ABORTED")
# Of one that Step Functions does not know any more, so that it does not run.
_GONE = "GONE"
# What the errors of the state machine's own failures begin with; then comes the reason.
_OWN_ERROR = "IdempotentConsumer."
# A page lists a thousand.
MOST_PAGES = 5
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Activity:
    """Executions in sum.

    running: how many run. oldest_ms: when the oldest of them began, epoch milliseconds; None where none runs, or it was
    not looked at. failed: by Step Functions' word for it, how many ended so in the last day. is_cut: there are more
    than could be looked at.
    """

    running: int
    oldest_ms: int | None
    failed: Mapping[str, int] = field(default_factory=dict)
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Execution:
    """status: in Step Functions' words, `GONE` for one that it keeps no more; empty where it cannot be read. `problem`
    says why, of both. reason: for which the state machine has failed it, as its letter has it.
    """

    status: str
    problem: str = ""
    reason: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it may still run the effect, as far as that is known."""
        return self.status in _RUNNING


class Executions:
    """step_functions: a boto3 client."""

    def __init__(self, step_functions: Any) -> None:
        self._step_functions = step_functions
        self._ended: dict[str, Execution] = {}

    def read(self, arn: str) -> Execution:
        """The execution that owns a claim. Raises nothing: who cannot see it can still see the claim."""
        if arn in self._ended:
            return self._ended[arn]
        if ":execution:" not in arn:
            return Execution("", "its owner is no execution")
        try:
            execution = _execution(self._step_functions.describe_execution(executionArn=arn))
        except CALL_ERRORS as error:
            if error_code(error) != "ExecutionDoesNotExist":
                return Execution("", _problem(error_code(error)))
            execution = Execution(_GONE, "its execution is gone: Step Functions keeps one for 90 days")
        if not execution.is_running:
            self._ended[arn] = execution
        return execution


def read_activity(step_functions: Any, state_machine_arn: str, now_ms: int) -> Activity:
    """At most 5,000 executions of each state, the newest first. Raises what a call to Step Functions raises."""
    running = _List(step_functions, state_machine_arn, "RUNNING")
    begun_ms = [_ms(execution["startDate"]) for page in running.pages() for execution in page]
    failed, is_cut = {}, running.is_cut
    for status in _FAILED:
        ended = _List(step_functions, state_machine_arn, status)
        failed[status] = sum(_count_recent(page, now_ms) for page in ended.pages(since_ms=now_ms - _DAY_MS))
        is_cut |= ended.is_cut
    oldest_ms = None if running.is_cut else min(begun_ms, default=None)
    return Activity(len(begun_ms), oldest_ms, failed, is_cut)


class _List:
    """Executions in one state, the newest first; is_cut: there are more than were listed."""

    def __init__(self, step_functions: Any, state_machine_arn: str, status: str) -> None:
        self._step_functions = step_functions
        self._request: dict[str, Any] = {"stateMachineArn": state_machine_arn, "statusFilter": status}
        self.is_cut = False

    def pages(self, since_ms: int = 0) -> Iterator[list[dict[str, Any]]]:
        """Ends after the page with the first one that began before `since_ms`."""
        for _ in range(MOST_PAGES):
            answer = self._step_functions.list_executions(**self._request, maxResults=1000)
            yield answer["executions"]
            if "nextToken" not in answer or any(_ms(each["startDate"]) < since_ms for each in answer["executions"]):
                return
            self._request["nextToken"] = answer["nextToken"]
        self.is_cut = True


def _count_recent(executions: list[dict[str, Any]], now_ms: int) -> int:
    return sum("stopDate" in each and _ms(each["stopDate"]) >= now_ms - _DAY_MS for each in executions)


def _ms(moment: Any) -> int:
    return int(moment.timestamp() * 1000)


def _execution(described: Mapping[str, Any]) -> Execution:
    error = described.get("error") or ""
    return Execution(described["status"], reason=error.removeprefix(_OWN_ERROR) if error.startswith(_OWN_ERROR) else "")


def _problem(code: str) -> str:
    if code in MISCONFIGURATIONS:
        return f"its execution cannot be read ({code}): you need states:DescribeExecution"
    return f"its execution cannot be read ({code})"
