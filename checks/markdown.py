"""What a Markdown page links to, what it has in backticks, and the anchors that GitHub gives its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Page:
    """Links (images too) and code spans, each with its line, and all anchors."""

    links: tuple[tuple[int, str], ...]
    codes: tuple[tuple[int, str], ...]
    anchors: frozenset[str]


def page(text: str) -> Page:
    """Read a page. Code blocks are left out: they are not links, and other tests run them."""
    links: list[tuple[int, str]] = []
    codes: list[tuple[int, str]] = []
    anchors: list[str] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            anchors.append(_anchor(token, anchors))
        for line, inner in _inner(token):
            if inner.type == "code_inline":
                codes.append((line, inner.content))
            elif inner.type in ("link_open", "image"):
                links.append((line, str(inner.attrGet("href") or inner.attrGet("src"))))
            elif inner.type in ("html_inline", "html_block"):
                html = _Html(inner.content)
                links += ((line, target) for target in html.targets)
                anchors += html.anchors
    return Page(tuple(links), tuple(codes), frozenset(anchors))


def _inner(token: Token) -> Iterator[tuple[int, Token]]:
    """The tokens in a block, each with its line; a row of a table is one line."""
    line = (token.map or [0])[0] + 1
    if token.type == "html_block":
        yield line, token
    for inner in token.children or ():
        if inner.type in ("softbreak", "hardbreak"):
            line += 1
        yield line, inner


def _anchor(heading: Token, taken: list[str]) -> str:
    """Lower case, without punctuation, with hyphens for spaces; a second one of the same name ends in -1."""
    text = "".join(inner.content for inner in heading.children or () if inner.type in ("text", "code_inline"))
    anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    count = sum(other == anchor or re.fullmatch(rf"{re.escape(anchor)}-\d+", other) is not None for other in taken)
    return f"{anchor}-{count}" if count else anchor


class _Html(HTMLParser):
    """The targets and anchors of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src", "srcset"):
                self.targets.append(value)
            elif value and name in ("id", "name"):
                self.anchors.append(value)
