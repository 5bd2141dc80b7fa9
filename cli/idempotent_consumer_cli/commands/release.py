"""`release`: give claims of a workflow back, so that a replay runs the effect once more."""

from __future__ import annotations

import click

from idempotent_consumer.calls import CALL_ERRORS
from idempotent_consumer.claims.resolution import MAX_TEXT
from idempotent_consumer.workflow.settings import WorkflowSettings
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.options import Interrupted, operator_command
from idempotent_consumer_cli.rows.releasing import Release, Releaser
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session, caller


@click.command(name="release")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("--why", default="not said", metavar="TEXT", help="How you know that the effect may run once more.")
@click.option("--by", metavar="WHO", help="Who decides; your AWS identity by default.")
@click.option("--force", is_flag=True, help="Also where the claim's execution runs, or cannot be read.")
@click.option("--dry-run", is_flag=True, help="Show the claims and what would be released; change nothing.")
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    keys: tuple[str, ...],
    why: str,
    by: str | None,
    force: bool,
    dry_run: bool,
) -> int:
    """Give claims of a workflow back, by their keys, so that a replay runs the effect once more.

    The effect may have been applied: see first whether it was. The key of a message without a business key is `sqs:`
    and a message id, as `inspect` shows it. The row keeps when, who and why. Refused are a claim that is completed, and
    one whose execution still runs or cannot be read; the latter two can be forced. Exit code 1 if one is not released.

    What then becomes of the letter is for `replay`.
    """
    settings = _workflow(consumer)
    release = Release(
        _checked(by, "--by", "who decides") if by is not None else caller(session),
        _checked(why, "--why", "how you know"),
        force,
    )
    releaser = Releaser(session.dynamodb, session.step_functions, settings, screen, release, is_dry=dry_run)
    try:
        releaser.run(list(dict.fromkeys(keys)))
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. {releaser.how_far}") from None
    except (*CALL_ERRORS, CommandError):
        screen.note(releaser.how_far)
        raise
    return releaser.close()


def _workflow(consumer: Consumer) -> WorkflowSettings:
    if consumer.workflow is not None:
        return consumer.workflow
    if consumer.is_pipeline:
        raise CommandError(
            f"{consumer.name} is no workflow, so there is no claim to release: `inspect` says what to do about letters"
        )
    raise CommandError(f"{consumer.name} is an operation: `resolve` says what became of it, --retry lets it run again")


def _checked(text: str, option: str, what: str) -> str:
    if not text.strip():
        raise CommandError(f"{option} is blank: give {what}")
    if len(text) > MAX_TEXT:
        raise CommandError(f"{option} has {len(text)} characters, over {MAX_TEXT}: say it in fewer")
    return text
