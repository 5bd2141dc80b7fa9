"""The entry point: made once from the environment, used for many invocations, and only for SQS records."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from idempotent_consumer import handler as handler_module
from idempotent_consumer import pipeline
from idempotent_consumer.aws import Clients
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.message import UnexpectedInvocation
from idempotent_consumer.settings import SettingsError
from tests.handler.support import COMMIT, NOTHING_FAILED, Cloud, Context, client_error, fixture, record, reported

Handler = Callable[[Any, Context], dict[str, Any]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, cloud: Cloud) -> list[Clients]:
    """The environment of the function; the clients that the handler makes are the cloud's, and each is noted."""
    made: list[Clients] = []

    def create(topic_arn: str | None) -> Clients:
        assert topic_arn == cloud.topic_arn
        made.append(cloud.clients)
        return cloud.clients

    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Clients, "create", create)
    handler_module._planner.cache_clear()
    return made


@pytest.fixture
def handler(made: list[Clients]) -> Handler:
    return pipeline(handler_module.plan)


@pytest.mark.case("C06")
@pytest.mark.alone
def test_handler_is_made_once_and_runs_twice_in_one_process(
    handler: Handler, made: list[Clients], cloud: Cloud
) -> None:
    first = [record("m-1", {"id": "o-1"}), record("m-2", {"id": "o-2"})]
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert handler({"Records": first}, Context(cloud)) == reported("m-1")
    assert handler({"Records": [record("m-1", {"id": "o-1"})]}, Context(cloud)) == NOTHING_FAILED
    assert len(made) == 1
    assert cloud.statuses() == {"o-1": "sent", "o-2": "sent"}


@pytest.mark.case("C06")
def test_group_that_failed_in_one_invocation_is_not_held_in_the_next(handler: Handler, cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[1])
    assert handler({"Records": [record("m-1", {"id": "o-1"}, group="g")]}, Context(cloud)) == reported("m-1")
    assert handler({"Records": [record("m-2", {"id": "o-2"}, group="g")]}, Context(cloud)) == NOTHING_FAILED


@pytest.mark.case("C55")
def test_time_of_one_invocation_is_not_the_time_of_the_next(handler: Handler, cloud: Cloud) -> None:
    batch = {"Records": [record("m-1", {"id": "o-1"})]}
    assert handler(batch, Context(cloud, 0)) == reported("m-1")
    assert handler(batch, Context(cloud, 30_000)) == NOTHING_FAILED


def test_slow_invocation_does_not_slow_down_the_next(handler: Handler, cloud: Cloud) -> None:
    handler({"Records": [record("m-1", {"id": "o-1"})]}, Context(cloud, 30_000, {COMMIT: 9_000}))
    batch = {"Records": [record("m-2", {"id": "o-2"}), record("m-3", {"id": "o-3"})]}
    assert handler(batch, Context(cloud, 12_000)) == NOTHING_FAILED


@pytest.mark.parametrize(
    "name", ["sqs_standard", "sqs_standard_redelivered", "sqs_standard_redriven", "sqs_standard_fair"]
)
def test_real_records_are_settled(handler: Handler, cloud: Cloud, name: str) -> None:
    assert handler(fixture(name), Context(cloud)) == NOTHING_FAILED
    assert cloud.statuses()["order-7001"] == "sent"
    assert cloud.rows()["order-7001"]["total"] == {"N": "105.10"}


@pytest.mark.case("C48")
def test_redelivery_and_redrive_of_a_real_record_change_nothing(handler: Handler, cloud: Cloud) -> None:
    for name in ("sqs_standard", "sqs_standard_redelivered", "sqs_standard_redriven"):
        assert handler(fixture(name), Context(cloud)) == NOTHING_FAILED
    assert cloud.notified() == ["order-7001"]


def test_raw_delivery_of_sns_needs_no_envelope(handler: Handler, cloud: Cloud) -> None:
    assert handler(fixture("sqs_sns_raw_delivery"), Context(cloud)) == NOTHING_FAILED
    assert cloud.notified() == ["order-7001"]


@pytest.mark.case("C10")
@pytest.mark.parametrize(
    ("invocation", "what"),
    [
        (fixture("sqs_api_receive_message"), "a ReceiveMessage answer"),
        ({"Records": fixture("sqs_api_receive_message")["Messages"]}, "the spelling of the SQS API"),
        (fixture("lambda_sns_direct"), "a record of aws:sns"),
        (fixture("body_s3_put"), "a record of aws:s3"),
        ({"Records": ["text"]}, "got str"),
        ({"Records": {}}, "expected the Records"),
        ({}, "expected the Records"),
        ([], "expected the Records"),
        (None, "expected the Records"),
    ],
    ids=["answer", "api records", "sns", "s3", "text", "no list", "empty", "list", "null"],
)
def test_anything_but_sqs_records_is_refused_and_named(
    handler: Handler, cloud: Cloud, invocation: Any, what: str
) -> None:
    with pytest.raises(UnexpectedInvocation, match="expected ") as refusal:
        handler(invocation, Context(cloud))
    assert what in str(refusal.value)
    assert cloud.operations == []


@pytest.mark.case("C10")
def test_one_foreign_record_means_that_nothing_of_the_invocation_is_processed(handler: Handler, cloud: Cloud) -> None:
    records = [record("m-1", {"id": "o-1"}), *fixture("lambda_sns_direct")["Records"]]
    with pytest.raises(UnexpectedInvocation):
        handler({"Records": records}, Context(cloud))
    assert cloud.operations == []


def test_outside_lambda_nothing_is_made_before_the_first_call(made: list[Clients]) -> None:
    pipeline(handler_module.plan)
    assert made == []


def test_inside_lambda_the_clients_are_made_in_the_initialisation_phase(
    made: list[Clients], cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
    handler = pipeline(handler_module.plan)
    assert len(made) == 1
    assert handler({"Records": [record("m-1", {"id": "o-1"})]}, Context(cloud)) == NOTHING_FAILED
    assert len(made) == 1


def test_wrong_environment_stops_the_function_before_its_first_message(
    made: list[Clients], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
    monkeypatch.setenv("TTL_WINDOW_DAYS", "soon")
    with pytest.raises(SettingsError, match="TTL_WINDOW_DAYS is 'soon'"):
        pipeline(handler_module.plan)
    assert made == []


def test_module_imports_where_nothing_is_configured() -> None:
    reloaded = importlib.reload(handler_module)
    assert callable(reloaded.handler)


@pytest.mark.case("C72", "C74")
@pytest.mark.parametrize("variable", [None, "false", "true"])
def test_no_open_segment_is_no_error(
    handler: Handler, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    if variable:
        monkeypatch.setenv("AWS_XRAY_SDK_ENABLED", variable)
    assert handler({"Records": [record("m-1", {"id": "o-1"})]}, Context(cloud)) == NOTHING_FAILED


def test_shipped_plan_reads_its_settings_once(handler: Handler, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    handler({"Records": [record("m-1", {"id": "o-1"})]}, Context(cloud))
    monkeypatch.setenv("EVENT_ITEM", "nothing")
    assert handler({"Records": [record("m-2", {"id": "o-2"})]}, Context(cloud)) == NOTHING_FAILED
    assert cloud.statuses() == {"o-1": "sent", "o-2": "sent"}


def test_consumer_keeps_nothing_of_an_invocation(cloud: Cloud) -> None:
    consumer: Consumer = cloud.consumer()
    before = dict(vars(consumer))
    consumer.handle({"Records": [record("m-1", {"id": "o-1"}, group="g"), record("m-2", "{")]}, Context(cloud))
    assert vars(consumer) == before
