"""Compiles the zip's sources ahead of time, by the Python of the function's runtime.

The function's disk is read-only, so without this each cold start would compile all that it imports. The bytecode is of
the kind that Python takes without a look at the source (PEP 552, unchecked hash): unpacking may set any file times,
and to change a source in the zip without building it again has no effect. Other versions of Python pass it over, by
its name, and compile the sources.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from idempotent_consumer_build.problem import CannotBuild

# The function's default runtime, and that of the zip that ships with the module.
RUNTIME_PYTHON = "3.13"

# The bytecode of the library and of the X-Ray SDK goes without docstrings, assertions and the annotations of functions,
# which neither of them reads; other packages may use theirs.
BARE = ("idempotent_consumer/", "aws_xray_sdk/")
# What patches other libraries, is for asyncio, or for EC2, ECS and Elastic Beanstalk: the functions import none of it.
NOT_IMPORTED = (
    "aws_xray_sdk/core/async_context",
    "aws_xray_sdk/core/plugins/e",
    "aws_xray_sdk/core/utils/sqs_",
    "aws_xray_sdk/ext/",
)

# Where the function finds its code: Python need not correct the paths in what it loads.
TASK_ROOT = "/var/task"
UNCHECKED_HASH = (1).to_bytes(4, "little")

FIND_SECONDS = 20
COMPILE_SECONDS = 300

_WHICH_PYTHON = """
import platform, sys
print(platform.python_implementation() + getattr(sys, "abiflags", ""), platform.python_version())
"""
_COMPILE = """
import ast, importlib.util, json, marshal, py_compile, sys
folder, task_root, *bare = sys.argv[1:]
failed = {}

def compile_bare(name):
    with open(f"{folder}/{name}", "rb") as opened:
        source = opened.read()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    code = compile(tree, f"{task_root}/{name}", "exec", dont_inherit=True, optimize=2)
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    with open(f"{folder}/{name}c", "wb") as opened:
        opened.write(header + marshal.dumps(code))

for name in sys.stdin.read().splitlines():
    try:
        if name.startswith(tuple(bare)):
            compile_bare(name)
            continue
        py_compile.compile(
            f"{folder}/{name}",
            cfile=f"{folder}/{name}c",
            dfile=f"{task_root}/{name}",
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except py_compile.PyCompileError as problem:
        failed[name] = str(problem.exc_value)
    except (SyntaxError, ValueError) as problem:
        failed[name] = f"{type(problem).__name__}: {problem}"
print(json.dumps(failed))
"""


class CannotCompile(CannotBuild):
    """There is no bytecode to ship; the message says why and what to do."""


@dataclass(frozen=True)
class Python:
    """An interpreter of this machine. release: as in 3.13.0, since the bytecode may differ from one to the next."""

    path: str
    release: str

    @property
    def version(self) -> str:
        return minor(self.release)


def compiled(members: Mapping[str, bytes], python: Python, optional: Collection[str] = ()) -> dict[str, bytes]:
    """The bytecode of each source among the members, by its path in the zip.

    optional: sources that have none if they do not compile, as some packages hold templates, or tests of a syntax.
    """
    sources = {name: members[name] for name in worth_compiling(members)}
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in sources.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        failed = run_compiler(python, scratch, sources)
        for name, reason in failed.items():
            if name not in optional:
                raise CannotCompile(f"Python {python.release} does not compile {name}: {reason}")
        return {
            bytecode_name(name, python.version): Path(scratch, f"{name}c").read_bytes()
            for name in sources
            if name not in failed
        }


def uncompiled(members: Mapping[str, bytes], version: str = RUNTIME_PYTHON) -> dict[str, bytes]:
    """The same paths with no more than the kind of bytecode, for a machine without the Python that compiles it."""
    return {bytecode_name(name, version): bytes(4) + UNCHECKED_HASH for name in worth_compiling(members)}


def worth_compiling(names: Iterable[str]) -> list[str]:
    """The sources whose bytecode a function may load."""
    return sorted(name for name in names if name.endswith(".py") and not name.startswith(NOT_IMPORTED))


def kind(bytecode: bytes) -> bytes:
    """How Python decides whether the bytecode fits its source: the flags in its header."""
    return bytecode[4:8]


def bytecode_name(source: str, version: str = RUNTIME_PYTHON) -> str:
    path = PurePosixPath(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.cpython-{version.replace('.', '')}.pyc")


def find_python(version: str = RUNTIME_PYTHON) -> Python | None:
    """The CPython of a release (3.13.0), or of any of a version (3.13): the running one, on PATH, or one of pyenv's."""
    for path in candidates(minor(version)):
        release = release_of(path)
        if release is not None and f"{release}.".startswith(f"{version}."):
            return Python(path, release)
    return None


def minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def candidates(minor: str) -> Iterator[str]:
    yield sys.executable
    on_path = shutil.which(f"python{minor}")
    if on_path is not None:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{minor}.*/bin/python{minor}")))


def release_of(path: str) -> str | None:
    """The release of an interpreter; None for what does not run, or is not the CPython that the runtime has."""
    command = [path, "-I", "-S", "-c", _WHICH_PYTHON]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FIND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    name, _, release = done.stdout.strip().partition(" ")
    return release if name == "CPython" else None


def run_compiler(python: Python, folder: str, names: Iterable[str]) -> dict[str, str]:
    """Writes name.pyc beside each name.py, and returns the reasons of those that do not compile.

    Neither the user's settings nor the machine's locale play a part. The compiler must not have loaded what it
    compiles: which strings it marks as interned depends on what it holds.
    """
    command = [python.path, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", _COMPILE, folder, TASK_ROOT, *BARE]
    listed = "\n".join(names).encode()
    try:
        done = subprocess.run(command, input=listed, capture_output=True, timeout=COMPILE_SECONDS, check=False)
    except subprocess.TimeoutExpired as problem:
        raise CannotCompile(f"Python {python.release} took over {COMPILE_SECONDS} s to compile") from problem
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip()
        raise CannotCompile(f"Python {python.release} cannot compile: {reason}")
    failed: dict[str, str] = json.loads(done.stdout)
    return failed
