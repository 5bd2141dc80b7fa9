from __future__ import annotations

from pathlib import Path

import pytest

from checks import version
from checks.tree import Tree, read

GOOD = {
    "pyproject.toml": '[project]\nversion = "1.2.0"\n',
    "CHANGELOG.md": "# All\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n?ref=v1.1.0\n\n## [1.1.0] - 2025-01-31\n",
    "README.md": "`?ref=v1.2.0`, or `?ref=<tag>`\n",
}


def test_one_version_everywhere_passes() -> None:
    assert version.problems(Tree(GOOD)) == []


@pytest.mark.parametrize(
    ("path", "good", "bad", "problem"),
    [
        (
            "CHANGELOG.md",
            "## [1.2.0]",
            "## [1.3.0]",
            "CHANGELOG.md:5: the newest version is 1.3.0, but pyproject.toml says 1.2.0",
        ),
        (
            "README.md",
            "v1.2.0",
            "v1.2.1",
            "README.md:1: ref=v1.2.1 is not the version: write ref=v1.2.0, as pyproject.toml has it",
        ),
        (
            "README.md",
            "v1.2.0",
            "1.2.0",
            "README.md:1: ref=1.2.0 is not the version: write ref=v1.2.0, as pyproject.toml has it",
        ),
    ],
)
def test_another_version_is_found(path: str, good: str, bad: str, problem: str) -> None:
    assert good in GOOD[path]
    assert version.problems(Tree(GOOD | {path: GOOD[path].replace(good, bad)})) == [problem]


def test_a_missing_changelog_and_one_without_a_release_are_found() -> None:
    without = {path: text for path, text in GOOD.items() if path != "CHANGELOG.md"}
    assert version.problems(Tree(without)) == [
        "CHANGELOG.md:1: this file is missing: write what each version changed, as Keep a Changelog has it"
    ]
    assert version.problems(Tree(GOOD | {"CHANGELOG.md": "## [Unreleased]\n"})) == [
        "CHANGELOG.md:1: no version is released: write a heading ## [1.2.0] - <date>"
    ]


def test_writing_sets_the_references_and_leaves_history_alone(tmp_path: Path) -> None:
    for path, text in (GOOD | {"README.md": "a?ref=v1.1.0 b.git@v1.1.0\n"}).items():
        (tmp_path / path).write_text(text)
    assert version.write(read(tmp_path, sorted(GOOD)), tmp_path) == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "a?ref=v1.2.0 b.git@v1.2.0\n"
    assert (tmp_path / "CHANGELOG.md").read_text() == GOOD["CHANGELOG.md"]
