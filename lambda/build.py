"""Builds the Lambda zip: the library and its pinned requirements with their bytecode, the same on each machine.

    python lambda/build.py             writes lambda/dist/idempotent-consumer.zip
    python lambda/build.py --check     ends 1 if that zip is not what the sources say

The zip is committed, so that whoever applies the module needs no Python. Two builds of one state hold the
same files in the same order, with the same bytes, modes and times. Only the compressed bytes may differ, as
they depend on the machine's zlib: the check compares what the zip holds, and a build that would change no
member leaves the file as it is, so that no function is deployed again for nothing.

To build takes Python 3.13, which compiles the bytecode, beside the Python that runs this. The check compares
the bytecode where the very release that compiled it is at hand, and says so where it is not.

Exit codes: 0 built or up to date, 1 stale, 2 cannot build.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bytecode import RUNTIME_PYTHON, CannotCompile, compiled, find_python, kind, uncompiled

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "idempotent_consumer"
REQUIREMENTS = HERE / "requirements.txt"
OUTPUT = HERE / "dist" / "idempotent-consumer.zip"

PIP_SECONDS = 600

LEVEL = 9
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
UNIX = 3
MODE = (stat.S_IFREG | 0o644) << 16
# The zip's own comment names the release that compiled its bytecode.
COMPILED_BY = "bytecode: Python "

CARRIED = frozenset({".json", ".py"})
LEFT_OUT = frozenset({".c", ".h", ".pyc", ".pyi", ".pyo", ".typed"})
COMPILED = frozenset({".dll", ".dylib", ".pyd", ".so"})
LICENCE = re.compile(r"copying|licen[cs]e|notice", re.IGNORECASE)

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


class CannotBuild(Exception):
    """The zip cannot be built; the message says why and what to do."""


@dataclass(frozen=True)
class Requirement:
    """A pinned package and the SHA-256 hashes of the wheels that may be used for it."""

    name: str
    version: str
    hashes: frozenset[str]


@dataclass(frozen=True)
class Entry:
    """All that a zip says about one of its files, but for the compressed bytes."""

    name: str
    data: bytes
    mode: int
    time: tuple[int, ...]
    system: int
    method: int
    flags: int
    extra: bytes
    comment: bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    options = parse(arguments)
    try:
        members = collect([PACKAGE], REQUIREMENTS, options.wheels)
        return check(options.output, members) if options.check else build(options.output, members)
    except (CannotBuild, CannotCompile) as problem:
        print(f"cannot build: {problem}", file=sys.stderr)
        return 2


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the Lambda zip of library and requirements.")
    add = parser.add_argument
    add("--check", action="store_true", help="compare the zip with a fresh build, write nothing")
    add("--output", type=Path, default=OUTPUT, metavar="PATH", help="the zip (default: in lambda/dist)")
    add("--wheels", type=Path, metavar="FOLDER", help="keep the wheels here; with all there, pip is not used")
    return parser.parse_args(arguments)


def build(output: Path, members: Mapping[str, bytes]) -> int:
    python = find_python(compiled_by(output) or RUNTIME_PYTHON) or find_python()
    if python is None:
        raise CannotBuild(
            f"the zip ships bytecode of Python {RUNTIME_PYTHON}, the function's default runtime, which is not on this "
            f"machine.\nInstall it and run this again: `uv python install {RUNTIME_PYTHON}`, "
            f"`pyenv install {RUNTIME_PYTHON}` or https://www.python.org/downloads/"
        )
    fresh = archive({**members, **compiled(members, python)}, python.release)
    if not differences(output, fresh):
        print(f"up to date: {summary(output)}")
        return 0
    write(output, fresh)
    print(f"built: {summary(output)}")
    return 0


def check(output: Path, members: Mapping[str, bytes]) -> int:
    release = compiled_by(output) or RUNTIME_PYTHON
    python = find_python(release)
    bytecode = compiled(members, python) if python else uncompiled(members)
    found = differences(output, archive({**members, **bytecode}, release), unread=() if python else bytecode)
    if found:
        again = "" if output == OUTPUT else f" --output {output}"
        print(f"stale: {shown(output)} is not what the sources say", file=sys.stderr)
        print("\n".join(f"  {line}" for line in found), file=sys.stderr)
        print(f"run: python {shown(Path(__file__).resolve())}{again}", file=sys.stderr)
    else:
        print(f"up to date: {summary(output)}")
    if python is None:
        print(f"not compared: the bytecode, since Python {release}, which compiled it, is not on this machine")
    return 1 if found else 0


# --- what goes in ---


def collect(packages: Sequence[Path], requirements: Path, wheels: Path | None) -> dict[str, bytes]:
    """The content of the zip by path: the package folders at its root, and the wheels of the requirements."""
    with tempfile.TemporaryDirectory() as scratch:
        sources = [package_files(package) for package in packages]
        sources += [wheel_files(wheel) for wheel in locked_wheels(requirements, wheels or Path(scratch))]
        members: dict[str, bytes] = {}
        for source in sources:
            for name, data in source:
                if name in members:
                    raise CannotBuild(f"{name} comes from two places")
                members[name] = data
    return members


def package_files(package: Path) -> Iterator[tuple[str, bytes]]:
    if not (package / "__init__.py").is_file():
        raise CannotBuild(f"no package at {package}")
    for path in package.rglob("*"):
        name = path.relative_to(package.parent).as_posix()
        if path.is_file() and is_carried(name):
            yield name, path.read_bytes()


def wheel_files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    licences = 0
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(opened.namelist()):
            if name.endswith("/"):
                continue
            folder, _, rest = name.partition("/")
            if folder.endswith(".data"):
                raise CannotBuild(f"{wheel.name} holds {name}, which only an installer knows where to put")
            if not folder.endswith(".dist-info"):
                if is_carried(name) and not name.startswith(UNUSED):
                    yield name, opened.read(name)
            elif LICENCE.match(PurePosixPath(rest).name):
                # Whoever passes the code on must pass on the licence's text, and with Apache's the NOTICE.
                licences += 1
                release = folder.removesuffix(".dist-info")
                yield f"licenses/{release}/{PurePosixPath(rest).name}", opened.read(name)
    if not licences:
        raise CannotBuild(f"{wheel.name} holds no licence file to pass on")


def is_carried(name: str) -> bool:
    """Whether a file belongs in the zip; what may not be there, or nobody has decided about, is refused."""
    path = PurePosixPath(name)
    if path.suffix in LEFT_OUT or any(part == "__pycache__" or part.startswith(".") for part in path.parts):
        return False
    if path.suffix in COMPILED or ".so." in path.name:
        raise CannotBuild(f"{name} is compiled; the zip holds Python alone, to run on arm64 and on x86_64")
    if path.suffix not in CARRIED:
        raise CannotBuild(f"{name} is neither {' nor '.join(sorted(CARRIED))}; remove it or extend CARRIED")
    return True


# --- requirements ---


def locked_wheels(requirements: Path, folder: Path) -> list[Path]:
    """The wheel of each requirement: from the folder, or through pip if it is not there."""
    locked = read_requirements(requirements)
    folder.mkdir(parents=True, exist_ok=True)
    if not all(find_wheel(pinned, folder) for pinned in locked):
        download(requirements, folder)
    wheels = []
    for pinned in locked:
        wheel = find_wheel(pinned, folder)
        if wheel is None:
            raise CannotBuild(f"pip brought no wheel of {pinned.name} {pinned.version} with the hash that is pinned")
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
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [parse_requirement(line, path) for line in joined if line.strip()]


def parse_requirement(line: str, path: Path) -> Requirement:
    pin, *options = line.split()
    name, _, version = pin.partition("==")
    hashes = frozenset(option.removeprefix("--hash=sha256:") for option in options)
    if not version or not hashes or any(not re.fullmatch(r"[0-9a-f]{64}", value) for value in hashes):
        raise CannotBuild(f"{shown(path)}: expected name==version --hash=sha256:…, found {line.strip()!r}")
    return Requirement(name, version, hashes)


def download(requirements: Path, folder: Path) -> None:
    """Lets pip fetch the pure-Python wheels from the index that the user has configured."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", RUNTIME_PYTHON]
    command += ["--platform", "any", "--implementation", "py", "--abi", "none"]
    command += ["--dest", str(folder.resolve()), "--requirement", str(requirements)]
    try:
        # From the target folder, since `python -m` would import a pip.py of the current one.
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired as problem:
        raise CannotBuild(f"pip took over {PIP_SECONDS} s: is the package index within reach?") from problem
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip()
        raise CannotBuild(f"pip could not fetch the wheels of {shown(requirements)}:\n{reason}")


