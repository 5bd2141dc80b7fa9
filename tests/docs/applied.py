"""A state as an apply would leave it, made from plans: so a plan of a change can be made without AWS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.terraform import cli_environment, find_terraform
from tests.plan.support import OFFLINE_PROVIDER, module_source

PROVIDER = 'provider["registry.terraform.io/hashicorp/aws"]'
ACCOUNT = "eu-central-1:111122223333"
# What only AWS knows before an apply, where another resource depends on it.
KNOWN_AFTER_APPLY = {
    "arn": "arn:aws:{service}:" + ACCOUNT + ":{name}",
    "id": "{name}",
    "url": "https://sqs.eu-central-1.amazonaws.com/111122223333/{name}",
    "version": "1",
}


def state_of(folder: Path, text: str) -> dict[str, Any]:
    """The state of a root module that has been applied."""
    state: dict[str, Any] | None = None
    prepare(folder, text)
    # What depends on what only AWS knows is planned once that is known.
    for _ in range(2):
        terraform(folder, "plan", "-refresh=false", "-out=plan")
        state = state_after(json.loads(terraform(folder, "show", "-json", "plan")))
        write_state(folder, state)
    assert state is not None
    return state


def planned_actions(folder: Path, text: str, state: Mapping[str, Any]) -> dict[str, str]:
    """What Terraform would do to the resources of a state, which nobody refreshes: address → action."""
    prepare(folder, text)
    write_state(folder, state)
    lines = map(json.loads, terraform(folder, "plan", "-refresh=false", "-json").splitlines())
    changes = [line["change"] for line in lines if line["type"] == "planned_change"]
    return {change["resource"]["addr"]: change["action"] for change in changes if change["action"] != "read"}


def prepare(folder: Path, text: str) -> None:
    (folder / "main.tf").write_text(OFFLINE_PROVIDER + text.replace("@/", module_source(folder)), encoding="utf-8")
    terraform(folder, "init", "-backend=false")


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    (folder / "terraform.tfstate").write_text(json.dumps(state), encoding="utf-8")


def terraform(folder: Path, *arguments: str) -> str:
    command = [find_terraform().path, f"-chdir={folder}", *arguments]
    # Less often cleaning up behind itself, Terraform takes a third less time.
    environment = cli_environment() | {"GOGC": "400"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def state_after(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The state after the apply of a plan."""
    unknown = {change["address"]: change["change"]["after_unknown"] for change in plan["resource_changes"]}
    resources: dict[str, dict[str, Any]] = {}
    for module, planned in managed(plan["planned_values"]["root_module"]):
        name, values = planned["address"], dict(planned.get("values", {}))
        for key, is_unknown in unknown[name].items():
            if key == "managed_policy_arns":
                values[key] = []
            elif key == "tags_all":
                values[key] = {}
            elif is_unknown is True and key in KNOWN_AFTER_APPLY:
                values[key] = made_up(planned["type"], values, key)
        instance = {"schema_version": planned["schema_version"], "attributes": values, "sensitive_attributes": []}
        if "index" in planned:
            instance["index_key"] = planned["index"]
        resource = {key: planned[key] for key in ("mode", "type", "name")} | {"provider": PROVIDER, "instances": []}
        resource |= {"module": module} if module else {}
        resources.setdefault(f"{module}.{planned['type']}.{planned['name']}", resource)["instances"].append(instance)
    return {
        "version": 4,
        "terraform_version": plan["terraform_version"],
        "serial": 1,
        "lineage": "a-test",
        "outputs": {},
        "resources": list(resources.values()),
    }


def managed(module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The resources below a module, each with its module's address."""
    for resource in module.get("resources", []):
        if resource["mode"] == "managed":
            yield module.get("address", ""), resource
    for child in module.get("child_modules", []):
        yield from managed(child)


def made_up(kind: str, values: Mapping[str, Any], key: str) -> str:
    name = next((values[each] for each in ("name", "function_name", "alarm_name") if values.get(each)), kind)
    if (kind, key) == ("aws_sqs_queue", "id"):
        key = "url"
    if kind == "aws_sns_topic":
        key = "arn"
    return KNOWN_AFTER_APPLY[key].format(service=kind.split("_")[1], name=name)
