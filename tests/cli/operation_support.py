"""An operation `orders` in process: its ledger's rows as its worker writes them, and its worker at the queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.row import Row, StoredResult, read_row
from idempotent_consumer.claims.table import Claims
from idempotent_consumer.event import Event, fingerprint
from idempotent_consumer.operation_settings import OperationSettings
from tests.cli.letters_support import Dead, deploy
from tests.cli.support import FUNCTION, LEDGER, Run, World

LEASE_SECONDS = 180
OPERATOR = "arn:aws:iam::123456789012:user/op"


class _Endless:
    def get_remaining_time_in_millis(self) -> int:
        return 10**9


class Operation:
    """age, and for: seconds ago, by the command line's clock."""

    def __init__(self, dead: Dead) -> None:
        self.dead = dead
        self.world: World = dead.world
        self._now_ms = self.world.now_ms
        self._claims = Claims(self.world.dynamodb, self.settings, lambda: self._now_ms)
        self._budget = Budget(_Endless())

    @property
    def settings(self) -> OperationSettings:
        return OperationSettings.from_environment(self.world.functions[FUNCTION]["Environment"]["Variables"])

    # --- what its worker has done before

    def event(self, data: Mapping[str, Any]) -> Event:
        return Event(str(data["id"]), dict(data), fingerprint(dict(data), self.settings.fingerprint))

    def claim(self, data: Mapping[str, Any], *, age: float = 0) -> Claim:
        """A worker holds it, and may be at its effect."""
        event = self.event(data)
        claim = self._at(age, lambda: self._claims.claim(event.id, event.fingerprint, "m-1", self._budget))
        assert isinstance(claim, Claim)
        return claim

    def stale(self, data: Mapping[str, Any], *, age: float = 0) -> Claim:
        """Its worker died; its lease has been over for `age` seconds."""
        return self.claim(data, age=age + LEASE_SECONDS)

    def park(self, data: Mapping[str, Any], *, age: float = 0) -> None:
        """A worker parked it, once the lease of the one before was over."""
        self.stale(data, age=age)
        detail = "1 attempt, the last one: answer-timeout"
        row = self.row(str(data["id"]))
        assert self._at(age, lambda: self._claims.park(row, "outcome-unknown", detail, self._budget)) is None

    def complete(self, data: Mapping[str, Any], result: Any = None, *, age: float = 0) -> None:
        claim = self.claim(data, age=age + 1)
        assert self._at(age, lambda: self._claims.complete(claim, StoredResult.of(result), self._budget)) is None

    def fail(self, data: Mapping[str, Any], reason: str = "card-declined", detail: str = "", *, age: float = 0) -> None:
        """It has failed for good."""
        claim = self.claim(data, age=age + 1)
        assert self._at(age, lambda: self._claims.fail(claim, reason, detail, self._budget)) is None

    def fail_for_now(
        self, data: Mapping[str, Any], reason: str = "too-busy", *, age: float = 0, retry_in: float = 0
    ) -> None:
        """It has failed, and is tried again in `retry_in` seconds from now."""
        claim = self.claim(data, age=age + 1)
        retry_at_ms = self.world.now_ms + int(retry_in * 1000)
        self._at(age, lambda: self._claims.fail_for_now(claim, reason, "", retry_at_ms, self._budget))

    def change(self, event_id: str, **attributes: Any) -> None:
        """Edit a row by hand; None takes an attribute out."""
        row = {**self.world.ledger()[event_id], **attributes}
        self.world.store(LEDGER, {name: value for name, value in row.items() if value is not None})

    def _at(self, age: float, what: Callable[[], Any]) -> Any:
        self._now_ms = self.world.now_ms - int(age * 1000)
        return what()

    # --- what is run

    def letter(
        self, data: str | Mapping[str, Any], reason: str | None = None, detail: str | None = None, **more: Any
    ) -> str:
        return self.dead.letter(data, reason, detail, **more)

    def run(self, *arguments: str) -> Run:
        return self.dead.run(*arguments)

    def work(self, fates: Mapping[str, str]) -> None:
        """The worker takes all that is in the queue.

        fates: by an event's id, `completed`, `later`, `moved` (by SQS, which received it too often) or a dead letter's
        reason.
        """
        self.dead.clock.seconds += 1
        for message in self.world.queued():
            event = json.loads(message["Body"])
            fate = fates[event["id"]]
            if fate == "completed":
                self.complete(event)
            elif fate != "later":
                reason = None if fate == "moved" else fate
                self.letter(message["Body"], reason, group=message["Attributes"].get("MessageGroupId"))

    # --- what is there

    def row(self, event_id: str) -> Row:
        return read_row(self.world.ledger()[event_id])


def deploy_operation(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, uncertain: str = "park", **options: Any
) -> Operation:
    """See `World` for the options."""
    return Operation(deploy(new_world, monkeypatch, operation=uncertain, **options))


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}
