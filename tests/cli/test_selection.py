"""Which letters are chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from idempotent_consumer.event import Event
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import Opened, OpenedLetter
from idempotent_consumer_cli.letters.selection import Selection, select
from tests.cli.letters_support import text

NOW_MS = 1_893_553_446_000


def letter(message_id: str = "m-1", *event_ids: str, reason: str | None = None, age: int = 0) -> OpenedLetter:
    attributes = {} if reason is None else {"dead_letter_reason": text(reason)}
    system = {"SentTimestamp": str(NOW_MS - age * 1000)}
    events = tuple(Opened(Event(event_id, {}, "f")) for event_id in event_ids or ("e-1",))
    return OpenedLetter(Letter(message_id, "{}", attributes, system), events)


def takes(selection: Selection, *letters: OpenedLetter) -> list[bool]:
    return [selection.takes(each, NOW_MS) for each in letters]


def test_without_options_everything_is_chosen() -> None:
    assert select().is_everything
    assert takes(select(), letter()) == [True]


def test_a_letter_is_chosen_by_one_of_its_event_ids_or_by_its_message_id() -> None:
    selection = select(ids=["e-2", "m-9"])
    letters = letter("m-1", "e-1"), letter("m-2", "e-1", "e-2"), letter("m-9", "e-3"), letter("e-1", "m-1")
    assert takes(selection, *letters) == [False, True, True, False]
    assert selection.unmet_remarks(is_all_read=True) == []


def test_a_letter_without_an_event_is_chosen_by_its_message_id() -> None:
    bad = OpenedLetter(Letter("m-1", "{", {}, {}), (Opened(None),))
    assert takes(select(ids=["m-1"]), bad) == [True]


def test_ids_that_no_letter_has_are_named() -> None:
    selection = select(ids=["e-1", "e-7"])
    takes(selection, letter())
    assert selection.unmet_remarks(is_all_read=True) == ["No letter has this id: e-7."]
    assert selection.unmet_remarks(is_all_read=False) == ["No letter that was read has this id: e-7."]


def test_of_many_ids_that_no_letter_has_some_are_named() -> None:
    selection = select(ids=[f"e-{number:02}" for number in range(12)])
    assert selection.unmet_remarks(is_all_read=True) == [
        "No letter has these ids: e-00, e-01, e-02, e-03, e-04, e-05, e-06, e-07, e-08, e-09 and 2 more."
    ]


def test_an_id_whose_letter_another_option_leaves_out_is_said_to_be_so() -> None:
    selection = select(ids=["e-1"], reasons=["bad-json"])
    assert takes(selection, letter(reason="row-exists")) == [False]
    assert selection.unmet_remarks(is_all_read=True) == ["Another option leaves out the letter with this id: e-1."]


@pytest.mark.parametrize("reasons", [["bad-json", "row-exists"], ["row-exists", "bad-json"]])
def test_an_id_that_chose_one_of_its_letters_is_met(reasons: list[str]) -> None:
    selection = select(ids=["e-1"], reasons=["bad-json"])
    takes(selection, *(letter(f"m-{reason}", reason=reason) for reason in reasons))
    assert selection.unmet_remarks(is_all_read=True) == []


def test_a_letter_is_chosen_by_one_of_several_reasons() -> None:
    letters = letter(reason="bad-json"), letter(reason="row-exists"), letter(reason="id-blank"), letter()
    assert takes(select(reasons=["bad-json", "id-blank"]), *letters) == [True, False, True, False]


def test_letters_that_sqs_moved_have_the_reason_none() -> None:
    assert takes(select(reasons=["none"]), letter(reason="bad-json"), letter()) == [False, True]


def test_a_letter_is_chosen_by_its_age() -> None:
    letters = letter(age=59), letter(age=60), letter(age=61)
    assert takes(select(older_than=60), *letters) == [False, False, True]
    assert takes(select(newer_than=60), *letters) == [True, False, False]
    assert takes(select(older_than=0), letter(age=0)) == [False]


def test_a_letter_has_to_match_all_options() -> None:
    selection = select(ids=["e-1"], reasons=["none"], older_than=10, newer_than=20)
    assert takes(selection, letter(age=15), letter(age=25), letter(reason="fault", age=15)) == [True, False, False]


def test_something_has_to_be_chosen() -> None:
    with pytest.raises(CommandError, match="or give --all"):
        select().require(is_all=False)
    select().require(is_all=True)
    select(older_than=0).require(is_all=False)


def test_all_and_some_do_not_go_together() -> None:
    with pytest.raises(CommandError, match="leave out the options that choose some"):
        select(reasons=["none"]).require(is_all=True)


def test_a_file_lists_ids_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text("\ufeffe-1\r\n\n  m-2  \n{not json\n", encoding="utf-8")
    assert select(ids=["e-0"], file=file).ids == {"e-0", "e-1", "m-2", "{not json"}


def test_a_file_may_have_the_lines_of_inspect_and_of_drop(tmp_path: Path) -> None:
    lines = [
        {"kind": "letter", "message_id": "m-1", "event_ids": ["e-1"]},
        {"consumer": "orders", "message_id": "m-2", "body": "{}"},
        {"event_id": "e-3"},
        {"kind": "summary", "letters": 2},
        {"message_id": 5, "event_id": None},
    ]
    file = tmp_path / "letters.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert select(file=file).ids == {"m-1", "m-2", "e-3"}


@pytest.mark.parametrize("content", [b"", b"\n \n", b'{"kind": "summary"}\n'])
def test_a_file_without_ids_chooses_nothing_by_mistake(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ids"
    file.write_bytes(content)
    with pytest.raises(CommandError, match="lists no ids"):
        select(file=file)


def test_a_line_that_is_nested_too_deep_is_an_id_that_no_letter_has(tmp_path: Path) -> None:
    line = '{"a":' + "[" * 100_000
    (tmp_path / "ids").write_text(line)
    assert select(file=tmp_path / "ids").ids == {line}


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError, match="cannot be read"):
        select(file=file)
