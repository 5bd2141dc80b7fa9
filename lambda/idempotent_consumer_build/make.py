"""Writes a zip, or tells whether the one on disk is what the sources say."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from idempotent_consumer_build.archive import archive, compiled_by, differences, names_in, summary, write
from idempotent_consumer_build.bytecode import Python, bytecode_name, compiled, find_python, uncompiled
from idempotent_consumer_build.problem import CannotBuild, shown

# How many of a user's files the closing line names.
FIRST_FILES = 5


class Bytecode(Enum):
    """Whether a zip ships the bytecode of its sources."""

    REQUIRED = "required"
    WHERE_POSSIBLE = "where the machine has the runtime's Python"
    NONE = "none"


@dataclass(frozen=True)
class Job:
    """A zip to build.

    version: of the runtime's Python, as in 3.13. command: builds it, for whoever checks it.
    optional: sources that need not compile. own: the members from the user's folder, for the verdict.
    """

    output: Path
    members: Mapping[str, bytes]
    version: str
    bytecode: Bytecode
    command: str
    optional: Collection[str] = ()
    own: Sequence[str] = ()


@dataclass(frozen=True)
class Fresh:
    """A zip as the sources say. unread: members of bytecode that this machine cannot compile, nor compare."""

    data: bytes
    unread: Collection[str] = ()


def build(job: Job) -> int:
    """Writes the zip unless the one on disk holds the same; returns 0."""
    named = compiled_by(job.output, job.version)
    python = None
    if job.bytecode is not Bytecode.NONE:
        python = (find_python(named) if named else None) or find_python(job.version)
    if python is None and job.bytecode is Bytecode.REQUIRED:
        raise CannotBuild(
            f"the zip ships bytecode of Python {job.version}, the function's default runtime, which is not on this "
            f"machine.\nInstall it and run this again: `uv python install {job.version}`, "
            f"`pyenv install {job.version}` or https://www.python.org/downloads/"
        )
    if python is None and named and job.bytecode is not Bytecode.NONE and not changed(job, unread_zip(job, named)):
        # Another machine has built it with bytecode, which is worth keeping while the sources are the same.
        print(verdict("up to date", job))
        print(not_compared(named))
        return 0
    fresh = fresh_zip(job, python)
    if changed(job, fresh):
        write(job.output, fresh.data)
        print(verdict("built", job))
    else:
        print(verdict("up to date", job))
    if python is None and job.bytecode is Bytecode.WHERE_POSSIBLE:
        print(
            f"without bytecode: no Python {job.version} is on this machine, so that each cold start compiles what it "
            "imports"
        )
    return 0


def check(job: Job) -> int:
    """Compares the zip on disk with a fresh one and writes nothing; returns 0, or 1 if they differ."""
    named = compiled_by(job.output, job.version)
    python = None if job.bytecode is Bytecode.NONE else find_python(named or job.version)
    # Bytecode that this machine cannot compile is not compared; a zip that may be without it need not have it.
    unread = python is None and (job.bytecode is Bytecode.REQUIRED or (named and job.bytecode is not Bytecode.NONE))
    fresh = unread_zip(job, named or job.version) if unread else fresh_zip(job, python)
    found = changed(job, fresh)
    if found:
        print(f"stale: {shown(job.output)} is not what the sources say", file=sys.stderr)
        print("\n".join(f"  {line}" for line in found), file=sys.stderr)
        print(f"run: {job.command}", file=sys.stderr)
    else:
        print(verdict("up to date", job))
    if unread:
        print(not_compared(named or job.version))
    return 1 if found else 0


def fresh_zip(job: Job, python: Python | None) -> Fresh:
    if python is None:
        return Fresh(archive(job.members, None))
    return Fresh(archive({**job.members, **compiled(job.members, python, job.optional)}, python.release))


def unread_zip(job: Job, release: str) -> Fresh:
    """The zip with no more than the kind of the bytecode that a release would have compiled."""
    held = names_in(job.output)
    sources = [name for name in job.members if name not in job.optional or bytecode_name(name, job.version) in held]
    bytecode = uncompiled(dict.fromkeys(sources, b""), job.version)
    return Fresh(archive({**job.members, **bytecode}, release), bytecode)


def changed(job: Job, fresh: Fresh) -> list[str]:
    return differences(job.output, fresh.data, fresh.unread)


def verdict(word: str, job: Job) -> str:
    """The closing line: what the zip is, and which of its files are the user's, lest one is there by mistake."""
    line = f"{word}: {summary(job.output)}"
    if not job.own:
        return line
    more = ", …" if len(job.own) > FIRST_FILES else ""
    files = "file" if len(job.own) == 1 else "files"
    return f"{line}; {len(job.own)} {files} of yours: {', '.join(job.own[:FIRST_FILES])}{more}"


def not_compared(release: str) -> str:
    return f"not compared: the bytecode, since Python {release}, which compiled it, is not on this machine"
