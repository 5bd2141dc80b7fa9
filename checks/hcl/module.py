"""The Terraform modules of the repository."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from checks.hcl.source import Block, File, parse
from checks.tree import Tree


@dataclass(frozen=True)
class Module:
    """The files of one folder; the root's folder is the empty string."""

    folder: str
    files: tuple[File, ...]

    @property
    def is_library(self) -> bool:
        """Whether it is what users call: the root module or one of modules/."""
        return self.folder == "" or self.folder.startswith("modules/")

    @property
    def is_shipped(self) -> bool:
        """Whether users read it: the library and its examples."""
        return self.is_library or self.folder.startswith("examples/")

    @property
    def code(self) -> str:
        return "\n".join(file.code for file in self.files)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def blocks(self, *kinds: str) -> Iterator[tuple[File, Block]]:
        for file in self.files:
            for block in file.of_kind(*kinds):
                yield file, block


def modules_of(tree: Tree) -> list[Module]:
    """All modules, the library's, the examples' and the tests'."""
    by_folder: dict[str, list[File]] = {}
    for path in tree.matching("*.tf"):
        folder = PurePosixPath(path).parent.as_posix()
        by_folder.setdefault("" if folder == "." else folder, []).append(parse(path, tree.texts[path]))
    return [Module(folder, tuple(files)) for folder, files in sorted(by_folder.items())]
