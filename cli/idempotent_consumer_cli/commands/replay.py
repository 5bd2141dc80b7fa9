"""`replay`: send dead letters back to the queue, and tell what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import click
from botocore.exceptions import ClientError

from idempotent_consumer.calls import CALL_ERRORS, MISCONFIGURATIONS, error_code
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.consumer.metrics import DIMENSION, NAMESPACE
from idempotent_consumer_cli.consumer.queues import source_mappings
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.foresight.foreteller import as_sent, foreteller, statuses
from idempotent_consumer_cli.letters.file import FromDrop
from idempotent_consumer_cli.letters.queue import DeadLetters
from idempotent_consumer_cli.letters.replaying import Policy, Replay, Source
from idempotent_consumer_cli.letters.selection import Selection, selection_options, visibility_option
from idempotent_consumer_cli.letters.sending import Pace, Sender
from idempotent_consumer_cli.options import DURATION, Interrupted, operator_command
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import count

_TEN_MINUTES = 600


@click.command(name="replay")
@selection_options
@click.option("--all", "is_all", is_flag=True, help="All letters.")
@click.option("--dry-run", is_flag=True, help="Say what would happen to each letter; change nothing.")
@click.option("--skip-refused", is_flag=True, help="Leave letters that would be refused again, or come straight back.")
@click.option("--beyond-window", is_flag=True, help="Send letters too that the ledger may have forgotten.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Messages a second; as fast as they go.")
@click.option("--wait", "is_waiting", is_flag=True, help="Wait, and tell what became of each letter.")
@click.option("--timeout", type=DURATION, default=_TEN_MINUTES, help="How long --wait waits, 10m by default.")
@click.option("--quiet", "is_quiet", is_flag=True, help="No line for each letter.")
@click.option(
    "--from-drop",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send the letters of a file that `drop` wrote; what is sent is noted in FILE.sent.",
)
@visibility_option
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    selection: Selection,
    is_all: bool,
    rate: float | None,
    timeout: int,
    from_drop: Path | None,
    visibility_seconds: int,
    **choices: bool,
) -> int:
    """Send dead letters back to the queue, and say before what will happen to each.

    A letter keeps body, attributes and group, so its event keeps its identity: what is written already is not written
    again. It is sent, then deleted; a run that was stopped is simply started again. On FIFO the letters of a group go
    in order, each with its own message id as deduplication id.

    An event that the ledger does not know, older than the time it remembers, is left where it is if nothing else
    would keep it from being applied twice: with write mode upsert, with code of your own, and with an operation.

    Of an operation it is never foretold what its effect will do. One that is parked or has failed comes straight back:
    `resolve` settles it first.

    Of a workflow neither. A letter whose claim is kept would only come back, so it is left where it is: `release` gives
    the claim back first. What EventBridge says of an execution goes back as the message that it was for. Without
    --beyond-window a letter is left too whose claim may be gone: one that says, or does not say any more, that its key
    was claimed, and one that is older than a claim lasts; and one that is done, but whose claim expires soon.

    Exit code 1 if a chosen letter is left or will be refused again or, with --wait, is still under way. A foretold
    no-op leaves no trace to wait for: it is told as soon as it is sent.
    """
    if from_drop is None:
        selection.require(is_all=is_all)
    _check_kinds(consumer)
    policy, is_dry = Policy(**choices), choices["dry_run"]
    pace = Pace(rate)
    sender = Sender(session.sqs, consumer.queue_url, pace, is_fifo=consumer.is_fifo)
    replay = Replay(
        consumer, foreteller(session, consumer), statuses(session, consumer), sender, screen, selection, policy
    )
    with ExitStack() as stack:
        dead = stack.enter_context(_opened(session, consumer, replay, visibility_seconds))
        _check_move_tasks(session, screen, dead.arn)
        file = None if from_drop is None else stack.enter_context(FromDrop(from_drop, consumer.name, is_dry=is_dry))
        # What is received together is sent before it is visible again.
        source = _source(dead, file, pace.page(visibility_seconds / 2), is_patient=not is_dry)
        with _telling_how_far(replay, dead, source, screen):
            try:
                replay.run(source, dead)
                replay.note_unread(dead) if file is None else _note_passed(file, screen)
                if policy.is_followed and replay.wait(dead, timeout):
                    _note_paused(session, consumer, replay)
            finally:
                _count(session, consumer, screen, replay.sent)
            return replay.close(dead)


def _opened(session: Session, consumer: Consumer, replay: Replay, visibility_seconds: int) -> DeadLetters:
    """The dead-letter queue, which tells the replay of what it knows again."""
    return DeadLetters(
        session.sqs,
        consumer.dead_letter_queue_url,
        visibility_seconds,
        lambda letter: replay.come_back(as_sent(letter, consumer)),
    )


def _source(dead: DeadLetters, file: FromDrop | None, size: int, *, is_patient: bool) -> Source:
    """file: None where the letters are those of the queue. size: how many are received together."""
    if file is not None:
        return Source(file.pages(), file.note, lambda: file.unnoted)
    return Source(dead.pages(size, is_patient=is_patient), dead.remove, lambda: dead.undeleted, dead.depth.total)


@contextmanager
def _telling_how_far(replay: Replay, dead: DeadLetters, source: Source, screen: Screen) -> Iterator[None]:
    """Says how far a run came that is stopped or fails, and settles what was sent until then."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(*CALL_ERRORS, CommandError, KeyboardInterrupt):
            source.settle(())
        raise Interrupted(f"Stopped. {replay.how_far(dead, source)}") from None
    except (*CALL_ERRORS, CommandError, OSError):
        screen.note(replay.how_far(dead, source))
        raise


