"""Entry point of a workflow's guard, which Step Functions asks before it runs the effect."""

import gc
import os
from collections.abc import Mapping
from typing import Any

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:  # as entry_point.uncollected does
    gc.disable()

from idempotent_consumer import telemetry
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import create_client
from idempotent_consumer.settings import Reader
from idempotent_consumer.workflow.claim import ClaimRequest, ClaimUnavailable, claim


class Guard:
    """dynamodb: a client made by `aws.create_client`. Raises SettingsError."""

    def __init__(self, environment: Mapping[str, str], dynamodb: Any) -> None:
        read = Reader(environment)
        self._consumer_name = read.text("CONSUMER_NAME")
        self._table = read.text("IDEMPOTENCY_TABLE")
        self._dynamodb = dynamodb

    def handle(self, request: Any) -> dict[str, Any]:
        """See `ClaimRequest` and `claim`. Raises InvalidRequest, and ClaimUnavailable: then ask again."""
        wanted = ClaimRequest.read(request)
        try:
            with telemetry.phase("claim"):
                answer = claim(self._dynamodb, self._table, wanted, telemetry.now_ms())
        except ClaimUnavailable as failure:
            telemetry.log_verdict(wanted.message_id or "", wanted.key, failure.verdict)
            self._emit(wanted, {"Misconfigured": int(failure.verdict.is_misconfigured)})
            raise
        reason = str(answer["reason"])
        if not answer["proceed"]:
            outcome = Outcome.CONFLICT if reason == "conflict" else Outcome.DUPLICATE
            telemetry.log_verdict(wanted.message_id or "", wanted.key, Verdict(outcome, reason))
        counted = {"Claimed": ("claimed",), "Conflicts": ("conflict",), "Skipped": ("duplicate", "parked")}
        self._emit(wanted, {name: int(reason in those) for name, those in counted.items()})
        return answer

    def _emit(self, wanted: ClaimRequest, counts: Mapping[str, int]) -> None:
        try:
            telemetry.emit_counts(self._consumer_name, counts)
        except Exception as error:  # the key is claimed: without an owner nobody could ask again
            telemetry.log_fault(wanted.message_id or "", error)


def _connect() -> Guard:
    return Guard(os.environ, create_client("dynamodb"))


_guard = None
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _guard = _connect()
    gc.freeze()
    gc.enable()


def handler(request: Any, _context: Any) -> dict[str, Any]:
    """What the state machine's guard state invokes."""
    global _guard
    _guard = _guard or _connect()
    return _guard.handle(request)
