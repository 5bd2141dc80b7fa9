"""The same plan in processes of its own: with another order of sets and of events, and imported at another time."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Planner
from idempotent_consumer.testing import planning_process
from idempotent_consumer.testing.description import Description, differences, is_other_order, shown
from idempotent_consumer.testing.problem import Finding, listed
from idempotent_consumer.testing.surroundings import ANOTHER_DAY, SOME_DAY

_SECONDS = 60
_NAMES = ("in one process", "in another")
# Headline, cause and advice.
KEPT = (
    "{} depends on what was planned before",
    "a variable of the module or an object that lives from one call to the next, such as a counter, a cache or a list; "
    "or a source of chance or time of another library's",
    "make all that a plan needs from its event; count in the table, by Update(…, add={…})",
)
_PROCESS = (
    "{} differs from process to process",
    "a value made where the module is imported, such as an id, a time or the number of the process",
    "make all that a plan needs from its event",
)
_SET = (
    "{} depends on the order of a set",
    "a loop over a set of texts, whose order is another in each process; or hash()",
    "sorted(…), or dict.fromkeys(…) where each thing is to come once",
)

Events = Sequence[tuple[str, Event]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where another process finds the plan."""

    module: str
    name: str
    file: str


def in_other_processes(plan: Planner, events: Events) -> list[str]:
    """What could not be tried. Raises Finding where processes plan differently."""
    place = find(plan)
    if place is None:
        return ["the order of sets: the plan is no function of a module, so no other process can import it"]
    if not events:
        return []
    # Started together; further ones tell which of the three things changed is the cause.
    processes = [_start(place, events, *how) for how in (("1", SOME_DAY, 1), ("2", ANOTHER_DAY, -1))]
    one, other = (_answer(process) for process in processes)
    if isinstance(one, str) or isinstance(other, str):
        reason = one if isinstance(one, str) else other
        return [f"the order of sets: another process cannot run the plan ({reason})"]
    if one != other:
        cause = _SET
        if _answer(_start(place, events, "1", SOME_DAY, -1)) != one:
            cause = KEPT
        if _answer(_start(place, events, "1", ANOTHER_DAY, 1)) != one:
            cause = _PROCESS
        raise _differing(events, one, other, cause)
    return []


def find(plan: Planner) -> Place | None:
    """None for a function that another process cannot import: one made inside a function, or by a call."""
    module_name, name = getattr(plan, "__module__", None), getattr(plan, "__qualname__", None)
    module = sys.modules.get(module_name or "")
    if module is None or name is None or module_name == "__main__":
        return None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    file = getattr(module, "__file__", None)
    return Place(str(module_name), name, file) if found is plan and file else None


def _start(place: Place, events: Events, seed: str, day: str, step: int) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(str(Path(entry or ".").resolve()) for entry in sys.path)
    job = planning_process.Job(place.module, place.name, place.file, [event for _, event in events], day, step)
    with tempfile.TemporaryFile() as question:
        question.write(pickle.dumps(job))
        question.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", planning_process.__name__],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            stdin=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def _answer(process: "subprocess.Popen[bytes]") -> list[Description] | str:
    """The plan of each event, or why there is none."""
    try:
        output, errors = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"it did not end within {_SECONDS} seconds"
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with {process.returncode}"
    answer: list[Description] = json.loads(output)
    return answer


def _differing(
    events: Events, one: list[Description], other: list[Description], cause: tuple[str, str, str]
) -> Finding:
    differing = [index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    first, second = one[differing[0]], other[differing[0]]
    headline, likely, instead = cause
    what = f"the plan is not pure: what it plans for {listed(events[index][0] for index in differing)}"
    is_order = cause is _SET and is_other_order(first, second)
    return Finding(
        headline.format(what) + (": the parts are the same, their order is not" if is_order else ""),
        shown(differences(first, second), _NAMES),
        likely=likely,
        instead=instead,
    )
