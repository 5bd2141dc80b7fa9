"""What all layers of tests share: no AWS account in reach, and an order that fills two cores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent

for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


# The longest first, so that no worker is left with them at the end.
ORDER = ("e2e", "plan", "docs")
# End-to-end tests with an emulator and an apply of their own; the others share one.
OWN_APPLY = ("test_examples.py", "test_operations.py", "test_workflows.py", "test_writing_a_plan.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the layers."""
    layers = {id(item): item.path.relative_to(TESTS).parts[0] for item in items}
    items.sort(key=lambda item: ORDER.index(layer) if (layer := layers[id(item)]) in ORDER else len(ORDER))


class ByFixtures(LoadScopeScheduling):  # type: ignore[misc]
    """One worker takes the tests of a file, which share its fixtures, or all end-to-end tests that share an apply.

    pytest-xdist's own grouping by marks adds to the tests' ids, which pytest 9.2 does not let it do.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "e2e" if "/e2e/" in file and not file.endswith(OWN_APPLY) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFixtures:
    return ByFixtures(config, log)
