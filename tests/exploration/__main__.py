"""`make explore`: plays all scopes, side by side, and says what came of it."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from local.processes import interrupt_on_signals
from local.screen import Screen
from tests.exploration.scheduling import deterministic
from tests.exploration.scopes import BOUND, SCOPES
from tests.exploration.search import (
    Choices,
    Explored,
    Played,
    Scope,
    count_of,
    draw,
    explore,
    parts_of,
    replay,
    significant,
)

REPORT = Path(__file__).parents[2] / "build" / "explore.json"
# Of those drawn by chance: what one process draws at a time.
PART = 2_500


class Task(NamedTuple):
    """A part of a scope: all that begins with one choice, or so many schedules that a seed draws."""

    scope: str
    part: int
    schedules: int | None = None


@dataclass
class Total:
    """What came of all parts of a scope."""

    scope: Scope
    schedules: set[int] = field(default_factory=set)
    states: set[int] = field(default_factory=set)
    failure: Played | None = None

    def add(self, explored: Explored) -> None:
        self.schedules |= explored.schedules
        self.states |= explored.states
        self.failure = self.failure or explored.failure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.exploration", description=__doc__)
    parser.add_argument("--scope", metavar="NAME", help="this scope alone, in quotes: --scope 'thrice, deaths'")
    parser.add_argument("--replay", metavar="CHOICES", help="one schedule of the scope, such as 0,8,1")
    parser.add_argument("--seed", type=int, default=1, help="of the schedules that are drawn by chance")
    parser.add_argument("--list", action="store_true", help="the names of the scopes")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{scope.name:36} {scope.about}" for scope in SCOPES))
        return 0
    scopes = [scope for scope in SCOPES if arguments.scope in (None, scope.name)]
    if not scopes:
        names = {scope.name.casefold(): scope.name for scope in SCOPES}
        close = get_close_matches(arguments.scope.casefold(), names, n=1, cutoff=0.5)
        hint = f", such as {names[close[0]]!r}" if close else ""
        parser.error(f"--scope is {arguments.scope!r}, and there is none of that name: --list names them{hint}")
    if arguments.replay is not None:
        if arguments.scope is None:
            parser.error("--replay needs --scope")
        return _replay(scopes[0], _choices(parser, arguments.replay))
    interrupt_on_signals()
    REPORT.unlink(missing_ok=True)
    try:
        return _explore(scopes, arguments.seed)
    except KeyboardInterrupt:
        print("\nStopped. Nothing was judged.", file=sys.stderr)
        return 130


def _choices(parser: argparse.ArgumentParser, text: str) -> Choices:
    choices = [choice.strip() for choice in text.split(",") if choice.strip()]
    if not all(choice.isdecimal() for choice in choices):
        parser.error(f"--replay is {text!r}, not numbers with commas between them")
    return significant(tuple(map(int, choices)))


def _replay(scope: Scope, choices: Choices) -> int:
    with deterministic():
        played = replay(scope, choices)
    if played.choices != choices:
        print(
            f"{scope.name} has no such schedule. Has the code changed since? Explore the scope again.", file=sys.stderr
        )
        return 2
    print("\n".join(f"  {number:3}  {step}" for number, step in enumerate(played.steps, 1)))
    print(f"Violated: {played.error}" if played.error else "Nothing is violated.")
    return 1 if played.error else 0


def _explore(scopes: Sequence[Scope], seed: int) -> int:
    started = time.monotonic()
    with deterministic():
        tasks = [task for scope in scopes for task in _tasks(scope, seed)]
    totals = {scope.name: Total(scope) for scope in scopes}
    context = multiprocessing.get_context("fork")  # so that all hash texts alike
    with Screen() as screen, context.Pool(os.cpu_count(), _leave_interrupts) as pool:
        step = screen.step(f"Exploring {count_of(len(scopes), 'scope')} in {count_of(len(tasks), 'part')}", len(tasks))
        schedules = 0
        for done, (name, explored) in enumerate(pool.imap_unordered(_run, tasks), 1):
            if explored.failure and not totals[name].failure:
                _tell_failure(screen, explored.failure)
            totals[name].add(explored)
            schedules += len(explored.schedules)
            step.update(done, note=f"{schedules:,} schedules")
        step.finish(f"{schedules:,} schedules")
        return _tell(screen, list(totals.values()), time.monotonic() - started)


def _leave_interrupts() -> None:
    """In a process of the pool: the first process ends it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _tasks(scope: Scope, seed: int) -> list[Task]:
    if scope.schedules is None:
        return [Task(scope.name, part) for part in range(parts_of(scope))]
    parts = -(-scope.schedules // PART)
    return [Task(scope.name, seed * 1_000 + part, scope.schedules // parts) for part in range(parts)]


def _run(task: Task) -> tuple[str, Explored]:
    (scope,) = (scope for scope in SCOPES if scope.name == task.scope)
    with deterministic():
        if task.schedules is None:
            return task.scope, explore(scope, task.part)
        return task.scope, draw(scope, task.part, task.schedules)


def _tell(screen: Screen, totals: Sequence[Total], seconds: float) -> int:
    failures = [total.failure for total in totals if total.failure]
    report = {
        "schedules": sum(len(total.schedules) for total in totals),
        "distinct_states": sum(len(total.states) for total in totals),
        "violations": len(failures),
        "seconds": round(seconds),
        "bound": BOUND if len(totals) == len(SCOPES) else totals[0].scope.bound,
        "all_scopes": len(totals) == len(SCOPES),
        "scopes": [
            {
                "name": total.scope.name,
                "about": total.scope.about,
                "bound": total.scope.bound,
                "schedules": len(total.schedules),
                "distinct_states": len(total.states),
            }
            for total in totals
        ],
        "failures": [asdict(failure) for failure in failures],
    }
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    table = Table("scope", "bound", "schedules", "states", title="What was explored")
    for total in totals:
        bound = "stopped at a violation" if total.failure else total.scope.bound
        table.add_row(total.scope.name, bound, f"{len(total.schedules):,}", f"{len(total.states):,}")
    table.add_row("all", "", f"{report['schedules']:,}", f"{report['distinct_states']:,}", style="bold")
    screen.console.print(table)
    if failures:
        screen.say(f"[bold red]Violated in {count_of(len(failures), 'scope')}:[/] see above.")
    else:
        screen.say("[bold green]No violation.[/]")
    screen.say(f"[dim]Figures: {REPORT.relative_to(REPORT.parents[1])}[/]")
    return 1 if failures else 0


def _tell_failure(screen: Screen, failure: Played) -> None:
    screen.say(f"[red]Violated[/] in {failure.scope}: {escape(failure.error)}")
    for number, step in enumerate(failure.steps, 1):
        screen.say(f"  {number:3}  {step}")
    screen.say(f"Again: {failure.command}")


if __name__ == "__main__":
    sys.exit(main())
