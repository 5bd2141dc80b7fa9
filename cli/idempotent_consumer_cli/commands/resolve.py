"""`resolve`: settle operations of which only a person can know whether they were applied."""

from __future__ import annotations

import click

from idempotent_consumer.calls import CALL_ERRORS
from idempotent_consumer.claims.resolution import Decision, Resolution
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.options import Interrupted, operator_command
from idempotent_consumer_cli.rows.resolving import Resolver
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session, caller


@click.command(name="resolve")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option(
    "--completed", metavar="REF", help="It was applied; REF is stored as its result, such as the provider's id."
)
@click.option("--failed", metavar="WHY", help="It was not applied, and shall not be.")
@click.option("--retry", is_flag=True, help="It was not applied, and shall be: its attempts are counted anew.")
@click.option("--why", metavar="TEXT", help="With --completed and --retry: how you know.")
@click.option("--by", metavar="WHO", help="Who decides; your AWS identity by default.")
@click.option("--dry-run", is_flag=True, help="Show the operations and what would be written; change nothing.")
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    keys: tuple[str, ...],
    completed: str | None,
    failed: str | None,
    retry: bool,
    why: str | None,
    by: str | None,
    dry_run: bool,
) -> int:
    """Settle operations that are parked, by the ids of their events. See at the provider first what became of each.

    The attempt's number is raised, so that a worker of before can change nothing, and the row keeps when, who, how
    and why. --retry and --completed also take one that has failed. Refused are one that is completed, and one that a
    worker may still hold, until two minutes after its lease. Exit code 1 if one is not settled.

    What then becomes of the letter is for `replay`, or `drop`.
    """
    settings = consumer.operation
    if consumer.workflow is not None:
        raise CommandError(
            f"{consumer.name} is a workflow: see whether the effect ran, then `release` gives the claim back and a "
            "`replay` runs it once more, or `drop` deletes the letter"
        )
    if settings is None:
        raise CommandError(
            f"{consumer.name} is no operation, so nothing waits for a decision: `inspect` says what to do about its "
            "letters"
        )
    decision, reason = _decision(completed, failed, why, is_retry=retry)
    if decision is Decision.COMPLETED and len(set(keys)) > 1:
        raise CommandError("--completed takes one event: the provider's id belongs to one of them")
    resolution = _resolution(decision, by or caller(session), reason, completed)
    resolver = Resolver(session.dynamodb, settings, screen, resolution, is_dry=dry_run)
    try:
        resolver.run(list(dict.fromkeys(keys)))
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. {resolver.how_far}") from None
    except (*CALL_ERRORS, CommandError):
        screen.note(resolver.how_far)
        raise
    return resolver.close()


def _resolution(decision: Decision, by: str, why: str, result: str | None) -> Resolution:
    try:
        return Resolution(decision, by, why, result)
    except ValueError as error:
        raise CommandError(f"{error}: say it in fewer") from None


def _decision(completed: str | None, failed: str | None, why: str | None, *, is_retry: bool) -> tuple[Decision, str]:
    """What is decided, and why. Raises CommandError for what is no decision, or several."""
    if [completed is not None, failed is not None, is_retry].count(True) != 1:
        raise CommandError("was it applied? Say one of --completed REF, --failed WHY and --retry")
    if completed is not None:
        _require(completed, "--completed", "the provider's id of what was applied")
        return Decision.COMPLETED, why or ""
    if failed is not None:
        if why is not None:
            raise CommandError("--failed says why already: leave out --why")
        _require(failed, "--failed", "why it shall not be applied")
        return Decision.FAILED, failed
    return Decision.RETRY, why or ""


def _require(text: str, option: str, what: str) -> None:
    if not text.strip():
        raise CommandError(f"{option} is blank: give {what}")
