"""The pages of this project and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from local.terraform import CHECKOUT

# Where pages lie; what is made on a machine (.venv, build) has pages of others.
PAGES = ("*.md", "docs/**/*.md", "modules/*/*.md", "examples/*/*.md", "tests/**/*.md", ".github/**/*.md")
SHELLS = ("bash", "console", "sh", "shell")


@dataclass(frozen=True)
class Block:
    """A fenced block; its line is that of the fence."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def name(self) -> str:
        """A name for a folder, a Python module or a Terraform module."""
        return re.sub(r"\W+", "_", self.where).lower()


def pages() -> list[str]:
    """All pages, by their paths in the checkout."""
    return sorted({path.relative_to(CHECKOUT).as_posix() for pattern in PAGES for path in CHECKOUT.glob(pattern)})


def text_of(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    return [
        Block(page, token.map[0] + 1, token.info.strip(), token.content)
        for token in MarkdownIt().parse(text_of(page))
        if token.type in ("fence", "code_block") and token.map
    ]


def blocks(*languages: str) -> list[Block]:
    """All blocks, or those of some languages, in the order of pages."""
    found = [block for page in pages() for block in blocks_of(page)]
    return [block for block in found if block.language in languages] if languages else found


def each(some: Iterable[Block]) -> pytest.MarkDecorator:
    """Parametrizes a test with `block`, named by page and line."""
    return pytest.mark.parametrize("block", list(some), ids=lambda block: block.where)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
