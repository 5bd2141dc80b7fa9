"""A copy of the checkout to plant faults in, and runs of tests in it."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode

from local.processes import clean_environment
from tests.plant import plugin
from tests.plant.fault import Fault

# As pyproject.toml gives them to pytest. An editable install would otherwise bring in the checkout's own code.
_IMPORTED_FROM = (".", "lambda/src", "lambda", "cli")
# Terraform's AWS provider may have been downloaded into it.
_SHARED = Path("build") / "terraform"
_LONGEST_SECONDS = 180


@dataclass(frozen=True)
class Run:
    """What pytest said. code: its exit code, None where it did not end. failed: by test, the kind of its error."""

    code: int | None
    failed: Mapping[str, str] = field(default_factory=dict)
    passed: Sequence[str] = ()
    strangers: Sequence[str] = ()
    output: str = ""


class Copy:
    """The files of a checkout that git tracks, or would track, in a folder of their own."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.root = folder / "checkout"
        self._report = folder / "report.json"
        self._temporary = folder / "pytest"
        self._process: subprocess.Popen[str] | None = None
        for name in files_of(checkout):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, target)
        shared = checkout / _SHARED
        if shared.is_dir():
            (self.root / _SHARED).parent.mkdir(exist_ok=True)
            (self.root / _SHARED).symlink_to(shared)
        # By content: two versions of a file of one second and one size are told apart.
        compileall.compile_dir(self.root, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """With the fault in the copy while the block runs. Raises NotApplicable."""
        texts = {change.path: read(self.root / change.path) for change in fault.changes}
        changed = {change.path: change.apply(texts[change.path]) for change in fault.changes}
        try:
            for path, text in changed.items():
                (self.root / path).write_text(text, encoding="utf-8")
            yield
        finally:
            for path, text in texts.items():
                (self.root / path).write_text(text, encoding="utf-8")

    def run(self, tests: Sequence[str]) -> Run:
        """Run tests in the copy."""
        self._report.unlink(missing_ok=True)
        options = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", f"--basetemp={self._temporary}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.plant.plugin", *options, *tests],
            cwd=self.root,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,  # what the tests start ends with them
        )
        self._process = process
        try:
            output, _ = process.communicate(timeout=_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()
            process.communicate()
            return Run(None)
        finally:
            self._process = None
        found = json.loads(self._report.read_text()) if self._report.exists() else {}
        return Run(process.returncode, output=output, **found)

    def stop(self) -> None:
        """End the tests that run, if any do."""
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _environment(self) -> dict[str, str]:
        own = {
            "PYTHONPATH": os.pathsep.join(str(self.root / name) for name in _IMPORTED_FROM),
            "PYTHONDONTWRITEBYTECODE": "1",
            plugin.REPORT: str(self._report),
        }
        kept = clean_environment(own)
        return {name: value for name, value in kept.items() if not name.startswith("PYTEST_")}


def files_of(checkout: Path) -> list[str]:
    """What git tracks and what it would take up, as far as it is there."""
    answer = subprocess.run(
        ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in dict.fromkeys(answer.stdout.split("\0")) if name and (checkout / name).is_file()]


def read(path: Path) -> str:
    """A file's text; empty where there is none, in which no patch finds its lines."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""
