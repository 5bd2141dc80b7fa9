"""An applied pipeline: what is sent to it, and what it holds at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.audit import Found
from local.emulator import Emulator
from local.watching import Notification, Queue, Tables, announced, attribute


@dataclass(frozen=True)
class Consumer:
    """An applied pipeline, as its outputs name it."""

    emulator: Emulator
    outputs: Mapping[str, Any]
    subscriber_url: str

    @property
    def intake(self) -> Queue:
        return Queue(self.emulator, self.outputs["queue_url"])

    @property
    def dead_letters(self) -> Queue:
        return Queue(self.emulator, self.outputs["dead_letter_queue_url"])

    @property
    def subscriber(self) -> Queue:
        return Queue(self.emulator, self.subscriber_url)

    @property
    def tables(self) -> Tables:
        return Tables(self.emulator)

    @property
    def ledger(self) -> str:
        return str(self.outputs["ledger_table_name"])

    @property
    def business(self) -> str:
        return str(self.outputs["business_table_name"])

    @property
    def function(self) -> str:
        return str(self.outputs["function_name"])


class Sending(threading.Thread):
    """Sends batches in the background, in order. most_waiting: with more in the queue it waits; None never does."""

    def __init__(self, queue: Queue, batches: Sequence[Sequence[str]], most_waiting: int | None = None) -> None:
        super().__init__(daemon=True)
        self._queue = queue
        self._batches = batches
        self._most_waiting = most_waiting
        self.sent = 0
        self.refused = 0

    def run(self) -> None:
        for batch in self._batches:
            while self._most_waiting is not None and self._queue.depth().waiting > self._most_waiting:
                time.sleep(0.2)
            taken = self._queue.send_batch(list(batch))
            self.sent += taken
            self.refused += len(batch) - taken


def everything(text: str) -> bool:
    return True


def read(consumer: Consumer, notifications: Sequence[Notification], owns: Callable[[str], bool] = everything) -> Found:
    """Everything that the tables, their change streams and the queues hold; it is taken out of the queues.

    notifications: those taken before. owns: of an event id or a message's body, whether it is looked at; where a
    pipeline has more than one user.
    """
    tables = consumer.tables
    heard = [*notifications, *map(announced, consumer.subscriber.take())]
    letters = [(m["Body"], attribute(m, "dead_letter_reason")) for m in consumer.dead_letters.take()]
    return Found(
        business_rows=[row for row in tables.rows(consumer.business) if owns(str(row.get("event_id")))],
        ledger_rows=[row for row in tables.rows(consumer.ledger) if owns(row["event_id"])],
        notifications=[notification for notification in heard if owns(notification[0])],
        dead_letters=[letter for letter in letters if owns(letter[0])],
        business_writes=[name for row in tables.changes(consumer.business) if owns(name := str(row.get("event_id")))],
        commits=[
            row["event_id"]
            for row in tables.changes(consumer.ledger)
            if row["status"] == "pending" and owns(row["event_id"])
        ],
    )
