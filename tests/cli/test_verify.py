from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer_cli import clock
from tests.cli.support import BUSINESS, DAY, LEDGER, World

NewWorld = Callable[..., World]
NO_LEDGER_ROW, NO_BUSINESS_ROW = "ledger row", "business row"


@pytest.fixture(autouse=True)
def second_looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited."""
    seconds: list[float] = []
    monkeypatch.setattr("idempotent_consumer_cli.verification.verifier.time.sleep", seconds.append)
    return seconds


def verify(world: World, *options: str) -> tuple[int, list[tuple[str, str]], Any]:
    """The exit code, what each event lacks, and the summary."""
    run = world.run("verify", "--json", *options)
    *found, summary = run.documents
    return run.exit_code, sorted((line["event_id"], line["missing"]) for line in found), summary


def test_a_row_that_expires_while_a_long_run_reads_is_no_disagreement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.settle({"id": "expiring"}, age=30 * DAY - 600)
    world.settle({"id": "young"}, age=DAY)
    for event_id in ("expiring", "young"):
        world.forget(LEDGER, event_id)
    begun = clock.now_ms()
    moments = iter([begun])
    monkeypatch.setattr(clock, "now_ms", lambda: next(moments, begun + 2_400_000))
    assert verify(world)[:2] == (1, [("young", NO_LEDGER_ROW)])


def test_empty_tables_agree(world: World) -> None:
    run = world.run("verify")
    assert (run.exit_code, run.verdict, run.stderr) == (0, "Ledger and business table agree.", "")


def test_tables_that_agree(world: World) -> None:
    for number in range(40):
        world.settle({"id": f"e-{number}"}, age=number * 1000)
    world.commit({"id": "pending"})
    run = world.run("verify")
    assert run.exit_code == 0
    assert run.stdout.splitlines() == [
        "Rows read",
        "┏━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━┓",
        "┃ table         ┃ rows                                  ┃ count ┃",
        "┡━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━┩",
        "│ ledger rows   │ compared                              │ 41    │",
        "│ business rows │ of orders, younger than 30d: compared │ 41    │",
        "└───────────────┴───────────────────────────────────────┴───────┘",
        "Pending among the ledger rows: 1, which is no disagreement.",
        "Ledger and business table agree.",
    ]


def test_each_direction_is_checked(world: World) -> None:
    for event_id in ("whole", "no-row", "no-ledger"):
        world.settle({"id": event_id}, age=500)
    world.forget(BUSINESS, "no-row", "id")
    world.forget(LEDGER, "no-ledger")
    run = world.run("verify")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[7:] == [
        "Disagreements",
        "┏━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┓",
        "┃ event id  ┃ missing      ┃ business key ┃",
        "┡━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━┩",
        "│ no-row    │ business row │ -            │",
        "│ no-ledger │ ledger row   │ id no-ledger │",
        "└───────────┴──────────────┴──────────────┘",
        "2 disagreements. Rows that were deleted, and a window that was raised, show as such too.",
    ]


def test_json_has_a_line_for_each_disagreement_and_the_summary_last(world: World) -> None:
    world.settle({"id": "a"}, age=500)
    world.settle({"id": "b"}, age=500)
    world.forget(LEDGER, "b")
    run = world.run("verify", "--json")
    assert (run.exit_code, run.stderr) == (1, "")
    assert run.documents == [
        {"event_id": "b", "missing": "ledger row", "business_key": {"id": "b"}},
        {
            "consumer": "orders",
            "sample": False,
            "ledger_rows": 1,
            "business_rows": 2,
            "compared": {"ledger_rows": 1, "business_rows": 2},
            "not_judged": {
                "expired_ledger_rows": 0,
                "older_business_rows": 0,
                "business_rows_of_unknown_age": 0,
                "business_rows_of_others": 0,
            },
            "pending": 0,
            "not_checked": None,
            "disagreements": 1,
            "verdict": "1 disagreement. Rows that were deleted, and a window that was raised, show as such too.",
        },
    ]


def test_many_disagreements_show_the_first_and_json_all(world: World) -> None:
    for number in range(130):
        world.store(BUSINESS, world.commit({"id": f"e-{number}"}, age=500).writes[0].action["Put"]["Item"])
        world.forget(LEDGER, f"e-{number}")
    run = world.run("verify")
    assert run.stdout.count(" │ ledger row ") == 20
    assert "and 110 more: --json lists all\n" in run.stdout
    code, found, summary = verify(world)
    assert (code, summary["disagreements"]) == (1, 130)
    assert found == sorted((f"e-{number}", NO_LEDGER_ROW) for number in range(130))


def test_a_pending_event_must_have_its_business_row_too(world: World) -> None:
    world.commit({"id": "a"}, age=500)
    world.forget(BUSINESS, "a", "id")
    assert verify(world)[:2] == (1, [("a", NO_BUSINESS_ROW)])


@pytest.mark.parametrize(("ttl", "found"), [(1, [("a", NO_BUSINESS_ROW)]), (0, []), (-5, [])])
def test_a_ledger_row_past_its_ttl_demands_nothing(world: World, ttl: int, found: list[Any]) -> None:
    """`ttl` is in seconds, and DynamoDB deletes a row only some time after it."""
    world.settle({"id": "a"}, age=500)
    world.forget(BUSINESS, "a", "id")
    world.store(LEDGER, {**world.ledger()["a"], "ttl": {"N": str(world.now_ms // 1000 + ttl)}})
    code, disagreements, summary = verify(world)
    assert (code, disagreements) == (len(found), found)
    assert summary["not_judged"]["expired_ledger_rows"] == (0 if found else 1)


def test_a_ledger_row_past_its_ttl_still_counts_as_seen(world: World) -> None:
    world.settle({"id": "a"}, age=500)
    world.store(LEDGER, {**world.ledger()["a"], "ttl": {"N": str(world.now_ms // 1000 - 5)}})
    assert verify(world)[:2] == (0, [])


def test_a_business_row_older_than_the_window_demands_nothing(world: World) -> None:
    world.settle({"id": "old"}, age=30 * DAY)
    world.settle({"id": "young"}, age=30 * DAY - 600)
    world.forget(LEDGER, "old")
    world.forget(LEDGER, "young")
    code, found, summary = verify(world)
    assert (code, found) == (1, [("young", NO_LEDGER_ROW)])
    assert summary["not_judged"]["older_business_rows"] == 1


def test_a_business_row_at_the_edge_of_the_window_is_not_judged(world: World) -> None:
    """Two clocks may be minutes apart, and its ledger row may just have been deleted."""
    world.settle({"id": "edge"}, age=30 * DAY - 200)
    world.forget(LEDGER, "edge")
    assert verify(world)[:2] == (0, [])


def test_a_shorter_window_is_read_from_the_settings(world: World) -> None:
    world.deploy(TTL_WINDOW_DAYS="7")
    world.settle({"id": "a"}, age=8 * DAY)
    world.forget(LEDGER, "a")
    assert verify(world)[0] == 0


def test_rows_that_do_not_say_when_they_were_written_are_counted(world: World) -> None:
    row = world.settle({"id": "a"}, age=500).writes[0].action["Put"]["Item"]
    world.store(BUSINESS, {name: value for name, value in row.items() if name != "event_committed_at"})
    assert verify(world)[0] == 0
    world.forget(LEDGER, "a")
    code, found, summary = verify(world)
    assert (code, found, summary["not_judged"]["business_rows_of_unknown_age"]) == (0, [], 1)


def test_rows_of_others_are_counted_and_not_judged(world: World) -> None:
    row = world.settle({"id": "a"}).writes[0].action["Put"]["Item"]
    world.forget(LEDGER, "a")
    world.store(BUSINESS, {**row, "event_consumer": {"S": "billing"}})
    world.store(BUSINESS, {"id": {"S": "by-hand"}})
    world.store(BUSINESS, {"id": {"S": "with-a-number"}, "event_id": {"N": "7"}, "event_consumer": {"S": "orders"}})
    code, found, summary = verify(world)
    assert (code, found, summary["not_judged"]["business_rows_of_others"]) == (0, [], 3)


def test_the_row_of_another_consumer_is_no_row_of_this_one(world: World) -> None:
    row = world.settle({"id": "a"}).writes[0].action["Put"]["Item"]
    world.store(BUSINESS, {**row, "event_consumer": {"S": "billing"}})
    assert verify(world)[:2] == (1, [("a", NO_BUSINESS_ROW)])


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"EVENT_WRITE_MODE": "upsert"},
            "with write_mode upsert a later event overwrites the row of an earlier one",
        ),
        (
            {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"},
            "with write_mode newer a later event overwrites the row of an earlier one, and a superseded one has none",
        ),
    ],
)
def test_where_rows_are_overwritten_one_direction_is_checked_and_it_says_so(
    new_world: NewWorld, settings: dict[str, str], why: str
) -> None:
    world = new_world(settings=settings)
    world.settle({"id": "overwritten", "version": 1}, age=500)
    world.forget(BUSINESS, "overwritten", "id")
    run = world.run("verify")
    assert run.exit_code == 0
    assert run.stdout.splitlines()[-2:] == [
        f"Not checked: whether each event in the ledger has its business row: {why}.",
        "Ledger and business table agree, as far as they can be compared.",
    ]
    world.settle({"id": "a", "version": 1}, age=500)
    world.forget(LEDGER, "a")
    code, found, summary = verify(world)
    assert (code, found, summary["not_checked"]) == (1, [("a", NO_LEDGER_ROW)], why)
    assert summary["compared"] == {"ledger_rows": 0, "business_rows": 1}


def test_with_code_of_the_users_own_an_event_may_write_no_row(new_world: NewWorld) -> None:
    world = new_world(handler="orders.handler")
    world.settle({"id": "a"}, age=500)
    world.forget(BUSINESS, "a", "id")
    code, _, summary = verify(world)
    assert (code, summary["not_checked"]) == (
        0,
        "the function's handler is not idempotent_consumer.handler.handler, and an event of your own code may write "
        "no row",
    )


def test_keys_are_told_as_they_are(new_world: NewWorld) -> None:
    world = new_world(
        settings={
            "BUSINESS_HASH_KEY": "customer",
            "BUSINESS_RANGE_KEY": "number",
            "BUSINESS_RANGE_KEY_TYPE": "N",
        }
    )
    world.settle({"id": "a", "customer": "c\x9b-1", "number": 7}, age=500)
    world.forget(LEDGER, "a")
    assert world.run("verify", "--json").documents[0]["business_key"] == {"customer": "c\x9b-1", "number": "7"}
    assert "│ a        │ ledger row │ customer c\\x9b-1, number 7 │" in world.run("verify").stdout


def test_a_table_whose_key_is_the_event_id_is_read_as_well(new_world: NewWorld) -> None:
    world = new_world(settings={"BUSINESS_HASH_KEY": "event_id", "EVENT_ID": "event_id"})
    world.settle({"event_id": "a"}, age=500)
    assert verify(world)[0] == 0


@pytest.mark.parametrize("segments", [1, 3, 32])
def test_all_segments_are_read_once(world: World, segments: int) -> None:
    for number in range(60):
        world.settle({"id": f"e-{number}"}, age=500)
    world.forget(LEDGER, "e-7")
    code, found, summary = verify(world, "--segments", str(segments))
    assert (code, found) == (1, [("e-7", NO_LEDGER_ROW)])
    assert (summary["ledger_rows"], summary["business_rows"]) == (59, 60)
    scans = world.requests("Scan")
    assert all(scan["ConsistentRead"] and scan["TotalSegments"] == segments for scan in scans)
    for table in (LEDGER, BUSINESS):
        assert sorted(scan["Segment"] for scan in scans if scan["TableName"] == table) == list(range(segments))


def test_a_missing_right_ends_it(world: World) -> None:
    world.settle({"id": "a"})
    world.deny("Scan")
    run = world.run("verify")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.startswith("Error: you may not call Scan: ")


def test_an_interrupted_run_says_how_far_it_came(world: World) -> None:
    for number in range(50):
        world.settle({"id": f"e-{number}"}, age=500)
    world.forget(LEDGER, "e-7")
    world.on("BatchGetItem", raises=KeyboardInterrupt())
    run = world.run("verify")
    assert (run.exit_code, run.stdout, run.stderr) == (
        130,
        "",
        "Stopped after 49 ledger rows and 50 business rows: no disagreement found so far, and not all was compared. "
        "Nothing was changed.\n",
    )
