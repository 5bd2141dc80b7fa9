"""Message groups of a FIFO queue, as its letters are read."""

from __future__ import annotations

from collections.abc import Sequence

from idempotent_consumer_cli.letter import Letter


class Groups:
    """Knows which groups had a letter so far. is_fifo: on a standard queue a group means nothing."""

    def __init__(self, *, is_fifo: bool) -> None:
        self._is_fifo = is_fifo
        self._seen: set[str] = set()

    def behind(self, page: Sequence[Letter]) -> set[str]:
        """The message ids of those of a page that stand behind an earlier letter of their group."""
        return {letter.message_id for letter in page if self._is_behind(letter)}

    def _is_behind(self, letter: Letter) -> bool:
        group = letter.group if self._is_fifo else None
        if group is None:
            return False
        is_behind = group in self._seen
        self._seen.add(group)
        return is_behind
