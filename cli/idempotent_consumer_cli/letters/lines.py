"""Letters as lines: JSON for programs, words for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from idempotent_consumer_cli.clock import moment
from idempotent_consumer_cli.foresight.prospect import Difference, Foretold, Prospect
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.outcome import Followed
from idempotent_consumer_cli.rows.claim import claim_document
from idempotent_consumer_cli.rows.operation import row_document
from idempotent_consumer_cli.screen import printable
from idempotent_consumer_cli.words import listed

# Of a message with many events the first ones stand for all.
_MOST_NAMES = 3


def name_of(prospect: Prospect) -> str:
    """What people call a letter: its event ids, or the message's where it has none."""
    return name([event.event_id for event in prospect.events if event.event_id is not None], prospect.message_id)


def name(event_ids: list[str] | tuple[str, ...], message_id: str) -> str:
    if not event_ids:
        return f"message {message_id}"
    rest = len(event_ids) - _MOST_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(printable(event_id) for event_id in event_ids[:_MOST_NAMES]) + more


def in_words(reason: str | None, receives: int | None) -> str:
    """Why a letter is dead. receives: after how many SQS moves a message, where that is known."""
    if reason is not None:
        return printable(reason)
    return f"moved by SQS after {receives} receives" if receives else "moved by SQS"


def foretell(prospect: Prospect, *, with_detail: bool = True) -> str:
    """What will happen to a letter, and why."""
    return _worst_fate(prospect, with_detail) + other_fates(prospect)


def other_fates(prospect: Prospect) -> str:
    """What will happen to those of its events that do not share the letter's fate; empty where all do."""
    fates = Counter(event.fate for event in prospect.events if event.fate is not prospect.fate)
    return f"; its other events: {listed(fates)}" if fates else ""


def _worst_fate(prospect: Prospect, with_detail: bool) -> str:
    what, event = prospect.fate.value, prospect.decisive
    if event is None or not (event.reason or event.detail):
        return what
    if not event.fate.comes_back:
        return f"{what} ({printable(event.detail or event.reason)})"
    detail = f" ({printable(event.detail)})" if event.detail and with_detail else ""
    return f"{what}: {printable(event.reason)}{detail}"


def difference_of(event: Foretold | None, *, show_values: bool = False) -> str:
    """What stands against an event, in words; empty where nothing does, or nothing was compared."""
    if event is None or event.difference is None:
        return ""
    return printable(_difference(event.difference, show_values))


def document(
    opened: OpenedLetter, prospect: Prospect, now_ms: int, *, is_fifo: bool, show_values: bool = False
) -> dict[str, Any]:
    """A letter as one JSON line. now_ms: on SQS's clock. show_values: with the values that differ."""
    letter, decisive, first = opened.letter, prospect.decisive, first_ms(opened, prospect)
    dead_since = dead_since_ms(letter, is_fifo=is_fifo)
    return {
        "kind": "letter",
        "message_id": letter.message_id,
        "event_ids": opened.event_ids,
        "reason": letter.reason,
        "detail": letter.detail,
        "moved_by_sqs": letter.reason is None,
        "receive_count": letter.receive_count,
        **({} if letter.execution is None else {"execution": letter.execution}),
        "group": letter.group,
        "sent_at": moment(letter.sent_ms),
        "first_seen_at": moment(first),
        "age_seconds": max(0, (now_ms - first) // 1000),
        "dead_seconds": None if dead_since is None else max(0, (now_ms - dead_since) // 1000),
        "ledger": prospect.state.code,
        "replay": prospect.fate.code,
        "replay_reason": decisive.reason if decisive else "",
        "replay_detail": decisive.detail if decisive else "",
        "beyond_window": prospect.is_beyond_window,
        "events": [_event(event, show_values) for event in prospect.events],
    }


def outcome_document(followed: Followed) -> dict[str, Any]:
    """What became of a letter as one JSON line."""
    return {
        "kind": "outcome",
        "message_id": followed.message_id,
        "event_ids": list(followed.event_ids),
        "outcome": followed.became.code,
        "reason": followed.reason,
        "detail": followed.detail,
    }


def dead_since_ms(letter: Letter, *, is_fifo: bool) -> int | None:
    """When it came into the dead-letter queue; SQS does not tell of those that it moved from a standard queue."""
    return letter.sent_ms if letter.reason is not None or is_fifo else None


def first_ms(opened: OpenedLetter, prospect: Prospect) -> int:
    """The earliest that is known of a letter: when it was sent, or the envelope's own time; epoch milliseconds."""
    return min([opened.letter.sent_ms, *(event.first_ms for event in prospect.events if event.first_ms is not None)])


def _event(event: Foretold, show_values: bool) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "ledger": event.state.code,
        "replay": event.fate.code,
        "reason": event.reason,
        "detail": event.detail,
        **({} if event.row is None else {"operation": row_document(event.row)}),
        **({} if event.claim is None else {"claim": claim_document(event.claim)}),
        "first_seen_at": moment(event.first_ms) if event.first_ms is not None else None,
        "beyond_window": event.is_beyond_window,
        **_difference_fields(event.difference, show_values),
    }


def _difference_fields(difference: Difference | None, show_values: bool) -> dict[str, Any]:
    if difference is None:
        return {}
    if difference.owner is not None:
        event_id, consumer = difference.owner
        return {"row_of": {"event_id": event_id, "consumer": consumer}}
    if difference.attributes is None:
        return {"not_compared": difference.remark}
    fields: dict[str, Any] = {"differs": list(difference.attributes)}
    if show_values:
        fields["stored"] = {name: stored for name, (stored, _) in difference.attributes.items()}
        fields["would_write"] = {name: own for name, (_, own) in difference.attributes.items()}
    return fields


def _difference(difference: Difference, show_values: bool) -> str:
    if difference.owner is not None:
        event_id, consumer = difference.owner
        if event_id is None:
            return "the row names no event"
        return f"the row is of event {event_id}" + (f" of {consumer}" if consumer is not None else "")
    if difference.attributes is None:
        return difference.remark
    if not difference.attributes:
        return "the rows are alike: the content differs outside of them"
    if show_values:
        values = (f"{name} is {stored}, not {own}" for name, (stored, own) in difference.attributes.items())
        return "; ".join(values)
    return "differs in " + ", ".join(difference.attributes)
