"""The fixture as a user's tests get it by pytest's plugin; here whether or not that is installed."""

from __future__ import annotations

import pytest

from idempotent_consumer.testing import purity
from idempotent_consumer_pytest import assert_idempotent

__all__ = ["assert_idempotent"]


@pytest.fixture
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the processes of their own, which take most of the time, and are tried elsewhere."""
    monkeypatch.setattr(purity, "in_other_processes", lambda *_: [])
