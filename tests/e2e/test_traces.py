"""What the X-Ray daemon hears."""

from __future__ import annotations

import time
from typing import Any

import pytest

from local.waiting import wait_for
from tests.e2e.conftest import Traces
from tests.e2e.pipeline import Pipeline


def test_commit_publish_and_mark_are_subsegments_of_one_trace(
    standard: Pipeline, traces: Traces, event_id: str
) -> None:
    since = time.time()
    standard.send({"id": event_id})
    standard.wait_until_sent(event_id)

    def phases() -> dict[str, dict[str, Any]]:
        return {document["name"]: document for document in traces.since(since)}

    wait_for(lambda: phases().keys() >= {"commit", "publish", "mark"}, "three subsegments")
    found = phases()
    assert {found[name]["trace_id"] for name in ("commit", "publish", "mark")} == {found["commit"]["trace_id"]}
    assert {found[name]["parent_id"] for name in ("publish", "mark")} == {found["commit"]["parent_id"]}
    assert found["commit"]["annotations"] == {"applied": 1}
    assert found["publish"]["annotations"] == {"published": 1, "failed": 0}
    assert found["mark"]["annotations"] == {"marked": 1, "failed": 0}


@pytest.mark.case("C72")
def test_a_silent_daemon_is_no_reason_to_fail(standard: Pipeline, traces: Traces, event_id: str) -> None:
    """The daemon's protocol is UDP: nobody answers, and nobody need listen."""
    standard.send({"id": event_id})
    standard.wait_until_sent(event_id)
    assert len(standard.steady_notifications(event_id)) == 1
