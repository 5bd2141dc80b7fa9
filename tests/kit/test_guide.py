"""The programs that README.md, docs/writing-a-plan.md and docs/operations.md show do what is said of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from local.terraform import CHECKOUT

# As its users have it: from an installed package, without this checkout's settings.
STRICT = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-incremental"]

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


def blocks(page: str) -> list[str]:
    """The Python of a page."""
    return re.findall(r"```python\n(.*?)```", (CHECKOUT / page).read_text(encoding="utf-8"), re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    program, test, *_ = blocks("docs/writing-a-plan.md")
    (folder / "visits").mkdir()
    (folder / "visits" / "visits.py").write_text(program, encoding="utf-8")
    (folder / "test_visits.py").write_text(test, encoding="utf-8")
    (folder / "readme.py").write_text(blocks("README.md")[0], encoding="utf-8")
    (folder / "test_readme.py").write_text(STOCK_TEST, encoding="utf-8")
    (folder / "payments.py").write_text(blocks("docs/operations.md")[0], encoding="utf-8")
    (folder / "test_payments.py").write_text(CHARGE_TEST, encoding="utf-8")
    return folder


def run(command: list[str], folder: Path) -> tuple[int, str]:
    environment = {"PYTHONPATH": f"visits:{CHECKOUT / 'lambda' / 'src'}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_tests_of_the_programs_pass(folder: Path) -> None:
    status, said = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], folder)
    assert (status, "7 passed" in said) == (0, True), said


def test_the_programs_and_their_tests_are_strictly_typed(folder: Path) -> None:
    status, said = run([*STRICT, "visits/visits.py", "readme.py", "test_visits.py", "payments.py"], folder)
    assert (status, said) == (0, "Success: no issues found in 4 source files\n")


@pytest.mark.parametrize("number", [2, 3, 4])
def test_each_other_piece_of_the_guide_compiles(number: int) -> None:
    compile(blocks("docs/writing-a-plan.md")[number], "writing-a-plan.md", "exec")
