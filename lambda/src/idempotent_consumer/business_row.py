"""What a stored business row says of an event whose write was refused for it. Pure."""

from decimal import Decimal

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.settings import WriteMode
from idempotent_consumer.write import ROW_EXISTS, Write


def judge_business_row(row: Item, event: Event, write: Write) -> Verdict:
    """The verdict on an event that the ledger does not know, one of whose writes was refused for this row."""
    known = judge_identity(row, event, write)
    if known is not None:
        return known
    if write.mode is WriteMode.NEWER:
        stored_is_older = is_older(row.get("event_version"), write.version)
        if (
            stored_is_older is None
        ):  # the row was not written by version, so it is not the plan's condition that refuses it
            return ROW_EXISTS
        if not stored_is_older:
            return Verdict(Outcome.SUPERSEDED)
    return write.otherwise


def judge_identity(row: Item, event: Event, write: Write) -> Verdict | None:
    """The verdict where the row says that it was put for this very event, else None.

    The ledger row of a `sent` event expires, its business row stays: it still tells a duplicate. A row that another
    consumer wrote for the same event tells nothing of what this one has published.
    """
    if write.mode is None or _rendered_id(row.get("event_id")) != event.id:
        return None
    if row.get("event_consumer") != write.consumer:
        return ROW_EXISTS if write.mode is WriteMode.NEWER else None
    if str(row.get("event_fingerprint", {}).get("S", "")) == event.fingerprint:
        return Verdict(Outcome.DUPLICATE, "ledger-row-expired", "the business row carries this event")
    return Verdict(Outcome.CONFLICT, "id-reused", "the business row holds this event id with other content")


def is_older(stored: AttributeValue | None, version: AttributeValue | None) -> bool | None:
    """Whether the stored version is older, in DynamoDB's order: strings by their UTF-8 bytes. None: not comparable."""
    if stored is None or version is None or stored.keys() != version.keys():
        return None
    if "N" in stored:
        return Decimal(stored["N"]) < Decimal(version["N"])
    return stored["S"].encode() < version["S"].encode() if "S" in stored else None


def _rendered_id(value: AttributeValue | None) -> str | None:
    return None if value is None else value.get("S", value.get("N"))
