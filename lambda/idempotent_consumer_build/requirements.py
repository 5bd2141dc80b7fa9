"""A user's pinned requirements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker, UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from idempotent_consumer_build.locked import logical_lines
from idempotent_consumer_build.problem import CannotBuild, shown
from idempotent_consumer_build.target import Target

OWN_NAME = "idempotent-consumer"
PINS = "`uv pip compile` or `pip-compile` writes such a file"


@dataclass(frozen=True)
class Pin:
    """A package at one version. name: in its normal form. hashes: SHA-256; without one any wheel of it will do."""

    name: str
    version: Version
    hashes: frozenset[str]
    extras: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def line(self) -> str:
        """As pip reads it."""
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{value}" for value in sorted(self.hashes))])


def read_pins(path: Path, target: Target) -> list[Pin]:
    """What a requirements file pins for the target, by name. Lines whose marker does not hold there do not count."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise CannotBuild(
            f"cannot read the requirements {shown(path)}: save the file as UTF-8 (`>` of Windows PowerShell writes "
            "UTF-16)"
        ) from problem
    except OSError as problem:
        raise CannotBuild(f"cannot read the requirements {shown(path)}: {problem}") from problem
    pins: dict[str, Pin] = {}
    for line in logical_lines(text):
        content = re.sub(r"(^|\s)#.*$", "", line).strip()
        pin = parse_pin(content, path, target) if content else None
        if pin is None:
            continue
        before = pins.get(pin.name, pin)
        if before.version != pin.version:
            raise CannotBuild(
                f"{shown(path)} pins {pin.name} twice, at {before.version} and at {pin.version}: keep one"
            )
        pins[pin.name] = Pin(pin.name, pin.version, before.hashes | pin.hashes, before.extras | pin.extras)
    return [pins[name] for name in sorted(pins)]


def parse_pin(line: str, path: Path, target: Target) -> Pin | None:
    refuse_options(line, path)
    text, *options = re.split(r"\s+(?=--)", line)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as problem:
        raise CannotBuild(f"{shown(path)}: {line!r} is no name==version: {problem}") from problem
    if requirement.url:
        raise CannotBuild(
            f"{shown(path)}: {line!r} names an address; write name==version, and give a wheel of your own "
            "with --wheels FOLDER"
        )
    name = canonicalize_name(requirement.name)
    if name == OWN_NAME:
        raise CannotBuild(f"{shown(path)}: take {requirement.name} out, as the zip holds the library already")
    version = pinned_version(requirement)
    if version is None:
        raise CannotBuild(f"{shown(path)}: {line!r} pins no version: write {requirement.name}==version; {PINS}")
    if not holds(requirement.marker, target, shown(path)):
        return None
    return Pin(name, version, hashes(options, line, path), frozenset(map(canonicalize_name, requirement.extras)))


def refuse_options(line: str, path: Path) -> None:
    if not line.startswith("-"):
        if re.match(r"[a-z+]+://|\.{0,2}/", line, re.IGNORECASE):
            raise CannotBuild(
                f"{shown(path)}: {line!r} is an address or a path; write name==version, and give a wheel of your own "
                "with --wheels FOLDER"
            )
        return
    option = re.split(r"[\s=]", line)[0]
    if option in {"-r", "--requirement", "-c", "--constraint"} or line.startswith(("-r", "-c")):
        advice = f"write all pins into one file; {PINS}"
    elif option in {"-e", "--editable"} or line.startswith("-e"):
        advice = "put that code into the folder, or give its wheel with --wheels FOLDER and its name==version here"
    elif option in {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--no-index"}:
        advice = "set it in pip's configuration, for instance with PIP_INDEX_URL or PIP_EXTRA_INDEX_URL"
    else:
        advice = "only name==version lines are read here"
    raise CannotBuild(f"{shown(path)}: {line!r} is an option of pip: {advice}")


def pinned_version(requirement: Requirement) -> Version | None:
    specifiers = list(requirement.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==":
        return None
    try:
        return Version(specifiers[0].version)
    except InvalidVersion:
        return None


def hashes(options: list[str], line: str, path: Path) -> frozenset[str]:
    found = set()
    for option in options:
        value = re.fullmatch(r"--hash[=\s]sha256:([0-9a-f]{64})", option.strip())
        if value is None:
            raise CannotBuild(f"{shown(path)}: {option!r} of {line.split()[0]} is not --hash=sha256:…")
        found.add(value[1])
    return frozenset(found)


def holds(marker: Marker | None, target: Target, place: str, extra: str = "") -> bool:
    """Whether a marker holds on a processor that the zip is to run on. place: where it stands, for the message."""
    environments: list[Mapping[str, str]] = [{**seen, "extra": extra} for seen in target.environments()]
    try:
        return marker is None or any(marker.evaluate(dict(seen)) for seen in environments)
    except (UndefinedComparison, InvalidVersion) as problem:
        raise CannotBuild(f"the marker `{marker}` in {place} cannot be compared: {problem}") from problem
