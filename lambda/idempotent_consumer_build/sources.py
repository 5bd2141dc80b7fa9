"""The files of the library and of a user's folder, by their names in the zip."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from idempotent_consumer_build.problem import CannotBuild, shown

PACKAGE_ROOT = Path(__file__).resolve().parent
# In a checkout the library lies in lambda/src; where both are installed, beside the builder.
CHECKOUT = PACKAGE_ROOT.parent / "build.py"
LIBRARY = PACKAGE_ROOT.parent / ("src" if CHECKOUT.is_file() else "") / "idempotent_consumer"

CARRIED = frozenset({".json", ".py"})
LEFT_OUT = frozenset({".c", ".h", ".pyc", ".pyi", ".pyo", ".typed"})
COMPILED = frozenset({".dll", ".dylib", ".pyd", ".so"})
ELF = b"\x7fELF"
# Never code, and not for everyone who may read a function's code.
SECRET = ("*.tfstate*", "*.tfvars", "*.tfvars.json", "*.pem", "*.key", "credentials")
# Packages in an archive: Python does not find what is in them.
PACKED = ("*.whl", "*.zip")
# What tools leave beside the code, and nothing imports.
LEFTOVER = (".*", "__pycache__", "node_modules", "*.egg-info", "*.pyc", "*.pyo")
# The test kit of the library is for the machine where the tests run.
KIT = "testing"


def library_files(package: Path = LIBRARY) -> Iterator[tuple[str, bytes]]:
    """The library as it ships, by names that begin with its own."""
    if not (package / "__init__.py").is_file():
        raise CannotBuild(f"no package at {package}")
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        name = f"{package.name}/{inside.as_posix()}"
        if path.is_file() and inside.parts[0] != KIT and is_carried(name):
            yield name, path.read_bytes()


def is_carried(name: str) -> bool:
    """Whether a file belongs in the zip; what may not be there, or nobody has decided about, is refused."""
    path = PurePosixPath(name)
    if path.suffix in LEFT_OUT or any(part == "__pycache__" or part.startswith(".") for part in path.parts):
        return False
    if is_compiled(name):
        raise CannotBuild(f"{name} is compiled; the zip holds Python alone, to run on arm64 and on x86_64")
    if path.suffix not in CARRIED:
        raise CannotBuild(f"{name} is neither {' nor '.join(sorted(CARRIED))}; remove it or extend CARRIED")
    return True


def is_compiled(name: str, data: bytes = b"") -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() in COMPILED or ".so." in path.name or data.startswith(ELF)


def user_files(folder: Path, left_out: Collection[Path]) -> dict[str, bytes]:
    """The content of a user's folder, by its paths in it.

    left_out: files, as resolved paths. Hidden files, bytecode and what else tools leave there is left out as well.
    """
    if not folder.is_dir():
        raise CannotBuild(f"{shown(folder)} is no folder")
    refuse_package(folder)
    files = {name: path.read_bytes() for name, path in walk(folder, folder) if path.resolve() not in left_out}
    for name, data in files.items():
        if is_compiled(name, data):
            raise CannotBuild(
                f"{name} in {shown(folder)} is compiled, for one processor and Python: put the package that it "
                "belongs to into requirements.txt, with its version"
            )
    if not any(name.endswith(".py") for name in files):
        what = "no Python file" if files else "nothing to bundle (hidden files do not count)"
        raise CannotBuild(f"{shown(folder)} holds {what}: give the folder that the handler's module lies in")
    return files


def refuse_package(folder: Path) -> None:
    if (folder / "__init__.py").exists():
        name = folder.resolve().name
        raise CannotBuild(
            f"{shown(folder)} is a package (__init__.py), but its content comes to lie at the zip's root: give the "
            f"folder that it lies in, and the handler as {name}.module.function, or take its __init__.py away"
        )


def walk(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for found in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(found.path)
        name = path.relative_to(root).as_posix()
        if matches(found.name, LEFTOVER) or (path / "pyvenv.cfg").is_file():
            continue
        refuse_odd_name(name, shown(root))
        if found.is_symlink():
            raise CannotBuild(
                f"{name} in {shown(root)} is a symbolic link, and what it points to may differ from one machine to "
                "the next: put the file itself there"
            )
        if found.is_dir():
            yield from walk(path, root)
        elif stat.S_ISREG(found.stat().st_mode):
            refuse_secret(name, shown(root))
            yield name, path
        else:
            raise CannotBuild(f"{name} in {shown(root)} is neither a file nor a folder: move it out of the folder")


def refuse_odd_name(name: str, place: str) -> None:
    """Refuses names that would not be the same file everywhere, or lead out of the folder."""
    if not name.isprintable() or "\\" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise CannotBuild(f"{name!r} in {place} is no name for a file of the zip: rename it")


def refuse_secret(name: str, place: str) -> None:
    """Refuses what is no code, by its name, before it is on its way to everyone who may read the function's code."""
    last = PurePosixPath(name).name
    if matches(last, SECRET):
        raise CannotBuild(
            f"{name} in {place} is a secret or Terraform's state, by its name: move it out of the folder (a public "
            "certificate may be named .crt)"
        )
    if matches(last, PACKED):
        raise CannotBuild(
            f"{name} in {place} is an archive, in which Python finds no module: move it out of the folder, and pin "
            "packages in requirements.txt"
        )


def matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)
