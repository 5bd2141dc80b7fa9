"""The library's own requirements: pinned with one hash each, that of the pure-Python wheel."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from idempotent_consumer_build import pip
from idempotent_consumer_build.bytecode import RUNTIME_PYTHON
from idempotent_consumer_build.problem import CannotBuild, shown

REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


@dataclass(frozen=True)
class Requirement:
    """A pinned package and the SHA-256 hashes of the wheels that may be used for it."""

    name: str
    version: str
    hashes: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def locked_wheels(requirements: Path, folder: Path, version: str = RUNTIME_PYTHON) -> list[Path]:
    """The wheel of each requirement: from the folder, or through pip if it is not there."""
    locked = read_requirements(requirements)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [pinned for pinned in locked if not find_wheel(pinned, folder)]
    if missing:
        pip.download(requirements, folder, pip.pure(version), ", ".join(map(str, missing)))
    wheels = []
    for pinned in locked:
        wheel = find_wheel(pinned, folder)
        if wheel is None:
            raise CannotBuild(f"pip brought no wheel of {pinned} with the hash that is pinned")
        wheels.append(wheel)
    return wheels


def find_wheel(pinned: Requirement, folder: Path) -> Path | None:
    prefix = f"{re.sub('[-_.]+', '_', pinned.name).lower()}-{pinned.version}-"
    for wheel in sorted(folder.glob("*.whl")):
        named = wheel.name.lower().startswith(prefix)
        if named and hashlib.sha256(wheel.read_bytes()).hexdigest() in pinned.hashes:
            return wheel
    return None


def read_requirements(path: Path) -> list[Requirement]:
    return [parse_requirement(line, path) for line in logical_lines(path.read_text("utf-8-sig"))]


def logical_lines(text: str) -> list[str]:
    """The lines that say something: without comment lines, and with each continued one in one piece."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [line for line in joined if line.strip()]


def parse_requirement(line: str, path: Path) -> Requirement:
    pin, *options = line.split()
    name, _, version = pin.partition("==")
    hashes = frozenset(option.removeprefix("--hash=sha256:") for option in options)
    if not version or not hashes or any(not re.fullmatch(r"[0-9a-f]{64}", value) for value in hashes):
        raise CannotBuild(f"{shown(path)}: expected name==version --hash=sha256:…, found {line.strip()!r}")
    return Requirement(name, version, hashes)
