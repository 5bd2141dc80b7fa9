"""`verify`: the ledger beside the business table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.options import Interrupted, operator_command
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.verification.comparison import Judge
from idempotent_consumer_cli.verification.scanning import ReadRate, describe
from idempotent_consumer_cli.verification.verifier import (
    Disagreement,
    Tables,
    Verifier,
    key_of_events,
    why_not_demanded,
)
from idempotent_consumer_cli.words import spoken

# For people; --json has all.
_SHOWN = 20
# The clients keep as many connections.
_MAX_SEGMENTS = 32
_OF_OPERATIONS = (
    "it has no business table to compare its ledger with. `pending` lists what is unfinished, `status` says what needs "
    "a hand"
)
_OF_WORKFLOWS = (
    "it has no business table to compare its claims with. `status` says what needs a hand, `inspect` shows the letters "
    "beside their claims"
)
_NO_KEY = "the key of a business row does not follow from the event id here; without --sample it is checked"


@click.command(name="verify")
@click.option("--sample", type=click.IntRange(min=1), help="Check about so many events each way, chosen at random.")
@click.option(
    "--segments",
    type=click.IntRange(1, _MAX_SEGMENTS),
    default=8,
    show_default=True,
    help="Read so many parts of a table at a time.",
)
@click.option("--max-rows-per-second", type=click.IntRange(min=1), help="Read no faster, to spare the tables.")
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    sample: int | None,
    segments: int,
    max_rows_per_second: int | None,
) -> int:
    """Compare the ledger with the business table, in both directions.

    An unexpired ledger row must have its business row (write_mode insert), and a business row that is younger than
    the ttl window its ledger row. Both tables are read whole, consistently, unless --sample is given; live traffic
    does no harm. Changes nothing. Exit code 1 if they disagree.
    """
    settings = consumer.pipeline_or(_OF_OPERATIONS, _OF_WORKFLOWS)
    judge = Judge(settings, clock.now_ms())
    tables = Tables(
        describe(session.dynamodb, settings.ledger_table, judge.ledger_attributes),
        describe(session.dynamodb, settings.business_table, judge.business_attributes),
    )
    key_of = key_of_events(settings)
    unchecked = why_not_demanded(consumer) or (_NO_KEY if sample is not None and key_of is None else None)
    verifier = Verifier(tables, judge, ReadRate(max_rows_per_second), demands_rows=unchecked is None, key_of=key_of)
    results = _Results(screen)
    try:
        if sample is None:
            _read_and_compare(verifier, tables, segments, results, screen)
        else:
            _sample(verifier, sample, unchecked is None, results, screen)
    except KeyboardInterrupt:
        raise Interrupted(_how_far(judge, results)) from None
    return _report(judge, results, consumer, screen, sample is not None, unchecked)


class _Results:
    """Counts the disagreements and shows the first of them; with --json each is a line."""

    def __init__(self, screen: Screen) -> None:
        self.count = 0
        self.first: list[Disagreement] = []
        self._screen = screen

    def add(self, disagreements: Iterator[Disagreement]) -> None:
        for disagreement in disagreements:
            self.count += 1
            if len(self.first) < _SHOWN:
                self.first.append(disagreement)
            self._screen.emit(
                {
                    "event_id": disagreement.event_id,
                    "missing": disagreement.missing.value,
                    "business_key": disagreement.key,
                }
            )


def _read_and_compare(verifier: Verifier, tables: Tables, segments: int, results: _Results, screen: Screen) -> None:
    with screen.progress("Reading the ledger", tables.ledger.rows) as bar:
        verifier.read_ledger(segments, lambda rows: bar.update(rows, _about(tables.ledger.rows, rows)))
    with screen.progress("Reading the business table", tables.business.rows) as bar:
        verifier.read_business(segments, lambda rows: bar.update(rows, _about(tables.business.rows, rows)))
    with screen.progress("Comparing"):
        results.add(verifier.compare())


def _sample(verifier: Verifier, size: int, demands_rows: bool, results: _Results, screen: Screen) -> None:
    if demands_rows:
        with screen.progress("Checking ledger rows", size) as bar:
            results.add(verifier.sample_ledger(size, bar.update))
    with screen.progress("Checking business rows", size) as bar:
        results.add(verifier.sample_business(size, bar.update))


def _about(expected: int | None, seen: int) -> int | None:
    """DynamoDB's own count is hours old."""
    return None if expected is None else max(expected, seen)


