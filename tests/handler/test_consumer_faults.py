"""Faults of our own stay with their record, a misconfiguration is told apart, and neither log nor metrics can hurt."""

from __future__ import annotations

import json
import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from idempotent_consumer import intake, telemetry
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.envelope import open_envelope
from idempotent_consumer.event import Event, fingerprint
from idempotent_consumer.plan import Plan
from idempotent_consumer.settings import Envelope, Settings
from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import (
    BURY,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    READ,
    Cloud,
    Context,
    client_error,
    record,
    reported,
)

Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]

ORDERS = [record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)]


# Faults of our own


def faulty_planner(cloud: Cloud, error: BaseException) -> Callable[[Event], Plan]:
    plan = declarative_planner(Settings.from_environment(cloud.environment()))

    def planner(event: Event) -> Plan:
        if event.id == "o-2":
            raise error
        return plan(event)

    return planner


@pytest.mark.case("C03")
@pytest.mark.parametrize("error", [KeyError("sku"), TypeError("text"), ValueError("text"), MemoryError()])
def test_planner_that_raises_fails_its_record_alone(cloud: Cloud, error: Exception, logged: Logged) -> None:
    handle = cloud.consumer(planner=faulty_planner(cloud, error)).handle
    assert handle({"Records": ORDERS}, Context(cloud)) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}
    assert logged() == [("m-2", "retry", "fault", type(error).__name__)]
    assert cloud.dead_letters() == []


