"""Planted faults: patches of the product's code, each with what it does to users and the tests that must catch it.

A patch file begins with one sentence that says what the fault does, then a line for each test that must catch it,
then the unified diff, with paths from the checkout's root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PATCHES = Path(__file__).parent / "patches"
_CAUGHT_BY = "caught by: "
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class NotApplicable(ValueError):
    """The text that the patch changes is not in the code; the message says where it was looked for."""


@dataclass(frozen=True)
class Hunk:
    """One change. line: where it begins in the code that the patch was made from, counted from 1."""

    line: int
    before: Sequence[str]
    after: Sequence[str]

    @property
    def changed(self) -> int:
        """How many lines it takes away or adds, the larger of the two."""
        return max(len(self.before), len(self.after)) - _kept(self.before, self.after)


@dataclass(frozen=True)
class Change:
    """The changes of one file. path: from the checkout's root."""

    path: str
    hunks: Sequence[Hunk]

    def apply(self, text: str) -> str:
        """The text with the fault in it. Raises NotApplicable."""
        lines = text.splitlines(keepends=True)
        moved = 0
        for hunk in self.hunks:
            at = _find(lines, hunk, hunk.line - 1 + moved, self.path)
            lines[at : at + len(hunk.before)] = hunk.after
            moved += len(hunk.after) - len(hunk.before)
        return "".join(lines)


@dataclass(frozen=True)
class Fault:
    """does: what it does to users, one sentence. tests: pytest's ids of those that must catch it, each of them."""

    name: str
    does: str
    tests: Sequence[str]
    changes: Sequence[Change]


def read_faults(folder: Path = PATCHES) -> list[Fault]:
    """All faults, by name. Raises ValueError for a file that is no patch of this form."""
    return [read_fault(path) for path in sorted(folder.glob("*.patch"))]


def read_fault(path: Path) -> Fault:
    """The fault that a patch file holds. Raises ValueError."""
    does, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    tests = [line.removeprefix(_CAUGHT_BY).strip() for line in lines if line.startswith(_CAUGHT_BY)]
    changes = list(_changes(lines))
    if not changes or not all(change.hunks for change in changes):
        raise ValueError(f"{path.name} holds no change")
    return Fault(path.stem, does.strip(), tests, changes)


def _changes(lines: Iterable[str]) -> Iterator[Change]:
    path, hunks, hunk = "", list[Hunk](), None
    for line in lines:
        if line.startswith("--- "):
            if path:
                yield Change(path, hunks)
            path, hunks, hunk = line.removeprefix("--- ").strip().removeprefix("a/"), [], None
        elif line.startswith("+++ "):
            continue
        elif found := _HUNK.match(line):
            hunk = (list[str](), list[str]())
            hunks.append(Hunk(int(found[1]), *hunk))
        elif hunk is not None:
            mark, text = (" ", line) if line == "\n" else (line[0], line[1:])  # editors strip the mark of an empty line
            for side, marks in zip(hunk, (" -", " +"), strict=True):
                if mark in marks:
                    side.append(text)
    if path:
        yield Change(path, hunks)


def _find(lines: Sequence[str], hunk: Hunk, expected: int, path: str) -> int:
    """Where the lines are that a hunk changes: as expected, else where they have moved to; not one place of several."""
    size = len(hunk.before)
    places = [at for at in range(len(lines) - size + 1) if list(lines[at : at + size]) == hunk.before]
    if expected in places:
        return expected
    if len(places) != 1:
        raise NotApplicable(f"{path}: its lines {'are in several places' if places else 'are no longer there'}")
    return places[0]


def _kept(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines at the beginning and at the end are the same."""
    least = min(len(before), len(after))
    head = next((index for index in range(least) if before[index] != after[index]), least)
    rest = least - head
    return head + next((index for index in range(rest) if before[-1 - index] != after[-1 - index]), rest)
