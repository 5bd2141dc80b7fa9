"""The two sides as they are deployed: a zip, the runtime's Python and boto3, and the function's environment."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.events import ACCOUNT, REGION
from local.processes import clean_environment
from local.terraform import CHECKOUT

HERE = CHECKOUT / "benchmarks"
WORK = CHECKOUT / "build" / "benchmarks"
RUNTIME_REQUIREMENTS = HERE / "requirements-runtime.txt"
PEER_REQUIREMENTS = HERE / "requirements-peer.txt"
OUR_ZIP = CHECKOUT / "lambda" / "dist" / "idempotent-consumer.zip"
# The module's default runtime, and what the zip's bytecode is for.
RUNTIME_VERSION = "3.13"

LEDGER_TABLE, BUSINESS_TABLE = "orders-processed-events", "order_records"
KEYS = {LEDGER_TABLE: "event_id", BUSINESS_TABLE: "id"}
# What only the peer's Tracer needs.
_TRACING = ("aws_xray_sdk", "wrapt")
_EARLIEST_IN_A_ZIP = (1980, 1, 1, 0, 0, 0)

# What Lambda sets for the function, and what the module does.
_FUNCTION_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
    "AWS_LAMBDA_FUNCTION_NAME": "orders-worker",
    "AWS_REGION": REGION,
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:9",  # the discard port: traces go nowhere
    "BUSINESS_HASH_KEY": "id",
    "BUSINESS_HASH_KEY_TYPE": "S",
    "BUSINESS_TABLE": BUSINESS_TABLE,
    "CONSUMER_NAME": "orders",
    "DEAD_LETTER_QUEUE_URL": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders-dead-letter",
    "EVENT_ENVELOPE": "raw",
    "EVENT_ITEM": "@",
    "EVENT_WRITE_MODE": "insert",
    "LEDGER_TABLE": LEDGER_TABLE,
    "NOTIFICATION_ATTRIBUTES": "{}",
    "NOTIFICATION_MAX_BYTES": "262144",
    "NOTIFICATION_MESSAGE": "@",
    "TOPIC_ARN": f"arn:aws:sns:{REGION}:{ACCOUNT}:orders-notifications",
    "TTL_WINDOW_DAYS": "30",
}


class CannotMeasure(Exception):
    """Something is missing, or a side failed; the message says what."""


@dataclass(frozen=True)
class Runtime:
    """The Python that both sides run under, and the folder with boto3 in its bytecode."""

    python: str
    version: str
    packages: Path

    @property
    def is_default(self) -> bool:
        """Whether it is the version that functions run under unless told otherwise."""
        return self.version.startswith(f"{RUNTIME_VERSION}.")


@dataclass(frozen=True)
class Side:
    """handler: module.function. folder: its zip unpacked, where Lambda has /var/task; read-only."""

    name: str
    zip: Path
    handler: str
    folder: Path = field(default=Path())

    @property
    def module(self) -> str:
        return self.handler.rpartition(".")[0]

    def environment(self, runtime: Runtime, *more: Path) -> dict[str, str]:
        """The environment of its process; `more`: further folders to import from, behind all others."""
        path = os.pathsep.join(map(str, (self.folder, runtime.packages, *more)))
        return clean_environment(
            {
                **_FUNCTION_ENVIRONMENT,
                "LAMBDA_TASK_ROOT": str(self.folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": path,
                "_HANDLER": self.handler,
            }
        )


# --- processes ---


def run_python(runtime: Runtime, environment: Mapping[str, str], arguments: Sequence[str]) -> str:
    """What a fresh process prints. Neither the user's site-packages nor those of this environment are in its reach."""
    command = [runtime.python, "-s", "-S", "-P", *arguments]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{' '.join(arguments)} ended with status {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def run_worker(runtime: Runtime, side: Side, job: str, **parameters: Any) -> dict[str, Any]:
    """One measurement of a side by benchmarks/worker.py."""
    arguments = ["-m", "benchmarks.worker", json.dumps({"job": job, "keys": KEYS, **parameters})]
    answer: dict[str, Any] = json.loads(run_python(runtime, side.environment(runtime, CHECKOUT), arguments))
    return answer


# --- preparation ---


def find_runtime() -> Runtime:
    """Python 3.13 as far as this machine has it, else the Python at hand; with its boto3, installed once."""
    python, version = next(filter(None, map(_version, _candidates())), (sys.executable, sys.version.split()[0]))
    packages = WORK / f"runtime-{version}"
    _install(RUNTIME_REQUIREMENTS, packages, python)
    return Runtime(python, version, packages)


def _candidates() -> Iterator[str]:
    yield sys.executable
    yield f"python{RUNTIME_VERSION}"
    roots = [Path(os.environ[name]) for name in ("PYENV_ROOT",) if name in os.environ]
    for root in (*roots, Path.home() / ".pyenv"):
        yield from map(str, sorted(root.glob(f"versions/{RUNTIME_VERSION}.*/bin/python{RUNTIME_VERSION}")))


def _version(python: str) -> tuple[str, str] | None:
    """The program's own path and version, if it runs and is what is looked for."""
    if shutil.which(python) is None:
        return None
    script = "import sys; print(sys.executable, sys.version.split()[0], sep='\\n')"
    done = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, check=False)
    path, _, version = done.stdout.strip().partition("\n")
    return (path, version) if not done.returncode and version.startswith(f"{RUNTIME_VERSION}.") else None


