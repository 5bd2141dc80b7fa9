"""A workflow as it is seen from outside: what is delivered to it, its executions, its claims, its dead letters."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local.emulator import ACCOUNT, REGION, Emulator
from local.terraform import CHECKOUT
from local.waiting import wait_for
from local.watching import Queue, Tables, plain

ROOT = "tests/fixtures/workflows"
NAMESPACE = "ingestion"
# On two busy cores, with hundreds of executions at once.
SECONDS = 90.0

# The parts of a message attribute, as SQS and as Lambda spell them.
SPELLINGS = {"BinaryValue": "binaryValue", "DataType": "dataType", "StringValue": "stringValue"}
Body = Mapping[str, Any]
Attributes = Mapping[str, Mapping[str, Any]]


def text(value: str) -> dict[str, str]:
    """A message attribute as the SQS API spells it."""
    return {"DataType": "String", "StringValue": value}


def pack_effect(folder: Path) -> Path:
    """The zip of the fixture's effect."""
    path = folder / "effect.zip"
    with zipfile.ZipFile(path, "w") as package:
        package.write(CHECKOUT / ROOT / "src" / "effect.py", "effect.py")
    return path


@dataclass(frozen=True)
class Message:
    """What SQS has taken, and may deliver more than once."""

    id: str
    body: str
    attributes: Attributes

    def record(self) -> dict[str, Any]:
        """As the event source mapping hands it over."""
        return {
            "messageId": self.id,
            "receiptHandle": f"receipt-{self.id}",
            "body": self.body,
            "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000))},
            "messageAttributes": {
                name: {SPELLINGS[part]: content for part, content in value.items()}
                for name, value in self.attributes.items()
            },
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:any",
        }


@dataclass(frozen=True)
class Execution:
    """One that has ended. result: its output, or its error and cause."""

    arn: str
    status: str
    result: Any

    @property
    def outcome(self) -> tuple[str, Any]:
        """(SUCCEEDED, completed), (SUCCEEDED, (skipped, reason)) or (FAILED, error)."""
        if self.status != "SUCCEEDED":
            return self.status, self.result[0]
        status = self.result["status"]
        return self.status, status if status == "completed" else (status, self.result["reason"])


