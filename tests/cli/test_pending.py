from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.support import LEDGER, World

NewWorld = Callable[..., World]
NOW_MS = 1_893_553_446_000


def event_ids(document: Any) -> list[str]:
    return [entry["event_id"] for entry in document["events"]]


@pytest.fixture(params=["index", "scan"])
def either(request: pytest.FixtureRequest, new_world: NewWorld) -> World:
    """A ledger with its index, and one without."""
    world = new_world(index=request.param == "index")
    world.now_ms = NOW_MS
    return world


def test_nothing_pending(either: World) -> None:
    either.settle({"id": "done"}, age=9999)
    run = either.run("pending")
    assert (run.exit_code, run.stdout) == (0, "No event is pending.\n")


def test_each_pending_event_is_listed_oldest_first(either: World) -> None:
    either.commit({"id": "younger"}, age=60, message_id="m-2")
    either.commit({"id": "older", "note": "äö"}, age=3725)
    either.settle({"id": "done"}, age=9999)
    run = either.run("pending")
    assert run.exit_code == 1
    assert run.stdout.splitlines() == [
        "Pending events of orders",
        "┏━━━━━━━━━━┳━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┓",
        "┃ event id ┃ age   ┃ committed at              ┃ last message id ┃ notification bytes ┃",
        "┡━━━━━━━━━━╇━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━┩",
        "│ older    │ 1h 2m │ 2030-01-02T02:02:01+00:00 │ m-1             │ 47                 │",
        "│ younger  │ 1m    │ 2030-01-02T03:03:06+00:00 │ m-2             │ 37                 │",
        "└──────────┴───────┴───────────────────────────┴─────────────────┴────────────────────┘",
        "1 pending for longer than the visibility timeout (3m): idempotent-consumer reconcile --name orders",
    ]


def test_json_is_one_document(new_world: NewWorld) -> None:
    world = new_world()
    world.now_ms = NOW_MS
    world.commit({"id": "a"}, age=200)
    run = world.run("pending", "--json")
    assert (run.exit_code, run.stderr) == (1, "")
    assert run.document == {
        "consumer": "orders",
        "by": "index",
        "total": 1,
        "stale": 1,
        "events": [
            {
                "event_id": "a",
                "age_seconds": 200,
                "committed_at": "2030-01-02T03:00:46+00:00",
                "message_id": "m-1",
                "notification_bytes": 25,
            }
        ],
        "unread": "",
        "verdict": "1 pending for longer than the visibility timeout (3m): idempotent-consumer reconcile --name orders",
    }


def test_a_young_event_may_be_in_work(either: World) -> None:
    either.commit({"id": "a"}, age=179)
    run = either.run("pending")
    assert (run.exit_code, run.verdict) == (0, "1 pending, none for longer than the visibility timeout (3m).")


def test_only_older_ones_are_listed_where_that_is_asked(either: World) -> None:
    for age in (30, 899, 900, 901):
        either.commit({"id": f"aged-{age}"}, age=age)
    document = either.run("pending", "--older-than", "15m", "--json").document
    assert event_ids(document) == ["aged-901", "aged-900"]
    assert (document["total"], document["stale"]) == (2, 2)
    run = either.run("pending", "--older-than", "1h")
    assert (run.exit_code, run.verdict) == (0, "No event is pending for over 1h.")


def test_an_age_beyond_all_is_no_error(either: World) -> None:
    either.commit({"id": "a"}, age=100)
    assert either.run("pending", "--older-than", "999999999d").exit_code == 0


def test_what_goes_over_the_limit_is_counted(either: World) -> None:
    for number in range(7):
        either.commit({"id": f"e-{number}"}, age=1000 - number)
    either.commit({"id": "young"})
    run = either.run("pending", "--limit", "3")
    assert run.exit_code == 1
    assert "│ e-2 " in run.stdout
    assert "│ e-3 " not in run.stdout
    assert run.stdout.splitlines()[-2:] == [
        "and 5 more: list them with --limit 8",
        "7 pending for longer than the visibility timeout (3m): idempotent-consumer reconcile --name orders",
    ]
    document = either.run("pending", "--limit", "3", "--json").document
    assert (event_ids(document), document["total"]) == (["e-0", "e-1", "e-2"], 8)


def test_many_pages_are_read_in_order(either: World) -> None:
    for number in range(250):
        either.commit({"id": f"e-{number:03}"}, age=5000 - number)
    document = either.run("pending", "--limit", "240", "--json").document
    assert event_ids(document) == [f"e-{number:03}" for number in range(240)]
    assert document["total"] == 250


