"""Takes shell blocks apart into commands, without running anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs.pages import SHELLS, Block, blocks

PUNCTUATION = "();<>|&"
SUBSTITUTION = re.compile(r"\$\(((?:[^()']|'[^']*')*)\)")
ASSIGNMENT = re.compile(r"\w+=")
FUNCTION = re.compile(r"^(\w+)\(\) *\{")


@dataclass(frozen=True)
class Command:
    """One command of a block: its words, and the folder that the reader is in, as far as the block says."""

    block: Block
    words: tuple[str, ...]
    folder: str

    @property
    def line(self) -> str:
        return shlex.join(self.words)


def shell_commands() -> list[Command]:
    return [command for block in blocks(*SHELLS) for command in commands_of(block)]


def commands_of(block: Block) -> list[Command]:
    """All commands, those within $(…) too, but not calls of functions that the block defines."""
    folder = block.page.rpartition("/")[0] if block.page.startswith("examples/") else ""
    functions = {found[1] for line in block.text.splitlines() if (found := FUNCTION.match(line))}
    commands = []
    for words in simple_commands(block.text):
        if words[0] == "cd":
            folder = words[1]
        if words[0] not in functions:
            commands.append(Command(block, tuple(words), folder))
    return commands


def simple_commands(text: str) -> Iterator[list[str]]:
    text = re.sub(r"<([a-z_]+)>", r"PLACEHOLDER_\1", text.replace("\\\n", " "))
    for line in text.splitlines():
        # In a console block, what follows no prompt is output; in the others nothing has a prompt.
        yield from commands_of_line(line.removeprefix("$ "))


def commands_of_line(line: str) -> Iterator[list[str]]:
    within = SUBSTITUTION.search(line)
    if within:
        yield from commands_of_line(within[1])
        yield from commands_of_line(line[: within.start()] + "SUBSTITUTED" + line[within.end() :])
        return
    lexer = shlex.shlex(FUNCTION.sub("", line), posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace_split = True
    words: list[str] = []
    is_file = False
    for word in [*lexer, ";"]:
        if not set(word) <= set(PUNCTUATION) or not word:
            words += [] if is_file else [word]
            is_file = False
            continue
        is_file = bool(set(word) & set("<>"))
        if is_file:
            continue
        while words and (ASSIGNMENT.match(words[0]) or words[0] in ("{", "}")):
            words = words[1:]
        if words:
            yield words
        words = []
