"""Tries a plan without AWS: on moto, with everything done to it that AWS may do.

    from idempotent_consumer.testing import assert_idempotent

pytest has it as a fixture, `assert_idempotent`. It needs the extra `testing`.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from idempotent_consumer.plan import Planner
from idempotent_consumer.testing.problem import CannotTry, Finding
from idempotent_consumer.testing.result import Heard, Result

__all__ = ["AssertIdempotent", "CannotTry", "Heard", "Result", "assert_idempotent"]

_missing = [name for name in ("aws_xray_sdk", "freezegun", "moto") if find_spec(name) is None]
if _missing:
    raise ImportError(
        f"idempotent_consumer.testing needs {', '.join(_missing)}: install the extra `testing`, pip install "
        '"idempotent-consumer[testing] @ git+https://github.com/<you>/terraform-aws-idempotent-consumer.git@<tag>"'
    )


def assert_idempotent(
    plan: Planner,
    events: Sequence[Any],
    *,
    rows: Mapping[str, Sequence[Any]] | None = None,
    tables: Mapping[str, str | Sequence[str] | Mapping[str, str]] | None = None,
    business_table: str | None = None,
    business_key: str | Sequence[str] | Mapping[str, str] | None = None,
    event_id: str | None = None,
    envelope: str = "raw",
    fingerprint: str | None = None,
    fifo: bool | str = False,
    topic: bool = True,
    beyond_window: bool = False,
    dead_letters: Collection[str] = (),
) -> Result:
    """Run the events through the real consumer with this plan, in all the ways in which messages can come.

    First each event is planned several times: at another time, with other chance, in another process. Then the
    consumer runs on moto: each event once; each twice; all again; and, for each call to AWS, with the process killed
    before it, killed after it, and with its answer lost. After each run the tables, the ledger, the notifications and
    the dead letters have to be as if each event had come once. What is not settled is delivered again in the order of
    `events`; where a fault changes the order all the same, it is not held against the plan.

    A few events take a second or two, fifty take ten. The clock of the whole process stands still while they are
    planned: call it in one thread at a time.

    events: as the producer sends them: their JSON objects, bodies as text, or `Event`s, whose data counts. For the
    envelopes `sns` and `s3` what is in the envelope will do.
    rows: what tables hold before, {"stock": [{"sku": "A-1", "free": 10}]}.
    tables: keys of tables, where they cannot be found in the plan: {"stock": "sku", "lines": ("order_id", "line")}, or
    with the types {"lines": {"order_id": "S", "line": "N"}}.
    business_table: the module's business_table_name; if left out, the table that a Put without `key` is for.
    business_key: the key as it is set in the module's business_table: "order_id", ("order_id", "line"), or with the
    types {"id": "N"}; "id" if left out. Its type is S unless it is given, and an integer is written in decimal there.
    event_id, envelope, fingerprint: as event.id, event.envelope, event.fingerprint of the module.
    fifo: True for a FIFO queue with all events in one message group, or what selects the group, as JMESPath.
    topic: whether the module has a topic.
    beyond_window: whether nothing may change either when the events come again after ttl_window_days.
    dead_letters: ids of events that are meant to be dead-lettered without a Reject of the plan's: for what the library,
    DynamoDB or SNS does not take, such as 100 writes, or a second insert of a row.

    Returns what became of the events where nothing failed. Raises AssertionError where something is wrong, CannotTry
    where an option is missing.
    """
    __tracebackhide__ = True
    from idempotent_consumer.testing.kit import Options, try_plan

    options = Options(
        rows=rows or {},
        tables=tables or {},
        business_table=business_table,
        business_key=business_key,
        event_id=event_id,
        envelope=envelope,
        fingerprint=fingerprint,
        fifo=fifo,
        topic=topic,
        beyond_window=beyond_window,
        dead_letters=dead_letters,
    )
    try:
        return try_plan(plan, events, options)
    except Finding as finding:
        raise AssertionError(str(finding)) from finding.__cause__


class AssertIdempotent(Protocol):
    """The type of the fixture `assert_idempotent`: see the function."""

    def __call__(
        self,
        plan: Planner,
        events: Sequence[Any],
        *,
        rows: Mapping[str, Sequence[Any]] | None = None,
        tables: Mapping[str, str | Sequence[str] | Mapping[str, str]] | None = None,
        business_table: str | None = None,
        business_key: str | Sequence[str] | Mapping[str, str] | None = None,
        event_id: str | None = None,
        envelope: str = "raw",
        fingerprint: str | None = None,
        fifo: bool | str = False,
        topic: bool = True,
        beyond_window: bool = False,
        dead_letters: Collection[str] = (),
    ) -> Result: ...
