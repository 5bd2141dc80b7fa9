"""The checks that other programs make, with what they say in this project's form."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from checks.problem import CannotRun, at
from checks.tree import CHECKOUT, Tree
from local.terraform import TerraformError, find_terraform

_FORMATTED = ("*.tf", "*.tfvars", "*.tftest.hcl", "*.tfmock.hcl")
# path:line: or path:line:column: and what is wrong.
_SAID = re.compile(r"^(?P<path>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?!note: )(?P<what>.*)$", re.M)


def terraform_fmt(tree: Tree) -> list[str]:
    """Terraform's own format, of all its files."""
    try:
        terraform = find_terraform().path
    except TerraformError as error:
        raise CannotRun(str(error)) from None
    files = tree.matching(*_FORMATTED)
    answer = _run([terraform, "fmt", "-check", "-list=true", "-no-color", *files])
    return formatting(answer.stdout, answer.stderr, answer.returncode)


def formatting(listed: str, said: str, status: int) -> list[str]:
    """What terraform fmt lists (to be formatted) and what it says (not to be read at all)."""
    broken = re.findall(r"^Error: (.*)\n\n +on (\S+) line (\d+)", said, re.M)
    problems = [at(path, int(line), f"{what}: correct it") for what, path, line in broken]
    problems += [at(path, 1, "this is not Terraform's format: run terraform fmt") for path in listed.split()]
    if status and not problems:
        raise CannotRun(f"terraform fmt failed: {said.strip()}")
    return problems


def ruff() -> list[str]:
    """The linter of Python."""
    answer = _run([_beside_python("ruff"), "check", "--output-format=concise", "--no-fix", "."])
    return said(answer, "ruff check")


def ruff_format() -> list[str]:
    """The format of Python."""
    answer = _run([_beside_python("ruff"), "format", "--check", "--output-format=concise", "."])
    return [f"{problem}: run ruff format" for problem in said(answer, "ruff format")]


def mypy() -> list[str]:
    """The types of Python, strictly."""
    return said(_run([sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty"]), "mypy")


def said(answer: subprocess.CompletedProcess[str], name: str) -> list[str]:
    """The problems in a tool's output; a tool that fails and names none could not run."""
    lines = [at(match["path"], int(match["line"]), match["what"]) for match in _SAID.finditer(answer.stdout)]
    if answer.returncode and not lines:
        raise CannotRun(f"{name} failed: {(answer.stderr or answer.stdout).strip()}")
    return lines if answer.returncode else []


def zip_is_fresh() -> list[str]:
    """The function's zip is what its sources give. Without Python 3.13 its bytecode is not compared."""
    answer = _run([sys.executable, "lambda/build.py", "--check"])
    if answer.returncode == 1:
        what = "this is not what its sources give: run python lambda/build.py (with --check it names each difference)"
        return [at("lambda/dist/idempotent-consumer.zip", 1, what)]
    if answer.returncode:
        raise CannotRun(answer.stderr.strip() or answer.stdout.strip())
    return []


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def _beside_python(name: str) -> str:
    """A program of this environment, which need not be on the PATH."""
    program = Path(sys.executable).with_name(name)
    if not program.is_file():
        raise CannotRun(
            f"{name} is not in this environment: `make check` makes one, or pip install -r requirements-dev.txt"
        )
    return str(program)
