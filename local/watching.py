"""Reads what the consumer has done: its tables, their change streams, and queues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from local.emulator import Emulator

_plain = TypeDeserializer().deserialize


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """A DynamoDB item as plain values; numbers are Decimal."""
    return {name: _plain(value) for name, value in item.items()}


@dataclass(frozen=True)
class QueueDepth:
    """How many messages wait in a queue, and how many are being worked on."""

    waiting: int
    in_flight: int

    @property
    def is_empty(self) -> bool:
        return self.waiting == 0 and self.in_flight == 0


class Tables:
    """Tables with their change streams, which tell of each write, also of one that a later one covers up."""

    def __init__(self, emulator: Emulator) -> None:
        self._dynamodb = emulator.client("dynamodb")
        self._streams = emulator.client("dynamodbstreams")

    def rows(self, table: str) -> list[dict[str, Any]]:
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return [plain(item) for page in pages for item in page["Items"]]

    def count(self, table: str, status: str) -> int:
        """How many ledger rows have this status."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=table,
            Select="COUNT",
            ConsistentRead=True,
            FilterExpression="#status = :status",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": {"S": status}},
        )
        return sum(page["Count"] for page in pages)

    def record_changes(self, table: str) -> None:
        """Switch the table's change stream on."""
        specification = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        self._dynamodb.update_table(TableName=table, StreamSpecification=specification)

    def changes(self, table: str) -> Iterator[dict[str, Any]]:
        """The row as each write since `record_changes` left it, oldest first."""
        arn = self._dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        for shard in self._streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = self._streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator:
                answer = self._streams.get_records(ShardIterator=iterator, Limit=1000)
                if not answer["Records"]:
                    break
                for record in answer["Records"]:
                    if "NewImage" in record["dynamodb"]:
                        yield plain(record["dynamodb"]["NewImage"])
                iterator = answer.get("NextShardIterator")


REDELIVERED = "Redelivered"


def reported_outcomes(emulator: Emulator, log_group: str, since_ms: int = 0) -> Counter[str]:
    """The function's own counts, by metric, summed over the metric lines of its log.

    `Redelivered` beside them: the records that it was not given for the first time.
    """
    counts: Counter[str] = Counter()
    pages = (
        emulator.client("logs").get_paginator("filter_log_events").paginate(logGroupName=log_group, startTime=since_ms)
    )
    for event in (event for page in pages for event in page["events"]):
        if '"_aws"' in event["message"]:
            line = json.loads(event["message"])
            counts.update({name: value for name, value in line.items() if type(value) is int})
            counts[REDELIVERED] += sum(receives > 1 for receives in line.get("ReceiveCount", []))
    return counts


class Queue:
    """An SQS queue as its reader sees it."""

    def __init__(self, emulator: Emulator, url: str) -> None:
        self._sqs = emulator.client("sqs")
        self.url = url

    def depth(self) -> QueueDepth:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return QueueDepth(*(int(answer[name]) for name in names))

    def send_batch(self, bodies: list[str]) -> int:
        """Send in one call; how many the queue took."""
        entries = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        answer = self._sqs.send_message_batch(QueueUrl=self.url, Entries=entries)
        return len(answer.get("Successful", []))

    def take(self, most: int = 100_000) -> list[dict[str, Any]]:
        """Receive and delete what is there, `most` messages at the most."""
        taken: list[dict[str, Any]] = []
        while len(taken) < most:
            messages = self._sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
                WaitTimeSeconds=0,
            ).get("Messages", [])
            if not messages:
                break
            entries = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]} for index, message in enumerate(messages)
            ]
            self._sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)
            taken += messages
        return taken


Notification = tuple[str, str]  # event id, body


def announced(message: dict[str, Any]) -> Notification:
    """The event that a subscriber's message tells of, and what it says."""
    return attribute(message, "event_id"), str(message["Body"])


def attribute(message: dict[str, Any], name: str) -> str:
    """A message attribute as text; empty when the message has none of this name."""
    return str(message.get("MessageAttributes", {}).get(name, {}).get("StringValue", ""))


@dataclass(frozen=True)
class Heard:
    """A notification in a subscriber's queue. at_ms: when it got there, epoch milliseconds."""

    event_id: str
    body: str
    at_ms: int


def heard(message: dict[str, Any]) -> Heard:
    """A subscriber's message, with its time."""
    return Heard(*announced(message), int(message["Attributes"]["SentTimestamp"]))
