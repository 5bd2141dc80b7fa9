"""`reconcile`: publish now what is committed and was never announced."""

from __future__ import annotations

from collections import Counter

import click

from idempotent_consumer.ledger import Ledger
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.reconciliation import PAGE, Reconciler, Reconciliation
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.clock import endless
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.options import DURATION, Interrupted, operator_command
from idempotent_consumer_cli.rows.pending import PendingSource, list_rows, open_pending, until_ms
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import count, spoken

# For people; --json has all.
_SHOWN = 20
# What the right is that a failed call needs, by the operation that AWS names in its answer.
_RIGHTS = {
    "BatchExecuteStatement": "dynamodb:PartiQLUpdate on {ledger}",
    "BatchGetItem": "dynamodb:BatchGetItem on {ledger}",
    "PublishBatch": "sns:Publish on {topic}",
    "Query": "dynamodb:Query on {ledger}/index/pending",
}
_OF_OPERATIONS = (
    "it announces nothing. `pending` lists what is unfinished; `resolve` settles what is parked, `replay` brings back "
    "what is in the dead-letter queue"
)
_OF_WORKFLOWS = (
    "it announces nothing. `status` shows its executions, `inspect` what is in the dead-letter queue and what to do "
    "about it"
)
_DENIED = ("AccessDenied", "AuthorizationError")


@click.command(name="reconcile")
@click.option(
    "--older-than",
    type=DURATION,
    help="Only events committed so long ago, as 15m or 2h.  [default: the queue's visibility timeout]",
)
@click.option("--dry-run", is_flag=True, help="List what would be published, and publish nothing.")
@operator_command
def command(*, session: Session, consumer: Consumer, screen: Screen, older_than: int | None, dry_run: bool) -> int:
    """Publish the notifications of events that are committed but not announced, and mark them.

    Safe beside live traffic and beside the reconciler: at worst a notification goes out twice. Exit code 1 if one is
    left.
    """
    topic_arn = consumer.pipeline_or(_OF_OPERATIONS, _OF_WORKFLOWS).topic_arn
    if topic_arn is None:
        raise _no_topic(open_pending(session.dynamodb, consumer.pipeline.ledger_table, screen).count(), consumer)
    if older_than is None:
        older_than = consumer.visibility_seconds
    elif older_than < consumer.visibility_seconds:
        screen.note(
            f"The visibility timeout is {spoken(consumer.visibility_seconds)}: a younger event may be in work, and is "
            "then announced twice."
        )
    latest_ms = until_ms(clock.now_ms(), older_than)
    rows = open_pending(session.dynamodb, consumer.pipeline.ledger_table, screen)
    if dry_run:
        return _list(session, consumer, screen, rows, latest_ms)
    # A topic takes messages in its own Region only.
    outbox = Outbox(session.client("sns", topic_arn.split(":")[3]), topic_arn)
    ledger = Ledger(session.dynamodb, consumer.pipeline.ledger_table)
    reconciler = Reconciler(rows.for_reconciler, ledger, outbox, consumer.pipeline.ttl_window_seconds, clock.now_ms)
    run = _run(reconciler, screen, latest_ms)
    return _report(run, consumer, screen)


def _no_topic(pending: int, consumer: Consumer) -> CommandError:
    if not pending:
        return CommandError(f"{consumer.name} publishes no notifications: there is no topic, and nothing is pending")
    return CommandError(
        f"{consumer.name} has no topic any more, but {count(pending, 'pending event')} from before: bring the topic "
        "back (notification.create_topic or topic_arn), and run it again"
    )


def _run(reconciler: Reconciler, screen: Screen, latest_ms: int) -> Reconciliation:
    latest = Reconciliation()
    with screen.progress("Publishing") as bar:

        def follow(run: Reconciliation) -> None:
            nonlocal latest
            latest = run
            done = run.published + run.gone + len(run.left)
            bar.update(done, max(run.stale, done), f"{len(run.left):,} left" if run.left else "")

        try:
            return reconciler.run(latest_ms, endless(), follow)
        except KeyboardInterrupt:
            raise Interrupted(_how_far(latest)) from None


def _how_far(run: Reconciliation) -> str:
    far = f"{run.published:,} of {run.stale:,}" if run.stale else "none"
    return (
        f"Stopped: {far} published and marked. Up to {PAGE} that were in work may be announced again by the next run."
    )


