"""What DynamoDB's expressions have in common: their tokens, placeholders and ways to values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path as File

from tests.exploration.paths import Operand, Path, Values
from tests.exploration.values import Malformed

Check = Callable[[Values], None]

_TOKEN = re.compile(r"\s*(?:(<>|<=|>=|[=<>(),.\[\]+-]|[#:]?[A-Za-z0-9_]+)|(\S))")
_MOST_BYTES = 4096


class Parser:
    """Reads one expression. used: the placeholders that it names; checks: what its values have to be like."""

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        if len(text.encode()) > _MOST_BYTES:
            raise Malformed("Expression size has exceeded the maximum allowed size")
        self._tokens = [found for found, _ in _tokens(text)] + [""]
        self._at = 0
        self._names = names
        self.used: set[str] = set()
        self.checks: list[Check] = []

    # --- tokens

    @property
    def token(self) -> str:
        return self._tokens[self._at]

    @property
    def word(self) -> str:
        return self.token.upper()

    def next(self) -> str:
        token = self.token
        self._at += 1
        if not token:
            raise Malformed("Syntax error: the expression ends too early")
        return token

    def take(self, *words: str) -> str | None:
        if self.word not in words:
            return None
        return self.next().upper()

    def expect(self, word: str) -> None:
        if self.take(word) is None:
            raise Malformed(f"Syntax error; token: {self.token!r}, expected: {word}")

    def value(self) -> Operand:
        token = self.next()
        if token[0] != ":":
            raise Malformed(f"Syntax error; token: {token!r}, expected: a value")
        self.used.add(token)
        return lambda item, values: values[token]

    def path(self) -> Path:
        steps: list[str | int] = [self._name()]
        while True:
            if self.take("."):
                steps.append(self._name())
            elif self.take("["):
                index = self.next()
                if not index.isdigit():
                    raise Malformed(f"Syntax error; token: {index!r}, expected: an index")
                steps.append(int(index))
                self.expect("]")
            else:
                return tuple(steps)

    def _name(self) -> str:
        token = self.next()
        if token[0] == "#":
            self.used.add(token)
            if token not in self._names:
                raise Malformed(f"An expression attribute name used in the document path is not defined: {token}")
            return self._names[token]
        if not token[0].isalpha():
            raise Malformed(f"Syntax error; token: {token!r}, expected: a name")
        if token.upper() in reserved_words():
            raise Malformed(f"Attribute name is a reserved keyword; reserved keyword: {token}")
        return token


@cache
def reserved_words() -> frozenset[str]:
    """Amazon DynamoDB Developer Guide, "Reserved words", as moto lists them."""
    moto = find_spec("moto")
    assert moto is not None and moto.origin is not None
    words = File(moto.origin).parent / "dynamodb" / "parsing" / "reserved_keywords.txt"
    return frozenset(words.read_text().split())


def _tokens(text: str) -> list[tuple[str, str]]:
    found = _TOKEN.findall(text)
    for _, other in found:
        if other:
            raise Malformed(f"Syntax error; token: {other!r}")
    return found
