"""Plants faults one after the other, in as many copies of the checkout as the machine has hands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TypeVar

from tests.plant.fault import Fault, NotApplicable
from tests.plant.judgement import Judgement, why_no_ground, why_not_caught
from tests.plant.trial import Copy

COPIES = 2
# Each of these plans with Terraform, so they begin first.
_SLOW = "tests/plan/"
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

# Hears how many are done, of how many, and the last one.
Follow = Callable[[int, int, str], None]


class Garden:
    """Copies of a checkout to plant faults in."""

    def __init__(self, copies: Sequence[Copy]) -> None:
        self._copies = copies
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            self._free.put(copy)

    def check(self, faults: Sequence[Fault], follow: Follow) -> str:
        """Run all tests once on the code as it is. Returns what is wrong with them; empty where each passes."""
        tests = sorted({test for fault in faults for test in fault.tests}, key=lambda test: (not _is_slow(test), test))
        shares = [list(share) for _, share in groupby(tests, _place)]

        def run(copy: Copy, share: list[str]) -> str:
            return why_no_ground(share, copy.run(share))

        return "\n".join(why for _, why in self._all(run, shares, follow, lambda share: f"{len(share)} tests") if why)

    def plant(self, faults: Sequence[Fault], follow: Follow) -> list[Judgement]:
        """Plant each fault and run its tests; the judgements stand in the order of the faults."""
        slow_first = sorted(faults, key=lambda fault: not any(map(_is_slow, fault.tests)))
        found = {fault.name: judgement for fault, judgement in self._all(_try, slow_first, follow, _name)}
        return [found[fault.name] for fault in faults]

    def stop(self) -> None:
        """End what runs."""
        for copy in self._copies:
            copy.stop()

    def _all(
        self,
        call: Callable[[Copy, _Job], _Result],
        jobs: Sequence[_Job],
        follow: Follow,
        name: Callable[[_Job], str],
    ) -> list[tuple[_Job, _Result]]:
        def on_a_copy(job: _Job) -> _Result:
            copy = self._free.get()
            try:
                return call(copy, job)
            finally:
                self._free.put(copy)

        results: list[tuple[_Job, _Result]] = []
        threads = ThreadPoolExecutor(len(self._copies))
        try:
            begun = {threads.submit(on_a_copy, job): job for job in jobs}
            for done in as_completed(begun):
                results.append((begun[done], done.result()))
                follow(len(results), len(jobs), name(begun[done]))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            self.stop()
            raise
        finally:
            threads.shutdown()
        return results


@contextmanager
def garden(checkout: Path, copies: int = COPIES) -> Iterator[Garden]:
    """Copies of a checkout, which are gone after the block."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(TemporaryDirectory(prefix="plant-"))) for _ in range(copies)]
        yield Garden([Copy(checkout, folder) for folder in folders])


def _name(fault: Fault) -> str:
    return fault.name


def _try(copy: Copy, fault: Fault) -> Judgement:
    began = time.monotonic()
    try:
        with copy.planted(fault):
            why = why_not_caught(fault, copy.run(fault.tests))
    except NotApplicable as error:
        why = f"does not apply: {error}"
    return Judgement(fault, why, time.monotonic() - began)


def _is_slow(test: str) -> bool:
    return test.startswith(_SLOW)


def _place(test: str) -> str:
    """Tests of one place are run together: of one file, which share its plan, or of one folder."""
    file = test.partition("::")[0]
    return file if _is_slow(test) else file.rpartition("/")[0]
