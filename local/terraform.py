"""Finds Terraform and the AWS provider on this machine, and runs root modules against a local endpoint.

Needs nothing but Python: the Makefile calls it before the environment of the tests exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
BUILD = CHECKOUT / "build" / "terraform"
OLDEST_TERRAFORM = (1, 9)
PROVIDER = Path("registry.terraform.io") / "hashicorp" / "aws"
# What modules/*/versions.tf accepts.
OLDEST_PROVIDER, FIRST_REFUSED_PROVIDER = (5, 100), (7,)
# The version that the tests are measured with; only for a machine that has none yet.
DOWNLOADED_PROVIDER = "5.100.0"
# Where packages and images put mirrors, beside the folders that Terraform itself looks into.
_MIRROR_FOLDERS = ("/opt", "/usr/share", "/usr/local/share", "/usr/local/lib", "/srv", "~")
_IMPLIED_MIRRORS = (
    "~/.terraform.d/plugins",
    "~/.terraform.d/plugin-cache",
    "~/.local/share/terraform/plugins",
    "~/Library/Application Support/io.terraform/plugins",
    "/usr/local/share/terraform/plugins",
    "/usr/share/terraform/plugins",
)
# The user's own settings for these would change what a local run does.
_DROPPED_PREFIXES = ("AWS_", "TF_CLI_ARGS", "TF_VAR_", "TF_WORKSPACE", "TF_DATA_DIR", "TF_LOG")


class TerraformError(RuntimeError):
    """Terraform is missing, or refused to do what it was asked; the message says what to do or what it said."""


# --- the program and the provider ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Terraform:
    """The installed program."""

    path: str
    version: tuple[int, ...]
    platform: str


@functools.cache
def find_terraform() -> Terraform:
    """The `terraform` on the PATH, or the one that TERRAFORM names; refuses one older than 1.9."""
    name = os.environ.get("TERRAFORM", "terraform")
    path = shutil.which(name)
    if path is None:
        raise TerraformError(
            f"{name} is not installed. Install Terraform 1.9 or newer: "
            "https://developer.hashicorp.com/terraform/install\n"
            "If it is installed, name it: TERRAFORM=/path/to/terraform"
        )
    answer = subprocess.run(
        [path, "version", "-json"], capture_output=True, text=True, check=False, env=_plain_environment()
    )
    try:
        # A warning about a missing CLI configuration file may stand before the JSON.
        facts = json.loads(answer.stdout[answer.stdout.index("{") :])
        version = numbers(facts["terraform_version"])
    except (ValueError, KeyError):
        raise TerraformError(f"{path} version says nothing useful:\n{answer.stdout}{answer.stderr}") from None
    if version < OLDEST_TERRAFORM:
        raise TerraformError(f"{path} is Terraform {facts['terraform_version']}; 1.9 or newer is needed.")
    return Terraform(path, version, facts["platform"])


def numbers(version: str) -> tuple[int, ...]:
    """The numeric parts of a version: `5.100.0` → (5, 100, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-")[0]))


def provider_versions(mirror: Path, platform: str) -> list[tuple[int, ...]]:
    """The usable versions of the AWS provider for `platform` in a filesystem mirror, oldest first."""
    folder = mirror / PROVIDER
    packed = folder.glob(f"terraform-provider-aws_*_{platform}.zip")
    unpacked = folder.glob(f"*/{platform}/terraform-provider-aws*")
    found = {numbers(path.name.split("_")[1]) for path in packed}
    found |= {numbers(path.parent.parent.name) for path in unpacked}
    return sorted(version for version in found if OLDEST_PROVIDER <= version < FIRST_REFUSED_PROVIDER)


def mirror_candidates(home: Path, folders: Iterable[str] = _MIRROR_FOLDERS) -> Iterator[Path]:
    """Folders that may be a filesystem mirror: those that Terraform knows, then one level of the usual places."""

    def expand(folder: str) -> Path:
        return home / folder[2:] if folder.startswith("~/") else home if folder == "~" else Path(folder)

    yield from map(expand, _IMPLIED_MIRRORS)
    for folder in map(expand, folders):
        with contextlib.suppress(OSError):
            yield from sorted(path for path in folder.iterdir() if (path / PROVIDER).is_dir())


def find_mirror(platform: str, home: Path, named: str | None = None) -> Path | None:
    """The filesystem mirror that the user named with TF_PROVIDER_MIRROR, or the first that has the provider."""
    if named:
        mirror = Path(named).expanduser()
        if not provider_versions(mirror, platform):
            raise TerraformError(
                f"TF_PROVIDER_MIRROR={named} holds no AWS provider >= 5.100, < 7 for {platform}: "
                f"expected {mirror / PROVIDER}/<version>/{platform}/"
            )
        return mirror.resolve()
    for mirror in mirror_candidates(home):
        with contextlib.suppress(OSError):
            if provider_versions(mirror, platform):
                return mirror
    return None


def mirror_configuration(mirror: Path) -> str:
    """A CLI configuration that takes the AWS provider from `mirror` and all others from the registry."""
    source = PROVIDER.as_posix()
    return (
        "provider_installation {\n"
        f'  filesystem_mirror {{\n    path    = {json.dumps(str(mirror))}\n    include = ["{source}"]\n  }}\n'
        f'  direct {{\n    exclude = ["{source}"]\n  }}\n'
        "}\n"
    )


@functools.cache
def cli_environment() -> dict[str, str]:
    """The environment for running Terraform: its provider found, no prompts, no real AWS account in reach.

    The provider comes, in this order, from the mirror that TF_PROVIDER_MIRROR names, from where the user's own
    CLI configuration says, from a mirror in a usual place, or from the registry (fetched once, into build/).
    """
    environment = _plain_environment()
    environment["TF_CLI_CONFIG_FILE"] = str(_cli_configuration())
    return environment


def _plain_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED_PREFIXES)}
    kept.pop("TF_PLUGIN_CACHE_DIR", None)  # not safe for inits side by side
    if not _user_configuration(os.environ, Path.home()):
        kept.pop("TF_CLI_CONFIG_FILE", None)
    return kept | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        # Profiles of the user's may name endpoints and roles.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "CHECKPOINT_DISABLE": "1",
        # Memory for time: a plan takes a third less of a core.
        "GOGC": "400",
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
    }


