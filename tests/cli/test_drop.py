"""`drop` writes letters to a file before it deletes them; `replay --from-drop` sends them back."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer_cli.screen import Screen
from tests.cli.letters_support import Dead, Killed, deploy, text
from tests.cli.support import World, denied


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files are written where the operator stands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch)


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def orders(dead: Dead, count: int) -> list[str]:
    return [dead.letter(order(f"order-{number}")) for number in range(count)]


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def queued_ids(dead: Dead) -> list[str]:
    return [json.loads(body)["id"] for body in dead.queued_bodies]


# --- drop


def test_dropped_letters_are_in_the_file_and_nowhere_else(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 23)
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert [line["message_id"] for line in lines(folder / "gone.jsonl")] == sent
    assert (dead.all, dead.queued, run.exit_code) == ([], [], 0)
    assert run.stdout.splitlines() == [
        "23 letters with an event that the ledger never saw: it is gone but for the file.",
        "23 letters dropped, and written to gone.jsonl: 23 never seen.",
    ]


def test_a_letter_is_written_whole(dead: Dead, folder: Path) -> None:
    attributes = {
        "source": text("checkout"),
        "digest": {"DataType": "Binary.sha256", "BinaryValue": b"\x00\xff"},
    }
    message_id = dead.letter('{"id": "order-1", "note": "ä\u2028"}', "id-blank", "no", attributes=attributes)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    (line,) = lines(folder / "gone.jsonl")
    system = line.pop("system_attributes")
    assert set(system) >= {"SentTimestamp", "ApproximateReceiveCount", "SenderId"}
    assert datetime.fromisoformat(line.pop("dropped_at")).tzinfo is UTC
    assert line == {
        "consumer": "orders",
        "message_id": message_id,
        "event_ids": ["order-1"],
        "reason": "id-blank",
        "detail": "no",
        "ledger": "never-seen",
        "group": None,
        "attributes": {
            "source": {"DataType": "String", "StringValue": "checkout"},
            "digest": {"DataType": "Binary.sha256", "BinaryValue": "AP8="},
            "dead_letter_reason": {"DataType": "String", "StringValue": "id-blank"},
            "dead_letter_detail": {"DataType": "String", "StringValue": "no"},
        },
        "body": '{"id": "order-1", "note": "ä\u2028"}',
    }


def test_the_file_is_for_its_owner_only_and_named_after_consumer_and_time(dead: Dead, folder: Path) -> None:
    orders(dead, 1)
    dead.run("drop", "--all")
    (file,) = folder.iterdir()
    moment = datetime.fromtimestamp(dead.world.now_ms / 1000, UTC)
    assert file.name == f"dropped-orders-{moment:%Y%m%dT%H%M%SZ}.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_only_chosen_letters_are_dropped(dead: Dead, folder: Path) -> None:
    keep = dead.letter(order("keep"))
    dead.letter("{", "bad-json")
    run = dead.run("drop", "--reason", "bad-json", "--output", "gone.jsonl")
    assert (dead.visible, len(lines(folder / "gone.jsonl"))) == ([keep], 1)
    assert run.stdout == "1 letter dropped, and written to gone.jsonl: 1 no event id.\n"
    assert run.exit_code == 0


def test_pending_events_are_said_to_be_published_all_the_same(dead: Dead) -> None:
    dead.world.commit(order("pending"))
    dead.world.settle(order("sent"))
    for name in ("pending", "sent", "new"):
        dead.letter(order(name))
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.stdout.splitlines() == [
        "1 letter with a pending event: the reconciler, or `reconcile`, still publishes it.",
        "1 letter with an event that the ledger never saw: it is gone but for the file.",
        "3 letters dropped, and written to gone.jsonl: 1 never seen, 1 pending, 1 sent.",
    ]


def test_with_json_each_letter_is_a_line_and_the_file_is_named(dead: Dead) -> None:
    (message_id,) = orders(dead, 1)
    run = dead.run("drop", "--all", "--json", "--output", "gone.jsonl")
    assert run.documents == [
        {"kind": "letter", "message_id": message_id, "event_ids": ["order-0"], "ledger": "never-seen"},
        {
            "kind": "summary",
            "dry_run": False,
            "file": "gone.jsonl",
            "letters": 1,
            "undeleted": 0,
            "by_ledger": {"never-seen": 1},
            "remarks": [],
        },
    ]


def test_a_dry_run_writes_and_deletes_nothing(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 2)
    run = dead.run("drop", "--all", "--dry-run")
    assert (dead.visible, list(folder.iterdir()), run.exit_code) == (sent, [], 0)
    assert run.stdout.splitlines() == [
        "order-0: never seen",
        "order-1: never seen",
        "2 letters would be dropped: 2 never seen. Nothing was changed.",
    ]


def test_where_nothing_is_chosen_there_is_no_file(dead: Dead, folder: Path) -> None:
    orders(dead, 1)
    run = dead.run("drop", "--id", "order-9")
    assert list(folder.iterdir()) == []
    assert run.stdout.splitlines() == ["No letter has this id: order-9.", "Nothing was dropped."]
    assert run.exit_code == 1


def test_without_a_choice_nothing_is_dropped(dead: Dead) -> None:
    orders(dead, 1)
    run = dead.run("drop")
    assert (run.exit_code, len(dead.visible)) == (2, 1)
    assert "or give --all" in run.stderr


@pytest.mark.parametrize("kind", ["file", "link"])
def test_no_file_is_ever_overwritten(dead: Dead, folder: Path, kind: str) -> None:
    orders(dead, 1)
    if kind == "file":
        (folder / "gone.jsonl").write_text("precious")
    else:
        (folder / "gone.jsonl").symlink_to(folder / "elsewhere")
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.exit_code == 2
    assert run.stderr == "Error: gone.jsonl exists already: name another file with --output\n"
    assert len(dead.visible) == 1
    if kind == "file":
        assert (folder / "gone.jsonl").read_text() == "precious"


def test_a_file_that_appears_meanwhile_is_not_overwritten_either(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 1)
    dead.world.on("ReceiveMessage", runs=lambda: (folder / "gone.jsonl").write_text("precious"))
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[-1] == (
        "Error: gone.jsonl cannot be written (File exists): its last letters are not deleted"
    )
    assert ((folder / "gone.jsonl").read_text(), dead.visible) == ("precious", sent)


def test_a_file_in_no_folder_is_refused_before_anything_is_read(dead: Dead) -> None:
    run = dead.run("drop", "--all", "--output", "nowhere/gone.jsonl")
    assert run.exit_code == 2
    assert run.stderr == "Error: nowhere/gone.jsonl cannot be written: there is no folder nowhere\n"
    assert dead.world.requests("ReceiveMessage") == []


def test_letters_are_on_the_disk_before_they_are_deleted(
    dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        steps.append(f"synced {os.fstat(descriptor).st_size > 0}")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    dead.world.on("DeleteMessageBatch", runs=lambda: steps.append("deleting"))
    orders(dead, 12)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    assert steps == ["synced True", "synced True", "deleting", "synced True", "deleting"]


def test_a_full_disk_deletes_nothing_more(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = orders(dead, 12)
    write = os.write
    calls = []

    def full(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.exit_code == 2
    assert run.stderr.splitlines() == [
        "10 letters written to gone.jsonl and deleted; about 2 are left.",
        "Error: gone.jsonl cannot be written (No space left on device): its last letters are not deleted",
    ]
    assert dead.visible == sent[10:]


def test_a_write_that_is_cut_short_is_continued(dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = orders(dead, 3)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:100]))
    dead.run("drop", "--all", "--output", "gone.jsonl")
    assert [line["message_id"] for line in lines(folder / "gone.jsonl")] == sent


def test_an_interruption_says_how_far_it_came(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 25)
    dead.world.on("ReceiveMessage", raises=KeyboardInterrupt(), calls=[3])
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.exit_code == 130
    assert run.stderr == "Stopped. 20 letters written to gone.jsonl and deleted; about 5 are left.\n"
    assert (dead.visible, len(lines(folder / "gone.jsonl"))) == (sent[20:], 20)


def test_killed_before_the_deletion_a_letter_is_in_both_places(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 2)
    dead.kill_at("DeleteMessageBatch", 1)
    with pytest.raises(Killed):
        dead.run("drop", "--all", "--output", "gone.jsonl")
    assert [line["message_id"] for line in lines(folder / "gone.jsonl")] == dead.all == sent


def test_an_interruption_after_the_last_letter_says_what_is_dropped(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 25)
    dead.world.on("ChangeMessageVisibilityBatch", raises=KeyboardInterrupt())
    run = dead.run("drop", "--id", "order-3", "--output", "gone.jsonl")
    assert run.exit_code == 130
    assert run.stderr == "Stopped. 1 letter written to gone.jsonl and deleted; about 24 are left.\n"
    assert (len(dead.all), lines(folder / "gone.jsonl")[0]["message_id"]) == (24, sent[3])


def test_an_interruption_before_the_first_deletion_says_that_nothing_is_deleted(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.on("BatchGetItem", raises=KeyboardInterrupt())
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert (run.exit_code, run.stderr) == (130, "Stopped. No letter was deleted.\n")


def test_where_nobody_reads_the_output_what_is_written_is_deleted_and_said_to_be_so(
    dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = orders(dead, 12)

    def write(_screen: Screen, _line: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(Screen, "_write", write)
    run = dead.run("drop", "--all", "--json", "--output", "gone.jsonl")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[0] == "10 letters written to gone.jsonl and deleted; about 2 are left."
    assert (dead.visible, len(lines(folder / "gone.jsonl"))) == (sent[10:], 10)


def test_a_file_that_cannot_be_named_so_is_refused_before_anything_is_read(dead: Dead) -> None:
    run = dead.run("drop", "--all", "--output", "a" * 300)
    assert run.exit_code == 2
    assert run.stderr == f"Error: {'a' * 300} cannot be written (File name too long): name another file with --output\n"
    assert dead.world.requests("ReceiveMessage") == []


def test_of_a_letter_with_several_events_each_counts(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "EVENT_ENVELOPE": "s3",
        "EVENT_ID": "s3.object.key",
        "EVENT_ITEM": "{id: s3.object.key, n: s3.object.size}",
    }
    dead = deploy(new_world, monkeypatch, settings=settings)
    dead.world.settle(s3_record("conflict", 1))
    dead.world.commit(s3_record("pending", 1))
    dead.letter({"Records": [s3_record("conflict", 2), s3_record("pending", 1), s3_record("new", 1)]})
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.stdout.splitlines() == [
        "1 letter with a pending event: the reconciler, or `reconcile`, still publishes it.",
        "1 letter with an event that the ledger never saw: it is gone but for the file.",
        "1 letter dropped, and written to gone.jsonl: 1 conflict.",
    ]


def s3_record(key: str, size: int) -> dict[str, Any]:
    return {"s3": {"bucket": {"name": "b"}, "object": {"key": key, "size": size}}}


def test_a_letter_that_cannot_be_deleted_is_reported(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.on("DeleteMessageBatch", answers={"Failed": [{"Id": "0", "Code": "x", "SenderFault": True}]})
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[0] == "1 letter written, but not deleted: drop again, to another file."


def test_without_the_right_to_delete_nothing_is_lost(dead: Dead) -> None:
    orders(dead, 1)
    dead.world.on("DeleteMessageBatch", raises=denied("DeleteMessageBatch"))
    run = dead.run("drop", "--all", "--output", "gone.jsonl")
    assert (run.exit_code, len(dead.visible)) == (2, 1)
    assert run.stderr.splitlines()[0] == "0 letters written to gone.jsonl and deleted; about 1 are left."


# --- and back


def test_dropped_letters_can_be_sent_back_as_they_were(dead: Dead) -> None:
    attributes: Mapping[str, Any] = {
        "source": text("checkout"),
        "digest": {"DataType": "Binary.sha256", "BinaryValue": b"\x00\xff"},
    }
    body = '{"id":  "order-1", "note": "ä\u2028"}'
    dead.letter(body, "row-exists", "no", attributes=attributes)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    (message,) = dead.queued
    assert (message.body, message.message_attributes) == (body, attributes)
    assert run.stdout.splitlines() == ["order-1: will apply", "1 letter sent: 1 will apply."]
    assert run.exit_code == 0


def test_what_was_sent_back_is_noted_and_not_sent_again(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 12)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    dead.run("replay", "--from-drop", "gone.jsonl", "--id", "order-3")
    assert (folder / "gone.jsonl.sent").read_text() == f"{sent[3]}\n"
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    assert sorted(queued_ids(dead)) == sorted(f"order-{number}" for number in range(12))
    assert run.stderr == "1 letter passed over: gone.jsonl.sent says that they were sent.\n"
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    assert (run.stdout, run.exit_code) == ("Nothing was sent.\n", 0)
    assert run.stderr == "12 letters passed over: gone.jsonl.sent says that they were sent.\n"


def test_killed_while_sending_back_the_next_run_goes_on(dead: Dead) -> None:
    orders(dead, 25)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    dead.kill_at("SendMessageBatch", 2)
    with pytest.raises(Killed):
        dead.run("replay", "--from-drop", "gone.jsonl")
    dead.heal()
    assert dead.run("replay", "--from-drop", "gone.jsonl").exit_code == 0
    assert queued_ids(dead) == [f"order-{number}" for number in range(25)]


def test_a_note_that_a_kill_cut_off_counts_for_nothing(dead: Dead, folder: Path) -> None:
    sent = orders(dead, 2)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    (folder / "gone.jsonl.sent").write_text(f"{sent[0]}\n{sent[1][:20]}")
    dead.run("replay", "--from-drop", "gone.jsonl")
    assert queued_ids(dead) == ["order-1"]
    assert (folder / "gone.jsonl.sent").read_text() == f"{sent[0]}\n{sent[1][:20]}\n{sent[1]}\n"


def test_an_interruption_while_sending_back_says_how_far_it_came(dead: Dead) -> None:
    orders(dead, 12)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    dead.world.on("SendMessageBatch", raises=KeyboardInterrupt(), calls=[2])
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    assert run.exit_code == 130
    assert run.stderr == "Stopped. 10 letters sent, and noted. Run it again to go on.\n"


def test_a_dry_run_of_sending_back_notes_nothing(dead: Dead, folder: Path) -> None:
    orders(dead, 1)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    run = dead.run("replay", "--from-drop", "gone.jsonl", "--dry-run")
    assert run.stdout.splitlines()[0] == "order-0: will apply"
    assert (dead.queued, (folder / "gone.jsonl.sent").exists()) == ([], False)


def test_letters_that_were_sent_back_can_be_waited_for(dead: Dead) -> None:
    dead.letter(order("good"))
    dead.letter(order("bad"))
    dead.run("drop", "--all", "--output", "gone.jsonl")

    def work(request: Any, effect: Callable[[], Any]) -> Any:
        if dead.queued:
            dead.world._play(lambda: dead.work(refused=["bad"]))
        return effect()

    dead.world.on("BatchGetItem", answers=work)
    run = dead.run("replay", "--from-drop", "gone.jsonl", "--wait")
    assert run.verdict == "2 letters sent: 1 refused again, 1 applied."
    assert run.exit_code == 1


def test_dropped_letters_of_a_group_go_back_in_order(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = deploy(new_world, monkeypatch, fifo=True)
    sent = [dead.letter(order(f"a-{number:02}"), group="a") for number in range(14)]
    dead.run("drop", "--all", "--output", "gone.jsonl")
    assert dead.all == []
    assert dead.run("replay", "--from-drop", "gone.jsonl").exit_code == 0
    assert [(m.group_id, m.deduplication_id) for m in dead.queued] == [("a", message_id) for message_id in sent]
    assert queued_ids(dead) == [f"a-{number:02}" for number in range(14)]


LINE = {"consumer": "orders", "message_id": "m", "body": "{}", "attributes": {}, "system_attributes": {}}


@pytest.mark.case("C10")
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "line 2 of f.jsonl is no JSON object, not a letter that `drop` wrote"),
        ("[1]", "line 2 of f.jsonl is no JSON object, not a letter that `drop` wrote"),
        (
            {"messageId": "m", "body": "{}", "attributes": {}},
            "line 2 of f.jsonl is a record as Lambda gets it (messageId, body), not a letter that `drop` wrote",
        ),
        (
            {"MessageId": "m", "Body": "{}"},
            "line 2 of f.jsonl is a message as the SQS API gives it (MessageId, Body), not a letter that `drop` wrote",
        ),
        (
            {"kind": "letter", "message_id": "m"},
            "line 2 of f.jsonl is a line without a body, as `inspect --json` writes it, not a letter that `drop` wrote",
        ),
        ({"a": 1}, "line 2 of f.jsonl is another JSON object, not a letter that `drop` wrote"),
        ({**LINE, "consumer": "billing"}, "line 2 of f.jsonl is a letter of billing, not of orders: check --name"),
        ({**LINE, "attributes": {"a": {}}}, "line 2 of f.jsonl is not a letter as `drop` writes it"),
        (
            {**LINE, "attributes": {"a": {"DataType": "Binary", "BinaryValue": "?"}}},
            "line 2 of f.jsonl is not a letter as `drop` writes it",
        ),
        ({**LINE, "system_attributes": None}, "line 2 of f.jsonl is not a letter as `drop` writes it"),
        (
            {**LINE, "system_attributes": {"SentTimestamp": "x"}},
            "line 2 of f.jsonl is not a letter as `drop` writes it",
        ),
        ({**LINE, "body": "\ud800"}, "line 2 of f.jsonl is not a letter as `drop` writes it"),
        (
            {**LINE, "attributes": {"n": {"DataType": "Binary", "BinaryValue": "ä"}}},
            "line 2 of f.jsonl is not a letter as `drop` writes it",
        ),
        (
            {**LINE, "attributes": {"n": {"DataType": 1, "StringValue": "x"}}},
            "line 2 of f.jsonl is not a letter as `drop` writes it",
        ),
        ("[" * 100_000, "line 2 of f.jsonl is no JSON object, not a letter that `drop` wrote"),
    ],
)
def test_a_file_that_drop_did_not_write_is_refused(dead: Dead, folder: Path, line: Any, problem: str) -> None:
    text_of_line = line if isinstance(line, str) else json.dumps(line)
    (folder / "f.jsonl").write_text(f"{json.dumps(LINE)}\n{text_of_line}\n")
    run = dead.run("replay", "--from-drop", "f.jsonl")
    assert run.exit_code == 2
    assert run.stderr.splitlines()[-1] == f"Error: {problem}"
    # What stands before it has been deleted from the queue: it must not wait for the file to be mended.
    assert len(dead.queued) == 1


def test_a_last_line_that_a_full_disk_has_cut_off_keeps_none_before_it(dead: Dead, folder: Path) -> None:
    (folder / "f.jsonl").write_text(f"{json.dumps(LINE)}\n{json.dumps(LINE)[:40]}")
    run = dead.run("replay", "--from-drop", "f.jsonl")
    assert len(dead.queued) == 1
    assert run.stderr == "The last line of f.jsonl is cut off and passed over: `drop` did not delete its letter.\n"


def test_what_a_drop_on_a_full_disk_has_deleted_comes_back(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    orders(dead, 14)
    write, calls = os.write, []

    def full(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data if len(calls) == 1 else data[: data.index(b"\n") + 40])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        chosen = [argument for number in (1, 3, 5, 11, 12) for argument in ("--id", f"order-{number}")]
        assert dead.run("drop", *chosen, "--output", "gone.jsonl").exit_code == 2
    assert len(dead.visible) == 11
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    assert queued_ids(dead) == ["order-1", "order-3", "order-5", "order-11"]
    assert run.exit_code == 0


def test_a_last_line_whose_end_an_editor_took_is_a_letter_all_the_same(dead: Dead, folder: Path) -> None:
    (folder / "f.jsonl").write_text(json.dumps(LINE))
    run = dead.run("replay", "--from-drop", "f.jsonl")
    assert (run.stderr, len(dead.queued)) == ("", 1)


def test_a_note_of_what_is_sent_that_the_disk_does_not_take_is_one_line(
    dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "f.jsonl").write_text(f"{json.dumps(LINE)}\n")
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if data.startswith(str(LINE["message_id"]).encode()):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    run = dead.run("replay", "--from-drop", "f.jsonl")
    assert run.exit_code == 2
    assert run.stderr.splitlines() == [
        "1 letter sent, 1 of them not noted. Run it again to go on.",
        "Error: f.jsonl.sent cannot be written (No space left on device): the next run sends once more what is not "
        "noted, which the ledger absorbs",
    ]


def test_a_note_that_is_cut_short_is_continued(dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = orders(dead, 3)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:50]))
    dead.run("replay", "--from-drop", "gone.jsonl")
    assert (folder / "gone.jsonl.sent").read_text().split() == sent


def test_interrupted_between_send_and_note_the_letters_are_noted_all_the_same(
    dead: Dead, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = orders(dead, 12)
    dead.run("drop", "--all", "--output", "gone.jsonl")
    write, calls = os.write, []

    def interrupted(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", interrupted)
    run = dead.run("replay", "--from-drop", "gone.jsonl")
    assert (run.exit_code, run.stderr) == (130, "Stopped. 10 letters sent, and noted. Run it again to go on.\n")
    assert (folder / "gone.jsonl.sent").read_text().split() == sent[:10]


def test_a_file_that_is_no_text_is_refused(dead: Dead, folder: Path) -> None:
    (folder / "f.jsonl").write_bytes(b"\xff\xfe\x00")
    run = dead.run("replay", "--from-drop", "f.jsonl")
    assert run.exit_code == 2
    assert "f.jsonl cannot be read" in run.stderr
