"""The files of the repository."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from checks.problem import CannotRun

CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Tree:
    """Paths, relative and with slashes, to contents. What is no UTF-8 is in `binaries`."""

    texts: Mapping[str, str]
    binaries: frozenset[str] = frozenset()

    @functools.cached_property
    def folders(self) -> frozenset[str]:
        parents = {parent.as_posix() for path in (*self.texts, *self.binaries) for parent in Path(path).parents}
        return frozenset(parents)

    def exists(self, path: str) -> bool:
        """Whether this is a file or a folder."""
        return path in self.texts or path in self.binaries or path in self.folders

    def matching(self, *patterns: str) -> list[str]:
        """The text files that match a pattern; a * matches slashes too."""
        return sorted(path for path in self.texts if any(fnmatchcase(path, pattern) for pattern in patterns))


@functools.cache
def checkout() -> Tree:
    """What git tracks, or would if it were added."""
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    if answer.returncode:
        raise CannotRun(f"git does not list the files of this checkout: {answer.stderr.decode().strip()}")
    names = [name for name in answer.stdout.decode().split("\0") if name]
    if not names:
        raise CannotRun("git lists no file of this folder, which another repository may ignore: check a clone")
    return read(CHECKOUT, names)


def read(root: Path, names: list[str]) -> Tree:
    """Read these files. One that is listed and gone is left out: git lists a file until its removal is added."""
    texts: dict[str, str] = {}
    binaries: set[str] = set()
    for name in names:
        if not (root / name).is_file():
            continue
        content = (root / name).read_bytes()
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            binaries.add(name)
    return Tree(texts, frozenset(binaries))
