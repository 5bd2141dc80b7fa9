"""Fixtures of the command line's tests: a deployed consumer in process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.loaders import create_loader
from moto import mock_aws

from idempotent_consumer import calls
from idempotent_consumer_cli import clock
from tests.cli.support import World

_LOADER = create_loader()


@pytest.fixture
def new_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Deploys a consumer into an empty account; see `World` for the options. The clock of the command line stands."""
    worlds: list[World] = []
    now_ms = time.time_ns() // 1_000_000

    def make_api_call(client: Any, operation: str, request: dict[str, Any]) -> Any:
        return worlds[0].call(client, operation, request)

    def create(**options: Any) -> World:
        worlds.append(World(now_ms, **options))
        monkeypatch.setattr(BaseClient, "_make_api_call", make_api_call)
        monkeypatch.setattr(clock, "now_ms", lambda: worlds[0].now_ms)
        return worlds[0]

    with mock_aws():
        yield create
        monkeypatch.undo()


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world()


@pytest.fixture(autouse=True)
def _models_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command has a session of its own, which would read the models of all services it calls."""
    monkeypatch.setattr("botocore.session.create_loader", lambda search_path_string=None: _LOADER)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts after which the library would have slept."""
    attempts: list[int] = []
    monkeypatch.setattr(calls, "pause", attempts.append)
    return attempts
