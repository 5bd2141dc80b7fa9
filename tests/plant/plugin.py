"""pytest's side of a run with a planted fault: which tests failed, and how, and whose code was tested."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

REPORT = "PLANT_REPORT"
# What lies in the checkout, by the name it is imported by. An installed copy of it must not be tested instead.
OWN = (
    "idempotent_consumer",
    "idempotent_consumer_build",
    "idempotent_consumer_cli",
    "idempotent_consumer_pytest",
    "local",
    "tests",
)

_failed: dict[str, str] = {}
_passed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.failed:
        error = call.excinfo.typename if call.excinfo is not None else "failed"
        _failed.setdefault(item.nodeid, error if report.when == "call" else f"{report.when}: {error}")
    elif report.when == "call" and report.passed:
        _passed.add(item.nodeid)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {
        "failed": _failed,
        "passed": sorted(_passed - _failed.keys()),
        "strangers": strangers(session.config.rootpath, sys.modules),
    }
    Path(os.environ[REPORT]).write_text(json.dumps(found))


def strangers(root: Path, modules: Iterable[str]) -> list[str]:
    """The files of the checkout's own modules that do not lie in `root`."""
    own = [sys.modules[name] for name in list(modules) if name.partition(".")[0] in OWN]
    files = [Path(file).resolve() for module in own if (file := getattr(module, "__file__", None))]
    return sorted(str(file) for file in files if not file.is_relative_to(root.resolve()))
