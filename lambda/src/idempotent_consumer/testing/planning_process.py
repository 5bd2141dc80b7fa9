"""What runs in the other process: imports the plan at one time, plans at another, and writes down what came out."""

import importlib
import importlib.util
import json
import pickle
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.testing.description import Description, describe
from idempotent_consumer.testing.surroundings import SOME_DAY, chance_from, clock_at, offline


@dataclass(frozen=True, slots=True)
class Job:
    """imported_at: the time while the plan's module is imported. step: -1 to plan the last event first, else 1."""

    module: str
    name: str
    file: str
    events: list[Event]
    imported_at: str
    step: int


def run(job: Job) -> list[Description]:
    """The description of each event's plan."""
    with clock_at(job.imported_at):
        plan = _load(job)
    with offline(), clock_at(SOME_DAY):
        return [_plan(plan, event) for event in job.events[:: job.step]][:: job.step]


def _load(job: Job) -> Any:
    try:
        found: Any = importlib.import_module(job.module)
    except ImportError:  # pytest imports test files under names that nobody else can
        spec = importlib.util.spec_from_file_location(job.module, job.file)
        if spec is None or spec.loader is None:
            raise
        found = sys.modules[job.module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    for part in job.name.split("."):
        found = getattr(found, part)
    return found


def _plan(plan: Any, event: Event) -> Description:
    try:
        with chance_from(1):
            planned = plan(event)
    except Rejected as rejected:
        planned = rejected
    except Exception as error:
        return {"raises": f"{type(error).__name__}({str(error)!r})"}
    return describe(planned) if isinstance(planned, Plan | Rejected) else {"returns": type(planned).__name__}


def main(source: BinaryIO, target: Any) -> None:
    """Read a job, write the descriptions as JSON."""
    target.write(json.dumps(run(pickle.load(source))))


if __name__ == "__main__":
    answer, sys.stdout = sys.stdout, sys.stderr  # what the user's module prints is no part of it
    main(sys.stdin.buffer, answer)
