"""The scheduled function: one run, one line of metrics, a few lines of log without data, and a failure that shows."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_xray_sdk.core import xray_recorder

from idempotent_consumer import reconciler as reconciler_module
from idempotent_consumer import telemetry
from idempotent_consumer.aws import Clients
from idempotent_consumer.reconciler import PendingUnreadable
from tests.handler.pending_model import RECONCILER, Clock, IndexedWorld, notification, pending_row
from tests.handler.support import LEDGER, MARK, NOW_MS, PUBLISH, QUERY, READ, client_error
from tests.handler.table_model import Effect, Request

SOURCES = Path(__file__).parents[2] / "lambda" / "src"
STALE_MS = NOW_MS - 900_000
MARKER = "marker-4111-1111"
SCHEDULED: dict[str, Any] = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.scheduler",
    "time": "2030-01-02T03:04:06Z",
    "detail": "{}",
}


@pytest.fixture
def world() -> IndexedWorld:
    return IndexedWorld()


def handle(world: IndexedWorld, **changes: str | None) -> dict[str, int]:
    return world.reconciler(**changes).handle(Clock(world, 30_000, {}))


def everything(records: list[logging.LogRecord]) -> str:
    """All that a formatter could print of these records, tracebacks included."""
    plain = logging.Formatter()
    return "\n".join(f"{plain.format(record)} {record.__dict__}" for record in records)


def refuse(operation: str, code: str) -> Callable[[str, Request, Effect], Any]:
    def interfere(called: str, _request: Request, effect: Effect) -> Any:
        if called == operation:
            raise client_error(code, operation)
        return effect()

    return interfere


# The answer and the metrics


def test_answer_says_how_many_were_published_and_how_many_are_left(world: IndexedWorld) -> None:
    world.add(*(pending_row(f"o-{n}", STALE_MS) for n in range(5)))
    world.add(*(pending_row(f"p-{n}", STALE_MS, notification={"S": "{"}) for n in range(2)))
    world.add(pending_row("fresh", STALE_MS + 1))
    assert handle(world) == {"published": 5, "still_stale": 2}
    assert handle(world) == {"published": 0, "still_stale": 2}


def test_rows_that_time_does_not_suffice_for_are_left_and_make_no_failure(
    world: IndexedWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.add(*(pending_row(f"o-{shard}", STALE_MS, shard=str(shard)) for shard in range(16)))
    segment = xray_recorder.begin_segment("orders-reconciler", sampling=1)
    try:
        done = world.reconciler().handle(Clock(world, 30_000, {READ: 5_000}))
    finally:
        xray_recorder.clear_trace_entities()
    # Begun with 30, 25, 20 and 15 seconds left: a page took 5, and a slow call may take 8.
    assert done == {"published": 4, "still_stale": 12}
    assert segment.subsegments[0].annotations == {"published": 4, "left": 12}
    line = json.loads(capsys.readouterr().out)
    assert (line["Reconciled"], line["StalePending"]) == (4, 12)


def test_empty_ledger_is_nothing_to_do(world: IndexedWorld) -> None:
    assert handle(world) == {"published": 0, "still_stale": 0}


@pytest.mark.parametrize(("seconds", "published"), [("0", 3), ("900", 2), ("3600", 1), ("7200", 0)])
def test_threshold_of_the_settings_decides(world: IndexedWorld, seconds: str, published: int) -> None:
    world.add(*(pending_row(f"o-{age_s}", NOW_MS - 1000 * age_s) for age_s in (0, 900, 3600)))
    assert handle(world, RECONCILER_THRESHOLD_SECONDS=seconds)["published"] == published


def test_metrics_of_a_run_are_one_literal_line(world: IndexedWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.add(*(pending_row(f"o-{n}", STALE_MS - n) for n in range(3)))
    world.add(pending_row("p-1", STALE_MS, notification={"S": "{"}))
    handle(world)
    assert capsys.readouterr().out == (
        '{"_aws":{"Timestamp":1893553446000,"CloudWatchMetrics":[{"Namespace":"IdempotentConsumer",'
        '"Dimensions":[["Consumer"]],"Metrics":['
        '{"Name":"Reconciled","Unit":"Count"},{"Name":"StalePending","Unit":"Count"},'
        '{"Name":"OldestPendingAge","Unit":"Milliseconds"},{"Name":"Misconfigured","Unit":"Count"}]}]},'
        '"level":"INFO","timestamp":"2030-01-02T03:04:06Z","Consumer":"orders",'
        '"Reconciled":3,"StalePending":1,"OldestPendingAge":900002,"Misconfigured":0}\n'
    )


def test_age_is_that_of_the_oldest_row_when_the_run_began(
    world: IndexedWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though by the end the row is settled and time has passed."""
    world.add(pending_row("o-1", NOW_MS - 5_000_000))
    monkeypatch.setattr(telemetry, "now_ms", lambda: NOW_MS + 1_000 * len(world.calls))
    handle(world)
    assert json.loads(capsys.readouterr().out)["OldestPendingAge"] == 5_000_000


