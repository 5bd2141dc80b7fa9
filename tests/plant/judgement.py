"""What a run of tests says of the fault that was planted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.plant.fault import Fault
from tests.plant.trial import Run

_TESTS_FAILED = 1
# Code that does not even run says nothing of the tests.
_BROKEN = {"ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError"}
_LAST_LINES = 15


@dataclass(frozen=True)
class Judgement:
    """why: why the fault is not caught; empty where it is."""

    fault: Fault
    why: str = ""
    seconds: float = 0.0

    @property
    def is_caught(self) -> bool:
        return not self.why


def why_not_caught(fault: Fault, run: Run) -> str:
    """Empty where each of the fault's tests failed at something that it found."""
    if problem := _problem(run):
        return problem
    if run.code == 0:
        return "survives: all of its tests pass"
    if run.code != _TESTS_FAILED:
        return f"its tests did not run: pytest ended with {run.code}\n{_tail(run.output)}"
    broken = sorted({error for error in run.failed.values() if error in _BROKEN or ": " in error})
    if broken:
        return f"breaks the code or a fixture instead of a test: {', '.join(broken)}"
    unmoved = [test for test in fault.tests if not cases(test, run.failed)]
    return f"survives {', '.join(unmoved)}" if unmoved else ""


def why_no_ground(tests: Sequence[str], run: Run) -> str:
    """What is wrong with the code as it is; empty where each of the tests passes."""
    if problem := _problem(run):
        return problem
    if run.code != 0:
        return f"pytest ended with {run.code}\n{_tail(run.output)}"
    missing = [test for test in tests if not cases(test, run.passed)]
    return f"did not run: {', '.join(missing)}" if missing else ""


def cases(test: str, ids: Mapping[str, str] | Sequence[str]) -> list[str]:
    """Of these ids those of a test: its own or, where it names no parameters, with any."""
    return [each for each in ids if each == test or each.startswith(f"{test}[")]


def _problem(run: Run) -> str:
    if run.code is None:
        return "its tests did not end"
    if run.strangers:
        return f"its tests imported other code than the copy's, such as {run.strangers[0]}"
    return ""


def _tail(output: str) -> str:
    return "\n".join(output.strip().splitlines()[-_LAST_LINES:])
