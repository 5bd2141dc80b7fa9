"""`make demo`: over a thousand messages through examples/orders on an emulator, and what became of them."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from local.audit import Found, Report, Row, audit
from local.call_log import calls_in, recording
from local.consumer import Consumer, Sending, read
from local.demo.gather import Seen, meanings, record_of
from local.demo.page import render
from local.demo.record import figures
from local.emulator import Emulator
from local.playground import exports
from local.processes import ServerError, interrupt_on_signals
from local.screen import Screen, ticking
from local.terraform import CHECKOUT, Root, TerraformError
from local.traffic import Traffic, orders
from local.watching import Heard, heard, reported_outcomes

RESULT = CHECKOUT / "build" / "demo.json"
WORK = CHECKOUT / "build" / "demo"
EXAMPLE = "examples/orders"
REASONS = CHECKOUT / "docs" / "reasons.md"
# Short, so that what a killed process leaves unfinished comes back soon. A message that is still in work when it
# comes back is worked on twice at once, which is harmless here too, but not what the demo shows.
VARIABLES = {"deletion_protection": False, "function_timeout_seconds": 15, "visibility_timeout_seconds": 15}
# The function's processes are killed when these parts of the messages have left the queue.
KILL_AT = (0.1, 0.3, 0.5, 0.7)
DRAIN_SECONDS = 240
QUIET_SECONDS = 2.0


@dataclass
class Run:
    """What one run has seen so far. kills, commits: as in `Seen`."""

    heard: list[Heard] = field(default_factory=list)
    kills: list[tuple[int, int]] = field(default_factory=list)
    reported: Counter[str] = field(default_factory=Counter)
    commits: list[Row] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return sum(processes for _, processes in self.kills)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the emulator up to look around")
    keep = parser.parse_args(arguments).keep
    interrupt_on_signals()
    try:
        return demonstrate(keep)
    except KeyboardInterrupt:
        print("\nStopped. Nothing was left behind.", file=sys.stderr)
        return 130
    except (TerraformError, ServerError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def demonstrate(keep: bool) -> int:
    """Run the demo; 0 when nothing was lost or doubled."""
    began = time.monotonic()
    traffic = orders()
    shutil.rmtree(WORK, ignore_errors=True)
    RESULT.unlink(missing_ok=True)
    page, calls = RESULT.with_suffix(".html"), WORK / "calls.jsonl"
    page.unlink(missing_ok=True)
    emulator = Emulator(WORK / "emulator.log", keep=keep, environment=recording(calls))
    # Until it is told how to end it, nothing stays, even with `keep`.
    with _removed(WORK / "terraform", unless=keep), _stopped_on_error(emulator):
        with Screen() as screen:
            consumer = _apply(emulator, screen)
            run = _drive(consumer, traffic, screen)
            found = _read(consumer, run, screen)
        report = audit(traffic, found)
        seconds = time.monotonic() - began
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(_figures(report, run, seconds), indent=2) + "\n")
        seen = Seen(
            calls=calls_in(calls),
            kills=run.kills,
            heard=run.heard,
            found=found,
            commits=run.commits,
            meanings=meanings(REASONS.read_text(encoding="utf-8")),
        )
        page.write_text(render(record_of(traffic, seen, report, run.reported, seconds)), encoding="utf-8")
        _show(report, run, seconds, screen)
        if keep:
            _show_way_around(consumer, screen)
    return 0 if report.is_clean else 1


def _figures(report: Report, run: Run, seconds: float) -> dict[str, Any]:
    return report.as_dict() | {
        "killed_processes": run.killed,
        "reported_outcomes": {name: count for name, count in sorted(run.reported.items()) if count},
        "seconds": round(seconds, 1),
    }


def _apply(emulator: Emulator, screen: Screen) -> Consumer:
    step = screen.step("Starting the AWS emulator", 1)
    emulator.__enter__()
    step.finish(f"ministack at {emulator.endpoint}, IAM enforced")
    step = screen.step(f"terraform apply {EXAMPLE}", 0)
    root = Root(EXAMPLE, WORK / "terraform", emulator.endpoint, variables=VARIABLES)
    root.init()
    state = {"done": 0, "planned": 0}
    with ticking(lambda: step.update(state["done"], state["planned"], "the provider waits 25 s for each queue")):
        root.apply(lambda done, planned: state.update(done=done, planned=planned))
    step.finish(f"{state['done']} resources")
    outputs = root.output()
    return Consumer(emulator, outputs["orders"], outputs["subscriber_queue_url"])


def _drive(consumer: Consumer, traffic: Traffic, screen: Screen) -> Run:
    """Send everything, kill the function's processes while it works, and wait until all is quiet."""
    run = Run()
    for table in (consumer.ledger, consumer.business):
        consumer.tables.record_changes(table)
    screen.say(
        f"  {traffic.sent:,} messages, {traffic.duplicates / traffic.sent:.0%} of them duplicates; "
        f"meanwhile the function is killed {len(KILL_AT)} times, all its processes"
    )
    step = screen.step("Sending and processing", traffic.sent)
    early = traffic.sent - sum(map(len, traffic.late))
    sending = Sending(consumer.intake, traffic.batches)
    sending.start()
    kills = [int(part * early) for part in KILL_AT]
    _await_drained(consumer, run, sending, kills, step.update)
    late = Sending(consumer.intake, traffic.late)
    late.start()
    _await_drained(consumer, run, late, [], lambda done, **note: step.update(early + done, **note))
    if sending.refused or late.refused:
        raise ServerError(f"the queue refused {sending.refused + late.refused} messages")
    step.finish("all is quiet")
    return run


