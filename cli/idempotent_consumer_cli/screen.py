"""What a command shows: tables and a live progress bar for people, JSON for programs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

# Without a terminal lines are not to be folded: they are searched and cut by other programs.
_WIDE = 200


class Bar:
    """One line of progress: how much is done, of how much, and what has come of it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """total: None where it stays as it was."""
        self._progress.update(self._task, completed=done, total=total, note=note)


class Screen:
    """Results go to standard output, progress and remarks to standard error.

    as_json: results are JSON, one document for a command or, from `emit`, one a line.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # An id that the terminal's encoding lacks must not end the command.
                stream.reconfigure(errors="backslashreplace")
        width = None if sys.stdout.isatty() else _WIDE
        self._out = Console(width=width, highlight=False, emoji=False, soft_wrap=True)
        self._err = Console(stderr=True, width=width, highlight=False, emoji=False)
        self._is_bar_shown = False

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table for people; nothing with --json."""
        if self.as_json:
            return
        table = Table(title=title, title_justify="left", title_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(_text(cell) for cell in row))
        self._out.print(table)

    def say(self, text: str) -> None:
        """A line of the result for people; nothing with --json."""
        if not self.as_json:
            self._write(_lines(text))

    def note(self, text: str) -> None:
        """A remark, which is no part of the result."""
        self._err.print(_lines(text), markup=False)

    def emit(self, value: Mapping[str, Any]) -> None:
        """One line of JSON, in ASCII, so that no id steers a terminal; nothing without --json."""
        if self.as_json:
            self._write(json.dumps(value, default=str))

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Bar]:
        """A live bar on standard error, where that is a terminal; elsewhere nothing."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        is_shown = self._err.is_terminal
        with Progress(
            *columns,
            console=self._err,
            transient=True,
            disable=not is_shown,
            # Else all that is printed meanwhile would go to standard error, JSON for a pipe as well.
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            self._is_bar_shown = is_shown
            try:
                yield Bar(progress, progress.add_task(what, total=total, note=""))
            finally:
                self._is_bar_shown = False

    def _write(self, line: str) -> None:
        """A line of the result. On a terminal it goes where the bar knows of it, and stands above the bar."""
        if self._is_bar_shown and self._out.is_terminal:
            self._err.print(line, markup=False, soft_wrap=True)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def printable(text: str) -> str:
    """Text of others, such as an event id, with what could steer a terminal or hide in it written as an escape."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _text(cell: Any) -> Text:
    if cell is None:
        return Text("-")
    if isinstance(cell, int) and not isinstance(cell, bool):
        return Text(f"{cell:,}")
    return Text(printable(str(cell)))
