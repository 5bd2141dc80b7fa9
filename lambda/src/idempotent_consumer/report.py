"""What became of the messages of one invocation, for its answer and its metrics."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from idempotent_consumer.answer import Verdict
from idempotent_consumer.delivery import Delivery


@dataclass(slots=True)
class Report:
    """Filled part by part; the events themselves are let go, so that a large batch does not pile them up.

    returning: ids of the messages that come back. event_ages_ms: of the others, from sent to done.
    """

    returning: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    event_ages_ms: list[int] = field(default_factory=list)
    receive_counts: list[int] = field(default_factory=list)

    def add(self, deliveries: Sequence[Delivery], returning: Collection[str], now_ms: int) -> None:
        """deliveries: messages with their last verdicts. now_ms: epoch milliseconds."""
        gone = [delivery.message for delivery in deliveries if delivery.message.id not in returning]
        self.returning += returning
        self.verdicts += (work.verdict for delivery in deliveries for work in delivery.works)
        self.event_ages_ms += (max(0, now_ms - message.sent_ms) for message in gone)
        self.receive_counts += (delivery.message.receive_count for delivery in deliveries)

    @property
    def is_misconfigured(self) -> bool:
        """Nothing was settled, and at least one event for want of a right or a resource."""
        is_nothing_settled = len(self.returning) == len(self.receive_counts)
        return is_nothing_settled and any(verdict.is_misconfigured for verdict in self.verdicts)


def returning_messages(deliveries: Iterable[Delivery], held: set[str]) -> list[str]:
    """The messages that have to come back; on FIFO with all that follow in their group, committed or not.

    held: the groups of which a message comes back, added to here.
    """
    returning: list[str] = []
    for delivery in deliveries:
        message = delivery.message
        if delivery.verdict.outcome.is_reported or message.group in held:
            returning.append(message.id)
            if message.group is not None:
                held.add(message.group)
    return returning
