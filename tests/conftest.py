"""What all layers of tests share: no AWS account in reach, and an order that fills two cores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the end-to-end tests, which mostly wait, and keep each file on one worker.

    The end-to-end tests share one apply, so they are one group. A file's tests share its fixtures.
    """
    for item in items:
        layer, *rest = item.path.relative_to(TESTS).parts
        if not item.get_closest_marker("xdist_group"):
            group = layer if layer == "e2e" else "/".join([layer, *rest])
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] != "e2e")
