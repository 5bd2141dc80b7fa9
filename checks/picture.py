"""Draws docs/flow.svg, the picture of the README, from docs/flow.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

_COLUMN, _ROW, _WIDTH, _HEIGHT, _MARGIN = 256, 118, 160, 78, 20
_HEAD, _LINE = 24, 19
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; } .quiet { fill: #59636e; font-size: 12px; }
  .card { fill: #ffffff; stroke: #d1d9e0; } .box { fill: #f6f8fa; stroke: #59636e; }
  .arrow { fill: none; stroke: #0969da; stroke-width: 1.5; } .head { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .quiet { fill: #9198a1; }
    .card { fill: #0d1117; stroke: #3d444d; } .box { fill: #151b23; stroke: #9198a1; }
    .arrow { stroke: #4493f8; } .head { fill: #4493f8; }
  }
"""


@dataclass(frozen=True)
class Box:
    """A part of the flow. at: column and row of its upper left corner; rows: how many it takes."""

    name: str
    at: Sequence[int]
    title: str
    text: Sequence[str] = field(default=())
    rows: int = 1

    @property
    def left(self) -> int:
        return _MARGIN + self.at[0] * _COLUMN

    @property
    def right(self) -> int:
        return self.left + _WIDTH

    @property
    def top(self) -> int:
        return _MARGIN + self.at[1] * _ROW

    @property
    def bottom(self) -> int:
        return self.top + (self.rows - 1) * _ROW + _HEIGHT

    @property
    def middle(self) -> int:
        return self.left + _WIDTH // 2


def svg(flow: Mapping[str, Any]) -> str:
    """The picture. flow: a title, and lists of boxes and arrows, as docs/flow.toml has them."""
    boxes = {box["name"]: Box(**box) for box in flow["box"]}
    width = max(box.right for box in boxes.values()) + _MARGIN
    height = max(box.bottom for box in boxes.values()) + 3 * _MARGIN
    told = "; ".join(
        f"{boxes[arrow['from']].title} to {boxes[arrow['to']].title}"
        + (f": {arrow['text']}" if "text" in arrow else "")
        for arrow in flow["arrow"]
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="title told">',
        f'<title id="title">{escape(flow["title"])}</title>',
        f'<desc id="told">{escape(told)}.</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        *(part for box in boxes.values() for part in _drawn(box)),
        *(
            part
            for arrow in flow["arrow"]
            for part in _arrow(boxes[arrow["from"]], boxes[arrow["to"]], arrow.get("text", ""))
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(box: Box) -> list[str]:
    height = box.bottom - box.top
    return [
        f'<rect class="box" x="{box.left}" y="{box.top}" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(box.left + 12, box.top + _HEAD, box.title, "title"),
        *(
            _text(box.left + 12, box.top + _HEAD + _LINE * number, line, "quiet")
            for number, line in enumerate(box.text, start=1)
        ),
    ]


def _arrow(start: Box, end: Box, text: str) -> list[str]:
    """To the right or down in a straight line, or back beneath all that lies between."""
    if end.left > start.left:
        y = max(start.top, end.top) + _HEIGHT // 2
        return [*_line([(start.right, y), (end.left, y)], (-8, -4)), _text(start.right + 6, y - 8, text, "quiet")]
    if end.left == start.left:
        x = start.middle
        label = _text(x + 10, (start.bottom + end.top) // 2 + 4, text, "quiet")
        return [*_line([(x, start.bottom), (x, end.top)], (-4, -8)), label]
    y = start.bottom + 22
    points = [(start.middle, start.bottom), (start.middle, y), (end.middle, y), (end.middle, end.bottom)]
    return [*_line(points, (-4, 8)), _text(end.middle + 12, y + 18, text, "quiet")]


def _line(points: Sequence[tuple[int, int]], head: tuple[int, int]) -> list[str]:
    """The line through the points. head: from the last one to a corner of the arrow's head."""
    (x, y), (across, along) = points[-1], head
    # The longer part of `head` lies along the line.
    other = (x + across, y - along) if abs(across) > abs(along) else (x - across, y + along)
    way = " ".join(f"{x},{y}" for x, y in points)
    return [
        f'<polyline class="arrow" points="{way}"/>',
        f'<polygon class="head" points="{x},{y} {x + across},{y + along} {other[0]},{other[1]}"/>',
    ]


def _text(x: int, y: int, text: str, kind: str) -> str:
    # What stands in front of a line is room, which XML would drop.
    shown = escape(text).replace("  ", "\u00a0\u00a0")
    return f'<text class="{kind}" x="{x}" y="{y}">{shown}</text>' if text else ""


def drawn_from(text: str) -> str:
    """The picture of a flow written as TOML."""
    return svg(tomllib.loads(text))
