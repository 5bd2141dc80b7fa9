"""Who foretells what becomes of letters: of a pipeline's, an operation's or a workflow's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.consumer.executions import Executions
from idempotent_consumer_cli.foresight.operation_lookup import OperationJudge, OperationTable
from idempotent_consumer_cli.foresight.pipeline_lookup import Lookup
from idempotent_consumer_cli.foresight.prospect import Prospect
from idempotent_consumer_cli.foresight.row_lookup import RowLookup
from idempotent_consumer_cli.foresight.workflow_lookup import ClaimTable, WorkflowJudge
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.outcome import Statuses
from idempotent_consumer_cli.letters.workflow import unwrapped
from idempotent_consumer_cli.rows.tables import Tables
from idempotent_consumer_cli.session import Session


class Foreteller(Protocol):
    """Foretells letters page by page, in the order in which they would be sent; `pipeline_lookup.Lookup` says how."""

    def foretell(
        self,
        page: Sequence[Letter],
        now_ms: int,
        takes: Callable[[OpenedLetter, int], bool] = ...,
        leaves: Callable[[Prospect], bool] = ...,
    ) -> list[tuple[OpenedLetter, Prospect]]: ...


def foreteller(session: Session, consumer: Consumer, *, compares: bool = False) -> Foreteller:
    """compares: say of an event in conflict with a row what differs."""
    operation, workflow, is_fifo = consumer.operation, consumer.workflow, consumer.is_fifo
    if operation is not None:
        ledger = OperationTable(session.dynamodb, operation.ledger_table)
        return RowLookup(OperationJudge(ledger, operation, is_fifo=is_fifo), is_fifo=is_fifo)
    if workflow is not None:
        claims, executions = ClaimTable(session.dynamodb, workflow), Executions(session.step_functions)
        return RowLookup(WorkflowJudge(claims, executions, workflow, is_fifo=is_fifo), is_fifo=is_fifo)
    return Lookup(Tables(session.dynamodb, consumer.pipeline), consumer, compares=compares)


def statuses(session: Session, consumer: Consumer) -> Statuses:
    if consumer.operation is not None:
        return OperationTable(session.dynamodb, consumer.operation.ledger_table)
    if consumer.workflow is not None:
        return ClaimTable(session.dynamodb, consumer.workflow)
    return Tables(session.dynamodb, consumer.pipeline)


def as_sent(letter: Letter, consumer: Consumer) -> Letter:
    """A letter of the dead-letter queue as a replay would have sent it."""
    return letter if consumer.workflow is None else unwrapped(letter, consumer.workflow.state_machine_arn)
