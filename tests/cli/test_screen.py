from __future__ import annotations

import io
import sys

import pytest

from idempotent_consumer_cli.screen import Screen, printable

# Erases the screen; says that the rest is a title; turns the reading direction around.
STEERING = "a\x1b[2J b\x9b1A c\u202ed\ne\x07"
ESCAPED = "a\\x1b[2J b\\x9b1A c\\u202ed\\ne\\x07"

Output = pytest.CaptureFixture[str]


def test_what_could_steer_a_terminal_is_written_as_an_escape() -> None:
    assert printable(STEERING) == ESCAPED


def test_text_of_all_languages_stays_as_it_is() -> None:
    assert printable("Bestellung für Ödön – 注文 🎉") == "Bestellung für Ödön – 注文 🎉"


def test_no_cell_of_a_table_steers_the_terminal(capsys: Output) -> None:
    Screen().table("Title", ["event id"], [[STEERING]])
    out = capsys.readouterr().out
    assert f"│ {ESCAPED} │" in out
    assert not set(out) & {"\x1b", "\x9b", "\u202e", "\x07"}


def test_a_cell_is_no_markup(capsys: Output) -> None:
    Screen().table("Title", ["event id", "bytes"], [["[red]x[/red] \\[b] c\\", 1234567], [None, 0]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[4:6] == ["│ [red]x[/red] \\[b] c\\ │ 1,234,567 │", "│ -                    │ 0         │"]


def test_lines_and_remarks_do_not_steer_the_terminal_either(capsys: Output) -> None:
    screen = Screen()
    screen.say("two\nlines \x1b[2J")
    screen.note("[b]remark[/b] \x9b1A")
    assert capsys.readouterr() == ("two\nlines \\x1b[2J\n", "[b]remark[/b] \\x9b1A\n")


def test_a_line_is_not_folded_where_it_is_read_by_programs(capsys: Output) -> None:
    Screen().say("x" * 500)
    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_with_json_only_json_comes_out(capsys: Output) -> None:
    screen = Screen(as_json=True)
    screen.table("Title", ["event id"], [["a"]])
    screen.say("a line for people")
    screen.emit({"event_id": "ö\x9b", "age_seconds": 3})
    assert capsys.readouterr() == ('{"event_id": "\\u00f6\\u009b", "age_seconds": 3}\n', "")


def test_without_json_there_is_none(capsys: Output) -> None:
    Screen().emit({"event_id": "a"})
    assert capsys.readouterr() == ("", "")


def test_progress_is_silent_where_nobody_watches(capsys: Output) -> None:
    with Screen().progress("Reading", 10) as bar:
        bar.update(5, 20, "half")
    assert capsys.readouterr().out == ""


def test_an_id_that_the_encoding_lacks_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))
    screen = Screen()
    screen.say("注文")
    screen.table("Letters", ["event"], [["注文"]])
    sys.stdout.flush()
    assert out.getvalue().startswith(b"\\u6ce8\\u6587\n")
    assert out.getvalue().count(b"\\u6ce8\\u6587") == 2
