"""A thousand events while calls fail, processes are killed and the topic is down: none is lost, none is doubled."""

from __future__ import annotations

import pytest

from local.consumer import Consumer
from local.faults import Faults
from local.soak_faults import Kind
from local.soak_run import Plan, Result, soak
from tests.e2e.pipeline import Pipeline, now_ms

PLAN = Plan(events=1_000, seed=1, kills=5, outage_seconds=2)
# Shorter than some calls take: what is in work is then given out a second time, and what has failed comes back soon.
VISIBILITY_SECONDS = 3


@pytest.fixture(scope="module")
def result(pipelines: dict[str, Pipeline], faults: Faults) -> Result:
    pipeline = pipelines["outage"]
    consumer = Consumer(pipeline.emulator, pipeline.outputs, pipeline.outputs["subscriber_url"])
    with pipeline.visibility(VISIBILITY_SECONDS):
        return soak(consumer, faults, PLAN, owns=lambda text: f"{PLAN.prefix}-" in text, since_ms=now_ms())


@pytest.mark.case("C28", "C58", "C62")
def test_each_event_has_its_row_written_once_and_is_published_whatever_befalls_the_calls(result: Result) -> None:
    report = result.report
    assert (report.lost, report.doubled, report.unexpected, report.problems) == (0, 0, 0, [])
    assert (report.business_rows, report.ledger_sent, report.notifications_unique) == (1_000, 1_000, 1_000)
    assert result.problems == []
    assert result.is_passed


def test_what_no_retry_could_mend_is_dead_lettered_and_all_else_is_replayed(result: Result) -> None:
    # Ten of poison, and two that had another's id.
    assert result.report.dead_lettered_unique == 12
    assert "(none)" not in result.report.dead_lettered
    assert result.replayed > 0


def test_every_kind_of_fault_has_struck_and_processes_were_killed(result: Result) -> None:
    assert {kind for kind, count in result.kinds.items() if count} == set(Kind)
    assert result.killed > 0
    assert result.report.duplicates_sent == 200
    assert result.redelivered > 0
