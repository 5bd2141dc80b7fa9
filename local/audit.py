"""Compares what the tables and queues hold at the end with what was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from local.traffic import Traffic

Row = Mapping[str, Any]
# What the consumer adds to the event in a business row.
ADDED = ("event_id", "event_fingerprint", "event_consumer", "event_committed_at", "event_version")


@dataclass(frozen=True)
class Found:
    """What was read.

    Rows are plain values, numbers as Decimal. `notifications`: (event id, body) of each message in the subscriber
    queue. `dead_letters`: (body, reason) of each message in the dead-letter queue; the reason is empty when the
    redrive policy moved it. `business_writes`, `commits`: the event id of each write that the tables' change
    streams tell of (of the ledger only those that commit an event).
    """

    business_rows: Sequence[Row]
    ledger_rows: Sequence[Row]
    notifications: Sequence[tuple[str, str]]
    dead_letters: Sequence[tuple[str, str]]
    business_writes: Sequence[str]
    commits: Sequence[str]


@dataclass(frozen=True)
class Report:
    """The numbers: how many were counted where, and what is wrong with them."""

    sent: int
    duplicates_sent: int
    unique_events: int
    business_rows: int
    ledger_sent: int
    notifications_total: int
    notifications_unique: int
    dead_lettered: Mapping[str, int]
    dead_lettered_unique: int
    lost: int
    doubled: int
    unexpected: int
    problems: Sequence[str] = field(default=())

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.unexpected)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(traffic: Traffic, found: Found) -> Report:
    """Lost: an event without its row, its settled ledger row or its notification, or a message gone without trace.
    Doubled: an event whose effects in the database happened twice, or that another content has overwritten.
    Unexpected: a row, notification or dead letter that belongs to nothing that was sent."""
    rows = Counter(str(row.get("event_id")) for row in found.business_rows)
    ledger = {str(row["event_id"]): row for row in found.ledger_rows}
    settled = {event_id for event_id, row in ledger.items() if row.get("status") == "sent"}
    notified = {event_id for event_id, _ in found.notifications}
    false = {
        event_id
        for event_id, body in found.notifications
        if event_id in traffic.events and not is_same_event(body, traffic.events[event_id])
    }
    dead = Counter(body for body, _ in found.dead_letters)

    lost: dict[str, str] = {}
    doubled: dict[str, str] = {}
    contents = {str(row.get("event_id")): row for row in found.business_rows}
    writes, commits = Counter(found.business_writes), Counter(found.commits)
    for event_id, body in traffic.events.items():
        if event_id not in rows:
            lost[event_id] = "has no business row"
        elif event_id not in settled:
            lost[event_id] = f"is not settled in the ledger: {ledger.get(event_id, {}).get('status', 'no row')}"
        elif event_id not in notified:
            lost[event_id] = "was never announced"
        elif event_id in false:
            lost[event_id] = "was announced with other content"
        if rows[event_id] > 1 or writes[event_id] > 1:
            doubled[event_id] = f"was written {max(rows[event_id], writes[event_id])} times"
        elif commits[event_id] > 1:
            doubled[event_id] = f"was committed {commits[event_id]} times"
        elif event_id in contents and not has_content(contents[event_id], body):
            doubled[event_id] = "does not carry the content that was sent first"
        elif event_id in rows and event_id not in ledger:
            doubled[event_id] = "has a business row and no ledger row: it could be written again"
    refused = {*traffic.poison, *traffic.impostors}
    for body in sorted(refused):
        if not dead[body]:
            lost[body] = "is gone: neither processed nor in the dead-letter queue"

    unexpected = [
        *(f"business row of {key}, which was not sent" for key in rows.keys() - traffic.events.keys()),
        *(f"ledger row of {key}, which was not sent" for key in ledger.keys() - traffic.events.keys()),
        *(f"notification of {key}, which was not sent" for key in notified - traffic.events.keys()),
        *(f"dead letter that could be processed: {body}" for body in dead.keys() - refused),
    ]
    return Report(
        sent=traffic.sent,
        duplicates_sent=traffic.duplicates,
        unique_events=len(traffic.events),
        business_rows=len(found.business_rows),
        ledger_sent=len(settled),
        notifications_total=len(found.notifications),
        notifications_unique=len(notified),
        dead_lettered=dict(sorted(Counter(reason or "(none)" for _, reason in found.dead_letters).items())),
        dead_lettered_unique=len(dead),
        lost=len(lost),
        doubled=len(doubled),
        unexpected=len(unexpected),
        problems=[*_sentences(lost), *_sentences(doubled), *sorted(unexpected)],
    )


def has_content(row: Row, body: str) -> bool:
    """Whether a business row holds exactly the event of `body`; numbers are compared by value."""
    event: dict[str, Any] = _read(body)
    return {name: value for name, value in row.items() if name not in ADDED} == event


def is_same_event(notification: str, body: str) -> bool:
    """Whether a notification tells of exactly the event of `body`."""
    try:
        return bool(_read(notification) == _read(body))
    except ValueError:
        return False


def _read(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _sentences(problems: Mapping[str, str]) -> Iterable[str]:
    return (f"{name} {what}" for name, what in problems.items())
