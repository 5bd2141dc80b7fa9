"""How a check says what is wrong."""

from __future__ import annotations


class CannotRun(Exception):
    """A check could not be made; the message says why and what to do."""


def at(path: str, line: int, what: str) -> str:
    """One problem, as editors and terminals open it."""
    return f"{path}:{line}: {what}"


def line_of(text: str, position: int) -> int:
    """The line, from 1, of a position in a text."""
    return text.count("\n", 0, position) + 1
