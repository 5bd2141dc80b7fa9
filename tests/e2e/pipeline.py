"""A pipeline as its users see it from outside: send to it, look at what it did."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from local.emulator import Emulator
from local.waiting import wait_for, wait_until_steady
from local.watching import Queue, Tables, plain
from tests.e2e.permissions import visibility

Message = dict[str, Any]


class Pipeline:
    """One applied consumer. `outputs`: those of the root module, and `subscriber_url`."""

    def __init__(self, emulator: Emulator, outputs: Mapping[str, Any]) -> None:
        self.emulator = emulator
        self.outputs = outputs
        self.function: str = outputs["function_name"]
        self.role: str = outputs["role_name"]
        self.reconciler_role: str = outputs["reconciler_function_name"]  # they share the name
        self.business_table: str = outputs["business_table_name"]
        self.ledger_table: str = outputs["ledger_table_name"]
        self.is_fifo = str(outputs["queue_url"]).endswith(".fifo")
        self._queue = Queue(emulator, outputs["queue_url"])
        self._subscriber = Queue(emulator, outputs["subscriber_url"])
        self._dead_letters = Queue(emulator, outputs["dead_letter_queue_url"])
        self._tables = Tables(emulator)
        self._dynamodb = emulator.client("dynamodb")
        self._logs = emulator.client("logs")
        self._sqs = emulator.client("sqs")
        self._heard: list[Message] = []
        self._dead: list[Message] = []

    def record_changes(self) -> None:
        for table in (self.business_table, self.ledger_table):
            self._tables.record_changes(table)

    # --- in

    def send(
        self, *bodies: str | Mapping[str, Any], group: str = "", attributes: Mapping[str, str] | None = None
    ) -> list[str]:
        """Send these messages in one call, in order; a mapping is sent as JSON. Returns their message ids."""
        entries = []
        for index, body in enumerate(bodies):
            entry: dict[str, Any] = {
                "Id": str(index),
                "MessageBody": body if isinstance(body, str) else json.dumps(body),
                "MessageAttributes": {
                    name: {"DataType": "String", "StringValue": value} for name, value in (attributes or {}).items()
                },
            }
            if self.is_fifo:
                entry |= {"MessageGroupId": group, "MessageDeduplicationId": uuid.uuid4().hex}
            entries.append(entry)
        answer = self._sqs.send_message_batch(QueueUrl=self._queue.url, Entries=entries)
        assert len(answer["Successful"]) == len(bodies)
        return [entry["MessageId"] for entry in answer["Successful"]]

    def send_all(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Send as many messages as there are, ten a call."""
        _send_all(self._queue, bodies)

    def put_dead_letters(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Put messages into the dead-letter queue as if SQS had moved them there."""
        _send_all(self._dead_letters, bodies)

    def purge_dead_letters(self) -> None:
        self._sqs.purge_queue(QueueUrl=self._dead_letters.url)

    @contextmanager
    def visibility(self, seconds: int) -> Iterator[None]:
        """A message that is received inside the block and fails comes back after so many seconds.

        Leave the block before the cause is mended: what then succeeds must not be given out twice meanwhile.
        """
        with visibility(self.emulator, self._queue.url, seconds):
            yield

    # --- out

    def business_row(self, event_id: str) -> dict[str, Any] | None:
        return self._row(self.business_table, {"id": {"S": event_id}})

    def ledger_row(self, event_id: str) -> dict[str, Any] | None:
        return self._row(self.ledger_table, {"event_id": {"S": event_id}})

    def statuses(self, event_ids: Collection[str]) -> dict[str, int]:
        """How many of these events have which status in the ledger."""
        known = {row["event_id"]: row["status"] for row in self._tables.rows(self.ledger_table)}
        return dict(Counter(known.get(event_id, "never seen") for event_id in event_ids))

    def dead_letter_count(self) -> int:
        """How many messages the dead-letter queue holds, those in somebody's hand included."""
        depth = self._dead_letters.depth()
        return depth.waiting + depth.in_flight

    def put_business_row(self, row: Mapping[str, str]) -> None:
        """Store a row that no event of this pipeline has written."""
        self._dynamodb.put_item(TableName=self.business_table, Item={name: {"S": value} for name, value in row.items()})

    def put_ledger_row(self, row: Mapping[str, Any]) -> None:
        self._dynamodb.put_item(TableName=self.ledger_table, Item=dict(row))

    def delete_ledger_row(self, event_id: str) -> None:
        self._dynamodb.delete_item(TableName=self.ledger_table, Key={"event_id": {"S": event_id}})

    def business_writes(self, *event_ids: str) -> list[str]:
        """The ids of these events, once for each write to their business rows, in the order of the writes."""
        wanted = set(event_ids)
        changes = self._tables.changes(self.business_table)
        return [row["event_id"] for row in changes if row.get("event_id") in wanted]

    def commits(self, event_id: str) -> int:
        """How often a ledger row of this event was written as pending."""
        changes = self._tables.changes(self.ledger_table)
        return sum(row["event_id"] == event_id and row["status"] == "pending" for row in changes)

    def notifications(self, *event_ids: str) -> list[Message]:
        """What the topic's subscriber has got of these events, in order."""
        wanted = set(event_ids)
        self._heard += self._subscriber.take()
        return [message for message in self._heard if _event_id(message) in wanted]

    def dead_letters(self, *bodies: str | Mapping[str, Any]) -> list[Message]:
        """The dead letters with one of these bodies, in order."""
        self._dead += self._dead_letters.take()
        texts = {body if isinstance(body, str) else json.dumps(body) for body in bodies}
        return [message for message in self._dead if message["Body"] in texts]

    def is_drained(self) -> bool:
        return self._queue.depth().is_empty

    def metrics(self, since_ms: int) -> list[dict[str, Any]]:
        """The metric lines of the calls that have ended since then."""
        return self._metric_lines(self.outputs["log_group_name"], since_ms)

    def reconciler_metrics(self, since_ms: int) -> list[dict[str, Any]]:
        """The same of the reconciler's runs."""
        return self._metric_lines(f"/aws/lambda/{self.outputs['reconciler_function_name']}", since_ms)

    def log(self, since_ms: int, log_group: str = "") -> list[str]:
        """The lines of the function's log, or of another's, since then."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=log_group or self.outputs["log_group_name"], startTime=since_ms
        )
        return [event["message"] for page in pages for event in page["events"]]

    def _metric_lines(self, log_group: str, since_ms: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log(since_ms, log_group) if line.startswith('{"_aws"')]

    # --- waiting

    def wait_until_drained(self, seconds: float = 40) -> None:
        """Wait until every message sent so far is processed or dead-lettered."""
        wait_for(self.is_drained, f"{self._queue.url} is drained", seconds=seconds)

    def wait_until_sent(self, *event_ids: str, seconds: float = 40) -> None:
        """Wait until these events are committed, announced and marked, and their messages deleted."""
        for event_id in event_ids:
            wait_for(lambda e=event_id: self.is_sent(e), f"{event_id} is sent", seconds=seconds)  # type: ignore[misc]
        self.wait_until_drained(seconds)

    def is_sent(self, event_id: str) -> bool:
        row = self.ledger_row(event_id)
        return row is not None and row["status"] == "sent" and bool(self.notifications(event_id))

    def wait_for_status(self, event_id: str, status: str, seconds: float = 40) -> None:
        """Wait until the event's ledger row has this status."""
        wait_for(
            lambda: (self.ledger_row(event_id) or {}).get("status") == status,
            f"{event_id} is {status}",
            seconds=seconds,
            interval=0.05,
        )

    def wait_for_notification(self, event_id: str, seconds: float = 40) -> None:
        wait_for(lambda: self.notifications(event_id), f"{event_id} is announced", seconds=seconds)

    def wait_for_metric(self, name: str, since_ms: int, seconds: float = 40) -> None:
        """Wait until a call that began since then counts `name`."""
        wait_for(lambda: any(line[name] for line in self.metrics(since_ms)), f"a call counts {name}", seconds=seconds)

    def steady_notifications(self, *event_ids: str) -> list[Message]:
        """The notifications of these events, once no more have come for two seconds."""
        wait_until_steady(lambda: len(self.notifications(*event_ids)), "notifications")
        return self.notifications(*event_ids)

    def _row(self, table: str, key: dict[str, Any]) -> dict[str, Any] | None:
        item = self._dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return plain(item) if item else None


def _send_all(queue: Queue, bodies: Iterable[Mapping[str, Any]]) -> None:
    remaining = iter(bodies)
    while batch := [json.dumps(body) for body in islice(remaining, 10)]:
        assert queue.send_batch(batch) == len(batch)


def now_ms() -> int:
    return int(time.time() * 1000)


def attributes(message: Message) -> dict[str, str]:
    """The string attributes of an SQS message."""
    return {name: value["StringValue"] for name, value in message.get("MessageAttributes", {}).items()}


def bodies(messages: Sequence[Message]) -> list[str]:
    return [message["Body"] for message in messages]


def _event_id(message: Message) -> str | None:
    return attributes(message).get("event_id")
