"""Numbers and times in words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}

_Member = TypeVar("_Member", bound=Enum)


def spoken(seconds: float) -> str:
    """A duration with its two largest units: `2d 3h`, `15m`, `0s`."""
    rest = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in SECONDS.items():
        count, rest = divmod(rest, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def age(now_ms: int, then_ms: int | None) -> str | None:
    return None if then_ms is None else spoken((now_ms - then_ms) / 1000)


def count(number: int, what: str) -> str:
    """`1 letter`, `2,000 letters`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def in_order(counts: Mapping[_Member, int]) -> list[tuple[_Member, int]]:
    """Counts of an enum's members in the order in which the enum has them."""
    return [(member, counts[member]) for member in type(next(iter(counts))) if counts.get(member)] if counts else []


def listed(counts: Mapping[_Member, int]) -> str:
    """`3 will apply, 1 is a no-op`."""
    return ", ".join(f"{number:,} {member.value}" for member, number in in_order(counts))
