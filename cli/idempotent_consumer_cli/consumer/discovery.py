"""Finds a consumer and reads its settings from where they are in force: its function's environment."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.settings import Settings, SettingsError
from idempotent_consumer.workflow.settings import WorkflowSettings
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.letters.opened import AnySettings
from idempotent_consumer_cli.session import Session

SHIPPED_HANDLER = "idempotent_consumer.handler.handler"
# What tells an operation's function, and a workflow's starter, from a pipeline's.
_OF_OPERATIONS = "OPERATION_UNCERTAIN"
_OF_WORKFLOWS = "STATE_MACHINE_ARN"
# What tells the outputs of these modules from others.
_OUTPUTS = frozenset({"dead_letter_queue_url", "function_name", "queue_url"})
_TABLES = (frozenset({"ledger_table_name"}), frozenset({"idempotency_table_name", "state_machine_arn"}))


@dataclass(frozen=True)
class Consumer:
    """A consumer as it is deployed: a pipeline (the root module), an operation (modules/operation), or a workflow
    (modules/workflow), whose function is its starter.

    plans_by_settings: the shipped handler of a pipeline plans from the settings, so what it does with an event can be
    foretold; code of the user's own cannot be.
    """

    name: str
    settings: AnySettings
    queue_url: str
    dead_letter_queue_url: str
    visibility_seconds: int
    function_name: str
    log_group: str
    plans_by_settings: bool

    @property
    def is_fifo(self) -> bool:
        return self.queue_url.endswith(".fifo")

    @property
    def operation(self) -> OperationSettings | None:
        """Its settings where it is an operation."""
        return self.settings if isinstance(self.settings, OperationSettings) else None

    @property
    def workflow(self) -> WorkflowSettings | None:
        """Its settings where it is a workflow."""
        return self.settings if isinstance(self.settings, WorkflowSettings) else None

    @property
    def guard_name(self) -> str:
        """Of a workflow: the function that is its guard, where it has one."""
        return f"{self.name}-guard"

    @property
    def is_pipeline(self) -> bool:
        return isinstance(self.settings, Settings)

    @property
    def pipeline(self) -> Settings:
        """Its settings as a pipeline. Raises CommandError for another kind."""
        return self.pipeline_or("a pipeline is asked for", "a pipeline is asked for")

    def pipeline_or(self, of_operation: str, of_workflow: str) -> Settings:
        """The same; of_operation, of_workflow: what an operator is to do instead about one of these."""
        if isinstance(self.settings, OperationSettings):
            raise CommandError(f"{self.name} is an operation: {of_operation}")
        if isinstance(self.settings, WorkflowSettings):
            raise CommandError(f"{self.name} is a workflow: {of_workflow}")
        return self.settings

    @property
    def window_seconds(self) -> int:
        """How long its ledger remembers an event, or its table a claim."""
        if isinstance(self.settings, WorkflowSettings):
            return self.settings.retention_seconds
        return self.settings.ttl_window_seconds


def find_consumer(session: Session, name: str | None, terraform_dir: Path | None) -> Consumer:
    """The consumer named `name`, or the one that a Terraform folder's outputs name.

    With both, the name chooses among the folder's consumers. Raises CommandError where there is none.
    """
    if terraform_dir is not None:
        function_name = _function_of(terraform_outputs(terraform_dir), name, terraform_dir)
    elif name is not None:
        function_name = f"{name}-worker"
    else:
        raise CommandError("which consumer? Give --name, or --terraform-dir with the folder that it was applied from")
    return _read(session, function_name)


def terraform_outputs(folder: Path) -> dict[str, Any]:
    """The outputs of a root module, by name. Raises CommandError."""
    program = shutil.which("terraform")
    if program is None:
        raise CommandError("terraform is not installed, so --terraform-dir cannot be read: give --name instead")
    try:
        answer = subprocess.run(
            [program, f"-chdir={folder}", "output", "-json", "-no-color"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise CommandError(f"{program} cannot be run ({error}): give --name instead") from None
    if answer.returncode:
        raise CommandError(
            f"terraform output failed in {folder} ({answer.stderr.strip()}): run terraform init there, or give --name "
            "instead"
        )
    try:
        return {name: entry["value"] for name, entry in json.loads(answer.stdout).items()}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise CommandError(f"{program} output -json gives no JSON of outputs: give --name instead") from None


def consumers_in(outputs: Mapping[str, Any]) -> dict[str, str]:
    """The consumers among Terraform outputs: output name to function name; the outputs of one stand bare or in one."""
    return {label: str(found["function_name"]) for label, found in _candidates(outputs)}


def _candidates(outputs: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if any(outputs.keys() >= _OUTPUTS | table for table in _TABLES):
        yield "", outputs
    for label, value in outputs.items():
        if isinstance(value, Mapping):
            for inner, found in _candidates(value):
                yield f"{label}.{inner}".strip("."), found


def _function_of(outputs: Mapping[str, Any], name: str | None, folder: Path) -> str:
    found = consumers_in(outputs)
    chosen = {
        label: function
        for label, function in found.items()
        if name is None or name in (label, function[: -len("-worker")])
    }
    if len(set(chosen.values())) == 1:
        return next(iter(chosen.values()))
    if not found:
        raise CommandError(
            f'{folder} has no output with a consumer in it: add `output "orders" {{ value = module.orders }}` and '
            "apply, or give --name"
        )
    names = ", ".join(sorted({function[: -len("-worker")] for function in found.values()}))
    if not chosen:
        raise CommandError(f"{folder} has no consumer named {name}: it has {names}")
    raise CommandError(f"{folder} has several consumers: choose one with --name ({names})")


def _read(session: Session, function_name: str) -> Consumer:
    try:
        function = session.functions.get_function_configuration(FunctionName=function_name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            raise CommandError(
                f"there is no function {function_name} in {session.functions.meta.region_name}: check --name, --region "
                "and --profile"
            ) from None
        raise
    environment = function.get("Environment", {})
    if "Error" in environment:
        raise CommandError(
            f"the settings of {function_name} cannot be read ({environment['Error'].get('Message', '')}): you need "
            "kms:Decrypt on its key"
        )
    try:
        settings = _settings(environment.get("Variables", {}))
        if settings.backoff is None:
            raise SettingsError("QUEUE_URL is missing")
    except ValueError as error:
        if " is missing" not in str(error):
            raise CommandError(
                f"{function_name} cannot start ({error}): mend what the module sets it from, and apply; or, if it is "
                "of another version, use the command line of that"
            ) from None
        raise CommandError(
            f"{function_name} is not a consumer of this version of the module ({error}): apply the module again, or "
            "use the command line of its version"
        ) from None
    return Consumer(
        name=settings.consumer_name,
        settings=settings,
        queue_url=settings.backoff.queue_url,
        dead_letter_queue_url=settings.dead_letter_queue_url,
        visibility_seconds=settings.backoff.visibility_seconds,
        function_name=function_name,
        log_group=function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{function_name}",
        plans_by_settings=function.get("Handler") == SHIPPED_HANDLER,
    )


def _settings(variables: Mapping[str, str]) -> AnySettings:
    if _OF_WORKFLOWS in variables:
        return WorkflowSettings.from_environment(variables)
    if _OF_OPERATIONS in variables:
        return OperationSettings.from_environment(variables)
    return Settings.from_environment(variables)
