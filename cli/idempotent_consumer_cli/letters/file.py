"""Letters in a file: what `drop` writes before it deletes them, and what `replay --from-drop` sends back."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from idempotent_consumer_cli.clock import moment
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.foresight.prospect import Prospect
from idempotent_consumer_cli.letters.letter import Letter, checked_text, from_text
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.queue import PAGE

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
        try:
            is_there = path.exists() or path.is_symlink()
            is_in_folder = path.absolute().parent.is_dir()
        except OSError as error:
            raise CommandError(
                f"{path} cannot be written ({error.strerror}): name another file with --output"
            ) from None
        if is_there:
            raise CommandError(f"{path} exists already: name another file with --output")
        if not is_in_folder:
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
            _write(self._descriptor, "".join(lines))
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
        received = letter.received or letter
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
            "attributes": {name: _to_text(value) for name, value in received.attributes.items()},
            "body": received.body,
        }
        return json.dumps(value, separators=(",", ":")) + "\n"


class FromDrop:
    """The letters of a file that `drop` wrote. Those sent back are noted beside it, so that a run that was stopped
    goes on.

    Use as a context manager. path: of the file. is_dry: note nothing. passed: letters passed over, since they have been
    sent. is_cut_off: the last line ended in the middle, as a full disk leaves it; its letter was not deleted.
    """

    def __init__(self, path: Path, consumer_name: str, *, is_dry: bool) -> None:
        self.path = path
        self._consumer_name = consumer_name
        self._is_dry = is_dry
        self._notes = path.with_name(path.name + ".sent")
        self._unnoted: list[str] = []
        self._descriptor: int | None = None
        self.passed = 0
        self.is_cut_off = False

    def __enter__(self) -> Self:
        try:
            self._sent = self._sent_before()
            if not self._is_dry:
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._descriptor = os.open(self._notes, flags, _ONLY_THE_OWNER)
                if self._is_note_cut_off(self._descriptor):
                    _write(self._descriptor, "\n")
        except OSError as error:
            raise CommandError(
                f"{self._notes} cannot be written ({error.strerror}): it keeps what has been sent"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    @property
    def unnoted(self) -> int:
        """Letters that have been sent and could not be noted."""
        return len(self._unnoted)

    def pages(self) -> Iterator[list[Letter]]:
        """Those that have not been sent, ten together.

        Raises CommandError at a line that is no letter of this consumer, after the letters before it.
        """
        page: list[Letter] = []
        try:
            for letter in self._letters():
                if letter.message_id in self._sent:
                    self.passed += 1
                    continue
                page.append(letter)
                if len(page) == PAGE:
                    yield page
                    page = []
        except CommandError:
            if page:
                yield page
            raise
        if page:
            yield page

    def note(self, message_ids: Iterable[str]) -> None:
        """These letters have been sent; returns once that is on the disk."""
        self._unnoted += message_ids
        if not self._unnoted or self._descriptor is None:
            return
        try:
            _write(self._descriptor, "".join(f"{message_id}\n" for message_id in self._unnoted))
        except OSError as error:
            raise CommandError(
                f"{self._notes} cannot be written ({error.strerror}): the next run sends once more what is not noted, "
                "which the ledger absorbs"
            ) from None
        self._unnoted.clear()

    def _letters(self) -> Iterator[Letter]:
        try:
            with self.path.open(encoding="utf-8-sig") as lines:
                for number, line in enumerate(lines, 1):
                    value = _parse(line)
                    if value is None and line.startswith("{") and not line.endswith("\n"):
                        self.is_cut_off = True
                    elif line.strip():
                        yield _letter(value, f"line {number} of {self.path}", self._consumer_name)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{self.path} cannot be read: {error}") from None

    def _sent_before(self) -> set[str]:
        """The last one of a run that was killed may be cut off: it is nobody's, so that letter is sent again."""
        if not self._notes.exists():
            return set()
        with self._notes.open(encoding="ascii", errors="replace") as lines:
            return {line.strip() for line in lines}

    def _is_note_cut_off(self, descriptor: int) -> bool:
        size = os.fstat(descriptor).st_size
        return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _write(descriptor: int, text: str) -> None:
    """Returns once it is on the disk."""
    rest = text.encode()
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _parse(line: str) -> Any:
    """None for what is no JSON."""
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _letter(value: Any, place: str, consumer_name: str) -> Letter:
    if not isinstance(value, dict) or "consumer" not in value or not isinstance(value.get("body"), str):
        raise CommandError(f"{place} is {_kind(value)}, not a letter that `drop` wrote")
    if value["consumer"] != consumer_name:
        raise CommandError(f"{place} is a letter of {value['consumer']}, not of {consumer_name}: check --name")
    try:
        letter = Letter(
            message_id=checked_text(value["message_id"]),
            body=checked_text(value["body"]),
            attributes={checked_text(name): from_text(attribute) for name, attribute in value["attributes"].items()},
            system={checked_text(name): checked_text(content) for name, content in value["system_attributes"].items()},
        )
        # They are read as numbers later.
        _ = letter.sent_ms, letter.receive_count
    except (AttributeError, KeyError, TypeError, ValueError):
        raise CommandError(f"{place} is not a letter as `drop` writes it") from None
    return letter


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
