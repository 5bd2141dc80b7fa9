"""What the build tests do to zips: run the builder, copy a zip with a change, unpack it as the function sees it."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import botocore
import pytest

from idempotent_consumer_build import cli

ROOT = Path(__file__).resolve().parents[2]

# What the Lambda runtime brings along, as far as the library needs it.
RUNTIME = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six.py", "urllib3")

# What the module sets for the function; the handler may read it while it is imported.
FUNCTION_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_LAMBDA_FUNCTION_NAME": "orders",
    "AWS_REGION": "eu-central-1",
    "AWS_SECRET_ACCESS_KEY": "test",
    "BUSINESS_HASH_KEY": "id",
    "BUSINESS_HASH_KEY_TYPE": "S",
    "BUSINESS_TABLE": "order_records",
    "CONSUMER_NAME": "orders",
    "DEAD_LETTER_QUEUE_URL": "http://127.0.0.1:9/000000000000/orders-dead-letter",
    "EVENT_ENVELOPE": "raw",
    "EVENT_FINGERPRINT": "@",
    "EVENT_ITEM": "@",
    "EVENT_WRITE_MODE": "insert",
    "LEDGER_TABLE": "orders-processed-events",
    "NOTIFICATION_ATTRIBUTES": "{}",
    "NOTIFICATION_MAX_BYTES": "262144",
    "NOTIFICATION_MESSAGE": "@",
    "TOPIC_ARN": "arn:aws:sns:eu-central-1:000000000000:orders",
    "TTL_WINDOW_DAYS": "30",
}


def run(wheels: Path, *arguments: str) -> int:
    return cli.main(["--wheels", str(wheels), *arguments])


@dataclass(frozen=True)
class Workshop:
    """A folder of a user's code, the wheels at hand, and the zip that is built of them."""

    root: Path
    source: Path
    wheels: Path
    output: Path

    def write(self, name: str, content: str | bytes = "") -> Path:
        """Puts a file into the user's folder."""
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def build(self, *arguments: str) -> int:
        return run(self.wheels, "--source", str(self.source), "--output", str(self.output), *arguments)

    def contents(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.output) as opened:
            return {name: opened.read(name) for name in opened.namelist()}

    def added(self) -> list[str]:
        """The members that come neither from the library nor from its requirements, without the bytecode."""
        own = ("idempotent_consumer/", "aws_xray_sdk", "wrapt", "licenses/aws_xray_sdk-", "licenses/wrapt-")
        return [name for name in self.contents() if not name.startswith(own) and not name.endswith(".pyc")]

    def wheel(
        self,
        name: str,
        version: str,
        files: Mapping[str, str | bytes],
        *,
        tag: str = "py3-none-any",
        metadata: Sequence[str] = (),
    ) -> Path:
        """Puts a wheel beside those of the library. metadata: further lines of its METADATA."""
        path = self.wheels / f"{name}-{version}-{tag}.whl"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, ""]
        with zipfile.ZipFile(path, "w") as opened:
            for member, content in files.items():
                opened.writestr(member, content)
            opened.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines))
            opened.writestr(f"{name}-{version}.dist-info/RECORD", "")
        return path


def elf(machine: int) -> bytes:
    """How a compiled file begins. machine: the code of its processor, 0xB7 for aarch64, 0x3E for x86_64."""
    return b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + machine.to_bytes(2, "little")


def names_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def copy_of_the_sources(target: Path) -> Path:
    """lambda/ without what has been built."""
    shutil.copytree(ROOT / "lambda", target, ignore=shutil.ignore_patterns("dist", "__pycache__"))
    return target


def rewrite(
    source: Path,
    target: Path,
    *,
    level: int = 9,
    reverse: bool = False,
    tamper: Callable[[zipfile.ZipInfo, bytes], bytes | None] = lambda _, data: data,
) -> None:
    """Copies a zip member by member; `tamper` may change each one, or drop it with None."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        new.comment = old.comment
        for info in sorted(old.infolist(), key=lambda info: info.filename, reverse=reverse):
            copy = zipfile.ZipInfo(info.filename, info.date_time)
            copy.create_system, copy.external_attr = info.create_system, info.external_attr
            copy.compress_type = info.compress_type
            data = tamper(copy, old.read(info))
            if data is not None:
                new.writestr(copy, data, compresslevel=level)


def unpacked_read_only(archive: Path, target: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
        opened.extractall(target)
    for path in target.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return target


def runtime_packages(target: Path) -> Path:
    """A folder with the packages of the Lambda runtime alone, out of the environment that runs the tests."""
    installed = Path(botocore.__file__).parents[1]
    target.mkdir()
    for name in RUNTIME:
        (target / name).symlink_to(installed / name)
    return target


def without_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
