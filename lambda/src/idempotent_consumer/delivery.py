"""The messages and events of one invocation on their way through the steps, and what follows from their verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from idempotent_consumer.answer import BLOCKED, UNDECIDED, Outcome, Verdict, worst
from idempotent_consumer.commit import Commit
from idempotent_consumer.event import Event
from idempotent_consumer.message import Message


class Reading(Enum):
    """Whether the ledger is read before an event is tried (again).

    HELPFUL: a read may save a transaction, whose condition decides anyway. NEEDED: there is no verdict without it.
    """

    NONE = "none"
    HELPFUL = "helpful"
    NEEDED = "needed"


@dataclass(slots=True)
class Work:
    """One event of a message on its way through the steps.

    event: None where the body holds none. commit: once it is planned. if_unknown: the verdict where the ledger, read
    as `reading` says, does not know the event; None: it is committed. attempts: transactions that failed for its sake.
    largest_group: how many events its next transaction may hold; None: as many as fit. awaits_row: a condition of it
    says that a row has not arrived yet, which one behind it may write.
    """

    message: Message
    event: Event | None
    verdict: Verdict = UNDECIDED
    commit: Commit | None = None
    reading: Reading = Reading.NONE
    if_unknown: Verdict | None = None
    attempts: int = 0
    largest_group: int | None = None
    awaits_row: bool = False

    @property
    def event_id(self) -> str | None:
        return self.event.id if self.event is not None else None

    @property
    def is_decided(self) -> bool:
        return self.verdict is not UNDECIDED

    @property
    def has_failed(self) -> bool:
        """Whether the message cannot be deleted for what became of this event."""
        outcome = self.verdict.outcome
        return self.is_decided and (outcome.is_reported or outcome.is_dead)


@dataclass(slots=True)
class Delivery:
    """One message with its events."""

    message: Message
    works: list[Work]
    is_dead_lettered: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on the message: its worst event's."""
        return worst([work.verdict for work in self.works])

    @property
    def event_id(self) -> str | None:
        """The id of the event whose verdict is the message's."""
        verdict = self.verdict
        return next(work.event_id for work in self.works if work.verdict is verdict)

    @property
    def distinct(self) -> list[Work]:
        """The first event of each verdict: a message may hold a thousand that share one."""
        first: dict[int, Work] = {}
        for work in self.works:
            first.setdefault(id(work.verdict), work)
        return list(first.values())

    @property
    def retry_at_ms(self) -> int | None:
        """When it is worth another look, epoch milliseconds: as soon as one of its events is."""
        times = [work.verdict.retry_at_ms for work in self.works if work.verdict.retry_at_ms is not None]
        return min(times, default=None)

    @property
    def undecided(self) -> list[Work]:
        return [work for work in self.works if not work.is_decided]

    @property
    def has_failed(self) -> bool:
        return any(work.has_failed for work in self.works)

    @property
    def is_settled(self) -> bool:
        """Whether later messages of its group may follow."""
        outcome = self.verdict.outcome
        return self.is_dead_lettered if outcome.is_dead else not outcome.is_reported

    @property
    def is_under_way(self) -> bool:
        """Whether an event of it has still to be published and marked."""
        return any(work.verdict.notification is not None for work in self.works)

    @property
    def detail(self) -> str:
        """The detail of its verdict; with several events, what became of each."""
        if len(self.works) == 1:
            return self.verdict.detail
        lines = (
            f"{number}: {work.verdict.outcome.value} {work.verdict.reason} {work.verdict.detail}".strip()
            for number, work in enumerate(self.works, 1)
        )
        return "; ".join(lines)

    def block(self) -> None:
        """On FIFO: an earlier message of its group is not settled, so nothing of this one may be touched."""
        for work in self.works:
            work.verdict = BLOCKED

    def block_after_failure(self) -> None:
        """On FIFO: the events behind the first that failed may not overtake it."""
        has_failed = False
        for work in self.works:
            if has_failed:
                work.verdict = BLOCKED
            has_failed = has_failed or work.has_failed


def hold_group(held: set[str], delivery: Delivery) -> None:
    """On FIFO, hold the group of a message that is not settled: what follows in it must not be touched."""
    if delivery.message.group is not None and not delivery.is_settled:
        held.add(delivery.message.group)


def awaiting_publishing(deliveries: Iterable[Delivery]) -> dict[str, list[Work]]:
    """The events to be published, by id; the copies of one event that the batch holds stand behind each other."""
    pending: dict[str, list[Work]] = {}
    for delivery in deliveries:
        for work in delivery.works:
            if work.event_id is not None and work.verdict.notification is not None:
                pending.setdefault(work.event_id, []).append(work)
    return pending


def fail_events(pending: dict[str, list[Work]], failures: Mapping[str, Verdict]) -> None:
    """Take the events that failed out of `pending`: none of their messages may be deleted."""
    for event_id, verdict in failures.items():
        for work in pending.pop(event_id):
            work.verdict = verdict


def settle_events(pending: Mapping[str, Sequence[Work]]) -> None:
    """Of the copies of an event that is now published and marked, the first did it."""
    for first, *copies in pending.values():
        first.verdict = Verdict(first.verdict.outcome)
        for copy in copies:
            copy.verdict = Verdict(Outcome.DUPLICATE)
