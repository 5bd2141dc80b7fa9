"""Sends letters back to the intake queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from idempotent_consumer.calls import CALL_ERRORS, attempts, error_code
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.letters.letter import Letter

# Amazon SQS API Reference, SendMessageBatch: ten messages a call.
MOST_AT_ONCE = 10
# A queue made by an older provider takes 256 KiB a call.
_MOST_BYTES = 262_144
# For each attribute's name, type and lengths, and for what else a message has.
_OVERHEAD_BYTES = 200

BEHIND_UNSENT = "an earlier letter of its group could not be sent"


class Pace:
    """Holds messages back to a rate. rate: messages a second; None: as fast as they go."""

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._next = clock.monotonic()

    @property
    def batch(self) -> int:
        """How many messages go together, so that none of them has to wait for more than about a second's worth."""
        return MOST_AT_ONCE if self._rate is None else max(1, min(MOST_AT_ONCE, int(self._rate)))

    def page(self, seconds: float) -> int:
        """How many messages can be sent in so many seconds, 1 to 10."""
        return MOST_AT_ONCE if self._rate is None else max(1, min(MOST_AT_ONCE, int(self._rate * seconds)))

    def wait_for(self, messages: int) -> None:
        """Returns once so many messages may be sent."""
        if self._rate is None:
            return
        now = clock.monotonic()
        if self._next > now:
            clock.sleep(self._next - now)
        self._next = max(self._next, now) + messages / self._rate


class Sender:
    """Sends body, attributes and group as they are, without what the consumer or the tracing added.

    sqs: a boto3 client. is_fifo: the letters of a group go one after the other, each in a call of its own; once one
    of them cannot be sent, the later ones of its group stay behind.
    """

    def __init__(self, sqs: Any, queue_url: str, pace: Pace, *, is_fifo: bool) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._pace = pace
        self._is_fifo = is_fifo
        self._stopped: set[str | None] = set()

    def batches(self, letters: Sequence[Letter]) -> Iterator[list[Letter]]:
        """The letters in calls, in order. To be taken one after the other, each sent before the next is taken."""
        waiting = list(letters)
        while waiting:
            batch: list[Letter] = []
            groups: set[str | None] = set()
            size = 0
            for letter in waiting:
                is_room = len(batch) < self._pace.batch and (not batch or size + _bytes(letter) <= _MOST_BYTES)
                if not is_room:
                    break
                if self._is_fifo and letter.group in groups:
                    continue
                batch.append(letter)
                groups.add(letter.group)
                size += _bytes(letter)
            taken = {letter.message_id for letter in batch}
            waiting = [letter for letter in waiting if letter.message_id not in taken]
            yield batch

    def send(self, batch: Sequence[Letter]) -> dict[str, str]:
        """Returns why, for each message id that was not sent. Raises what a call to SQS raises, if nothing was sent."""
        failures = {letter.message_id: BEHIND_UNSENT for letter in batch if letter.group in self._stopped}
        sendable = [letter for letter in batch if letter.message_id not in failures]
        if sendable:
            self._pace.wait_for(len(sendable))
            failures |= self._send(sendable)
        if self._is_fifo:
            self._stopped.update(letter.group for letter in batch if letter.message_id in failures)
        return failures

    def _send(self, letters: Sequence[Letter]) -> dict[str, str]:
        failures: dict[str, str] = {}
        waiting = list(letters)
        for attempt in attempts():
            try:
                failed = self._call(waiting)
            except CALL_ERRORS as error:
                if attempt == 0:
                    raise
                # Some of the batch are sent, and must be deleted before the command ends.
                return failures | {letter.message_id: error_code(error) for letter in waiting}
            failures |= {message_id: code for message_id, (code, is_final) in failed.items() if is_final}
            waiting = [
                letter for letter in waiting if letter.message_id in failed and letter.message_id not in failures
            ]
            if not waiting:
                return failures
        return failures | {letter.message_id: failed[letter.message_id][0] for letter in waiting}

    def _call(self, letters: Sequence[Letter]) -> dict[str, tuple[str, bool]]:
        """By message id, the code of each failure and whether it is the letter's own, so that a repeat is in vain."""
        entries = [self._entry(str(index), letter) for index, letter in enumerate(letters)]
        answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        sent = {int(entry["Id"]) for entry in answer.get("Successful", ())}
        failed = {int(entry["Id"]): entry for entry in answer.get("Failed", ())}
        # What the answer does not mention is not taken for sent.
        return {
            letter.message_id: (
                failed.get(index, {}).get("Code", "NotAnswered"),
                bool(failed.get(index, {}).get("SenderFault", False)),
            )
            for index, letter in enumerate(letters)
            if index not in sent
        }

    def _entry(self, entry_id: str, letter: Letter) -> dict[str, Any]:
        sent = letter.sendable
        entry: dict[str, Any] = {"Id": entry_id, "MessageBody": sent.body}
        if sent.producers_attributes:
            entry["MessageAttributes"] = sent.producers_attributes
        if letter.group is not None:
            entry["MessageGroupId"] = letter.group
        if self._is_fifo:
            # The producer's own would make SQS drop, in silence, what it has seen within five minutes.
            entry["MessageDeduplicationId"] = letter.message_id
        return entry


def _bytes(letter: Letter) -> int:
    letter = letter.sendable
    attributes = sum(
        _length(name) + sum(map(_length, value.values())) + _OVERHEAD_BYTES for name, value in letter.attributes.items()
    )
    return _length(letter.body) + attributes + _OVERHEAD_BYTES


def _length(part: str | bytes) -> int:
    return len(part.encode() if isinstance(part, str) else part)
