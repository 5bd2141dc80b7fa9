"""The installed package: what an operator gets from pip, without this checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# Runs every module of the command line, then says which modules were imported.
IMPORT_ALL = """
import sys
from click.testing import CliRunner
from idempotent_consumer_cli.main import COMMANDS, main
for command in COMMANDS:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0, result.output
import idempotent_consumer, idempotent_consumer_cli
print(idempotent_consumer.__file__)
print(idempotent_consumer_cli.__file__)
print(*sorted(name for name in sys.modules if "xray" in name or "telemetry" in name or "powertools" in name))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    _pip("install", "--no-deps", "--no-index", "--no-compile", "--target", str(folder), str(wheel))
    return folder


def test_the_wheel_holds_the_command_line_the_library_and_the_builder_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "idempotent_consumer",
        "idempotent_consumer_build",
        "idempotent_consumer_cli",
        "idempotent_consumer_pytest.py",
        "idempotent_consumer-0.5.0.dist-info",
    }
    assert "idempotent_consumer_cli/commands/status.py" in names
    assert {"idempotent_consumer/py.typed", "idempotent_consumer_cli/py.typed"} <= set(names)
    assert "idempotent_consumer/testing/__init__.py" in names


def test_the_installed_program_tells_its_version_and_its_commands(installed: Path) -> None:
    program = installed / "bin" / "idempotent-consumer"
    assert _run(installed, str(program), "--version") == "idempotent-consumer, version 0.5.0\n"
    assert "  reconcile  Publish the notifications of events" in _run(installed, str(program), "--help")


def test_the_package_runs_as_a_module_too(installed: Path) -> None:
    assert _run(installed, "-m", "idempotent_consumer_cli", "--version").endswith(", version 0.5.0\n")


@pytest.mark.case("C72")
def test_no_command_imports_the_tracing_of_the_function(installed: Path) -> None:
    library, command_line, traced = _run(installed, "-c", IMPORT_ALL).splitlines()
    assert traced == ""
    assert Path(library).is_relative_to(installed)
    assert Path(command_line).is_relative_to(installed)


def _pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _run(installed: Path, *arguments: str) -> str:
    """Run Python in another folder, so that of the checkout nothing is found but its requirements."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=installed,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
