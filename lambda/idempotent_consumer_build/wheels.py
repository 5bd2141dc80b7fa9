"""What a wheel puts into the zip."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from idempotent_consumer_build.problem import UNREADABLE, CannotBuild
from idempotent_consumer_build.sources import ELF, is_carried, is_compiled, refuse_odd_name

LICENCE = re.compile(r"copying|licen[cs]e|notice", re.IGNORECASE)
LICENCE_FOLDERS = frozenset({"licenses", "license_files"})
# What importlib.metadata reads: some packages look up their own version, or what plugs into them.
METADATA = frozenset({"METADATA", "entry_points.txt"})
BYTECODE = frozenset({".pyc", ".pyo"})
# What the header of a compiled file calls the processors.
ELF_MACHINES = {"aarch64": 0xB7, "x86_64": 0x3E}
# Where an installer would put these into the packages; the rest of a wheel's data is scripts, headers and the like.
INTO_PACKAGES = frozenset({"platlib", "purelib"})

# Adapters of the X-Ray SDK for packages that neither the zip nor the runtime has. The SDK imports an adapter
# only when patch() asks for it; those for botocore and the standard library stay.
UNUSED = tuple(
    f"aws_xray_sdk/ext/{adapter}/"
    for adapter in (
        "aiobotocore",
        "aiohttp",
        "bottle",
        "django",
        "flask",
        "flask_sqlalchemy",
        "httpx",
        "mysql",
        "pg8000",
        "psycopg",
        "psycopg2",
        "pymongo",
        "pymysql",
        "pynamodb",
        "requests",
        "sqlalchemy",
        "sqlalchemy_core",
    )
)


def wheel_files(
    wheel: Path, *, metadata: bool = False, unused: tuple[str, ...] = UNUSED
) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel of the library's own requirements: nothing but modules, their data, and the licence.

    metadata: with what importlib.metadata reads. unused: how the names begin of what is left out.
    """
    licences = 0
    for name, data in opened_files(wheel):
        folder, _, rest = name.partition("/")
        if folder.endswith(".data"):
            raise CannotBuild(f"{wheel.name} holds {name}, which only an installer knows where to put")
        if not folder.endswith(".dist-info"):
            if is_carried(name) and not name.startswith(unused):
                yield name, data
        elif LICENCE.match(PurePosixPath(rest).name):
            # Whoever passes the code on must pass on the licence's text, and with Apache's the NOTICE.
            licences += 1
            yield licence_name(folder, rest), data
        elif metadata and rest in METADATA:
            yield name, data
    if not licences:
        raise CannotBuild(f"{wheel.name} holds no licence file to pass on")


def foreign_wheel_files(wheel: Path, *, machine: str | None) -> Iterator[tuple[str, bytes]]:
    """All files of any other wheel but its bytecode, with its licences; nothing of it is known before.

    machine: the processor that its name says, as in aarch64; None for any, and then it may hold nothing compiled.
    """
    for name, data in opened_files(wheel):
        folder, _, rest = name.partition("/")
        if PurePosixPath(name).suffix in BYTECODE:
            continue
        if machine is None and is_compiled(name, data):
            raise CannotBuild(
                f"{wheel.name} holds {name}, which is compiled, although its name says that it runs on any processor: "
                "take another version, or a wheel that names its platform"
            )
        if machine is not None and is_for_another(machine, data):
            raise CannotBuild(
                f"{wheel.name} holds {name}, which is compiled for another processor than {machine}: take another "
                "version, or a wheel that holds what its name says"
            )
        if folder.endswith(".dist-info"):
            inner = PurePosixPath(rest)
            if LICENCE.match(inner.name) or inner.parts[0] in LICENCE_FOLDERS:
                yield licence_name(folder, rest), data
            elif rest in METADATA:
                yield name, data
        elif folder.endswith(".data"):
            place, _, inside = rest.partition("/")
            if place in INTO_PACKAGES:
                yield inside, data
        else:
            yield name, data


def is_for_another(machine: str, data: bytes) -> bool:
    return data.startswith(ELF) and int.from_bytes(data[18:20], "little") != ELF_MACHINES[machine]


def licence_name(folder: str, rest: str) -> str:
    inner = PurePosixPath(rest)
    inside = PurePosixPath(*inner.parts[1:]) if inner.parts[0] in LICENCE_FOLDERS and len(inner.parts) > 1 else inner
    return f"licenses/{folder.removesuffix('.dist-info')}/{inside}"


def wheel_metadata(wheel: Path) -> bytes:
    """The METADATA file, which says what the package requires."""
    found = [data for _, data in opened_files(wheel, only=re.compile(r"[^/]+\.dist-info/METADATA"))]
    if len(found) != 1:
        raise CannotBuild(f"{wheel.name} is no sound wheel: it holds {len(found)} files that describe a package")
    return found[0]


def opened_files(wheel: Path, only: re.Pattern[str] | None = None) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(wheel) as opened:
            for name in sorted(set(opened.namelist())):
                if not name.endswith("/") and (only is None or only.fullmatch(name)):
                    refuse_odd_name(name, wheel.name)
                    yield name, opened.read(name)
    except UNREADABLE as problem:
        raise CannotBuild(f"{wheel.name} is broken ({problem}): delete it, or give another copy") from problem
