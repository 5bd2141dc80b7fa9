"""The bounds, and what a missed one does."""

from __future__ import annotations

from benchmarks.verdict import bounds, exit_code, judge

GOOD = {
    "calls_new": 3,
    "calls_redelivered": 1,
    "cpu_ratio_new": 5.0,
    "cpu_ratio_redelivered": 3.5,
    "e2e_ratio": 3.0,
    "latency_ratio": 11.0,
    "cold_start_ratio": 0.65,
    "zip_bytes": 650_000,
    "growth": 1.1,
}
BAD = {
    "calls_new": 4,
    "calls_redelivered": 2,
    "cpu_ratio_new": 4.99,
    "cpu_ratio_redelivered": 3.49,
    "e2e_ratio": 2.99,
    "latency_ratio": 10.99,
    "cold_start_ratio": 0.66,
    "zip_bytes": 650_001,
    "growth": 1.101,
}


def test_values_at_their_bounds_hold() -> None:
    judgements = judge(GOOD, ships_bytecode=True)

    assert [judgement.bound.key for judgement in judgements] == list(GOOD)
    assert all(judgement.holds for judgement in judgements)
    assert exit_code(judgements) == 0


def test_values_beyond_their_bounds_are_missed_each_by_itself() -> None:
    for key, value in BAD.items():
        judgements = judge({**GOOD, key: value}, ships_bytecode=True)

        assert [judgement.bound.key for judgement in judgements if not judgement.holds] == [key]
        assert exit_code(judgements) == 1


def test_a_part_is_judged_by_what_it_measured() -> None:
    judgements = judge({"growth": 1.0, "machine": 7}, ships_bytecode=True)

    assert [(judgement.bound.key, judgement.holds) for judgement in judgements] == [("growth", True)]


def test_a_zip_without_bytecode_has_to_be_smaller() -> None:
    def zip_bytes(*, ships_bytecode: bool) -> float:
        return {bound.key: bound.value for bound in bounds(ships_bytecode=ships_bytecode)}["zip_bytes"]

    assert zip_bytes(ships_bytecode=False) == 400_000
    assert zip_bytes(ships_bytecode=True) == 650_000
