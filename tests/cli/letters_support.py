"""A dead-letter queue in process, with a clock that only passes where something sleeps, and a worker at the queue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import moto.core.responses
import moto.sqs.models
import pytest
from moto.core.utils import unix_time_millis
from moto.sqs.exceptions import ReceiptHandleIsInvalid
from moto.sqs.models import sqs_backends

from idempotent_consumer_cli.letters import queue as letters
from tests.cli.support import Run, World

ACCOUNT = "123456789012"
_CALLS = (
    "BatchGetItem",
    "ChangeMessageVisibilityBatch",
    "DeleteMessageBatch",
    "PutMetricData",
    "ReceiveMessage",
    "SendMessageBatch",
)


class Killed(BaseException):
    """The process dies here: no handler of exceptions runs after it."""


@dataclass
class Clock:
    """seconds: how much later it is than on this machine, for SQS and for the command."""

    seconds: float = 0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


class Dead:
    """The consumer `orders` with letters in its dead-letter queue."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.clock = clock

    # --- what is there before

    def letter(
        self,
        body: str | Mapping[str, Any],
        reason: str | None = None,
        detail: str | None = None,
        *,
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
        group: str | None = None,
        age: float = 0,
    ) -> str:
        """A dead letter; with a reason, one that the consumer sent. age: seconds. Returns its message id."""
        values: dict[str, Any] = dict(attributes or {})
        if reason is not None:
            values["dead_letter_reason"] = {"DataType": "String", "StringValue": reason}
        if detail is not None:
            values["dead_letter_detail"] = {"DataType": "String", "StringValue": detail}
        request: dict[str, Any] = {
            "QueueUrl": self.world.dead_letter_url,
            "MessageBody": body if isinstance(body, str) else json.dumps(body),
            "MessageAttributes": values,
        }
        if self.world.fifo:
            request |= {"MessageGroupId": group or "g", "MessageDeduplicationId": f"d-{time.perf_counter_ns()}"}
        message_id = str(self.world.sqs.send_message(**request)["MessageId"])
        self.stamp(message_id, age)
        return message_id

    def stamp(self, message_id: str, age: float) -> None:
        """Change a dead letter's SentTimestamp. age: seconds."""
        for message in self._messages(self.world.dead_letter_url):
            if message.id == message_id:
                message.sent_timestamp -= int(age * 1000)

    def mark_moved(self, *message_ids: str) -> None:
        """From now on SQS tells that it moved these letters, which moto never does."""

        def answer(request: Mapping[str, Any], effect: Callable[[], Any]) -> Any:
            received = effect()
            for message in received.get("Messages", ()):
                if message["MessageId"] in message_ids:
                    message["Attributes"]["DeadLetterQueueSourceArn"] = "arn:aws:sqs:us-east-1:123456789012:orders"
            return received

        self.world.on("ReceiveMessage", answers=answer)

    def hold(self, count: int, seconds: int = 60) -> list[str]:
        """Another run has letters in hand."""
        held = self.world.sqs.receive_message(
            QueueUrl=self.world.dead_letter_url, MaxNumberOfMessages=count, VisibilityTimeout=seconds
        )
        return [message["MessageId"] for message in held["Messages"]]

    def kill_at(self, operation: str, call: int, *, after: bool = False) -> None:
        """The process is killed at a call from now on, from 1, before or after its effect; it makes no more calls."""
        killed: list[bool] = []

        def die(request: Mapping[str, Any], effect: Callable[[], Any]) -> Any:
            if after:
                effect()
            killed.append(True)
            raise Killed

        def check() -> None:
            if killed:
                raise Killed

        self.world.on(operation, answers=die, calls=[call])
        for name in _CALLS:
            self.world.on(name, runs=check)

    def heal(self) -> None:
        """Another process, and nothing goes wrong any more."""
        self.world.heal()
        # moto does not know the call.
        self.world.on("ListMessageMoveTasks", answers={"Results": []})

    # --- what is run

    def run(self, *arguments: str) -> Run:
        return self.world.run(*arguments)

    def work(self, refused: Collection[str] = (), *, reason: str = "row-exists") -> None:
        """The worker takes all that is in the queue: it settles events, and refuses those with these ids."""
        self.clock.seconds += 1
        for message in self.world.queued():
            event = json.loads(message["Body"])
            if event["id"] in refused:
                self.letter(message["Body"], reason, "no", group=message["Attributes"].get("MessageGroupId"))
            else:
                self.world.settle(event, message_id=message["MessageId"])

    # --- what is there

    @property
    def visible(self) -> list[str]:
        """The message ids of the dead letters that everybody can receive, in their order."""
        return [message.id for message in self._messages(self.world.dead_letter_url) if message.visible]

    @property
    def all(self) -> list[str]:
        """The message ids of all dead letters, in their order."""
        return [message.id for message in self._messages(self.world.dead_letter_url)]

    @property
    def bodies(self) -> list[str]:
        """The bodies of all dead letters, in their order."""
        return [message.body for message in self._messages(self.world.dead_letter_url)]

    @property
    def queued(self) -> list[Any]:
        """What is in the queue, as moto has it, in order."""
        return self._messages(self.world.queue_url)

    @property
    def queued_bodies(self) -> list[str]:
        return [message.body for message in self.queued]

    def _messages(self, url: str) -> list[Any]:
        return list(sqs_backends[ACCOUNT]["us-east-1"].queues[url.rsplit("/", 1)[1]]._messages)


def deploy(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, **options: Any) -> Dead:
    """See `World` for the options."""
    clock = Clock()
    dead = Dead(new_world(**options), clock)
    dead.heal()
    monkeypatch.setattr(letters, "WAIT_SECONDS", 0)
    monkeypatch.setattr("idempotent_consumer_cli.clock.sleep", clock.sleep)
    # What the command takes on a busy machine is no part of what it waits.
    began = time.monotonic()
    monkeypatch.setattr("idempotent_consumer_cli.clock.monotonic", lambda: began + clock.seconds)
    millis = unix_time_millis
    monkeypatch.setattr(moto.sqs.models, "unix_time_millis", lambda: millis() + clock.seconds * 1000)
    monkeypatch.setattr(moto.core.responses, "utcnow", lambda: datetime.now(UTC) + timedelta(seconds=clock.seconds))
    monkeypatch.setattr(moto.sqs.models.SQSBackend, "change_message_visibility", _change_visibility)
    receive = moto.sqs.models.SQSBackend.receive_message

    def receive_message(backend: Any, queue_name: str, *arguments: Any) -> Any:
        """Of a FIFO group whose messages come back together, moto's own gives the last one first."""
        queue = backend.get_queue(queue_name)
        queue.pending_messages.difference_update([message for message in queue.pending_messages if message.visible])
        return receive(backend, queue_name, *arguments)

    monkeypatch.setattr(moto.sqs.models.SQSBackend, "receive_message", receive_message)
    return dead


def _change_visibility(backend: Any, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    """moto's own refuses messages that were sent more than twelve hours ago."""
    queue = backend.get_queue(queue_name)
    for message in queue._messages:
        if message.had_receipt_handle(receipt_handle):
            message.change_visibility(visibility_timeout)
            queue.pending_messages.discard(message)
            return
    raise ReceiptHandleIsInvalid


def text(value: str) -> dict[str, Any]:
    """A message attribute."""
    return {"DataType": "String", "StringValue": value}
