"""A user's own code, with the library and the requirements of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from idempotent_consumer_build.collisions import Origin, Part, merged
from idempotent_consumer_build.dependencies import check_dependencies, read_package
from idempotent_consumer_build.entry import check_handler
from idempotent_consumer_build.imports import missing_imports, refuse_relative_imports
from idempotent_consumer_build.library import library_part, requirement_parts, wheel_folder
from idempotent_consumer_build.locked import REQUIREMENTS, Requirement, locked_wheels, read_requirements
from idempotent_consumer_build.problem import CannotBuild, shown
from idempotent_consumer_build.requirements import Pin, read_pins
from idempotent_consumer_build.selection import chosen_wheels
from idempotent_consumer_build.sources import user_files
from idempotent_consumer_build.target import Target
from idempotent_consumer_build.wheels import foreign_wheel_files


@dataclass(frozen=True)
class Bundle:
    """The content of a zip.

    own: the names of it that come from the user's folder. foreign: those that come from the requirements there.
    warning: what may be missing in it, if anything.
    """

    members: Mapping[str, bytes]
    own: tuple[str, ...]
    foreign: frozenset[str]
    warning: str | None


def bundled(
    source: Path, requirements: Path | None, wheels: Path | None, target: Target, handler: str | None = None
) -> Bundle:
    """The content of a user's zip.

    requirements: the file that pins them, by default the folder's requirements.txt if there is one.
    wheels: where to keep them, None for a folder of no duration. handler: must be in the zip, if given.
    """
    own = source / "requirements.txt"
    pinned_in = requirements or (own if own.is_file() else None)
    left_out = {path.resolve() for path in (own, pinned_in) if path is not None}
    folder = Part(f"the folder {shown(source)}", Origin.FOLDER, user_files(source, left_out))
    library = library_part()
    # Once without the wheels: what is wrong in the folder is said before pip is asked for anything.
    merged([library, folder], target.version)
    with wheel_folder(wheels) as kept:
        locked = read_requirements(REQUIREMENTS)
        pins = read_pins(pinned_in, target) if pinned_in else []
        where = shown(pinned_in) if pinned_in else "the library's own requirements"
        foreign_pins = [pin for pin in pins if not is_librarys(pin, locked, where)]
        locked_paths = locked_wheels(REQUIREMENTS, kept, target.version)
        chosen = chosen_wheels(foreign_pins, kept, target)
        packages = [
            read_package(pinned.name, Version(pinned.version), path)
            for pinned, path in zip(locked, locked_paths, strict=True)
        ]
        packages += [read_package(pin.name, pin.version, path) for pin, path in chosen.items()]
        check_dependencies(packages, {pin.name: pin.extras for pin in pins}, target, where)
        parts = [library, *requirement_parts(locked_paths, metadata=True, whole={pin.name for pin in pins}), folder]
        foreign = [foreign_part(pin, path, target) for pin, path in chosen.items()]
    members = merged([*parts, *foreign], target.version)
    if handler is not None:
        check_handler(handler, members)
        refuse_relative_imports(folder.files)
    return Bundle(
        members,
        own=tuple(folder.files),
        foreign=frozenset(name for part in foreign for name in part.files),
        warning=missing_imports(folder.files, members, target.version),
    )


def is_librarys(pin: Pin, locked: list[Requirement], where: str) -> bool:
    """Whether the library needs the same package; then there is one version of it, and its pure-Python wheel."""
    for pinned in locked:
        if pinned.name != pin.name:
            continue
        if Version(pinned.version) != pin.version:
            raise CannotBuild(
                f"{where} pins {pin}, but the library needs {pinned}: pin that version, or leave {pin.name} out"
            )
        if pin.hashes and not pin.hashes & pinned.hashes:
            raise CannotBuild(
                f"{where} pins {pin} with hashes that its pure-Python wheel does not have, which the library needs: "
                f"add --hash=sha256:{min(pinned.hashes)}, or leave {pin.name} out"
            )
        return True
    return False


def foreign_part(pin: Pin, wheel: Path, target: Target) -> Part:
    tags = parse_wheel_filename(wheel.name)[3]
    machine = None if all(tag.platform == "any" for tag in tags) else target.machine
    return Part(str(pin), Origin.REQUIREMENT, dict(foreign_wheel_files(wheel, machine=machine)), pin.name)
