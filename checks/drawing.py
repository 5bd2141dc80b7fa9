"""The picture of the README, which is drawn from text."""

from __future__ import annotations

from pathlib import Path

from checks.picture import drawn_from
from checks.problem import at
from checks.tree import Tree

TEXT, PICTURE = "docs/flow.toml", "docs/flow.svg"


def problems(tree: Tree) -> list[str]:
    """Whether the picture is the one that its text gives."""
    if tree.texts.get(PICTURE) == drawn_from(tree.texts[TEXT]):
        return []
    return [at(PICTURE, 1, f"the picture is not what {TEXT} says: run make docs")]


def write(tree: Tree, root: Path) -> list[str]:
    """Draw it again if it differs; the paths that were written."""
    if not problems(tree):
        return []
    (root / PICTURE).write_text(drawn_from(tree.texts[TEXT]))
    return [PICTURE]
