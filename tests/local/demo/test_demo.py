"""What a run of the demo leaves in build/, with nothing applied and nothing sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.audit import Found
from local.demo import __main__ as demo
from local.demo.__main__ import Run
from local.processes import ServerError


class Stopped:
    """An emulator that does not start."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        pass

    def __enter__(self) -> None:
        raise ServerError("it does not start")

    def __exit__(self, *error: object) -> None:
        pass

    def stop(self) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo leaves its results, with those of an earlier run."""
    monkeypatch.setattr(demo, "CHECKOUT", tmp_path)
    monkeypatch.setattr(demo, "WORK", tmp_path / "work")
    monkeypatch.setattr(demo, "RESULT", tmp_path / "demo.json")
    monkeypatch.setattr(demo, "Emulator", Stopped)
    monkeypatch.setattr(demo, "interrupt_on_signals", lambda: None)
    for name in ("demo.json", "demo.html"):
        (tmp_path / name).write_text("an earlier run's")
    return tmp_path


def test_a_run_that_fails_leaves_nothing_of_an_earlier_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main([]) == 1
    assert capsys.readouterr().err == "\nit does not start\n"
    assert list(folder.iterdir()) == []


def test_an_unclean_run_has_a_page_that_says_so_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_apply", lambda emulator, screen: None)
    monkeypatch.setattr(demo, "_drive", lambda consumer, traffic, screen: Run())
    monkeypatch.setattr(demo, "_read", lambda consumer, run, screen: Found([], [], [], [], [], []))
    assert demo.main([]) == 1
    page = (folder / "demo.html").read_text()
    assert page.index("Lost 869, doubled 0, unexpected 0.") < page.index("What is wrong") < page.index("Figures</h2>")
    assert "order-0001 has no business row" in page
    assert json.loads((folder / "demo.json").read_text())["lost"] == 869
    assert "Each delivery and what it changed, as a page: demo.html\n" in capsys.readouterr().out


def test_what_is_interrupted_before_it_says_how_to_end_it_keeps_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(Stopped, "stop", lambda emulator: stopped.append("emulator"))
    monkeypatch.setattr(demo, "_apply", lambda emulator, screen: (folder / "work/terraform").mkdir(parents=True))
    monkeypatch.setattr(demo, "_drive", lambda consumer, traffic, screen: Run())
    monkeypatch.setattr(demo, "_read", lambda consumer, run, screen: Found([], [], [], [], [], []))

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "audit", interrupted)
    assert demo.main(["--keep"]) == 130
    assert (stopped, list((folder / "work").iterdir())) == (["emulator"], [])
    assert capsys.readouterr().err == "\nStopped. Nothing was left behind.\n"
