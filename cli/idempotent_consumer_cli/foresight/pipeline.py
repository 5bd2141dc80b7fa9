"""What a pipeline will do with a letter, from what its ledger and its business table hold. Pure.

The consumer's own functions give the verdicts, so that this says what the consumer would say.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.business_row import is_older, judge_business_row
from idempotent_consumer.commit import is_pending, judge_ledger_row
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import WriteMode
from idempotent_consumer.write import Write
from idempotent_consumer_cli.foresight.prospect import Difference, Fate, Foretold, LedgerState

# What the consumer writes beside an event's own values.
_OWN_ATTRIBUTES = frozenset({"event_id", "event_fingerprint", "event_consumer", "event_committed_at"})
_LONGEST_VALUE = 60
# Reasons of no-ops, after which the ledger says `sent`.
COPY = "copy"
SUPERSEDED = "superseded"


def by_ledger_row(row: Item, event: Event) -> Foretold:
    """An event that the ledger knows."""
    verdict = judge_ledger_row(row, event)
    if verdict.outcome is Outcome.CONFLICT:
        return _foretold(event, LedgerState.CONFLICT, Fate.REFUSE, verdict)
    if verdict.outcome is Outcome.RESUMED:
        return _foretold(event, LedgerState.PENDING, Fate.PUBLISH)
    if verdict.outcome is Outcome.DUPLICATE:
        return _foretold(event, LedgerState.SENT, Fate.NO_OP)
    return _foretold(event, LedgerState.PENDING if is_pending(row) else LedgerState.UNREADABLE, Fate.REFUSE, verdict)


def by_own_code(event: Event) -> Foretold:
    """An event that the ledger does not know, of a consumer whose code is its user's."""
    return _foretold(event, LedgerState.NEVER_SEEN, Fate.UNKNOWN, detail="the consumer's own code decides")


def by_plan(event: Event, rejected: Rejected) -> Foretold:
    """An event that the ledger does not know and that cannot be planned."""
    return _foretold(
        event, LedgerState.NEVER_SEEN, Fate.REFUSE, Verdict(Outcome.REJECTED, rejected.reason, rejected.detail)
    )


def by_business_row(event: Event, write: Write, row: Item | None) -> Foretold:
    """An event that the ledger does not know; row: what is stored where it would write, its identity at least."""
    if row is None or not is_refused(write, row):
        return _foretold(event, LedgerState.NEVER_SEEN, Fate.APPLY)
    verdict = judge_business_row(row, event, write)
    if verdict.outcome is Outcome.DUPLICATE:
        return _foretold(event, LedgerState.NEVER_SEEN, Fate.NO_OP, verdict)
    if verdict.outcome is Outcome.SUPERSEDED:
        detail = "a version that is not older is stored"
        return _foretold(event, LedgerState.NEVER_SEEN, Fate.NO_OP, Verdict(verdict.outcome, SUPERSEDED, detail))
    return _foretold(event, LedgerState.NEVER_SEEN, Fate.REFUSE, verdict)


def by_earlier_letter(event: Event, fingerprint: str, known: Foretold | None) -> Foretold:
    """An event that an earlier letter settles. fingerprint: of that one. known: what the ledger says of the event."""
    state = known.state if known is not None else LedgerState.NEVER_SEEN
    if fingerprint == event.fingerprint:
        detail = "an earlier letter holds the same event"
        return _foretold(event, state, Fate.NO_OP, Verdict(Outcome.DUPLICATE, COPY, detail))
    detail = "an earlier letter holds this event id with other content"
    return _foretold(event, state, Fate.REFUSE, Verdict(Outcome.CONFLICT, "id-reused", detail))


def is_refused(write: Write, row: Item) -> bool:
    """Whether the condition of this write fails on the stored row, as DynamoDB reads it (write.py has the text)."""
    if write.mode is WriteMode.INSERT:
        return True
    item = write.action["Put"]["Item"]
    if write.mode is WriteMode.UPSERT:
        return all(row.get(name) == item[name] for name in ("event_id", "event_consumer"))
    return not is_older(row.get("event_version"), item["event_version"])


def owner(row: Item) -> Difference:
    """Whose a stored row is."""
    event_id, consumer = row.get("event_id"), row.get("event_consumer")
    return Difference(owner=(_plain(event_id) if event_id else None, _plain(consumer) if consumer else None))


def compare(item: Item, row: Item) -> Difference:
    """What the event would write, against what is stored."""
    if item["event_id"] != row.get("event_id") or item["event_consumer"] != row.get("event_consumer"):
        return owner(row)
    names = sorted({*item, *row} - _OWN_ATTRIBUTES)
    return Difference(
        {
            name: (_shown(row.get(name)), _shown(item.get(name)))
            for name in names
            if not _same(row.get(name), item.get(name))
        }
    )


def _foretold(
    event: Event, state: LedgerState, fate: Fate, verdict: Verdict | None = None, detail: str = ""
) -> Foretold:
    return Foretold(
        event.id,
        state,
        fate,
        verdict.reason if verdict else "",
        verdict.detail if verdict else detail,
        fingerprint=event.fingerprint,
    )


def _same(one: Any, other: Any) -> bool:
    """Equality of attribute values; DynamoDB keeps numbers, not their spelling."""
    if not isinstance(one, dict) or not isinstance(other, dict) or one.keys() != other.keys():
        return bool(one == other)
    return all(_same_content(kind, one[kind], other[kind]) for kind in one)


def _same_content(kind: str, one: Any, other: Any) -> bool:
    if kind == "N":
        return Decimal(one) == Decimal(other)
    if kind == "M":
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if kind == "L":
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _shown(value: AttributeValue | None) -> str:
    if value is None:
        return "nothing"
    text = _plain(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _plain(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    return str(content) if kind in ("S", "N", "BOOL") else "null" if kind == "NULL" else _nested(kind, content)


def _nested(kind: str, content: Any) -> str:
    if kind == "M":
        return "{" + ", ".join(f"{name}: {_plain(inner)}" for name, inner in content.items()) + "}"
    if kind == "L":
        return "[" + ", ".join(_plain(inner) for inner in content) + "]"
    return f"{kind} {content}"