def test_what_the_index_still_shows_though_it_is_settled_is_left_out(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.commit({"id": "b"}, age=300)
    world.on("BatchGetItem", runs=lambda: world.mark("a"))
    document = world.run("pending", "--json").document
    assert (event_ids(document), document["total"], document["stale"]) == (["b"], 1, 1)


def test_an_id_does_not_steer_the_terminal(either: World) -> None:
    either.commit({"id": "a\x9b2Jb\u202e[red]"}, age=10)
    out = either.run("pending").stdout
    assert "│ a\\x9b2Jb\\u202e[red] │" in out
    assert not set(out) & {"\x9b", "\u202e"}


def test_a_row_whose_notification_is_broken_is_listed_without_its_size(either: World) -> None:
    either.commit({"id": "a"}, age=400)
    either.store(LEDGER, {**either.ledger()["a"], "notification": {"S": "{"}})
    (entry,) = either.run("pending", "--json").document["events"]
    assert (entry["message_id"], entry["notification_bytes"]) == ("m-1", None)


def test_rows_that_may_not_be_read_are_listed_all_the_same(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.deny("BatchGetItem")
    run = world.run("pending")
    assert run.exit_code == 1
    assert "│ a        │ 6m 40s │ " in run.stdout
    assert (
        "Message ids and bytes are missing where a row could not be read (BatchGetItem: AccessDeniedException).\n"
    ) in run.stdout


@pytest.mark.parametrize("operation", ["DescribeTable", "Query"])
def test_a_missing_right_is_named(world: World, operation: str) -> None:
    world.commit({"id": "a"})
    world.deny(operation)
    run = world.run("pending")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.startswith(f"Error: you may not call {operation}: ")


def test_a_missing_right_to_scan_is_named(new_world: NewWorld) -> None:
    world = new_world(index=False)
    world.deny("Scan")
    run = world.run("pending")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "Error: you may not call Scan: " in run.stderr


def test_an_index_that_is_still_being_built_is_not_asked(world: World) -> None:
    def building(request: Any, effect: Callable[[], Any]) -> Any:
        answer = effect()
        answer["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] = "CREATING"
        return answer

    world.commit({"id": "a"}, age=400)
    world.on("DescribeTable", answers=building)
    assert world.run("pending", "--json").document["by"] == "scan"
    assert world.requests("Query") == []


def test_a_row_without_its_time_is_taken_for_old(new_world: NewWorld) -> None:
    world = new_world(index=False)
    row = world.commit({"id": "a"}).ledger_item
    world.store(LEDGER, {name: value for name, value in row.items() if name != "created_at"})
    run = world.run("pending", "--json")
    assert run.exit_code == 1
    assert run.document["events"][0]["committed_at"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(("created_at", "age", "stale"), [("{}.5", 400, 1), ("1E+30", 0, 0)])
def test_a_time_edited_by_hand_ends_no_command(either: World, created_at: str, age: int, stale: int) -> None:
    row = either.commit({"id": "a"}).ledger_item
    number = created_at.format(NOW_MS - 400_000)
    either.store(LEDGER, {**row, "created_at": {"N": number}})
    document = either.run("pending", "--json").document
    (entry,) = document["events"]
    assert (entry["age_seconds"], document["total"], document["stale"]) == (age, 1, stale)
    status = either.run("status", "--json").document["pending"]
    assert (status["count"], status["stale"], status["oldest_age_seconds"]) == (1, stale, age)
    document = either.run("reconcile", "--json").document
    assert (document["found"], document["published"]) == (stale, stale)


def test_an_event_of_a_clock_that_is_ahead_is_listed(either: World) -> None:
    either.commit({"id": "a"}, age=-5)
    assert event_ids(either.run("pending", "--json").document) == ["a"]


def test_a_time_of_another_type_is_taken_for_old(new_world: NewWorld) -> None:
    world = new_world(index=False)
    world.store(LEDGER, {**world.commit({"id": "a"}).ledger_item, "created_at": {"S": "yesterday"}})
    run = world.run("pending", "--json")
    assert (run.exit_code, run.document["stale"]) == (1, 1)


def test_without_the_topic_it_has_to_come_back_first(either: World) -> None:
    either.commit({"id": "a"}, age=400)
    either.deploy(TOPIC_ARN=None)
    run = either.run("pending")
    assert (run.exit_code, run.verdict) == (
        1,
        "1 pending for longer than the visibility timeout (3m): the topic has to come back (notification.create_topic "
        "or topic_arn), then idempotent-consumer reconcile --name orders",
    )
