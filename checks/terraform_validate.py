"""`terraform validate` accepts the root module, each module and each example, each of them as a root module."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from checks.problem import CannotRun, at
from local.terraform import TerraformError, cli_environment, copy_modules, find_terraform

SIDE_BY_SIDE = 2
# One command of Terraform; on an idle machine it takes some seconds.
COMMAND_SECONDS = 300


def problems() -> list[str]:
    """What `terraform validate` does not accept, as `file:line: what`. Nothing is left in the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        copy_modules(work, "examples")
        return validate(work, root_modules(work))


def root_modules(checkout: Path) -> list[str]:
    """The folders that are a root module in their turn, relative to the checkout."""
    folders = chain(checkout.glob("modules/*/"), checkout.glob("examples/*/"))
    return [".", *sorted(path.relative_to(checkout).as_posix() for path in folders if any(path.glob("*.tf")))]


def validate(work: Path, roots: Sequence[str]) -> list[str]:
    """The problems of `roots`, folders of `work`, which is written to. One of a shared module is told once."""
    try:
        first, others = roots[0], roots[1:]
        refused = _init(work, first)
        # What it has unpacked serves the others: unpacking the provider takes longer than all the rest.
        providers = work / first / ".terraform" / "providers"
        options = [f"-plugin-dir={providers}"] if providers.is_dir() else []
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            inits = [refused, *pool.map(lambda root: _init(work, root, options), others)]
            found = list(pool.map(lambda root, init: _validate(work, root, init), roots, inits))
    except TerraformError as error:
        raise CannotRun(str(error)) from None
    return list(dict.fromkeys(chain.from_iterable(found)))


def read(root: str, report: dict[str, Any]) -> list[str]:
    """The errors of `terraform validate -json` in the folder `root`, with the paths of the checkout."""
    return [_line(root, diagnostic) for diagnostic in report["diagnostics"] if diagnostic["severity"] == "error"]


def _line(root: str, diagnostic: dict[str, Any]) -> str:
    what = " ".join(f"{diagnostic['summary']}: {diagnostic.get('detail', '')}".split()).strip(": ")
    if "range" not in diagnostic:
        return f"{root}: {what}"
    where = diagnostic["range"]
    return at(os.path.normpath(f"{root}/{where['filename']}"), where["start"]["line"], what)


def _init(work: Path, root: str, options: Sequence[str] = ()) -> str:
    """What `terraform init` has against the root module; empty if nothing."""
    done = _terraform(work / root, ["init", "-backend=false", "-input=false", "-no-color", *options])
    return (done.stderr.strip() or done.stdout.strip()) if done.returncode else ""


def _validate(work: Path, root: str, refused: str) -> list[str]:
    done = _terraform(work / root, ["validate", "-json"])
    try:
        found = read(root, json.loads(done.stdout))
    except ValueError:
        return [f"{root}: terraform validate says nothing that can be read: {done.stderr.strip()}"]
    # Where a file cannot be read both fail, and this one says where.
    if refused and not found:
        return [f"{root}: terraform init: {' '.join(refused.split())}"]
    return found


def _terraform(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [find_terraform().path, f"-chdir={folder}", *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cli_environment(),
    ) as process:
        try:
            output, errors = process.communicate(timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()  # and Terraform ends its plugins
            raise TerraformError(
                f"terraform {arguments[0]} has not ended in {COMMAND_SECONDS} seconds in {folder.name}: "
                "try it by hand, with TF_LOG=debug"
            ) from None
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
