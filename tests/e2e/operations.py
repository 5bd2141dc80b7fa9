"""Operations as they are seen from outside: what is sent to them, their ledger, their dead letters, their log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from local.emulator import Emulator
from local.waiting import wait_for
from local.watching import Queue, Tables

ROOT = "tests/fixtures/payments"


class Operation:
    """One applied operation. `outputs`: those of modules/operation."""

    def __init__(self, emulator: Emulator, outputs: Mapping[str, Any]) -> None:
        self.emulator = emulator
        self.outputs = outputs
        self.function: str = outputs["function_name"]
        self.queue = Queue(emulator, outputs["queue_url"])
        self.dead_letters = Queue(emulator, outputs["dead_letter_queue_url"])
        self._tables = Tables(emulator)

    def wait_until_drained(self, seconds: float) -> None:
        """Wait until every message sent so far is deleted or dead-lettered."""
        wait_for(lambda: self.queue.depth().is_empty, f"{self.queue.url} is drained", seconds=seconds, interval=0.5)

    def kill_workers(self) -> int:
        return self.emulator.kill_workers(self.function)

    def send(self, body: str | Mapping[str, Any]) -> None:
        content = body if isinstance(body, str) else json.dumps(body)
        self.emulator.client("sqs").send_message(QueueUrl=self.queue.url, MessageBody=content)

    def forget(self, event_id: str) -> None:
        """Delete the event's row."""
        self.emulator.client("dynamodb").delete_item(
            TableName=self.outputs["ledger_table_name"], Key={"event_id": {"S": event_id}}
        )

    def rows(self) -> dict[str, dict[str, Any]]:
        """The ledger, by event id."""
        return {row["event_id"]: row for row in self._tables.rows(self.outputs["ledger_table_name"])}

    def statuses(self) -> dict[str, str]:
        return {event_id: row["status"] for event_id, row in self.rows().items()}

    @cached_property
    def letters(self) -> list[dict[str, Any]]:
        """All dead letters. They are taken away, so once only."""
        return self.dead_letters.take()

    def log(self) -> list[str]:
        """All lines of the function's log."""
        pages = self.emulator.client("logs").get_paginator("filter_log_events")
        found = pages.paginate(logGroupName=self.outputs["log_group_name"])
        return [event["message"] for page in found for event in page["events"]]

    def logged(self, reason: str) -> Counter[str]:
        """How often the log tells this reason of each message, by its id."""
        lines = [json.loads(line) for line in self.log() if f'"{reason}"' in line and line.startswith("{")]
        return Counter(str(line["message_id"]) for line in lines if line.get("reason") == reason)
