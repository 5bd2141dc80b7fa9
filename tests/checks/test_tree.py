from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks import tree
from checks.problem import CannotRun


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in the place of the checkout."""
    monkeypatch.setattr(tree, "CHECKOUT", tmp_path)
    tree.checkout.cache_clear()
    yield tmp_path
    tree.checkout.cache_clear()


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_the_files_are_those_that_git_holds_or_would_hold_if_they_are_still_there(folder: Path) -> None:
    git(folder, "init")
    (folder / "docs").mkdir()
    for name, content in {".gitignore": b"*.log\n", "docs/a.md": b"One\r\n", "a.zip": b"\xff", "gone.md": b""}.items():
        (folder / name).write_bytes(content)
    git(folder, "add", ".gitignore", "gone.md")
    (folder / "a.log").write_text("ignored")
    (folder / "gone.md").unlink()
    found = tree.checkout()
    assert found == tree.Tree({".gitignore": "*.log\n", "docs/a.md": "One\r\n"}, frozenset({"a.zip"}))
    assert [found.exists(path) for path in ("docs", "a.zip", "docs/a.md", "a.log", "gone.md")] == [True] * 3 + [
        False
    ] * 2
    assert found.matching("*.md", "*.zip") == ["docs/a.md"]


def test_a_folder_that_is_no_checkout_cannot_be_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    with pytest.raises(CannotRun, match="git does not list the files of this checkout: fatal: not a git repository"):
        tree.checkout()


def test_a_folder_that_another_repository_ignores_cannot_be_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(folder, "init")
    (folder / ".gitignore").write_text("vendor/\n")
    (folder / "vendor").mkdir()
    (folder / "vendor/main.tf").write_text("")
    monkeypatch.setattr(tree, "CHECKOUT", folder / "vendor")
    with pytest.raises(CannotRun, match="which another repository may ignore"):
        tree.checkout()
