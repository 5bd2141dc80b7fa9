"""All checks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checks import drawing, hcl, links, messages, shape, tables, tools, version, words
from checks.tree import CHECKOUT, Tree, checkout


@dataclass(frozen=True)
class Check:
    """`run` gives the problems; `write`, where something is generated, rewrites it and gives the paths."""

    name: str
    what: str
    run: Callable[[], list[str]]
    write: Callable[[], list[str]] | None = None
    # Whether it takes neither terraform init nor the network.
    is_fast: bool = True


def _of_tree(problems: Callable[[Tree], list[str]]) -> Callable[[], list[str]]:
    return lambda: problems(checkout())


def _writing(write: Callable[[Tree, Path], list[str]]) -> Callable[[], list[str]]:
    return lambda: write(checkout(), CHECKOUT)


def _of_module(name: str) -> Callable[[], list[str]]:
    """A module that is imported only when it is run."""

    def run() -> list[str]:
        found: list[str] = importlib.import_module(name).problems()
        return found

    return run


# Two at a time: the longest begins first, and while it runs the short ones are told.
CHECKS = (
    Check(
        "checkov", "checkov, with a reason for what it is told to skip", _of_module("checks.security"), is_fast=False
    ),
    Check("mypy", "types of Python, strict", tools.mypy),
    Check("ruff", "lint of Python", tools.ruff),
    Check("ruff-format", "format of Python", tools.ruff_format),
    Check("terraform-fmt", "format of Terraform files", _of_tree(tools.terraform_fmt)),
    Check("hcl", "rules for variables, outputs and resources", _of_tree(hcl.problems)),
    Check("tables", "inputs and outputs in the READMEs", _of_tree(tables.problems), _writing(tables.write)),
    Check("messages", "docs/errors.md has each message", _of_tree(messages.problems), _writing(messages.write)),
    Check(
        "picture", "the README's picture is drawn from its text", _of_tree(drawing.problems), _writing(drawing.write)
    ),
    Check("links", "links, anchors and paths in the documents", _of_tree(links.problems)),
    Check("version", "one version everywhere", _of_tree(version.problems), _writing(version.write)),
    Check("shape", "length of files and functions, unused modules", _of_tree(shape.problems)),
    Check("words", "clean lines, no placeholders, no machine's paths", _of_tree(words.problems)),
    Check("zip", "the function's zip is what its sources give", tools.zip_is_fresh, is_fast=False),
    Check(
        "terraform-validate",
        "terraform validate of every module",
        _of_module("checks.terraform_validate"),
        is_fast=False,
    ),
)
