"""Runs a user's effect, or its question to the provider, and says what is known of it then.

Whatever the code does, and whatever its exceptions and results are like, ends in one of the values here.
"""

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from idempotent_consumer import telemetry
from idempotent_consumer.answer import MISCONFIGURED_REASONS
from idempotent_consumer.claims.row import StoredResult
from idempotent_consumer.effect import (
    OUTCOME_UNKNOWN,
    Applied,
    Effect,
    EffectFailed,
    Final,
    NotApplied,
    Reconcile,
    Uncertain,
    Unknown,
)
from idempotent_consumer.event import Event
from idempotent_consumer.rejection import short_reason
from idempotent_consumer.time_limit import TimeIsUp, call_within

_Value = TypeVar("_Value")

# Called, but not run: nothing has happened, or something that nobody waits for.
_NOT_RUN = (Awaitable, Generator, AsyncGenerator)


@dataclass(frozen=True, slots=True)
class Done:
    """It was applied."""

    result: StoredResult


@dataclass(frozen=True, slots=True)
class Failed:
    """It was certainly not applied. after_seconds: when to try again at the earliest."""

    reason: str
    detail: str
    is_final: bool
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Doubted:
    """Nobody knows whether it was applied."""

    reason: str
    detail: str = ""


def run_effect(effect: Effect, event: Event, key: str, seconds: float, message_id: str) -> Done | Failed | Doubted:
    """Run the effect for so many seconds at most. Raises KeyboardInterrupt alone."""
    value, error = _call("effect", lambda: effect(event, key), seconds)
    return _told(error if error is not None else value, error is not None, message_id)


def ask_provider(
    reconcile: Reconcile, event: Event, key: str, seconds: float, message_id: str
) -> Done | NotApplied | Unknown:
    """Ask whether it was applied. Whatever fails, nothing was said. Raises KeyboardInterrupt alone."""
    value, error = _call("reconcile", lambda: reconcile(event, key), seconds)
    kind = type(value)
    if error is not None:
        telemetry.log_fault(message_id, error)
    elif issubclass(kind, Applied):
        return Done(StoredResult.of(value.result))
    elif issubclass(kind, NotApplied):
        return NotApplied()
    elif not issubclass(kind, Unknown):
        telemetry.log_fault(message_id, TypeError(f"reconcile returned {kind.__name__}"))
    return Unknown()


def _call(name: str, code: Callable[[], Any], seconds: float) -> tuple[Any, BaseException | None]:
    """What the code returns, or raises. No exception of it goes through a `with`, which not all can."""

    def guarded() -> tuple[Any, BaseException | None]:
        try:
            return code(), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, error

    threads = threading.active_count()
    try:
        with telemetry.phase(name):
            return call_within(seconds, guarded)
    except TimeIsUp as error:
        return None, error
    finally:
        if threading.active_count() > threads:
            telemetry.log_left_running(name)


def _told(said: Any, is_raised: bool, message_id: str) -> Done | Failed | Doubted:
    """What the effect's result, or its exception, says. To return an exception says the same as to raise it."""
    kind = type(said)
    if issubclass(kind, EffectFailed):
        after_seconds = _read(said, "after_seconds", _finite, None)
        return Failed(
            _read(said, "reason", _reason, "effect-failed"), _detail(said), issubclass(kind, Final), after_seconds
        )
    if issubclass(kind, Uncertain):
        return Doubted(_read(said, "reason", _reason, OUTCOME_UNKNOWN), _detail(said))
    if issubclass(kind, TimeIsUp):
        return Doubted("effect-timed-out")
    if is_raised or issubclass(kind, BaseException):
        telemetry.log_fault(message_id, said)
        return Doubted("effect-raised", kind.__name__)  # its text may quote anything
    if issubclass(kind, Applied):
        return Done(StoredResult.of(said.result))
    if issubclass(kind, (NotApplied, Unknown, *_NOT_RUN)) or hasattr(kind, "add_done_callback"):
        return Doubted("effect-returned", kind.__name__)
    return Done(StoredResult.of(said))


def _read(error: BaseException, name: str, form: Callable[[Any], _Value], default: _Value) -> _Value:
    """An attribute of a user's exception in the form that is needed; the default where it has none of it."""
    try:
        return form(getattr(error, name, default))
    except KeyboardInterrupt:
        raise
    except BaseException:  # the attribute may be code of the user's too
        return default


def _detail(error: BaseException) -> str:
    return _read(error, "detail", str, "")


def _reason(text: Any) -> str:
    """The user's word. One that is ours for what a person has to mend, and has an alarm for, is told apart."""
    reason = short_reason(text, "effect-failed")
    return f"effect-{reason}" if reason in MISCONFIGURED_REASONS else reason


def _finite(seconds: Any) -> float | None:
    return float(seconds) if isfinite(seconds) else None
