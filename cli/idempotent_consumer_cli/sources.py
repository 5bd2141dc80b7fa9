"""Where the letters of a replay come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from idempotent_consumer_cli.dropped import Sent, read_pages, sent_before
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.letters import DeadLetters


class Source(Protocol):
    """total: how many letters there are, roughly; None where that is not known."""

    @property
    def total(self) -> int | None: ...

    def pages(self) -> Iterator[list[Letter]]: ...

    def settle(self, message_ids: Iterable[str]) -> None:
        """These letters have been sent."""


class FromQueue:
    """The dead-letter queue: what has been sent is deleted.

    page: letters received together. is_patient: see `DeadLetters.pages`.
    """

    def __init__(self, dead: DeadLetters, page: int, *, is_patient: bool) -> None:
        self._dead = dead
        self._page = page
        self._is_patient = is_patient

    @property
    def total(self) -> int | None:
        return self._dead.depth.total

    def pages(self) -> Iterator[list[Letter]]:
        return self._dead.pages(self._page, is_patient=self._is_patient)

    def settle(self, message_ids: Iterable[str]) -> None:
        self._dead.remove(message_ids)


class FromFile:
    """A file that `drop` wrote: what has been sent is noted beside it, and not sent again.

    sent: None for a dry run. passed: letters that were sent before.
    """

    total = None
    passed = 0

    def __init__(self, file: Path, consumer_name: str, sent: Sent | None) -> None:
        self._file = file
        self._consumer_name = consumer_name
        self._sent = sent

    def pages(self) -> Iterator[list[Letter]]:
        before = self._sent.ids if self._sent is not None else sent_before(self._file)
        for page in read_pages(self._file, self._consumer_name):
            unsent = [letter for letter in page if letter.message_id not in before]
            self.passed += len(page) - len(unsent)
            if unsent:
                yield unsent

    def settle(self, message_ids: Iterable[str]) -> None:
        if self._sent is not None:
            self._sent.add(message_ids)
