"""Commits many events in few transactions: what one of them refuses leaves it, the others go again.

An event ends in bounded tries: each step decides an event, reads the ledger for it, counts an attempt of it, or makes
the largest transaction that it may share smaller.
"""

from collections.abc import Callable, Sequence

from idempotent_consumer import calls
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import ATTEMPTS, OUT_OF_TIME, Budget
from idempotent_consumer.cancellation import Next, Refusal
from idempotent_consumer.commit import Commit, judge_ledger_row
from idempotent_consumer.delivery import Reading, Work
from idempotent_consumer.grouping import MAX_EVENTS, next_group, smaller_group
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.settlement import fault

# A row that has not arrived yet may be one that a neighbour writes; longer than that the message waits in the queue.
AWAITING_ATTEMPTS = 2
MAX_PLANNING_MS = 1_000
_KNOWN_BY_NOW = Verdict(Outcome.RETRY, "ledger-undecided", "its ledger row was written, but cannot be found")


class GroupCommit:
    """plan: gives an event its commit or, where it cannot be committed, a verdict."""

    def __init__(self, ledger: Ledger, plan: Callable[[Work], None]) -> None:
        self._ledger = ledger
        self._plan = plan

    def advance(self, waiting: Sequence[Work], budget: Budget) -> None:
        """One step towards the verdicts on `waiting`, the undecided events in order: a read or a transaction.

        On FIFO, all that stands before them in their message groups is settled. The verdicts on events that were
        written are `applied`, with what has to be published.
        """
        window = waiting[:MAX_EVENTS]
        self._plan_some(window, budget)
        if any(work.is_decided for work in window):  # by planning; on FIFO that may block others
            return
        asking = _askable(window)
        if asking:
            self._ask_ledger(asking, window, budget)
            return
        group = next_group(window)
        attempts = max((work.attempts for work in group), default=0)
        if attempts:
            calls.pause(attempts - 1)
        if group and budget.allows_commit():
            self._write(group, budget)
        else:
            for work in waiting:
                work.verdict = OUT_OF_TIME

    def _plan_some(self, window: Sequence[Work], budget: Budget) -> None:
        """A user's plan may be slow: what is planned is committed before the time for that is used up."""
        if not budget.allows_commit():
            return
        least_ms = budget.remaining_ms() - MAX_PLANNING_MS
        for work in window:
            if work.commit is None and work.reading is Reading.NONE:
                if budget.remaining_ms() < least_ms:
                    return
                self._plan(work)

    def _ask_ledger(self, asking: Sequence[Work], window: Sequence[Work], budget: Budget) -> None:
        event_ids = [work.event.id for work in asking if work.event is not None]
        try:
            rows, failures = self._ledger.recall(event_ids, budget)
        except Exception as error:
            rows, failures = {}, {work.event_id: fault(error, work.message) for work in asking if work.event_id}
        for work in window:  # with the copies of an event that wait for it
            if work.event is not None and work.event.id in rows:
                work.verdict = judge_ledger_row(rows[work.event.id], work.event)
        for work in asking:
            if work.is_decided or work.event is None:
                continue
            reading, work.reading = work.reading, Reading.NONE
            failure = failures.get(work.event.id)
            if failure is None:
                self._settle_unknown(work, budget)
            elif reading is Reading.NEEDED:
                work.verdict = failure

    def _settle_unknown(self, work: Work, budget: Budget) -> None:
        """The ledger does not know the event."""
        if work.if_unknown is None:
            return
        if work.if_unknown.outcome is Outcome.SUPERSEDED and work.commit is not None:
            self._settle_superseded(work, work.commit, budget)
        else:
            work.verdict = work.if_unknown

    def _settle_superseded(self, work: Work, commit: Commit, budget: Budget) -> None:
        try:
            verdict = self._ledger.settle_superseded(commit, budget)
        except Exception as error:
            verdict = fault(error, work.message)
        if verdict is None:
            work.reading, work.if_unknown = Reading.NEEDED, _KNOWN_BY_NOW
        elif verdict.outcome is Outcome.SUPERSEDED and work.if_unknown is not None:
            work.verdict = work.if_unknown  # with the plan's own reason
        else:
            work.verdict = verdict

    def _write(self, group: Sequence[Work], budget: Budget) -> None:
        started_ms = budget.remaining_ms()
        commits = [work.commit for work in group if work.commit is not None]
        try:
            refusals = self._ledger.write(commits)
        except Exception as error:
            if len(group) == 1:
                group[0].verdict = fault(error, group[0].message)
                return
            refusals = [None] * len(group)
        if refusals:
            _regroup(group, refusals)
            return
        budget.observe_commit(started_ms - budget.remaining_ms())
        for work, commit in zip(group, commits, strict=True):
            work.verdict = Verdict(Outcome.APPLIED, notification=commit.notification)


def _regroup(group: Sequence[Work], refusals: Sequence[Refusal | None]) -> None:
    """What was named leaves the group. Nothing of a transaction that failed is written, so the others go again."""
    others = [work for work, refusal in zip(group, refusals, strict=True) if refusal is None]
    named = [(work, refusal) for work, refusal in zip(group, refusals, strict=True) if refusal is not None]
    for work, refusal in named:
        _refuse(work, refusal, len(group))
    if not named or any(refusal.next is not Next.AGAIN for _, refusal in named):
        # A row stood in the way, or the transaction was written and its answer lost: AWS does not promise to name
        # every action that failed, so one read sorts the others.
        for work in others:
            work.reading = Reading.HELPFUL
    if not named:
        for work in others:
            work.largest_group = smaller_group(len(group))


def _refuse(work: Work, refusal: Refusal, group_size: int) -> None:
    if refusal.next is Next.SETTLED:
        work.verdict = refusal.verdict
        return
    if refusal.next is Next.UNLESS_KNOWN:
        work.reading, work.if_unknown = Reading.NEEDED, refusal.verdict
        return
    work.attempts += 1
    work.largest_group = smaller_group(group_size)
    work.awaits_row = refusal.next is Next.ONCE_MORE
    is_last = work.attempts >= (AWAITING_ATTEMPTS if refusal.next is Next.ONCE_MORE else ATTEMPTS)
    if refusal.next is Next.ASK_AND_AGAIN:
        work.reading = Reading.NEEDED
        work.if_unknown = refusal.verdict if is_last else None
    elif is_last:
        work.verdict = refusal.verdict


def _askable(window: Sequence[Work]) -> list[Work]:
    """The events to be read now: of the copies of an event only the first.

    A superseded event waits for those before it in its message group, since its row is written after the read.
    """
    asking: list[Work] = []
    events: set[str | None] = set()
    message_groups: set[str] = set()
    for work in window:
        is_superseded = work.if_unknown is not None and work.if_unknown.outcome is Outcome.SUPERSEDED
        is_early = is_superseded and work.message.group in message_groups
        if work.reading is not Reading.NONE and work.event_id not in events and not is_early:
            asking.append(work)
        events.add(work.event_id)
        if work.message.group is not None:
            message_groups.add(work.message.group)
    return asking
