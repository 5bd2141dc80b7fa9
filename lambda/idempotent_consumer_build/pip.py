"""Lets pip fetch wheels from the index that the user has configured."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from idempotent_consumer_build.problem import CannotBuild

PIP_SECONDS = 600


class NotFetched(CannotBuild):
    """pip could not bring the wheels.

    reason: what it said. package: name==version of the first for which it found none, if it says so.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(f"{message}:\n{reason}")
        self.reason = reason
        found = re.search(r"No matching distribution found for (\S+)", reason)
        self.package = found[1] if found else None


def pure(version: str) -> list[str]:
    """pip's options for wheels of pure Python, which run on any processor."""
    return ["--python-version", version, "--platform", "any", "--implementation", "py", "--abi", "none"]


def errors(said: str) -> str:
    """The errors that pip reports, with the lines that belong to them; all that it said where it reports none.

    Of its warnings the last retry stays, as it tells why the index is out of reach.
    """
    warned = re.compile(r"WARNING|DEPRECATION|\[notice\]")
    lines = said.strip().splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("ERROR")), None)
    if first is None:
        return "\n".join(lines)
    retries = [line for line in lines if line.startswith("WARNING: Retrying")]
    return "\n".join(retries[-1:] + [line for line in lines[first:] if not warned.match(line)])


def download(requirements: Path, folder: Path, target: Sequence[str], names: str, *, hashed: bool = True) -> None:
    """Fetches the wheel of each requirement into the folder.

    target: pip's options for the platform. hashed: whether each requirement says the hashes that it may have.
    """
    print(f"pip fetches {names} …", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", *(["--require-hashes"] if hashed else []), *target]
    command += ["--dest", str(folder.resolve()), "--requirement", str(requirements.resolve())]
    try:
        # From the target folder, since `python -m` would import a pip.py of the current one.
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired as problem:
        raise CannotBuild(f"pip took over {PIP_SECONDS} s: is the package index within reach?") from problem
    if done.returncode:
        reason = errors(done.stderr.decode("utf-8", "replace"))
        if "No module named pip" in reason:
            reason += f"\nThis Python has no pip: {sys.executable} -m ensurepip"
        raise NotFetched(f"pip could not fetch the wheels of {names}", reason)
