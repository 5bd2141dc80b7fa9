"""What an operation will do with a letter, from what its ledger holds. Pure.

The worker's own function decides, so that this says what the worker would do. What an effect, or a provider, will
answer is never foretold.
"""

from __future__ import annotations

from dataclasses import replace

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.claims.decision import Next, Step, decide
from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.event import Event
from idempotent_consumer.items import Item
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli.clock import moment
from idempotent_consumer_cli.foresight.prospect import Fate, Foretold, LedgerState, Prospect
from idempotent_consumer_cli.rows.operation import readable, state_of

_AGAIN = "an earlier attempt may have been applied; it is repeated with the same idempotency key"
_ASKED = "nobody knows whether it was applied"
_FIRST = "the ledger does not know it"
# Of a worker's verdict that the message comes back: what an operator reads.
_WAITS = {
    "in-progress": "a worker holds it",
    "settling": "then the provider is asked",
    "backing-off": "then it is tried again",
}


def never_seen(event: Event) -> Foretold:
    """An event that the ledger does not know."""
    return Foretold(event.id, LedgerState.NEVER_SEEN, Fate.TRY, detail=_FIRST, fingerprint=event.fingerprint)


def by_operation_row(item: Item, event: Event, now_ms: int, settings: OperationSettings) -> Foretold:
    """An event that the ledger knows. now_ms: epoch milliseconds."""
    foretold = Foretold(event.id, LedgerState.UNREADABLE, Fate.REFUSE, fingerprint=event.fingerprint)
    row = readable(item)
    if row is None:
        return replace(foretold, reason="ledger-row-unreadable", detail="no operation writes such a row")
    foretold = replace(foretold, state=state_of(row, now_ms), row=row)
    step = decide(row, event.fingerprint, now_ms, settings)
    if isinstance(step, Step):
        return _by_step(step, row, foretold)
    return _by_verdict(step, row, foretold)


def to_do(prospect: Prospect) -> str:
    """The command for a letter of an operation, in short."""
    if prospect.is_beyond_window:
        return "see whether it was applied; replay --beyond-window, or drop"
    if prospect.fate is Fate.PARK:
        return "resolve"
    if prospect.fate is Fate.FAIL:
        return "resolve --retry, or drop" if prospect.state is LedgerState.FAILED else "resolve --retry or --failed"
    if prospect.state is LedgerState.UNREADABLE:
        return "look at the row"
    if prospect.fate is Fate.REFUSE:
        return "mend the cause, or drop"
    return "replay (is skipped), or drop" if prospect.fate is Fate.NO_OP else "replay"


def _by_step(step: Step, row: Row, foretold: Foretold) -> Foretold:
    if step.next is Next.PARK:
        return replace(foretold, fate=Fate.PARK, reason=step.reason, detail=step.detail)
    if step.next is Next.GIVE_UP:
        return replace(foretold, fate=Fate.FAIL, reason=step.reason, detail=step.detail)
    if step.next is Next.ASK:
        return replace(foretold, fate=Fate.ASK, detail=_ASKED)
    return replace(foretold, fate=Fate.TRY, detail=_AGAIN if row.state is State.IN_PROGRESS else _tries(row))


def _by_verdict(verdict: Verdict, row: Row, foretold: Foretold) -> Foretold:
    if verdict.outcome is Outcome.DUPLICATE:
        return replace(foretold, fate=Fate.NO_OP, detail="completed: it is skipped")
    if verdict.outcome is Outcome.PARKED:
        return replace(
            foretold, fate=Fate.PARK, reason=verdict.reason, detail=f"until `resolve` settles it: {row.detail}"
        )
    if verdict.outcome is Outcome.FAILED:
        return replace(foretold, fate=Fate.FAIL, reason=verdict.reason, detail=verdict.detail)
    if verdict.outcome is Outcome.CONFLICT:
        return replace(
            foretold, state=LedgerState.CONFLICT, fate=Fate.REFUSE, reason=verdict.reason, detail=verdict.detail
        )
    until = f"until {moment(verdict.retry_at_ms)}: " if verdict.retry_at_ms is not None else ""
    return replace(foretold, fate=Fate.WAIT, reason=verdict.reason, detail=until + _WAITS.get(verdict.reason, ""))


def _tries(row: Row) -> str:
    return f"after {row.tries} {'attempt' if row.tries == 1 else 'attempts'}" if row.tries else ""
