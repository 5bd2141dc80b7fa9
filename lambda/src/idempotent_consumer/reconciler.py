"""Entry point of the reconciler, which runs on a schedule and publishes what has been pending for too long."""

import gc
import os
from typing import Any

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:  # as entry_point.uncollected does
    gc.disable()

from idempotent_consumer import telemetry
from idempotent_consumer.aws import Clients
from idempotent_consumer.calls import Budget, LambdaContext
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.pending import PendingIndex
from idempotent_consumer.reconciliation import Reconciler
from idempotent_consumer.settings import ReconcilerSettings


class PendingUnreadable(RuntimeError):
    """What is pending could not be read, so the run tells nothing; the log names the call that was refused."""


class ScheduledReconciler:
    """One run for each invocation, bounded by the function's time; what it does not get to is the next one's."""

    def __init__(self, settings: ReconcilerSettings, clients: Clients) -> None:
        self._settings = settings
        self._reconciler = Reconciler(
            PendingIndex(clients.dynamodb, settings.ledger_table),
            Ledger(clients.dynamodb, settings.ledger_table),
            Outbox(clients.sns, settings.topic_arn),
            settings.ttl_window_seconds,
            telemetry.now_ms,
        )

    def handle(self, context: LambdaContext) -> dict[str, int]:
        """Returns how many rows were published and how many are left. Raises PendingUnreadable."""
        now_ms = telemetry.now_ms()
        with telemetry.phase("reconcile") as annotations:
            run = self._reconciler.run(now_ms - self._settings.threshold_ms, Budget(context))
            annotations.update(published=run.published, left=run.still_stale)
        telemetry.log_left({**run.left, **{f"shard {shard}": verdict for shard, verdict in run.unread.items()}})
        telemetry.emit_reconciliation(self._settings.consumer_name, run, now_ms)
        if run.unread:
            raise PendingUnreadable(f"{len(run.unread)} shards of the index could not be read: the log says why")
        return {"published": run.published, "still_stale": run.still_stale}


def _connect() -> ScheduledReconciler:
    settings = ReconcilerSettings.from_environment(os.environ)
    return ScheduledReconciler(settings, Clients.create(settings.topic_arn))


_reconciler = None
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _reconciler = _connect()
    gc.freeze()
    gc.enable()


def handler(_invocation: Any, context: LambdaContext) -> dict[str, int]:
    """What the schedule invokes; its event holds nothing that matters."""
    global _reconciler
    _reconciler = _reconciler or _connect()
    return _reconciler.handle(context)
