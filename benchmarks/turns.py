"""Taking turns: each measurement once a turn, the order changing, and what comes of the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from statistics import median
from typing import TypeVar

T = TypeVar("T")


def take_turns(
    turns: int, measures: Mapping[str, Callable[[], T]], progress: Callable[[int], object] = lambda done: None
) -> dict[str, list[T]]:
    """The values of each measurement, by its name; `progress` hears how many measurements are done.

    Every other turn runs backwards, so that no side always comes first.
    """
    values: dict[str, list[T]] = {name: [] for name in measures}
    numbers = count(1)
    for turn in range(turns):
        for name in list(measures)[:: -1 if turn % 2 else 1]:
            values[name].append(measures[name]())
            progress(next(numbers))
    return values


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios of values of the same turn: what slows down the machine for a turn slows down both."""
    return median(above / below for above, below in zip(numerators, denominators, strict=True))
