"""Which dead letters a command is for."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.queue import VISIBILITY_SECONDS
from idempotent_consumer_cli.options import DURATION

WITHOUT_REASON = "none"
_MOST_NAMES = 10
# Amazon SQS API Reference, ReceiveMessage: twelve hours.
_LONGEST_VISIBILITY_SECONDS = 43_200

_OPTIONS = (
    click.option("--id", "ids", multiple=True, metavar="ID", help="Event id or message id; repeatable."),
    click.option(
        "--reason",
        "reasons",
        multiple=True,
        metavar="REASON",
        help=f"Reason, as `inspect` shows it; `{WITHOUT_REASON}` for letters that SQS moved; repeatable.",
    ),
    click.option("--older-than", type=DURATION, help="Sent longer ago than this, such as 2h."),
    click.option("--newer-than", type=DURATION, help="Sent less long ago than this."),
    click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Ids from a file, one a line, or the JSON lines that `inspect --json` and `drop` write.",
    ),
)


visibility_option = click.option(
    "--visibility",
    "visibility_seconds",
    type=DURATION,
    default=VISIBILITY_SECONDS,
    callback=lambda context, parameter, value: _hideable(value),
    help="How long a letter in hand is hidden, 60s by default; if the program is killed, it comes back after that.",
)


def _hideable(seconds: int) -> int:
    if not 1 <= seconds <= _LONGEST_VISIBILITY_SECONDS:
        raise click.BadParameter(f"{seconds}s is not from 1s to 12h")
    return seconds


@dataclass(frozen=True)
class Selection:
    """Letters that match all that is given; of several ids, or reasons, one.

    older_than, newer_than: seconds since the letter's SentTimestamp. unmet: ids that no letter had so far. left_out:
    ids whose letters match nothing else that is given.
    """

    ids: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    older_than: int | None = None
    newer_than: int | None = None
    unmet: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    @property
    def is_everything(self) -> bool:
        return not self.ids and not self.reasons and self.older_than is None and self.newer_than is None

    def require(self, *, is_all: bool) -> None:
        """is_all: whether everything is meant. Raises CommandError where nothing is chosen, or everything and some."""
        if self.is_everything and not is_all:
            raise CommandError(
                "which letters? Choose them by --id, --reason, --older-than, --newer-than or --file, or give --all"
            )
        if is_all and not self.is_everything:
            raise CommandError("--all is all letters: leave out the options that choose some")

    def unmet_remarks(self, *, is_all_read: bool) -> list[str]:
        """Lines on the ids that chose no letter; none where all did."""
        remarks = []
        if self.unmet:
            where = "No letter has" if is_all_read else "No letter that was read has"
            remarks.append(f"{where} {_these_ids(self.unmet)}.")
        if self.left_out:
            remarks.append(f"Another option leaves out the letter with {_these_ids(self.left_out)}.")
        return remarks

    def takes(self, opened: OpenedLetter, now_ms: int) -> bool:
        """now_ms: epoch milliseconds, on the clock that stamped the letter."""
        matched = self.ids.intersection([opened.letter.message_id, *opened.event_ids])
        if self.ids and not matched:
            return False
        is_taken = self._takes(opened.letter, now_ms)
        if is_taken:
            self.left_out.difference_update(matched)
        else:
            self.left_out.update(matched & self.unmet)
        self.unmet.difference_update(matched)
        return is_taken

    def _takes(self, letter: Letter, now_ms: int) -> bool:
        """Whatever ids are given."""
        age = (now_ms - letter.sent_ms) / 1000
        if self.older_than is not None and age <= self.older_than:
            return False
        if self.newer_than is not None and age >= self.newer_than:
            return False
        return not self.reasons or (letter.reason or WITHOUT_REASON) in self.reasons


def _these_ids(ids: Collection[str]) -> str:
    return f"{'this id' if len(ids) == 1 else 'these ids'}: {_listed_names(ids)}"


def _listed_names(ids: Collection[str]) -> str:
    shown = ", ".join(sorted(ids)[:_MOST_NAMES])
    return shown if len(ids) <= _MOST_NAMES else f"{shown} and {len(ids) - _MOST_NAMES:,} more"


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose letters; it is called with `selection`."""

    @functools.wraps(function)
    def command(
        ids: Collection[str],
        reasons: Collection[str],
        older_than: int | None,
        newer_than: int | None,
        file: Path | None,
        **others: Any,
    ) -> Any:
        return function(selection=select(ids, reasons, older_than, newer_than, file), **others)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def select(
    ids: Collection[str] = (),
    reasons: Collection[str] = (),
    older_than: int | None = None,
    newer_than: int | None = None,
    file: Path | None = None,
) -> Selection:
    """Raises CommandError for a file without ids."""
    chosen = frozenset(ids)
    if file is not None:
        listed = frozenset(_listed(file))
        if not listed:
            raise CommandError(f"{file} lists no ids: one a line, or the JSON lines of `inspect --json` or `drop`")
        chosen |= listed
    return Selection(chosen, frozenset(reasons), older_than, newer_than, set(chosen))


def _listed(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for line in lines:
                text = line.strip()
                if text:
                    yield from _ids_in(text)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from None


def _ids_in(text: str) -> Iterator[str]:
    """The message id of a JSON line, else its event id; a line that is no JSON object is an id."""
    value: Any = None
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        yield text
    elif isinstance(message_id := value.get("message_id"), str):
        yield message_id
    elif isinstance(event_id := value.get("event_id"), str):
        yield event_id