class Workflow:
    """One applied workflow. `outputs`: those of modules/workflow."""

    def __init__(self, emulator: Emulator, outputs: Mapping[str, Any], runs_table: str) -> None:
        self.emulator = emulator
        self.outputs = outputs
        self.starter: str = outputs["function_name"]
        self.guard: str | None = outputs["guard_function_name"]
        self.table: str = outputs["idempotency_table_name"]
        self.queue = Queue(emulator, outputs["queue_url"])
        self.dead_letters = Queue(emulator, outputs["dead_letter_queue_url"])
        self._runs_table = runs_table
        self._arn: str = outputs["state_machine_arn"]
        self._tables = Tables(emulator)
        self._dynamodb = emulator.client("dynamodb")
        self._functions = emulator.client("lambda")
        self._sqs = emulator.client("sqs")
        self._executions = emulator.client("stepfunctions")

    # --- in

    def send(self, body: str | Body, attributes: Attributes | None = None) -> Message:
        """Send one message to the queue."""
        content = body if isinstance(body, str) else json.dumps(body)
        sent = self._sqs.send_message(
            QueueUrl=self.queue.url, MessageBody=content, MessageAttributes=dict(attributes or {})
        )
        return Message(sent["MessageId"], content, dict(attributes or {}))

    def send_all(self, bodies: Iterable[Body]) -> list[Message]:
        """Send as many messages as there are, ten a call."""
        messages: list[Message] = []
        remaining = iter(bodies)
        while batch := [json.dumps(body) for body in islice(remaining, 10)]:
            entries = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(batch)]
            answer = self._sqs.send_message_batch(QueueUrl=self.queue.url, Entries=entries)
            ids = {entry["Id"]: entry["MessageId"] for entry in answer["Successful"]}
            messages += [Message(ids[str(index)], body, {}) for index, body in enumerate(batch)]
        return messages

    def replay(self, letter: Mapping[str, Any]) -> Message:
        """Send a dead letter back to the queue as it is: with its body and all of its attributes."""
        attributes = {
            name: {part: content for part, content in value.items() if part in SPELLINGS}
            for name, value in letter.get("MessageAttributes", {}).items()
        }
        return self.send(letter["Body"], attributes)

    def deliver(self, *messages: Message) -> None:
        """Hand messages to the starter as its event source mapping does; again where it is killed."""
        payload = json.dumps({"Records": [message.record() for message in messages]})

        def is_taken() -> bool:
            try:
                answer = self._functions.invoke(FunctionName=self.starter, Payload=payload)
            except ClientError:
                return False  # the emulator has no worker for it at the moment
            body = json.loads(answer["Payload"].read())
            return "FunctionError" not in answer and body == {"batchItemFailures": []}

        wait_for(is_taken, f"{self.starter} has taken {len(messages)} messages", seconds=3 * SECONDS)

    # --- out

    def execution_arn(self, key: str, message_id: str) -> str:
        name = f"{hashlib.sha256(key.encode()).hexdigest()[:40]}-{message_id}"
        return f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}"

    def ended(self, key: str, message: Message, seconds: float = SECONDS) -> Execution:
        """The execution of this message, when it has ended."""
        arn = self.execution_arn(key, message.id)
        found = wait_for(lambda: self._ended(arn), f"{arn} has ended", seconds=seconds, interval=0.1)
        assert found is not None
        return found

    def stop(self, key: str, message: Message) -> None:
        self._executions.stop_execution(executionArn=self.execution_arn(key, message.id), cause="by hand")

    def run(self, key: str, body: str | Body, attributes: Attributes | None = None) -> Execution:
        """Send a message, and wait for the end of its execution."""
        return self.ended(key, self.send(body, attributes))

    def running(self) -> int:
        """How many executions run at the moment, at most 100."""
        found = self._executions.list_executions(stateMachineArn=self._arn, statusFilter="RUNNING", maxResults=100)
        return len(found["executions"])

    def executions(self, arns: Sequence[str]) -> list[Execution | None]:
        """Those of these that have ended, in the order of their ARNs."""
        with ThreadPoolExecutor(4) as readers:
            return list(readers.map(self._ended, arns))

    def given(self, execution: Execution) -> dict[str, Any]:
        """The input that it was started with."""
        told = self._executions.describe_execution(executionArn=execution.arn)
        return dict(json.loads(told["input"]))

    def events(self, execution: Execution) -> list[str]:
        """The types of its history's events, in order."""
        pages = self._executions.get_paginator("get_execution_history").paginate(executionArn=execution.arn)
        return [str(event["type"]) for page in pages for event in page["events"]]

    def row(self, key: str) -> dict[str, Any]:
        """The key's claim; empty where there is none."""
        names = {"pk": {"S": key}, "sk": {"S": NAMESPACE}}
        return plain(self._dynamodb.get_item(TableName=self.table, Key=names, ConsistentRead=True).get("Item", {}))

    def rows(self) -> dict[str, dict[str, Any]]:
        """All claims, by key."""
        return {row["pk"]: row for row in self._tables.rows(self.table)}

    def forget(self, key: str) -> None:
        """Delete the key's row, as the sweep of expired rows does."""
        self._dynamodb.delete_item(TableName=self.table, Key={"pk": {"S": key}, "sk": {"S": NAMESPACE}})

    def expire(self, key: str) -> None:
        """Put the end of the key's time to live into the past."""
        self._dynamodb.update_item(
            TableName=self.table,
            Key={"pk": {"S": key}, "sk": {"S": NAMESPACE}},
            UpdateExpression="SET expiresAt = :past",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":past": {"N": str(int(time.time()) - 10)}},
        )

    def runs(self, key: str) -> int:
        """How often the effect has run for this key."""
        item = self._dynamodb.get_item(TableName=self._runs_table, Key={"id": {"S": key}}, ConsistentRead=True)
        return int(item.get("Item", {}).get("runs", {"N": "0"})["N"])

    def all_runs(self) -> dict[str, int]:
        return {row["id"]: int(row["runs"]) for row in self._tables.rows(self._runs_table)}

    def let_end(self, key: str) -> None:
        """Let an effect end that waits."""
        self._dynamodb.update_item(
            TableName=self._runs_table,
            Key={"id": {"S": key}},
            UpdateExpression="SET mayEnd = :yes",
            ExpressionAttributeValues={":yes": {"BOOL": True}},
        )

    def letter(self) -> dict[str, Any]:
        """The dead letter that there is, or comes: it is taken away, and there must not be another."""
        wait_for(lambda: self.dead_letters.depth().waiting, f"a letter in {self.dead_letters.url}", seconds=SECONDS)
        (letter,) = self.dead_letters.take()
        return letter

    def _ended(self, arn: str) -> Execution | None:
        try:
            told = self._executions.describe_execution(executionArn=arn)
        except self._executions.exceptions.ExecutionDoesNotExist:
            return None
        if told["status"] == "RUNNING":
            return None
        is_success = told["status"] == "SUCCEEDED"
        result = json.loads(told["output"]) if is_success else (told.get("error", ""), told.get("cause", ""))
        return Execution(arn, told["status"], result)
