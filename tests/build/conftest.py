"""What the build tests share: the builder as a module, a folder of wheels, and the Pythons at hand."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILDER = ROOT / "lambda"
# As lambda/build.py finds its other module when it is run.
sys.path.insert(0, str(BUILDER))


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    """lambda/build.py; `lambda` is a keyword, so no import statement can name it."""
    spec = importlib.util.spec_from_file_location("zip_builder", BUILDER / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def bytecode() -> ModuleType:
    """lambda/bytecode.py, the module that the builder uses."""
    return importlib.import_module("bytecode")


@pytest.fixture(scope="session")
def wheels(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pinned wheels, so that pip is asked once."""
    folder = tmp_path_factory.mktemp("wheels")
    builder.locked_wheels(builder.REQUIREMENTS, folder)
    return folder


@pytest.fixture(scope="session")
def fresh_zip(builder: ModuleType, wheels: Path, runtime_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip as the sources are now, whether or not the shipped one is up to date."""
    path = tmp_path_factory.mktemp("fresh") / "idempotent-consumer.zip"
    assert builder.main(["--wheels", str(wheels), "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def committed_zip(builder: ModuleType) -> Path:
    """The zip that the module ships."""
    path: Path = builder.OUTPUT
    assert path.is_file(), "lambda/dist holds no zip: run python lambda/build.py"
    return path


@pytest.fixture(scope="session")
def python_of(bytecode: ModuleType) -> Callable[[str], str]:
    """The path of a Python of a version; the test is skipped where the machine has none."""

    def find(version: str) -> str:
        found = bytecode.find_python(version)
        if found is None:
            pytest.skip(f"needs CPython {version}, which is not installed here")
        path: str = found.path
        return path

    return find


@pytest.fixture(scope="session")
def runtime_python(bytecode: ModuleType, python_of: Callable[[str], str]) -> str:
    """The Python that compiles the bytecode, without which no zip can be built."""
    return python_of(bytecode.RUNTIME_PYTHON)


@pytest.fixture(scope="session", params=["3.11", "3.12", "3.13"])
def python(request: pytest.FixtureRequest, python_of: Callable[[str], str]) -> str:
    """A Python of each version that the library supports, as far as this machine has them."""
    return python_of(request.param)
