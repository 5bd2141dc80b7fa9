"""The module works from a git address: nothing but what git holds, and no build step where it is applied."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.terraform import cli_environment, find_terraform

ROOT = Path(__file__).resolve().parents[2]
ZIP = "lambda/dist/idempotent-consumer.zip"

ROOT_MODULE = """
terraform {{
  required_version = ">= 1.9"
}}

provider "aws" {{
  access_key                  = "test"
  region                      = "eu-central-1"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}}

module "orders" {{
  source = "git::file://{repository}?ref={commit}"

  business_table_name = "order_records"
  name                = "orders"
}}

module "spare_queue" {{
  source = "git::file://{repository}//modules/queue?ref={commit}"

  name = "spare"
}}
"""


@dataclass(frozen=True)
class Planned:
    """A planned root module: its folder, and the planned resources by address."""

    folder: Path
    resources: Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """A root module elsewhere that takes this one from a git repository, after init, validate and plan."""
    folder = tmp_path_factory.mktemp("root")
    repository, commit = snapshot(tmp_path_factory.mktemp("clone") / "terraform-aws-idempotent-consumer")
    text = ROOT_MODULE.format(repository=repository.as_posix(), commit=commit)
    (folder / "main.tf").write_text(text, "utf-8")
    terraform(folder, "init", "-backend=false", "-no-color")
    terraform(folder, "validate", "-no-color")
    terraform(folder, "plan", "-no-color", "-out=root.tfplan")
    plan = json.loads(terraform(folder, "show", "-json", "root.tfplan"))
    return Planned(folder, dict(resources(plan["planned_values"]["root_module"])))


@pytest.mark.case("T08")
def test_the_function_takes_the_zip_that_came_with_the_module(planned: Planned) -> None:
    function = planned.resources["module.orders.module.function.aws_lambda_function.worker"]

    package = (planned.folder / function["filename"]).resolve()

    assert package.is_relative_to(planned.folder.resolve() / ".terraform" / "modules" / "orders")
    assert package.as_posix().endswith(ZIP)
    assert package.read_bytes() == (ROOT / ZIP).read_bytes()
    assert function["source_code_hash"] == base64_sha256(ROOT / ZIP)
    assert function["handler"] == "idempotent_consumer.handler.handler"


def test_a_submodule_works_from_its_own_address(planned: Planned) -> None:
    queues = {
        address: values["name"]
        for address, values in planned.resources.items()
        if address.startswith("module.spare_queue.aws_sqs_queue.")
    }

    assert queues == {
        "module.spare_queue.aws_sqs_queue.dead_letter": "spare-dlq",
        "module.spare_queue.aws_sqs_queue.intake": "spare",
    }


def snapshot(target: Path) -> tuple[Path, str]:
    """A repository that holds the checkout as it lies here, and the commit of that state.

    A later commit takes the zip away, so that only a module read at the commit asked for can plan.
    """
    target.mkdir()
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    present = [name for name in listed if name and os.path.lexists(ROOT / name)]
    for name in present:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    git(target, "init", "--quiet")
    # Forced, since a file may be tracked although a pattern ignores it.
    git(target, "add", "--force", "--all")
    git(target, "commit", "--quiet", "--message", "the checkout")
    commit = git(target, "rev-parse", "HEAD").strip()
    git(target, "rm", "--quiet", ZIP)
    git(target, "commit", "--quiet", "--message", "a later state")
    return target, commit


def git(folder: Path, *arguments: str) -> str:
    settings = {
        "commit.gpgSign": "false",
        "core.autocrlf": "false",
        "core.hooksPath": os.devnull,
        "user.email": "tests@example.com",
        "user.name": "Tests",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return run(["git", "-C", str(folder), *options, *arguments], without_git(os.environ))


def terraform(folder: Path, *arguments: str) -> str:
    return run([find_terraform().path, f"-chdir={folder}", *arguments], without_git(cli_environment()))


def without_git(environment: Mapping[str, str]) -> dict[str, str]:
    """A hook of git's may run the tests: its GIT_DIR would name the wrong repository."""
    return {name: value for name, value in environment.items() if not name.startswith("GIT_")}


def run(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def resources(module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in module.get("resources", []):
        yield resource["address"], resource.get("values", {})
    for child in module.get("child_modules", []):
        yield from resources(child)


def base64_sha256(path: Path) -> str:
    return base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
