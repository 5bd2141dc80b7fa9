"""Who foretells what becomes of letters: of a pipeline's, or of an operation's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from idempotent_consumer_cli.consumer import Consumer
from idempotent_consumer_cli.foresight import Prospect
from idempotent_consumer_cli.letter import Letter
from idempotent_consumer_cli.lookup import Lookup
from idempotent_consumer_cli.opened import OpenedLetter
from idempotent_consumer_cli.operation_lookup import OperationLookup, OperationTable
from idempotent_consumer_cli.outcome import Statuses
from idempotent_consumer_cli.tables import Tables


class Foreteller(Protocol):
    """Foretells letters page by page, in the order in which they would be sent; `lookup.Lookup` says how."""

    def foretell(
        self,
        page: Sequence[Letter],
        now_ms: int,
        takes: Callable[[OpenedLetter, int], bool] = ...,
        leaves: Callable[[Prospect], bool] = ...,
    ) -> list[tuple[OpenedLetter, Prospect]]: ...


def foreteller(dynamodb: Any, consumer: Consumer, *, compares: bool = False) -> Foreteller:
    """compares: say of an event in conflict with a row what differs. dynamodb: a boto3 client."""
    if consumer.operation is not None:
        table = OperationTable(dynamodb, consumer.operation.ledger_table)
        return OperationLookup(table, consumer.operation, is_fifo=consumer.is_fifo)
    return Lookup(Tables(dynamodb, consumer.pipeline), consumer, compares=compares)


def statuses(dynamodb: Any, consumer: Consumer) -> Statuses:
    """dynamodb: a boto3 client."""
    if consumer.operation is not None:
        return OperationTable(dynamodb, consumer.operation.ledger_table)
    return Tables(dynamodb, consumer.pipeline)
