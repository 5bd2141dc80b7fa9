"""`make bench`: measures both sides, writes the report, and says whether each bound holds."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import plot, report
from benchmarks.parts import FULL, PARTS, QUICK, Bench
from benchmarks.sides import (
    OUR_ZIP,
    PEER_REQUIREMENTS,
    CannotMeasure,
    Runtime,
    find_runtime,
    observed_peer_side,
    our_side,
    peer_side,
    pinned,
    ships_bytecode,
    unpacked,
)
from benchmarks.verdict import Judgement, exit_code, judge
from local.processes import ServerError, interrupt_on_signals
from local.screen import Screen
from local.terraform import CHECKOUT, TerraformError
from local.waiting import NotInTime

BUILD = CHECKOUT / "build"
PUBLISHED_PLOT = CHECKOUT / "docs" / "benchmark.svg"
PUBLISHED_TABLES = CHECKOUT / "README.md"


def main(arguments: Sequence[str]) -> int:
    """0: all bounds hold. 1: one is missed. 2: something could not be measured."""
    options = parse(arguments)
    interrupt_on_signals()
    try:
        return run(options)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    except (CannotMeasure, NotInTime, ServerError, TerraformError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 2


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", metavar="PART", help=f"one of {', '.join(PARTS)}")
    parser.add_argument(
        "--quick", action="store_true", help="fewer turns: for a look, too noisy to judge by, so it ends with 0"
    )
    parser.add_argument("--publish", action="store_true", help="also write the tables and the plot of README.md")
    options = parser.parse_args(arguments)
    if options.publish and (options.only or options.quick):
        parser.error("--publish takes a whole run: leave out --only and --quick")
    return options


def run(options: argparse.Namespace) -> int:
    """Measure the chosen parts, one after the other; only a whole run is written down."""
    began = time.monotonic()
    names = [name for name in PARTS if not options.only or name in options.only]
    with Screen() as screen, ExitStack() as folders:
        step = screen.step("Preparing both sides", 1)
        runtime = find_runtime()
        sides = [folders.enter_context(unpacked(side)) for side in (our_side(), peer_side(), observed_peer_side())]
        step.finish(_describe(runtime))
        ours, peer, observed = sides
        bench = Bench(runtime, ours, peer, observed, QUICK if options.quick else FULL, screen)
        results = measure(bench, names)
    results |= {"seconds": round(time.monotonic() - began)}
    judgements = judge(results, ships_bytecode=ships_bytecode(OUR_ZIP))
    if not options.only:
        write(results, [BUILD / "bench.svg", *([PUBLISHED_PLOT] if options.publish else [])])
        if options.publish:
            PUBLISHED_TABLES.write_text(report.published(PUBLISHED_TABLES.read_text(), results))
    show(results, judgements, screen)
    if not options.only:
        screen.say("[dim]Figures: build/bench.json, build/bench.md, build/bench.svg[/]")
    return 0 if options.quick else exit_code(judgements)


def measure(bench: Bench, names: Sequence[str]) -> dict[str, Any]:
    """What bench.json holds: the keys, the machine, and the details by part."""
    keys: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for name in names:
        result = PARTS[name](bench)
        keys |= result.keys
        details[name] = result.details
    machine = {
        "date": date.today().isoformat(),
        "python": bench.runtime.version,
        "cpus": os.cpu_count(),
        "load_1_minute": round(os.getloadavg()[0], 2),
        "boto3": pinned("boto3"),
        "botocore": pinned("botocore"),
        "peer_version": pinned("aws-lambda-powertools", PEER_REQUIREMENTS),
        "emulator": f"ministack {version('ministack')}",
    }
    return {**keys, "machine": machine, "details": details}


def write(results: Mapping[str, Any], plots: Sequence[Path]) -> None:
    """bench.json, the README's tables and its plot."""
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps(results, indent=2) + "\n")
    (BUILD / "bench.md").write_text(report.markdown(results))
    details = results["details"]
    throughput = {
        side: {int(size): float(found["records_per_second"]) for size, found in details["batch"][side].items()}
        for side in ("ours", "peer")
    }
    picture = plot.svg(plot.costs(details), throughput, f"Powertools {results['machine']['peer_version']}")
    for path in plots:
        path.write_text(picture)


def show(results: Mapping[str, Any], judgements: Sequence[Judgement], screen: Screen) -> None:
    """The comparison and the verdict."""
    table = Table(title="Beside Powertools", title_justify="left")
    for title, side in (("", "left"), ("this module", "right"), ("Powertools", "right"), ("", "right")):
        table.add_column(title, justify="right" if side == "right" else "left")
    for row in report.comparison(results):
        table.add_row(row.what, row.ours, row.peer, row.times)
    for cells in report.by_batch_size(results["details"]):
        size, ours, peer, our_memory, peer_memory = cells
        table.add_row(f"batches of {size}: records per CPU second", ours, peer)
        table.add_row(f"batches of {size}: peak memory", our_memory, peer_memory)
    verdicts = Table(title="Bounds", title_justify="left")
    for title in ("key", "value", "bound", ""):
        verdicts.add_column(title, justify="right" if title in ("value", "bound") else "left")
    for judgement in judgements:
        bound = judgement.bound
        mark = "[green]✓[/]" if judgement.holds else "[bold red]missed[/]"
        verdicts.add_row(
            bound.key, f"{judgement.value:,}", f"{bound.relation} {bound.value:,}", f"{mark} {bound.meaning}"
        )
    screen.console.print()
    screen.console.print(table)
    screen.console.print(verdicts)
    missed = [judgement.bound.key for judgement in judgements if not judgement.holds]
    if missed:
        screen.say(f"[bold red]Missed: {', '.join(missed)}.[/]")
    else:
        screen.say("[bold green]Each bound holds.[/]")


def _describe(runtime: Runtime) -> str:
    note = "" if runtime.is_default else " (no 3.13 here, so the zip's bytecode does not count)"
    return f"Python {runtime.version}{note}, boto3 {pinned('boto3')}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
