"""The runner: what is caught, what survives, and what else ends it with 1. In a checkout of two functions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plant import plugin
from tests.plant.__main__ import main
from tests.plant.fault import Fault, read_fault
from tests.plant.judgement import why_no_ground, why_not_caught
from tests.plant.trial import Copy, Run, files_of

PYPROJECT = """
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = ["lambda/src"]
"""
CODE = "def double(number):\n    return 2 * number\n\n\ndef half(number):\n    return number / 2\n"
TESTS = """
from idempotent_consumer import double, half


def test_double():
    assert double(3) == 6


def test_half():
    assert half(0) == 0
"""
CODE_PATH = "lambda/src/idempotent_consumer/__init__.py"


def patch(does: str, before: str, after: str, test: str) -> str:
    return (
        f"{does}\ncaught by: tests/test_numbers.py::{test}\n\n"
        f"--- a/{CODE_PATH}\n+++ b/{CODE_PATH}\n@@ -1 +1 @@\n-    return {before}\n+    return {after}\n"
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    files = {
        ".gitignore": "build/\nown.txt\n",
        "own.txt": "not to be copied",
        "pyproject.toml": PYPROJECT,
        CODE_PATH: CODE,
        "lambda/src/idempotent_consumer_pytest.py": "",
        "tests/test_numbers.py": TESTS,
        "tests/plant/plugin.py": Path(plugin.__file__).read_text(),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "caught.patch").write_text(patch("Adds two.", "2 * number", "2 + number", "test_double"))
    (folder / "stale.patch").write_text(patch("Trebles.", "number * 2", "number * 3", "test_double"))
    (folder / "survivor.patch").write_text(patch("Divides by three.", "number / 2", "number / 3", "test_half"))
    return folder


Runs = Callable[[Sequence[str]], Run]


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Callable[[Runs], None]:
    """Gives the answers of pytest, which is not run."""
    return lambda runs: monkeypatch.setattr(Copy, "run", lambda self, tests: runs(tests))


def report(checkout: Path) -> Any:
    return json.loads((checkout / "build" / "plant.json").read_text())


def test_a_survivor_and_a_stale_patch_end_with_1_and_are_named(
    checkout: Path, patches: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], checkout, patches) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"stale: Trebles. does not apply: {CODE_PATH}: its lines are no longer there" in said
    assert "survivor: Divides by three. survives: all of its tests pass" in said
    assert "Not caught: 2 of 3." in said
    found = report(checkout)
    assert (found["faults"], found["caught"], found["baseline"]) == (3, 1, "passes")
    assert [(each["name"], each["caught"]) for each in found["results"]] == [
        ("caught", True),
        ("stale", False),
        ("survivor", False),
    ]
    assert (checkout / CODE_PATH).read_text() == CODE


def test_tests_that_fail_without_a_fault_end_with_1_and_nothing_is_planted(
    checkout: Path, patches: Path, instead: Callable[[Runs], None], capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Sequence[str]] = []

    def broken(tests: Sequence[str]) -> Run:
        asked.append(tests)
        return Run(1, {tests[0]: "AssertionError"}, output="FAILED tests/test_numbers.py::test_double")

    instead(broken)
    assert main([], checkout, patches) == 1
    assert asked == [["tests/test_numbers.py::test_double", "tests/test_numbers.py::test_half"]]
    said = capsys.readouterr().out
    assert "FAILED tests/test_numbers.py::test_double" in said
    assert "The tests fail without any fault, so nothing was planted." in said
    assert (report(checkout)["caught"], report(checkout)["results"]) == (0, [])


def test_where_each_fault_is_caught_it_ends_with_0(
    checkout: Path, patches: Path, instead: Callable[[Runs], None], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = iter([Run(0, passed=["tests/test_numbers.py::test_double"])])
    instead(lambda tests: next(runs, Run(1, {tests[0]: "AssertionError"})))
    assert main(["--only", "caught"], checkout, patches) == 0
    assert "Caught: 1 of 1." in capsys.readouterr().out
    assert (report(checkout)["faults"], report(checkout)["caught"]) == (1, 1)


def test_a_name_that_there_is_not_is_refused(checkout: Path, patches: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "unheard-of"], checkout, patches)


def test_the_copy_has_what_git_would_take_up_and_no_more(checkout: Path) -> None:
    assert sorted(files_of(checkout)) == [
        ".gitignore",
        CODE_PATH,
        "lambda/src/idempotent_consumer_pytest.py",
        "pyproject.toml",
        "tests/plant/plugin.py",
        "tests/test_numbers.py",
    ]


def test_a_fault_is_in_the_copy_while_it_is_planted_and_never_in_the_checkout(
    checkout: Path, patches: Path, tmp_path: Path
) -> None:
    copy = Copy(checkout, tmp_path / "copy")
    with copy.planted(read_fault(patches / "caught.patch")):
        assert (copy.root / CODE_PATH).read_text() == CODE.replace("2 * number", "2 + number")
        assert (checkout / CODE_PATH).read_text() == CODE
    assert (copy.root / CODE_PATH).read_text() == CODE


def test_the_runs_own_modules_are_those_of_the_checkout_or_strangers(tmp_path: Path) -> None:
    here = Path(plugin.__file__).resolve()
    assert plugin.strangers(here.parents[2], [plugin.__name__]) == []
    assert plugin.strangers(tmp_path, [plugin.__name__, "json"]) == [str(here)]
    assert plugin.__name__ in sys.modules


# --- what a run says


FAULT = Fault("fault", "Does harm.", ["t.py::test_one", "t.py::test_two"], [])


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Run(1, {"t.py::test_one": "AssertionError", "t.py::test_two[a]": "KeyError"}), ""),
        (Run(1, {"t.py::test_one": "AssertionError", "t.py::test_twofold": "KeyError"}), "survives t.py::test_two"),
        (Run(0), "survives: all of its tests pass"),
        (Run(None), "its tests did not end"),
        (Run(2, output="1 error during collection"), "pytest ended with 2\n1 error during collection"),
        (Run(4, output="no such test"), "pytest ended with 4\nno such test"),
        (Run(1, {"t.py::test_one": "NameError"}), "breaks the code or a fixture instead of a test: NameError"),
        (
            Run(1, {"t.py::test_one": "setup: OSError"}),
            "breaks the code or a fixture instead of a test: setup: OSError",
        ),
        (Run(1, {"t.py::test_one": "AssertionError"}, strangers=["/else/claim.py"]), "such as /else/claim.py"),
    ],
)
def test_a_fault_is_caught_where_each_of_its_tests_fails_by_itself(run: Run, why: str) -> None:
    assert why_not_caught(FAULT, run).endswith(why)
    assert bool(why_not_caught(FAULT, run)) == bool(why)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Run(0, passed=["t.py::test_one[x]", "t.py::test_one[y]"]), ""),
        (Run(0, passed=[]), "did not run: t.py::test_one"),
        (Run(1, {"t.py::test_one": "AssertionError"}, output="1 failed"), "pytest ended with 1\n1 failed"),
        (Run(0, passed=["t.py::test_one"], strangers=["/else/claim.py"]), "such as /else/claim.py"),
        (Run(None), "its tests did not end"),
    ],
)
def test_without_a_fault_each_test_has_to_run_and_to_pass(run: Run, why: str) -> None:
    assert why_no_ground(["t.py::test_one"], run).endswith(why)
    assert bool(why_no_ground(["t.py::test_one"], run)) == bool(why)
