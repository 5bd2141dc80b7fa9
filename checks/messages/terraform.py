"""What a plan says to an input that it refuses: the error messages of validations, pre- and postconditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from checks.messages.message import BLANK, Message
from checks.problem import line_of

_BEGINNING = re.compile(r'^ *error_message *= *"', re.MULTILINE)
_BLOCK = re.compile(r'^(variable|resource|data|check) "(\w+)"', re.MULTILINE)
# What a validation is about, where it stands in no variable's block.
_NAMED_FIRST = re.compile(r"(\w+)\.")


def plan_messages(texts: Mapping[str, str]) -> Iterator[tuple[str, Message]]:
    """Each message with the variable that it is about. texts: of Terraform files, by path."""
    for path, text in texts.items():
        for match in _BEGINNING.finditer(text):
            said = _quoted(text, match.end())
            yield _variable(text, match.start(), said), Message(said, path, line_of(text, match.start()))


def _quoted(text: str, start: int) -> str:
    """The string that begins here, with BLANK for each ${…}; strings within these have quotes of their own."""
    said, position = "", start
    while text[position] != '"':
        if text.startswith("${", position):
            position = _end_of_template(text, position + 2)
            said += BLANK
        elif text[position] == "\\":
            said += text[position + 1]
            position += 2
        else:
            said += text[position]
            position += 1
    return said


def _end_of_template(text: str, position: int) -> int:
    """Behind the brace that closes it."""
    depth = 1
    while depth:
        if text[position] == '"':
            position = _end_of_string(text, position + 1)
            continue
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        position += 1
    return position


def _end_of_string(text: str, position: int) -> int:
    while text[position] != '"':
        if text.startswith("${", position):
            position = _end_of_template(text, position + 2)
        else:
            position += 2 if text[position] == "\\" else 1
    return position + 1


def _variable(text: str, position: int, said: str) -> str:
    kind, name = _BLOCK.findall(text, 0, position)[-1]
    if kind == "variable":
        return str(name)
    named = _NAMED_FIRST.match(said)
    return named[1] if named else "function"
