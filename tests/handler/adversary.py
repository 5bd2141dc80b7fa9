"""What the adversaries of the models have in common: a spoilt call, and the time that is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from botocore.exceptions import ClientError, ConnectionClosedError

from tests.handler.support import LEDGER, Killed
from tests.handler.table_model import Effect, Request

Mischief = Callable[[Request, Effect], Any]


class SpoilsCalls:
    """Each method is a `Mischief`: it gets a request, and what puts it into effect."""

    _chance: Random

    def _let_pass(self, _request: Request, effect: Effect) -> Any:
        return effect()

    def _lose_answer(self, _request: Request, effect: Effect) -> Any:
        with suppress(ClientError):  # this answer is lost too
            effect()
        raise ConnectionClosedError(endpoint_url="https://aws.example")

    def _die_before(self, _request: Request, _effect: Effect) -> Any:
        raise Killed

    def _die_after(self, _request: Request, effect: Effect) -> Any:
        with suppress(ClientError):
            effect()
        raise Killed

    def _leave_unprocessed(self, request: Request, effect: Effect) -> Any:
        keys = request["RequestItems"][LEDGER]["Keys"]
        left = self._some(keys)
        others = [key for key in keys if key not in left]
        answer: dict[str, Any] = {"Responses": {LEDGER: []}}
        if others:
            answer = effect(RequestItems={LEDGER: {"Keys": others, "ConsistentRead": True}})
        return {**answer, "UnprocessedKeys": {LEDGER: {"Keys": left}} if left else {}}

    def _some(self, things: Sequence[Any]) -> list[Any]:
        return [thing for thing in things if self._chance.random() < 0.5]


class Called(Protocol):
    @property
    def calls(self) -> Sequence[Any]: ...


@dataclass
class Time:
    """The runtime's context: time is up after a number of calls."""

    world: Called
    calls_left: int
    _calls_before: int = field(init=False)

    def __post_init__(self) -> None:
        self._calls_before = len(self.world.calls)

    def get_remaining_time_in_millis(self) -> int:
        return 30_000 if len(self.world.calls) - self._calls_before < self.calls_left else 1_000
