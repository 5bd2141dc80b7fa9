"""From a plan and its events to a result: reads the events, plans them, runs them."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from idempotent_consumer.expression import Expression
from idempotent_consumer.plan import Planner
from idempotent_consumer.settings import Settings, SettingsError
from idempotent_consumer.testing.cloud import moto_alone
from idempotent_consumer.testing.events import to_messages
from idempotent_consumer.testing.problem import CannotTry
from idempotent_consumer.testing.purity import check_purity
from idempotent_consumer.testing.result import Result
from idempotent_consumer.testing.run import Run, Trial
from idempotent_consumer.testing.scenarios import try_all
from idempotent_consumer.testing.tables import LEDGER, NO_BUSINESS_TABLE, KeyOption, Rows, Table, find_tables
from idempotent_consumer.write import OWN_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Options:
    """See `assert_idempotent`."""

    rows: Rows
    tables: Mapping[str, KeyOption]
    business_table: str | None
    business_key: KeyOption | None
    event_id: str | None
    envelope: str
    fingerprint: str | None
    fifo: bool | str
    topic: bool
    beyond_window: bool
    dead_letters: Collection[str]


def try_plan(plan: Planner, events: Sequence[Any], options: Options) -> Result:
    """Raises Finding, CannotTry."""
    settings = _settings(options)
    messages = to_messages(events, settings, _group(options.fifo))
    planned, not_tried = check_purity(plan, [each for message in messages for each in message.events])
    for each in not_tried:
        warnings.warn(f"assert_idempotent did not try {each}", stacklevel=3)
    tables = find_tables(planned, options.rows, options.tables, options.business_table, options.business_key)
    with moto_alone() as moto:
        trial = Trial(moto, plan, messages, tables, settings, bool(options.fifo), options.topic)
        tried = try_all(trial, planned, options.dead_letters, beyond_window=options.beyond_window)
    result = _result(tried.reference, tables.all)
    return replace(
        result,
        scenarios=tuple(tried.scenarios),
        not_tried=(*not_tried, *tried.left_out),
        holds_beyond_window=tried.holds_beyond_window,
    )


def _settings(options: Options) -> Settings:
    """Those of a consumer whose tables, topic and queue are still to come."""
    environment = {
        "CONSUMER_NAME": "kit",
        "LEDGER_TABLE": LEDGER,
        "BUSINESS_TABLE": NO_BUSINESS_TABLE,
        "DEAD_LETTER_QUEUE_URL": "none",
        "EVENT_ENVELOPE": options.envelope,
    }
    environment |= {"EVENT_ID": options.event_id} if options.event_id is not None else {}
    environment |= {"EVENT_FINGERPRINT": options.fingerprint} if options.fingerprint is not None else {}
    try:
        return Settings.from_environment(environment)
    except SettingsError as error:
        raise CannotTry(f"{error} (event_id=, envelope= and fingerprint= go by these names)") from None


def _group(fifo: bool | str) -> Expression | None:
    if not fifo:
        return None
    try:
        return Expression("'all'" if fifo is True else fifo)
    except ValueError as error:
        raise CannotTry(f"fifo= selects the message group of an event: {error}") from None


def _result(run: Run, tables: Sequence[Table]) -> Result:
    return Result(
        outcomes={label: verdict.outcome.value for label, verdict in run.verdicts.items()},
        reasons={label: verdict.reason for label, verdict in run.verdicts.items() if verdict.reason},
        details={label: verdict.detail for label, verdict in run.verdicts.items() if verdict.detail},
        notifications=tuple(run.history.heard),
        scenarios=(),
        not_tried=(),
        holds_beyond_window=True,
        tables={table.name: _rows(run, table) for table in tables if table.name != NO_BUSINESS_TABLE},
    )


def _rows(run: Run, table: Table) -> list[dict[str, Any]]:
    rows = run.tables[table.name]
    return [{name: value for name, value in rows[key].items() if name not in OWN_ATTRIBUTES} for key in sorted(rows)]
