"""Whether all that the packages in the zip require is in it, or comes with the Lambda runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from idempotent_consumer_build.problem import CannotBuild
from idempotent_consumer_build.requirements import OWN_NAME, PINS, holds
from idempotent_consumer_build.target import Target
from idempotent_consumer_build.wheels import wheel_metadata

BROUGHT_BY_RUNTIME = frozenset({"boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"})
# Each release of one works with few of the others: a pinned one must not meet those of the runtime, which change.
RELEASED_TOGETHER = frozenset({"boto3", "botocore", "s3transfer"})


@dataclass(frozen=True)
class Package:
    """A package that goes into the zip, under the name in its normal form."""

    name: str
    version: Version
    wheel: str
    requires_python: str | None
    requires: tuple[Requirement, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def read_package(name: str, version: Version, wheel: Path) -> Package:
    described = message_from_bytes(wheel_metadata(wheel))
    try:
        requires = tuple(Requirement(str(line)) for line in described.get_all("Requires-Dist", []))
    except InvalidRequirement as problem:
        raise CannotBuild(f"{wheel.name} requires something that cannot be read: {problem}") from problem
    requires_python = described.get("Requires-Python")
    return Package(name, version, wheel.name, None if requires_python is None else str(requires_python), requires)


def check_dependencies(
    packages: Sequence[Package], extras: Mapping[str, frozenset[str]], target: Target, where: str
) -> None:
    """Refuses packages that would not find what they import.

    extras: those asked for, by the package's name. where: the file that pins requirements, for the message.
    """
    by_name = {package.name: package for package in packages}
    problems: list[str] = []
    for package in packages:
        refuse_other_python(package, target)
    for package, required in closure(by_name, extras, target):
        name = canonicalize_name(required.name)
        found = by_name.get(name)
        text = f"{required.name}{required.specifier}"
        if found is not None:
            if not required.specifier.contains(found.version, prereleases=True):
                problems.append(f"{package} requires {text}, but {found.version} is pinned")
        elif name in RELEASED_TOGETHER and package.name in RELEASED_TOGETHER:
            problems.append(f"{package} requires {text}: pin it too, as the version that the runtime brings changes")
        elif name not in BROUGHT_BY_RUNTIME | {OWN_NAME}:
            problems.append(f"{package} requires {text}, which is not pinned")
    if problems:
        listed = "".join(f"\n  {line}" for line in dict.fromkeys(problems))
        raise CannotBuild(f"{where} does not fit together:{listed}\nPin all of it there: {PINS}")


def refuse_other_python(package: Package, target: Target) -> None:
    try:
        accepted = SpecifierSet(package.requires_python or "")
    except InvalidSpecifier:
        # pip passes over what it cannot read here, too.
        return
    if not accepted.contains(target.full_version):
        raise CannotBuild(
            f"{package.wheel} is for Python {package.requires_python}, and the function's is {target.version}: "
            "pin another version, or choose another --runtime"
        )


def closure(
    packages: Mapping[str, Package], extras: Mapping[str, frozenset[str]], target: Target
) -> Iterator[tuple[Package, Requirement]]:
    """Each requirement that holds for the target, with the package that has it."""
    active = {name: set(extras.get(name, ())) for name in packages}
    waiting = [(name, extra) for name in packages for extra in ("", *sorted(active[name]))]
    while waiting:
        name, extra = waiting.pop(0)
        for required in packages[name].requires:
            if not holds(required.marker, target, packages[name].wheel, extra):
                continue
            yield packages[name], required
            other = canonicalize_name(required.name)
            for more in sorted(map(canonicalize_name, required.extras)):
                if other in packages and more not in active[other]:
                    active[other].add(more)
                    waiting.append((other, more))
