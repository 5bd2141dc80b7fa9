"""A small run of the demo, with one event for each thing that can happen to one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from local.audit import Report
from local.demo.record import Change, DeadLetter, Delivery, Kill, Kind, Outcome, Record, Story, Theme

HOSTILE = '</code><script>document.title="stolen"</script><img src="http://127.0.0.1:9/x.png">&amp;\u202e'
DONE = (Change.ROWS, Change.PUBLISHED, Change.MARKED)
REPORT = Report(
    sent=14,
    duplicates_sent=5,
    unique_events=7,
    business_rows=7,
    ledger_sent=7,
    notifications_total=9,
    notifications_unique=7,
    dead_lettered={"bad-json": 2, "id-reused": 1},
    dead_lettered_unique=2,
    lost=0,
    doubled=0,
    unexpected=0,
)


def delivery(
    at: float,
    kind: Kind,
    outcome: Outcome,
    changes: Sequence[Change] = (),
    *,
    message: int = 1,
    receive: int = 1,
    reason: str = "",
    is_beside: bool = False,
) -> Delivery:
    return Delivery(at, at - 0.05, int(at), message, receive, kind, outcome, reason, changes, is_beside)


def story(event_id: str, theme: Theme, *deliveries: Delivery, notified: int = 1) -> Story:
    return Story(event_id, theme, deliveries, rows=1, notified=notified, sent=1)


FIRST, AGAIN, TWIN, AFTER = Kind.FIRST, Kind.AGAIN, Kind.TWIN, Kind.AFTER_KILL
OTHER = delivery(30, Kind.OTHER, Outcome.CONFLICT, [Change.DEAD_LETTER], message=2, reason="id-reused")
REFUSED = [
    delivery(4, FIRST, Outcome.CUT_OFF),
    delivery(20, AFTER, Outcome.REJECTED, [Change.DEAD_LETTER], receive=2, reason="bad-json"),
]
RECORD = Record(
    began=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
    seconds=97.4,
    report=REPORT,
    reported={"Applied": 5, "Resumed": 2, "Duplicates": 3, "Rejected": 1, "Conflicts": 1, "Retries": 1},
    kills=[Kill(4.2, 5), Kill(6.1, 1)],
    stories=[
        story("once", Theme.ONCE, delivery(1, FIRST, Outcome.APPLIED, DONE)),
        story(
            "resent",
            Theme.RESENT,
            delivery(1, FIRST, Outcome.APPLIED, DONE),
            delivery(2, AGAIN, Outcome.DUPLICATE, message=2),
        ),
        story(
            "twins",
            Theme.TWINS,
            delivery(3, FIRST, Outcome.APPLIED, DONE),
            delivery(3, TWIN, Outcome.DUPLICATE, message=2, is_beside=True),
        ),
        story(
            "rows",
            Theme.KILLED,
            delivery(4, FIRST, Outcome.CUT_OFF, [Change.ROWS]),
            delivery(20, AFTER, Outcome.RESUMED, [Change.PUBLISHED, Change.MARKED], receive=2),
        ),
        story(
            "published",
            Theme.KILLED,
            delivery(4, FIRST, Outcome.CUT_OFF, [Change.ROWS, Change.PUBLISHED]),
            delivery(20, AFTER, Outcome.RESUMED, [Change.PUBLISHED, Change.MARKED], receive=2),
            notified=2,
        ),
        story(
            "answer",
            Theme.KILLED,
            delivery(4, FIRST, Outcome.CUT_OFF, DONE),
            delivery(6, AGAIN, Outcome.CUT_OFF, message=2),
            delivery(20, AFTER, Outcome.DUPLICATE, receive=2),
        ),
        story(
            "early",
            Theme.KILLED,
            delivery(4, FIRST, Outcome.CUT_OFF),
            delivery(20, AFTER, Outcome.APPLIED, DONE, receive=2),
        ),
        story("<i>false</i>", Theme.IMPOSTOR, delivery(1, FIRST, Outcome.APPLIED, DONE[:2]), OTHER),
        story(
            "returned",
            Theme.RETURNED,
            delivery(5, FIRST, Outcome.RETRY, reason="throttled"),
            delivery(9, Kind.RETURNED, Outcome.FAILED, receive=2, reason="Task timed out"),
        ),
    ],
    refused=REFUSED,
    dead_letters=[
        DeadLetter(HOSTILE, "bad-json", "is not JSON", 2, REFUSED),
        DeadLetter('{"id": "<i>false</i>"}', "id-reused", "is taken", 1, [OTHER]),
        DeadLetter("moved", "", "", 1, []),
    ],
)
