"""`inspect`: why letters are dead, what the ledger knows, what a replay will do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from idempotent_consumer_cli.foresight.prospect import Difference, Fate, Foretold, LedgerState
from idempotent_consumer_cli.letters import causes
from idempotent_consumer_cli.letters import queue as letters
from idempotent_consumer_cli.letters.lines import difference_of
from tests.cli.letters_support import Dead, deploy, text
from tests.cli.support import BUSINESS, World, client_error, denied

GROUP = "/aws/lambda/orders-worker"


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch)


@pytest.fixture
def fifo(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Dead:
    return deploy(new_world, monkeypatch, fifo=True)


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def log(*lines: str) -> None:
    client = boto3.client("logs")
    client.create_log_group(logGroupName=GROUP)
    client.create_log_stream(logGroupName=GROUP, logStreamName="s")
    now_ms = time.time_ns() // 1_000_000
    events = [{"timestamp": now_ms, "message": line} for line in lines]
    if events:
        client.put_log_events(logGroupName=GROUP, logStreamName="s", logEvents=events)


def verdict(message_id: str, reason: str, detail: str = "") -> str:
    fields = {"message_id": message_id, "outcome": "retry", "reason": reason, "detail": detail}
    return json.dumps({"message": f"event retry: {reason}", **fields})


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_an_empty_queue_is_well(dead: Dead) -> None:
    run = dead.run("inspect")
    assert (run.exit_code, run.stdout) == (0, "The dead-letter queue is empty.\n")


def test_each_letter_is_a_row_with_its_reason_and_its_fate(dead: Dead) -> None:
    log()
    dead.world.settle(order("sent"))
    dead.world.commit(order("pending"))
    dead.letter(order("new"), age=9030)
    dead.letter(order("sent"), age=90_030)
    dead.letter(order("pending"))
    dead.letter("{", "bad-json", "Expecting property name at character 1", age=3690)
    run = dead.run("inspect")
    lines = run.stdout.splitlines()
    assert [cells(line) for line in lines[4:7]] == [
        ["new", "moved by SQS after 5 receives", "1", "2h 30m", "-", "never seen", "will apply"],
        ["sent", "moved by SQS after 5 receives", "1", "1d 1h", "-", "sent", "is a no-op"],
        ["pending", "moved by SQS after 5 receives", "1", "0s", "-", "pending", "will only publish"],
    ]
    last = cells(lines[7])
    assert last[0].startswith("message ")
    assert last[2:] == ["1", "1h 1m", "1h 1m", "no event id", "will be refused again: bad-json"]
    assert "Reasons:  3 moved by SQS after 5 receives, 1 bad-json" in lines
    assert "Ledger:   1 no event id, 1 never seen, 1 pending, 1 sent" in lines
    assert "A replay: 1 will be refused again, 1 will apply, 1 will only publish, 1 is a no-op" in lines
    assert run.verdict == "4 letters: `replay` sends them back, `drop` deletes them."
    assert (run.exit_code, run.stderr) == (1, "")


def test_where_all_would_be_refused_again_no_replay_is_advised(dead: Dead) -> None:
    dead.letter("{", "bad-json")
    dead.letter("[", "bad-json")
    assert dead.run("inspect").verdict == "2 letters, to be refused again: mend the cause first, or `drop` them."


def test_nothing_is_changed_and_everything_given_back(dead: Dead) -> None:
    sent = [dead.letter(order(f"order-{number}")) for number in range(25)]
    assert dead.run("inspect").exit_code == 1
    assert dead.visible == sent
    assert dead.queued == []
    assert not dead.world.requests("DeleteMessageBatch")


def test_with_json_each_letter_is_a_line_and_the_sums_are_the_last(dead: Dead) -> None:
    moved = dead.letter(order("new", note="ä"), age=10)
    blank = dead.letter(order(" "), "id-blank", "id is blank", attributes={"source": text("checkout")}, age=5)
    run = dead.run("inspect", "--json")
    first, second, summary = run.documents
    event = first.pop("events")
    assert first["age_seconds"] in (9, 10, 11)
    assert second["dead_seconds"] in (4, 5, 6)
    sent_at = first.pop("sent_at")
    assert first.pop("first_seen_at") == sent_at
    del first["age_seconds"]
    assert first == {
        "kind": "letter",
        "message_id": moved,
        "event_ids": ["new"],
        "reason": None,
        "detail": None,
        "moved_by_sqs": True,
        "receive_count": 1,
        "group": None,
        "dead_seconds": None,
        "ledger": "never-seen",
        "replay": "apply",
        "replay_reason": "",
        "replay_detail": "",
        "beyond_window": False,
    }
    assert event == [
        {
            "event_id": "new",
            "ledger": "never-seen",
            "replay": "apply",
            "reason": "",
            "detail": "",
            "first_seen_at": sent_at,
            "beyond_window": False,
        }
    ]
    assert (second["message_id"], second["reason"], second["detail"]) == (blank, "id-blank", "id is blank")
    assert (second["ledger"], second["replay"], second["replay_reason"]) == ("no-event", "refuse", "id-blank")
    assert summary == {
        "kind": "summary",
        "letters": 2,
        "read": 2,
        "by_reason": {"none": 1, "id-blank": 1},
        "by_ledger": {"no-event": 1, "never-seen": 1},
        "by_replay": {"refuse": 1, "apply": 1},
        "why": [],
        "remarks": [f"Why SQS moved 1 letter is not known: there is no log group {GROUP}."],
    }
    assert run.exit_code == 1


def test_a_body_is_never_shown(dead: Dead) -> None:
    dead.letter(order(note="secret-1"))
    dead.world.settle(order("c", note="secret-2"))
    dead.letter(order("c", note="secret-3"), "id-reused")
    for arguments in ([], ["--json"]):
        assert "secret" not in dead.run("inspect", *arguments).stdout


def test_a_conflict_shows_what_differs_and_on_demand_the_values(dead: Dead) -> None:
    dead.world.settle(order(note="old"))
    dead.letter(order(note="new"), "id-reused", "the ledger holds this event id with other content")
    row = cells(dead.run("inspect").stdout.splitlines()[4])
    assert row[-2:] == ["conflict", "will be refused again: id-reused; differs in note"]
    row = cells(dead.run("inspect", "--values").stdout.splitlines()[4])
    assert row[-1] == "will be refused again: id-reused; note is old, not new"
    (event,) = dead.run("inspect", "--json").documents[0]["events"]
    assert (event["differs"], event.get("stored")) == (["note"], None)
    (event,) = dead.run("inspect", "--json", "--values").documents[0]["events"]
    assert (event["differs"], event["stored"], event["would_write"]) == (["note"], {"note": "old"}, {"note": "new"})


def test_a_row_in_the_way_shows_whose_it_is(dead: Dead) -> None:
    dead.world.store(
        BUSINESS, {"id": {"S": "order-1"}, "event_id": {"S": "order-0"}, "event_consumer": {"S": "billing"}}
    )
    dead.letter(order(), "row-exists")
    row = cells(dead.run("inspect").stdout.splitlines()[4])
    assert row[-2:] == [
        "never seen",
        "will be refused again: row-exists; the row is of event order-0 of billing",
    ]
    (event,) = dead.run("inspect", "--json").documents[0]["events"]
    assert event["row_of"] == {"event_id": "order-0", "consumer": "billing"}


def test_a_stale_reason_on_a_letter_that_sqs_moved_is_none(dead: Dead) -> None:
    message_id = dead.letter(order(), "row-exists", "an earlier stay")
    dead.mark_moved(message_id)
    letter = dead.run("inspect", "--json").documents[0]
    assert (letter["reason"], letter["detail"], letter["moved_by_sqs"]) == (None, None, True)


def test_own_code_is_not_foretold(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    dead = deploy(new_world, monkeypatch, handler="my_orders.handler")
    dead.letter(order())
    row = cells(dead.run("inspect").stdout.splitlines()[4])
    assert row[-2:] == ["never seen", "unknown (the consumer's own code decides)"]


def test_where_the_queue_does_not_tell_after_how_many_receives_sqs_moves_a_message_it_is_left_out(dead: Dead) -> None:
    dead.letter(order())
    dead.world.on("GetQueueAttributes", raises=denied("GetQueueAttributes"), calls=[1])
    assert cells(dead.run("inspect").stdout.splitlines()[4])[1] == "moved by SQS"


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(owner=("e-1", None)), "the row is of event e-1"),
        (Difference(owner=("e\x1b", "b")), "the row is of event e\\x1b of b"),
        (Difference(owner=(None, None)), "the row names no event"),
        (Difference(remark="why not"), "why not"),
        (Difference({}), "the rows are alike: the content differs outside of them"),
        (Difference({"a": ("1", "2"), "b": ("x", "nothing")}), "differs in a, b"),
        (None, ""),
    ],
)
def test_what_stands_against_an_event_is_said_in_words(difference: Difference | None, words: str) -> None:
    event = Foretold("e", LedgerState.CONFLICT, Fate.REFUSE, "id-reused", difference=difference)
    assert difference_of(event) == words


# --- choosing


def test_chosen_letters_are_shown_and_all_are_given_back(dead: Dead) -> None:
    sent = [dead.letter(order(f"order-{number}")) for number in range(3)]
    run = dead.run("inspect", "--id", "order-1", "--id", sent[2], "--json")
    assert [line["message_id"] for line in run.documents[:-1]] == sent[1:]
    assert (run.documents[-1]["letters"], run.documents[-1]["read"]) == (2, 3)
    assert dead.visible == sent


def test_when_no_letter_is_chosen_it_is_said(dead: Dead) -> None:
    dead.letter(order())
    run = dead.run("inspect", "--id", "order-7")
    assert run.stdout.splitlines() == ["No letter has this id: order-7.", "None of the 1 letter is chosen."]
    assert run.exit_code == 0


def test_the_table_has_a_hundred_rows_and_the_sums_count_all(dead: Dead) -> None:
    for number in range(105):
        dead.letter(order(f"order-{number}"), "row-exists")
    run = dead.run("inspect")
    assert sum(line.startswith("│ order-") for line in run.stdout.splitlines()) == 100
    assert "The first 100 of 105 are shown: --limit shows more." in run.stdout
    assert "Reasons:  105 row-exists" in run.stdout
    run = dead.run("inspect", "--limit", "2")
    assert sum(line.startswith("│ order-") for line in run.stdout.splitlines()) == 2


def test_with_json_all_are_shown_unless_limited(dead: Dead) -> None:
    for number in range(105):
        dead.letter(order(f"order-{number}"), "row-exists")
    assert len(dead.run("inspect", "--json").documents) == 106
    assert len(dead.run("inspect", "--json", "--limit", "3").documents) == 4


# --- why


def why(dead: Dead) -> list[Any]:
    return [tuple(each.values()) for each in dead.run("inspect", "--json").documents[-1]["why"]]


def test_the_log_tells_the_cause_of_letters_that_sqs_moved(dead: Dead) -> None:
    moved = [dead.letter(order(f"order-{number}")) for number in range(3)]
    dead.letter(order(" "), "id-blank")
    detail = "PublishBatch: AuthorizationError"
    log(*(verdict(message_id, "misconfigured", detail) for message_id in moved[:2]), verdict(moved[2], "throttled"))
    assert why(dead) == [("misconfigured", detail, 2), ("throttled", "", 1)]
    run = dead.run("inspect")
    table = run.stdout[run.stdout.index("Why SQS moved them") :]
    assert cells(table.splitlines()[4]) == ["misconfigured", detail, "2"]


def test_a_log_that_was_read_in_part_is_said_to_be_so(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "MOST_PAGES", 1)
    dead.letter(order())
    dead.world.on("FilterLogEvents", answers={"events": [], "nextToken": "more"})
    run = dead.run("inspect")
    assert "The log is longer than what was read of it: older causes may be missing." in run.stdout.splitlines()


@pytest.mark.case("O01")
def test_a_letter_without_a_line_in_the_log_never_ran_to_an_end(dead: Dead) -> None:
    first = dead.letter(order("order-1"))
    dead.letter(order("order-2"))
    log(verdict(first, "throttled"))
    assert why(dead) == [
        ("throttled", "", 1),
        ("no line in the log", "throttled, killed before it could write, or unable to start", 1),
    ]


def test_timeouts_in_the_log_are_named(dead: Dead) -> None:
    dead.letter(order())
    log("Task timed out after 3.00 seconds", "Task timed out after 3.00 seconds")
    detail = (
        "the function was stopped for its timeout 2 times, "
        "or throttled, killed before it could write, or unable to start"
    )
    assert why(dead) == [("no line in the log", detail, 1)]


def test_lines_without_a_message_id_are_counted(dead: Dead) -> None:
    dead.letter(order("order-1"))
    dead.letter(order("order-2"))
    log("event retry: misconfigured", "event retry: misconfigured", "event retry: throttled")
    assert why(dead) == [("named by lines without a message id", "2 lines misconfigured, 1 line throttled", 2)]


def test_a_log_that_may_not_be_read_is_said_in_a_line(dead: Dead) -> None:
    dead.letter(order())
    dead.world.deny("FilterLogEvents")
    run = dead.run("inspect")
    assert (
        "Why SQS moved 1 letter is not known: the log cannot be read (AccessDeniedException): you need "
        f"logs:FilterLogEvents on {GROUP}." in run.stdout
    )
    assert run.exit_code == 1


def test_the_log_is_left_alone_where_each_letter_has_its_reason(dead: Dead) -> None:
    dead.letter(order(" "), "id-blank")
    assert why(dead) == []
    assert dead.world.requests("FilterLogEvents") == []


# --- FIFO


def test_on_fifo_the_group_is_shown_and_who_was_never_tried(fifo: Dead) -> None:
    log()
    fifo.letter(order("order-1"), group="a")
    fifo.letter(order("order-2"), group="a")
    fifo.letter(order("order-3"), group="b")
    run = fifo.run("inspect")
    rows = [cells(line) for line in run.stdout.splitlines()[4:7]]
    assert [(row[0], row[5], row[6]) for row in rows] == [
        ("order-1", "a", "never seen"),
        ("order-2", "a", "blocked, never tried"),
        ("order-3", "b", "never seen"),
    ]


def test_letters_that_were_blocked_need_no_line_in_the_log(fifo: Dead) -> None:
    first = fifo.letter(order("order-1"), group="a")
    fifo.letter(order("order-2"), group="a")
    log(verdict(first, "throttled"))
    assert why(fifo) == [("throttled", "", 1)]


def test_on_fifo_it_is_said_how_many_of_how_many_are_shown(fifo: Dead) -> None:
    for number in range(14):
        fifo.letter(order(f"order-{number}"), group="a")
    run = fifo.run("inspect")
    assert (
        "10 of about 14 letters were read: of a message group SQS gives out ten at most, until those are gone."
        in run.stdout.splitlines()
    )
    assert len(fifo.visible) == 14


# --- hostile text


def test_no_id_reason_or_group_steers_the_terminal(fifo: Dead) -> None:
    escape = "\x1b[2J\u202e"
    attributes = {"dead_letter_reason": text("x\u202ey"), "dead_letter_detail": text("d\u009b1A")}
    fifo.letter(json.dumps(order(escape)), attributes=attributes, group="g")
    out = fifo.run("inspect").stdout
    assert not set(out) & {"\x1b", "\u202e", "\x9b"}
    assert "\\x1b[2J\\u202e" in out
    assert fifo.run("inspect", "--json").stdout.isascii()


# --- what goes wrong


def test_letters_in_the_hands_of_another_run_are_no_empty_queue(dead: Dead) -> None:
    dead.letter(order())
    dead.hold(1)
    run = dead.run("inspect")
    assert run.exit_code == 1
    assert run.verdict == "The 1 letter could not be read: another run has them in hand. Try again in a minute."


def test_an_interruption_gives_everything_back_and_says_how_far_it_came(dead: Dead) -> None:
    sent = [dead.letter(order(f"order-{number}")) for number in range(25)]
    dead.world.on("ReceiveMessage", raises=KeyboardInterrupt(), calls=[3])
    run = dead.run("inspect")
    assert run.exit_code == 130
    assert run.stderr == "Stopped. 20 of about 25 letters were read; they are given back, or come back by themselves.\n"
    assert dead.visible == sent


def test_a_second_interruption_does_not_hide_how_far_it_came(dead: Dead) -> None:
    for number in range(12):
        dead.letter(order(f"order-{number}"))
    dead.world.on("ReceiveMessage", raises=KeyboardInterrupt(), calls=[2])
    dead.world.on("ChangeMessageVisibilityBatch", raises=KeyboardInterrupt())
    run = dead.run("inspect")
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped. 10 of about 12 letters were read")


def test_letters_that_cannot_be_given_back_do_not_cost_the_report(dead: Dead) -> None:
    for number in range(12):
        dead.letter(order(f"order-{number}"), "row-exists")
    dead.world.on("ChangeMessageVisibilityBatch", raises=denied("ChangeMessageVisibilityBatch"), calls=[2])
    run = dead.run("inspect")
    assert run.stderr == "2 letters come back by themselves, within 1m (AccessDeniedException).\n"
    assert "Reasons:  12 row-exists" in run.stdout
    assert (run.exit_code, len(dead.visible)) == (1, 10)


def test_a_missing_right_is_one_line(dead: Dead) -> None:
    sent = dead.letter(order())
    dead.world.deny("BatchGetItem")
    run = dead.run("inspect")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: the ledger orders-processed-events cannot be read: BatchGetItem: AccessDeniedException. You need "
        "dynamodb:BatchGetItem on it\n"
    )
    assert dead.visible == [sent]


def test_sqs_limit_of_letters_in_flight_is_a_clear_line(dead: Dead) -> None:
    for number in range(20):
        dead.letter(order(f"order-{number}"), "row-exists")
    dead.world.on("ReceiveMessage", raises=client_error("OverLimit", "ReceiveMessage"), calls=[2])
    run = dead.run("inspect")
    assert run.exit_code == 1
    assert "SQS gives out 120,000 letters at a time: those beyond were not read." in run.stdout
    assert len(dead.visible) == 20


@pytest.mark.parametrize(("given", "is_taken"), [("0s", False), ("1s", True), ("12h", True), ("12h1s", False)])
def test_letters_are_hidden_for_as_long_as_sqs_can(dead: Dead, given: str, is_taken: bool) -> None:
    run = dead.run("inspect", "--visibility", given)
    assert run.exit_code == (0 if is_taken else 2)
    assert ("is not from 1s to 12h" in run.stderr) is not is_taken


def test_letters_are_hidden_for_a_minute_by_default(dead: Dead) -> None:
    dead.run("inspect")
    assert {request["VisibilityTimeout"] for request in dead.world.requests("ReceiveMessage")} == {60}
    assert letters.VISIBILITY_SECONDS == 60
