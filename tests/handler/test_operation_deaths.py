"""The process dies at each line of an invocation, or an answer of DynamoDB is lost there; then all goes well.

Under each policy, with each way an effect can end, an order is charged at most once, is completed if and only if it is
charged, and what fails is in the dead-letter queue with its reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from idempotent_consumer import Applied, Event, Final, NotApplied, Retryable, telemetry
from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.resolution import Decision, Resolution
from idempotent_consumer.claims.row import Row, State, read_row
from idempotent_consumer.claims.table import Claims
from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.settlement import Misconfigured
from tests.handler.operation_model import World
from tests.handler.operations import Died, refuse
from tests.handler.support import LEDGER, NOTHING_FAILED, client_error, record

ENVIRONMENT = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": LEDGER,
    "DEAD_LETTER_QUEUE_URL": "https://sqs.test/orders-dead-letter",
    "QUEUE_URL": "https://sqs.test/orders",
    "VISIBILITY_TIMEOUT_SECONDS": "360",
    "BACKOFF_MAX_SECONDS": "900",
    "MAX_RECEIVE_COUNT": "15",
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "180000",
    "OPERATION_SETTLE_SECONDS": "130",
    "OPERATION_MAX_ATTEMPTS": "4",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_RETRY_SECONDS": "30",
}
# The lines at which it dies: those of the modules that an operation consists of.
MODULES = (
    "attempt.py",
    "backoff.py",
    "claims/claim.py",
    "claims/row.py",
    "claims/table.py",
    "dead_letter.py",
    "operation_consumer.py",
    "settlement.py",
)
ENDS = ("charged", "charged, answer lost", "retryable", "final", "lost before")
# At one of several lines where DynamoDB misbehaves too: the same line is met by another play.
STEP_WITH_FAULTS = 29
FAULTS = ("repeated by the SDK", "InternalServerError", "ThrottlingException", "AccessDeniedException")


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


class _Death:
    """Kills the process at the nth line from now on, if there are so many."""

    def __init__(self, line: int) -> None:
        self._left = line
        self.place = "nowhere"

    @property
    def has_struck(self) -> bool:
        return self._left <= 0

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        return self._at_line if "/idempotent_consumer/" in path and path.endswith(MODULES) else None

    def _at_line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self._left -= 1
            if self._left == 0:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                raise Died
        return self._at_line


class Play:
    """One order, its provider, and deliveries of its message."""

    def __init__(self, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World(lambda: "worker")
        self.charges = 0
        self.plan: list[Callable[[], Any]] = []
        self.settings = OperationSettings.from_environment({**ENVIRONMENT, "OPERATION_UNCERTAIN": policy})
        self._knows_keys = policy == "provider_key"
        monkeypatch.setattr(telemetry, "now_ms", lambda: self.world.now_ms)

    def end(self, name: str) -> Callable[[], Any]:
        def charged_and_lost() -> Any:
            self.charge()
            raise TimeoutError

        return {
            "charged": self.charge,
            "charged, answer lost": charged_and_lost,
            "retryable": refuse(Retryable("busy", after_seconds=1)),
            "final": refuse(Final("declined")),
            "lost before": refuse(TimeoutError()),
        }[name]

    def charge(self) -> Any:
        if not (self._knows_keys and self.charges):
            self.charges += 1
        return {"charge": "ch-1"}

    def deliver(self, receives: int, message_id: str = "m-1") -> Any:
        """One invocation of a new process; None where the whole batch returns."""
        operation = Operation(self._effect, self._find)
        consumer = OperationConsumer(self.settings, self.world.clients, operation)
        try:
            return consumer.handle({"Records": [record(message_id, {"id": "o-1"}, receive_count=receives)]}, _Context())
        except Misconfigured:
            return None

    @property
    def row(self) -> Row:
        return read_row(self.world.ledger.rows["o-1"])

    def _effect(self, _event: Event, _key: str) -> Any:
        return self.plan.pop(0)() if self.plan else self.charge()

    def _find(self, _event: Event, _key: str) -> Any:
        return Applied({"charge": "ch-1"}) if self.charges else NotApplied()


def spoil(play: Play, fault: str, number: int) -> None:
    """The answer of the nth write is lost: the SDK asks again, or gives up with an error."""
    seen = 0

    def interfere(operation: str, _request: Any, effect: Callable[[], Any]) -> Any:
        nonlocal seen
        seen += operation == "UpdateItem"
        if operation != "UpdateItem" or seen != number:
            return effect()
        effect()
        if fault == "repeated by the SDK":
            return effect()
        raise client_error(fault, operation)

    play.world.interfere = interfere


def die(play: Play, line: int) -> tuple[Any, _Death]:
    """A delivery in which the process dies at this line: its answer, and the death."""
    death = _Death(line)
    answer = None
    before = sys.gettrace()  # such as that of coverage
    sys.settrace(death)
    try:
        with suppress(Died):
            answer = play.deliver(2)
    finally:
        sys.settrace(before)
    return answer, death


def settle(play: Play, answer: Any) -> None:
    """The message comes back until it is done. What is parked then is decided by a person, who asks the provider."""
    receives = 2
    while answer != NOTHING_FAILED:
        receives += 1
        assert receives < 15
        play.world.now_ms += 1_000_000
        answer = play.deliver(receives)
    if play.row.parked_ms is not None:
        assert "outcome-unknown" in [letter.reason for letter in play.world.letters]
        claims = Claims(play.world.clients.dynamodb, play.settings, telemetry.now_ms)
        decision = Decision.COMPLETED if play.charges else Decision.RETRY
        assert claims.resolve(play.row, Resolution(decision, "ann", "seen"), Budget(_Context())) is None
        assert play.deliver(1, "m-2") == NOTHING_FAILED


def judge(play: Play) -> None:
    assert play.charges == (play.row.state is State.COMPLETED)
    if play.row.state is not State.COMPLETED:
        assert (play.row.state, play.row.reason) == (State.FAILED_FINAL, "declined")
        assert "declined" in [letter.reason for letter in play.world.letters]
    assert play.world.ledger.complaints == []


@pytest.mark.case("C54", "C57", "C63")
@pytest.mark.parametrize("policy", ["park", "provider_key", "reconcile"])
@pytest.mark.parametrize("end", ENDS)
def test_a_death_at_any_line_charges_nothing_twice_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, policy: str, end: str
) -> None:
    for fault, number, step in [
        (None, 0, 1),
        *((fault, number, STEP_WITH_FAULTS) for fault in FAULTS for number in (1, 2)),
    ]:
        line, has_struck = 1, True
        while has_struck:
            play = Play(policy, monkeypatch)
            play.plan.append(play.end(end))
            if fault:
                spoil(play, fault, number)
            answer, death = die(play, line)
            has_struck = death.has_struck
            play.plan.clear()
            if end == "final" and play.charges == 0:
                play.plan += [play.end(end)] * 4
            try:
                settle(play, answer)
                judge(play)
            except AssertionError as error:
                raise AssertionError(f"{fault} at write {number}, death at {death.place}") from error
            line += step
        assert fault or line > 100
