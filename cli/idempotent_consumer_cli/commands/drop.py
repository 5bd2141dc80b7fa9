"""`drop`: write chosen dead letters to a file, then delete them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from idempotent_consumer.calls import CALL_ERRORS
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.foresight.foreteller import foreteller
from idempotent_consumer_cli.foresight.prospect import LedgerState, Prospect
from idempotent_consumer_cli.letters.file import DropFile
from idempotent_consumer_cli.letters.lines import name_of
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.queue import DeadLetters, give_back
from idempotent_consumer_cli.letters.selection import Selection, selection_options, visibility_option
from idempotent_consumer_cli.options import Interrupted, operator_command
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import count, in_order, listed

_UNFINISHED = (
    LedgerState.PARKED,
    LedgerState.STALE,
    LedgerState.ENDED,
    LedgerState.IN_PROGRESS,
    LedgerState.TO_RETRY,
)
_WITH_OPERATION = (
    "with an operation that is parked or unfinished: without its letter only `resolve` finishes it; `pending` lists it."
)
_WITH_CLAIM = (
    "with a key whose claim is kept: until it expires, or `release` gives it back, another message with this key is "
    "skipped."
)
_GONE = (LedgerState.NEVER_SEEN, LedgerState.RELEASED, LedgerState.BLOCKED)
_NEVER_SEEN = "with an event that the ledger never saw: it is gone but for the file."
_NOT_DONE = "of which no claim says that the effect ran: the message is in the file alone."


@click.command(name="drop")
@selection_options
@click.option("--all", "is_all", is_flag=True, help="All letters.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, which may not exist; dropped-<name>-<time>.jsonl by default.",
)
@click.option("--dry-run", is_flag=True, help="Say which letters would be dropped; change nothing.")
@visibility_option
@operator_command
def command(
    *,
    session: Session,
    consumer: Consumer,
    screen: Screen,
    selection: Selection,
    is_all: bool,
    output: Path | None,
    dry_run: bool,
    visibility_seconds: int,
) -> int:
    """Write dead letters to a file, one JSON line each, then delete them.

    Lines are on the disk before their letters are deleted. `replay --from-drop FILE` sends them back. Exit code 1 if a
    chosen letter could not be dropped.
    """
    selection.require(is_all=is_all)
    path = output or Path(f"dropped-{consumer.name}-{_now()}.jsonl")
    with (
        DropFile(path, consumer.name) as file,
        DeadLetters(session.sqs, consumer.dead_letter_queue_url, visibility_seconds) as dead,
    ):
        drop = Drop(session, consumer, screen, selection, None if dry_run else file)
        try:
            drop.run(dead)
            return drop.close(dead, path)
        except KeyboardInterrupt:
            with suppress(*CALL_ERRORS, KeyboardInterrupt):
                dead.remove(())
            raise Interrupted(f"Stopped. {drop.how_far(dead, path)}") from None
        except (*CALL_ERRORS, CommandError, OSError):
            screen.note(drop.how_far(dead, path))
            raise


class Drop:
    """One run. file: None for a dry run."""

    def __init__(
        self, session: Session, consumer: Consumer, screen: Screen, selection: Selection, file: DropFile | None
    ) -> None:
        self._consumer = consumer
        self._screen = screen
        self._selection = selection
        self._file = file
        self._foreteller = foreteller(session, consumer)
        self._by_state: Counter[LedgerState] = Counter()
        self._read = self._pending = self._gone = self._unfinished = 0

    def run(self, dead: DeadLetters) -> None:
        with self._screen.progress("Dropping" if self._file else "Looking", dead.depth.total) as bar:
            for page in dead.pages(is_patient=self._file is not None):
                now_ms = dead.now_ms()
                chosen = self._foreteller.foretell(page, now_ms, self._selection.takes)
                if chosen and self._file is not None:
                    self._file.write(chosen, now_ms)
                self._count([prospect for _, prospect in chosen])
                if self._file is not None:
                    dead.remove([prospect.message_id for _, prospect in chosen])
                for letter, prospect in chosen:
                    self._show(letter, prospect)
                self._read += len(page)
                bar.update(self._read, max(self._read, dead.depth.total), f"{self._by_state.total():,} chosen")

    def _count(self, prospects: list[Prospect]) -> None:
        for prospect in prospects:
            states = {event.state for event in prospect.events}
            self._by_state[prospect.state] += 1
            self._pending += LedgerState.PENDING in states
            self._gone += not states.isdisjoint(_GONE)
            self._unfinished += not states.isdisjoint(_UNFINISHED)

    def _show(self, letter: OpenedLetter, prospect: Prospect) -> None:
        self._screen.emit(
            {
                "kind": "letter",
                "message_id": prospect.message_id,
                "event_ids": letter.event_ids,
                "ledger": prospect.state.code,
            }
        )
        if self._file is None:
            self._screen.say(f"{name_of(prospect)}: {prospect.state.value}")

    def how_far(self, dead: DeadLetters, path: Path) -> str:
        """What is done, for one who stops."""
        if self._file is None:
            return "Nothing was changed."
        if not self._by_state:
            return "No letter was deleted."
        dropped = self._by_state.total() - dead.undeleted
        left = max(0, dead.depth.total - dropped)
        return f"{count(dropped, 'letter')} written to {path} and deleted; about {left:,} are left."

    def close(self, dead: DeadLetters, path: Path) -> int:
        """Give back what is left, and show the sums; returns the exit code."""
        unread = dead.unread(self._read, is_fifo=self._consumer.is_fifo)
        remarks = [*unread, *self._selection.unmet_remarks(is_all_read=not unread)]
        give_back(dead, self._screen)
        chosen, undeleted = self._by_state.total(), dead.undeleted
        self._screen.emit(
            {
                "kind": "summary",
                "dry_run": self._file is None,
                "file": str(path) if chosen and self._file is not None else None,
                "letters": chosen,
                "undeleted": undeleted,
                "by_ledger": {state.code: number for state, number in in_order(self._by_state)},
                "remarks": remarks,
            }
        )
        for remark in remarks:
            self._screen.say(remark)
        if undeleted:
            self._screen.say(f"{count(undeleted, 'letter')} written, but not deleted: drop again, to another file.")
        self._say_sums(chosen, path)
        return 1 if undeleted or remarks else 0

    def _say_sums(self, chosen: int, path: Path) -> None:
        if not chosen:
            self._screen.say("Nothing was dropped.")
            return
        if self._pending:
            self._screen.say(
                f"{count(self._pending, 'letter')} with a pending event: "
                "the reconciler, or `reconcile`, still publishes it."
            )
        if self._unfinished:
            what = _WITH_CLAIM if self._consumer.workflow is not None else _WITH_OPERATION
            self._screen.say(f"{count(self._unfinished, 'letter')} {what}")
        if self._gone and self._file is not None:
            what = _NOT_DONE if self._consumer.workflow is not None else _NEVER_SEEN
            self._screen.say(f"{count(self._gone, 'letter')} {what}")
        if self._file is None:
            self._screen.say(
                f"{count(chosen, 'letter')} would be dropped: {listed(self._by_state)}. Nothing was changed."
            )
        else:
            self._screen.say(f"{count(chosen, 'letter')} dropped, and written to {path}: {listed(self._by_state)}.")


def _now() -> str:
    return datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
