"""The bounds of the benchmark, and whether its keys keep them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {"≤": operator.le, "≥": operator.ge}
# A zip without bytecode has no use for more.
ZIP_BYTES, ZIP_BYTES_WITH_BYTECODE = 400_000, 650_000


@dataclass(frozen=True)
class Bound:
    """What a key of bench.json has to be. relation: ≤ or ≥."""

    key: str
    relation: str
    value: float
    meaning: str


@dataclass(frozen=True)
class Judgement:
    """A key's value beside its bound."""

    bound: Bound
    value: float

    @property
    def holds(self) -> bool:
        return _HOLDS[self.bound.relation](self.value, self.bound.value)


def bounds(*, ships_bytecode: bool) -> tuple[Bound, ...]:
    zip_bytes = ZIP_BYTES_WITH_BYTECODE if ships_bytecode else ZIP_BYTES
    return (
        Bound("calls_new", "≤", 3, "AWS calls for ten new events"),
        Bound("calls_redelivered", "≤", 1, "AWS calls for ten redelivered events"),
        Bound("cpu_ratio_new", "≥", 5, "the peer's CPU time over ours, ten new events"),
        Bound("cpu_ratio_redelivered", "≥", 3.5, "the peer's CPU time over ours, ten redelivered events"),
        Bound("e2e_ratio", "≥", 3, "our messages a second over the peer's, on the emulator"),
        Bound("latency_ratio", "≥", 11, "the peer's time over ours, ten new events at 5 ms a call"),
        Bound("cold_start_ratio", "≤", 0.65, "our cold start over the peer's"),
        Bound("zip_bytes", "≤", zip_bytes, "bytes of our zip"),
        Bound("growth", "≤", 1.1, "our time a record in a batch of 10,000 over that in one of 10"),
    )


def judge(keys: Mapping[str, float], *, ships_bytecode: bool) -> list[Judgement]:
    """The bounds of the keys that were measured, in the order of `bounds`."""
    every = bounds(ships_bytecode=ships_bytecode)
    return [Judgement(bound, keys[bound.key]) for bound in every if bound.key in keys]


def exit_code(judgements: list[Judgement]) -> int:
    """0 where all bounds hold, 1 where one is missed."""
    return 0 if all(judgement.holds for judgement in judgements) else 1
