"""The plot of the README: what ten events cost on both sides, and how throughput goes with the batch size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH, MARGIN = 760, 24
_LABEL, _BAR, _BAR_HEIGHT, _GAP = 270, 380, 11, 36
_PLOT_HEIGHT = 190
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; } .quiet { fill: #59636e; font-size: 12px; }
  .card { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #d1d9e0; }
  .ours { fill: #0969da; } .peer { fill: #bf8700; }
  .line { stroke-width: 2.5; }
  .line.ours { fill: none; stroke: #0969da; } .line.peer { fill: none; stroke: #bf8700; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .quiet { fill: #9198a1; }
    .card { fill: #0d1117; stroke: #3d444d; } .grid { stroke: #3d444d; }
    .ours { fill: #4493f8; } .peer { fill: #d29922; }
    .line.ours { fill: none; stroke: #4493f8; } .line.peer { fill: none; stroke: #d29922; }
  }
"""


@dataclass(frozen=True)
class Cost:
    """One pair of bars; the peer's fills the width, unless ours is longer."""

    what: str
    ours: float
    peer: float
    unit: str = ""


def costs(details: Mapping[str, Mapping[str, Any]]) -> list[Cost]:
    """What is less on the better side, from the details of bench.json."""
    part = {name: _Pairs(found) for name, found in details.items()}
    drained = part["e2e"].of("messages_per_second")
    return [
        Cost("AWS calls, 10 new events", *part["calls"].of("new_calls")),
        Cost("AWS calls, 10 redelivered events", *part["calls"].of("redelivered_calls")),
        Cost("CPU time, 10 new events", *part["cpu"].of("new_milliseconds_per_batch"), "ms"),
        Cost("CPU time, 10 redelivered events", *part["cpu"].of("redelivered_milliseconds_per_batch"), "ms"),
        Cost("10 new events at 5 ms a call", *part["latency"].of("new_milliseconds_per_batch"), "ms"),
        Cost("1,000 messages on the emulator", 1000 / drained[0], 1000 / drained[1], "s"),
        Cost("Cold start: imports and clients", *part["cold"].of("milliseconds"), "ms"),
    ]


def svg(costs: Sequence[Cost], throughput: Mapping[str, Mapping[int, float]], peer: str) -> str:
    """The whole picture. throughput: side to batch size to records per CPU second."""
    bars_top = 78
    plot_top = bars_top + len(costs) * _GAP + 58
    height = plot_top + _PLOT_HEIGHT + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="This module beside {escape(peer)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        _text(MARGIN, 34, "What events cost: shorter is better", "title"),
        *_legend(56, peer),
        *(line for number, cost in enumerate(costs) for line in _bars(bars_top + number * _GAP, cost)),
        _text(MARGIN, plot_top - 22, "New events per CPU second, by the size of the batch", "title"),
        *_lines(plot_top, throughput),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class _Pairs:
    details: Mapping[str, Any]

    def of(self, name: str) -> tuple[float, float]:
        """Ours and the peer's."""
        return self.details[f"ours_{name}"], self.details[f"peer_{name}"]


def _legend(top: float, peer: str) -> list[str]:
    return [
        f'<rect class="ours" x="{MARGIN}" y="{top - 10}" width="12" height="12" rx="2"/>',
        _text(MARGIN + 18, top, "this module"),
        f'<rect class="peer" x="{MARGIN + 116}" y="{top - 10}" width="12" height="12" rx="2"/>',
        _text(MARGIN + 134, top, peer),
    ]


def _bars(top: float, cost: Cost) -> list[str]:
    longest = max(cost.ours, cost.peer)
    lines = [_text(MARGIN, top + _BAR_HEIGHT + 5, cost.what)]
    for number, (side, value) in enumerate((("ours", cost.ours), ("peer", cost.peer))):
        y, width = top + number * (_BAR_HEIGHT + 2), _BAR * value / longest
        lines.append(f'<rect class="{side}" x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR_HEIGHT}" rx="2"/>')
        lines.append(_text(_LABEL + width + 6, y + 10, f"{_number(value)} {cost.unit}".strip(), "quiet"))
    return lines


def _lines(top: float, throughput: Mapping[str, Mapping[int, float]]) -> list[str]:
    left, right, bottom = MARGIN + 52, WIDTH - 130, top + _PLOT_HEIGHT
    sizes = sorted(next(iter(throughput.values())))
    step = _round_step(max(max(values.values()) for values in throughput.values()) / 4)
    ceiling = step * math.ceil(max(max(values.values()) for values in throughput.values()) / step)
    widest = math.log10(sizes[-1]) or 1

    def place(size: int, value: float) -> tuple[float, float]:
        return left + (right - left) * math.log10(size) / widest, bottom - _PLOT_HEIGHT * value / ceiling

    parts = []
    for number in range(round(ceiling / step) + 1):
        y = place(1, number * step)[1]
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(_text(left - 8, y + 4, f"{number * step:,.0f}", "quiet", "end"))
    for size in sizes:
        parts.append(_text(place(size, 0)[0], bottom + 20, f"{size:,}", "quiet", "middle"))
    parts.append(_text(left, bottom + 40, "events in a batch", "quiet"))
    for side, label in (("ours", "this module"), ("peer", "Powertools")):
        points = [place(size, throughput[side][size]) for size in sizes]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line {side}" points="{path}"/>')
        parts += [f'<circle class="{side}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points]
        parts.append(_text(points[-1][0] + 12, points[-1][1] + 4, label))
    return parts


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, … that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 or value == int(value) else f"{value:.1f}"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
