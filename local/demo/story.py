"""The demo page's tables: events with their deliveries, and dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from local.demo.chart import track
from local.demo.markup import Element, element
from local.demo.parts import counted, in_seconds, section, table
from local.demo.record import Change, DeadLetter, Delivery, Kill, Kind, Outcome, Story

# So many events of a group are shown at once, the others on demand.
FIRST = 6
_TIMES = ("sent", "delivered")
_MARK = {
    Outcome.APPLIED: "●",
    Outcome.RESUMED: "◐",
    Outcome.DUPLICATE: "○",
    Outcome.REJECTED: "■",
    Outcome.CONFLICT: "◆",
    Outcome.RETRY: "↻",
    Outcome.CUT_OFF: "✕",
    Outcome.FAILED: "✕",
    Outcome.OTHER: "?",
}


def stories(
    name: str, heading: str, text: str, shown: Sequence[Story], kills: Sequence[Kill], seconds: float, *, is_open: bool
) -> Element:
    """A group of events. name: for its ids. seconds: what the small time lines show. The most deliveries come first."""
    ordered = sorted(shown, key=lambda story: (-len(story.deliveries), story.deliveries[0].at))
    first, others = ordered[:FIRST], ordered[FIRST:]
    count = counted(len(shown), "event")
    caption = f"{heading}: {len(first)} of {count}, the most deliveries first" if others else f"{heading}: {count}"
    others_caption = f"{heading}: {len(others):,} more of {count}"
    more = element(
        "details",
        element("summary", f"{counted(len(others), 'event')} more"),
        _story_table(f"{name}-more", others_caption, others, kills, seconds),
        class_="more",
    )
    return element(
        "details",
        element("summary", element("h3", f"{heading}: {count}")),
        element("p", text),
        _story_table(name, caption, first, kills, seconds),
        *([more] if others else []),
        class_="story",
        open=is_open,
    )


def once(shown: Sequence[Story]) -> Element:
    """The events that were delivered once, a line for each."""
    count = counted(len(shown), "event")
    rows = [
        element(
            "tbody",
            element(
                "tr",
                element("th", story.event_id, scope="row"),
                element("td", in_seconds(each.sent_at), class_="number"),
                element("td", in_seconds(each.at), class_="number"),
                _outcome(each),
                _effect(each),
            ),
        )
        for story in sorted(shown, key=lambda story: story.event_id)
        for each in story.deliveries
    ]
    return element(
        "details",
        element("summary", element("h3", f"Delivered once: {count}")),
        element("p", "Sent once, and delivered once."),
        table(
            "once",
            f"Delivered once: {count}",
            ["event", "sent", "delivered", "outcome", "what it changed, and what not"],
            rows,
            numbers=_TIMES,
            kind="wide",
        ),
        class_="story",
    )


def dead_letters(letters: Sequence[DeadLetter]) -> Element:
    rows = [
        element(
            "tr",
            element(
                "th", letter.reason or "(none)", element("small", counted(letter.copies, "copy", "copies")), scope="row"
            ),
            element("td", letter.meaning or "moved by the queue's own redrive policy"),
            element("td", element("code", letter.body)),
            element("td", *_brief(letter.deliveries)),
        )
        for letter in letters
    ]
    return section(
        "dead-letters",
        "Dead letters",
        element(
            "p",
            "What can never be processed changes nothing, and is not lost: it is in the dead-letter queue, with its "
            "reason.",
        ),
        table(
            "dead-letters-table",
            f"{counted(sum(letter.copies for letter in letters), 'dead letter')} of {counted(len(letters), 'message')}",
            ["reason", "what is wrong", "message", "deliveries"],
            [element("tbody", *rows, class_="rows")],
            kind="wide",
        ),
    )


def _story_table(name: str, caption: str, shown: Sequence[Story], kills: Sequence[Kill], seconds: float) -> Element:
    heads = ["event", "sent", "delivered", "why", "outcome", "what it changed, and what not"]
    bodies = [_story(story, kills, seconds) for story in shown]
    return table(name, caption, heads, bodies, numbers=_TIMES, kind="stories")


def _story(story: Story, kills: Sequence[Kill], seconds: float) -> Element:
    rows = []
    is_done = False
    for delivery in story.deliveries:
        rows.append(_delivery(delivery, is_done))
        is_done = is_done or Change.MARKED in delivery.changes
    first, *others = rows
    totals = (
        f"sent {story.sent}×, delivered {len(story.deliveries)}×",
        f"{counted(story.rows, 'row')}, {counted(story.notified, 'notification')}",
    )
    head = element(
        "th",
        story.event_id,
        *(element("small", total) for total in totals),
        track(story.deliveries, kills, seconds),
        scope="rowgroup",
        rowspan=len(story.deliveries),
    )
    first.insert(0, head)
    return element("tbody", first, *others)


def _delivery(delivery: Delivery, is_done: bool) -> Element:
    """is_done: an earlier delivery has finished the event's work."""
    return element(
        "tr",
        element("td", in_seconds(delivery.sent_at), class_="number"),
        element("td", in_seconds(delivery.at), class_="number"),
        element("td", delivery.kind.value, element("small", f"message {delivery.message}, call {delivery.call}")),
        _outcome(delivery),
        _effect(delivery, is_done),
    )


def _outcome(delivery: Delivery) -> Element:
    mark = element("b", _MARK[delivery.outcome], aria_hidden="true")
    reason = f": {delivery.reason}" if delivery.reason else ""
    return element("td", mark, f"{delivery.outcome.value}{reason}", class_="outcome")


def _effect(delivery: Delivery, is_done: bool = False) -> Element:
    changed = ", ".join(change.value for change in delivery.changes) or "nothing"
    kept = _kept(delivery, is_done)
    return element("td", changed, *([": " if changed == "nothing" else "; ", element("span", kept)] if kept else []))


def _kept(delivery: Delivery, is_done: bool) -> str:
    """What a delivery did not change, and why."""
    changes = delivery.changes
    if delivery.outcome is Outcome.DUPLICATE:
        return "its copy in the same call did the work" if delivery.is_beside else "the ledger says sent"
    if delivery.outcome is Outcome.RESUMED:
        return "no row written, the ledger holds the event"
    if delivery.outcome is Outcome.CONFLICT:
        return "no row written, the ledger holds this id with other content"
    if delivery.outcome is Outcome.REJECTED:
        return "no row written, no event comes of it"
    if delivery.outcome is not Outcome.CUT_OFF:
        is_done = delivery.outcome is Outcome.APPLIED
        return ("" if Change.MARKED in changes else "another call marked it") if is_done else "the message comes back"
    if Change.MARKED in changes:
        return "only the answer was missing"
    if Change.PUBLISHED in changes:
        return "not marked, so it may be announced once more"
    if Change.ROWS in changes:
        return "not announced"
    return "there was nothing left to do" if is_done else "it died before it wrote"


def _brief(deliveries: Sequence[Delivery]) -> list[Element]:
    """A line for each delivery."""
    lines = []
    for each in deliveries:
        why = f" {each.kind.value}" if each.kind in (Kind.AFTER_KILL, Kind.RETURNED) else ""
        lines.append(element("div", f"{in_seconds(each.at)}{why}: {each.outcome.value}"))
    return lines
