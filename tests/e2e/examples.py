"""The examples, applied all at once, and how each is seen from outside."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.emulator import Emulator
from local.terraform import CHECKOUT, Root
from local.watching import Tables, plain
from tests.e2e.pipeline import Pipeline

ROOT = "tests/fixtures/examples"
# Of the pipelines, by the names of their outputs: the example, and the output that holds the consumer.
CONSUMERS = {
    "accounts": "fifo",
    "invoices": "fan_out",
    "orders": "orders",
    "parcels": "eventbridge",
    "sales": "fan_out",
    "stock": "stock",
    "uploads": "s3_ingest",
}


@dataclass(frozen=True)
class Examples:
    """All examples, applied. `outputs`: by example; `changes`: what a plan right after the apply would still do."""

    root: Root
    outputs: Mapping[str, Mapping[str, Any]]
    changes: Mapping[str, list[str]]


def build_example(name: str, folder: Path) -> Path:
    """The zip of an example with code of its own, built as its README says."""
    zip_path = folder / f"{name}.zip"
    options = ["--source", f"examples/{name}/src", "--output", str(zip_path), "--handler", f"{name}.handler"]
    command = [sys.executable, "lambda/build.py", *options]
    built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert built.returncode == 0, built.stdout + built.stderr
    return zip_path


def zip_example(name: str, folder: Path) -> Path:
    """The zip of an example with a function that needs nothing but its source, made as its README says."""
    zip_path = folder / f"{name}.zip"
    command = [sys.executable, "-m", "zipfile", "-c", str(zip_path), f"examples/{name}/src/{name}.py"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert made.returncode == 0, made.stdout + made.stderr
    return zip_path


def apply_examples(folder: Path, endpoint: str, variables: Mapping[str, Any]) -> Examples:
    shutil.copytree(CHECKOUT / "examples", folder / "examples", ignore=shutil.ignore_patterns(".terraform*", "*.zip"))
    root = Root(ROOT, folder, endpoint, variables=variables)
    root.init()
    root.apply()
    return Examples(root, root.output()["examples"], root.changes())


def consumer(emulator: Emulator, examples: Examples, name: str) -> Pipeline:
    """One of the consumers, with a queue that hears its topic."""
    outputs = examples.outputs[CONSUMERS[name]][name]
    return Pipeline(emulator, {**outputs, "subscriber_url": subscribe(emulator, outputs["topic_arn"])})


def subscribe(emulator: Emulator, topic_arn: str) -> str:
    """Make a queue that gets the topic's messages; returns its URL."""
    sqs, is_fifo = emulator.client("sqs"), topic_arn.endswith(".fifo")
    name = "heard-" + topic_arn.rsplit(":", 1)[1]
    url = str(sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if is_fifo else {})["QueueUrl"])
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    emulator.client("sns").subscribe(
        TopicArn=topic_arn, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"}
    )
    return url


def empty(emulator: Emulator, bucket: str) -> None:
    """Delete all objects, which a destroy of the example does on AWS.

    The emulator lists keys as they are where the provider asks for URL-encoded ones, and so finds none with a % or +.
    """
    s3 = emulator.client("s3")
    for item in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
        s3.delete_object(Bucket=bucket, Key=item["Key"])


class Rows:
    """One table, read whole or by key; what the consumer adds to its rows is left out."""

    _ADDED = ("event_consumer", "event_committed_at", "event_fingerprint", "event_id", "event_version")

    def __init__(self, emulator: Emulator, table: str) -> None:
        self.table = table
        self._dynamodb = emulator.client("dynamodb")
        self._tables = Tables(emulator)

    def with_(self, **attributes: Any) -> list[dict[str, Any]]:
        """The rows that have these values."""
        return [self._own(row) for row in self._tables.rows(self.table) if attributes.items() <= row.items()]

    def writes(self, **attributes: Any) -> list[dict[str, Any]]:
        """The same rows, as each write since `record_changes` left them, oldest first."""
        return [self._own(row) for row in self._tables.changes(self.table) if attributes.items() <= row.items()]

    def put(self, **attributes: str | int) -> None:
        item = {
            name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in attributes.items()
        }
        self._dynamodb.put_item(TableName=self.table, Item=item)

    def get(self, **key: str) -> dict[str, Any] | None:
        names = {name: {"S": value} for name, value in key.items()}
        item = self._dynamodb.get_item(TableName=self.table, Key=names, ConsistentRead=True).get("Item")
        return self._own(plain(item)) if item else None

    def _own(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in self._ADDED}
