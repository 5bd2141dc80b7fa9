"""Traces, metrics and logs say what happened, never what a message held, and never get in the way."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from aws_xray_sdk import global_sdk_config
from aws_xray_sdk.core import xray_recorder

from idempotent_consumer import telemetry
from idempotent_consumer.answer import BLOCKED, Outcome, Verdict
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.reconciliation import Reconciliation
from idempotent_consumer.telemetry import (
    emit_metrics,
    emit_reconciliation,
    log_fault,
    log_left,
    log_not_postponed,
    log_verdict,
    now_ms,
    phase,
    spread,
)

NOW_MS = 1_893_553_446_789
MARKER = "marker-4111-1111"


@pytest.fixture
def segment() -> Iterator[Any]:
    """A trace as it is open inside Lambda; nothing leaves the process."""
    opened = xray_recorder.begin_segment("orders", sampling=1)
    yield opened
    xray_recorder.clear_trace_entities()


def everything(records: list[logging.LogRecord]) -> str:
    """All that a formatter could print of these records, tracebacks included."""
    plain = logging.Formatter()
    return "\n".join(f"{plain.format(record)} {record.__dict__}" for record in records)


# --- traces


@pytest.mark.case("C72")
def test_a_phase_without_an_open_segment_does_its_work_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    xray_recorder.clear_trace_entities()
    with caplog.at_level(logging.DEBUG), phase("commit") as annotations:
        annotations["applied"] = 3

    assert annotations == {"applied": 3}
    assert caplog.records == []


@pytest.mark.case("C72")
def test_a_phase_works_with_the_sdk_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_sdk_config, "sdk_enabled", lambda: False)
    xray_recorder.clear_trace_entities()

    with phase("commit") as annotations:
        annotations["applied"] = 3


def test_a_phase_is_a_subsegment_with_its_counts_as_annotations(segment: Any) -> None:
    with phase("commit") as annotations:
        annotations.update({"applied": 3, "duplicate": 1})
    with phase("publish") as annotations:
        annotations["published"] = 3
    with phase("mark"):
        pass

    assert [(sub.name, sub.annotations, sub.in_progress) for sub in segment.subsegments] == [
        ("commit", {"applied": 3, "duplicate": 1}, False),
        ("publish", {"published": 3}, False),
        ("mark", {}, False),
    ]
    assert segment.annotations == {}


def test_an_unsampled_trace_is_no_obstacle() -> None:
    xray_recorder.begin_segment("orders", sampling=0)
    try:
        with phase("commit") as annotations:
            annotations["applied"] = 3
    finally:
        xray_recorder.clear_trace_entities()


def test_a_fault_inside_a_phase_comes_out_and_the_subsegment_is_closed(segment: Any) -> None:
    with pytest.raises(KeyError, match="of our own"), phase("commit") as annotations:
        annotations["applied"] = 1
        raise KeyError("of our own")

    (subsegment,) = segment.subsegments
    assert not subsegment.in_progress
    assert subsegment.annotations == {"applied": 1}
    assert xray_recorder.current_subsegment() is None


class Broken:
    """A recorder, or a subsegment of one, that fails where it is told to."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.ended = 0

    def begin_subsegment(self, name: str) -> Broken:
        self._maybe("begin")
        return self

    def put_annotation(self, key: str, value: int) -> None:
        self._maybe("annotate")

    def end_subsegment(self) -> None:
        self.ended += 1
        self._maybe("end")

    def _maybe(self, step: str) -> None:
        if step == self.fails:
            raise RuntimeError(f"{step} failed")


@pytest.mark.case("C74")
@pytest.mark.parametrize("fails", ["begin", "annotate", "end"])
def test_a_recorder_that_fails_changes_nothing_for_the_events(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "xray_recorder", Broken(fails))

    with phase("commit") as annotations:
        annotations["applied"] = 3
    with pytest.raises(ValueError, match="of our own"), phase("commit"):
        raise ValueError("of our own")


@pytest.mark.case("C74")
def test_a_subsegment_that_was_never_opened_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Broken("begin")
    monkeypatch.setattr(telemetry, "xray_recorder", recorder)

    with phase("commit"):
        pass

    assert recorder.ended == 0


@pytest.mark.case("C74")
def test_a_recorder_that_gives_something_else_than_a_subsegment_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Broken("")
    monkeypatch.setattr(recorder, "begin_subsegment", lambda name: object())
    monkeypatch.setattr(telemetry, "xray_recorder", recorder)

    with phase("commit") as annotations:
        annotations["applied"] = 3


# --- logs


