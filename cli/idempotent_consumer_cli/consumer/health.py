"""What `status` looks at: the parts of a consumer, each read for itself, so that one missing right hides no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.consumer.executions import Activity, read_activity
from idempotent_consumer_cli.consumer.metrics import LastHour, read_last_hour, read_oldest_ages
from idempotent_consumer_cli.consumer.queues import Depth, SourceMapping, depth_of, source_mappings
from idempotent_consumer_cli.errors import explain
from idempotent_consumer_cli.foresight.operation_lookup import OperationTable
from idempotent_consumer_cli.rows.pending import open_pending, stale_until_ms
from idempotent_consumer_cli.rows.unfinished import Census, long_ms, read_unfinished
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Pending:
    """Pending rows. stale: those older than the visibility timeout: no message in work will settle them soon."""

    count: int
    stale: int
    oldest_age_seconds: int | None
    is_scan: bool


@dataclass(frozen=True)
class Health:
    """None for a part that could not be read; `unread` says why, by the part's name.

    pending: a pipeline's. operations: an operation's. executions: a workflow's.
    """

    queue: Depth | None
    dead_letters: Depth | None
    ages: Mapping[str, int | None]
    pending: Pending | None
    operations: Census | None
    executions: Activity | None
    last_hour: LastHour | None
    mappings: list[SourceMapping] | None
    unread: Mapping[str, str]


class _Reader:
    def __init__(self) -> None:
        self.unread: dict[str, str] = {}

    def read(self, part: str, how: Callable[[], _Part]) -> _Part | None:
        try:
            return how()
        except Exception as error:  # whatever it is, the other parts are to be shown
            self.unread[part] = explain(error).format_message()
            return None


def read_health(session: Session, consumer: Consumer, screen: Screen, now_ms: int) -> Health:
    """All parts that can be read. now_ms: epoch milliseconds."""
    reader = _Reader()
    urls = {"queue": consumer.queue_url, "dead-letter queue": consumer.dead_letter_queue_url}
    queues = {
        part: reader.read(part, lambda url=url: _attributes(session.sqs, url))  # type: ignore[misc]
        for part, url in urls.items()
    }
    depths = {part: None if attributes is None else depth_of(attributes) for part, attributes in queues.items()}
    operation, workflow = consumer.operation, consumer.workflow
    queue_arn = (queues["queue"] or {}).get("QueueArn")
    return Health(
        queue=depths["queue"],
        dead_letters=depths["dead-letter queue"],
        ages=reader.read("ages of messages", lambda: read_oldest_ages(session.cloudwatch, urls, now_ms)) or {},
        pending=reader.read("pending rows", lambda: _pending(session.dynamodb, consumer, screen, now_ms))
        if consumer.is_pipeline
        else None,
        operations=reader.read("operations", lambda: _operations(session.dynamodb, operation, screen, now_ms))
        if operation
        else None,
        executions=reader.read(
            "executions", lambda: read_activity(session.step_functions, workflow.state_machine_arn, now_ms)
        )
        if workflow
        else None,
        last_hour=reader.read("last hour", lambda: read_last_hour(session.cloudwatch, consumer, now_ms)),
        mappings=reader.read("mapping", lambda: source_mappings(session.functions, consumer, queue_arn)),
        unread=reader.unread,
    )


def _attributes(sqs: Any, url: str) -> dict[str, str]:
    attributes: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return attributes


def _pending(dynamodb: Any, consumer: Consumer, screen: Screen, now_ms: int) -> Pending:
    rows = open_pending(dynamodb, consumer.pipeline.ledger_table, screen)
    oldest_ms = rows.oldest_ms()
    if oldest_ms is None:
        return Pending(0, 0, None, rows.is_scan)
    return Pending(
        count=rows.count(),
        stale=rows.count(stale_until_ms(consumer, now_ms)),
        oldest_age_seconds=max(0, now_ms - oldest_ms) // 1000,
        is_scan=rows.is_scan,
    )


def _operations(dynamodb: Any, settings: OperationSettings, screen: Screen, now_ms: int) -> Census:
    table = OperationTable(dynamodb, settings.ledger_table)
    listed = open_pending(dynamodb, settings.ledger_table, screen, of_operation=True).oldest_first()
    census = Census()
    for each in read_unfinished(table, listed):
        census.add(each, now_ms, long_ms(settings))
    census.uncounted = sum(1 for _ in listed)
    return census
