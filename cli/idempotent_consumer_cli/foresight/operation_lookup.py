"""What an operation's ledger holds, and what follows from it for letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.items import Item
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.foresight.operation import by_operation_row, never_seen
from idempotent_consumer_cli.foresight.prospect import Foretold
from idempotent_consumer_cli.foresight.row_lookup import Known
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter, open_letter
from idempotent_consumer_cli.rows.operation import ATTRIBUTES
from idempotent_consumer_cli.rows.single_reads import rows_of
from idempotent_consumer_cli.rows.tables import STATUS


class OperationTable:
    """Consistent reads of an operation's ledger, without the results. dynamodb: a boto3 client.

    Each method raises what a call to DynamoDB raises, and CommandError.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def rows(self, event_ids: Iterable[str]) -> dict[str, Item]:
        """The rows of these events, by id."""
        return {row["event_id"]["S"]: row for row in self._read(event_ids, ATTRIBUTES)}

    def statuses(self, event_ids: Iterable[str]) -> Iterator[Item]:
        """What `outcome.Outcomes` asks for."""
        return self._read(event_ids, STATUS)

    def _read(self, event_ids: Iterable[str], attributes: Sequence[str]) -> Iterator[Item]:
        keys: list[Item] = [{"event_id": {"S": event_id}} for event_id in dict.fromkeys(event_ids)]
        return rows_of(self._dynamodb, self._table, keys, attributes)


class OperationJudge:
    """See `row_lookup.Judge`."""

    def __init__(self, table: OperationTable, settings: OperationSettings, *, is_fifo: bool) -> None:
        self._table = table
        self._settings = settings
        self._is_fifo = is_fifo

    def open(self, letter: Letter) -> OpenedLetter:
        return open_letter(letter, self._settings, is_fifo=self._is_fifo)

    def read(self, opened: Sequence[OpenedLetter]) -> Known:
        rows = self._table.rows(event_id for each in opened for event_id in each.event_ids)
        # Rows are stamped by the workers' clocks, and SQS tells its time in whole seconds.
        now_ms = clock.now_ms()

        def known(event: Event) -> Foretold:
            item = rows.get(event.id)
            return never_seen(event) if item is None else by_operation_row(item, event, now_ms, self._settings)

        return known

    def has_forgotten(self, letter: Letter, first_ms: int, now_ms: int) -> bool:
        """A row that was completed goes after the ttl window: nothing else would keep the effect from running again."""
        return now_ms - first_ms > self._settings.ttl_window_seconds * 1000

    def will_forget(self, foretold: Foretold, now_ms: int) -> bool:
        return False

    def why_stays(self, letter: Letter, events: Sequence[Foretold]) -> str:
        return ""
