"""What the demo and the benchmark show: live bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_PLAIN_SECONDS = 5.0


class Screen:
    """Steps with their progress; use it as a context manager."""

    def __init__(self) -> None:
        # A log takes long lines; a terminal says its own width.
        self.console = Console(width=None if sys.stdout.isatty() else 110)
        self._is_live = self.console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=self.console,
            disable=not self._is_live,
        )

    def __enter__(self) -> Screen:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def step(self, title: str, total: int) -> Step:
        """Begin a step of `total` parts."""
        return Step(self, self._progress, title, total)


@contextmanager
def ticking(show: Callable[[], None], seconds: float = 0.5) -> Iterator[None]:
    """Call `show` all along while the block runs."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(seconds):
            show()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Step:
    """One step on the screen."""

    def __init__(self, screen: Screen, progress: Progress, title: str, total: int) -> None:
        self._screen = screen
        self._progress = progress
        self._title = title
        self._total = total
        self._since = self._said = time.monotonic()
        self._task: TaskID = progress.add_task(title, total=total or None, note="")
        if not screen._is_live:
            screen.say(f"{title}…")

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """`done` parts of the step are done; `total` when it was not known before."""
        self._total = total or self._total
        self._progress.update(self._task, completed=done, total=self._total or None, note=note)
        if not self._screen._is_live and time.monotonic() - self._said >= _PLAIN_SECONDS:
            self._said = time.monotonic()
            self._screen.say(f"  {done}/{self._total} after {self._said - self._since:.0f} s  {note}".rstrip())

    def finish(self, result: str) -> None:
        """The step is done; `result` stays on the screen."""
        self._progress.remove_task(self._task)
        self._screen.say(f"[green]✓[/] {self._title}: {result} [dim]({time.monotonic() - self._since:.1f} s)[/]")