def test_time_of_the_marking_is_that_of_the_page_and_not_of_the_start(
    world: IndexedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add(pending_row("o-1", STALE_MS))
    monkeypatch.setattr(telemetry, "now_ms", lambda: NOW_MS + 60_000 * world.count(PUBLISH))
    handle(world)
    assert world.ledger["o-1"]["sent_at"] == {"N": "1893553506000"}
    assert world.ledger["o-1"]["ttl"] == {"N": "1896145506"}


def test_run_that_fails_still_has_its_metrics(world: IndexedWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.add(*(pending_row(f"o-{shard}", STALE_MS, shard=str(shard)) for shard in range(16)))

    def interfere(operation: str, request: Request, effect: Effect) -> Any:
        if operation == QUERY and request["ExpressionAttributeValues"][":shard"]["S"] in ("3", "4"):
            raise client_error("AccessDeniedException", QUERY)
        return effect()

    world.interfere = interfere
    with pytest.raises(PendingUnreadable) as caught:
        handle(world)
    assert str(caught.value) == "2 shards of the index could not be read: the log says why"
    line = json.loads(capsys.readouterr().out)
    # Of two shards nothing is known: at least a row each.
    assert (line["Reconciled"], line["StalePending"], line["Misconfigured"]) == (14, 2, 2)
    assert sorted(world.published()) == sorted(f"o-{shard}" for shard in range(16) if shard not in (3, 4))


def test_what_could_not_be_published_is_no_failure_of_the_run(world: IndexedWorld) -> None:
    """It shows in the metrics; to make the invocation again would mend nothing."""
    world.add(pending_row("o-1", STALE_MS))
    world.interfere = refuse(PUBLISH, "AuthorizationError")
    assert handle(world) == {"published": 0, "still_stale": 1}


def test_phase_has_the_counts_as_annotations(world: IndexedWorld) -> None:
    world.add(pending_row("o-1", STALE_MS), pending_row("p-1", STALE_MS, notification=None))
    segment = xray_recorder.begin_segment("orders-reconciler", sampling=1)
    try:
        handle(world)
    finally:
        xray_recorder.clear_trace_entities()
    assert [(sub.name, sub.annotations) for sub in segment.subsegments] == [
        ("reconcile", {"published": 1, "left": 1}),
    ]


def test_runs_of_one_process_keep_nothing_of_each_other(world: IndexedWorld) -> None:
    scheduled = world.reconciler()
    world.add(pending_row("o-1", STALE_MS))
    assert scheduled.handle(Clock(world, 30_000, {})) == {"published": 1, "still_stale": 0}
    world.add(pending_row("o-2", STALE_MS))
    assert scheduled.handle(Clock(world, 30_000, {})) == {"published": 1, "still_stale": 0}
    slow = Clock(world, 30_000, {READ: 9_000})
    world.add(pending_row("o-3", STALE_MS))
    scheduled.handle(slow)
    world.add(pending_row("o-4", STALE_MS))
    assert scheduled.handle(Clock(world, 12_000, {})) == {"published": 1, "still_stale": 0}


# The log


def test_what_is_left_is_one_line_for_each_reason(world: IndexedWorld, caplog: pytest.LogCaptureFixture) -> None:
    unreadable = [f"p-{n}" for n in range(7)]
    world.add(*(pending_row(name, STALE_MS, notification=None, shard="3") for name in unreadable))
    world.add(*(pending_row(f"o-{n}", STALE_MS, shard="3") for n in range(4)))
    world.interfere = refuse(PUBLISH, "AuthorizationError")
    handle(world)
    lines = [(record.levelname, record.getMessage(), record.__dict__) for record in caplog.records]
    assert [(level, text) for level, text, _ in lines] == [
        ("WARNING", "still pending: ledger-row-unreadable"),
        ("ERROR", "still pending: misconfigured"),
    ]
    fields = [(own["reason"], own["detail"], own["count"]) for _, _, own in lines]
    assert fields == [
        ("ledger-row-unreadable", "pending, without a notification", 7),
        ("misconfigured", "PublishBatch: AuthorizationError", 4),
    ]
    assert lines[0][2]["event_id"] in unreadable
    assert lines[1][2]["event_id"] in ["o-0", "o-1", "o-2", "o-3"]


def test_shards_that_could_not_be_read_are_told_with_the_call(
    world: IndexedWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.interfere = refuse(QUERY, "AccessDeniedException")
    with pytest.raises(PendingUnreadable, match="16 shards"):
        handle(world)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "still pending: misconfigured")
    names = ("event_id", "reason", "detail", "count")
    assert [record.__dict__[name] for name in names] == ["shard 0", "misconfigured", "Query: AccessDeniedException", 16]


def test_run_that_settles_all_logs_nothing(world: IndexedWorld, caplog: pytest.LogCaptureFixture) -> None:
    world.add(pending_row("o-1", STALE_MS))
    with caplog.at_level(logging.DEBUG):
        handle(world)
    assert caplog.records == []


@pytest.mark.case("C76")
@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (None, None),
        *(
            (operation, error)
            for operation in (QUERY, READ, PUBLISH, MARK)
            for error in (client_error("ValidationException"), TypeError(MARKER), KeyError(MARKER))
        ),
    ],
)
def test_no_message_and_no_attribute_is_logged(
    world: IndexedWorld,
    operation: str | None,
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = notification("o-1", message=f'{{"card":"{MARKER}"}}').to_text()
    world.add(pending_row("o-1", STALE_MS, notification={"S": text}, extra={"S": MARKER}))
    world.add(pending_row("o-2", STALE_MS, notification={"S": f'"{MARKER}'}))

    def interfere(called: str, _request: Request, effect: Effect) -> Any:
        if called == operation:
            assert error is not None
            raise error
        return effect()

    world.interfere = interfere
    with caplog.at_level(logging.DEBUG):
        try:
            handle(world)
        except (PendingUnreadable, TypeError, KeyError):
            assert operation == QUERY
    assert MARKER not in everything(caplog.records)
    assert "quote data" not in everything(caplog.records)
    assert MARKER not in capsys.readouterr().out


@pytest.mark.case("C03")
def test_log_that_cannot_be_written_changes_nothing(world: IndexedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the log cannot be written")

    monkeypatch.setattr(logging.getLogger("idempotent_consumer"), "handlers", [Broken()])
    world.add(pending_row("o-1", STALE_MS), pending_row("p-1", STALE_MS, notification=None))
    assert handle(world) == {"published": 1, "still_stale": 1}


# The entry point


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, world: IndexedWorld) -> list[str | None]:
    """The environment of the function; the topics for which clients were made, which are the world's."""
    topics: list[str | None] = []

    def create(topic_arn: str | None = None) -> Clients:
        topics.append(topic_arn)
        return world.clients

    for name, value in RECONCILER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Clients, "create", create)
    monkeypatch.setattr(reconciler_module, "_reconciler", None)
    return topics


