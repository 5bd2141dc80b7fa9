"""The event fixtures are sound, since other tests take them for what producers really send."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "events"
FILES = sorted(FOLDER.glob("*.json"))


def test_readme_has_one_line_for_each_file() -> None:
    lines = re.findall(r"^\| `([a-z0-9_]+\.json)` \| .+ \|$", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)

    assert sorted(lines) == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_fixture_is_an_object_without_repeated_keys_or_real_accounts(path: Path) -> None:
    text = path.read_text("utf-8")

    assert isinstance(json.loads(text, object_pairs_hook=without_repeats), dict)
    assert set(re.findall(r"(?<![0-9a-zA-Z])\d{12}(?![0-9a-zA-Z])", text)) <= {"111122223333"}
    assert set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)) <= {"192.0.2.17"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("sqs_*.json")), ids=lambda path: path.stem)
def test_digests_fit_the_body_and_the_attributes(path: Path) -> None:
    event = json.loads(path.read_text("utf-8"))

    for record in event.get("Records", []):
        assert record["md5OfBody"] == md5(record["body"].encode())
        assert record.get("md5OfMessageAttributes") == attributes_md5(record["messageAttributes"])
    for message in event.get("Messages", []):
        assert message["MD5OfBody"] == md5(message["Body"].encode())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("body_s3_put_encoded_key", "in/a b+c (1).csv"),
        ("body_s3_put_percent_key", "offers/100% off %20.csv"),
        ("body_s3_put_non_ascii_key", "in/Zürich/日本 📦.csv"),
        ("body_s3_put_colon_key_upper_case", "logs/2030-01-02T03:04:05.gz"),
        ("body_s3_put_colon_key_lower_case", "logs/2030-01-02T03:04:05.gz"),
    ],
)
def test_an_encoded_key_stands_for_the_object_that_the_readme_names(name: str, key: str) -> None:
    record = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["Records"][0]

    assert unquote_plus(record["s3"]["object"]["key"]) == key
    assert f"`{key}`" in (FOLDER / "README.md").read_text("utf-8")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def attributes_md5(attributes: dict[str, Any]) -> str | None:
    """As SQS computes it: names sorted, each part with its length, and a byte that tells text from binary."""
    digest = b""
    for name in sorted(attributes):
        value = attributes[name]
        binary = value["dataType"].startswith("Binary")
        content = base64.b64decode(value["binaryValue"]) if binary else value["stringValue"].encode()
        for part in (name.encode(), value["dataType"].encode()):
            digest += struct.pack("!I", len(part)) + part
        digest += (b"\x02" if binary else b"\x01") + struct.pack("!I", len(content)) + content
    return md5(digest) if attributes else None
