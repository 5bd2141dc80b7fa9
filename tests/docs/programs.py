"""What each program that the pages call takes: the reason why a command is wrong, or None."""

from __future__ import annotations

import json
import re
import tomllib
from argparse import ArgumentParser
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import click
import pytest
from botocore import xform_name

from idempotent_consumer_build.cli import parse
from idempotent_consumer_cli.main import main
from local.terraform import CHECKOUT
from tests.docs.shell_blocks import Command

# Commands of the AWS CLI that no service has as an operation.
AWS_OWN = {("s3", "cp"), ("s3", "ls"), ("s3", "rm"), ("logs", "tail"), ("cloudwatch", "wait")}
AWS_GLOBAL = {"--endpoint-url", "--no-cli-pager", "--output", "--profile", "--query", "--region"}
CHOICES = {"-var", "-var-file", "-target", "-replace", "-destroy", "-refresh", "-refresh-only"}
# Of Terraform's commands the options that pages use. https://developer.hashicorp.com/terraform/cli/commands
TERRAFORM = {
    "apply": {*CHOICES, "-auto-approve"},
    "destroy": {"-auto-approve", "-target", "-var", "-var-file"},
    "fmt": {"-check", "-diff", "-recursive"},
    "import": {"-var", "-var-file"},
    "init": {"-backend", "-upgrade"},
    "output": {"-json", "-raw"},
    "plan": {*CHOICES, "-detailed-exitcode", "-out"},
    "show": {"-json"},
    "state": {"-dry-run"},
    "test": {"-filter", "-verbose"},
    "validate": {"-json"},
}
STATE_COMMANDS = {"list", "mv", "pull", "push", "rm", "show"}
# Modules that `python -m` runs: those of this project are looked at by their own parsers.
PYTHON_OWN = {"pip", "pytest", "venv", "zipfile"}
PROJECT = "terraform-aws-idempotent-consumer.git"


def idempotent_consumer(command: Command) -> str | None:
    _, name, *options = command.words
    found = main.get_command(click.Context(main), name)
    if found is None:
        return f"the command line has no {name}"
    try:
        found.make_context(name, list(options))
    except click.ClickException as problem:
        return problem.format_message()
    return None


@cache
def operations_of(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}


def aws(command: Command) -> str | None:
    _, service, name, *words = command.words
    if (service, name) in AWS_OWN:
        return None
    operation = operations_of(service).get(name)
    if operation is None:
        return f"{service} has no operation {name}"
    members = {f"--{xform_name(member, '-')}" for member in operation.input_shape.members}
    required = {f"--{xform_name(member, '-')}" for member in operation.input_shape.required_members}
    given = {word for word in words if word.startswith("--")}
    # A flag is turned off by a no-.
    unknown = {option for option in given - AWS_GLOBAL if option.replace("--no-", "--", 1) not in members}
    if unknown or required - given:
        return f"{service} {name}: no {sorted(unknown)}, missing {sorted(required - given)}"
    return next((f"no JSON: {word}" for word in words if word[:1] in ("{", "[") and not is_json(word)), None)


def is_json(word: str) -> bool:
    try:
        json.loads(word)
    except ValueError:
        return False
    return True


def terraform(command: Command) -> str | None:
    words = list(command.words[1:])
    folder = command.folder
    if words[0].startswith("-chdir="):
        folder = words.pop(0).removeprefix("-chdir=")
        if not (CHECKOUT / folder).is_dir():
            return f"there is no folder {folder}"
    name, *arguments = words
    if name not in TERRAFORM or (name == "state" and arguments[0] not in STATE_COMMANDS):
        return f"terraform has no {' '.join(words[:2])}"
    unknown = {word.split("=")[0] for word in arguments if word.startswith("-")} - TERRAFORM[name]
    if unknown:
        return f"terraform {name} is given {sorted(unknown)}: add it in tests/docs/programs.py if it exists"
    return undeclared(name, arguments, CHECKOUT / folder) if folder else None


def undeclared(name: str, arguments: list[str], folder: Path) -> str | None:
    """What a command names and the root module in `folder` does not declare."""
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.tf"))
    named = [("variable", value.split("=")[0]) for option, value in pairwise(arguments) if option == "-var"]
    if name == "output":
        named += [("output", word) for word in arguments if not word.startswith("-")]
    return next((f"{folder.name} has no {kind} {word}" for kind, word in named if f'{kind} "{word}"' not in text), None)


def make(command: Command) -> str | None:
    text = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.M))
    settings = set(re.findall(r"^([A-Z_]+) \?=", text, re.M)) | {"TF_PROVIDER_MIRROR", "TERRAFORM"}
    for word in command.words[1:]:
        name, given, _ = word.partition("=")
        if name not in (settings if given else targets):
            return f"the Makefile has no {word}"
    return None


def pip(command: Command) -> str | None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in command.words[2:]:
        found = re.fullmatch(rf"(?:([\w-]+)(?:\[(\w+)\])? @ )?git\+https://github\.com/[^/]+/{PROJECT}@(\S+)", word)
        if found is None or found[1] not in (None, project["name"]):
            return f"{word} is not this project"
        if found[2] and found[2] not in project["optional-dependencies"]:
            return f"this project has no extra {found[2]}"
        if found[3] not in ("PLACEHOLDER_tag", f"v{project['version']}"):
            return f"{word} is not of version {project['version']}"
    return None if command.words[1] == "install" else "pip is there to install"


def python(command: Command) -> str | None:
    words = list(command.words[1:])
    if words[0] != "-m":
        words = ["-m", words[0], *words[1:]]
    _, name, *arguments = words
    if name in PYTHON_OWN:
        return None
    if name in ("lambda/build.py", "idempotent_consumer_build"):
        return refusal(lambda: parse(arguments))
    place = CHECKOUT / (name if name.endswith(".py") else name.replace(".", "/"))
    if not (place.is_file() or place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()):
        return f"there is no program {name}"
    text = (place / "__main__.py" if place.is_dir() else place.with_suffix(".py")).read_text(encoding="utf-8")
    return next(
        (f"{name} has no {word}" for word in arguments if word.startswith("--") and f'"{word}"' not in text), None
    )


def refusal(parsed: Callable[[], object]) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []

        def error(parser: ArgumentParser, message: str) -> None:
            said.append(message)
            raise SystemExit(2)

        patch.setattr(ArgumentParser, "error", error)
        try:
            parsed()
        except SystemExit:
            return said[0]
    return None


def cd(command: Command) -> str | None:
    (folder,) = command.words[1:]
    exists = folder == PROJECT.removesuffix(".git") or (CHECKOUT / folder).is_dir()
    return None if exists else f"there is no folder {folder}"


PROGRAMS: dict[str, Callable[[Command], str | None]] = {
    "aws": aws,
    "cd": cd,
    "idempotent-consumer": idempotent_consumer,
    "make": make,
    "pip": pip,
    "python": python,
    "terraform": terraform,
    # Neither of this project nor of AWS: what they take is theirs to say.
    **dict.fromkeys(
        ["cat", "echo", "export", "git", "grep", "jq", "open", "pre-commit", "pytest", "sleep"], lambda command: None
    ),
}


def problem(command: Command) -> str | None:
    """Why a command cannot be right, or None."""
    name = command.words[0].removeprefix(".venv/bin/")
    name = "python" if name == "python3" else name
    check = PROGRAMS.get(name)
    return check(command) if check else f"no test knows {name}: say in tests/docs/programs.py what it takes"
