"""Hides messages that have to come back for longer, the more often they have been received.

A failure to do so changes nothing else: they come back after the queue's own visibility timeout.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.calls import CALL_ERRORS, Budget, error_code
from idempotent_consumer.message import Message
from idempotent_consumer.settings import MAX_HIDDEN_SECONDS, Backoff
from idempotent_consumer.side_by_side import SideBySide

# Amazon SQS API Reference, ChangeMessageVisibilityBatch.
MAX_ENTRIES = 10
# SnapStart clones the state of the shared generator: functions would draw the same.
_random = random.SystemRandom()


def drawn_seconds(least: int, count: int, most: int, draw: Callable[[int, int], int] = _random.randint) -> int:
    """A wait before the next attempt, the longer the more there were: from `least` to `least` * 2^count, within `most`.

    draw: gives a whole number between two, both included.
    """
    return draw(least, max(least, min(most, least * 2**count)))


def hidden_seconds(receive_count: int, backoff: Backoff, draw: Callable[[int, int], int] = _random.randint) -> int:
    """How long a message is hidden from its nth receive on: from the queue's timeout V to V * 2^n, within the cap."""
    return drawn_seconds(backoff.visibility_seconds, receive_count, backoff.max_seconds, draw)


def lasting_seconds(message: Message, now_ms: int, backoff: Backoff) -> int:
    """How long a message may be hidden each time so that it is dead-lettered before the queue loses it."""
    left_ms = backoff.retention_seconds * 1000 - (now_ms - message.sent_ms)
    return left_ms // 1000 // max(1, backoff.max_receives - message.receive_count + 1)


class Postponing:
    """sqs: a client whose calls give up soon. backoff: None where messages keep the queue's timeout."""

    def __init__(self, sqs: Any, backoff: Backoff | None) -> None:
        self._sqs = sqs
        self._backoff = backoff
        self._side_by_side = SideBySide()

    def begin(self) -> "Postponement":
        """For one invocation."""
        return Postponement(self._sqs, self._backoff, self._side_by_side)


class Postponement:
    """Hides the messages of one invocation that come back."""

    def __init__(self, sqs: Any, backoff: Backoff | None, side_by_side: SideBySide) -> None:
        self._sqs = sqs
        self._backoff = backoff
        self._side_by_side = side_by_side
        # What waits behind a message of its FIFO group comes back with it.
        self._seconds_of_group: dict[str, int | None] = {}

    def postpone(self, messages: Sequence[tuple[Message, int | None]], budget: Budget) -> None:
        """Hide messages that come back, in the order of the queue, while there is time for it.

        With each of them stands when it is worth another look, epoch milliseconds; None leaves that to the backoff.
        """
        backoff = self._backoff
        if backoff is None:
            return
        # SQS counts from its call; the queue's own timeout, and what the plan allows for, count from the receive.
        elapsed = budget.elapsed_ms() // 1000
        hidden = [
            (message.receipt_handle, max(0, seconds - elapsed))
            for message, retry_at_ms in messages
            if (seconds := self._seconds(message, retry_at_ms, elapsed, backoff)) is not None
        ]
        chunks = [hidden[start : start + MAX_ENTRIES] for start in range(0, len(hidden), MAX_ENTRIES)]
        codes = self._side_by_side.call(lambda chunk: self._hide(backoff.queue_url, chunk, budget), chunks)
        for code in codes:
            telemetry.log_not_postponed(code)

    def _seconds(self, message: Message, retry_at_ms: int | None, elapsed: int, backoff: Backoff) -> int | None:
        """How long it is hidden from its receive on; None keeps the queue's timeout."""
        if message.group is None:
            return _hidden(message, retry_at_ms, elapsed, backoff)
        if message.group not in self._seconds_of_group:
            self._seconds_of_group[message.group] = _hidden(message, retry_at_ms, elapsed, backoff)
        return self._seconds_of_group[message.group]

    def _hide(self, queue_url: str, hidden: Sequence[tuple[str, int]], budget: Budget) -> dict[str, None]:
        """One call; the codes of what failed."""
        if self._backoff is None or not budget.allows_short_call():
            return {}
        entries = [
            {"Id": str(index), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for index, (handle, seconds) in enumerate(hidden)
        ]
        try:
            answer = self._sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=entries)
        except CALL_ERRORS as error:
            self._backoff = None  # a queue that does not answer must not take the time of the messages that follow
            return {error_code(error): None}
        return {str(entry.get("Code", "Unknown")): None for entry in answer.get("Failed", [])}


def _hidden(message: Message, retry_at_ms: int | None, elapsed: int, backoff: Backoff) -> int | None:
    now_ms = telemetry.now_ms()
    lasting = lasting_seconds(message, now_ms, backoff)
    if retry_at_ms is not None:
        wanted = elapsed + max(0, -((now_ms - retry_at_ms) // 1000))
        return min(wanted, max(lasting, backoff.visibility_seconds), MAX_HIDDEN_SECONDS)
    if backoff.max_seconds <= backoff.visibility_seconds:  # no backoff
        return None
    return max(backoff.visibility_seconds, min(hidden_seconds(message.receive_count, backoff), lasting))
