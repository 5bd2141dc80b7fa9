"""The dead-letter queue while a command reads it: letters are received, held, and deleted or given back.

Only one page of letters is in memory at a time. What is in hand is hidden from others, and from this command's own
next call; it comes back by itself when the program is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import ClientError

from idempotent_consumer.calls import CALL_ERRORS, attempts, error_code
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.queues import Depth, depth_of
from idempotent_consumer_cli.letters.letter import Letter, read_letter
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.words import spoken

PAGE = 10
# Long polling asks all of SQS's servers. Still one empty answer is no proof.
WAIT_SECONDS = 1
EMPTY_ANSWERS = 3
# Answers with nothing but letters that came after the run began: where they keep coming, there is no end to wait for.
FRUITLESS_ANSWERS = 100
VISIBILITY_SECONDS = 60
# Amazon SQS Developer Guide, "Amazon SQS message quotas": messages in flight, and the longest visibility timeout.
MOST_IN_FLIGHT = 120_000
_LONGEST_VISIBILITY_SECONDS = 43_200

_COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


class DeadLetters:
    """Use as a context manager: at the end, however it comes, all that is still in hand is given back.

    sqs: a boto3 client. visibility_seconds: how long a letter in hand is hidden; longer once that proves too short to
    read them all. on_newcomer: hears of each letter that came after the run began.

    At the beginning it reads SQS's own clock, and `depth`, how much is in the queue, and `arn`.
    """

    def __init__(
        self,
        sqs: Any,
        url: str,
        visibility_seconds: int = VISIBILITY_SECONDS,
        on_newcomer: Callable[[Letter], None] = lambda letter: None,
    ) -> None:
        self._sqs = sqs
        self._url = url
        self._first_visibility_seconds = self._visibility_seconds = visibility_seconds
        self._on_newcomer = on_newcomer
        self._handles: dict[str, str] = {}
        self._seen: set[str] = set()
        self._doomed: dict[str, None] = {}
        self.is_over_limit = False

    def __enter__(self) -> Self:
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=[*_COUNTS, "QueueArn"])
        self._began = clock.monotonic()
        self.arn: str = answer["Attributes"]["QueueArn"]
        self.depth = depth_of(answer["Attributes"])
        self._clock_ms, accuracy_ms = _date(answer)
        # A second later, on SQS's clock, it is certainly this late.
        self._newcomers_from_ms = self._clock_ms + accuracy_ms
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with suppress(*CALL_ERRORS):
                self.remove(())
            self.give_back()
        except KeyboardInterrupt:
            # What ends the command already says how far it came.
            if error is None:
                raise

    @property
    def in_hand(self) -> int:
        return len(self._handles)

    @property
    def undeleted(self) -> int:
        """Letters that were to be deleted and are not."""
        return len(self._doomed)

    def now_ms(self) -> int:
        """The time on SQS's clock, which stamps the letters, as epoch milliseconds."""
        return self._clock_ms + int((clock.monotonic() - self._began) * 1000)

    def wait_for_newcomers(self) -> None:
        """Returns once whatever is sent from now on counts as a newcomer: SQS tells its time in whole seconds."""
        rest_ms = self._newcomers_from_ms - self.now_ms()
        if rest_ms > 0:
            clock.sleep(rest_ms / 1000)

    def pages(self, size: int = PAGE, *, is_patient: bool = False) -> Iterator[list[Letter]]:
        """The letters that were there when the run began, each once, at most `size` together.

        They stay in hand until they are removed or given back. is_patient: wait for those that another run has in
        hand, a killed one perhaps, until they come back; no longer than letters are hidden.
        """
        empty = fruitless = 0
        while empty < EMPTY_ANSWERS and fruitless < FRUITLESS_ANSWERS and not self.is_over_limit:
            received = self._receive(size)
            page = [letter for letter in received if self._is_new(letter)]
            empty = 0 if received else empty + 1
            fruitless = 0 if page else fruitless + bool(received)
            if page:
                yield page
            elif empty == EMPTY_ANSWERS and is_patient and self._others_hold_some():
                clock.sleep(1)
                empty -= 1

    def look(self) -> None:
        """Receive what can be received now, a thousand letters at most; `on_newcomer` hears of the newcomers.

        All is given back at once: what is hidden is in no alarm, and on FIFO it hides what stands behind it.
        """
        for _ in range(FRUITLESS_ANSWERS):
            received = self._receive(PAGE)
            for letter in received:
                self._is_new(letter)
            if not received:
                break
        self.give_back()

    def remove(self, message_ids: Iterable[str]) -> None:
        """Delete letters in hand; `undeleted` counts those that withstand. They are deleted when they come back.

        Raises what a call to SQS raises.
        """
        self._doomed.update(dict.fromkeys(message_ids))
        waiting = [message_id for message_id in self._doomed if message_id in self._handles]
        for _ in attempts():
            for chunk in _chunks(waiting):
                deleted = self._call(self._sqs.delete_message_batch, chunk)
                for message_id in deleted:
                    del self._doomed[message_id], self._handles[message_id]
            waiting = [message_id for message_id in waiting if message_id in self._doomed]
            if not waiting:
                break

    def give_back(self, follow: Callable[[int], None] = lambda done: None) -> str:
        """Make all that is in hand visible again. follow: hears how many are given back.

        Returns a line if that fails, which does no harm: what is not given back comes back by itself.
        """
        done = 0
        for chunk in _chunks(list(self._handles)):
            try:
                self._call(self._sqs.change_message_visibility_batch, chunk, VisibilityTimeout=0)
            except CALL_ERRORS as error:
                left, within = self.in_hand, spoken(self._visibility_seconds)
                self._handles.clear()
                return f"{left:,} letters come back by themselves, within {within} ({error_code(error)})."
            for message_id in chunk:  # one that is refused is visible already
                del self._handles[message_id]
            done += len(chunk)
            follow(done)
        return ""

    def unread(self, read: int, *, is_fifo: bool) -> list[str]:
        """A line on letters that were not read, if some were not. read: how many were; to be asked at the end."""
        if self.is_over_limit:
            return [f"SQS gives out {MOST_IN_FLIGHT:,} letters at a time: those beyond were not read."]
        # Both figures are rough. What only one of them misses may be long gone, or new.
        missing = min(self.depth.total - read, self._read_depth().total - self.in_hand)
        if missing <= 0:
            return []
        if is_fifo and self.in_hand:
            why = "of a message group SQS gives out ten at most, until those are gone"
        else:
            why = "another run has the others in hand, or had. Try again in a minute"
        return [f"{read:,} of about {read + missing:,} letters were read: {why}."]

    def _read_depth(self) -> Depth:
        """How much is in the queue now, roughly."""
        return depth_of(self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=list(_COUNTS))["Attributes"])

    def _receive(self, size: int) -> list[Letter]:
        try:
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=size,
                VisibilityTimeout=self._visibility_seconds,
                WaitTimeSeconds=WAIT_SECONDS,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        except ClientError as error:
            if not error.response["Error"]["Code"].endswith("OverLimit"):
                raise
            answer = {}
            self.is_over_limit = True
        letters = [read_letter(message) for message in answer.get("Messages", ())]
        # With long polling SQS does not say so.
        self.is_over_limit |= not letters and self.in_hand >= MOST_IN_FLIGHT
        if any(letter.message_id in self._handles for letter in letters):
            # Hidden for too short a time to read them all before the first ones come back.
            self._visibility_seconds = min(_LONGEST_VISIBILITY_SECONDS, 2 * self._visibility_seconds)
        self._handles.update((letter.message_id, letter.receipt_handle) for letter in letters)
        if any(letter.message_id in self._doomed for letter in letters):
            self.remove(())
        return letters

    def _is_new(self, letter: Letter) -> bool:
        if letter.message_id in self._seen:
            return False
        self._seen.add(letter.message_id)
        if letter.sent_ms < self._newcomers_from_ms:
            return True
        self._on_newcomer(letter)
        return False

    def _others_hold_some(self) -> bool:
        is_in_time = clock.monotonic() < self._began + self._first_visibility_seconds
        return self.depth.in_flight > 0 and is_in_time and self._read_depth().in_flight > self.in_hand

    def _call(self, operation: Callable[..., Any], message_ids: Sequence[str], **more: Any) -> set[str]:
        """Returns those that succeeded; what the answer does not mention did not."""
        entries = [
            {"Id": str(index), "ReceiptHandle": self._handles[message_id], **more}
            for index, message_id in enumerate(message_ids)
        ]
        answer = operation(QueueUrl=self._url, Entries=entries)
        return {message_ids[int(entry["Id"])] for entry in answer.get("Successful", ())}


def give_back(dead: DeadLetters, screen: Screen) -> None:
    """Give back all that is in hand, before a command ends."""
    in_hand = dead.in_hand
    if not in_hand:
        return
    with screen.progress("Giving back", in_hand) as bar:
        problem = dead.give_back(lambda done: bar.update(done, in_hand))
    if problem:
        screen.note(problem)


def _chunks(message_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(message_ids), PAGE):
        yield message_ids[start : start + PAGE]


def _date(answer: Mapping[str, Any]) -> tuple[int, int]:
    """When an answer was given, on the clock of who gave it, and how much later it may have been; milliseconds."""
    text = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    with suppress(TypeError, ValueError):
        return int(parsedate_to_datetime(text).timestamp() * 1000), 1000
    return clock.now_ms(), 0
