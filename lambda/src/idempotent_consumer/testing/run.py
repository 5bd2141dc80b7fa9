"""One run of messages through the consumer on a cloud of its own, and all that can be seen after it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.core.models import MockAWS

from idempotent_consumer.answer import Verdict
from idempotent_consumer.items import Item
from idempotent_consumer.plan import Planner
from idempotent_consumer.settings import KeyAttribute, Settings
from idempotent_consumer.testing.cloud import Cloud
from idempotent_consumer.testing.events import Message
from idempotent_consumer.testing.faults import Fault
from idempotent_consumer.testing.history import History
from idempotent_consumer.testing.poller import Poller, quiet
from idempotent_consumer.testing.tables import Tables, plain

RowKey = tuple[Any, ...]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: the plan and its messages, with all that stays the same in each run."""

    moto: MockAWS
    plan: Planner
    messages: Sequence[Message]
    tables: Tables
    settings: Settings
    fifo: bool
    topic: bool


@dataclass(frozen=True, slots=True)
class Run:
    """tables: rows by key. left: messages that came back to the end. last: what their last delivery said, by message id
    and label. calls: in words; operations: their names.
    """

    scenario: str
    tables: Mapping[str, dict[RowKey, Row]]
    statuses: Mapping[str, str]
    history: History
    verdicts: Mapping[str, Verdict]
    dead_by_plan: frozenset[str]
    lost: Sequence[str]
    left: Sequence[Message]
    last: Mapping[str, Mapping[str, Verdict]]
    calls: Sequence[str]
    operations: Sequence[str]


Deliver = Callable[[Poller], None]


def play(trial: Trial, scenario: str, deliver: Deliver, fault: Fault | None = None) -> Run:
    """deliver: hands the messages to the poller."""
    labels = {message.body: " and ".join(message.labels) for message in trial.messages}
    with quiet():
        cloud = Cloud(trial.moto, trial.tables, labels, fifo=trial.fifo, topic=trial.topic)
        cloud.fault = fault
        poller = Poller(cloud, cloud.settings(trial.settings), trial.plan)
        deliver(poller)
        return _observe(scenario, trial, cloud, poller)


def rows_by_key(items: Sequence[Item], key: Sequence[KeyAttribute]) -> dict[RowKey, Row]:
    rows = ({name: plain(value) for name, value in item.items()} for item in items)
    return {tuple(row[each.name] for each in key): row for row in rows}


def _observe(scenario: str, trial: Trial, cloud: Cloud, poller: Poller) -> Run:
    return Run(
        scenario,
        {table.name: rows_by_key(cloud.rows(table.name), table.key) for table in trial.tables.all},
        cloud.statuses(),
        cloud.history,
        poller.verdicts,
        frozenset(poller.dead_by_plan),
        poller.lost,
        poller.left,
        poller.last,
        cloud.calls,
        cloud.operations,
    )
