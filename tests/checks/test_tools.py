from __future__ import annotations

import subprocess

import pytest

from checks import tools
from checks.problem import CannotRun


def answer(status: int, stdout: str = "", stderr: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, stdout, stderr)


def test_a_tools_lines_are_its_problems() -> None:
    output = "cli/a.py:3:5: F401 unused\na.py:7: error: wrong  [arg]\na.py:7: note: see above\nFound 2 errors.\n"
    assert tools.said(answer(1, output), "ruff check") == [
        "cli/a.py:3: F401 unused",
        "a.py:7: error: wrong  [arg]",
    ]


def test_a_tool_that_succeeds_has_none() -> None:
    assert tools.said(answer(0, "a.py:1: only told\n"), "mypy") == []


def test_a_tool_that_fails_and_names_none_could_not_run() -> None:
    with pytest.raises(CannotRun, match="mypy failed: no such option"):
        tools.said(answer(2, "", "no such option\n"), "mypy")


def test_terraform_fmt_lists_files_and_says_which_it_cannot_read() -> None:
    broken = "\nError: Invalid expression\n\n  on modules/queue/main.tf line 2, in locals:\n   2: a =\n\nExpected.\n"
    assert tools.formatting("main.tf\nexamples/a/main.tf\n", "", 3) == [
        "main.tf:1: this is not Terraform's format: run terraform fmt",
        "examples/a/main.tf:1: this is not Terraform's format: run terraform fmt",
    ]
    assert tools.formatting("", broken, 2) == ["modules/queue/main.tf:2: Invalid expression: correct it"]
    assert tools.formatting("", "", 0) == []
    with pytest.raises(CannotRun, match="terraform fmt failed: no such file"):
        tools.formatting("", "no such file", 2)


def zip_answer(monkeypatch: pytest.MonkeyPatch, said: subprocess.CompletedProcess[str]) -> None:
    monkeypatch.setattr(tools, "_run", lambda command: said)


def test_a_stale_zip_is_a_problem_and_a_builder_that_fails_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    zip_answer(monkeypatch, answer(0, "up to date\n"))
    assert tools.zip_is_fresh() == []
    zip_answer(monkeypatch, answer(1, "", "changed: event.py\nrun: python lambda/build.py\n"))
    assert tools.zip_is_fresh() == [
        "lambda/dist/idempotent-consumer.zip:1: this is not what its sources give: run python lambda/build.py (with "
        "--check it names each difference)"
    ]
    zip_answer(monkeypatch, answer(2, "", "cannot build: no pip\n"))
    with pytest.raises(CannotRun, match="cannot build: no pip"):
        tools.zip_is_fresh()
