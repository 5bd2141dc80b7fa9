"""The Python that the pages show is strictly typed, runs, and does what is said of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from tests.docs.pages import Block, each
from tests.docs.python_blocks import OF_THE_FUNCTION, PIECES, first_line, is_test, pieces, pieces_test, programs

# As its users have it: from an installed package, without this checkout's settings.
STRICT = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-incremental"]
AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
LIBRARY = CHECKOUT / "lambda" / "src"

STOCK_TEST = """
from readme import plan
from idempotent_consumer.testing import assert_idempotent


def test_the_counter_moves_once_per_event() -> None:
    events = [{"id": f"o-{number}", "sku": "A", "quantity": 4} for number in range(3)]
    result = assert_idempotent(plan, events, rows={"stock": [{"sku": "A", "free": 10}]})
    assert result.rows("stock") == [{"sku": "A", "free": 2}]
    assert result.outcomes == {"o-0": "applied", "o-1": "applied", "o-2": "rejected"}
    assert result.reasons == {"o-2": "out-of-stock"}
    assert result.announced("o-0") == [{"order": "o-0"}]
"""

CHARGE_TEST = """
import json
from typing import Any

import pytest
from urllib3 import PoolManager
from urllib3.response import HTTPResponse

import payments
from idempotent_consumer import Event, Final, Retryable, Uncertain

ORDER = Event("o-1", {"id": "o-1", "cents": 500}, "f")
asked: list[Any] = []


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(status: int) -> None:
        def request(self: PoolManager, *arguments: Any, **options: Any) -> HTTPResponse:
            asked.append((arguments, options))
            return HTTPResponse(body=b'{"id": "ch_1"}', status=status)

        monkeypatch.setattr(PoolManager, "request", request)

    return answer


def test_an_order_is_charged_with_its_key(answer: Any) -> None:
    answer(201)
    assert payments.charge(ORDER, "key-1") == "ch_1"
    (arguments, options), = asked
    assert arguments == ("POST", "https://payments.example.com/charges")
    assert json.loads(options["body"]) == {"order": "o-1", "cents": 500}
    assert options["headers"]["Idempotency-Key"] == "key-1"


@pytest.mark.parametrize(("status", "kind"), [(402, Final), (429, Retryable), (503, Uncertain), (302, Uncertain)])
def test_what_else_it_says_is_what_is_known(answer: Any, status: int, kind: type[BaseException]) -> None:
    answer(status)
    with pytest.raises(kind):
        payments.charge(ORDER, "key-1")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs and their tests, those that pages show and those that are written here."""
    folder = tmp_path_factory.mktemp("python")
    for name, block in programs().items():
        place = folder / "function" if block.page in OF_THE_FUNCTION else folder
        place.mkdir(exist_ok=True)
        (place / f"{name}.py").write_text(block.text, encoding="utf-8")
    (folder / "test_readme.py").write_text(STOCK_TEST, encoding="utf-8")
    (folder / "test_payments.py").write_text(CHARGE_TEST, encoding="utf-8")
    (folder / "test_pieces.py").write_text(pieces_test(), encoding="utf-8")
    return folder


def run(command: list[str], folder: Path, *path: Path) -> tuple[int, str]:
    environment = AWS | {"PYTHONPATH": ":".join(map(str, path)), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


def pytest_in(folder: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *options]
    return run([*command, "--rootdir=."], folder, folder, LIBRARY, CHECKOUT, CHECKOUT / "lambda")


@each(pieces())
def test_a_piece_is_known(block: Block) -> None:
    assert first_line(block) in PIECES, (
        f"{block.where} is neither a whole program (which begins with its imports) nor a known piece: make it whole, "
        "or say in tests/docs/python_blocks.py what it takes for granted"
    )


def test_the_programs_and_pieces_run_and_their_tests_pass(folder: Path) -> None:
    others = [name for name, block in programs().items() if not is_test(block)]
    (folder / "test_imports.py").write_text("".join(f"import {name}\n" for name in others), encoding="utf-8")
    status, said = pytest_in(folder, "--ignore=function", ".")
    # Six are above, the others are the pages' own.
    shown = sum(is_test(block) and block.page not in OF_THE_FUNCTION for block in programs().values()) + len(pieces())
    assert (status, f"{6 + shown} passed" in said) == (0, True), said


def test_the_tests_of_the_function_that_a_page_shows_pass(folder: Path) -> None:
    status, said = pytest_in(folder, "-p", "tests.handler.conftest", "function")
    assert (status, "1 passed" in said) == (0, True), said


def test_the_programs_and_their_tests_are_strictly_typed(folder: Path) -> None:
    files = [f"{name}.py" for name, block in programs().items() if block.page not in OF_THE_FUNCTION]
    status, said = run([*STRICT, *files], folder, folder, LIBRARY)
    assert (status, said) == (0, f"Success: no issues found in {len(files)} source files\n")
