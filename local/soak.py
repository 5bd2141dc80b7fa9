"""`make soak`: ten thousand events through a pipeline on an emulator while all around it fails.

Calls are throttled, slow, reset or done without an answer, the function's processes are killed, and the topic is down
for a while. Then the faults end, the operators' command line puts right what is left, and each event is looked for.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from local.consumer import Consumer
from local.emulator import Emulator
from local.faults import Faults
from local.processes import ServerError, interrupt_on_signals
from local.screen import Screen, ticking
from local.soak_faults import Kind
from local.soak_run import Plan, Result, soak
from local.terraform import CHECKOUT, Root, TerraformError

RESULT = CHECKOUT / "build" / "soak.json"
WORK = CHECKOUT / "build" / "soak"
# Its pipeline `outage` gives a message up after three receives, so that the command line has something to replay.
ROOT = "tests/fixtures/e2e"
PIPELINE = "outage"
FEWEST_EVENTS = 100
EVENTS_FOR_EACH_KILL = 100
OUTAGE_SECONDS = 20.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000, help="how many, 100 at least (default: 10,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the messages and of the points to kill at (default: 1)")
    options = parser.parse_args(arguments)
    if options.events < FEWEST_EVENTS:
        parser.error(f"--events is {options.events}, but must be {FEWEST_EVENTS} at least")
    interrupt_on_signals()
    try:
        return run(options.events, options.seed)
    except KeyboardInterrupt:
        print("\nStopped. Nothing was left behind.", file=sys.stderr)
        return 130
    except (TerraformError, ServerError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def run(events: int, seed: int) -> int:
    """Run the soak; 0 when nothing was lost or doubled, and all that was to happen has happened."""
    began = time.monotonic()
    plan = Plan(events, seed, kills=max(4, events // EVENTS_FOR_EACH_KILL), outage_seconds=OUTAGE_SECONDS)
    RESULT.unlink(missing_ok=True)
    with (
        Screen() as screen,
        _work(),
        Emulator(WORK / "emulator.log") as emulator,
        Faults(emulator.endpoint, WORK / "faults.log") as faults,
    ):
        consumer = _apply(emulator, faults, screen)
        result = _soak(consumer, faults, plan, screen)
    seconds = round(time.monotonic() - began, 1)
    figures = {"events": events, "seed": seed, "seconds": seconds, **result.as_dict()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(figures, indent=2) + "\n")
    _show(figures, screen)
    return 0 if figures["verdict"] == "passed" else 1


def _apply(emulator: Emulator, faults: Faults, screen: Screen) -> Consumer:
    step = screen.step(f"terraform apply {ROOT}", 0)
    variables = {"function_environment": {"AWS_ENDPOINT_URL": faults.endpoint}}
    root = Root(ROOT, WORK / "terraform", emulator.endpoint, variables=variables)
    root.init()
    state = {"done": 0, "planned": 0}
    with ticking(lambda: step.update(state["done"], state["planned"], "the provider waits 25 s for each queue")):
        root.apply(lambda done, planned: state.update(done=done, planned=planned))
    step.finish(f"{state['done']} resources, on ministack with IAM enforced")
    outputs = root.output()["pipelines"][PIPELINE]
    return Consumer(emulator, outputs, outputs["subscriber_url"])


def _soak(consumer: Consumer, faults: Faults, plan: Plan, screen: Screen) -> Result:
    for table in (consumer.ledger, consumer.business):
        consumer.tables.record_changes(table)
    traffic = plan.traffic()
    screen.say(
        f"  {len(traffic.events):,} events, {traffic.duplicates:,} of them twice; {len(traffic.poison)} of poison, "
        f"{len(traffic.impostors)} ids used again; seed {plan.seed}"
    )
    step = screen.step("Sending and processing under faults", traffic.sent)
    result = soak(consumer, faults, plan, lambda done, note: step.update(done, note=note))
    step.finish("all is quiet")
    return result


def _show(figures: dict[str, Any], screen: Screen) -> None:
    table = Table(title="What became of the events", title_justify="left", show_header=False)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("number", justify="right")
    table.add_column("meaning", style="dim")
    faults = ", ".join(f"{figures['faults'][kind.value]:,} {kind.value.replace('_', ' ')}" for kind in Kind)
    for what, number, meaning in (
        (
            "events",
            figures["unique_events"],
            f"in {figures['sent']:,} messages, {figures['duplicates_sent']:,} duplicates",
        ),
        ("faults", sum(figures["faults"].values()), faults),
        ("killed", figures["killed_processes"], "processes"),
        ("redelivered", figures["redelivered"], "records that the function was given again"),
        ("replayed", figures["replayed"], "dead letters, by the command line"),
        ("reconciled", figures["reconciled"], "notifications, by the command line"),
        ("business rows", figures["business_rows"], "one per event"),
        ("ledger: sent", figures["ledger_sent"], "events settled"),
        ("notifications", figures["notifications_unique"], f"and {figures['published_duplicates']:,} copies"),
        ("dead-lettered", figures["dead_lettered_unique"], "by the producer's own fault, each with its reason"),
        ("lost", figures["lost"], "no row, no notification, or gone without trace"),
        ("doubled", figures["doubled"], "written twice or overwritten, by the change streams"),
        ("seconds", round(figures["seconds"]), "in all"),
    ):
        style = "red" if what in ("lost", "doubled") and number else ""
        table.add_row(what, f"{number:,}", meaning, style=style)
    screen.console.print()
    screen.console.print(table)
    if figures["verdict"] == "passed":
        screen.say("[bold green]Nothing lost, nothing doubled, each event published.[/]")
    else:
        screen.say(
            f"[bold red]Lost {figures['lost']}, doubled {figures['doubled']}, unexpected {figures['unexpected']}:[/]"
        )
        for problem in figures["problems"][:20]:
            screen.console.print(f"  {problem}", markup=False, highlight=False)
    screen.say(f"[dim]Figures: {RESULT.relative_to(CHECKOUT)}[/]" if RESULT.is_relative_to(CHECKOUT) else str(RESULT))


@contextmanager
def _work() -> Iterator[Path]:
    """The folder of this run, gone after it."""
    shutil.rmtree(WORK, ignore_errors=True)
    try:
        yield WORK
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
