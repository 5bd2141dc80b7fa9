"""Rules for all text files: clean lines, no placeholder words, no places of one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checks.problem import at, line_of
from checks.tree import Tree

# Written so that this file does not hold what it looks for.
_PLACEHOLDER = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b")
_MACHINE = re.compile(r"(?<![\w.-])/(?:home|root|Users)/[\w.-]+")
# A made-up user, as documentation and tests have them.
_MADE_UP = re.compile(r"/(?:home|Users)/(?:you|me|user|someone|alice)\b")
_TRAILING = re.compile(r"[ \t]+$", re.M)
# Patches keep the spaces of what they change, and make needs its tabs.
_WITH_SPACES = ("*.patch",)
_WITH_TABS = ("Makefile", "*.patch")


def problems(tree: Tree) -> list[str]:
    """All that is wrong with lines and words."""
    with_spaces, with_tabs = tree.matching(*_WITH_SPACES), tree.matching(*_WITH_TABS)
    found: list[str] = []
    for path, text in sorted(tree.texts.items()):
        if path not in with_spaces:
            found += _each(path, text, _TRAILING, "there is space at the end of the line: remove it")
        if path not in with_tabs:
            found += _each(path, text, re.compile(r"\t"), "there is a tab: use spaces")
        found += _ends(path, text, may_be_empty=path in with_spaces)
        found += _each(path, text, _PLACEHOLDER, "this is a placeholder: do it, or say what is missing in a sentence")
        found += _places(path, text)
    return found


def _each(path: str, text: str, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    """One problem for each line that has it."""
    lines = {line_of(text, match.start()) for match in pattern.finditer(text)}
    return (at(path, line, what) for line in sorted(lines))


def _places(path: str, text: str) -> Iterator[str]:
    for match in _MACHINE.finditer(text):
        if not _MADE_UP.match(match[0]):
            what = f"{match[0]} is a place of one machine: name it relative to the project"
            yield at(path, line_of(text, match.start()), what)


def _ends(path: str, text: str, *, may_be_empty: bool) -> Iterator[str]:
    if "\r" in text:
        yield at(path, line_of(text, text.index("\r")), "lines end with a carriage return: end them with a line feed")
    if text and not text.endswith("\n"):
        yield at(path, line_of(text, len(text)), "the file does not end with a newline: add one")
    elif text.endswith("\n\n") and not may_be_empty:
        yield at(path, line_of(text, len(text)) - 1, "the file ends with an empty line: remove it")
