"""What the build tests share: the builder as a module, a folder of wheels, and the Pythons at hand."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    """lambda/build.py; `lambda` is a keyword, so no import statement can name it."""
    spec = importlib.util.spec_from_file_location("zip_builder", ROOT / "lambda" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def wheels(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pinned wheels, so that pip is asked once."""
    folder = tmp_path_factory.mktemp("wheels")
    builder.locked_wheels(builder.REQUIREMENTS, folder)
    return folder


@pytest.fixture(scope="session")
def fresh_zip(builder: ModuleType, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.fixture(scope="session", params=["3.11", "3.12", "3.13"])
def python(request: pytest.FixtureRequest) -> str:
    """A Python of each version that the library supports, as far as this machine has them."""
    found = find_python(request.param)
    if found is None:
        pytest.skip(f"no Python {request.param} on this machine")
    return found


def find_python(version: str) -> str | None:
    candidates = [sys.executable, shutil.which(f"python{version}")]
    if shim := shutil.which("pyenv"):
        root = subprocess.run([shim, "root"], capture_output=True, text=True, check=False).stdout.strip()
        candidates += map(str, Path(root).glob(f"versions/{version}.*/bin/python{version}"))
    return next((path for path in candidates if path and runs(path, version)), None)


def runs(path: str, version: str) -> bool:
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-I", "-c", script], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version
