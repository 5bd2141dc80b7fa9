"""What befalls the function's calls during the soak, and how often it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from local.faults import Rule


class Kind(Enum):
    """What befalls a call. ANSWER_LOST: it is done, and nobody hears of it. RESET: it never arrives."""

    THROTTLED = "throttled"
    ANSWER_LOST = "answer_lost"
    RESET = "reset"
    SLOW = "slow"
    DOWN = "down"


@dataclass(frozen=True)
class Fault:
    """One rule of the proxy. call: what it befalls."""

    kind: Kind
    call: str
    rule: Rule


# Of all calls, so many meet this. Slowness comes last: the first rule that fires is the only one.
SHARES = {Kind.THROTTLED: 0.10, Kind.ANSWER_LOST: 0.05, Kind.RESET: 0.02, Kind.SLOW: 0.20}
# The calls of the function, and how each service says that it is throttled.
CALLS: Sequence[tuple[Mapping[str, str], str, int]] = (
    ({"service": "dynamodb", "operation": "TransactWriteItems"}, "ThrottlingException", 400),
    ({"service": "dynamodb", "operation": "BatchExecuteStatement"}, "ThrottlingException", 400),
    ({"service": "dynamodb", "operation": "BatchGetItem"}, "ProvisionedThroughputExceededException", 400),
    ({"service": "sns"}, "Throttled", 429),
    ({"service": "sqs"}, "RequestThrottled", 400),
)


def usual() -> list[Fault]:
    """What befalls calls all along."""
    return [
        Fault(kind, _name(call), {**call, "probability": probability, **_effect(kind, code, status)})
        for call, code, status in CALLS
        for kind, probability in in_turn(SHARES)
    ]


def topic_down() -> list[Fault]:
    """No call of SNS succeeds; the others meet what they usually do."""
    down = {"service": "sns", "error": {"code": "ServiceUnavailable", "status": 503}}
    return [Fault(Kind.DOWN, "sns", down), *usual()]


def in_turn(shares: Mapping[Kind, float]) -> Iterator[tuple[Kind, float]]:
    """The probability of each rule, given that none before it has fired, such that each fires for its share."""
    left = 1.0
    for kind, share in shares.items():
        yield kind, share / left
        left -= share


class Proxy(Protocol):
    """What is used of `local.faults.Faults`."""

    def set_rules(self, rules: Sequence[Rule]) -> None: ...

    def fired_by_rule(self) -> list[int]: ...


class Disturber:
    """Sets the proxy's rules, and counts what they do."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._faults: Sequence[Fault] = ()
        self._fired: Counter[tuple[Kind, str]] = Counter()

    def bring(self, faults: Sequence[Fault]) -> None:
        """From now on these faults and no others."""
        self._fired = self.fired()
        self._proxy.set_rules([fault.rule for fault in faults])
        self._faults = faults

    def fired(self) -> Counter[tuple[Kind, str]]:
        """How often each kind has befallen each call so far."""
        counts = zip(self._faults, self._proxy.fired_by_rule(), strict=True) if self._faults else ()
        return self._fired + Counter({(fault.kind, fault.call): count for fault, count in counts})


def _name(call: Mapping[str, str]) -> str:
    return call.get("operation", call["service"])


def _effect(kind: Kind, code: str, status: int) -> Rule:
    effects: Mapping[Kind, Rule] = {
        Kind.THROTTLED: {"error": {"code": code, "status": status}},
        Kind.ANSWER_LOST: {"response": {"abort_bytes": 0}},
        Kind.RESET: {"reset": True},
        Kind.SLOW: {"latency": {"min": 20, "max": 200}},
    }
    return effects[kind]
