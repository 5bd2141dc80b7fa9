"""Publishes stored notifications that nobody else will publish: their message is gone, or keeps failing.

It may run beside live traffic and beside itself. Two that publish one row at the same time announce the event twice,
which is allowed; neither writes anything but `sent`.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import LONGEST_CALL_MS
from idempotent_consumer.calls import OUT_OF_TIME, Budget
from idempotent_consumer.commit import UNREADABLE, is_pending, sent_attributes, stored_notification
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.outbox import MAX_BATCH_BYTES, Notifications, Outbox
from idempotent_consumer.pending import PendingRows, PendingUnread

# Rows that are read together: a ledger row has 400 KB at most.
PAGE = 50
# Notifications that are published before they are marked: five calls of the outbox at most.
_MOST_BYTES = 5 * MAX_BATCH_BYTES
# What `Budget.allows_commit` asks for: with less, no further page is begun.
_LAST_PAGE_MS = LONGEST_CALL_MS + 1_500
# SnapStart clones the state of the shared generator: functions would begin at the same place.
_random = random.SystemRandom()


@dataclass(slots=True)
class Reconciliation:
    """What a run has done so far.

    stale: rows that the index showed as pending for too long when the run began. oldest_ms: when the oldest pending
    row was written, stale or not, epoch milliseconds. published: rows announced and marked. gone: rows that others had
    settled. left: event ids that could not be published or marked, and why. unread: shards that could not be read.
    is_refused: a right or resource is missing, so that it would be in vain to go on.
    """

    stale: int = 0
    oldest_ms: int | None = None
    published: int = 0
    gone: int = 0
    left: dict[str, Verdict] = field(default_factory=dict)
    unread: dict[str, Verdict] = field(default_factory=dict)
    is_refused: bool = False

    @property
    def still_stale(self) -> int:
        """Rows that the run leaves pending, at least: those that failed or that it did not get to.

        Of a shard that cannot be read nothing is known, which must not look like nothing to be done.
        """
        return max(self.stale - self.published - self.gone, len(self.left), len(self.unread))


class Reconciler:
    """now_ms: gives epoch milliseconds. ttl_window_seconds: how long a settled event is remembered."""

    def __init__(
        self, pending: PendingRows, ledger: Ledger, outbox: Outbox, ttl_window_seconds: int, now_ms: Callable[[], int]
    ) -> None:
        self._pending = pending
        self._ledger = ledger
        self._outbox = outbox
        self._ttl_window_seconds = ttl_window_seconds
        self._now_ms = now_ms

    def run(
        self, until_ms: int, budget: Budget, follow: Callable[[Reconciliation], None] = lambda run: None
    ) -> Reconciliation:
        """Publish and mark the rows that were written until `until_ms` (epoch milliseconds), while there is time.

        follow: hears of each step. Failures are in the result; only faults of our own raise.
        """
        run = Reconciliation()
        to_be_left_ms = (budget.remaining_ms() + _LAST_PAGE_MS) // 2
        stale = {shard: self._survey(shard, until_ms, to_be_left_ms, budget, run) for shard in self._pending.shards}
        # Rows that can never be published must not use up run after run before those behind them: each run begins
        # with another shard, and in each with another row.
        shards = [shard for shard in stale if stale[shard]]
        _random.shuffle(shards)
        for shard in shards:
            self._settle_shard(shard, stale[shard], until_ms, budget, run, follow)
        return run

    def _survey(self, shard: str, until_ms: int, to_be_left_ms: int, budget: Budget, run: Reconciliation) -> int:
        """Count what is stale in a shard, before anything is settled, since the index lags.

        to_be_left_ms: where only so much time is left, the rest is not counted. It has to be published.
        """
        stale = 0
        try:
            oldest_ms = self._pending.oldest_ms(shard, budget)
            if oldest_ms is None:
                return 0
            run.oldest_ms = oldest_ms if run.oldest_ms is None else min(oldest_ms, run.oldest_ms)
            if oldest_ms > until_ms:
                return 0
            for count in self._pending.counts(shard, until_ms, budget):
                stale += count
                if budget.remaining_ms() < to_be_left_ms:
                    break
        except PendingUnread as error:
            run.unread[shard] = error.verdict
        run.stale += stale
        return stale

    def _settle_shard(
        self,
        shard: str,
        stale: int,
        until_ms: int,
        budget: Budget,
        run: Reconciliation,
        follow: Callable[[Reconciliation], None],
    ) -> None:
        pages = self._pending.pages(shard, until_ms, _random.randrange(stale), PAGE, budget)
        try:
            while not run.is_refused and budget.allows_commit() and (event_ids := next(pages, None)):
                started_ms = budget.remaining_ms()
                self._settle(event_ids, budget, run)
                budget.observe_settling(started_ms - budget.remaining_ms())
                follow(run)
        except PendingUnread as error:
            if error.verdict is not OUT_OF_TIME:
                run.unread[shard] = error.verdict

    def _settle(self, event_ids: Sequence[str], budget: Budget, run: Reconciliation) -> None:
        """A fault that one row causes must not hold up the others."""
        try:
            self._publish_and_mark(event_ids, budget, run)
        except Exception as error:
            if len(event_ids) == 1:
                run.left[event_ids[0]] = Verdict(Outcome.RETRY, "fault", type(error).__name__)
                return
            for event_id in event_ids:
                self._settle([event_id], budget, run)

    def _publish_and_mark(self, event_ids: Sequence[str], budget: Budget, run: Reconciliation) -> None:
        rows, failures = self._ledger.recall(event_ids, budget)
        # In the order of their commits, which a FIFO topic keeps.
        pending = {
            event_id: rows[event_id] for event_id in event_ids if event_id in rows and is_pending(rows[event_id])
        }
        notifications: dict[str, RenderedNotification] = {}
        for event_id, row in pending.items():
            try:
                notifications[event_id] = stored_notification(row)
            except ValueError:
                failures[event_id] = UNREADABLE
        for part in _parts(notifications):
            if not budget.allows_call():
                failures |= dict.fromkeys(part, OUT_OF_TIME)
                continue
            failed = self._outbox.publish(part, budget)
            message_ids = {
                event_id: pending[event_id].get("message_id", {}).get("S", "")
                for event_id in part
                if event_id not in failed
            }
            sent = sent_attributes(self._now_ms(), self._ttl_window_seconds)
            failed |= self._ledger.mark_sent(message_ids, sent, budget)
            run.published += len(part) - len(failed)
            failures |= failed
        run.gone += sum(event_id not in pending and event_id not in failures for event_id in event_ids)
        run.left |= failures
        is_all = len(event_ids) == len(failures)
        run.is_refused = is_all and all(verdict.reason == "misconfigured" for verdict in failures.values())


def _parts(notifications: Notifications) -> Iterator[Notifications]:
    """Parts of so many bytes that publishing does not take the time that marking needs."""
    part: dict[str, RenderedNotification] = {}
    size = 0
    for event_id, notification in notifications.items():
        if part and size + notification.size > _MOST_BYTES:
            yield part
            part, size = {}, 0
        part[event_id] = notification
        size += notification.size
    if part:
        yield part
