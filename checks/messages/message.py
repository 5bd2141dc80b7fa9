"""A message that a user can meet, and how the page of errors writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Where a part is put in at run time.
BLANK = "<…>"
_NAMED_BLANK = re.compile(r"<[^<>\s][^<>\n]*>")


@dataclass(frozen=True)
class Message:
    """text: with BLANK for each part that is put in. path, line: where the code has it."""

    text: str
    path: str
    line: int


def normal(text: str) -> str:
    """The form in which the code and the page are compared: blanks without names, no layout."""
    return " ".join(_NAMED_BLANK.sub(BLANK, text).split())
