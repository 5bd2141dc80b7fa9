"""Hides messages that have to come back for longer, the more often they have been received.

A failure to do so changes nothing else: they come back after the queue's own visibility timeout.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from idempotent_consumer import telemetry
from idempotent_consumer.aws import CALL_ERRORS, Budget, error_code
from idempotent_consumer.message import Message
from idempotent_consumer.settings import Backoff
from idempotent_consumer.side_by_side import SideBySide

# Amazon SQS API Reference, ChangeMessageVisibilityBatch.
MAX_ENTRIES = 10
# SnapStart clones the state of the shared generator: functions would draw the same.
_random = random.SystemRandom()


def hidden_seconds(receive_count: int, backoff: Backoff, draw: Callable[[int, int], int] = _random.randint) -> int:
    """How long a message is hidden after its nth receive: drawn between the queue's timeout and twice that per receive.

    draw: gives a whole number between two, both included.
    """
    most = min(backoff.max_seconds, backoff.visibility_seconds * 2**receive_count)
    return draw(backoff.visibility_seconds, max(most, backoff.visibility_seconds))


class Postponing:
    """sqs: a client whose calls give up soon. backoff: None where messages keep the queue's timeout."""

    def __init__(self, sqs: Any, backoff: Backoff | None) -> None:
        self._sqs = sqs
        self._backoff = backoff
        self._side_by_side = SideBySide()

    def postpone(self, messages: Sequence[Message], groups: dict[str, int], budget: Budget) -> None:
        """Hide messages that come back, while there is time for it.

        groups: the seconds of each FIFO message group of which a message came back before, added to here: what waits
        behind a message comes back with it.
        """
        if self._backoff is None or self._backoff.max_seconds <= self._backoff.visibility_seconds:
            return
        hidden = [(message.receipt_handle, self._seconds(message, groups, self._backoff)) for message in messages]
        chunks = [hidden[start : start + MAX_ENTRIES] for start in range(0, len(hidden), MAX_ENTRIES)]
        queue_url = self._backoff.queue_url
        failures = self._side_by_side.call(lambda chunk: self._hide(queue_url, chunk, budget), chunks)
        for code in failures:
            telemetry.log_not_postponed(code)

    def _seconds(self, message: Message, groups: dict[str, int], backoff: Backoff) -> int:
        if message.group is None:
            return hidden_seconds(message.receive_count, backoff)
        if message.group not in groups:
            groups[message.group] = hidden_seconds(message.receive_count, backoff)
        return groups[message.group]

    def _hide(self, queue_url: str, hidden: Sequence[tuple[str, int]], budget: Budget) -> dict[str, None]:
        """One call; the codes of what failed."""
        if not budget.allows_short_call():
            return {}
        entries = [
            {"Id": str(index), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for index, (handle, seconds) in enumerate(hidden)
        ]
        try:
            answer = self._sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=entries)
        except CALL_ERRORS as error:
            return {error_code(error): None}
        return {str(entry.get("Code", "Unknown")): None for entry in answer.get("Failed", [])}
