"""`make bench` and `make import-budget`: their options, exit codes and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from benchmarks import __main__ as bench
from benchmarks import import_budget
from benchmarks.sides import CannotMeasure
from tests.benchmarks.support import report


def test_a_plot_is_published_from_a_whole_run_only(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ("--quick", "--only=cpu"):
        with pytest.raises(SystemExit) as ended:
            bench.parse(["--publish", more])
        assert ended.value.code == 2

    assert "--publish takes a whole run" in capsys.readouterr().err


def test_parts_can_be_chosen() -> None:
    assert bench.parse(["--only", "cpu", "--only", "zip"]).only == ["cpu", "zip"]


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        pytest.param(CannotMeasure("no zip"), 2, "no zip", id="cannot be measured"),
        pytest.param(KeyboardInterrupt(), 130, "Stopped.", id="interrupted"),
    ],
)
def test_a_run_that_ends_early_says_so(
    error: BaseException, status: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(bench, "run", fail)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)

    assert bench.main([]) == status
    assert text in capsys.readouterr().err


def test_a_whole_run_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BUILD", tmp_path)

    bench.write(report(), [tmp_path / "bench.svg"])

    assert json.loads((tmp_path / "bench.json").read_text())["calls_new"] == 3
    assert (tmp_path / "bench.md").read_text().startswith("| | this module | Powertools 3.37.0 | |\n")
    assert (tmp_path / "bench.svg").read_text().startswith("<svg ")


def test_the_budget_ends_1_above_its_ratio() -> None:
    over = import_budget.BUDGET + 0.01

    assert import_budget.verdict(import_budget.BUDGET, has_bytecode=True)[0] == 0
    assert import_budget.verdict(over, has_bytecode=True) == (
        1,
        f"Over the budget: {over:.2f} times plain boto3, allowed are {import_budget.BUDGET}.",
    )


def test_a_python_that_the_bytecode_is_not_for_has_a_budget_of_its_own() -> None:
    between = (import_budget.BUDGET + import_budget.BUDGET_WITHOUT_BYTECODE) / 2

    assert import_budget.verdict(between, has_bytecode=True)[0] == 1
    assert import_budget.verdict(between, has_bytecode=False)[0] == 0
