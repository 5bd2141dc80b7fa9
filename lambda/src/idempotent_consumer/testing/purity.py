"""Whether a plan depends on its event alone, found out by experiment: one thing is changed at a time."""

import copy
import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from idempotent_consumer.entry_point import handler_of
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.testing.description import Description, describe, describe_data, differences, shown
from idempotent_consumer.testing.events import Labelled
from idempotent_consumer.testing.other_process import KEPT, in_other_processes
from idempotent_consumer.testing.problem import Finding, listed
from idempotent_consumer.testing.surroundings import ANOTHER_DAY, SOME_DAY, Unreachable, chance_from, clock_at, offline

# One draw of two things comes out the same every second time.
_SEEDS = range(2, 12)


@dataclass(frozen=True, slots=True)
class Planned:
    """An event with what is planned for it, always."""

    label: str
    event: Event
    plan: Plan | Rejected


def check_purity(plan: Planner, labelled: Sequence[Labelled]) -> tuple[list[Planned], list[str]]:
    """What is planned for each event, and what could not be tried. Raises Finding."""
    if not callable(plan):
        raise Finding(f"the plan is a function from an Event to a Plan, not {type(plan).__name__}")
    if getattr(plan, "__qualname__", "").startswith(f"{handler_of.__qualname__}."):
        raise Finding("this is the handler that pipeline(plan) gives", instead="pass the plan itself")
    events = [(each.label, each.event) for each in labelled if isinstance(each.event, Event)]
    planning = _Planning(plan, events)
    with offline():
        with clock_at(SOME_DAY):
            first = planning.all(seed=1)
            known = {label: describe(what) for label, what in first.items()}
            _expect_same(known, planning.described(seed=1, backwards=True), ("at first", "again"), KEPT)
            for seed in _SEEDS:
                _expect_same(known, planning.described(seed=seed), ("at first", "again"), _CHANCE)
        with clock_at(ANOTHER_DAY):
            _expect_same(known, planning.described(seed=1), (f"at {SOME_DAY}", f"at {ANOTHER_DAY}"), _CLOCK)
    planned = [Planned(label, event, first[label]) for label, event in events]
    return planned, in_other_processes(plan, events)


# As KEPT.
_CHANCE = (
    "{} depends on chance",
    "random, uuid.uuid4() or secrets in the plan",
    "make ids from the event's own: uuid.uuid5(NAMESPACE, event.id)",
)
_CLOCK = (
    "{} depends on the clock",
    "datetime.now(), date.today() or time.time() in the plan",
    "take the time from the event, where its producer puts it; event_committed_at on the row says when it was written",
)


def _expect_same(
    known: dict[str, Description], other: dict[str, Description], names: tuple[str, str], cause: tuple[str, str, str]
) -> None:
    found = {label: differences(known[label], other[label]) for label in known}
    differing = [label for label, each in found.items() if each]
    if not differing:
        return
    headline, likely, instead = cause
    what = f"the plan is not pure: what it plans for {listed(differing)}"
    raise Finding(headline.format(what), shown(found[differing[0]], names), likely=likely, instead=instead)


@dataclass(frozen=True, slots=True)
class _Planning:
    plan: Planner
    events: Sequence[tuple[str, Event]]

    def described(self, *, seed: int, backwards: bool = False) -> dict[str, Description]:
        return {label: describe(what) for label, what in self.all(seed=seed, backwards=backwards).items()}

    def all(self, *, seed: int, backwards: bool = False) -> dict[str, Plan | Rejected]:
        events = reversed(self.events) if backwards else self.events
        return {label: _plan_one(self.plan, label, event, seed) for label, event in events}


def _plan_one(plan: Planner, label: str, event: Event, seed: int) -> Plan | Rejected:
    own = replace(event, data=copy.deepcopy(event.data))
    try:
        with chance_from(seed):
            planned: Any = plan(own)
    except Rejected as rejected:
        planned = rejected
    except Unreachable as unreachable:
        raise Finding(
            f"for {label} the plan {unreachable.does}",
            [unreachable.target],
            likely="a client of AWS, of a database or an HTTP service, or a command, in the plan",
            instead="what has to be looked up is a Check or a condition; what has to be done, a Notification",
        ) from None
    except (Exception, SystemExit) as error:
        raise _raised(label, error) from error
    changed = differences(describe_data(event.data), describe_data(own.data))
    if changed:
        raise Finding(
            f"the plan changes the event {label} that it is given",
            shown(changed, ("before", "after")),
            likely="pop(), update(), append(), sort() or an assignment on event.data",
            instead="work on a copy: {**event.data, …}, sorted(…), or copy.deepcopy(event.data)",
        )
    if inspect.iscoroutine(planned):
        planned.close()
        raise Finding("the plan is an async function", instead="def: a plan has nothing to wait for")
    if not isinstance(planned, Plan | Rejected):
        raise Finding(
            f"for {label} the plan returns {type(planned).__name__}, and no Plan",
            likely="a branch without return" if planned is None else "",
            instead="return Plan() where there is nothing to do",
        )
    return planned


def _raised(label: str, error: BaseException) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    if isinstance(error, InvalidPlan):
        return Finding(f"for {label} the plan makes no sense: {error}", [f"raised{where}"])
    return Finding(
        f"for {label} the plan raises {type(error).__name__}: {error}",
        [f"raised{where}"],
        likely="the event is not as the plan expects; it would be retried until it is dead-lettered",
        instead='raise Reject("why") for an event that can never succeed',
    )
