"""Consistent reads of a consumer's ledger and business table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from idempotent_consumer.answer import Verdict
from idempotent_consumer.items import Item
from idempotent_consumer.keys import row_key
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.settings import Settings
from idempotent_consumer.write import Write
from idempotent_consumer_cli.clock import endless
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.rows.single_reads import rows_of

# What `Ledger.recall` reads at once.
_MOST_EVENTS = 100
_IDENTITY = ("event_id", "event_fingerprint", "event_consumer", "event_version")
# What `Tables.statuses` reads.
STATUS = ("event_id", "status", "fingerprint")


class Tables:
    """dynamodb: a boto3 client. Raises CommandError where the ledger cannot be read."""

    def __init__(self, dynamodb: Any, settings: Settings) -> None:
        self._dynamodb = dynamodb
        self._settings = settings
        self._ledger = Ledger(dynamodb, settings.ledger_table)
        self._key_names = [key.name for key in (settings.hash_key, settings.range_key) if key is not None]

    def ledger_rows(self, event_ids: Iterable[str]) -> Iterator[Mapping[str, Item]]:
        """The rows of these events by id, in parts: one can hold a notification of 350 KB."""
        for part in _parts(event_ids):
            rows, failures = self._ledger.recall(part, endless())
            for verdict in failures.values():
                raise CommandError(f"the ledger {self._settings.ledger_table} cannot be read: {_advice(verdict)}")
            yield rows

    def statuses(self, event_ids: Iterable[str]) -> Iterator[Item]:
        """The rows of these events without their notifications."""
        keys: list[Item] = [{"event_id": {"S": event_id}} for event_id in event_ids]
        return rows_of(self._dynamodb, self._settings.ledger_table, keys, STATUS)

    def identities(self, writes: Iterable[Write]) -> dict[Hashable, Item]:
        """Whose the stored rows are where these writes go, by the write's key; nothing where none is stored."""
        keys = {write.key: self._key(write) for write in writes}
        names = (*self._key_names, *_IDENTITY)
        rows = rows_of(self._dynamodb, self._settings.business_table, list(keys.values()), names)
        table = self._settings.business_table
        return {row_key(table, {name: row[name] for name in self._key_names}): row for row in rows}

    def row(self, write: Write) -> Item | None:
        """The whole row that is stored where this write goes."""
        answer = self._dynamodb.get_item(
            TableName=self._settings.business_table, Key=self._key(write), ConsistentRead=True
        )
        row: Item | None = answer.get("Item")
        return row

    def _key(self, write: Write) -> Item:
        item = write.action["Put"]["Item"]
        return {name: item[name] for name in self._key_names}


def _parts(event_ids: Iterable[str]) -> Iterator[list[str]]:
    distinct = list(dict.fromkeys(event_ids))
    for start in range(0, len(distinct), _MOST_EVENTS):
        yield distinct[start : start + _MOST_EVENTS]


def _advice(verdict: Verdict) -> str:
    if verdict.is_misconfigured:
        return f"{verdict.detail}. You need dynamodb:BatchGetItem on it"
    return f"{verdict.detail}. Run it again later"
