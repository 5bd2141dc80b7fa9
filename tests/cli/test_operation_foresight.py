"""What is foretold of an operation's letter is what its worker then does: both are asked, on the same ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer import Applied, Event, operation_settings
from idempotent_consumer.aws import Clients
from idempotent_consumer.operation_consumer import Operation as Code
from idempotent_consumer.operation_consumer import OperationConsumer
from tests.cli.operation_support import Operation, deploy_operation, order
from tests.cli.support import World
from tests.handler.support import record

PARK, PROVIDER_KEY, RECONCILE = (policy.value for policy in operation_settings.WhenUncertain)
Before = Callable[[Operation], Any]


class Context:
    """The invocation's time: as much as its lease allows for."""

    def get_remaining_time_in_millis(self) -> int:
        return 59_000


class Worker:
    """The operation's function. did: whom it called."""

    def __init__(self, operation: Operation) -> None:
        self.did: list[str] = []
        code = Code(effect=self._charge, reconcile=self._find)
        self._consumer = OperationConsumer(operation.settings, Clients.create(), code)
        self._operation = operation

    def deliver(self, data: Any) -> tuple[str, str]:
        """What it does with the event, as the command line names it, and the reason on its dead letter."""
        answer = self._consumer.handle({"Records": [record("m-again", data)]}, Context())
        letters = self._operation.world.dead_letters()
        if letters:
            reason = letters[0]["MessageAttributes"]["dead_letter_reason"]["StringValue"]
            return {"outcome-unknown": "park", "id-reused": "refuse"}.get(reason, "fail"), reason
        if self.did:
            return self.did[0], ""
        return ("wait" if answer["batchItemFailures"] else "no-op"), ""

    def _charge(self, event: Event, key: str) -> str:
        self.did.append("try")
        return "charged"

    def _find(self, event: Event, key: str) -> Applied:
        self.did.append("ask")
        return Applied("found")


def nothing(operation: Operation) -> None:
    """Nothing has happened before."""


def used_up(operation: Operation) -> None:
    operation.fail_for_now(order(), retry_in=-1)
    operation.change("order-1", tries={"N": "5"})


def used_up_and_uncertain(operation: Operation) -> None:
    operation.stale(order(), age=600)
    operation.change("order-1", tries={"N": "5"})


def too_old(operation: Operation) -> None:
    operation.fail_for_now(order(), retry_in=-1, age=82_801)


def resolved(*decision: str) -> Before:
    def before(operation: Operation) -> None:
        operation.park(order(), age=600)
        assert operation.run("resolve", "order-1", *decision, "--by", "ann").exit_code == 0

    return before


CASES: list[tuple[str, str, Before, str]] = [
    ("new", PARK, nothing, "try"),
    ("held", PARK, lambda o: o.claim(order(), age=20), "wait"),
    ("stale, parked by policy", PARK, lambda o: o.stale(order(), age=10), "park"),
    ("stale, repeated with its key", PROVIDER_KEY, lambda o: o.stale(order(), age=10), "try"),
    ("stale, its attempts used up", PROVIDER_KEY, used_up_and_uncertain, "park"),
    ("stale, the provider not settled", RECONCILE, lambda o: o.stale(order(), age=100), "wait"),
    ("stale, the provider is asked", RECONCILE, lambda o: o.stale(order(), age=140), "ask"),
    ("parked", PARK, lambda o: o.park(order(), age=600), "park"),
    ("parked, whatever the policy", PROVIDER_KEY, lambda o: o.park(order(), age=600), "park"),
    ("parked, and the provider is not asked", RECONCILE, lambda o: o.park(order(), age=600), "park"),
    ("to be retried later", PARK, lambda o: o.fail_for_now(order(), retry_in=600), "wait"),
    ("to be retried", PARK, lambda o: o.fail_for_now(order(), retry_in=-1), "try"),
    ("attempts used up", PARK, used_up, "fail"),
    ("too old", PARK, too_old, "fail"),
    ("failed", PARK, lambda o: o.fail(order()), "fail"),
    ("completed", PARK, lambda o: o.complete(order()), "no-op"),
    ("other content", PARK, lambda o: o.complete(order(total=6)), "refuse"),
    ("other content of a parked one", PARK, lambda o: o.park(order(total=6)), "refuse"),
    ("resolved as completed", PARK, resolved("--completed", "ch_1"), "no-op"),
    ("resolved as failed", PARK, resolved("--failed", "no"), "fail"),
    ("resolved to be retried", PARK, resolved("--retry"), "try"),
    ("resolved to be retried, whatever the policy", RECONCILE, resolved("--retry"), "try"),
]


@pytest.mark.parametrize(("uncertain", "before", "fate"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_foretold_is_done(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, uncertain: str, before: Before, fate: str
) -> None:
    operation = deploy_operation(new_world, monkeypatch, uncertain)
    before(operation)
    message_id = operation.letter(order())
    line = operation.run("inspect", "--json").documents[0]
    foretold = line["replay"], line["replay_reason"] if line["replay"] in ("park", "fail", "refuse") else ""
    operation.world.sqs.purge_queue(QueueUrl=operation.world.dead_letter_url)
    done = Worker(operation).deliver(order())
    assert line["message_id"] == message_id
    assert foretold == done
    assert done[0] == fate
