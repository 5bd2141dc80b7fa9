"""`inspect`: each dead letter, why it is there, what the ledger knows of it, and what a replay will do."""

from __future__ import annotations

import json

import click

from idempotent_consumer.calls import CALL_ERRORS
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.foresight.foreteller import foreteller
from idempotent_consumer_cli.letters.causes import Causes, read_causes
from idempotent_consumer_cli.letters.inspection import OF_OPERATIONS, OF_PIPELINES, OF_WORKFLOWS, Inspection, Manner
from idempotent_consumer_cli.letters.queue import DeadLetters, give_back
from idempotent_consumer_cli.letters.selection import Selection, selection_options, visibility_option
from idempotent_consumer_cli.options import Interrupted, operator_command
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session

_SHOWN_TO_PEOPLE = 100


@click.command(name="inspect")
@selection_options
@click.option("--limit", type=click.IntRange(min=0), help="Letters shown; 100 in the table, all of them with --json.")
@click.option("--values", "show_values", is_flag=True, help="Show the values that differ, not only their names.")
@visibility_option
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    selection: Selection,
    limit: int | None,
    show_values: bool,
    visibility_seconds: int,
) -> int:
    """Show each dead letter: why it is there, what the ledger knows of it, and what a replay will do.

    Reads the whole dead-letter queue and gives everything back; the summary counts all letters, also those not shown.
    Of letters that SQS moved, the function's log tells the cause. Exit code 1 if there are letters.

    \b
    never seen            nothing of the event is written
    blocked, never tried  the same; inferred on FIFO, where an earlier letter of its group stands before it
    pending               written, not announced
    sent                  written and announced
    conflict              the ledger holds the event id with other content

    \b
    Of an operation:
    parked                nobody knows whether it was applied: see at the provider, then `resolve`
    lease over            the same, and its worker is gone: what happens next is what operation.uncertain says
    in progress           a worker holds it
    to be retried         certainly not applied
    failed                certainly not applied, for good; `resolve --retry` tries again
    completed             done

    \b
    Of a workflow, whose events are named by their keys:
    never seen, released  the key is free: a replay runs the effect
    in progress           an execution that runs, as far as can be seen, has claimed the key
    parked                the effect failed and may have acted: see whether it did, then `release`
    execution ended       the same, and the execution could record nothing, or is gone
    completed             done
    """
    if limit is None and not screen.as_json:
        limit = _SHOWN_TO_PEOPLE
    report = Inspection(
        screen,
        is_fifo=consumer.is_fifo,
        manner=_manner(consumer),
        limit=limit,
        show_values=show_values,
        receives=_receives(session, consumer),
    )
    with DeadLetters(session.sqs, consumer.dead_letter_queue_url, visibility_seconds) as dead:
        try:
            _read(dead, report, session, consumer, screen, selection)
            unread = dead.unread(report.read, is_fifo=consumer.is_fifo)
            give_back(dead, screen)
        except KeyboardInterrupt:
            raise Interrupted(
                f"Stopped. {report.read:,} of about {dead.depth.total:,} letters were read; they are given back, or "
                "come back by themselves."
            ) from None
        until_ms = dead.now_ms()
    causes = _causes(report, session, consumer, screen, until_ms)
    remarks = [*unread, *selection.unmet_remarks(is_all_read=not unread)]
    return report.close(causes, remarks, dead.depth.total)


def _manner(consumer: Consumer) -> Manner:
    if consumer.workflow is not None:
        return OF_WORKFLOWS
    return OF_PIPELINES if consumer.is_pipeline else OF_OPERATIONS


def _read(
    dead: DeadLetters, report: Inspection, session: Session, consumer: Consumer, screen: Screen, selection: Selection
) -> None:
    lookup = foreteller(session, consumer, compares=True)
    with screen.progress("Reading letters", dead.depth.total) as bar:
        for page in dead.pages():
            now_ms = dead.now_ms()
            for letter, prospect in lookup.foretell(page, now_ms, selection.takes):
                report.add(letter, prospect, now_ms)
            report.read += len(page)
            bar.update(report.read, max(report.read, dead.depth.total), f"{report.letters:,} chosen")


def _causes(report: Inspection, session: Session, consumer: Consumer, screen: Screen, until_ms: int) -> Causes | None:
    """What the log says of the letters that SQS moved; None where there are none."""
    if not report.moved:
        return None
    with screen.progress("Reading the log", len(report.moved)) as bar:
        return read_causes(
            session.logs,
            consumer.log_group,
            report.moved,
            report.moved_from_ms,
            until_ms,
            lambda found: bar.update(found, len(report.moved)),
        )


def _receives(session: Session, consumer: Consumer) -> int | None:
    """After how many receives SQS moves a message; None where the queue does not tell."""
    try:
        answer = session.sqs.get_queue_attributes(QueueUrl=consumer.queue_url, AttributeNames=["RedrivePolicy"])
        return int(json.loads(answer["Attributes"]["RedrivePolicy"])["maxReceiveCount"])
    except (*CALL_ERRORS, KeyError, TypeError, ValueError):
        return None
