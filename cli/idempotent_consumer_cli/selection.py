"""Which dead letters a command is for."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from idempotent_consumer_cli.durations import DURATION
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.opened import OpenedLetter

WITHOUT_REASON = "none"

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


@dataclass(frozen=True)
class Selection:
    """Letters that match all that is given; of several ids, or reasons, one.

    older_than, newer_than: seconds since the letter's SentTimestamp. unmet: ids that no letter had so far.
    """

    ids: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    older_than: int | None = None
    newer_than: int | None = None
    unmet: set[str] = field(default_factory=set)

    @property
    def is_everything(self) -> bool:
        return not self.ids and not self.reasons and self.older_than is None and self.newer_than is None

    def takes(self, opened: OpenedLetter, now_ms: int) -> bool:
        """now_ms: epoch milliseconds, on the clock that stamped the letter."""
        letter = opened.letter
        age = (now_ms - letter.sent_ms) / 1000
        if self.older_than is not None and age <= self.older_than:
            return False
        if self.newer_than is not None and age >= self.newer_than:
            return False
        if self.reasons and (letter.reason or WITHOUT_REASON) not in self.reasons:
            return False
        if not self.ids:
            return True
        matched = self.ids.intersection([letter.message_id, *opened.event_ids])
        self.unmet.difference_update(matched)
        return bool(matched)


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
        except ValueError:
            value = None
    if not isinstance(value, dict):
        yield text
    elif isinstance(message_id := value.get("message_id"), str):
        yield message_id
    elif isinstance(event_id := value.get("event_id"), str):
        yield event_id
