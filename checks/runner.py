"""Runs checks side by side and tells what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from checks.catalogue import Check

Say = Callable[[str], None]
# Most of the time is spent in other programs.
_AT_A_TIME = 2


@dataclass(frozen=True)
class Result:
    """What one check found; `failure` says why it could not be made."""

    check: Check
    seconds: float
    problems: tuple[str, ...] = ()
    failure: str | None = None

    def line(self) -> str:
        if self.failure is not None:
            verdict = "could not run"
        elif self.problems:
            verdict = counted(len(self.problems), "problem")
        else:
            verdict = "ok"
        return f"{self.check.name:<20} {self.seconds:6.1f} s  {verdict}"


def run(checks: Sequence[Check], say: Say) -> int:
    """Run them all; 0 if all is well, 1 with problems, 2 if one could not run."""
    say(f"{counted(len(checks), 'check')}, {_AT_A_TIME} at a time")
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        results = []
        try:
            for future in as_completed([pool.submit(_result, check) for check in checks]):
                results.append(future.result())
                say(results[-1].line())
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return _conclusion(sorted(results, key=lambda result: checks.index(result.check)), say)


def _result(check: Check) -> Result:
    started = time.monotonic()
    try:
        problems, failure = tuple(check.run()), None
    except Exception as error:  # a check that breaks must not hide what the others find
        problems, failure = (), str(error) or repr(error)
    return Result(check, time.monotonic() - started, problems, failure)


def _conclusion(results: Sequence[Result], say: Say) -> int:
    failed = [result for result in results if result.failure is not None]
    found = [result for result in results if result.problems]
    for result in found:
        say(f"\n{result.check.name}: {result.check.what}")
        for problem in result.problems:
            say(problem)
    for result in failed:
        say(f"\n{result.check.name} could not run: {result.failure}")
    say("")
    if failed:
        say(f"NOT DONE: {', '.join(result.check.name for result in failed)} could not run")
    if found:
        total = sum(len(result.problems) for result in found)
        say(f"NOT WELL: {counted(total, 'problem')} in {', '.join(result.check.name for result in found)}")
    if not failed and not found:
        say(f"ALL WELL: {counted(len(results), 'check')}")
    return 2 if failed else 1 if found else 0


def write(checks: Sequence[Check], say: Say) -> int:
    """Rewrite what these checks' parts of the repository are generated from."""
    written = sorted({path for check in checks if check.write for path in check.write()})
    for path in written:
        say(f"written: {path}")
    say(f"{counted(len(written), 'file')} rewritten" if written else "nothing to rewrite: all is as the code says")
    return 0


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
