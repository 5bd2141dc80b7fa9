"""Letters in a file: what `drop` writes before it deletes them, and what `replay --from-drop` sends back."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from idempotent_consumer_cli.clock import moment
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.foresight import Prospect
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.letters import PAGE
from idempotent_consumer_cli.opened import OpenedLetter

_ONLY_THE_OWNER = 0o600


class DropFile:
    """A new file of letters, one JSON line each; use as a context manager.

    It is made with the first letters, readable by its owner only. Raises CommandError where it exists, or cannot be
    written.
    """

    def __init__(self, path: Path, consumer_name: str) -> None:
        self.path = path
        self._consumer_name = consumer_name
        self._descriptor: int | None = None
        if path.exists() or path.is_symlink():
            raise CommandError(f"{path} exists already: name another file with --output")
        if not path.absolute().parent.is_dir():
            raise CommandError(f"{path} cannot be written: there is no folder {path.parent}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def write(self, letters: Iterable[tuple[OpenedLetter, Prospect]], now_ms: int) -> None:
        """Returns once they are on the disk."""
        lines = [self._line(opened, prospect, now_ms) for opened, prospect in letters]
        try:
            if self._descriptor is None:
                self._descriptor = self._create()
            rest = "".join(lines).encode()
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise CommandError(
                f"{self.path} cannot be written ({error.strerror}): its last letters are not deleted"
            ) from None

    def _create(self) -> int:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _ONLY_THE_OWNER)
        folder = os.open(self.path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return descriptor

    def _line(self, opened: OpenedLetter, prospect: Prospect, now_ms: int) -> str:
        letter = opened.letter
        value = {
            "consumer": self._consumer_name,
            "dropped_at": moment(now_ms),
            "message_id": letter.message_id,
            "event_ids": opened.event_ids,
            "reason": letter.reason,
            "detail": letter.detail,
            "ledger": prospect.state.code,
            "group": letter.group,
            "system_attributes": dict(letter.system),
            "attributes": {name: _to_text(value) for name, value in letter.attributes.items()},
            "body": letter.body,
        }
        return json.dumps(value, separators=(",", ":")) + "\n"


class Sent:
    """Which letters of a file have been sent back, kept beside it, so that a run that was stopped goes on.

    Use as a context manager.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.path = _sent_path(file)
        self.ids: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self.ids = sent_before(self._file)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, _ONLY_THE_OWNER)
            if self._is_cut_off():
                os.write(self._descriptor, b"\n")
        except OSError as error:
            raise CommandError(
                f"{self.path} cannot be written ({error.strerror}): it keeps what has been sent"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def add(self, message_ids: Iterable[str]) -> None:
        """Returns once that is on the disk."""
        new = list(message_ids)
        os.write(self._descriptor, "".join(f"{message_id}\n" for message_id in new).encode())
        os.fsync(self._descriptor)
        self.ids.update(new)

    def _is_cut_off(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


def sent_before(file: Path) -> set[str]:
    """The message ids of the letters of a file that have been sent back.

    The last one of a run that was killed may be cut off: it is nobody's, so that letter is sent again.
    """
    path = _sent_path(file)
    if not path.exists():
        return set()
    with path.open(encoding="ascii", errors="replace") as lines:
        return {line.strip() for line in lines}


def _sent_path(file: Path) -> Path:
    return file.with_name(file.name + ".sent")


def read_pages(file: Path, consumer_name: str) -> Iterator[list[Letter]]:
    """The letters of a file that `drop` wrote, ten together. Raises CommandError at a line that is no letter of this
    consumer.
    """
    page: list[Letter] = []
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    page.append(_letter(line, f"line {number} of {file}", consumer_name))
                if len(page) == PAGE:
                    yield page
                    page = []
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from None
    if page:
        yield page


def _letter(line: str, place: str, consumer_name: str) -> Letter:
    value: Any = None
    with suppress(ValueError):
        value = json.loads(line)
    if not isinstance(value, dict) or "consumer" not in value or not isinstance(value.get("body"), str):
        raise CommandError(f"{place} is {_kind(value)}, not a letter that `drop` wrote")
    if value.get("consumer") != consumer_name:
        raise CommandError(f"{place} is a letter of {value.get('consumer')}, not of {consumer_name}: check --name")
    try:
        return Letter(
            message_id=str(value["message_id"]),
            body=value["body"],
            attributes={name: _to_api(attribute) for name, attribute in value["attributes"].items()},
            system={name: str(text) for name, text in value["system_attributes"].items()},
        )
    except (AttributeError, KeyError, TypeError, binascii.Error):
        raise CommandError(f"{place} is not a letter as `drop` writes it") from None


def _kind(value: Any) -> str:
    if not isinstance(value, dict):
        return "no JSON object"
    if "messageId" in value:
        return "a record as Lambda gets it (messageId, body)"
    if "MessageId" in value:
        return "a message as the SQS API gives it (MessageId, Body)"
    return "a line without a body, as `inspect --json` writes it" if "message_id" in value else "another JSON object"


def _to_text(attribute: Mapping[str, Any]) -> dict[str, str]:
    if "BinaryValue" in attribute:
        return {
            "DataType": attribute["DataType"],
            "BinaryValue": base64.b64encode(attribute["BinaryValue"]).decode("ascii"),
        }
    return {"DataType": attribute["DataType"], "StringValue": attribute["StringValue"]}


def _to_api(attribute: Mapping[str, str]) -> dict[str, Any]:
    if "BinaryValue" in attribute:
        return {
            "DataType": attribute["DataType"],
            "BinaryValue": base64.b64decode(attribute["BinaryValue"], validate=True),
        }
    return {"DataType": attribute["DataType"], "StringValue": attribute["StringValue"]}
