"""The two sides as they are deployed."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from pathlib import Path

import boto3
import pytest

from benchmarks.sides import (
    PEER_REQUIREMENTS,
    RUNTIME_REQUIREMENTS,
    CannotMeasure,
    Runtime,
    Side,
    our_side,
    run_python,
    run_worker,
    ships_bytecode,
    unpacked,
)
from local.terraform import CHECKOUT

LIBRARY = CHECKOUT / "lambda" / "src"


def pins(requirements: Path) -> dict[str, str]:
    lines = [line for line in requirements.read_text().splitlines() if line and not line.startswith("#")]
    return dict(re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)  # type: ignore[union-attr,misc]


@pytest.fixture
def runtime() -> Runtime:
    """The Python and the packages of the tests."""
    return Runtime(sys.executable, "", Path(boto3.__file__).parents[1])


@pytest.fixture
def checkout() -> Side:
    """Our side as it lies in the checkout, not in the zip."""
    return Side("ours", Path(), "idempotent_consumer.handler.handler", LIBRARY)


def test_both_sides_get_the_versions_that_the_tests_run_with() -> None:
    installed = pins(CHECKOUT / "requirements-dev.txt")
    peer = pins(PEER_REQUIREMENTS)

    assert pins(RUNTIME_REQUIREMENTS).items() <= installed.items()
    assert peer.pop("aws-lambda-powertools") == "3.37.0"
    assert peer.items() <= installed.items()


def test_ten_new_events_cost_three_calls_and_ten_redelivered_ones_one(runtime: Runtime, checkout: Side) -> None:
    seen = {kind: found["calls"] for kind, found in run_worker(runtime, checkout, "calls").items()}

    assert seen == {
        "new": {"BatchExecuteStatement": 1, "PublishBatch": 1, "TransactWriteItems": 1},
        "redelivered": {"BatchGetItem": 1},
        "large": {"BatchExecuteStatement": 1, "PublishBatch": 1, "TransactWriteItems": 1},
        "resent": {"BatchExecuteStatement": 1, "BatchGetItem": 1, "PublishBatch": 1, "TransactWriteItems": 2},
        "mixed": {"BatchExecuteStatement": 1, "BatchGetItem": 1, "PublishBatch": 1, "TransactWriteItems": 1},
    }


def test_a_batch_is_measured_with_its_memory(runtime: Runtime, checkout: Side) -> None:
    found = run_worker(runtime, checkout, "batch", size=100, records=200)

    assert sorted(found) == ["peak_bytes", "seconds_per_record"]
    assert found["seconds_per_record"] > 0


def test_a_side_that_fails_says_why(runtime: Runtime, checkout: Side) -> None:
    with pytest.raises(CannotMeasure, match=r"(?s)ended with status 1:.*KeyError: 'no-such-job'"):
        run_worker(runtime, checkout, "no-such-job")


def test_a_process_imports_from_its_zip_first_and_from_no_site_packages(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("")
    side = Side("ours", Path(), "json.handler", tmp_path)
    alone = Runtime(runtime.python, "", tmp_path / "no-packages")

    script = "import sys, json; print(json.__file__, any('site-packages' in path for path in sys.path))"

    assert run_python(alone, side.environment(alone), ["-c", script]) == f"{tmp_path}/json.py False\n"


def test_a_process_sees_none_of_the_user_s_own_settings(checkout: Side, runtime: Runtime) -> None:
    environment = checkout.environment(runtime)

    assert environment["AWS_CONFIG_FILE"] == os.devnull
    assert environment["AWS_LAMBDA_FUNCTION_NAME"] == "orders-worker"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL", "HTTP_PROXY"} & environment.keys()


def test_a_zip_is_unpacked_read_only_and_goes_with_the_block(tmp_path: Path) -> None:
    zip_path = tmp_path / "function.zip"
    with zipfile.ZipFile(zip_path, "w") as opened:
        opened.writestr("package/module.py", "")

    with unpacked(Side("ours", zip_path, "package.module.handler")) as side:
        assert (side.folder / "package" / "module.py").is_file()
        assert [path.stat().st_mode & 0o222 for path in (side.folder, side.folder / "package")] == [0, 0]

    assert not side.folder.exists()


@pytest.mark.parametrize(
    ("member", "expected"),
    [("module.py", False), ("__pycache__/module.cpython-313.pyc", True)],
)
def test_a_zip_with_bytecode_is_known(tmp_path: Path, member: str, expected: bool) -> None:
    with zipfile.ZipFile(tmp_path / "function.zip", "w") as opened:
        opened.writestr(member, "")

    assert ships_bytecode(tmp_path / "function.zip") is expected


def test_our_side_is_the_committed_zip() -> None:
    side = our_side()

    assert side.zip == CHECKOUT / "lambda" / "dist" / "idempotent-consumer.zip"
    assert side.module == "idempotent_consumer.handler"
