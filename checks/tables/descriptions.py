"""A variable's description, taken apart: what it is, and what each of its attributes is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """`whole` is the part about the variable, `items` what is said of which attributes, in the order of the author."""

    whole: str
    items: tuple[tuple[tuple[str, ...], str], ...]


def taken_apart(words: str, names: Iterable[str]) -> Description:
    """Read `- name: what it is` items. An item may name several, `- a, b: …`, or go on with another, `… . c: …`."""
    whole, *items = re.split(r"(?:^|\n)- ", words.strip())
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or r"\Z."
    start = re.compile(rf"(?:^|(?<=\. ))((?:{name})(?:, (?:{name}))*): ")
    told: list[tuple[tuple[str, ...], str]] = []
    for item in (one_line(item) for item in items):
        _, *parts = start.split(item)
        for named, text in zip(parts[::2], parts[1::2], strict=True):
            told.append((tuple(named.split(", ")), text.strip()))
    return Description(one_line(whole), tuple(told))


def one_line(text: str) -> str:
    return " ".join(text.split())