def _await_drained(consumer: Consumer, run: Run, sending: Sending, kills: list[int], show: Callable[..., None]) -> None:
    """Return when the intake queue is empty, no event is pending, and no notification has come for a while."""
    deadline = time.monotonic() + DRAIN_SECONDS
    intake, subscriber, tables = consumer.intake, consumer.subscriber, consumer.tables
    quiet_since = time.monotonic()
    while time.monotonic() < deadline:
        # Before the depth is read: what is sent in between would look done.
        sent, is_sending = sending.sent, sending.is_alive()
        depth = intake.depth()
        done = max(0, sent - depth.waiting - depth.in_flight)
        if kills and done >= kills[0] and depth.in_flight:
            kills.pop(0)
            killed = consumer.emulator.kill_workers(consumer.function)
            run.kills.append((time.time_ns() // 1_000_000, killed))
        fresh = [heard(message) for message in subscriber.take(most=100)]
        run.heard += fresh
        show(done, note=f"{depth.in_flight} in work, {len(run.heard)} announced")
        is_busy = is_sending or fresh or not depth.is_empty or tables.count(consumer.ledger, "pending")
        if is_busy:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since >= QUIET_SECONDS:
            return
        time.sleep(0.1)
    # What is missing by now shows in the figures.


def _read(consumer: Consumer, run: Run, screen: Screen) -> Found:
    step = screen.step("Reading tables, change streams and queues", 1)
    run.heard += map(heard, consumer.subscriber.take())
    found = read(consumer, [(each.event_id, each.body) for each in run.heard])
    run.commits += [row for row in consumer.tables.changes(consumer.ledger) if row["status"] == "pending"]
    run.reported = reported_outcomes(consumer.emulator, consumer.outputs["log_group_name"])
    step.finish(f"{len(found.business_rows) + len(found.ledger_rows):,} rows")
    return found


def _show(report: Report, run: Run, seconds: float, screen: Screen) -> None:
    table = Table(title="What became of the messages", title_justify="left", show_header=False)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("number", justify="right")
    table.add_column("meaning", style="dim")
    for figure in figures(report, run.reported, run.killed, seconds):
        table.add_row(figure.name, figure.value, figure.meaning, style="red" if figure.is_bad else "")
    screen.console.print()
    screen.console.print(table)
    if report.is_clean:
        screen.say("[bold green]Nothing lost, nothing doubled.[/]")
    else:
        screen.say(f"[bold red]Lost {report.lost}, doubled {report.doubled}, unexpected {report.unexpected}:[/]")
        for problem in report.problems[:20]:
            screen.console.print(f"  {problem}", markup=False, highlight=False)
    screen.say(f"[dim]Figures: {RESULT.relative_to(CHECKOUT)}[/]")
    screen.say(f"Each delivery and what it changed, as a page: {RESULT.with_suffix('.html').relative_to(CHECKOUT)}")


def _show_way_around(consumer: Consumer, screen: Screen) -> None:
    emulator, outputs = consumer.emulator, consumer.outputs
    root = (WORK / "terraform" / EXAMPLE).relative_to(CHECKOUT)
    screen.console.print(
        f"""
The emulator is still up at {emulator.endpoint}. Look around:

{exports(emulator.endpoint)}
aws dynamodb scan --table-name {consumer.business} --max-items 3
aws dynamodb scan --table-name {consumer.ledger} --max-items 3
aws sqs send-message --queue-url {outputs["queue_url"]} --message-body '{{"id": "mine-1", "total": 5}}'
aws sqs receive-message --queue-url {consumer.subscriber_url} --message-attribute-names All
aws logs filter-log-events --log-group-name {outputs["log_group_name"]}

What its operators have:

.venv/bin/idempotent-consumer status --name orders
.venv/bin/idempotent-consumer inspect --name orders
.venv/bin/idempotent-consumer verify --terraform-dir {root}

The demo has taken dead letters and notifications out of their queues; a message without an id makes a new dead letter.
The emulator makes no metrics from log lines, so `status` shows none of the consumer's own. A root module of your own
can be applied beside it, under another name and business_table_name.

Terraform's copy of {EXAMPLE}: {root}
The emulator's log: {emulator.log.relative_to(CHECKOUT)}
Stop it, and with it everything it holds: kill {emulator.pid}
""",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


@contextmanager
def _stopped_on_error(emulator: Emulator) -> Iterator[None]:
    """End the emulator after the block, unless it is to stay and nothing went wrong."""
    try:
        yield
    except BaseException:
        emulator.stop()
        raise
    emulator.__exit__(None, None, None)


@contextmanager
def _removed(folder: Path, *, unless: bool) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if not unless:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
