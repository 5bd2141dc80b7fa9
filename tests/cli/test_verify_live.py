"""`verify` while the consumer works: what happens meanwhile is no disagreement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.support import BUSINESS, LEDGER, World

Effect = Callable[[], Any]


@pytest.fixture(autouse=True)
def second_looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited."""
    seconds: list[float] = []
    monkeypatch.setattr("idempotent_consumer_cli.verification.verifier.time.sleep", seconds.append)
    return seconds


def first_scan_of(table: str, then: Callable[[], Any]) -> Callable[[dict[str, Any], Effect], Any]:
    """Does something before a table is scanned; to be had with one segment, of several another may come first."""
    pending = [then]

    def answer(request: dict[str, Any], effect: Effect) -> Any:
        if request["TableName"] == table and pending:
            pending.pop()()
        return effect()

    return answer


def test_the_ledger_is_read_before_the_business_table(world: World) -> None:
    world.run("verify")
    tables = [scan["TableName"] for scan in world.requests("Scan")]
    assert tables == [LEDGER] * 8 + [BUSINESS] * 8


def test_an_event_that_is_committed_between_the_scans_is_no_disagreement(
    world: World, second_looks: list[float]
) -> None:
    world.settle({"id": "before"}, age=500)
    world.on("Scan", answers=first_scan_of(BUSINESS, lambda: world.commit({"id": "between"})))
    run = world.run("verify", "--json", "--segments", "1")
    assert (run.exit_code, run.document["business_rows"], run.document["ledger_rows"]) == (0, 2, 1)
    assert second_looks == []
    (looked_up,) = world.requests("BatchGetItem")
    assert looked_up["RequestItems"][LEDGER]["ConsistentRead"]
    assert looked_up["RequestItems"][LEDGER]["Keys"] == [{"event_id": {"S": "between"}}]


def test_a_ledger_row_that_shows_an_instant_later_is_looked_for_again(world: World, second_looks: list[float]) -> None:
    commit = world.settle({"id": "a"}, age=5)
    world.forget(LEDGER, "a")

    def later(request: dict[str, Any], effect: Effect) -> Any:
        answer = effect()
        world.store(LEDGER, commit.ledger_item)
        return answer

    world.on("BatchGetItem", calls=[1], answers=later)
    assert world.run("verify").exit_code == 0
    assert second_looks == [1]


def test_only_for_a_recent_row_is_there_a_second_look(world: World, second_looks: list[float]) -> None:
    world.settle({"id": "a"}, age=3600)
    world.forget(LEDGER, "a")
    assert world.run("verify").exit_code == 1
    assert second_looks == []
    assert len(world.requests("BatchGetItem")) == 1


def test_a_ledger_row_that_expires_meanwhile_demands_nothing(world: World) -> None:
    world.settle({"id": "a"}, age=500)
    world.forget(BUSINESS, "a", "id")
    world.on("Scan", answers=first_scan_of(BUSINESS, lambda: world.forget(LEDGER, "a")))
    assert world.run("verify", "--segments", "1").exit_code == 0


def test_a_business_row_that_no_page_held_is_looked_up_by_its_key(world: World) -> None:
    row = world.settle({"id": "a"}, age=500).writes[0].action["Put"]["Item"]
    world.forget(BUSINESS, "a", "id")
    world.on("BatchGetItem", calls=[1], runs=lambda: world.store(BUSINESS, row))
    assert world.run("verify").exit_code == 0
    (looked_up,) = world.requests("BatchGetItem")
    assert looked_up["RequestItems"][BUSINESS]["Keys"] == [{"id": {"S": "a"}}]


def throttled(request: dict[str, Any], effect: Effect) -> Any:
    return {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}


def test_a_throttled_look_up_is_made_again(world: World) -> None:
    world.settle({"id": "a"}, age=3600)
    world.forget(LEDGER, "a")
    world.on("BatchGetItem", calls=[1, 2], answers=throttled)
    assert world.run("verify").exit_code == 1
    assert len(world.requests("BatchGetItem")) == 3


def test_a_look_up_that_stays_throttled_ends_it(world: World) -> None:
    world.settle({"id": "a"}, age=3600)
    world.forget(LEDGER, "a")
    world.on(
        "BatchGetItem", answers=lambda request, effect: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
    )
    run = world.run("verify")
    assert (run.exit_code, run.stderr) == (
        2,
        "Error: orders-processed-events is throttled: rows could not be read in 8 attempts. Run it again later\n",
    )
