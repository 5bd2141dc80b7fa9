"""What a release needs beside the code: licence, workflow, hooks, and examples that read alike."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.terraform import CHECKOUT

GITHUB = CHECKOUT / ".github"
# The text of https://www.apache.org/licenses/LICENSE-2.0.txt, whose last page has a line for the owner's name.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
OWNER = "Copyright 2026 The terraform-aws-idempotent-consumer authors"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_licence_is_apache_2_0_with_the_owners_name() -> None:
    text = (CHECKOUT / "LICENSE").read_text()
    assert text.count(OWNER) == 1
    assert hashlib.sha256(text.replace(OWNER, "Copyright [yyyy] [name of copyright owner]").encode()).hexdigest() == (
        APACHE_2_0
    )


# --- on GitHub ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def job() -> Any:
    (job,) = read(GITHUB / "workflows" / "ci.yml")["jobs"].values()
    return job


def step(job: Any, action: str) -> Any:
    (found,) = [step for step in job["steps"] if step.get("uses", "").startswith(f"{action}@")]
    return found["with"]


def test_the_workflow_runs_what_runs_on_any_machine(job: Any) -> None:
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]


def test_the_workflow_runs_on_two_versions_of_python_beside_that_of_the_zip(job: Any) -> None:
    assert job["strategy"]["matrix"] == {"python": ["3.11", "3.13"]}
    assert step(job, "actions/setup-python")["python-version"].split("\n")[:2] == ["3.13", "${{ matrix.python }}"]
    assert step(job, "hashicorp/setup-terraform")["terraform_version"] == "1.11.4"


def test_the_workflow_may_read_ends_and_takes_no_action_without_a_version(job: Any) -> None:
    assert read(GITHUB / "workflows" / "ci.yml")["permissions"] == {"contents": "read"}
    assert job["timeout-minutes"] == 120
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert len(used) == 4
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)] == []


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_a_form_for_issues_has_what_github_asks_of_one(name: str) -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 1
    assert all(field["attributes"]["label"] for field in fields)


# --- .ci/run ------------------------------------------------------------------------------------------------


TARGETS = ("check", "test", "demo", "import-budget")


def run_ci(folder: Path, failing: str) -> subprocess.CompletedProcess[str]:
    """.ci/run, where make does nothing but end 3 at the target `failing`."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "grep", "id", "mkdir", "tail", "tee"):
        (tools / name).symlink_to(shutil.which(name) or name)
    for name, text in {"make": f'[ "$1" != "{failing}" ] || exit 3', "chromium": "exit 1"}.items():
        (tools / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tools / name).chmod(0o755)
    (folder / ".ci").mkdir()
    script = shutil.copy(CHECKOUT / ".ci" / "run", folder / ".ci" / "run")
    bash = shutil.which("bash") or "bash"
    return subprocess.run([bash, script], capture_output=True, text=True, check=False, env={"PATH": str(tools)})


@pytest.mark.parametrize("failing", TARGETS)
def test_ci_fails_and_says_with_what_when_one_part_fails(failing: str, tmp_path: Path) -> None:
    done = run_ci(tmp_path, failing)
    check, suite, demo, budget = (3 if failing == target else 0 for target in TARGETS)
    assert done.stdout.splitlines()[-1] == (
        f"make check ended with {check}, make test with {suite}, make demo with {demo}, "
        f"make import-budget with {budget}."
    )
    assert done.returncode == 1


def test_ci_passes_where_all_parts_pass(tmp_path: Path) -> None:
    assert run_ci(tmp_path, "nothing").returncode == 0


# --- pre-commit ---------------------------------------------------------------------------------------------


def test_the_hooks_are_local_and_call_what_is_there() -> None:
    (repository,) = read(CHECKOUT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["entry"]: hook["language"] for hook in repository["hooks"]}
    assert hooks == {
        ".venv/bin/ruff format": "system",
        "terraform fmt": "system",
        ".venv/bin/python -m checks --fast": "system",
    }


# --- examples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted((CHECKOUT / "examples").glob("*/README.md")), ids=lambda page: page.parent.name)
def test_the_page_of_an_example_has_the_form_of_the_others(page: Path) -> None:
    text = page.read_text()
    head, *sections = re.split(r"^## (.*)\n", text, flags=re.M)
    assert sections[::2] == ["Try it", "What to see", "What it costs"]
    assert re.fullmatch(r"# [A-Z]\S.*\n\n(?:\S.*\n){2,4}\n```text\n(?:.+\n){1,4}```\n\n", head), (
        "what it shows, and the flow"
    )
    assert re.search(r"^terraform destroy -var deletion_protection=false", sections[1], re.M)
    assert "a month (us-east-1)" in sections[5]
