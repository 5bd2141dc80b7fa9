from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from checks import __main__ as command
from checks import runner
from checks.catalogue import CHECKS, Check
from checks.problem import CannotRun


def check(name: str, run: Callable[[], list[str]]) -> Check:
    return Check(name, f"what {name} is about", run)


def cannot() -> list[str]:
    raise CannotRun("terraform is not installed")


def breaks() -> list[str]:
    raise KeyError


WELL = check("links", list)
ILL = check("words", lambda: ["a.md:1: one: do this", "a.md:2: two: do that"])
ONE = check("hcl", lambda: ["main.tf:1: one: do this"])


def said(*checks: Check) -> tuple[int, list[str]]:
    """The exit code and the lines, without times and in the order of the checks."""
    lines: list[str] = []
    status = runner.run(checks, lines.append)
    lines = [re.sub(r" +[0-9.]+ s  ", ": ", line) for line in "\n".join(lines).split("\n")]
    return status, [lines[0], *sorted(lines[1 : len(checks) + 1]), *lines[len(checks) + 1 :]]


def test_all_well_ends_0() -> None:
    assert said(WELL) == (0, ["1 check, 2 at a time", "links: ok", "", "ALL WELL: 1 check"])


def test_problems_are_told_by_check_and_end_1() -> None:
    assert said(ILL, WELL, ONE) == (
        1,
        [
            "3 checks, 2 at a time",
            "hcl: 1 problem",
            "links: ok",
            "words: 2 problems",
            "",
            "words: what words is about",
            "a.md:1: one: do this",
            "a.md:2: two: do that",
            "",
            "hcl: what hcl is about",
            "main.tf:1: one: do this",
            "",
            "NOT WELL: 3 problems in words, hcl",
        ],
    )


def test_a_check_that_cannot_run_ends_2_and_hides_nothing() -> None:
    assert said(check("terraform-fmt", cannot), ONE) == (
        2,
        [
            "2 checks, 2 at a time",
            "hcl: 1 problem",
            "terraform-fmt: could not run",
            "",
            "hcl: what hcl is about",
            "main.tf:1: one: do this",
            "",
            "terraform-fmt could not run: terraform is not installed",
            "",
            "NOT DONE: terraform-fmt could not run",
            "NOT WELL: 1 problem in hcl",
        ],
    )


def test_a_check_that_breaks_could_not_run() -> None:
    status, lines = said(check("hcl", breaks))
    assert (status, lines[-3:]) == (2, ["hcl could not run: KeyError()", "", "NOT DONE: hcl could not run"])


def test_writing_names_what_was_written() -> None:
    lines: list[str] = []
    writing = Check("tables", "", list, write=lambda: ["README.md"])
    assert runner.write([WELL, writing], lines.append) == 0
    assert lines == ["written: README.md", "1 file rewritten"]
    lines.clear()
    runner.write([Check("tables", "", list, write=list)], lines.append)
    assert lines == ["nothing to rewrite: all is as the code says"]


def chosen(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    names: list[str] = []

    def note(checks: list[Check], say: object) -> int:
        names.extend(check.name for check in checks)
        return 0

    monkeypatch.setattr(command, "run", note)
    assert command.main(arguments) == 0
    return names


def test_fast_leaves_out_what_takes_init_or_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [check.name for check in CHECKS]
    assert chosen(monkeypatch) == names
    assert [name for name in names if name not in chosen(monkeypatch, "--fast")] == [
        "checkov",
        "zip",
        "terraform-validate",
    ]


def test_checks_can_be_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "words", "hcl") == ["hcl", "words"]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(["wrods"])
    assert refused.value.code == 2
    assert "no check is called wrods; --list names them" in capsys.readouterr().err


def test_the_list_names_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]
    assert "zip                  the function's zip is what its sources give (not with --fast)" in lines


def test_what_cannot_be_written_ends_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "CHECKS", [Check("tables", "", list, write=cannot)])
    assert command.main(["--write"]) == 2
    assert capsys.readouterr().err == "terraform is not installed\n"


def test_an_interrupt_ends_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert command.main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_named_check_is_never_left_out_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(["zip", "words", "--fast"])
    assert refused.value.code == 2
    assert "zip: not with --fast" in capsys.readouterr().err