def _user_configuration(environment: Mapping[str, str], home: Path) -> Path | None:
    named = environment.get("TF_CLI_CONFIG_FILE")
    if named and Path(named).is_file():
        return Path(named).resolve()
    usual = home / ".terraformrc"
    return usual if usual.is_file() else None


def _cli_configuration() -> Path:
    terraform = find_terraform()
    named = os.environ.get("TF_PROVIDER_MIRROR")
    if not named:
        own = _user_configuration(os.environ, Path.home())
        if own is not None:
            return own
    mirror = find_mirror(terraform.platform, Path.home(), named) or _downloaded_mirror(terraform)
    return _write_configuration("cli.tfrc", mirror_configuration(mirror))


def _downloaded_mirror(terraform: Terraform) -> Path:
    """Fetch the provider from the registry, once: inits side by side may share a mirror, but not a plugin cache."""
    mirror = BUILD / "providers"
    with _lock("providers"):
        if provider_versions(mirror, terraform.platform):
            return mirror
        print("Fetching Terraform's AWS provider from the registry, once…", file=sys.stderr, flush=True)
        mirror.mkdir(parents=True, exist_ok=True)
        environment = _plain_environment() | {
            "TF_CLI_CONFIG_FILE": str(_write_configuration("registry.tfrc", "")),
            "TF_PLUGIN_CACHE_DIR": str(mirror),
        }
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "main.tf").write_text(
                "terraform {\n  required_providers {\n    aws = {\n"
                f'      source  = "hashicorp/aws"\n      version = "{DOWNLOADED_PROVIDER}"\n'
                "    }\n  }\n}\n"
            )
            answer = subprocess.run(
                [terraform.path, f"-chdir={folder}", "init", "-input=false", "-no-color"],
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
        if answer.returncode:
            raise TerraformError(
                "Terraform's AWS provider is not on this machine, and the registry (registry.terraform.io) does "
                "not give it. Either let this machine reach the registry, or name a folder that holds "
                f"{PROVIDER.as_posix()}/<version>/{terraform.platform}/:\n"
                "  TF_PROVIDER_MIRROR=/path/to/folder\n\n"
                f"Terraform said:\n{answer.stderr.strip()}"
            )
    return mirror


def _write_configuration(name: str, text: str) -> Path:
    """Write a CLI configuration in one step: other processes may be reading it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / name
    if not path.is_file() or path.read_text() != text:
        with tempfile.NamedTemporaryFile("w", dir=BUILD, delete=False) as draft:
            draft.write(text)
        os.replace(draft.name, path)
    return path


@contextlib.contextmanager
def _lock(name: str) -> Iterator[None]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# --- root modules -------------------------------------------------------------------------------------------

Progress = Callable[[int, int], None]  # resources done, resources planned


class Root:
    """A root module of this checkout, copied aside and pointed at a local endpoint.

    `source` is its folder in the checkout; what it calls by relative path comes along. `variables` are set as a
    `terraform.tfvars` file would set them; `override` is Terraform text that is merged over the copy's own.
    """

    def __init__(
        self,
        source: str,
        work: Path,
        endpoint: str,
        *,
        variables: Mapping[str, Any] | None = None,
        override: str = "",
    ) -> None:
        copy_modules(work, source)
        self.folder = work / source
        texts = "\n".join(path.read_text() for path in self.folder.glob("*.tf"))
        has_provider = re.search(r'^provider\s+"aws"\s*{', texts, re.MULTILINE) is not None
        name = "local_override.tf" if has_provider else "local_provider.tf"
        (self.folder / name).write_text(provider_block(endpoint))
        if override:
            (self.folder / "more_override.tf").write_text(override)
        (self.folder / "local.auto.tfvars.json").write_text(json.dumps(dict(variables or {})))
        self._environment = cli_environment() | {"AWS_ENDPOINT_URL": endpoint}

    def init(self) -> None:
        self._run(["init", "-backend=false"])

    def apply(self, progress: Progress = lambda done, planned: None) -> None:
        """Create everything; `progress` hears of each resource that is done."""
        planned = done = 0

        def follow(message: dict[str, Any]) -> None:
            nonlocal planned, done
            if message.get("type") == "change_summary" and message["changes"]["operation"] == "plan":
                planned = message["changes"]["add"] + message["changes"]["change"]
            elif message.get("type") == "apply_complete" and message["hook"]["action"] != "read":
                done += 1
            else:
                return
            progress(done, planned)

        self._run_json(["apply", "-auto-approve", "-parallelism=30"], follow)

    def changes(self) -> dict[str, list[str]]:
        """What a plan would do now: resource address → actions. Empty when nothing would change."""
        self._run(["plan", "-parallelism=30", "-out=next.tfplan"])
        plan = json.loads(self._run(["show", "-json", "next.tfplan"]))
        return {
            change["address"]: change["change"]["actions"]
            for change in plan.get("resource_changes", [])
            if change["change"]["actions"] not in (["no-op"], ["read"])
        }

    def output(self) -> dict[str, Any]:
        """The root's outputs, by name."""
        return {name: entry["value"] for name, entry in json.loads(self._run(["output", "-json"])).items()}

    def resources(self) -> list[str]:
        """The addresses in the state; empty after a complete destroy."""
        return self._run(["state", "list"]).split()

    def destroy(self) -> None:
        self._run_json(["destroy", "-auto-approve", "-parallelism=30"], lambda message: None)

    def _run(self, arguments: Sequence[str]) -> str:
        lines: list[str] = []
        status = self._follow([*arguments, "-no-color"] if arguments[0] in _COLOURED else arguments, lines.append)
        if status:
            raise TerraformError(f"terraform {arguments[0]} failed in {self.folder}:\n" + "".join(lines))
        return "".join(lines)

    def _run_json(self, arguments: Sequence[str], follow: Callable[[dict[str, Any]], None]) -> None:
        problems: list[str] = []

        def read(line: str) -> None:
            try:
                message = json.loads(line)
            except ValueError:
                problems.append(line.rstrip())
                return
            if message.get("@level") == "error":
                diagnostic = message.get("diagnostic", {})
                where = diagnostic.get("address", "")
                problems.append(f"{where}: {message['@message']} {diagnostic.get('detail', '')}".strip(": "))
            follow(message)

        status = self._follow([*arguments, "-json"], read)
        if status:
            raise TerraformError(f"terraform {arguments[0]} failed in {self.folder}:\n" + "\n".join(problems))

    def _follow(self, arguments: Sequence[str], read: Callable[[str], object]) -> int:
        # A group of its own: Ctrl-C in the terminal reaches this program, which ends Terraform and its plugins.
        process = subprocess.Popen(
            [find_terraform().path, f"-chdir={self.folder}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                read(line)
            return process.wait()
        finally:
            if process.poll() is None:
                _end_group(process)


_COLOURED = {"init", "plan"}


def _end_group(process: subprocess.Popen[str]) -> None:
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def copy_modules(target: Path, source: str = "") -> None:
    """Copy the Terraform files of the checkout, and the root module `source`, to `target`."""
    ignore = shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.tfplan", "*.auto.tfvars*", "__pycache__")
    target.mkdir(parents=True, exist_ok=True)
    for path in CHECKOUT.glob("*.tf"):
        shutil.copy2(path, target / path.name)
    for folder in ("modules", "lambda/dist", source):
        if folder and (CHECKOUT / folder).is_dir():
            shutil.copytree(CHECKOUT / folder, target / folder, ignore=ignore, dirs_exist_ok=True)


def provider_block(endpoint: str) -> str:
    """A provider that talks to `endpoint` alone. By its 25 tries of a call a refusal would look like a hang."""
    return (
        'provider "aws" {\n'
        '  region                      = "us-east-1"\n'
        '  access_key                  = "test"\n'
        '  secret_key                  = "test"\n'
        "  skip_credentials_validation = true\n"
        "  skip_metadata_api_check     = true\n"
        "  max_retries                 = 8\n"
        f"  # all services: AWS_ENDPOINT_URL = {endpoint}\n"
        "}\n"
    )


# --- the command --------------------------------------------------------------------------------------------


def main() -> int:
    """Say which Terraform and which provider a local run uses, or what is missing."""
    try:
        terraform = find_terraform()
        environment = cli_environment()
    except TerraformError as error:
        print(error, file=sys.stderr)
        return 1
    version = ".".join(map(str, terraform.version))
    print(f"Terraform {version} ({terraform.path}), providers by {environment['TF_CLI_CONFIG_FILE']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
