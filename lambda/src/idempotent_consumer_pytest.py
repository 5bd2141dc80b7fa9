"""pytest's plugin: the fixture `assert_idempotent`. It imports nothing of the library before a test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from idempotent_consumer.testing import AssertIdempotent


@pytest.fixture(scope="session")
def assert_idempotent() -> AssertIdempotent:
    """Tries a plan without AWS: see `idempotent_consumer.testing.assert_idempotent`."""
    from idempotent_consumer import testing

    return testing.assert_idempotent
