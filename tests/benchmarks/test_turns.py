"""Taking turns, and the ratio of what was measured in them."""

from __future__ import annotations

from benchmarks.turns import median_ratio, take_turns


def test_each_turn_measures_all_and_every_other_one_runs_backwards() -> None:
    order: list[str] = []
    heard: list[int] = []

    def measure(name: str) -> int:
        order.append(name)
        return len(order)

    values = take_turns(3, {"ours": lambda: measure("ours"), "peer": lambda: measure("peer")}, heard.append)

    assert order == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert values == {"ours": [1, 4, 5], "peer": [2, 3, 6]}
    assert heard == [1, 2, 3, 4, 5, 6]


def test_a_turn_that_is_slow_for_both_does_not_change_the_ratio() -> None:
    assert median_ratio([10.0, 100.0, 12.0], [2.0, 20.0, 3.0]) == 5.0