# --- the archive ---


def archive(members: Mapping[str, bytes], release: str) -> bytes:
    """The zip, with nothing in it that depends on the machine but the compression.

    release: of the Python that compiled the bytecode among the members.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as opened:
        opened.comment = f"{COMPILED_BY}{release}".encode("ascii")
        for name, data in sorted(members.items()):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system = UNIX
            info.external_attr = MODE
            info.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(info, data, compresslevel=LEVEL)
    return target.getvalue()


def entries(source: Path | io.BytesIO) -> list[Entry]:
    """What a zip holds, in its order."""
    with zipfile.ZipFile(source) as opened:
        return [
            Entry(
                name=info.filename,
                data=opened.read(info),
                mode=info.external_attr,
                time=info.date_time,
                system=info.create_system,
                method=info.compress_type,
                flags=info.flag_bits,
                extra=info.extra,
                comment=info.comment,
            )
            for info in opened.infolist()
        ]


def compiled_by(output: Path) -> str | None:
    """The release of the runtime's Python that compiled the bytecode of the zip on disk, if it names one."""
    try:
        with zipfile.ZipFile(output) as opened:
            comment = opened.comment.decode("ascii", "replace")
    except (OSError, zipfile.BadZipFile):
        return None
    named = re.fullmatch(rf"{COMPILED_BY}({re.escape(RUNTIME_PYTHON)}\.\w+)", comment)
    return named[1] if named else None


