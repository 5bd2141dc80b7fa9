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


# The longest first, so that no worker is left with them at the end.
ORDER = ("e2e", "plan")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the layers, and say what one worker takes: all end-to-end tests, which share an apply, or a file.

    A file's tests share its fixtures.
    """
    for item in items:
        layer, *rest = _parts(item)
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("/".join([layer] if layer == "e2e" else [layer, *rest])))
    items.sort(key=lambda item: ORDER.index(layer) if (layer := _parts(item)[0]) in ORDER else len(ORDER))


def _parts(item: pytest.Item) -> tuple[str, ...]:
    return item.path.relative_to(TESTS).parts
