"""Shows operations and settles them as a person has decided."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from idempotent_consumer.claims.resolution import Decision, NotResolvable, Resolution, check_resolvable
from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.claims.table import ClaimFailed, Claims
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.clock import endless
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.foresight.operation_lookup import OperationTable
from idempotent_consumer_cli.rows.operation import readable, row_document, standing_since_ms, state_of, why
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.words import age, count, spoken

_NO_ROW = "the ledger holds no such event"
_NO_OPERATION = "its row was written by no operation"
_WORDS = {Decision.COMPLETED: "completed", Decision.FAILED: "failed", Decision.RETRY: "to be retried"}
# What is to become of the letter.
_THEN = {
    Decision.COMPLETED: ("replay", "the letter is skipped, and gone"),
    Decision.FAILED: ("drop", "the letter would only come back"),
    Decision.RETRY: ("replay", "the letter brings the next attempt; where there is none, send the event again"),
}


class Resolver:
    """One run. resolution: the decision, the same for all operations. is_dry: change nothing."""

    def __init__(
        self, dynamodb: Any, settings: OperationSettings, screen: Screen, resolution: Resolution, *, is_dry: bool
    ) -> None:
        self._table = OperationTable(dynamodb, settings.ledger_table)
        self._claims = Claims(dynamodb, settings, clock.now_ms)
        self._settings = settings
        self._screen = screen
        self._resolution = resolution
        self._is_dry = is_dry
        self._settled: list[str] = []
        self._left = 0

    @property
    def how_far(self) -> str:
        """What is done, for one who stops."""
        if self._is_dry:
            return "Nothing was changed."
        done = f" ({', '.join(self._settled)})" if self._settled else ""
        return f"{count(len(self._settled), 'operation')} settled{done}. Run it again for the others."

    def run(self, event_ids: Sequence[str]) -> None:
        """Show the operations, then settle them one by one. Raises what a call to DynamoDB raises, and CommandError."""
        items = self._table.rows(event_ids)
        rows = {event_id: readable(items[event_id]) for event_id in event_ids if event_id in items}
        self._show(rows)
        for event_id in event_ids:
            row = rows.get(event_id)
            if row is None:
                self._leave(event_id, _NO_OPERATION if event_id in rows else _NO_ROW)
            else:
                self._settle(row)

    def close(self) -> int:
        """Show the sums, and what is to be done next; returns the exit code."""
        what = count(len(self._settled), "operation")
        verb = "would be settled" if self._is_dry else "settled"
        verdict = f"{what} {verb}: {_WORDS[self._resolution.decision]}" + (
            f", {self._left:,} left." if self._left else "."
        )
        then = self._then()
        if then:
            self._screen.say(then)
        self._screen.say(f"{verdict} Nothing was changed." if self._is_dry else verdict)
        self._screen.emit(
            {
                "kind": "summary",
                "dry_run": self._is_dry,
                "decision": self._resolution.decision.value,
                "settled": len(self._settled),
                "left": self._left,
                "then": then,
            }
        )
        return 1 if self._left else 0

    def _settle(self, row: Row) -> None:
        before = {"state": state_of(row, clock.now_ms()).code, **row_document(row)}
        try:
            if self._is_dry:
                check_resolvable(row, self._resolution.decision, clock.now_ms())
                changed = None
            else:
                changed = self._claims.resolve(row, self._resolution, endless())
        except NotResolvable as refusal:
            self._leave(row.event_id, _refusal_text(refusal), before, refusal.until_ms)
            return
        except ClaimFailed as failure:
            raise CommandError(self._failure_text(row.event_id, failure)) from None
        if changed is not None:
            state = state_of(changed, clock.now_ms()).value
            text = f"it was changed meanwhile: it is {state} now, at attempt {changed.attempt}. Look again"
            self._leave(row.event_id, text, before)
            return
        self._settled.append(row.event_id)
        self._screen.say(f"{row.event_id}: {self._outcome_text(row)}")
        self._emit(row.event_id, "would-be-settled" if self._is_dry else "settled", before)

    def _outcome_text(self, row: Row) -> str:
        resolution = self._resolution
        what = {
            Decision.COMPLETED: f"completed, with the result {resolution.result}",
            Decision.FAILED: f"failed: {resolution.why}",
            Decision.RETRY: "to be retried at once",
        }[resolution.decision]
        if self._is_dry:
            text = f"would be {what.removeprefix('to be ')}"
        else:
            text = f"{what} (attempt {row.attempt + 1}, decided by {resolution.by})"
        return text + self._warning(row)

    def _warning(self, row: Row) -> str:
        """Where "not applied" may be said too early. A person may know better, so it is no refusal."""
        settled_ms = (row.parked_ms or row.lease_until_ms) + self._settings.settle_ms
        is_open = row.state is State.IN_PROGRESS and self._resolution.decision is not Decision.COMPLETED
        if not is_open or clock.now_ms() >= settled_ms:
            return ""
        return f". The provider may still apply an earlier attempt until {clock.moment(settled_ms)}: look again then"

    def _leave(
        self, event_id: str, text: str, before: dict[str, Any] | None = None, until_ms: int | None = None
    ) -> None:
        self._left += 1
        self._screen.say(f"{event_id}: not settled: {text}")
        until = None if until_ms is None else clock.moment(until_ms)
        self._emit(event_id, "left", before, text, until)

    def _emit(
        self,
        event_id: str,
        outcome: str,
        before: dict[str, Any] | None,
        reason: str = "",
        until: str | None = None,
    ) -> None:
        resolution = self._resolution
        self._screen.emit(
            {
                "kind": "operation",
                "event_id": event_id,
                "outcome": outcome,
                "reason": reason,
                "until": until,
                "decision": resolution.decision.value,
                "by": resolution.by,
                "why": resolution.why,
                "result": resolution.result,
                "before": before,
            }
        )

    def _show(self, rows: dict[str, Row | None]) -> None:
        now_ms = clock.now_ms()
        cells = [_cells(row, now_ms) for row in rows.values() if row is not None]
        if cells:
            columns = ["event id", "state", "for", "attempt", "tries", "first claimed", "idempotency key", "why"]
            self._screen.table(f"Operations of {self._settings.consumer_name}", columns, cells)

    def _then(self) -> str:
        if not self._settled or self._is_dry:
            return ""
        verb, why_so = _THEN[self._resolution.decision]
        ids = " ".join(f"--id {shlex.quote(event_id)}" for event_id in self._settled)
        return f"Next: idempotent-consumer {verb} --name {self._settings.consumer_name} {ids} ({why_so})."

    def _failure_text(self, event_id: str, failure: ClaimFailed) -> str:
        verdict = failure.verdict
        if verdict.is_misconfigured:
            table = self._settings.ledger_table
            return f"{event_id} is not settled ({verdict.detail}): you need dynamodb:UpdateItem on {table}"
        return f"{event_id} is perhaps not settled ({verdict.reason}: {verdict.detail}): run it again"


def _refusal_text(refusal: NotResolvable) -> str:
    if refusal.until_ms is None:
        return str(refusal)
    left = spoken((refusal.until_ms - clock.now_ms()) / 1000)
    return f"{refusal}, until {clock.moment(refusal.until_ms)} (in {left})"


def _cells(row: Row, now_ms: int) -> list[Any]:
    return [
        row.event_id,
        state_of(row, now_ms).value,
        age(now_ms, standing_since_ms(row, now_ms)),
        row.attempt,
        row.tries,
        clock.moment(row.created_ms),
        row.idempotency_key,
        why(row) or None,
    ]
