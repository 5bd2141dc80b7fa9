"""A Terraform file as blocks and attributes, each with its line and its text."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import hcl2
import lark

from checks.problem import CannotRun, line_of

_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n", "\\t": "\t", "$${": "${", "%%{": "%{"}
_COMMENT = ("#", "//", "/*")


@dataclass(frozen=True)
class Attribute:
    """`name = text`; `node` is the parsed expression."""

    name: str
    line: int
    text: str
    node: lark.Tree[lark.Token]

    def words(self) -> str:
        """The value of a string without its quotes or heredoc marks; references stay as they are written."""
        text = self.text.strip()
        if heredoc := re.fullmatch(r"<<-?(\w+)\n(.*?)\n?[ \t]*\1", text, re.S):
            return textwrap.dedent(heredoc[2])
        return re.sub(r'\\["\\nt]|\$\$\{|%%\{', lambda escape: _ESCAPES[escape[0]], text[1:-1])


@dataclass(frozen=True)
class Block:
    """`kind "label" … { … }`."""

    kind: str
    labels: tuple[str, ...]
    line: int
    text: str
    attributes: tuple[Attribute, ...]
    blocks: tuple[Block, ...]

    def attribute(self, name: str) -> Attribute | None:
        return next((found for found in self.attributes if found.name == name), None)

    def everything(self) -> Iterator[Block]:
        """This block and all within it."""
        yield self
        for block in self.blocks:
            yield from block.everything()


@dataclass(frozen=True)
class File:
    """A file; `code` is its text with the comments blanked out, so that positions hold."""

    path: str
    text: str
    code: str
    blocks: tuple[Block, ...]

    def of_kind(self, *kinds: str) -> list[Block]:
        return [block for block in self.blocks if block.kind in kinds]

    def line(self, position: int) -> int:
        return line_of(self.code, position)


@functools.cache
def parse(path: str, text: str) -> File:
    """Parse a file; refuses one that is not HCL."""
    try:
        tree = hcl2.parses_to_tree(text if text.endswith("\n") else f"{text}\n")
    except lark.exceptions.UnexpectedInput as error:
        where = f"{path}:{error.line}" if error.line > 0 else path
        raise CannotRun(f"{where}: this is not HCL; terraform fmt says what is wrong") from None
    code = _without_comments(text, tree)
    body = next(child for child in tree.children if isinstance(child, lark.Tree) and child.data == "body")
    return File(path, text, code, _blocks(body, code))


def _without_comments(text: str, tree: lark.Tree[lark.Token]) -> str:
    code = text
    for token in tree.scan_values(lambda value: isinstance(value, lark.Token)):
        if token.type == "NL_OR_COMMENT" and token.startswith(_COMMENT):
            blank = re.sub(r"[^\n]", " ", str(token))
            code = code[: token.start_pos] + blank + code[token.end_pos :]
    return code


def _children(node: lark.Tree[lark.Token], *names: str) -> list[lark.Tree[lark.Token]]:
    return [child for child in node.children if isinstance(child, lark.Tree) and (not names or child.data in names)]


def _span(node: lark.Tree[lark.Token], code: str) -> str:
    return code[node.meta.start_pos : node.meta.end_pos]


def _blocks(body: lark.Tree[lark.Token], code: str) -> tuple[Block, ...]:
    return tuple(_block(node, code) for node in _children(body, "block"))


def _block(node: lark.Tree[lark.Token], code: str) -> Block:
    kind, *labels = [_span(child, code).strip('"') for child in _children(node, "identifier", "string", "keyword")]
    body = _children(node, "body")[0]
    attributes = tuple(_attribute(child, code) for child in _children(body, "attribute"))
    return Block(kind, tuple(labels), node.meta.line, _span(node, code), attributes, _blocks(body, code))


def _attribute(node: lark.Tree[lark.Token], code: str) -> Attribute:
    name, value = _children(node)[0], _children(node)[-1]
    return Attribute(_span(name, code), node.meta.line, _span(value, code), value)
