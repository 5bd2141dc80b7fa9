from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.support import BUSINESS, LEDGER, World

NewWorld = Callable[..., World]
NO_KEY = "the key of a business row does not follow from the event id here; without --sample it is checked"


@pytest.fixture(autouse=True)
def _no_second_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotent_consumer_cli.verification.verifier.time.sleep", lambda seconds: None)


def sample(world: World, size: int) -> tuple[int, list[tuple[str, str]], Any]:
    run = world.run("verify", "--json", "--sample", str(size))
    *found, summary = run.documents
    return run.exit_code, sorted((line["event_id"], line["missing"]) for line in found), summary


def fill(world: World, count: int) -> None:
    for number in range(count):
        world.settle({"id": f"e-{number}"}, age=500)


def test_a_sample_reads_about_as_much_as_is_asked_for(world: World) -> None:
    fill(world, 600)
    code, found, summary = sample(world, 50)
    assert (code, found, summary["sample"]) == (0, [], True)
    assert 50 <= summary["compared"]["ledger_rows"] < 100
    assert 50 <= summary["compared"]["business_rows"] < 100
    assert {scan["TotalSegments"] for scan in world.requests("Scan")} == {60}


def test_a_sample_says_that_it_is_one(world: World) -> None:
    fill(world, 3)
    assert world.run("verify", "--sample", "2").verdict == "In the sample, ledger and business table agree."


def test_a_sample_larger_than_the_tables_reads_all_of_them(world: World) -> None:
    fill(world, 300)
    world.forget(BUSINESS, "e-3", "id")
    world.forget(LEDGER, "e-4")
    code, found, summary = sample(world, 5000)
    assert (code, found) == (1, [("e-3", "business row"), ("e-4", "ledger row")])
    assert summary["compared"] == {"ledger_rows": 299, "business_rows": 299}


def test_each_page_of_a_sample_takes_one_look_up(world: World) -> None:
    fill(world, 100)
    sample(world, 100)
    pages = len(world.requests("Scan"))
    assert pages <= 20
    assert len(world.requests("BatchGetItem")) <= pages


def test_samples_differ(world: World) -> None:
    fill(world, 600)
    for _ in range(2):
        sample(world, 20)
    starts = [scan["Segment"] for scan in world.requests("Scan")]
    assert len(set(starts)) > len(starts) // 4


@pytest.mark.parametrize(
    ("settings", "data", "key"),
    [
        ({}, {"id": "a"}, {"id": {"S": "a"}}),
        ({"BUSINESS_HASH_KEY_TYPE": "N"}, {"id": 70}, {"id": {"N": "70"}}),
        (
            {"BUSINESS_HASH_KEY": "order-id", "EVENT_ID": '"order-id"'},
            {"order-id": "a"},
            {"order-id": {"S": "a"}},
        ),
    ],
)
def test_a_key_that_is_the_event_id_is_looked_up(
    new_world: NewWorld, settings: dict[str, str], data: dict[str, Any], key: dict[str, Any]
) -> None:
    world = new_world(settings=settings)
    world.settle(data, age=500)
    code, _, summary = sample(world, 5)
    assert (code, summary["not_checked"], summary["compared"]["ledger_rows"]) == (0, None, 1)
    assert world.requests("BatchGetItem")[0]["RequestItems"][BUSINESS]["Keys"] == [key]


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"EVENT_ITEM": "{id: id}"}, {"id": "a"}),
        ({"EVENT_ID": "order"}, {"id": "a", "order": "o"}),
        ({"BUSINESS_RANGE_KEY": "line"}, {"id": "a", "line": "1"}),
        # The attribute has a dot in its name, the path goes down a level.
        ({"BUSINESS_HASH_KEY": "order.id", "EVENT_ID": "order.id"}, {"order.id": "a", "order": {"id": "a"}}),
    ],
    ids=["an item of its own", "another path", "a range key", "a path that looks like the key"],
)
def test_where_keys_do_not_follow_from_ids_one_direction_is_sampled_and_it_says_so(
    new_world: NewWorld, settings: dict[str, str], data: dict[str, Any]
) -> None:
    world = new_world(settings=settings)
    world.settle(data, age=500)
    run = world.run("verify", "--sample", "5")
    assert run.exit_code == 0
    assert run.stdout.splitlines()[-2:] == [
        f"Not checked: whether each event in the ledger has its business row: {NO_KEY}.",
        "In the sample, ledger and business table agree, as far as they can be compared.",
    ]
    assert {scan["TableName"] for scan in world.requests("Scan")} == {BUSINESS}


def test_without_a_sample_such_keys_are_no_hindrance(new_world: NewWorld) -> None:
    world = new_world(settings={"EVENT_ID": "order"})
    world.settle({"id": "a", "order": "o"}, age=500)
    world.settle({"id": "b", "order": "p"}, age=500)
    world.forget(BUSINESS, "b", "id")
    run = world.run("verify", "--json")
    assert run.documents[0] == {"event_id": "p", "missing": "business row", "business_key": None}
    assert run.documents[1]["not_checked"] is None


def test_rows_that_are_not_judged_do_not_make_it_endless(world: World) -> None:
    for number in range(200):
        world.store(BUSINESS, {"id": {"S": f"by-hand-{number}"}})
    _, _, summary = sample(world, 5)
    assert summary["compared"]["business_rows"] == 0
    assert 50 <= summary["business_rows"] < 60


def test_an_interrupted_sample_says_how_far_it_came(world: World) -> None:
    fill(world, 30)
    world.forget(BUSINESS, "e-3", "id")
    world.on("BatchGetItem", raises=KeyboardInterrupt(), calls=[1])
    run = world.run("verify", "--sample", "100")
    assert run.exit_code == 130
    assert run.stderr.startswith("Stopped after ")
    assert run.stderr.endswith("no disagreement found so far, and not all was compared. Nothing was changed.\n")
