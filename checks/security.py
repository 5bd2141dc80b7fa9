"""checkov finds nothing in the Terraform files but what a comment in the block explains.

checkov wants older releases of packages that the project uses too, so it has an environment of its own, made on first
use from requirements-checkov.txt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from checks.problem import CannotRun, at, line_of
from local.terraform import CHECKOUT, copy_modules

REQUIREMENTS = CHECKOUT / "requirements-checkov.txt"
ENVIRONMENT = CHECKOUT / "build" / "checkov"
INSTALL_SECONDS, SCAN_SECONDS = 900, 900
# With an API key in its environment checkov would send what it reads to its maker.
_DROPPED = ("BC_", "CHECKOV_", "CKV_", "LOG_LEVEL", "PRISMA_", "PYTHON")
_SKIP = re.compile(r"checkov:skip=\s*(?P<check>\w+)(?::(?P<reason>[^\n]*))?")
_BLOCK = re.compile(r"^(?:data|module|resource)\b", re.M)


def problems() -> list[str]:
    """Findings without a reason, and reasons without a finding, as `file:line: what, and what to do`."""
    checkov = _checkov()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "checkout").resolve()
        copy_modules(work, "examples")
        report = _scan(checkov, work, home=Path(folder))
        texts = {path.relative_to(work).as_posix(): path.read_text() for path in sorted(work.rglob("*.tf"))}
    unread = [Path(path).relative_to(work).as_posix() for path in report["results"]["parsing_errors"]]
    return [*judge_skips(texts, report), *judge_unread(texts, unread), *findings(report)]


def findings(report: Mapping[str, Any]) -> list[str]:
    """What checkov finds. It reads a module once for each of its callers; each finding is told once."""
    found = {
        f"{_file(check)}:{check['file_line_range'][0]}: {check['check_id']}: {check['check_name']}. "
        f"Mend it, or say in the block why not: # checkov:skip={check['check_id']}:<reason>"
        for check in report["results"]["failed_checks"]
    }
    return sorted(found)


def judge_skips(texts: Mapping[str, str], report: Mapping[str, Any]) -> list[str]:
    """The skips in `texts`, path → text, that give no reason, or that checkov does not heed."""
    heeded = {(_file(check), check["check_id"]) for check in report["results"]["skipped_checks"]}
    found = []
    for path, text in texts.items():
        for skip in _SKIP.finditer(text):
            line, check = line_of(text, skip.start()), skip["check"]
            if not (skip["reason"] or "").strip():
                found.append(at(path, line, f"{check} is skipped without a reason: give one behind a colon."))
            elif (path, check) not in heeded:
                found.append(
                    at(path, line, f"{check} checks no block here: remove the skip, or put it into its block.")
                )
    return found


def judge_unread(texts: Mapping[str, str], paths: Collection[str]) -> list[str]:
    """The files that checkov's own parser cannot read and that say what is made; variables and locals may be so."""
    what = (
        "checkov cannot read this file and checks nothing in it: move what is hard to read into locals of another file."
    )
    return [at(path, 1, what) for path in sorted(paths) if _BLOCK.search(texts[path])]


def read(output: str) -> dict[str, Any]:
    """checkov's JSON; refuses one in which nothing was checked."""
    report: dict[str, Any] = json.loads(output)
    if not report.get("results", {}).get("passed_checks"):
        raise CannotRun("checkov has read no Terraform files at all: has its command line changed?")
    return report


def _file(check: Mapping[str, Any]) -> str:
    return str(check["file_path"]).lstrip("/")


def _scan(checkov: Path, work: Path, home: Path) -> dict[str, Any]:
    # Nothing is fetched, and the exit code tells of failures of its own alone. It would find settings at home, too.
    command = [str(checkov), "--directory", ".", "--framework", "terraform", "--output", "json", "--compact"]
    done = _run([*command, "--skip-download", "--soft-fail"], SCAN_SECONDS, cwd=work, home=home)
    try:
        return read(done.stdout)
    except ValueError:
        raise CannotRun(f"checkov's output cannot be read: {_last_line(done.stderr)}") from None


def _checkov() -> Path:
    """checkov's program, in an environment that is made where there is none of these requirements and this Python."""
    mark, wanted = ENVIRONMENT / "made-from", f"{sys.version}\n{REQUIREMENTS.read_text()}"
    if not mark.is_file() or mark.read_text() != wanted:
        print("Making checkov's environment in build/checkov, once: about a minute…", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], INSTALL_SECONDS)
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        _run([*pip, "--requirement", str(REQUIREMENTS)], INSTALL_SECONDS)
        mark.write_text(wanted)
    return ENVIRONMENT / "bin" / "checkov"


def _run(
    command: Sequence[str], seconds: int, cwd: Path = CHECKOUT, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env=environment | ({"HOME": str(home)} if home else {}),
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{' '.join(command)} has not ended in {seconds} seconds.") from None
    if done.returncode:
        raise CannotRun(f"{' '.join(command)} ended with {done.returncode}: {_last_line(done.stderr or done.stdout)}")
    return done


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing."])[-1].strip()
