"""What the build tests share: a folder of wheels, the zips, and the Pythons at hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from idempotent_consumer_build import bytecode, cli, locked
from tests.build.support import Workshop, without_an_index


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pinned wheels, so that pip is asked once."""
    folder = tmp_path_factory.mktemp("wheels")
    locked.locked_wheels(locked.REQUIREMENTS, folder)
    return folder


@pytest.fixture(scope="session")
def fresh_zip(wheels: Path, runtime_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip as the sources are now, whether or not the shipped one is up to date."""
    path = tmp_path_factory.mktemp("fresh") / "idempotent-consumer.zip"
    assert cli.main(["--wheels", str(wheels), "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def committed_zip() -> Path:
    """The zip that the module ships."""
    path = cli.OUTPUT
    assert path.is_file(), "lambda/dist holds no zip: run python lambda/build.py"
    return path


@pytest.fixture(scope="session")
def python_of() -> Callable[[str], str]:
    """The path of a Python of a version; the test is skipped where the machine has none."""

    def find(version: str) -> str:
        found = bytecode.find_python(version)
        if found is None:
            pytest.skip(f"needs CPython {version}, which is not installed here")
        return found.path

    return find


@pytest.fixture(scope="session")
def runtime_python(python_of: Callable[[str], str]) -> str:
    """The Python that compiles the bytecode, without which no zip can be built."""
    return python_of(bytecode.RUNTIME_PYTHON)


@pytest.fixture(scope="session", params=["3.11", "3.12", "3.13"])
def python(request: pytest.FixtureRequest, python_of: Callable[[str], str]) -> str:
    """A Python of each version that the library supports, as far as this machine has them."""
    return python_of(request.param)


@pytest.fixture
def workshop(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A user's folder with one module, on a machine that reaches no index."""
    without_an_index(monkeypatch)
    shop = Workshop(tmp_path, tmp_path / "stock", tmp_path / "wheels", tmp_path / "out" / "stock.zip")
    shutil.copytree(wheels, shop.wheels)
    shop.write("stock.py", "def handler(event, context):\n    return event\n")
    return shop
