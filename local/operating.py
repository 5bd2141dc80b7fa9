"""The command line as an operator runs it: a program of its own, against the emulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from local.emulator import REGION, Emulator
from local.processes import clean_environment
from local.terraform import CHECKOUT

PROGRAM = [sys.executable, "-m", "idempotent_consumer_cli"]


@dataclass(frozen=True)
class Answer:
    """What a command has printed, and how it ended."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What it has printed as JSON, line by line."""
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def last(self) -> dict[str, Any]:
        return self.lines[-1]


class Operated(Protocol):
    """A pipeline, an operation or a workflow. outputs: of its module."""

    @property
    def emulator(self) -> Emulator: ...

    @property
    def outputs(self) -> Mapping[str, Any]: ...


class Operator:
    """Runs commands on one consumer."""

    def __init__(self, consumer: Operated) -> None:
        self.name = consumer.outputs["function_name"].removesuffix("-worker")
        self._endpoint = consumer.emulator.endpoint

    def run(self, command: str, *options: str) -> Answer:
        answer = subprocess.run(
            self.command(command, *options), capture_output=True, text=True, check=False, env=self.environment
        )
        return Answer(answer.returncode, answer.stdout, answer.stderr)

    def json(self, command: str, *options: str) -> Answer:
        return self.run(command, "--json", *options)

    def command(self, command: str, *options: str) -> Sequence[str]:
        return [*PROGRAM, command, "--name", self.name, *options]

    @property
    def environment(self) -> Mapping[str, str]:
        """As in the operator's shell: where AWS is, who asks, and where Python finds the program."""
        paths = [str(CHECKOUT / "cli"), str(CHECKOUT / "lambda" / "src")]
        return clean_environment(
            {
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_DEFAULT_REGION": REGION,
                "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                "AWS_ENDPOINT_URL": self._endpoint,
                "PYTHONPATH": os.pathsep.join(paths),
                "COLUMNS": "200",
            }
        )
