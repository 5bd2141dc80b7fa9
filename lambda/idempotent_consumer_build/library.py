"""The library and its own requirements, as parts of a zip."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from idempotent_consumer_build.bytecode import RUNTIME_PYTHON
from idempotent_consumer_build.collisions import Origin, Part, merged
from idempotent_consumer_build.locked import REQUIREMENTS, locked_wheels, read_requirements
from idempotent_consumer_build.sources import LIBRARY, library_files
from idempotent_consumer_build.wheels import UNUSED, wheel_files


def shipped_files(wheels: Path | None) -> dict[str, bytes]:
    """What the zip holds that ships with the module. wheels: where to keep them, None for a folder of no duration."""
    with wheel_folder(wheels) as folder:
        found = locked_wheels(REQUIREMENTS, folder)
        return merged([library_part(), *requirement_parts(found)], RUNTIME_PYTHON)


def library_part(package: Path = LIBRARY) -> Part:
    return Part("the library", Origin.LIBRARY, dict(library_files(package)))


def requirement_parts(wheels: list[Path], *, metadata: bool = False, whole: Collection[str] = ()) -> list[Part]:
    """The library's requirements, in their order. whole: the names of those of which nothing is left out."""
    return [
        Part(
            f"{pinned}, which the library needs",
            Origin.LIBRARY,
            dict(wheel_files(wheel, metadata=metadata, unused=() if pinned.name in whole else UNUSED)),
        )
        for pinned, wheel in zip(read_requirements(REQUIREMENTS), wheels, strict=True)
    ]


@contextmanager
def wheel_folder(wheels: Path | None) -> Iterator[Path]:
    if wheels is not None:
        yield wheels
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch)