def _note_passed(file: FromDrop, screen: Screen) -> None:
    """Say which letters of the file were not to be sent."""
    if file.passed:
        screen.note(f"{count(file.passed, 'letter')} passed over: {file.path}.sent says that they were sent.")
    if file.is_cut_off:
        screen.note(f"The last line of {file.path} is cut off and passed over: `drop` did not delete its letter.")


def _note_paused(session: Session, consumer: Consumer, replay: Replay) -> None:
    """Say if nothing takes messages off the queue, as best it can be told."""
    with suppress(*CALL_ERRORS, KeyError):
        answer = session.sqs.get_queue_attributes(QueueUrl=consumer.queue_url, AttributeNames=["QueueArn"])
        mappings = source_mappings(session.functions, consumer, answer["Attributes"]["QueueArn"])
        if all(mapping.is_paused for mapping in mappings):
            state = mappings[0].state.lower() if mappings else "gone"
            replay.remark(f"Nothing takes messages off the queue: its event source mapping is {state}.")


def _check_kinds(consumer: Consumer) -> None:
    if consumer.dead_letter_queue_url.endswith(".fifo") != consumer.is_fifo:
        raise CommandError(
            f"{consumer.queue_url} and {consumer.dead_letter_queue_url} are not of one kind, only one is a FIFO queue: "
            "apply the module again"
        )


def _check_move_tasks(session: Session, screen: Screen, dead_letter_queue_arn: str) -> None:
    """Two that take letters from one queue would each get a part of them, and of a FIFO group its order is lost."""
    try:
        tasks = session.sqs.list_message_move_tasks(SourceArn=dead_letter_queue_arn, MaxResults=1)["Results"]
    except ClientError as error:
        code = error_code(error)
        if code in MISCONFIGURATIONS:  # else an emulator that does not know the call
            screen.note(f"You need sqs:ListMessageMoveTasks to see whether SQS's own redrive runs ({code}).")
        return
    if any(task.get("Status") in ("RUNNING", "CANCELLING") for task in tasks):
        raise CommandError(
            "SQS's own redrive of this dead-letter queue is running: wait for its end, or cancel it "
            "(aws sqs cancel-message-move-task)"
        )


def _count(session: Session, consumer: Consumer, screen: Screen, sent: int) -> None:
    """Put the metric, as best it can be."""
    if not sent:
        return
    datum = {
        "MetricName": "Replayed",
        "Dimensions": [{"Name": DIMENSION, "Value": consumer.name}],
        "Unit": "Count",
        "Value": sent,
    }
    try:
        session.cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=[datum])
    except CALL_ERRORS as error:
        screen.note(f"The metric Replayed could not be put ({error_code(error)}); nothing else depends on it.")
