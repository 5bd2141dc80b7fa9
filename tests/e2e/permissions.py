"""Takes rights away from roles, and queues' policies from their producers, and gives them back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from local.emulator import Emulator
from local.waiting import wait_for

# The emulator polls, logs and traces without asking the role.
NOT_CHECKED_HERE = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
Policy = dict[str, Any]
# The inline policy of modules/function that holds the rights.
POLICY = "consume"


@dataclass(frozen=True)
class Role:
    """A deployed role of a function."""

    emulator: Emulator
    name: str

    def checked(self) -> set[str]:
        """The actions of its policy that the emulator asks for."""
        statements = self.read()["Statement"]
        return {action for statement in statements for action in _listed(statement["Action"])} - NOT_CHECKED_HERE

    def read(self) -> Policy:
        answer = self.emulator.client("iam").get_role_policy(RoleName=self.name, PolicyName=POLICY)
        document: Policy = answer["PolicyDocument"]
        return document

    def write(self, document: Policy) -> None:
        self.emulator.client("iam").put_role_policy(
            RoleName=self.name, PolicyName=POLICY, PolicyDocument=json.dumps(document)
        )

    @contextmanager
    def without(self, *actions: str, resource: str | None = None) -> Iterator[None]:
        """Inside the block it has not these actions, on one resource or on all."""
        document = self.read()
        assert set(actions) <= self.checked(), "what it has not cannot be taken away"
        fewer = document
        for action in actions:
            fewer = without(fewer, action, resource)
        self.write(fewer)
        try:
            yield
        finally:
            self.write(document)

    @contextmanager
    def with_right(self, action: str, resource: str) -> Iterator[None]:
        """Inside the block it has this right too."""
        document = self.read()
        right = {"Sid": "More", "Effect": "Allow", "Action": action, "Resource": resource}
        self.write({**document, "Statement": [*document["Statement"], right]})
        try:
            yield
        finally:
            self.write(document)


def without(document: Policy, action: str, resource: str | None) -> Policy:
    """The policy without this action, on this resource or on all."""
    statements: list[dict[str, Any]] = []
    for statement in document["Statement"]:
        actions, resources = _listed(statement["Action"]), _listed(statement["Resource"])
        if action not in actions:
            statements.append(statement)
            continue
        others = [name for name in actions if name != action]
        if others:
            statements.append(statement | {"Action": others})
        spared = [arn for arn in resources if resource is not None and arn != resource]
        if spared:
            statements.append(statement | {"Action": [action], "Resource": spared})
    numbered = [statement | {"Sid": f"S{index}"} for index, statement in enumerate(statements)]
    return {**document, "Statement": numbered}


@contextmanager
def visibility(emulator: Emulator, queue_url: str, seconds: int) -> Iterator[None]:
    """A message that is received inside the block and fails comes back after so many seconds.

    Leave the block before the cause is mended: what then succeeds must not be given out twice meanwhile.
    """
    with _attribute(emulator, queue_url, "VisibilityTimeout", str(seconds)):
        yield


@contextmanager
def without_policy(emulator: Emulator, queue_url: str) -> Iterator[None]:
    """Inside the block the queue has no policy: nobody but its own account sends to it."""
    with _attribute(emulator, queue_url, "Policy", ""):
        yield


@contextmanager
def environment(emulator: Emulator, function: str, changes: Mapping[str, str]) -> Iterator[None]:
    """Inside the block the function has these variables, and other processes than before."""
    functions = emulator.client("lambda")
    variables = functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    functions.update_function_configuration(FunctionName=function, Environment={"Variables": {**variables, **changes}})
    try:
        yield
    finally:
        functions.update_function_configuration(FunctionName=function, Environment={"Variables": variables})


def wait_for_line(emulator: Emulator, log_group: str, text: str, since_ms: int) -> None:
    """Wait until a line of the log since then has this text."""
    logs = emulator.client("logs")

    def is_there() -> bool:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=log_group, startTime=since_ms)
        return any(text in event["message"] for page in pages for event in page["events"])

    wait_for(is_there, f"{log_group} has {text!r}", seconds=60)


@contextmanager
def refused(emulator: Emulator, outputs: Mapping[str, Any], *actions: str, says: str = "") -> Iterator[None]:
    """Take actions from a function for what is sent inside the block, and until its log says that a call is refused.

    outputs: of the module that the function, its log group and its queue are of.
    """
    since = int(time.time() * 1000)
    with (
        Role(emulator, outputs["function_name"]).without(*actions),
        visibility(emulator, outputs["queue_url"], 3),
    ):
        yield
        text = says or f"{actions[0].partition(':')[2]}: AccessDenied"
        wait_for_line(emulator, outputs["log_group_name"], text, since)


@contextmanager
def _attribute(emulator: Emulator, queue_url: str, name: str, value: str) -> Iterator[None]:
    sqs = emulator.client("sqs")
    before = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[name])["Attributes"][name]
    sqs.set_queue_attributes(QueueUrl=queue_url, Attributes={name: value})
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=queue_url, Attributes={name: before})


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
