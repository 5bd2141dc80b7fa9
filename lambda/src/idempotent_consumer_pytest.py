"""The pytest plugin of the test kit: a fixture `assert_idempotent` for the tests of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def assert_idempotent() -> Callable[..., Any]:
    """See `idempotent_consumer.testing.assert_idempotent`."""
    # Here, since pytest loads each plugin in each run.
    from idempotent_consumer.testing import assert_idempotent

    return assert_idempotent
