"""Plans root modules of this checkout without AWS: real provider, mocked credentials, an empty state."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tftest

from local.terraform import CHECKOUT, cli_environment, copy_modules, find_terraform

# Nothing of this asks AWS anything.
OFFLINE_PROVIDER = """
provider "aws" {
  access_key                  = "test"
  region                      = "eu-central-1"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}
"""


@dataclass(frozen=True)
class Plan:
    """A plan in Terraform's JSON form, read by the addresses of resources and data sources."""

    json: Mapping[str, Any]

    def after(self, address: str) -> dict[str, Any]:
        """The planned values, or those that a data source was read with; what is known only after apply is missing."""
        read = self._read(self.json.get("prior_state", {}).get("values", {}).get("root_module", {}))
        return dict(read[address] if address in read else self._change(address)["after"])

    def values(self, address: str, *names: str) -> tuple[Any, ...]:
        """Some of the planned values, in the order asked for."""
        after = self.after(address)
        return tuple(after[name] for name in names)

    def after_unknown(self, address: str) -> dict[str, Any]:
        """Which values are known only after apply."""
        return dict(self._change(address)["after_unknown"])

    def created(self, below: str = "") -> list[str]:
        """The addresses that would be created below a module, sorted, without that module's own part."""
        prefix = f"{below}." if below else ""
        return sorted(
            change["address"].removeprefix(prefix)
            for change in self.json["resource_changes"]
            if change["change"]["actions"] == ["create"] and change["address"].startswith(prefix)
        )

    def configuration(self, *modules: str) -> Mapping[str, Any]:
        """The configuration of a module, found by the names of the calls that lead to it."""
        module = self.json["configuration"]["root_module"]
        for name in modules:
            module = module["module_calls"][name]["module"]
        return dict(module)

    def _read(self, module: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """The values of the data sources of a module, and of those below it, that have been read for the plan."""
        read = {each["address"]: each["values"] for each in module.get("resources", [])}
        for child in module.get("child_modules", []):
            read |= self._read(child)
        return read

    def _change(self, address: str) -> Mapping[str, Any]:
        changes = {change["address"]: change["change"] for change in self.json["resource_changes"]}
        assert address in changes, f"no {address} among\n" + "\n".join(sorted(changes))
        return dict(changes[address])


def plan(source: str, folder: Path, variables: Mapping[str, Any] | None = None) -> Plan:
    """Plan the root module `source` of this checkout, copied to `folder`, from an empty state."""
    copy_modules(folder, source)
    (folder / source / "offline.tf").write_text(OFFLINE_PROVIDER)
    root = tftest.TerraformTest(source, str(folder), find_terraform().path, cli_environment())
    root.setup(cleanup_on_exit=False)
    return Plan(root.plan(output=True, tf_vars=dict(variables or {}))._raw)


def module_source(folder: Path, path: str = ".") -> str:
    """How a root module in `folder` names a module of this checkout, to be read in place."""
    return os.path.relpath(CHECKOUT / path, folder)


def plan_errors(folder: Path, text: str) -> list[Mapping[str, Any]]:
    """Make `folder` a root module of `text`, plan it, and return the errors."""
    (folder / "main.tf").write_text(OFFLINE_PROVIDER + text)
    initialised = _terraform(folder, "init", "-backend=false")
    assert initialised.returncode == 0, initialised.stdout + initialised.stderr
    lines = _terraform(folder, "plan", "-json").stdout.splitlines()
    diagnostics = [json.loads(line).get("diagnostic", {}) for line in lines if line.startswith("{")]
    return [diagnostic for diagnostic in diagnostics if diagnostic.get("severity") == "error"]


def _terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_terraform().path, f"-chdir={folder}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=cli_environment(),
        stdin=subprocess.DEVNULL,
    )
