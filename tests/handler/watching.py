"""What an invocation lets out beside its calls: its log, what it prints, and its traces."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import pytest

from idempotent_consumer import telemetry
from tests.handler.hostile_json import KEY_MARKER, VALUE_MARKER

# Python's lower bound. Whatever turns a longer number into text, or back, takes quadratic time, and fails here.
_FEWEST_DIGITS = 640


@dataclass
class Watched:
    """records: of the log, the product's own at every level. printed: both streams. traced: what tracing was given."""

    records: list[logging.LogRecord] = field(default_factory=list)
    printed: io.StringIO = field(default_factory=io.StringIO)
    traced: list[Any] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, str]:
        """Of each message the last reason in the log."""
        return {
            entry.__dict__["message_id"]: entry.__dict__["reason"]
            for entry in self.records
            if "reason" in entry.__dict__ and "message_id" in entry.__dict__
        }

    @property
    def has_fault(self) -> bool:
        """Whether something was met that nobody has thought of."""
        return any(entry.msg.startswith("fault") for entry in self.records)

    def check(self) -> None:
        """No such fault, and no word of a body."""
        self.check_silence()
        assert not self.has_fault

    def check_silence(self) -> None:
        """No word of a body: of an event its id is told on purpose, and nothing else."""
        plain = logging.Formatter()
        texts = [self.printed.getvalue(), repr(self.traced)]
        for entry in self.records:
            fields = {name: value for name, value in entry.__dict__.items() if name != "event_id"}
            texts.append(f"{plain.format(entry)} {fields}")
        let_out = "\n".join(texts)
        assert VALUE_MARKER not in let_out
        assert KEY_MARKER not in let_out


class _Recorder:
    """Takes the place of the tracing SDK, and of what it hands out."""

    def __init__(self, traced: list[Any]) -> None:
        self._traced = traced

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **named: Any) -> _Recorder:
            self._traced.append((method, arguments, named))
            return self

        return call


class _Keeper(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.DEBUG)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


@contextmanager
def watched() -> Iterator[Watched]:
    """Watch all that is done meanwhile."""
    seen = Watched()
    root, own, keeper = logging.getLogger(), logging.getLogger("idempotent_consumer"), _Keeper(seen.records)
    levels, digits = (root.level, own.level), sys.get_int_max_str_digits()
    root.addHandler(keeper)
    root.setLevel(logging.INFO)
    own.setLevel(logging.DEBUG)
    sys.set_int_max_str_digits(_FEWEST_DIGITS)
    try:
        with redirect_stdout(seen.printed), redirect_stderr(seen.printed), pytest.MonkeyPatch.context() as patch:
            patch.setattr(telemetry, "xray_recorder", _Recorder(seen.traced))
            yield seen
    finally:
        sys.set_int_max_str_digits(digits)
        root.setLevel(levels[0])
        own.setLevel(levels[1])
        root.removeHandler(keeper)
