"""The zip file: written with nothing of the machine in it, read back, and compared."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from idempotent_consumer_build.bytecode import RUNTIME_PYTHON, kind
from idempotent_consumer_build.problem import UNREADABLE, CannotBuild, shown

LEVEL = 9
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
UNIX = 3
MODE = (stat.S_IFREG | 0o644) << 16
# The zip's own comment names the release that compiled its bytecode.
COMPILED_BY = "bytecode: Python "

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, in bytes
MOST_ZIPPED = 50 * 1024 * 1024
MOST_UNZIPPED = 250 * 1024 * 1024


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


def archive(members: Mapping[str, bytes], release: str | None) -> bytes:
    """The zip, with nothing in it that depends on the machine but the compression.

    release: of the Python that compiled the bytecode among the members, None if there is none.
    """
    unzipped = sum(len(data) for data in members.values())
    refuse_above(MOST_UNZIPPED, unzipped, "unzipped")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as opened:
        if release is not None:
            opened.comment = f"{COMPILED_BY}{release}".encode("ascii")
        for name, data in sorted(members.items()):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system = UNIX
            info.external_attr = MODE
            info.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(info, data, compresslevel=LEVEL)
    refuse_above(MOST_ZIPPED, target.tell(), "zipped")
    return target.getvalue()


def refuse_above(most: int, size: int, state: str) -> None:
    if size > most:
        raise CannotBuild(
            f"the zip would be {size:,} bytes {state}, and Lambda takes {most:,} ({most >> 20} MB): "
            "leave files or requirements out, or put large ones into a layer or a bucket"
        )


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


def compiled_by(output: Path, version: str = RUNTIME_PYTHON) -> str | None:
    """The release of the runtime's Python that compiled the bytecode of the zip on disk, if it names one."""
    try:
        with zipfile.ZipFile(output) as opened:
            comment = opened.comment.decode("ascii", "replace")
    except (OSError, *UNREADABLE):
        return None
    named = re.fullmatch(rf"{COMPILED_BY}({re.escape(version)}\.\w+)", comment)
    return named[1] if named else None


def names_in(output: Path) -> frozenset[str]:
    """The members of the zip on disk; none if there is no zip."""
    try:
        with zipfile.ZipFile(output) as opened:
            return frozenset(opened.namelist())
    except (OSError, *UNREADABLE):
        return frozenset()


def differences(output: Path, fresh: bytes, unread: Collection[str] = ()) -> list[str]:
    """How the zip on disk differs from the fresh one, a line a member; empty if it does not.

    unread: the members of which the fresh one has but the kind of bytecode; no more is compared of them.
    """
    if not output.exists():
        return [f"missing  {output.name} itself"]
    try:
        old = entries(output)
    except UNREADABLE as problem:
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
    """Writes the file in one step, so that an interrupted build leaves the old one; of a link, the file it names."""
    output = output.resolve()
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