def _how_far(judge: Judge, results: _Results) -> str:
    counts = judge.counts
    found = f"{results.count:,} disagreements found so far" if results.count else "no disagreement found so far"
    return (
        f"Stopped after {counts.ledger:,} ledger rows and {counts.business:,} business rows: {found}, and not all was "
        "compared. Nothing was changed."
    )


def _report(
    judge: Judge, results: _Results, consumer: Consumer, screen: Screen, is_sample: bool, unchecked: str | None
) -> int:
    counts = judge.counts
    window = spoken(consumer.pipeline.ttl_window_seconds)
    looked_at = [
        ("ledger rows", "compared" if unchecked is None else "read", counts.due),
        ("ledger rows", "expired: not demanded of the business table", counts.expired),
        ("business rows", f"of {consumer.name}, younger than {window}: compared", counts.young),
        ("business rows", f"older than {window}: not judged", counts.old),
        ("business rows", "without event_committed_at: age unknown, not judged", counts.ageless),
        ("business rows", "of others, or without event id: not judged", counts.others),
    ]
    screen.table(
        f"Rows {'sampled' if is_sample else 'read'}",
        ["table", "rows", "count"],
        [line for line in looked_at if line[2] or line[1].endswith("compared")],
    )
    if results.first:
        screen.table(
            "Disagreements",
            ["event id", "missing", "business key"],
            [(found.event_id, found.missing.value, _key_text(found)) for found in results.first],
        )
    if results.count > len(results.first):
        screen.say(f"and {results.count - len(results.first):,} more: --json lists all")
    if unchecked:
        screen.say(f"Not checked: whether each event in the ledger has its business row: {unchecked}.")
    if counts.pending:
        screen.say(f"Pending among the ledger rows: {counts.pending:,}, which is no disagreement.")
    verdict = _verdict(results.count, is_sample, unchecked)
    screen.say(verdict)
    screen.emit(_summary(judge, results, consumer, is_sample, unchecked, verdict))
    return 1 if results.count else 0


def _verdict(disagreements: int, is_sample: bool, unchecked: str | None) -> str:
    if disagreements:
        noun = "disagreement" if disagreements == 1 else "disagreements"
        return f"{disagreements:,} {noun}. Rows that were deleted, and a window that was raised, show as such too."
    scope = "In the sample, ledger" if is_sample else "Ledger"
    return f"{scope} and business table agree{', as far as they can be compared' if unchecked else ''}."


def _key_text(found: Disagreement) -> str | None:
    return None if found.key is None else ", ".join(f"{name} {value}" for name, value in found.key.items())


def _summary(
    judge: Judge, results: _Results, consumer: Consumer, is_sample: bool, unchecked: str | None, verdict: str
) -> dict[str, Any]:
    counts = judge.counts
    return {
        "consumer": consumer.name,
        "sample": is_sample,
        "ledger_rows": counts.ledger,
        "business_rows": counts.business,
        "compared": {"ledger_rows": 0 if unchecked else counts.due, "business_rows": counts.young},
        "not_judged": {
            "expired_ledger_rows": counts.expired,
            "older_business_rows": counts.old,
            "business_rows_of_unknown_age": counts.ageless,
            "business_rows_of_others": counts.others,
        },
        "pending": counts.pending,
        "not_checked": unchecked,
        "disagreements": results.count,
        "verdict": verdict,
    }