def test_handler_is_made_at_the_first_call_and_kept(world: IndexedWorld, made: list[str | None]) -> None:
    world.add(pending_row("o-1", STALE_MS))
    assert made == []
    first = reconciler_module.handler(SCHEDULED, Clock(world, 30_000, {}))
    assert first == {"published": 1, "still_stale": 0}
    assert reconciler_module.handler(None, Clock(world, 30_000, {})) == {"published": 0, "still_stale": 0}
    assert made == ["arn:aws:sns:us-east-1:123456789012:orders"]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("invocation", [SCHEDULED, {}, None, [], "text", {"Records": [{"body": "{"}]}])
def test_invocation_holds_nothing_that_matters(world: IndexedWorld, invocation: Any) -> None:
    world.add(pending_row("o-1", STALE_MS))
    assert reconciler_module.handler(invocation, Clock(world, 30_000, {})) == {"published": 1, "still_stale": 0}


def test_without_a_topic_clients_are_made_for_none(
    world: IndexedWorld, made: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOPIC_ARN")
    reconciler_module.handler(SCHEDULED, Clock(world, 30_000, {}))
    assert made == [None]


def python(code: str, **environment: str) -> str:
    """What a new interpreter prints; it knows the sources and nothing else of this one."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON", "COV"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**variables, "PYTHONPATH": str(SOURCES), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


IN_LAMBDA = {
    **RECONCILER,
    "AWS_LAMBDA_FUNCTION_NAME": "orders-reconciler",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}


def test_inside_lambda_all_is_made_in_the_initialisation_phase_and_what_it_makes_is_no_garbage() -> None:
    code = (
        "import gc\n"
        "from idempotent_consumer import reconciler\n"
        "made = reconciler._reconciler\n"
        "print(type(made).__name__, made._settings.threshold_ms, gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    assert python(code, **IN_LAMBDA) == "ScheduledReconciler 900000 True True"


def test_inside_lambda_the_collector_rests_while_modules_are_imported() -> None:
    code = (
        "import gc, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'idempotent_consumer.reconciliation': print(gc.isenabled())\n"
        "sys.meta_path.insert(0, Watch())\n"
        "import idempotent_consumer.reconciler"
    )
    assert python(code, **IN_LAMBDA) == "False"


def test_outside_lambda_nothing_is_made_and_the_collector_is_as_it_was() -> None:
    code = (
        "import gc\n"
        "from idempotent_consumer import reconciler\n"
        "print(reconciler._reconciler, gc.isenabled(), gc.get_freeze_count())"
    )
    assert python(code) == "None True 0"


def test_wrong_environment_stops_the_function_before_its_first_run() -> None:
    code = (
        "try:\n"
        "    import idempotent_consumer.reconciler\n"
        "except ValueError as error:\n"
        "    print(type(error).__name__, error)"
    )
    environment = IN_LAMBDA | {"RECONCILER_THRESHOLD_SECONDS": "soon"}
    assert python(code, **environment) == (
        "SettingsError RECONCILER_THRESHOLD_SECONDS is 'soon', not a whole number from 0 to 10000000"
    )


# What is imported with what


@pytest.mark.case("C72")
def test_what_the_command_line_uses_does_not_import_the_tracing() -> None:
    modules = "reconciliation pending ledger outbox commit settings plan envelope event notification answer aws"
    code = f"import sys\nfor name in '{modules}'.split(): __import__('idempotent_consumer.' + name)\n"
    found = "print([name for name in sys.modules if 'xray' in name or name == 'idempotent_consumer.telemetry'])"
    assert python(code + found) == "[]"


def test_reconciler_does_not_import_the_handler_of_the_queue() -> None:
    """Which inside Lambda would read the worker's settings, and find none."""
    code = (
        "import sys, idempotent_consumer.reconciler\n"
        "print([name for name in ('handler', 'consumer') if 'idempotent_consumer.' + name in sys.modules])"
    )
    assert python(code) == "[]"


def test_ledger_that_is_read_is_that_of_the_settings(world: IndexedWorld) -> None:
    handle(world)
    assert {call.request["TableName"] for call in world.calls} == {LEDGER}
