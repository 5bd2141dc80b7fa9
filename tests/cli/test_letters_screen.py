"""Lines of the result beside a live bar."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from idempotent_consumer_cli.screen import Screen

Output = pytest.CaptureFixture[str]


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_json_for_a_pipe_stays_on_standard_output_while_a_bar_is_shown(capsys: Output) -> None:
    screen = Screen(as_json=True)
    screen._err = terminal()
    with screen.progress("Reading", 2) as bar:
        screen.emit({"event_id": "order-1"})
        bar.update(1)
    assert capsys.readouterr().out == '{"event_id": "order-1"}\n'
    assert "Reading" in shown(screen._err)
    assert "order-1" not in shown(screen._err)


def test_on_a_terminal_a_line_stands_above_the_bar(capsys: Output) -> None:
    screen = Screen()
    screen._err = screen._out = terminal()
    with screen.progress("Reading", 2) as bar:
        screen.say("order-1: will apply [b]")
        bar.update(1)
    assert "order-1: will apply [b]" in shown(screen._err)
    assert capsys.readouterr().out == ""


def test_once_the_bar_is_gone_lines_go_to_standard_output(capsys: Output) -> None:
    screen = Screen()
    screen._err = screen._out = terminal()
    with screen.progress("Reading", 2):
        pass
    screen.say("a:smile:b")
    assert capsys.readouterr().out == "a:smile:b\n"
