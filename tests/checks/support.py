"""What the tests of the checks share: a repository of a few lines."""

from __future__ import annotations

from checks.hcl.module import Module, modules_of
from checks.tree import Tree


def module(text: str, folder: str = "", file: str = "main.tf") -> Module:
    """A module of one file; the root module, unless a folder is named."""
    return modules_of(Tree({f"{folder}/{file}" if folder else file: text}))[0]
