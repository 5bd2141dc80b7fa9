"""`make plant`: plants each fault of tests/plant/patches in a copy of the checkout, and shows which test catches it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from local.processes import interrupt_on_signals
from local.screen import Screen, Step
from local.terraform import CHECKOUT
from tests.plant.fault import PATCHES, Fault, read_faults
from tests.plant.judgement import Judgement
from tests.plant.planting import Follow, garden

_INTERRUPTED = 130


def main(arguments: Sequence[str], checkout: Path = CHECKOUT, patches: Path = PATCHES) -> int:
    """0 where each fault is caught, 1 where one is not or the tests fail without any."""
    known = read_faults(patches)
    names = [fault.name for fault in known]
    parser = argparse.ArgumentParser(prog="python -m tests.plant", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help="plant this one; repeatable")
    only = parser.parse_args(arguments).only
    faults = [fault for fault in known if not only or fault.name in only]
    began = time.monotonic()
    with Screen() as screen, garden(checkout) as copies:
        step = screen.step("Running their tests on the code as it is", 0)
        problem = copies.check(faults, _follow(step))
        step.finish("they fail" if problem else "they pass")
        judgements = []
        if not problem:
            step = screen.step("Planting faults", len(faults))
            judgements = copies.plant(faults, _follow(step))
            step.finish(f"{sum(each.is_caught for each in judgements)} of {len(faults)} caught")
        seconds = time.monotonic() - began
        _write(checkout / "build" / "plant.json", faults, judgements, problem, seconds)
        return _show(screen, judgements, problem)


def _follow(step: Step) -> Follow:
    return lambda done, total, name: step.update(done, total, name)


def _write(path: Path, faults: Sequence[Fault], judgements: Sequence[Judgement], problem: str, seconds: float) -> None:
    results = [
        {
            "name": each.fault.name,
            "does": each.fault.does,
            "files": [change.path for change in each.fault.changes],
            "tests": list(each.fault.tests),
            "caught": each.is_caught,
            "why_not": each.why,
            "seconds": round(each.seconds, 1),
        }
        for each in judgements
    ]
    summary = {
        "faults": len(faults),
        "caught": sum(each.is_caught for each in judgements),
        "baseline": problem or "passes",
        "seconds": round(seconds, 1),
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**summary, "results": results}, indent=2) + "\n")


def _show(screen: Screen, judgements: Sequence[Judgement], problem: str) -> int:
    if problem:
        screen.say(escape(problem))
        screen.say("[bold red]The tests fail without any fault, so nothing was planted.[/]")
        return 1
    table = Table(title="Planted faults", title_justify="left")
    table.add_column("fault")
    table.add_column("caught by", overflow="fold")
    for each in judgements:
        caught = "\n".join(escape(test.rpartition("::")[2]) for test in each.fault.tests)
        table.add_row(each.fault.name, caught if each.is_caught else f"[bold red]{escape(each.why)}[/]")
    screen.console.print(table)
    missed = [each for each in judgements if not each.is_caught]
    for each in missed:
        screen.say(f"[bold red]{each.fault.name}[/]: {escape(each.fault.does)} {escape(each.why)}")
    if missed:
        screen.say(f"[bold red]Not caught: {len(missed)} of {len(judgements)}.[/]")
        return 1
    screen.say(f"[bold green]Caught: {len(judgements)} of {len(judgements)}.[/]")
    return 0


if __name__ == "__main__":
    interrupt_on_signals()
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. Nothing was judged, and the copies are gone.", file=sys.stderr)
        sys.exit(_INTERRUPTED)
