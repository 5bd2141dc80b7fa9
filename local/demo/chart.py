"""The demo page's time line: how many messages were sent and delivered when, and what became of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local.demo.markup import Element, element
from local.demo.record import Delivery, Kill, Kind, Outcome, Record

# What a delivery is drawn as, with the words of the legend.
FILLS = {"first": "first send", "again": "sent again", "redelivered": "redelivered"}
_FILL_OF_KIND = {
    Kind.FIRST: "first",
    Kind.AGAIN: "again",
    Kind.TWIN: "again",
    Kind.OTHER: "again",
    Kind.AFTER_KILL: "redelivered",
    Kind.RETURNED: "redelivered",
}
LANES = {
    "sent": None,
    "applied": (Outcome.APPLIED,),
    "resumed": (Outcome.RESUMED,),
    "duplicate": (Outcome.DUPLICATE,),
    "cut off by a kill": (Outcome.CUT_OFF,),
    "dead-lettered": (Outcome.REJECTED, Outcome.CONFLICT),
    "came back": (Outcome.RETRY, Outcome.FAILED, Outcome.OTHER),
}

_WIDTH, _LEFT, _RIGHT, _TOP = 1000, 190, 16, 30
_LANE, _BAR = 46, 32
_BINS = 100


@dataclass(frozen=True)
class Lane:
    """A row of the time line. bins: for each step of the time how many messages, by fill."""

    name: str
    bins: Sequence[Mapping[str, int]]

    @property
    def total(self) -> int:
        return sum(sum(counts.values()) for counts in self.bins)

    @property
    def most(self) -> int:
        return max(sum(counts.values()) for counts in self.bins)


def span(record: Record) -> float:
    """Seconds that the time line shows, from 0: whole fives."""
    last = max([delivery.at for delivery in record.deliveries] + [kill.at for kill in record.kills], default=0)
    return max(5.0, math.ceil((last + 0.5) / 5) * 5)


def lanes(record: Record, bins: int, seconds: float) -> list[Lane]:
    """The rows of the time line that have anything in them. seconds: what the bins share."""
    deliveries = record.deliveries
    found = []
    for name, outcomes in LANES.items():
        if outcomes is None:
            shown = [delivery for delivery in deliveries if delivery.receive == 1]
            lane = Lane(name, _binned(shown, bins, seconds, lambda delivery: delivery.sent_at))
        else:
            shown = [delivery for delivery in deliveries if delivery.outcome in outcomes]
            lane = Lane(name, _binned(shown, bins, seconds, lambda delivery: delivery.at))
        if lane.total:
            found.append(lane)
    return found


def chart(record: Record) -> Element:
    """The time line as a picture; `time_line.py` gives the same as a table."""
    seconds = span(record)
    rows = lanes(record, _BINS, seconds)
    height = _TOP + _LANE * len(rows) + 30
    return element(
        "svg",
        element("title", "Messages over time", id="chart-title"),
        element("desc", _description(record, rows, seconds), id="chart-description"),
        *_axis(seconds, height),
        *(part for number, lane in enumerate(rows) for part in _lane(lane, _TOP + _LANE * (number + 1))),
        *(part for number, kill in enumerate(record.kills, 1) for part in _kill(kill, number, seconds, height)),
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_labelledby="chart-title chart-description",
    )


def patterns() -> Element:
    """The fills, and the marks of the small time lines, for the whole page."""
    return element(
        "svg",
        element(
            "defs",
            element(
                "pattern",
                element("rect", width=5, height=6, class_="stripes-ground"),
                element("path", d="M2.5 0V6", class_="stripe"),
                id="striped",
                width=5,
                height=6,
                patternUnits="userSpaceOnUse",
                patternTransform="rotate(40)",
            ),
            element(
                "pattern",
                element("rect", width=5, height=5, class_="dots-ground"),
                element("circle", cx=2.5, cy=2.5, r=1.1, class_="dot"),
                id="dotted",
                width=5,
                height=5,
                patternUnits="userSpaceOnUse",
            ),
            element("circle", id="m-did", r=3.6),
            element("circle", id="m-nothing", r=3.2, fill="none", stroke_width=1.4),
            element("path", id="m-cut", d="M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5", stroke_width=1.8),
            element("path", id="m-dead", d="M-3.4-3.4H3.4V3.4H-3.4Z"),
            element("path", id="m-back", d="M0-4L4 3.4H-4Z", fill="none", stroke_width=1.4),
        ),
        width=0,
        height=0,
        aria_hidden="true",
        focusable="false",
    )


def track(deliveries: Sequence[Delivery], kills: Sequence[Kill], seconds: float) -> Element:
    """One event's deliveries on the run's time, for the eye alone: the table beside it says the same."""

    def x(at: float) -> str:
        return f"{at / seconds * 144:.0f}"

    return element(
        "svg",
        element("path", d="M0 8H144", class_="axis"),
        element("path", d="".join(f"M{x(kill.at)} 1V15" for kill in kills), class_="kill"),
        *(element("use", href=f"#{_MARKS.get(each.outcome, 'm-back')}", x=x(each.at), y=8) for each in deliveries),
        viewBox="0 0 144 16",
        class_="track",
        aria_hidden="true",
        focusable="false",
    )


_MARKS = {
    Outcome.APPLIED: "m-did",
    Outcome.RESUMED: "m-did",
    Outcome.DUPLICATE: "m-nothing",
    Outcome.CUT_OFF: "m-cut",
    Outcome.REJECTED: "m-dead",
    Outcome.CONFLICT: "m-dead",
}


def swatch(fill: str) -> Element:
    return element("svg", element("rect", width=32, height=18, class_=fill), viewBox="0 0 32 18", aria_hidden="true")


def _binned(
    deliveries: Sequence[Delivery], bins: int, seconds: float, time_of: Callable[[Delivery], float]
) -> list[Counter[str]]:
    counts: list[Counter[str]] = [Counter() for _ in range(bins)]
    for delivery in deliveries:
        place = min(bins - 1, max(0, int(time_of(delivery) / seconds * bins)))
        counts[place][_FILL_OF_KIND[delivery.kind]] += 1
    return counts


def _x(at: float, seconds: float) -> float:
    return _LEFT + at / seconds * (_WIDTH - _LEFT - _RIGHT)


def _axis(seconds: float, height: int) -> list[Element]:
    parts = []
    step = 5 if seconds <= 60 else 10 * math.ceil(seconds / 120)
    for second in range(0, int(seconds) + 1, step):
        x = f"{_x(second, seconds):.1f}"
        parts.append(element("path", d=f"M{x} {_TOP}V{height - 24}", class_="axis"))
        anchor = "end" if second == seconds else "middle"
        parts.append(element("text", f"{second} s", x=x, y=height - 8, text_anchor=anchor, class_="muted"))
    return parts


def _lane(lane: Lane, bottom: int) -> list[Element]:
    """Bars to the lane's own scale, the number at the highest one."""
    parts = [
        element("text", lane.name, x=0, y=bottom - 18),
        element("text", f"{lane.total:,}, most {lane.most}", x=0, y=bottom - 2, class_="muted"),
        element("path", d=f"M{_LEFT} {bottom}H{_WIDTH - _RIGHT}", class_="axis"),
    ]
    width = (_WIDTH - _LEFT - _RIGHT) / len(lane.bins)
    for number, counts in enumerate(lane.bins):
        y = float(bottom)
        for fill in FILLS:
            if counts[fill]:
                height = max(2.0, counts[fill] / lane.most * _BAR)  # one of many is still to be seen
                y -= height
                left = f"{_LEFT + number * width:.1f}"
                parts.append(
                    element("rect", x=left, y=f"{y:.1f}", width=f"{width - 1:.1f}", height=f"{height:.1f}", class_=fill)
                )
    return parts


def _kill(kill: Kill, number: int, seconds: float, height: int) -> list[Element]:
    x = f"{_x(kill.at, seconds):.1f}"
    return [
        element("path", d=f"M{x} {_TOP - 8}V{height - 24}", class_="kill"),
        element("text", f"✕ {number}", x=x, y=_TOP - 12, text_anchor="middle", class_="kill-name"),
    ]


def _description(record: Record, rows: Sequence[Lane], seconds: float) -> str:
    said = ", ".join(f"{lane.total:,} {lane.name}" for lane in rows)
    kills = ", ".join(f"{kill.at:.1f}" for kill in record.kills) or "none"
    return f"{seconds:.0f} seconds, in rows: {said}. Kills, at seconds: {kills}. The table below has the numbers."
