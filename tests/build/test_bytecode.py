"""The bytecode in the zip: the default runtime runs it, each machine builds the same, and the check knows it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from idempotent_consumer_build import archive, bytecode, make
from tests.build.support import FUNCTION_ENVIRONMENT, copy_of_the_sources, rewrite, run, runtime_packages

DOC = "wrapt/__pycache__/doc.cpython-313.pyc"
MAGIC_OF_313 = b"\xf3\r\r\n"

# What the functions do not import.
NOT_IMPORTED = (
    "aws_xray_sdk/core/async_context.py",
    "aws_xray_sdk/core/plugins/ec2_plugin.py",
    "aws_xray_sdk/core/plugins/ecs_plugin.py",
    "aws_xray_sdk/core/plugins/elasticbeanstalk_plugin.py",
    "aws_xray_sdk/core/utils/sqs_message_helper.py",
    "aws_xray_sdk/ext/",
)

# A module that reads differently with each thing that a compiler may take from its surroundings.
SOURCES = {
    "orders/__init__.py": b"",
    "orders/names.py": b"NAMES = {'a', 'b', 'c', 'd'}\ndef known(name):\n    return name in {'x', 'y', 'z', 'w'}\n",
    "orders/plan.py": b'"""A docstring."""\nclass Plan:\n    total = 12345.5\n    def run(self):\n'
    b"        assert self.total\n        return lambda order: ('order', order, 4711, 'a text with blanks')\n",
    "plan.py": b"import orders.plan\nPATH = __file__\n",
}


# --- what the zip holds ---


def test_each_source_that_is_imported_has_its_bytecode_and_no_bytecode_is_without_its_source(fresh_zip: Path) -> None:
    names = contents(fresh_zip)
    sources = {name for name in names if name.endswith(".py") and not name.startswith(NOT_IMPORTED)}
    bytecode = {name for name in names if name.endswith(".pyc")}

    assert {source_of(name) for name in bytecode} == sources
    assert len(bytecode) == len(sources) > 50


def test_python_takes_the_bytecode_without_a_look_at_the_source(fresh_zip: Path) -> None:
    headers = {data[:8] for name, data in contents(fresh_zip).items() if name.endswith(".pyc")}

    # PEP 552: a hash instead of a time, and not to be checked.
    assert headers == {MAGIC_OF_313 + b"\x01\x00\x00\x00"}


def test_paths_in_the_bytecode_are_those_of_the_function(fresh_zip: Path) -> None:
    bytecode = {name: data for name, data in contents(fresh_zip).items() if name.endswith(".pyc")}

    assert [name for name, data in bytecode.items() if f"/var/task/{source_of(name)}".encode() not in data] == []


def test_the_zip_names_the_release_that_compiled_it(fresh_zip: Path, runtime_python: str) -> None:
    script = "import platform; print(platform.python_version())"
    release = subprocess.run([runtime_python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()

    with zipfile.ZipFile(fresh_zip) as opened:
        assert opened.comment.decode() == f"bytecode: Python {release}"


def test_the_default_runtime_runs_the_bytecode_and_the_others_the_sources(
    fresh_zip: Path, tmp_path: Path, python: str
) -> None:
    task = tmp_path / "task"
    with zipfile.ZipFile(fresh_zip) as opened:
        opened.extractall(task)
    for source in task.rglob("*.py"):
        source.write_text("raise SystemExit('compiled from its source')\n", "utf-8")
    script = "import sys; sys.path[:0] = sys.argv[1:]; import idempotent_consumer.handler; print(sys.version_info[:2])"
    packages = runtime_packages(tmp_path / "runtime")

    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", script, str(task), str(packages)],
        env=FUNCTION_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )

    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    expected = ("(3, 13)\n", "") if version.startswith("Python 3.13.") else ("", "compiled from its source\n")
    assert (done.stdout, done.stderr) == expected


# --- the same on each machine ---


def test_bytecode_depends_neither_on_the_hash_seed_nor_on_what_is_compiled_beside_it(runtime_python: str) -> None:
    python = bytecode.find_python()
    assert python is not None

    # Each run of the compiler has a hash seed of its own.
    together = [bytecode.compiled(SOURCES, python) for _ in range(3)]
    alone: dict[str, bytes] = {}
    for name in reversed(SOURCES):
        alone |= bytecode.compiled({name: SOURCES[name]}, python)

    assert list(together[0]) == [
        "orders/__pycache__/__init__.cpython-313.pyc",
        "orders/__pycache__/names.cpython-313.pyc",
        "orders/__pycache__/plan.cpython-313.pyc",
        "__pycache__/plan.cpython-313.pyc",
    ]
    assert together[0] == together[1] == together[2] == alone


def test_bytecode_keeps_docstrings_and_assertions(runtime_python: str) -> None:
    python = bytecode.find_python()
    assert python is not None

    compiled = bytecode.compiled(SOURCES, python)["orders/__pycache__/plan.cpython-313.pyc"]

    script = "import marshal, sys; exec(marshal.loads(sys.stdin.buffer.read()[16:])); print(__doc__); Plan.total = 0; "
    done = subprocess.run(
        [runtime_python, "-I", "-c", script + "Plan().run()"], input=compiled, capture_output=True, check=False
    )

    assert done.stdout == b"A docstring.\n"
    assert b"AssertionError" in done.stderr


def test_bytecode_of_the_library_and_the_tracing_sdk_goes_without_docstrings(runtime_python: str) -> None:
    python = bytecode.find_python()
    assert python is not None
    sources = {
        "aws_xray_sdk/core/recorder.py": b'"""Another docstring."""\n',
        "idempotent_consumer/event.py": b'"""A docstring."""\n',
        "idempotent_consumer_of_mine.py": b'"""Kept."""\n',
    }

    compiled = bytecode.compiled(sources, python)

    assert b"A docstring." not in compiled["idempotent_consumer/__pycache__/event.cpython-313.pyc"]
    assert b"Another docstring." not in compiled["aws_xray_sdk/core/__pycache__/recorder.cpython-313.pyc"]
    assert b"Kept." in compiled["__pycache__/idempotent_consumer_of_mine.cpython-313.pyc"]


def test_bytecode_of_the_library_goes_without_annotations_of_functions(runtime_python: str) -> None:
    python = bytecode.find_python()
    assert python is not None
    source = (
        b"from dataclasses import dataclass, fields\n@dataclass\nclass Row:\n    key: str\n"
        b"    async def read(self, *keys: bytes, **options: float) -> None:\n        pass\n"
        b"def claim(row: Row, /, key: int = 1, *, why: str = 'x') -> bool:\n    raise ValueError(key)\n"
        b"for function in (claim, Row.read):\n    print(function.__annotations__, function.__code__.co_firstlineno)\n"
        b"print([field.name for field in fields(Row)])\nclaim(Row('k'))\n"
    )

    compiled = bytecode.compiled({"idempotent_consumer/row.py": source}, python)[
        "idempotent_consumer/__pycache__/row.cpython-313.pyc"
    ]

    script = "import marshal, sys; exec(marshal.loads(sys.stdin.buffer.read()[16:]))"
    done = subprocess.run([runtime_python, "-I", "-c", script], input=compiled, capture_output=True, check=False)
    assert done.stdout == b"{} 7\n{} 5\n['key']\n"
    # A traceback still names the place.
    assert b'File "/var/task/idempotent_consumer/row.py", line 8, in claim' in done.stderr


# --- the check where the compiler is missing ---


def test_check_without_the_compiler_says_so_and_passes(
    wheels: Path, fresh_zip: Path, capsys: pytest.CaptureFixture[str], no_compiler: str
) -> None:
    assert run(wheels, "--check", "--output", str(fresh_zip)) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("up to date: ")
    assert said[1:] == [
        f"not compared: the bytecode, since Python {no_compiler}, which compiled it, is not on this machine"
    ]


def test_check_without_the_compiler_does_not_read_the_bytecode(
    wheels: Path, fresh_zip: Path, tmp_path: Path, no_compiler: str
) -> None:
    tampered = tmp_path / "tampered.zip"
    rewrite(fresh_zip, tampered, tamper=lambda info, data: data + b"?" if info.filename == DOC else data)

    assert run(wheels, "--check", "--output", str(tampered)) == 0


def other_source(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return data + b"\n" if info.filename == "wrapt/doc.py" else data


def other_kind(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return data[:4] + b"\x03" + data[5:] if info.filename == DOC else data


def no_bytecode(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return None if info.filename == DOC else data


def without_source(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    if info.filename == DOC:
        info.filename = "wrapt/__pycache__/docs.cpython-313.pyc"
    return data


@pytest.mark.parametrize(
    ("tamper", "lines"),
    [
        (other_source, ["  content  wrapt/doc.py"]),
        (other_kind, [f"  content  {DOC}"]),
        (no_bytecode, [f"  missing  {DOC}"]),
        (without_source, [f"  missing  {DOC}", "  extra    wrapt/__pycache__/docs.cpython-313.pyc"]),
    ],
    ids=["other source", "other kind of bytecode", "no bytecode", "bytecode without source"],
)
def test_check_without_the_compiler_still_refuses_all_else(
    wheels: Path,
    fresh_zip: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    no_compiler: str,
    tamper: Callable[[zipfile.ZipInfo, bytes], bytes | None],
    lines: list[str],
) -> None:
    tampered = tmp_path / "tampered.zip"
    rewrite(fresh_zip, tampered, tamper=tamper)

    assert run(wheels, "--check", "--output", str(tampered)) == 1

    said = capsys.readouterr()
    assert said.err.splitlines()[1:-1] == lines
    assert said.out.startswith("not compared: the bytecode, since Python 3.13.")


def test_check_takes_no_other_release_than_the_one_that_compiled_the_zip(
    wheels: Path, fresh_zip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere.zip"
    rewrite(fresh_zip, elsewhere, tamper=lambda info, data: data + b"?" if info.filename == DOC else data)
    with zipfile.ZipFile(elsewhere, "a") as opened:
        opened.comment = b"bytecode: Python 3.13.99"

    assert run(wheels, "--check", "--output", str(elsewhere)) == 0

    assert capsys.readouterr().out.splitlines()[1:] == [
        "not compared: the bytecode, since Python 3.13.99, which compiled it, is not on this machine"
    ]


@pytest.mark.parametrize("comment", [b"", b"bytecode: Python 3.12.1", b"bytecode: Python 3.130.1", b"\xff"])
def test_a_zip_that_names_no_release_of_the_runtime_is_compared_with_any(
    wheels: Path, fresh_zip: Path, tmp_path: Path, comment: bytes
) -> None:
    unnamed = tmp_path / "unnamed.zip"
    rewrite(fresh_zip, unnamed, tamper=lambda info, data: data + b"?" if info.filename == DOC else data)
    with zipfile.ZipFile(unnamed, "a") as opened:
        opened.comment = comment

    assert run(wheels, "--check", "--output", str(unnamed)) == 1


# --- the build ---


def test_a_build_without_the_compiler_ends_with_a_message_and_writes_nothing(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], no_compiler: str
) -> None:
    assert run(wheels, "--output", str(tmp_path / "never.zip")) == 2

    assert capsys.readouterr().err.splitlines() == [
        "cannot build: the zip ships bytecode of Python 3.13, the function's default runtime, which is not on this "
        "machine.",
        "Install it and run this again: `uv python install 3.13`, `pyenv install 3.13` or "
        "https://www.python.org/downloads/",
    ]
    assert not (tmp_path / "never.zip").exists()


def test_a_build_by_another_release_that_compiles_the_same_leaves_the_zip_alone(
    wheels: Path, fresh_zip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere.zip"
    shutil.copyfile(fresh_zip, elsewhere)
    with zipfile.ZipFile(elsewhere, "a") as opened:
        opened.comment = b"bytecode: Python 3.13.99"
    before = elsewhere.read_bytes()

    assert run(wheels, "--output", str(elsewhere)) == 0

    assert capsys.readouterr().out.startswith("up to date: ")
    assert elsewhere.read_bytes() == before


def test_a_source_that_does_not_compile_is_refused_by_name(wheels: Path, tmp_path: Path, runtime_python: str) -> None:
    elsewhere = copy_of_the_sources(tmp_path / "lambda")
    (elsewhere / "src" / "idempotent_consumer" / "plan.py").write_text("def plan(event)\n    return event\n", "utf-8")
    command = [sys.executable, str(elsewhere / "build.py"), "--wheels", str(wheels)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith("cannot build: Python 3.13.")
    assert "does not compile idempotent_consumer/plan.py: " in done.stderr
    assert "line 1" in done.stderr and "expected ':'" in done.stderr
    assert not (elsewhere / "dist").exists()


# --- finding the compiler ---


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A machine without Pythons, to which scripts that answer like one are added."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))

    def add(place: str, answer: str) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{answer}\n", "utf-8")
        path.chmod(0o755)
        return path

    return add


def test_a_machine_without_the_runtimes_python_has_no_compiler(machine: Callable[[str, str], Path]) -> None:
    machine("bin/python3.12", "echo CPython 3.12.1")

    assert bytecode.find_python() is None


def test_the_compiler_on_the_path_is_found(machine: Callable[[str, str], Path]) -> None:
    path = machine("bin/python3.13", "echo CPython 3.13.7")

    assert bytecode.find_python() == bytecode.Python(str(path), "3.13.7")
    assert bytecode.find_python("3.13.7") == bytecode.Python(str(path), "3.13.7")
    assert bytecode.find_python("3.13.70") is None


def test_a_release_is_not_taken_for_one_whose_number_begins_like_it(machine: Callable[[str, str], Path]) -> None:
    machine("bin/python3.13", "echo CPython 3.13.10")

    assert bytecode.find_python("3.13.1") is None


def test_one_of_pyenvs_is_found_behind_a_shim_that_does_not_run(machine: Callable[[str, str], Path]) -> None:
    machine("bin/python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    machine("pyenv/versions/3.13.1/bin/python3.13", "echo CPython 3.13.1")
    wanted = machine("pyenv/versions/3.13.4/bin/python3.13", "echo CPython 3.13.4")

    assert bytecode.find_python("3.13.4") == bytecode.Python(str(wanted), "3.13.4")


@pytest.mark.parametrize("answer", ["echo CPythont 3.13.1", "echo CPythond 3.13.1", "echo PyPy 3.13.1"])
def test_a_python_of_another_build_does_not_compile_for_the_runtime(
    machine: Callable[[str, str], Path], answer: str
) -> None:
    machine("bin/python3.13", answer)

    assert bytecode.find_python() is None


# --- tools of the tests ---


@pytest.fixture
def no_compiler(fresh_zip: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Takes the compiler away once the zip is built; the release of it."""
    release = archive.compiled_by(fresh_zip)
    assert release is not None
    monkeypatch.setattr(make, "find_python", lambda version="": None)
    return release


def contents(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def source_of(bytecode: str) -> str:
    return bytecode.replace("__pycache__/", "").removesuffix(".cpython-313.pyc") + ".py"
