"""Fixtures of the tests that run in process."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws

from idempotent_consumer import calls, consumer, group_commit, grouping, side_by_side, telemetry
from idempotent_consumer.aws import Clients
from tests.handler.support import NOW_MS, Cloud


@pytest.fixture(scope="session")
def clients() -> Clients:
    """As the function makes them; moto stands behind them wherever `cloud` is used."""
    return Clients.create()


@pytest.fixture
def new_cloud(clients: Clients) -> Iterator[Callable[..., Cloud]]:
    """Makes an empty cloud, taking away the one before."""
    mocks: list[Any] = []

    def take_away() -> None:
        while mocks:
            mocks.pop().stop()

    def create(**options: bool) -> Cloud:
        take_away()
        mock = mock_aws()
        mock.start()
        mocks.append(mock)
        return Cloud(clients, **options)

    yield create
    take_away()


@pytest.fixture
def cloud(new_cloud: Callable[..., Cloud]) -> Cloud:
    return new_cloud()


@pytest.fixture
def fifo_cloud(new_cloud: Callable[..., Cloud]) -> Cloud:
    """A FIFO queue's dead-letter queue is FIFO; the topic is not."""
    return new_cloud(fifo_queue=True)


@pytest.fixture(autouse=True)
def _fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "now_ms", lambda: NOW_MS)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts after which the library would have slept."""
    attempts: list[int] = []
    monkeypatch.setattr(calls, "pause", attempts.append)
    return attempts


@pytest.fixture(autouse=True)
def _calls_in_order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing and marking call by call, so that a call's number names what it holds; else marked `side_by_side`."""
    if not request.node.get_closest_marker("side_by_side"):
        monkeypatch.setattr(side_by_side, "CALLS", 1)


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the marker `alone`, each event has a transaction of its own, so that a call's number names one event."""
    if request.node.get_closest_marker("alone"):
        monkeypatch.setattr(grouping, "MAX_EVENTS", 1)
        monkeypatch.setattr(group_commit, "MAX_EVENTS", 1)
        monkeypatch.setattr(consumer, "PART", 25)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str, str, str]]]:
    """The verdicts in the log: message id, outcome, reason, detail."""
    caplog.set_level(logging.INFO)

    def verdicts() -> list[tuple[str, str, str, str]]:
        return [
            (fields["message_id"], fields["outcome"], fields["reason"], fields.get("detail", ""))
            for fields in (entry.__dict__ for entry in caplog.records)
            if "outcome" in fields
        ]

    return verdicts


@pytest.fixture
def metrics(capsys: pytest.CaptureFixture[str]) -> Callable[[], dict[str, Any]]:
    """The one line of metrics that an invocation prints."""

    def read() -> dict[str, Any]:
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 1
        return json.loads(lines[0])  # type: ignore[no-any-return]

    return read
