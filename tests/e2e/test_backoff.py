"""A message that has to come back is hidden for as long as the function says, not for the queue's own timeout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.emulator import Emulator
from local.faults import Faults
from local.waiting import wait_for
from tests.e2e.permissions import Role, environment
from tests.e2e.pipeline import Pipeline, now_ms
from tests.e2e.test_faults import failing_commit

# The queue's own timeout is 15 seconds: what comes back before was hidden by the function.
SOONER_THAN_THE_QUEUE = 10


@pytest.fixture
def impatient(standard: Pipeline, emulator: Emulator) -> Iterator[Pipeline]:
    """The standard pipeline, whose function takes the queue's timeout for one second."""
    with environment(emulator, standard.function, {"VISIBILITY_TIMEOUT_SECONDS": "1", "BACKOFF_MAX_SECONDS": "3"}):
        yield standard


def test_a_message_comes_back_when_the_function_says(impatient: Pipeline, faults: Faults, event_id: str) -> None:
    since = now_ms()
    with faults.rules(failing_commit(event_id)):
        impatient.send({"id": event_id})
        impatient.wait_for_metric("Retries", since)
        wait_for(lambda: receives(impatient, since) >= {1, 2}, "a second receive", seconds=SOONER_THAN_THE_QUEUE)
    impatient.wait_until_sent(event_id)
    assert impatient.commits(event_id) == 1


def test_without_the_right_to_hide_it_a_message_comes_back_after_the_queues_timeout(
    impatient: Pipeline, emulator: Emulator, faults: Faults, event_id: str
) -> None:
    since = now_ms()
    with Role(emulator, impatient.role).without("sqs:ChangeMessageVisibility"):
        with faults.rules(failing_commit(event_id)), impatient.visibility(3):
            impatient.send({"id": event_id})
            impatient.wait_for_metric("Retries", since)
        impatient.wait_until_sent(event_id)
    assert any("no backoff: AccessDenied" in line for line in impatient.log(since))
    assert not any(line["Misconfigured"] for line in impatient.metrics(since))


def receives(pipeline: Pipeline, since_ms: int) -> set[int]:
    """The receive counts that calls have seen since then."""
    return {count for line in pipeline.metrics(since_ms) for count in line.get("ReceiveCount", [])}
