"""An operation in process: a provider that charges orders, a clock, and the workers of one ledger before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from idempotent_consumer import Event, operation_consumer, telemetry
from idempotent_consumer.claims.row import Row, read_row
from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.operation_settings import OperationSettings
from tests.handler.support import LEDGER, NOW_MS, Cloud, Context, record

EFFECT_SECONDS, LEASE_SECONDS, SETTLE_SECONDS = 10, 180, 130
# Of consumer orders and event o-1: a change of it would break what providers have stored.
KEY = "a8973469-5a5a-81e2-ae82-4aca8de24e9c"


class Died(KeyboardInterrupt):
    """The process dies inside the effect: nothing of the library's handles it."""


@dataclass
class Clock:
    """Epoch milliseconds, as `telemetry.now_ms` gives them."""

    now_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.now_ms

    def wait(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


@dataclass
class Provider:
    """Charges each order it is asked for; what is in `plan` happens first, a call after the other."""

    charges: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    plan: list[Callable[[], Any]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def charge(self, event: Event, key: str) -> Any:
        self.keys.append(key)
        if self.plan:
            return self.plan.pop(0)()
        return self.apply(event.id)

    def apply(self, order: str = "o-1") -> Any:
        self.charges.append(order)
        return {"charge": len(self.charges)}

    def apply_and_raise(self, error: BaseException) -> Callable[[], Any]:
        def charge() -> Any:
            self.apply()
            raise error

        return charge

    def find(self, event: Event, key: str) -> Any:
        self.asked.append(event.id)
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer


def refuse(error: BaseException) -> Callable[[], Any]:
    def charge() -> Any:
        raise error

    return charge


class Shop:
    """One operation with its provider. Each delivery is a new process."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, *, draws: bool = False, **changes: str) -> None:
        self.cloud = cloud
        self.provider = Provider()
        self.clock = Clock()
        self.prepare: Callable[[], None] | None = None
        # The time that is left, once it is set, and what each call takes of it.
        self.context_ms: int | None = None
        self.context_costs: dict[str, int] = {}
        self.environment = {
            "CONSUMER_NAME": "orders",
            "LEDGER_TABLE": LEDGER,
            "DEAD_LETTER_QUEUE_URL": cloud.dead_letter_url,
            "QUEUE_URL": "https://sqs.test/orders",
            "VISIBILITY_TIMEOUT_SECONDS": "360",
            "BACKOFF_MAX_SECONDS": "900",
            "RETENTION_SECONDS": "345600",
            "MAX_RECEIVE_COUNT": "15",
            "TTL_WINDOW_DAYS": "30",
            "EVENT_ENVELOPE": "raw",
            "OPERATION_UNCERTAIN": "park",
            "OPERATION_EFFECT_TIMEOUT_SECONDS": str(EFFECT_SECONDS),
            "OPERATION_LEASE_MS": str(LEASE_SECONDS * 1000),
            "OPERATION_SETTLE_SECONDS": str(SETTLE_SECONDS),
            "OPERATION_MAX_ATTEMPTS": "3",
            "OPERATION_MAX_AGE_SECONDS": "82800",
            "OPERATION_RETRY_SECONDS": "30",
            **changes,
        }
        monkeypatch.setattr(telemetry, "now_ms", self.clock)
        if not draws:  # the least
            monkeypatch.setattr(operation_consumer, "drawn_seconds", lambda least, _count, _most: least)
        # Moto knows no queue of that name, and the answer does not matter.
        cloud.on("ChangeMessageVisibilityBatch", answers={"Successful": [], "Failed": []})

    @property
    def settings(self) -> OperationSettings:
        return OperationSettings.from_environment(self.environment)

    def worker(self) -> OperationConsumer:
        operation = Operation(self.provider.charge, self.provider.find, self.prepare)
        return OperationConsumer(self.settings, self.cloud.clients, operation)

    def deliver(self, *records: dict[str, Any], remaining_ms: int = 60_000) -> Any:
        """One invocation of a new process; returns the literal answer. Without records, of message m-1 with o-1."""
        given = list(records) or [order()]
        return self.worker().handle({"Records": given}, _Context(self, remaining_ms))

    def row(self, event_id: str = "o-1") -> Row:
        return read_row(self.cloud.ledger()[event_id])

    def status(self, event_id: str = "o-1") -> str:
        return self.row(event_id).state.value

    def hidden(self) -> list[int]:
        """For how long messages were hidden, in seconds, in the order of the calls."""
        return [
            entry["VisibilityTimeout"]
            for request in self.cloud.requests("ChangeMessageVisibilityBatch")
            for entry in request["Entries"]
        ]


def order(message_id: str = "m-1", event_id: str = "o-1", *, receives: int = 1, group: str | None = None) -> Any:
    return record(message_id, {"id": event_id, "total": 5}, receive_count=receives, group=group)


class _Context(Context):
    def __init__(self, shop: Shop, remaining_ms: int) -> None:
        super().__init__(shop.cloud, remaining_ms, shop.context_costs)
        self._shop = shop

    def get_remaining_time_in_millis(self) -> int:
        left = super().get_remaining_time_in_millis()
        return left if self._shop.context_ms is None else self._shop.context_ms
