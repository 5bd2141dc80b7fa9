"""The demo page's time line, as a picture and in numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from local.demo.chart import FILLS, Lane, chart, lanes, span, swatch
from local.demo.markup import Element, element
from local.demo.parts import counted, in_seconds, section, table
from local.demo.record import Record

_STEP_SECONDS = 5


def time_line(record: Record) -> Element:
    kills = [
        element("li", f"✕ {number} at {in_seconds(kill.at)}: {counted(kill.processes, 'process', 'processes')} killed")
        for number, kill in enumerate(record.kills, 1)
    ]
    legend = [element("li", swatch(fill), words) for fill, words in FILLS.items()]
    return section(
        "time-line",
        "Time line",
        element(
            "p",
            "Seconds since the first message was sent. Each row is drawn to its own scale: its highest bar is the "
            "number after “most”. A line marked ✕ is a kill.",
        ),
        element("ul", *legend, *kills, class_="legend"),
        element(
            "div",
            chart(record),
            class_="scroll chart",
            role="region",
            tabindex=0,
            aria_label="Time line, can be scrolled",
        ),
        element("details", element("summary", "The time line in numbers"), _numbers(record)),
    )


def _numbers(record: Record) -> Element:
    steps = math.ceil(span(record) / _STEP_SECONDS)
    rows = lanes(record, steps, steps * _STEP_SECONDS)
    return table(
        "numbers",
        f"Messages by the {_STEP_SECONDS} seconds they fall in",
        ["seconds", *(lane.name for lane in rows), "kills"],
        [element("tbody", *(_number_row(record, rows, step) for step in range(steps)), class_="rows")],
        numbers=[*(lane.name for lane in rows), "kills"],
    )


def _number_row(record: Record, rows: Sequence[Lane], step: int) -> Element:
    begin, end = step * _STEP_SECONDS, (step + 1) * _STEP_SECONDS
    kills = sum(begin <= kill.at < end for kill in record.kills)
    counts = [sum(lane.bins[step].values()) for lane in rows]
    return element(
        "tr",
        element("th", f"{begin} to {end}", scope="row"),
        *(element("td", f"{count:,}", class_="number") for count in (*counts, kills)),
    )
