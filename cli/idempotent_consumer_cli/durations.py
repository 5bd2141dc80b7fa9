"""Durations as people write them."""

from __future__ import annotations

import re
from typing import Any

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d{1,20})([smhd])")


class Duration(click.ParamType):  # type: ignore[type-arg]
    """An option's value such as 90s, 15m, 2h, 3d or 1h30m; gives whole seconds. A bare number is seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        if re.fullmatch("[0-9]{1,20}", text):
            return int(text)
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is no duration: write 90s, 15m, 2h or 3d", param, ctx)
        return sum(int(number) * _SECONDS[unit] for number, unit in parts)


DURATION = Duration()


def spoken(seconds: float) -> str:
    """A duration with its two largest units: `2d 3h`, `15m`, `0s`."""
    rest = max(0, int(seconds))
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, _SECONDS[unit])
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
