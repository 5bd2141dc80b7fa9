"""The tables of inputs and outputs in the READMEs, which are made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from checks.hcl.module import Module, modules_of
from checks.problem import at, line_of
from checks.tables import markdown
from checks.tree import Tree

_MADE = {"inputs": markdown.inputs, "outputs": markdown.outputs}
AGAIN = "make docs"


def problems(tree: Tree) -> list[str]:
    """Where a README has not the tables that the code gives."""
    return [problem for module in _documented(tree) for problem in _problems_of(module, tree)]


def write(tree: Tree, root: Path) -> list[str]:
    """Rewrite the tables that differ; the paths that were written."""
    written = []
    for module in _documented(tree):
        path = module.path("README.md")
        if path in tree.texts and (text := with_tables(tree.texts[path], module)) != tree.texts[path]:
            (root / path).write_text(text)
            written.append(path)
    return written


def with_tables(text: str, module: Module) -> str:
    """The README with its tables made anew."""
    for name, make in _MADE.items():
        if match := _marked(name, text):
            text = text[: match.start(1)] + f"\n{make(module)}\n\n" + text[match.end(1) :]
    return text


def _documented(tree: Tree) -> Iterator[Module]:
    return (module for module in modules_of(tree) if module.is_library)


def _problems_of(module: Module, tree: Tree) -> Iterator[str]:
    path = module.path("README.md")
    if path not in tree.texts:
        yield at(path, 1, f"this file is missing: describe the module, and run {AGAIN}")
        return
    text = tree.texts[path]
    for name, make in _MADE.items():
        match = _marked(name, text)
        if match is None:
            marks = f"<!-- generated: {name} --> and <!-- end of {name} -->, each on a line of its own"
            yield at(path, 1, f"there is no table of {name}: write {marks}, and run {AGAIN}")
        elif match[1].strip() != make(module):
            yield at(path, line_of(text, match.start()), f"the table of {name} is not what the code says: run {AGAIN}")


def _marked(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"^<!-- generated: {name} -->\n(.*?)^<!-- end of {name} -->$", text, re.M | re.S)
