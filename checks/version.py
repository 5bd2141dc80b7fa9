"""The version stands in pyproject.toml, and everything else that names one says the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from checks.problem import at, line_of
from checks.tree import Tree

SOURCE = "pyproject.toml"
CHANGELOG = "CHANGELOG.md"
_RELEASE = re.compile(r"^## \[(?P<version>[^\]]+)\]", re.M)
# As Terraform and pip name a tag of a repository.
_REFERENCE = re.compile(r"(?P<how>\bref=|\.git@)v?[0-9][\w.+-]*")


def problems(tree: Tree) -> list[str]:
    """Where another version is written than the project's."""
    version = version_of(tree)
    return [*_changelog(version, tree), *_references(version, tree)]


def write(tree: Tree, root: Path) -> list[str]:
    """Set all `?ref=v…` and `.git@v…` to the project's version; the paths that were written."""
    written = []
    for path, text in _with_references(tree):
        if (new := _REFERENCE.sub(rf"\g<how>v{version_of(tree)}", text)) != text:
            (root / path).write_text(new)
            written.append(path)
    return written


def version_of(tree: Tree) -> str:
    return str(tomllib.loads(tree.texts[SOURCE])["project"]["version"])


def _changelog(version: str, tree: Tree) -> Iterator[str]:
    text = tree.texts.get(CHANGELOG)
    if text is None:
        yield at(CHANGELOG, 1, "this file is missing: write what each version changed, as Keep a Changelog has it")
        return
    releases = [match for match in _RELEASE.finditer(text) if match["version"].lower() != "unreleased"]
    if not releases:
        yield at(CHANGELOG, 1, f"no version is released: write a heading ## [{version}] - <date>")
    elif releases[0]["version"] != version:
        where = line_of(text, releases[0].start())
        yield at(CHANGELOG, where, f"the newest version is {releases[0]['version']}, but {SOURCE} says {version}")


def _references(version: str, tree: Tree) -> Iterator[str]:
    for path, text in _with_references(tree):
        for match in _REFERENCE.finditer(text):
            right = f"{match['how']}v{version}"
            if match[0] != right:
                what = f"{match[0]} is not the version: write {right}, as {SOURCE} has it"
                yield at(path, line_of(text, match.start()), what)


def _with_references(tree: Tree) -> list[tuple[str, str]]:
    """What users copy a source from; the versions in the changelog are history."""
    return [(path, tree.texts[path]) for path in tree.matching("*.md", "*.tf") if path != CHANGELOG]
