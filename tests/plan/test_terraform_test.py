"""`terraform test` with a mocked provider, as a part of the suite: it runs beside the tests that only wait."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest

from local.terraform import CHECKOUT, cli_environment, find_terraform

# Hundreds of runs, each of which test_refusals.py plans too, faster, and compares with what the file says of it.
PLANNED_ELSEWHERE = {"reject.tftest.hcl", "reject_operation.tftest.hcl", "reject_workflow.tftest.hcl"}
FILES = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for path in (CHECKOUT / "tests").glob("*.tftest.hcl")
    if path.name not in PLANNED_ELSEWHERE
)

Terraform = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """Runs Terraform in the checkout, with its working data elsewhere."""
    environment = cli_environment() | {"TF_DATA_DIR": str(tmp_path_factory.mktemp("terraform-test"))}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [find_terraform().path, f"-chdir={CHECKOUT}", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    initialised = run("init", "-backend=false", "-no-color")
    assert initialised.returncode == 0, initialised.stdout + initialised.stderr
    return run


@pytest.mark.parametrize("file", FILES)
def test_all_runs_of_the_file_pass(terraform: Terraform, file: str) -> None:
    answer = terraform("test", "-no-color", f"-filter={file}")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert re.search(r"Success! [1-9][0-9]* passed, 0 failed", answer.stdout), answer.stdout
