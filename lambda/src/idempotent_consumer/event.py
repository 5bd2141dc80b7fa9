"""The business event: its id and its fingerprint."""

import hashlib
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.envelope import Data, looks_like_sns
from idempotent_consumer.expression import Expression
from idempotent_consumer.items import MAX_HASH_KEY_BYTES
from idempotent_consumer.json_text import canonical
from idempotent_consumer.rejection import Rejected


@dataclass(frozen=True, slots=True)
class Event:
    """One business event.

    id: the ledger key, 1 to 2,048 UTF-8 bytes. data: the event's JSON object; its numbers are int or Decimal.
    fingerprint: SHA-256 (hex) of its canonical content: the same event sent again has the same one.
    group: the message group on a FIFO queue, else None.
    """

    id: str
    data: Data
    fingerprint: str
    group: str | None = None


def read_event_id(data: Data, expression: Expression) -> str:
    """Raises Rejected: `id-missing`, `id-blank`, `id-wrong-type`, `id-too-long`."""
    try:
        value = expression.search(data)
    except Rejected as rejected:
        raise Rejected("id-missing", rejected.detail) from None
    if value is None:
        hint = ": the body looks like an SNS envelope, set event.envelope to sns" if looks_like_sns(data) else ""
        raise Rejected("id-missing", f'event.id "{expression.text}" selects nothing{hint}')
    return _id_text(value, expression)


def fingerprint(data: Data, expression: Expression) -> str:
    """Raises Rejected `fingerprint-missing` where the expression selects nothing: all such events would look alike."""
    content = expression.search(data)
    if content is None:
        raise Rejected("fingerprint-missing", f'event.fingerprint "{expression.text}" selects nothing')
    return hashlib.sha256(canonical(content)).hexdigest()


def _id_text(value: Any, expression: Expression) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Rejected("id-wrong-type", f'event.id "{expression.text}" is neither a string nor an integer')
    if not value.strip():
        raise Rejected("id-blank", f'event.id "{expression.text}" is blank')
    size = len(value.encode())
    if size > MAX_HASH_KEY_BYTES:
        raise Rejected("id-too-long", f'event.id "{expression.text}" has {size} UTF-8 bytes, over {MAX_HASH_KEY_BYTES}')
    return value