def _install(requirements: Path, folder: Path, python: str = "") -> None:
    """Install pinned pure-Python packages into a folder, unless they are there; with `python`, in its bytecode."""
    pins = requirements.read_text()
    stamp = folder / "requirements.ok"
    if stamp.is_file() and stamp.read_text() == pins:
        return
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--only-binary", ":all:", "--python-version", RUNTIME_VERSION, "--platform", "any"]
    command += ["--implementation", "py", "--abi", "none"]
    command += ["--no-compile", "--target", str(folder), "--requirement", str(requirements)]
    _run(command, f"pip could not install {requirements.name}")
    if python:
        _run([python, "-m", "compileall", "-q", str(folder)], f"{python} could not compile {folder}")
    stamp.write_text(pins)


def _run(command: Sequence[str], problem: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{problem}:\n{done.stdout}{done.stderr}")


def build_peer(*, tracing: bool) -> Path:
    """The peer's zip: Powertools with what it needs, and the handler; no bytecode, as AWS advises. Returns its path."""
    packages = WORK / "peer"
    _install(PEER_REQUIREMENTS, packages)
    sources = {path.relative_to(packages).as_posix(): path for path in sorted(packages.rglob("*.*")) if path.is_file()}
    handlers = {path.name: path for path in sorted((HERE / "peer").glob("*.py"))}
    output = WORK / ("peer-observed.zip" if tracing else "peer.zip")
    with zipfile.ZipFile(output, "w") as opened:
        for name, path in {**sources, **handlers}.items():
            if tracing or not name.startswith(_TRACING):
                info = zipfile.ZipInfo(name, _EARLIEST_IN_A_ZIP)
                info.compress_type = zipfile.ZIP_DEFLATED
                opened.writestr(info, path.read_bytes(), compresslevel=9)
    return output


def ships_bytecode(path: Path) -> bool:
    with zipfile.ZipFile(path) as opened:
        return any(name.endswith(".pyc") for name in opened.namelist())


@contextmanager
def unpacked(side: Side) -> Iterator[Side]:
    """The side with its zip unpacked into a read-only folder, which goes with the block."""
    with tempfile.TemporaryDirectory(prefix=f"{side.name}-") as name:
        folder = Path(name) / "task"
        with zipfile.ZipFile(side.zip) as opened:
            opened.extractall(folder)
        _set_writable(folder, False)
        try:
            yield Side(side.name, side.zip, side.handler, folder)
        finally:
            _set_writable(folder, True)


def _set_writable(folder: Path, writable: bool) -> None:
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(stat.S_IRWXU if writable else stat.S_IRUSR | stat.S_IXUSR)


def our_side() -> Side:
    if not OUR_ZIP.is_file():
        raise CannotMeasure(f"{OUR_ZIP.relative_to(CHECKOUT)} is missing: run make zip")
    return Side("ours", OUR_ZIP, "idempotent_consumer.handler.handler")


def peer_side() -> Side:
    return Side("peer", build_peer(tracing=False), "orders_peer.handler")


def observed_peer_side() -> Side:
    """The peer with metrics and traces, as ours has them."""
    return Side("peer_observed", build_peer(tracing=True), "orders_peer_observed.handler")


def pinned(name: str, requirements: Path = RUNTIME_REQUIREMENTS) -> str:
    """The version of a package that is pinned."""
    return next(line for line in requirements.read_text().splitlines() if line.startswith(f"{name}==")).split("==")[1]