@pytest.mark.case("C76")
@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.CONFLICT])
def test_the_detail_of_a_dead_event_is_not_logged(outcome: Outcome, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_verdict("m-1", "o-1", Verdict(outcome, "key-wrong-type", f"the item has no {MARKER}"))

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == f"event {outcome.value}: key-wrong-type"
    fields = record.__dict__
    assert {name: fields.get(name) for name in ("message_id", "event_id", "outcome", "reason")} == {
        "message_id": "m-1",
        "event_id": "o-1",
        "outcome": outcome.value,
        "reason": "key-wrong-type",
    }
    assert "detail" not in fields
    assert MARKER not in everything(caplog.records)


def test_an_event_that_comes_back_is_logged_with_its_detail(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_verdict("m-1", None, Verdict(Outcome.RETRY, "throttled", "PublishBatch: Throttled"))

    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("WARNING", "event retry: throttled")
    assert record.__dict__["detail"] == "PublishBatch: Throttled"
    assert record.__dict__["event_id"] is None


@pytest.mark.parametrize("reason", ["misconfigured", "refused"])
def test_what_waits_for_a_person_is_an_error(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    log_verdict("m-1", "o-1", Verdict(Outcome.RETRY, reason, "PutItem: AccessDeniedException"))

    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_duplicate_with_a_reason_is_told_and_needs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_verdict("m-1", "o-1", Verdict(Outcome.DUPLICATE, "ledger-row-expired", "the business row carries it"))

    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", "event duplicate: ledger-row-expired")
    assert record.__dict__["detail"] == "the business row carries it"


def test_an_event_that_waits_behind_another_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_verdict("m-1", "o-1", BLOCKED)

    assert [record.levelname for record in caplog.records] == ["DEBUG"]


@pytest.mark.case("C76")
def test_a_verdict_s_notification_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    notification = RenderedNotification(MARKER, {"card": ("String", MARKER)}, "g", "d")
    with caplog.at_level(logging.DEBUG):
        log_verdict("m-1", "o-1", Verdict(Outcome.RETRY, "unavailable", "PublishBatch: x", notification))

    assert MARKER not in everything(caplog.records)


@pytest.mark.case("C76")
def test_a_fault_is_logged_by_its_kind_and_place_and_never_by_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def inner() -> None:
        raise KeyError(MARKER)

    with caplog.at_level(logging.DEBUG):
        try:
            try:
                inner()
            except KeyError as error:
                raise ValueError(f"item: {MARKER}") from error
        except ValueError as error:
            log_fault("m-1", error)

    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.__dict__["message_id"] == "m-1"
    assert record.__dict__["error"] == "ValueError"
    file, _, line = record.__dict__["where"].rpartition(":")
    assert file.endswith("test_telemetry.py") and line.isdigit()
    assert record.getMessage() == f"fault: ValueError at {record.__dict__['where']}"
    assert record.exc_info is None
    assert MARKER not in everything(caplog.records)


def test_a_fault_is_placed_where_it_was_raised_not_where_it_was_caught(caplog: pytest.LogCaptureFixture) -> None:
    try:
        json.loads("{")
    except ValueError as error:
        log_fault("m-1", error)

    assert "json/decoder.py:" in caplog.records[0].__dict__["where"]


def test_a_fault_without_a_traceback_has_no_place(caplog: pytest.LogCaptureFixture) -> None:
    log_fault("", RuntimeError(MARKER))

    assert caplog.records[0].getMessage() == "fault: RuntimeError at unknown"


def test_missing_backoff_is_a_warning_with_the_code(caplog: pytest.LogCaptureFixture) -> None:
    log_not_postponed("AccessDenied")

    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("WARNING", "no backoff: AccessDenied")
    assert record.__dict__["error"] == "AccessDenied"


def test_what_a_reconciliation_leaves_is_one_line_for_each_reason_and_detail(caplog: pytest.LogCaptureFixture) -> None:
    throttled = Verdict(Outcome.RETRY, "throttled", "PublishBatch: Throttled")
    also_throttled = Verdict(Outcome.RETRY, "throttled", "BatchGetItem: Throttled")
    refused = Verdict(Outcome.RETRY, "refused", "PublishBatch: InvalidParameter")
    log_left({"o-1": throttled, "o-2": refused, "o-3": throttled, "o-4": also_throttled, "shard 7": refused})

    lines = [(record.levelname, record.getMessage(), record.__dict__) for record in caplog.records]
    assert [(level, text) for level, text, _ in lines] == [
        ("WARNING", "still pending: throttled"),
        ("ERROR", "still pending: refused"),
        ("WARNING", "still pending: throttled"),
    ]
    assert [[own[name] for name in ("event_id", "reason", "detail", "count")] for _, _, own in lines] == [
        ["o-1", "throttled", "PublishBatch: Throttled", 2],
        ["o-2", "refused", "PublishBatch: InvalidParameter", 2],
        ["o-4", "throttled", "BatchGetItem: Throttled", 1],
    ]


def test_ten_thousand_events_that_are_left_for_one_reason_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    denied = Verdict(Outcome.RETRY, "misconfigured", "PublishBatch: AuthorizationError")
    log_left({f"o-{number}": denied for number in range(10_000)})

    assert [(record.levelname, record.__dict__["count"]) for record in caplog.records] == [("ERROR", 10_000)]


def test_reconciliation_that_leaves_nothing_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_left({})

    assert caplog.records == []


class BrokenHandler(logging.Handler):
    """Lambda's own handler lets a failing write out in the same way."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the log cannot be written")


@pytest.mark.case("C03")
def test_a_log_that_cannot_be_written_changes_nothing_for_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("idempotent_consumer")
    monkeypatch.setattr(logger, "handlers", [BrokenHandler()])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    monkeypatch.setattr(telemetry, "xray_recorder", Broken("begin"))

    log_verdict("m-1", "o-1", Verdict(Outcome.RETRY, "throttled"))
    log_fault("m-1", RuntimeError())
    log_not_postponed("AccessDenied")
    log_left({"o-1": Verdict(Outcome.RETRY, "throttled")})
    with phase("commit"):
        pass


@pytest.mark.case("C76")
@pytest.mark.parametrize("name", ["botocore.endpoint", "botocore.hooks", "aws_xray_sdk.core.recorder"])
def test_libraries_that_log_whole_requests_stay_quiet_at_debug(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        logging.getLogger(name).debug("request %s", MARKER)

    assert caplog.records == []


# --- metrics


def emitted(capsys: pytest.CaptureFixture[str], *args: Any) -> dict[str, Any]:
    emit_metrics(*args)
    out, err = capsys.readouterr()
    assert out.endswith("\n") and out.count("\n") == 1
    assert err == ""
    line: dict[str, Any] = json.loads(out)
    return line


def test_the_metrics_of_an_invocation_are_one_literal_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(telemetry, "now_ms", lambda: NOW_MS)

    emit_metrics("orders", [Verdict(Outcome.APPLIED), Verdict(Outcome.REJECTED, "id-missing")], [880, 120], [1, 3])

    assert capsys.readouterr().out == (
        '{"_aws":{"Timestamp":1893553446789,"CloudWatchMetrics":[{"Namespace":"IdempotentConsumer",'
        '"Dimensions":[["Consumer"]],"Metrics":['
        '{"Name":"Applied","Unit":"Count"},{"Name":"Resumed","Unit":"Count"},{"Name":"Duplicates","Unit":"Count"},'
        '{"Name":"Superseded","Unit":"Count"},{"Name":"Ignored","Unit":"Count"},{"Name":"Rejected","Unit":"Count"},'
        '{"Name":"Conflicts","Unit":"Count"},{"Name":"Retries","Unit":"Count"},{"Name":"Blocked","Unit":"Count"},'
        '{"Name":"Misconfigured","Unit":"Count"},{"Name":"EventAge","Unit":"Milliseconds"},'
        '{"Name":"ReceiveCount","Unit":"Count"}]}]},'
        '"level":"INFO","timestamp":"2030-01-02T03:04:06Z","Consumer":"orders",'
        '"Applied":1,"Resumed":0,"Duplicates":0,"Superseded":0,"Ignored":0,"Rejected":1,"Conflicts":0,"Retries":0,'
        '"Blocked":0,"Misconfigured":0,"EventAge":[120,880],"ReceiveCount":[1,3]}\n'
    )


@pytest.mark.parametrize(
    ("outcome", "metric"),
    [
        (Outcome.APPLIED, "Applied"),
        (Outcome.RESUMED, "Resumed"),
        (Outcome.DUPLICATE, "Duplicates"),
        (Outcome.SUPERSEDED, "Superseded"),
        (Outcome.IGNORED, "Ignored"),
        (Outcome.REJECTED, "Rejected"),
        (Outcome.CONFLICT, "Conflicts"),
        (Outcome.RETRY, "Retries"),
        (Outcome.BLOCKED, "Blocked"),
    ],
)
def test_each_outcome_is_counted_under_its_own_name(
    outcome: Outcome, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = emitted(capsys, "orders", [Verdict(outcome)] * 7, [], [1])

    assert {name: value for name, value in line.items() if isinstance(value, int) and value} == {metric: 7}


@pytest.mark.parametrize(("reason", "count"), [("misconfigured", 2), ("refused", 2), ("throttled", 0), ("", 0)])
def test_misconfigured_counts_what_waits_for_a_person(
    reason: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = emitted(capsys, "orders", [Verdict(Outcome.RETRY, reason), Verdict(Outcome.RETRY, reason)], [], [1])

    assert (line["Misconfigured"], line["Retries"]) == (count, 2)


def test_without_values_a_metric_is_left_out_rather_than_empty(capsys: pytest.CaptureFixture[str]) -> None:
    line = emitted(capsys, "orders", iter([]), [], [])

    names = [metric["Name"] for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]]
    assert "EventAge" not in names and "EventAge" not in line
    assert "ReceiveCount" not in names and "ReceiveCount" not in line
    assert all(line[name] == 0 for name in names)


def test_each_metric_that_is_named_has_a_value_and_the_dimension_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    line = emitted(capsys, "Bestellungen 📦", [Verdict(Outcome.APPLIED)], [1], [1])

    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert all(metric["Name"] in line for metric in directive["Metrics"])
    assert [[name] for name in line if name == "Consumer"] == directive["Dimensions"]
    assert line["Consumer"] == "Bestellungen 📦"


def test_a_batch_of_ten_thousand_still_has_at_most_100_values_with_the_extremes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ages = [(number * 7_919) % 10_000 for number in range(10_000)]

    line = emitted(capsys, "orders", [Verdict(Outcome.APPLIED)] * 10_000, ages, [1] * 10_000)

    assert len(line["EventAge"]) == 100
    assert (line["EventAge"][0], line["EventAge"][-1]) == (0, 9_999)
    assert line["ReceiveCount"] == [1] * 100
    assert line["Applied"] == 10_000


@pytest.mark.parametrize(
    ("values", "result"),
    [
        ([], []),
        ([5], [5]),
        ([3, 1, 2], [1, 2, 3]),
        (list(range(100, 0, -1)), list(range(1, 101))),
        (list(range(101)), [*range(99), 100]),
        (list(range(199)), [*range(0, 199, 2)]),
    ],
)
def test_values_are_spread_evenly_over_their_order(values: list[int], result: list[int]) -> None:
    assert spread(values) == result


@pytest.mark.parametrize("count", [101, 137, 250, 1_000, 9_999])
def test_the_least_and_the_greatest_value_are_never_left_out(count: int) -> None:
    chosen = spread([number * number for number in range(count)])

    assert len(chosen) == 100
    assert (chosen[0], chosen[-1]) == (0, (count - 1) ** 2)
    assert chosen == sorted(set(chosen))


def test_the_time_is_epoch_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_893_553_446_789_999_999)

    assert now_ms() == NOW_MS


def reconciliation_line(capsys: pytest.CaptureFixture[str], run: Reconciliation, now: int = NOW_MS) -> dict[str, Any]:
    emit_reconciliation("orders", run, now)
    out, err = capsys.readouterr()
    assert out.endswith("\n") and out.count("\n") == 1
    assert err == ""
    line: dict[str, Any] = json.loads(out)
    return line


def test_the_metrics_of_a_reconciliation_are_one_literal_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(telemetry, "now_ms", lambda: NOW_MS + 5_000)
    refused = Verdict(Outcome.RETRY, "refused", "PublishBatch: InvalidParameter")
    denied = Verdict(Outcome.RETRY, "misconfigured", "Query: AccessDeniedException")
    throttled = Verdict(Outcome.RETRY, "throttled", "PublishBatch: Throttled")
    run = Reconciliation(
        stale=10,
        oldest_ms=NOW_MS - 1_234,
        published=4,
        gone=1,
        left={"o-1": refused, "o-2": throttled, "o-3": refused},
        unread={"3": denied, "4": throttled},
    )

    emit_reconciliation("orders", run, NOW_MS)

    assert capsys.readouterr().out == (
        '{"_aws":{"Timestamp":1893553451789,"CloudWatchMetrics":[{"Namespace":"IdempotentConsumer",'
        '"Dimensions":[["Consumer"]],"Metrics":['
        '{"Name":"Reconciled","Unit":"Count"},{"Name":"StalePending","Unit":"Count"},'
        '{"Name":"OldestPendingAge","Unit":"Milliseconds"},{"Name":"Misconfigured","Unit":"Count"}]}]},'
        '"level":"INFO","timestamp":"2030-01-02T03:04:11Z","Consumer":"orders",'
        '"Reconciled":4,"StalePending":5,"OldestPendingAge":1234,"Misconfigured":3}\n'
    )


def test_a_reconciliation_with_nothing_to_do_has_metrics_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    line = reconciliation_line(capsys, Reconciliation())

    names = ("Reconciled", "StalePending", "OldestPendingAge", "Misconfigured")
    assert [line[name] for name in names] == [0, 0, 0, 0]


@pytest.mark.parametrize(("oldest_ms", "age_ms"), [(NOW_MS, 0), (NOW_MS + 60_000, 0), (0, NOW_MS), (NOW_MS - 1, 1)])
def test_the_oldest_age_is_never_negative(oldest_ms: int, age_ms: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The clock of the function that wrote the row may go before this one's."""
    assert reconciliation_line(capsys, Reconciliation(oldest_ms=oldest_ms))["OldestPendingAge"] == age_ms
