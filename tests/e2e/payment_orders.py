"""Orders to be charged, and what each kind of them meets at the provider."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.payment_server import PaymentServer
from tests.e2e.operations import Operation

# A charge is that late where the provider is asked: after the lease of 145 seconds, before it is asked.
LATE_SECONDS = 150.0
SETTLE_SECONDS = 15

Step = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """Orders that the provider treats alike: each meets the steps, then all goes well.

    is_asked_in_vain: the provider does not tell at once what became of them. is_single: no duplicates.
    """

    name: str
    orders: int
    steps: Sequence[Step] = ()
    is_asked_in_vain: bool = False
    is_single: bool = False


def kinds(late_seconds: float, *, is_repeated: bool) -> Sequence[Kind]:
    """is_repeated: whether a charge that is in doubt is simply made again, with the same key.

    Else two copies of an order that was not charged come back at the same moment, and one would wait for the other: one
    more lease, too long for a test.
    """

    def uncharged(name: str, orders: int, *steps: Step) -> Kind:
        return Kind(name, orders, steps, is_single=not is_repeated)

    return (
        Kind("plain", 80),
        Kind("declined", 4, [{"does": "refuse"}]),
        Kind("busy", 6, [{"does": "too_many", "seconds": 2, "times": 2}]),
        Kind("answer-lost", 6, [{"does": "lose_answer", "times": 1}]),
        Kind("answer-reset", 4, [{"does": "lose_answer", "reset": True, "times": 1}]),
        Kind("answer-bad", 4, [{"does": "unavailable_after", "times": 1}], is_asked_in_vain=True),
        uncharged("request-lost", 6, {"does": "lose_request", "times": 1}),
        uncharged("down", 4, {"does": "unavailable", "times": 1}),
        uncharged("busy-lost", 3, {"does": "too_many", "seconds": 1, "times": 1}, {"does": "lose_request", "times": 1}),
        uncharged("hangs", 3, {"does": "hang", "times": 1}),
        Kind("charged-hangs", 3, [{"does": "hang", "charges": True, "times": 1}]),
        Kind("late", 8, [{"does": "late", "seconds": late_seconds, "close": True, "times": 1}]),
        # What they do not answer to is killed.
        uncharged("dies", 1, {"does": "hang", "times": 1}),
        Kind("dies-charged", 2, [{"does": "hang", "charges": True, "times": 1}]),
    )


@dataclass(frozen=True)
class Orders:
    """The orders of one operation. honours_keys: whether the provider does, for these."""

    name: str
    kinds: Sequence[Kind]
    honours_keys: bool = False

    def ids(self, *kinds: str) -> set[str]:
        """Of these kinds, or of all."""
        return {
            f"{self.name}-{kind.name}-{number}"
            for kind in self.kinds
            if kind.name in kinds or not kinds
            for number in range(kind.orders)
        }

    @property
    def rules(self) -> list[Mapping[str, Any]]:
        """What the provider is told of them."""
        told: list[Mapping[str, Any]] = []
        for kind in self.kinds:
            orders = f"{self.name}-{kind.name}-[0-9]*"
            told.append({"orders": orders, "steps": kind.steps, "honours_keys": self.honours_keys})
            if kind.is_asked_in_vain:
                told.append({"orders": orders, "steps": [{"does": "unavailable", "times": 1}], "method": "GET"})
        return told

    def stream(self) -> list[str]:
        """The messages: half of the orders twice or three times, the copies close together.

        Those to die by come early, since what is left of them waits for the lease's end, and among orders that go well:
        what is killed before it is asked for, and lost the next time, would wait for two leases.
        """
        dice = random.Random(self.name)
        single = {order for kind in self.kinds if kind.is_single for order in self.ids(kind.name)}
        last = self.ids("declined")
        dying, well = sorted(self.ids("dies", "dies-charged")), sorted(self.ids("plain"))[:40]
        places = {order: 3.0 + 15 * number for number, order in enumerate(dying)}
        places |= {order: 45 * dice.random() for order in well}
        stream: list[tuple[float, str]] = []
        for order in sorted(self.ids()):
            place = places.get(order, 45 + 100 * dice.random() + 100 * (order in last))
            copies = 1 if order in single else 1 + dice.choice([0, 0, 1, 2])
            stream += [(place + copy * dice.random() * 3, order) for copy in range(copies)]
        return [json.dumps({"id": order, "amount": amount(order)}) for _, order in sorted(stream)]

    def copies(self) -> Counter[str]:
        """How many messages each order has."""
        return Counter(json.loads(body)["id"] for body in self.stream())


def amount(order: str) -> int:
    """In cents."""
    return 100 + sum(order.encode()) % 900


class Killer(threading.Thread):
    """Kills the processes of an operation whenever one of them is with an order to die by."""

    def __init__(self, payments: PaymentServer, operations: Mapping[str, Operation]) -> None:
        super().__init__(daemon=True)
        self._payments = payments
        self._operations = operations
        self._ended = threading.Event()
        self.killed: Counter[str] = Counter()

    def run(self) -> None:
        met: set[str] = set()
        while not self._ended.is_set():
            for request in self._payments.requests():
                name, _, kind = request["order"].partition("-")
                if kind.startswith("dies") and request["order"] not in met:
                    met.add(request["order"])
                    self.killed[name] += self._operations[name].kill_workers()
            self._ended.wait(0.1)

    def end(self) -> None:
        self._ended.set()
        self.join()
