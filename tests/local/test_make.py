"""What make says on a machine that lacks something, and that the demo ends cleanly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from local.waiting import wait_for


def make(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": os.environ["HOME"]}
    command = [shutil.which("make") or "make", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder to be the PATH, with what make itself needs."""
    for name in ("sh", "cut"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_missing_python_is_named(tools: Path) -> None:
    answer = make("prerequisites", path=str(tools))
    assert answer.returncode != 0
    assert "python3 is not installed. Python 3.11 or newer is needed" in answer.stderr


def test_an_old_python_is_refused_with_a_way_out(tools: Path) -> None:
    script(tools / "python3", 'case "$1" in -V) echo "Python 3.9.18";; *) exit 1;; esac')
    answer = make("prerequisites", path=str(tools))
    assert answer.returncode != 0
    assert "Python 3.11 or newer is needed; python3 is 3.9.18." in answer.stderr
    assert "PYTHON=python3.12" in answer.stderr


def test_a_missing_terraform_is_named_before_anything_is_installed(tools: Path) -> None:
    (tools / "python3").symlink_to(sys.executable)
    answer = make("prerequisites", path=str(tools))
    assert answer.returncode != 0
    assert "terraform is not installed. Install Terraform 1.9 or newer" in answer.stderr


def test_an_old_terraform_is_refused(tools: Path) -> None:
    (tools / "python3").symlink_to(sys.executable)
    script(tools / "terraform", 'echo \'{"terraform_version": "1.5.7", "platform": "linux_amd64"}\'')
    answer = make("prerequisites", path=str(tools))
    assert answer.returncode != 0
    assert "is Terraform 1.5.7; 1.9 or newer is needed" in answer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    work = tmp_path / "work"
    program = (
        "import sys; from pathlib import Path; from local.demo import __main__ as demo\n"
        f"demo.WORK = Path({str(work)!r}); demo.RESULT = Path({str(tmp_path / 'demo.json')!r})\n"
        "sys.exit(demo.main([]))\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    wait_for(lambda: "terraform apply" in demo.stdout.readline(), "the apply begins")  # type: ignore[union-attr]
    assert list(tmp_path.glob("emulator-*"))
    demo.send_signal(number)
    assert demo.wait(timeout=20) == 130
    assert not list(tmp_path.glob("emulator-*"))
    assert [path.name for path in work.iterdir()] == ["emulator.log"]
