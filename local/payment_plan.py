"""What a payment server is told to do: which orders meet which behaviour, and whether it honours keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any


class Does(Enum):
    """What happens to a request. Of a GET, only what is said of the answer applies."""

    ANSWER = "answer"  # charges and says so
    SLOW = "slow"  # charges, and says so `seconds` later
    LATE = "late"  # charges `seconds` later and answers then; with `close`, the connection closes at once
    LOSE_ANSWER = "lose_answer"  # charges, then closes the connection, with `reset` by a reset
    LOSE_REQUEST = "lose_request"  # closes the connection without charging
    REFUSE = "refuse"  # `status`, 402 unless told, without charging
    TOO_MANY = "too_many"  # 429 with Retry-After `seconds`, without charging
    UNAVAILABLE = "unavailable"  # 503 without charging
    UNAVAILABLE_AFTER = "unavailable_after"  # charges, and says 503
    HANG = "hang"  # never answers; with `charges`, has charged


class Concurrent(Enum):
    """What a request meets whose key an unfinished one holds."""

    WAIT = "wait"  # the answer to the first
    CONFLICT = "conflict"  # 409


@dataclass(frozen=True)
class Behaviour:
    """`does` with its options; `times`: for so many requests of an order, None for all that follow."""

    does: Does
    times: int | None = None
    seconds: float = 0.0
    status: int = 402
    close: bool = False
    reset: bool = False
    charges: bool = False


NORMAL = Behaviour(Does.ANSWER)


@dataclass(frozen=True)
class Rule:
    """The behaviours, one after the other, that each order of a name like `orders` (a pattern) meets, then none."""

    orders: str
    steps: Sequence[Behaviour]
    method: str = "POST"
    honours_keys: bool | None = None

    def step(self, earlier: int) -> Behaviour:
        """The behaviour for an order after so many requests."""
        for behaviour in self.steps:
            if behaviour.times is None or earlier < behaviour.times:
                return behaviour
            earlier -= behaviour.times
        return NORMAL


@dataclass(frozen=True)
class Plan:
    """The first rule that fits decides; without one all goes well."""

    rules: Sequence[Rule] = field(default=())
    honours_keys: bool = True
    concurrent: Concurrent = Concurrent.WAIT

    def rule(self, method: str, order: str) -> Rule:
        fitting = (rule for rule in self.rules if rule.method == method and fnmatchcase(order, rule.orders))
        return next(fitting, Rule("*", (), method))


def read_plan(value: Any) -> Plan:
    """The plan that a JSON value tells. Raises ValueError with what is wrong."""
    try:
        plan: Plan = _made(Plan, value, rules=_rules, concurrent=Concurrent)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no plan: {error}") from error
    return plan


def _rules(values: Sequence[Any]) -> list[Rule]:
    return [_made(Rule, value, steps=_steps) for value in values]


def _steps(values: Sequence[Any]) -> list[Behaviour]:
    return [_made(Behaviour, value, does=Does) for value in values]


def _made(kind: Any, value: Mapping[str, Any], **readers: Any) -> Any:
    return kind(**{name: readers.get(name, lambda same: same)(each) for name, each in value.items()})
