"""What a call did to each message it was given.

It follows from the log line about the message, from the call's own counts, from the ledger row, which names the message
that committed the event, later the one that settled it, and the time, and from the times of the notifications. All are
of this machine's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from local.audit import Row
from local.call_log import Call, Handed
from local.demo.record import Change, Outcome

_DEAD = (Outcome.REJECTED, Outcome.CONFLICT)
_WORKED = (Outcome.APPLIED, Outcome.RESUMED)


@dataclass
class Try:
    """A message in one call. event_id: empty where no event comes of it. is_beside: as in `Delivery`."""

    number: int
    call: Call
    record: Handed
    event_id: str
    outcome: Outcome | None = None
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    is_beside: bool = False

    def ran_at(self, at_ms: int) -> bool:
        return self.call.began_ms <= at_ms <= self.call.ended_ms


def judge(
    tries: Sequence[Try], commits: Sequence[Row], settled: Sequence[Row], heard: Mapping[str, Sequence[int]]
) -> None:
    """Find the outcome of each try, and what it left behind.

    tries: in order. commits, settled: the ledger's rows as they were committed, and as they were marked sent. heard: by
    event id, when its notifications arrived, in order.
    """
    by_call: dict[int, list[Try]] = defaultdict(list)
    by_message: dict[str, list[Try]] = defaultdict(list)
    by_event: dict[str, list[Try]] = defaultdict(list)
    for each in tries:
        by_call[each.number].append(each)
        by_message[each.record.message_id].append(each)
        by_event[each.event_id].append(each)
        _read_call(each)
    for row in commits:
        _note(by_message[str(row["message_id"])], int(row["created_at"]), Change.ROWS, Outcome.APPLIED)
    for row in settled:
        _note(by_message[str(row["message_id"])], int(row["sent_at"]), Change.MARKED, Outcome.RESUMED)
    settled_ms = {str(row["event_id"]): int(row["sent_at"]) for row in settled}
    for of_call in by_call.values():
        _tell_resumed_from_duplicate(of_call, settled_ms, heard)
    for event_id, times in heard.items():
        for at_ms in times:
            _find_publisher(by_event[event_id], at_ms)
    for each in tries:
        each.changes.sort(key=list(Change).index)


def _read_call(each: Try) -> None:
    """What the call itself says of it."""
    said = each.call.logged.get(each.record.message_id)
    if each.call.error:
        each.outcome = Outcome.CUT_OFF if each.call.is_killed else Outcome.FAILED
        each.reason = "" if each.call.is_killed else each.call.error
    elif said is not None:
        each.outcome = next((outcome for outcome in Outcome if outcome.value == said.outcome), Outcome.OTHER)
        each.reason = said.reason
    if each.outcome in _DEAD:
        each.changes.append(Change.DEAD_LETTER)


def _note(of_message: Sequence[Try], at_ms: int, change: Change, outcome: Outcome) -> None:
    """A row names the message that wrote it, and the time tells its deliveries apart."""
    for each in of_message:
        if each.ran_at(at_ms):
            each.changes.append(change)
            each.outcome = each.outcome or outcome
            return


def _tell_resumed_from_duplicate(
    of_call: Sequence[Try], settled_ms: Mapping[str, int], heard: Mapping[str, Sequence[int]]
) -> None:
    """Of the rest the call says how many it resumed: events that were still pending when it began.

    Where that could be more, those that were announced while it ran come first. settled_ms: by event id, since when.
    """
    working = {each.event_id for each in of_call if each.outcome in _WORKED}
    resumed = sum(each.outcome is Outcome.RESUMED for each in of_call)
    rest = [each for each in of_call if each.outcome is None]
    pending: dict[str, Try] = {}
    for each in rest:
        if each.event_id not in working and settled_ms.get(each.event_id, each.call.ended_ms) >= each.call.began_ms:
            pending.setdefault(each.event_id, each)
    likely = sorted(pending.values(), key=lambda each: -sum(map(each.ran_at, heard.get(each.event_id, ()))))
    for each in likely[: max(0, of_call[0].call.counts.get("Resumed", 0) - resumed)]:
        each.outcome = Outcome.RESUMED
        working.add(each.event_id)
    for each in rest:
        if each.outcome is None:
            each.outcome = Outcome.DUPLICATE
            each.is_beside = each.event_id in working


def _find_publisher(of_event: Sequence[Try], at_ms: int) -> None:
    """A call that ended before the notification arrived may have been killed after it had asked for it."""
    able = [each for each in of_event if each.outcome in (*_WORKED, Outcome.CUT_OFF)]
    running = [each for each in able if each.ran_at(at_ms)]
    killed = [each for each in able if each.outcome is Outcome.CUT_OFF and each.call.ended_ms < at_ms]
    candidates = [each for each in running if Change.PUBLISHED not in each.changes] or killed[-1:]
    # One whose outcome says that it published goes before one that was cut off, and one that ended sooner has less
    # choice among the notifications that are still to come.
    for each in sorted(candidates, key=lambda each: (each.outcome is Outcome.CUT_OFF, each.call.ended_ms))[:1]:
        each.changes.append(Change.PUBLISHED)