@pytest.mark.parametrize(
    "error", [RecursionError(), MemoryError(), SystemExit(1), KeyError("sku"), CancelledError()], ids=repr
)
def test_planner_that_fails_somehow_fails_its_record_alone(cloud: Cloud, error: BaseException) -> None:
    handle = cloud.consumer(planner=faulty_planner(cloud, error)).handle
    assert handle({"Records": ORDERS}, Context(cloud)) == reported("m-2")
    assert cloud.dead_letters() == []
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.case("C03")
def test_fault_while_opening_the_body_fails_its_record_alone(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:

    def faulty(body: str, envelope: Envelope) -> list[Any]:
        if "o-2" in body:
            raise KeyError("Records")
        return open_envelope(body, envelope)

    monkeypatch.setattr(intake, "open_envelope", faulty)
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.parametrize("depth", [500, 900, 980, 990, 995, 1_000, 5_000, 100_000])
@pytest.mark.parametrize("leaf", ["1", '"\\ud83d\\ude00"'])
def test_body_nested_too_deep_is_dead_lettered_alone(cloud: Cloud, depth: int, leaf: str) -> None:
    body = f'{{"id":"o-2","deep":{"[" * depth}{leaf}{"]" * depth}}}'
    assert cloud.deliver(ORDERS[0], record("m-2", body), ORDERS[2]) == NOTHING_FAILED
    assert cloud.reasons() == ["nested-too-deep"]
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.case("C03")
@pytest.mark.alone
def test_client_that_raises_in_a_commit_fails_its_record_alone(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=TypeError("text"), calls=[2])
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


def test_client_that_raises_in_a_deciding_read_fails_its_record_alone(cloud: Cloud) -> None:
    cloud.on(READ, raises=TypeError("text"))
    assert cloud.deliver(ORDERS[0], record("m-2", {"id": "o-2", "event_id": "other"}), ORDERS[2]) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.parametrize("operation", [PUBLISH, MARK])
def test_client_that_raises_in_a_common_step_leaves_the_duplicates_alone(cloud: Cloud, operation: str) -> None:
    cloud.deliver(ORDERS[0])
    cloud.on(operation, raises=TypeError("text"))
    assert cloud.deliver(*ORDERS, record("m-4", "{")) == reported("m-2", "m-3")
    assert cloud.statuses() == {"o-1": "sent", "o-2": "pending", "o-3": "pending"}
    assert cloud.reasons() == ["bad-json"]
    cloud.heal()
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert set(cloud.statuses().values()) == {"sent"}


@pytest.mark.parametrize("answer", [[], {"Successful": [{}]}, {"Failed": [{"Code": "X"}]}])
def test_answer_of_an_unknown_shape_publishes_nothing(cloud: Cloud, answer: Any) -> None:
    cloud.on(PUBLISH, answers=lambda _request, _effect: answer)
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert set(cloud.statuses().values()) == {"pending"}


def test_client_that_raises_in_a_dead_letter_send_fails_its_record_alone(cloud: Cloud) -> None:
    cloud.on(BURY, raises=TypeError("text"), calls=[1])
    assert cloud.deliver(ORDERS[0], record("m-2", "{"), record("m-3", "}")) == reported("m-2")
    assert [letter.body for letter in cloud.dead_letters()] == ["}"]


def test_attribute_that_is_no_base64_fails_its_record_alone(cloud: Cloud) -> None:
    broken = {"a": {"binaryValue": "not base64!", "dataType": "Binary"}}
    assert cloud.deliver(ORDERS[0], record("m-2", "{", attributes=broken), record("m-3", "}")) == reported("m-2")
    assert [letter.body for letter in cloud.dead_letters()] == ["}"]


# Misconfiguration


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_invocation_raises_where_nothing_of_the_batch_could_be_settled(
    cloud: Cloud, code: str, metrics: Metrics
) -> None:
    cloud.on(COMMIT, raises=client_error(code))
    with pytest.raises(Misconfigured):
        cloud.deliver(*ORDERS)
    counted = metrics()
    assert (counted["Misconfigured"], counted["Retries"]) == (3, 3)
    assert "EventAge" not in counted
    assert counted["ReceiveCount"] == [1, 1, 1]


@pytest.mark.alone
def test_one_settled_record_is_enough_for_an_answer(cloud: Cloud, metrics: Metrics) -> None:
    cloud.on(COMMIT, raises=client_error("AccessDeniedException"), calls=[1, 2])
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2")
    assert metrics()["Misconfigured"] == 2


def test_dead_letter_is_a_settled_record(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("AccessDeniedException"))
    assert cloud.deliver(*ORDERS, record("m-4", "{")) == reported("m-1", "m-2", "m-3")


def test_missing_topic_raises_though_the_rows_are_committed(cloud: Cloud) -> None:
    cloud.on(PUBLISH, raises=client_error("NotFound", PUBLISH))
    with pytest.raises(Misconfigured):
        cloud.deliver(*ORDERS)
    assert set(cloud.statuses().values()) == {"pending"}
    cloud.heal()
    assert cloud.deliver(*ORDERS) == NOTHING_FAILED
    assert sorted(cloud.notified()) == ["o-1", "o-2", "o-3"]


def test_missing_right_to_mark_raises_and_publishes_again(cloud: Cloud) -> None:
    cloud.on(MARK, raises=client_error("AccessDeniedException", MARK))
    with pytest.raises(Misconfigured):
        cloud.deliver(ORDERS[0])
    cloud.heal()
    assert cloud.deliver(ORDERS[0]) == NOTHING_FAILED
    assert cloud.notified() == ["o-1", "o-1"]


def test_missing_dead_letter_queue_raises_where_nothing_else_was_settled(cloud: Cloud) -> None:
    cloud.on(BURY, raises=client_error("AWS.SimpleQueueService.NonExistentQueue", BURY))
    with pytest.raises(Misconfigured):
        cloud.deliver(record("m-1", "{"))
    assert cloud.deliver(record("m-1", "{"), ORDERS[1]) == reported("m-1")


def test_one_misconfigured_record_among_others_to_retry_raises(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("AccessDeniedException"), calls=[1])
    cloud.on(COMMIT, raises=client_error("InternalServerError"))
    with pytest.raises(Misconfigured):
        cloud.deliver(*ORDERS)


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError", "TransactionConflictException"])
def test_outage_never_raises(cloud: Cloud, code: str, metrics: Metrics) -> None:
    cloud.on(COMMIT, raises=client_error(code))
    assert cloud.deliver(*ORDERS) == reported("m-1", "m-2", "m-3")
    assert metrics()["Misconfigured"] == 0


def test_empty_batch_has_an_empty_answer(cloud: Cloud) -> None:
    assert cloud.deliver() == {"batchItemFailures": []}


# Metrics and log


def test_metrics_are_one_line_of_the_embedded_format(cloud: Cloud, metrics: Metrics) -> None:
    cloud.deliver(record("m-1", {"id": "o-1"}, receive_count=3), record("m-2", "{"))
    counted = metrics()
    assert counted["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "IdempotentConsumer"
    assert counted["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["Consumer"]]
    assert counted["Consumer"] == "orders"
    # Sent at 1893553445120, done at 1893553446000.
    assert counted["EventAge"] == [880, 880]
    assert counted["ReceiveCount"] == [1, 3]


@pytest.mark.alone
def test_age_of_reported_records_is_not_counted(cloud: Cloud, metrics: Metrics) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    cloud.deliver(*ORDERS)
    counted = metrics()
    assert counted["EventAge"] == [880, 880]
    assert counted["ReceiveCount"] == [1, 1, 1]


@pytest.mark.case("C03")
@pytest.mark.alone
def test_metrics_that_fail_do_not_change_the_answer(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(telemetry, "emit_metrics", fail)
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
    assert cloud.deliver(*ORDERS) == reported("m-2")


@pytest.fixture
def broken_log() -> Iterator[None]:
    """A log handler that lets its failures out, as the one of Lambda's runtime does."""

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the log cannot be written")

    handler = Broken()
    logger = logging.getLogger("idempotent_consumer")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.mark.case("C03")
@pytest.mark.usefixtures("broken_log")
class TestLogThatCannotBeWritten:
    def test_dead_letters_are_sent_all_the_same(self, cloud: Cloud) -> None:
        assert cloud.deliver(ORDERS[0], record("m-2", "{"), ORDERS[2]) == NOTHING_FAILED
        assert cloud.reasons() == ["bad-json"]
        assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}

    @pytest.mark.alone
    def test_failures_are_reported_all_the_same(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
        assert cloud.deliver(*ORDERS) == reported("m-2")

    @pytest.mark.alone
    def test_faults_are_reported_all_the_same(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=TypeError("text"), calls=[2])
        assert cloud.deliver(*ORDERS) == reported("m-2")


MARKER = "s3cr3t-0f-0ne-cust0mer"


def marked_event(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "card": MARKER, **more}


@pytest.mark.case("C76")
class TestWhatIsNeverLogged:
    """A marker in bodies, attributes and the texts of errors is in no line of log or output, whatever happens."""

    @pytest.fixture(autouse=True)
    def _everything_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)

    @pytest.fixture
    def nothing_leaks(
        self, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> Callable[[], list[str]]:
        def check() -> list[str]:
            output = capsys.readouterr()
            formatter = logging.Formatter()
            lines = [formatter.format(entry) + json.dumps(entry.__dict__, default=str) for entry in caplog.records]
            lines += [*output.out.splitlines(), *output.err.splitlines()]
            assert [line for line in lines if MARKER in line] == []
            return lines

        return check

    def test_success(self, cloud: Cloud, nothing_leaks: Callable[[], list[str]]) -> None:
        body = record("m-1", marked_event("o-1"), attributes={"a": {"stringValue": MARKER, "dataType": "String"}})
        assert cloud.deliver(body, NOTIFICATION_ATTRIBUTES='{"card":"card"}') == NOTHING_FAILED
        assert cloud.deliver(body) == NOTHING_FAILED
        nothing_leaks()

    def test_rejection(self, cloud: Cloud, nothing_leaks: Callable[[], list[str]]) -> None:
        attributes = {"a": {"stringValue": MARKER, "dataType": "String"}}
        cloud.deliver(record("m-0", marked_event("o-1")))
        answer = cloud.deliver(
            record("m-1", marked_event("o-1", amount=1), attributes=attributes),
            record("m-2", f"{MARKER}", attributes=attributes),
            record("m-3", marked_event("o-3", **{MARKER: {"": 1}}), attributes=attributes),
            record("m-4", f'{{"id":"o-4","{MARKER}":1e39999}}', attributes=attributes),
        )
        assert answer == NOTHING_FAILED
        assert len(cloud.dead_letters()) == 4
        lines = nothing_leaks()
        assert sum("event conflict: id-reused" in line for line in lines) == 1

    @pytest.mark.parametrize("operation", [COMMIT, READ, PUBLISH, MARK, BURY])
    def test_errors_of_the_sdk(self, cloud: Cloud, operation: str, nothing_leaks: Callable[[], list[str]]) -> None:
        error = client_error("SomethingNew", operation)
        error.response["Error"]["Message"] = f"Type mismatch: {MARKER}"
        error.args = (f"An error occurred: {MARKER}",)
        cloud.on(operation, raises=error)
        cloud.deliver(
            record("m-1", marked_event("o-1")),
            record("m-2", marked_event("o-2", event_id="another")),
            record("m-3", f"{MARKER}"),
        )
        nothing_leaks()

    @pytest.mark.parametrize("operation", [COMMIT, READ, PUBLISH, MARK, BURY])
    def test_faults_of_our_own(self, cloud: Cloud, operation: str, nothing_leaks: Callable[[], list[str]]) -> None:
        cloud.on(operation, raises=KeyError(MARKER))
        cloud.deliver(
            record("m-1", marked_event("o-1")),
            record("m-2", marked_event("o-2", event_id="another")),
            record("m-3", f"{MARKER}"),
        )
        lines = nothing_leaks()
        assert any("fault: KeyError at " in line for line in lines)

    def test_planner_that_raises(self, cloud: Cloud, nothing_leaks: Callable[[], list[str]]) -> None:
        handle = cloud.consumer(planner=faulty_planner(cloud, KeyError(MARKER))).handle
        handle({"Records": [record("m-2", marked_event("o-2"))]}, Context(cloud))
        nothing_leaks()

    def test_misconfiguration(self, cloud: Cloud, nothing_leaks: Callable[[], list[str]]) -> None:
        cloud.on(COMMIT, raises=client_error("AccessDeniedException"))
        with pytest.raises(Misconfigured) as raised:
            cloud.deliver(record("m-1", marked_event("o-1")))
        assert MARKER not in str(raised.value)
        nothing_leaks()


def test_log_of_a_rejected_event_names_ids_and_reason_only(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cloud.deliver(record("m-1", {"id": "o-1", "event_id": "another"}))
    (entry,) = caplog.records
    assert entry.levelname == "WARNING"
    assert entry.getMessage() == "event rejected: reserved-attribute"
    assert {name: getattr(entry, name, None) for name in ("message_id", "event_id", "outcome", "reason", "detail")} == {
        "message_id": "m-1",
        "event_id": "o-1",
        "outcome": "rejected",
        "reason": "reserved-attribute",
        "detail": None,
    }


def test_applied_events_are_not_logged(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cloud.deliver(*ORDERS)
    assert caplog.records == []


@pytest.mark.alone
def test_misconfiguration_is_logged_as_an_error(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.on(COMMIT, raises=client_error("AccessDeniedException"), calls=[1])
    cloud.deliver(*ORDERS)
    (entry,) = caplog.records
    assert (entry.levelname, entry.getMessage()) == ("ERROR", "event retry: misconfigured")


@pytest.mark.case("C03")
def test_fault_while_an_event_is_identified_fails_its_record_alone(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(data: dict[str, Any], expression: Any) -> str:
        if data["id"] == "o-2":
            raise KeyError("id")
        return fingerprint(data, expression)

    monkeypatch.setattr(intake, "fingerprint", faulty)
    assert cloud.deliver(*ORDERS) == reported("m-2")
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}