def differences(output: Path, fresh: bytes, unread: Collection[str] = ()) -> list[str]:
    """How the zip on disk differs from the fresh one, a line a member; empty if it does not.

    unread: the members of which the fresh one has but the kind of bytecode; no more is compared of them.
    """
    if not output.exists():
        return [f"missing  {output.name} itself"]
    try:
        old = entries(output)
    except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
        return [f"broken   {output.name} itself: {problem}"]
    new = entries(io.BytesIO(fresh))
    old, new = ([comparable(entry, unread) for entry in side] for side in (old, new))
    if old == new:
        return []
    before, after = ({entry.name: entry for entry in side} for side in (old, new))
    lines = [f"missing  {name}" for name in sorted(after.keys() - before.keys())]
    lines += [f"extra    {name}" for name in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        if before[name].data != after[name].data:
            lines.append(f"content  {name}")
        elif before[name] != after[name]:
            lines.append(f"metadata {name}")
    return lines or ["order    the members are not sorted, or one is there twice"]


def comparable(entry: Entry, unread: Collection[str]) -> Entry:
    return replace(entry, data=kind(entry.data)) if entry.name in unread else entry


def write(output: Path, data: bytes) -> None:
    """Writes the file in one step, so that an interrupted build leaves the old one."""
    output.parent.mkdir(parents=True, exist_ok=True)
    draft = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        draft.chmod(0o644)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)


def summary(output: Path) -> str:
    data = output.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        files = len(opened.namelist())
    digest = hashlib.sha256(data).hexdigest()
    return f"{shown(output)}, {files} files, {len(data) / 1000:.1f} KB, sha256 {digest}"


def shown(path: Path) -> str:
    """A path as the reader would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    sys.exit(main())
