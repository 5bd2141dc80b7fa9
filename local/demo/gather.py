"""From what was seen of a run to its record."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from local.audit import Found, Report, Row
from local.call_log import Call
from local.demo.judge import Try, judge
from local.demo.record import DeadLetter, Delivery, Kill, Kind, Outcome, Record, Story, Theme
from local.traffic import Traffic
from local.watching import Heard

_REASON_ROW = re.compile(r"^\| `(?P<reason>[a-z0-9-]+)` \| (?P<meaning>.+?) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Seen:
    """What was seen of a run.

    kills: when, epoch milliseconds, and how many processes. commits: the ledger's rows as they were committed.
    meanings: by reason.
    """

    calls: Sequence[Call]
    kills: Sequence[tuple[int, int]]
    heard: Sequence[Heard]
    found: Found
    commits: Sequence[Row]
    meanings: Mapping[str, str]


@dataclass(frozen=True)
class Sent:
    """One sending of an event. batch: number of the SendMessageBatch call. is_other: with another content."""

    batch: int
    is_other: bool


def meanings(reasons: str) -> dict[str, str]:
    """What each reason means, by the tables of docs/reasons.md."""
    return {row["reason"]: row["meaning"].replace("`", "") for row in _REASON_ROW.finditer(reasons)}


def record_of(traffic: Traffic, seen: Seen, report: Report, reported: Mapping[str, int], seconds: float) -> Record:
    """reported: the function's own counts, by metric. seconds: the whole run."""
    poison = set(traffic.poison)
    tries = [
        Try(number, call, record, "" if record.body in poison else _event_id(record.body))
        for number, call in enumerate(seen.calls, 1)
        for record in call.records
    ]
    heard: dict[str, list[int]] = defaultdict(list)
    for notification in sorted(seen.heard, key=lambda notification: notification.at_ms):
        heard[notification.event_id].append(notification.at_ms)
    settled = [row for row in seen.found.ledger_rows if row["status"] == "sent"]
    judge(tries, seen.commits, settled, heard)
    start_ms = min((each.record.sent_ms for each in tries), default=0)
    sent, writes = _sent(traffic), Counter(seen.found.business_writes)
    by_event: dict[str, list[Try]] = defaultdict(list)
    for each in tries:
        by_event[each.event_id].append(each)
    refused = by_event.pop("", [])
    return Record(
        began=datetime.fromtimestamp(start_ms / 1000, UTC),
        seconds=seconds,
        report=report,
        reported=dict(reported),
        kills=[Kill((at_ms - start_ms) / 1000, processes) for at_ms, processes in seen.kills],
        stories=[
            _story(event_id, by_event[event_id], sent[event_id], start_ms, writes[event_id], len(heard[event_id]))
            for event_id in sorted(by_event)
        ],
        refused=_deliveries(refused, start_ms, {}),
        dead_letters=_dead_letters(seen, tries, start_ms),
    )


def _event_id(body: str) -> str:
    return str(json.loads(body)["id"])


def _sent(traffic: Traffic) -> dict[str, list[Sent]]:
    """How each event was sent, in order."""
    sent: dict[str, list[Sent]] = defaultdict(list)
    poison, impostors = set(traffic.poison), set(traffic.impostors)
    for number, batch in enumerate([*traffic.batches, *traffic.late]):
        for body in batch:
            if body not in poison:
                sent[_event_id(body)].append(Sent(number, body in impostors))
    return sent


def _story(event_id: str, tries: Sequence[Try], sent: Sequence[Sent], start_ms: int, rows: int, notified: int) -> Story:
    deliveries = _deliveries(tries, start_ms, _messages(tries, sent))
    return Story(event_id, _theme(deliveries), deliveries, rows, notified, len(sent))


def _messages(tries: Sequence[Try], sent: Sequence[Sent]) -> dict[str, tuple[int, Kind]]:
    """By message id, its number among the event's messages, and why it was sent: the queue has them in order."""
    times = {each.record.message_id: each.record.sent_ms for each in tries}
    messages: dict[str, tuple[int, Kind]] = {}
    before: Sent | None = None
    in_order = sorted(times, key=lambda name: times[name])
    # A message that never arrived is missing among the first.
    for number, (message_id, sending) in enumerate(zip(in_order, sent, strict=False), 1):
        if sending.is_other:
            kind = Kind.OTHER
        elif before is None:
            kind = Kind.FIRST
        else:
            kind = Kind.TWIN if before.batch == sending.batch else Kind.AGAIN
        messages[message_id] = number, kind
        before = sending
    return messages


def _deliveries(tries: Iterable[Try], start_ms: int, messages: Mapping[str, tuple[int, Kind]]) -> list[Delivery]:
    was_cut_off: dict[str, bool] = {}
    deliveries = []
    for each in tries:
        message_id, outcome = each.record.message_id, each.outcome or Outcome.OTHER
        number, kind = messages.get(message_id, (1, Kind.FIRST))
        if message_id in was_cut_off:
            kind = Kind.AFTER_KILL if was_cut_off[message_id] else Kind.RETURNED
        was_cut_off[message_id] = outcome is Outcome.CUT_OFF
        deliveries.append(
            Delivery(
                at=(each.call.began_ms - start_ms) / 1000,
                sent_at=(each.record.sent_ms - start_ms) / 1000,
                call=each.number,
                message=number,
                receive=each.record.receive_count,
                kind=kind,
                outcome=outcome,
                reason=each.reason,
                changes=tuple(each.changes),
                is_beside=each.is_beside,
            )
        )
    return deliveries


def _theme(deliveries: Sequence[Delivery]) -> Theme:
    kinds = {delivery.kind for delivery in deliveries}
    if Kind.OTHER in kinds:
        return Theme.IMPOSTOR
    if any(delivery.outcome is Outcome.CUT_OFF for delivery in deliveries):
        return Theme.KILLED
    if Kind.TWIN in kinds:
        return Theme.TWINS
    if len(deliveries) == 1:
        return Theme.ONCE
    return Theme.RETURNED if Kind.RETURNED in kinds else Theme.RESENT


def _dead_letters(seen: Seen, tries: Sequence[Try], start_ms: int) -> list[DeadLetter]:
    letters = [
        DeadLetter(
            body=body,
            reason=reason,
            meaning=seen.meanings.get(reason, ""),
            copies=copies,
            deliveries=_deliveries([each for each in tries if each.record.body == body], start_ms, {}),
        )
        for (body, reason), copies in Counter(seen.found.dead_letters).items()
    ]
    return sorted(letters, key=lambda letter: (letter.reason, letter.body))