def _report(run: Reconciliation, consumer: Consumer, screen: Screen) -> int:
    tried = Counter(verdict.detail or verdict.reason for verdict in run.left.values())
    unread = Counter(verdict.detail or verdict.reason for verdict in run.unread.values())
    # Of those that are in no count others have settled some; after a run that ended early nobody knows how many.
    uncounted = max(0, run.stale - run.published - run.gone - len(run.left))
    is_whole = not unread and not run.is_refused
    settled, left = (run.gone + uncounted, len(run.left)) if is_whole else (run.gone, len(run.left) + uncounted)
    screen.table(
        f"Reconciliation of {consumer.name}",
        ["found", "published", "settled by others", "left"],
        [(run.stale, run.published, settled, left)],
    )
    for why, number in tried.most_common():
        screen.say(f"{number:,} left: {why}{_advice(why, consumer)}")
    for why, number in unread.most_common():
        screen.say(f"{number:,} of the parts of the ledger could not be read: {why}{_advice(why, consumer)}")
    verdict = _verdict(run, left)
    screen.say(verdict)
    screen.emit(
        {
            "consumer": consumer.name,
            "found": run.stale,
            "published": run.published,
            "settled_by_others": settled,
            "left_count": left,
            "left": [
                {"event_id": event_id, "reason": verdict.reason, "detail": verdict.detail}
                for event_id, verdict in run.left.items()
            ],
            "unread": dict(unread),
            "verdict": verdict,
        }
    )
    return 1 if run.left or run.unread else 0


def _verdict(run: Reconciliation, left: int) -> str:
    if run.unread:
        return "Not all of the ledger could be read: events may be left that nobody has announced."
    if left > len(run.left):
        return (
            f"{left:,} left, {len(run.left):,} of them tried: the run ended at the first page that was refused as a "
            "whole. Mend the cause and run it again."
        )
    if left:
        return f"{left:,} left: mend the cause and run it again."
    if not run.stale:
        return "Nothing to publish."
    return f"Done: nothing is left ({run.published:,} published)."


def _advice(why: str, consumer: Consumer) -> str:
    """The right that is missing, or what a failed mark means."""
    operation, _, code = why.partition(": ")
    text = ""
    if operation == "BatchExecuteStatement":
        text += " (published, but not marked: the next run announces them again)"
    if operation in _RIGHTS and code.startswith(_DENIED):
        names = {"ledger": consumer.pipeline.ledger_table, "topic": consumer.pipeline.topic_arn}
        text += f" – you need {_RIGHTS[operation].format(**names)}"
    elif code.upper().startswith("KMS"):
        text += " – you need kms:Decrypt and kms:GenerateDataKey on the topic's key"
    return text


def _list(session: Session, consumer: Consumer, screen: Screen, rows: PendingSource, latest_ms: int) -> int:
    """What a run would publish. Nothing is left to be done by it, so its exit code is 0."""
    now_ms = clock.now_ms()
    ledger = Ledger(session.dynamodb, consumer.pipeline.ledger_table)
    with screen.progress("Reading pending rows") as bar:
        listed = list_rows(ledger, rows.oldest_first(latest_ms), None, bar.update)
    if listed.rows:
        screen.table(
            f"To be published for {consumer.name}",
            ["event id", "age", "notification bytes"],
            [(row.event_id, spoken((now_ms - row.created_ms) / 1000), row.size) for row in listed.rows[:_SHOWN]],
        )
    if len(listed.rows) > _SHOWN:
        screen.say(f"and {len(listed.rows) - _SHOWN:,} more: --json lists all")
    if listed.unread:
        screen.say(f"Rows could not be read: {listed.unread}{_advice(listed.unread, consumer)}")
    unreadable = sum(row.size is None for row in listed.rows)
    but = f", but {unreadable:,} of them cannot be read" if unreadable else ""
    verdict = f"A run would publish {len(listed.rows):,}{but}. Nothing was published."
    screen.say(verdict)
    screen.emit(
        {
            "consumer": consumer.name,
            "would_publish": [row.document(now_ms) for row in listed.rows],
            "unread": listed.unread,
            "verdict": verdict,
        }
    )
    return 0
