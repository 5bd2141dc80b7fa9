"""What one run of the demo did: each event that was sent, its deliveries, and what each of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from local.audit import Report


class Kind(Enum):
    """Why a message was delivered."""

    FIRST = "first send"
    AGAIN = "sent again"
    TWIN = "second copy in one batch"
    OTHER = "same id, other content"
    AFTER_KILL = "redelivered after a kill"
    RETURNED = "redelivered"


class Outcome(Enum):
    """What became of a delivery. The function's own words, and what it could not say."""

    APPLIED = "applied"
    RESUMED = "resumed"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    RETRY = "retry"
    CUT_OFF = "cut off by a kill"
    FAILED = "failed"
    OTHER = "other"


class Change(Enum):
    """What a delivery left behind."""

    ROWS = "business row and ledger row written"
    PUBLISHED = "notification published"
    MARKED = "ledger row marked sent"
    DEAD_LETTER = "copy in the dead-letter queue"


class Theme(Enum):
    """What an event's story is about, the rarest first: an event belongs to the first that fits."""

    IMPOSTOR = "impostor"
    KILLED = "killed"
    TWINS = "twins"
    RETURNED = "returned"
    RESENT = "resent"
    ONCE = "once"


@dataclass(frozen=True)
class Delivery:
    """A message given to the function.

    at, sent_at: seconds since the first message was sent. call: number of the call of the function. message: which of
    the event's messages, from 1. receive: how often this message has been received. is_beside: another copy of the
    event was in the same call, and did the work.
    """

    at: float
    sent_at: float
    call: int
    message: int
    receive: int
    kind: Kind
    outcome: Outcome
    reason: str = ""
    changes: Sequence[Change] = ()
    is_beside: bool = False


@dataclass(frozen=True)
class Story:
    """An event and its deliveries in order. notified: copies of its notification. rows: writes of its business row."""

    event_id: str
    theme: Theme
    deliveries: Sequence[Delivery]
    rows: int
    notified: int
    sent: int


@dataclass(frozen=True)
class DeadLetter:
    """A message that ended in the dead-letter queue. meaning: of the reason. copies: how many of it are there."""

    body: str
    reason: str
    meaning: str
    copies: int
    deliveries: Sequence[Delivery]


@dataclass(frozen=True)
class Kill:
    """All processes of the function were killed. at: seconds."""

    at: float
    processes: int


@dataclass(frozen=True)
class Record:
    """A run. began: when its first message was sent. seconds: the whole run, with starting and applying.

    reported: the function's own counts, by metric. refused: deliveries of messages that no event comes of.
    """

    began: datetime
    seconds: float
    report: Report
    reported: Mapping[str, int]
    kills: Sequence[Kill]
    stories: Sequence[Story]
    refused: Sequence[Delivery] = field(default=())
    dead_letters: Sequence[DeadLetter] = field(default=())

    @property
    def deliveries(self) -> list[Delivery]:
        """All of them, in order."""
        told = [delivery for story in self.stories for delivery in story.deliveries]
        return sorted([*told, *self.refused], key=lambda delivery: (delivery.at, delivery.call))

    @property
    def killed(self) -> int:
        return sum(kill.processes for kill in self.kills)


@dataclass(frozen=True)
class Figure:
    """A number of the run. is_bad: it should be 0 and is not."""

    name: str
    value: str
    meaning: str
    is_bad: bool = False


def figures(report: Report, reported: Mapping[str, int], killed: int, seconds: float) -> list[Figure]:
    """The numbers that sum a run up. reported: the function's own counts, by metric."""
    dead = "\n".join(f"{count} {reason}" for reason, count in report.dead_lettered.items())
    letters = f"{report.dead_lettered_unique:,} / {sum(report.dead_lettered.values()):,}"
    notifications = f"{report.notifications_unique:,} / {report.notifications_total:,}"
    resumed = reported.get("Resumed", 0)
    return [
        Figure("events sent", f"{report.sent:,}", f"messages, {report.duplicates_sent} of them duplicates"),
        Figure("unique events", f"{report.unique_events:,}", "different ids that can be processed"),
        Figure("business rows", f"{report.business_rows:,}", "one per event"),
        Figure("ledger: sent", f"{report.ledger_sent:,}", "events settled"),
        Figure("notifications", notifications, "unique / total: a copy may come, none may be missing"),
        Figure("resumed", f"{resumed:,}", "found committed, and announced from the ledger row"),
        Figure("killed", f"{killed:,}", "processes, in the middle of their work"),
        Figure("dead-lettered", letters, f"unique / total: a killed call may leave a second copy\n{dead}"),
        Figure("lost", f"{report.lost:,}", "no row, no notification, or gone without trace", report.lost > 0),
        Figure(
            "doubled", f"{report.doubled:,}", "written twice or overwritten, by the change streams", report.doubled > 0
        ),
        Figure("seconds", f"{round(seconds):,}", "in all"),
    ]
