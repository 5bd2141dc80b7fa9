"""Sends letters back to the intake queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from idempotent_consumer.aws import CALL_ERRORS, attempts, error_code
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.pace import Pace

# Amazon SQS API Reference, SendMessageBatch: a queue made by an older provider takes 256 KiB a call.
_MOST_BYTES = 262_144
# For each attribute's name, type and lengths, and for what else a message has.
_OVERHEAD_BYTES = 200

BEHIND_UNSENT = "an earlier letter of its group could not be sent"


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
