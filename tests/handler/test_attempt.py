"""Whatever a user's code does, raises or returns, ends in what is known of the effect, and in nothing else."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

from idempotent_consumer import Applied, Event, Final, NotApplied, Retryable, Uncertain, Unknown, attempt
from idempotent_consumer.attempt import Done, Doubted, Failed, ask_provider, run_effect
from idempotent_consumer.claims.row import StoredResult
from idempotent_consumer.time_limit import TimeIsUp

EVENT = Event("o-1", {"id": "o-1"}, "f-1")


def ended(effect: Callable[[], Any], seconds: float = 60) -> Done | Failed | Doubted:
    return run_effect(lambda _event, _key: effect(), EVENT, "key-1", seconds, "m-1")


def asked(reconcile: Callable[[], Any], seconds: float = 60) -> Done | NotApplied | Unknown:
    return ask_provider(lambda _event, _key: reconcile(), EVENT, "key-1", seconds, "m-1")


def raising(error: BaseException) -> Callable[[], Any]:
    def code() -> Any:
        raise error

    return code


def stored(value: Any) -> Done:
    return Done(StoredResult({"result": {"S": json.dumps(value, separators=(",", ":"))}}))


def test_the_effect_gets_the_event_and_the_key() -> None:
    given: list[Any] = []
    run_effect(lambda event, key: given.append((event, key)), EVENT, "key-1", 60, "m-1")
    assert given == [(EVENT, "key-1")]


class RaisingReason(Final):
    @property
    def reason(self) -> Any:
        raise SystemExit(3)

    @reason.setter
    def reason(self, _: Any) -> None:
        pass


class NumberReason(Final):
    reason = 402  # type: ignore[assignment]

    def __init__(self) -> None:
        pass


class LongReason(NumberReason):
    reason = "x" * 400_000  # type: ignore[assignment]


class BlankReason(NumberReason):
    reason = " "  # type: ignore[assignment]


@dataclass(frozen=True)
class Frozen(Final):
    """Python itself sets attributes of an exception that goes through a `with`."""

    code: int = 0


def with_attribute(error: BaseException, name: str, value: Any) -> BaseException:
    setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (Final("card-declined", "no funds"), Failed("card-declined", "no funds", True)),
        (Retryable("busy"), Failed("busy", "", False)),
        (Retryable("busy", after_seconds=4), Failed("busy", "", False, 4.0)),
        (Retryable("busy", after_seconds=10**400), Failed("busy", "", False)),
        (with_attribute(Retryable("busy"), "after_seconds", "4"), Failed("busy", "", False)),
        (with_attribute(Retryable("busy"), "after_seconds", float("nan")), Failed("busy", "", False)),
        (with_attribute(Final("declined"), "detail", {"code": 7}), Failed("declined", "{'code': 7}", True)),
        (RaisingReason("x"), Failed("effect-failed", "", True)),
        (NumberReason(), Failed("402", "", True)),
        (LongReason(), Failed("x" * 256, "", True)),
        (BlankReason(), Failed("effect-failed", "", True)),
        (Frozen(7), Failed("effect-failed", "", True)),
    ],
)
def test_a_failure_that_is_certain_is_one_whatever_its_attributes_are_like(
    error: BaseException, failed: Failed
) -> None:
    assert ended(raising(error)) == failed


@pytest.mark.parametrize("kind", [Retryable, Final])
@pytest.mark.parametrize("word", ["refused", "misconfigured", "plan-invalid"])
def test_a_word_of_ours_is_told_apart(kind: Any, word: str) -> None:
    """Else it would set off the alarm for what a person has to mend here."""
    failed = ended(raising(kind(word)))
    assert isinstance(failed, Failed)
    assert failed.reason == f"effect-{word}"


@pytest.mark.parametrize(
    ("error", "doubted"),
    [
        (Uncertain("read-timeout", "9 s"), Doubted("read-timeout", "9 s")),
        (Uncertain("refused"), Doubted("effect-refused")),
        (TimeoutError("secret"), Doubted("effect-raised", "TimeoutError")),
        (SystemExit("secret"), Doubted("effect-raised", "SystemExit")),
        (GeneratorExit(), Doubted("effect-raised", "GeneratorExit")),
        (StopIteration(), Doubted("effect-raised", "StopIteration")),
    ],
)
def test_all_else_says_nothing(error: BaseException, doubted: Doubted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert ended(raising(error)) == doubted
    assert "secret" not in caplog.text


async def asynchronous() -> str:
    return "never run"


def generating() -> Iterator[str]:
    yield "never run"


@pytest.mark.parametrize(
    ("returned", "known"),
    [
        (lambda: Final("card-declined"), Failed("card-declined", "", True)),
        (lambda: Retryable("busy"), Failed("busy", "", False)),
        (lambda: Uncertain("lost"), Doubted("lost")),
        (lambda: TimeoutError("secret"), Doubted("effect-raised", "TimeoutError")),
        (NotApplied, Doubted("effect-returned", "NotApplied")),
        (Unknown, Doubted("effect-returned", "Unknown")),
        (lambda: Applied({"charge": 7}), stored({"charge": 7})),
        (generating, Doubted("effect-returned", "generator")),
        (Future, Doubted("effect-returned", "Future")),
    ],
)
def test_what_is_returned_instead_of_raised_is_understood(returned: Callable[[], Any], known: Any) -> None:
    assert ended(returned) == known


@pytest.mark.filterwarnings("ignore:coroutine 'asynchronous' was never awaited")
def test_what_nobody_awaits_is_no_result() -> None:
    assert ended(asynchronous) == Doubted("effect-returned", "coroutine")


class Exits:
    """Its text, its kind and its length end the process."""

    def __repr__(self) -> str:
        raise SystemExit(3)

    __str__ = __len__ = __repr__

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise SystemExit(3)


class ExitingDict(dict[str, Any]):
    def items(self) -> Any:
        raise SystemExit(3)


@pytest.mark.parametrize(
    "made", [Exits, lambda: ExitingDict(a=1), lambda: {1: "a", "1": "b"}, lambda: 10**500, lambda: 2 + 3j]
)
def test_a_result_that_cannot_be_written_and_read_back_is_left_out(made: Callable[[], Any]) -> None:
    assert ended(made) == Done(StoredResult({"result": {"S": "null"}}, "result-not-json"))


def test_an_effect_that_takes_too_long_says_nothing() -> None:
    def hang() -> Any:
        while True:
            pass

    assert ended(hang, seconds=0.05) == Doubted("effect-timed-out")
    assert asked(hang, seconds=0.05) == Unknown()


def test_threads_that_an_effect_leaves_running_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Lambda freezes them, and they go on in a later invocation."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    assert ended(thread.start) == stored(None)
    release.set()
    thread.join()
    assert caplog.messages == ["threads left running by effect"]


def test_only_an_interrupt_from_outside_ends_the_invocation() -> None:
    with pytest.raises(KeyboardInterrupt):
        ended(raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        asked(raising(KeyboardInterrupt()))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (lambda: Applied({"charge": 7}), stored({"charge": 7})),
        (Applied, stored(None)),
        (NotApplied, NotApplied()),
        (Unknown, Unknown()),
        (lambda: NotApplied, Unknown()),
        (lambda: None, Unknown()),
        (lambda: True, Unknown()),
        (Exits, Unknown()),
        (raising(Final("no")), Unknown()),
        (raising(SystemExit(3)), Unknown()),
        (raising(TimeoutError("secret")), Unknown()),
        (generating, Unknown()),
    ],
)
def test_what_a_provider_has_not_said_is_unknown(
    said: Callable[[], Any], known: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert asked(said) == known
    assert "secret" not in caplog.text


def test_an_alarm_between_the_effect_and_its_result_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_seconds: float, code: Callable[[], Any]) -> Any:
        code()
        raise TimeIsUp

    monkeypatch.setattr(attempt, "call_within", late)
    assert ended(lambda: "charged") == Doubted("effect-timed-out")
