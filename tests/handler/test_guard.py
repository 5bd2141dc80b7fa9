"""The guard: who may run the effect, in one literal answer; what it logs, counts, and raises where nobody knows."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.endpoint
import pytest
from aws_xray_sdk.core import xray_recorder
from botocore.exceptions import ConnectionClosedError, NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from idempotent_consumer import guard as guard_module
from idempotent_consumer.aws import create_client
from idempotent_consumer.guard import Guard, handler
from idempotent_consumer.settings import SettingsError
from idempotent_consumer.workflow.claim import ClaimUnavailable, InvalidRequest
from tests.handler.support import UPDATE, Cloud, client_error
from tests.handler.workflow_support import ONE, OTHER, TABLE, Workflow

MARKER = "marker-4111-1111"
LIBRARY = Path(guard_module.__file__).parents[1]


@pytest.fixture
def workflow(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    return Workflow(cloud, monkeypatch)


# The contract


def test_a_key_that_nobody_has_is_claimed(workflow: Workflow) -> None:
    assert workflow.ask(messageId="m-1", owner=ONE) == {
        "proceed": True,
        "reason": "claimed",
        "idempotencyKey": {"pk": "sqs:m-1", "sk": "ingestion"},
    }


def test_a_key_that_another_execution_has_is_a_duplicate(workflow: Workflow) -> None:
    workflow.ask(messageId="m-1", owner=ONE)
    assert workflow.ask(messageId="m-1", owner=OTHER) == {
        "proceed": False,
        "reason": "duplicate",
        "idempotencyKey": {"pk": "sqs:m-1", "sk": "ingestion"},
    }


def test_the_owner_may_ask_again(workflow: Workflow) -> None:
    first = workflow.ask(messageId="m-1", owner=ONE)
    assert workflow.ask(messageId="m-1", owner=ONE) == first
    assert first["reason"] == "claimed"


def test_without_an_owner_the_second_call_is_a_duplicate(workflow: Workflow) -> None:
    assert workflow.ask(messageId="m-1")["proceed"] is True
    second = workflow.ask(messageId="m-1")
    assert (second["proceed"], second["reason"]) == (False, "duplicate")


def test_a_business_key_goes_before_the_message_id(workflow: Workflow) -> None:
    answer = workflow.ask(key="o-1", messageId="m-1", owner=ONE)
    assert answer["idempotencyKey"] == {"pk": "o-1", "sk": "ingestion"}
    assert workflow.ask(key="o-1", messageId="m-2", owner=OTHER)["proceed"] is False
    assert workflow.ask(key="o-2", messageId="m-1", owner=OTHER)["proceed"] is True


def test_namespaces_have_keys_of_their_own(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    answer = workflow.ask(key="o-1", namespace="billing", owner=OTHER)
    assert answer == {
        "proceed": True,
        "reason": "claimed",
        "idempotencyKey": {"pk": "o-1", "sk": "billing"},
    }


def test_what_is_null_counts_as_left_out(workflow: Workflow) -> None:
    answer = workflow.ask(key=None, messageId="m-1", namespace=None, owner=None, fingerprint=None)
    assert answer["idempotencyKey"] == {"pk": "sqs:m-1", "sk": "ingestion"}


@pytest.mark.parametrize("asked", [False, None, 1, "true"])
def test_only_true_asks_for_the_result(workflow: Workflow, asked: Any) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.write(status={"S": "COMPLETED"}, result={"S": "1"})
    answer = workflow.ask(key="o-1", owner=OTHER, returnResult=asked)
    assert answer == {
        "proceed": False,
        "reason": "duplicate",
        "idempotencyKey": {"pk": "o-1", "sk": "ingestion"},
    }


# What makes no sense


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (None, "the request is NoneType, not an object"),
        ([{"key": "o-1"}], "the request is list, not an object"),
        ("o-1", "the request is str, not an object"),
        ({}, "key and messageId are both missing: one of them is needed"),
        ({"key": None, "messageId": None}, "key and messageId are both missing: one of them is needed"),
        ({"key": ""}, "key is str, but must be a string that is not blank"),
        ({"key": " \t"}, "key is str, but must be a string that is not blank"),
        ({"key": 7}, "key is int, but must be a string that is not blank"),
        ({"key": "", "messageId": "m-1"}, "key is str, but must be a string that is not blank"),
        ({"key": "k" * 2049}, "key has 2049 UTF-8 bytes, over 2048"),
        ({"key": "é" * 1024 + "k"}, "key has 2049 UTF-8 bytes, over 2048"),
        ({"key": "o-\ud800"}, "key has half of a surrogate pair in it"),
        ({"key": "o-1", "owner": "\udfff"}, "owner has half of a surrogate pair in it"),
        ({"messageId": " "}, "messageId is str, but must be a string that is not blank"),
        ({"messageId": ["m-1"]}, "messageId is list, but must be a string that is not blank"),
        ({"key": "o-1", "owner": ""}, "owner is str, but must be a string that is not blank"),
        ({"key": "o-1", "owner": 0}, "owner is int, but must be a string that is not blank"),
        ({"key": "o-1", "namespace": ""}, "namespace is str, but must be a string that is not blank"),
        ({"key": "o-1", "namespace": "n" * 1025}, "namespace has 1025 UTF-8 bytes, over 1024"),
        ({"key": "o-1", "fingerprint": False}, "fingerprint is bool, but must be a string that is not blank"),
        (
            {"key": "o-1", "retentionSeconds": True},
            "retentionSeconds is True, not a whole number from 1 to ten years",
        ),
        ({"key": "o-1", "retentionSeconds": 0}, "retentionSeconds is 0, not a whole number from 1 to ten years"),
        ({"key": "o-1", "retentionSeconds": -1}, "retentionSeconds is -1, not a whole number from 1 to ten years"),
        ({"key": "o-1", "retentionSeconds": 60.0}, "retentionSeconds is 60.0, not a whole number from 1 to ten years"),
        ({"key": "o-1", "retentionSeconds": "60"}, "retentionSeconds is '60', not a whole number from 1 to ten years"),
        (
            {"key": "o-1", "retentionSeconds": 316_224_001},
            "retentionSeconds is 316224001, not a whole number from 1 to ten years",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_is_written(
    workflow: Workflow, request_: Any, message: str
) -> None:
    guard = Guard(workflow.environment, workflow.cloud.clients.dynamodb)
    with pytest.raises(InvalidRequest) as refused:
        guard.handle(request_)
    assert str(refused.value) == message
    assert workflow.cloud.operations == []


@pytest.mark.parametrize(
    "request_",
    [
        {"key": "k" * 2048},
        {"key": "é" * 1024},
        {"key": "o-1", "namespace": "n" * 1024},
        {"key": "o-1", "retentionSeconds": 1},
        {"key": "o-1", "retentionSeconds": 316_224_000},
    ],
)
def test_the_limits_themselves_are_within(workflow: Workflow, request_: dict[str, Any]) -> None:
    assert workflow.ask(**request_)["proceed"] is True


# Errors


@pytest.mark.parametrize(
    ("error", "message", "misconfigured"),
    [
        (client_error("ThrottlingException"), "throttled: UpdateItem: ThrottlingException", 0),
        (client_error("RequestLimitExceeded"), "throttled: UpdateItem: RequestLimitExceeded", 0),
        (client_error("InternalServerError"), "unavailable: UpdateItem: InternalServerError", 0),
        (ReadTimeoutError(endpoint_url=MARKER), "unavailable: UpdateItem: ReadTimeoutError", 0),
        (ResponseParserError(MARKER), "unavailable: UpdateItem: ResponseParserError", 0),
        (
            client_error("TransactionConflictException"),
            "transaction-conflict: UpdateItem: TransactionConflictException",
            0,
        ),
        (client_error("AccessDeniedException"), "misconfigured: UpdateItem: AccessDeniedException", 1),
        (client_error("ResourceNotFoundException"), "misconfigured: UpdateItem: ResourceNotFoundException", 1),
        (NoCredentialsError(), "misconfigured: UpdateItem: NoCredentialsError", 1),
        (client_error("ValidationException"), "refused: UpdateItem: ValidationException", 1),
    ],
)
def test_a_call_that_fails_is_raised_so_that_the_owner_asks_again(
    workflow: Workflow,
    metrics: Callable[[], dict[str, Any]],
    logged: Callable[[], list[tuple[str, str, str, str]]],
    error: Exception,
    message: str,
    misconfigured: int,
) -> None:
    workflow.cloud.on(UPDATE, raises=error)
    with pytest.raises(ClaimUnavailable) as failed:
        workflow.ask(key="o-1", messageId="m-1", owner=ONE)
    reason, detail = message.split(": ", 1)
    assert str(failed.value) == message
    assert failed.value.__cause__ is None and failed.value.__suppress_context__
    assert logged() == [("m-1", "retry", reason, detail)]
    line = metrics()
    assert line["Misconfigured"] == misconfigured
    assert line["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "Misconfigured", "Unit": "Count"}]


def test_after_a_failure_before_the_write_anybody_may_claim(workflow: Workflow) -> None:
    workflow.cloud.on(UPDATE, raises=client_error("InternalServerError"), calls=[1])
    with pytest.raises(ClaimUnavailable):
        workflow.ask(key="o-1", owner=ONE)
    assert workflow.ask(key="o-1", owner=OTHER)["reason"] == "claimed"


def test_after_an_answer_was_lost_the_owner_proceeds_and_nobody_else(workflow: Workflow) -> None:
    workflow.cloud.on(UPDATE, raises=ConnectionClosedError(endpoint_url="https://aws.example"), after=True, calls=[1])
    with pytest.raises(ClaimUnavailable):
        workflow.ask(key="o-1", owner=ONE)
    assert workflow.ask(key="o-1", owner=OTHER)["reason"] == "duplicate"
    assert workflow.ask(key="o-1", owner=ONE)["reason"] == "claimed"


@pytest.mark.parametrize("owner", [{}, {"owner": ONE}])
def test_the_sdks_own_second_try_after_a_lost_answer_still_proceeds(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch, owner: dict[str, str]
) -> None:
    """Without an owner too: the request that is sent again names the same one."""
    dynamodb = create_client("dynamodb")
    sent: list[Any] = []

    def lose_first(**_: Any) -> None:
        sent.append(None)
        if len(sent) == 1:
            raise ConnectionClosedError(endpoint_url="https://aws.example")

    dynamodb.meta.events.register_last("before-send.dynamodb.UpdateItem", lose_first)
    monkeypatch.setattr(botocore.endpoint, "time", SimpleNamespace(sleep=lambda _seconds: None))
    answer = Guard(workflow.environment, dynamodb).handle({"key": "o-1", **owner})
    assert (answer["proceed"], answer["reason"], len(sent)) == (True, "claimed", 2)
    assert workflow.ask(key="o-1", owner=OTHER)["reason"] == "duplicate"


# What is told of it


def test_nothing_of_a_request_is_logged_but_its_ids(
    workflow: Workflow, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "idempotent_consumer")
    request = {"key": "o-1", "messageId": "m-1", "fingerprint": MARKER, "event": {"card": MARKER}, "body": MARKER}
    workflow.ask(**request, owner=ONE)
    workflow.write(status={"S": "COMPLETED"}, result={"S": f'"{MARKER}"'}, detail={"S": MARKER})
    workflow.ask(**request, owner=OTHER, returnResult=True)
    workflow.ask(**{**request, "fingerprint": MARKER + "2"}, owner=OTHER)
    workflow.cloud.on(UPDATE, raises=client_error("ValidationException", Item={"body": MARKER}))
    with pytest.raises(ClaimUnavailable):
        workflow.ask(**request, owner=OTHER)
    plain = logging.Formatter()
    told = [f"{plain.format(entry)} {entry.__dict__}" for entry in caplog.records]
    assert len(told) == 3
    assert MARKER not in "\n".join(told) + capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "fingerprint", "level", "told"),
    [
        ({}, "f-1", logging.INFO, ("m-2", "duplicate", "duplicate", "")),
        ({"parkedAt": {"N": "1"}}, "f-1", logging.INFO, ("m-2", "duplicate", "parked", "")),
        ({}, "f-2", logging.WARNING, ("m-2", "conflict", "conflict", "")),
    ],
)
def test_who_may_not_proceed_is_logged_with_the_reason(
    workflow: Workflow,
    caplog: pytest.LogCaptureFixture,
    logged: Callable[[], list[tuple[str, str, str, str]]],
    row: dict[str, Any],
    fingerprint: str,
    level: int,
    told: tuple[str, str, str, str],
) -> None:
    workflow.ask(key="o-1", messageId="m-1", fingerprint="f-1", owner=ONE)
    workflow.write(**row)
    assert logged() == []
    workflow.ask(key="o-1", messageId="m-2", fingerprint=fingerprint, owner=OTHER)
    assert logged() == [told]
    (entry,) = caplog.records
    assert (entry.levelno, entry.__dict__["event_id"]) == (level, "o-1")


def test_a_call_by_hand_without_a_message_id_is_logged_by_its_key(
    workflow: Workflow, logged: Callable[[], list[tuple[str, str, str, str]]]
) -> None:
    workflow.ask(key="o-1")
    workflow.ask(key="o-1")
    assert logged() == [("", "duplicate", "duplicate", "")]


def test_the_line_of_metrics_is_literal(workflow: Workflow, metrics: Callable[[], dict[str, Any]]) -> None:
    workflow.ask(key="o-1", owner=ONE)
    assert metrics() == {
        "_aws": {
            "Timestamp": 1_893_553_446_000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "IdempotentConsumer",
                    "Dimensions": [["Consumer"]],
                    "Metrics": [
                        {"Name": "Claimed", "Unit": "Count"},
                        {"Name": "Conflicts", "Unit": "Count"},
                        {"Name": "Skipped", "Unit": "Count"},
                    ],
                }
            ],
        },
        "level": "INFO",
        "timestamp": "2030-01-02T03:04:06Z",
        "Consumer": "orders",
        "Claimed": 1,
        "Conflicts": 0,
        "Skipped": 0,
    }


@pytest.mark.parametrize(
    ("row", "fingerprint", "counts"),
    [
        ({"status": {"S": "RELEASED"}}, "f-1", (1, 0, 0)),
        ({}, "f-2", (0, 1, 0)),
        ({"parkedAt": {"N": "1"}}, "f-2", (0, 1, 0)),
        ({}, "f-1", (0, 0, 1)),
        ({"parkedAt": {"N": "1"}}, "f-1", (0, 0, 1)),
    ],
)
def test_each_answer_counts_once(
    workflow: Workflow,
    metrics: Callable[[], dict[str, Any]],
    row: dict[str, Any],
    fingerprint: str,
    counts: tuple[int, int, int],
) -> None:
    workflow.ask(key="o-1", fingerprint="f-1", owner=ONE)
    metrics()
    workflow.write(**row)
    workflow.ask(key="o-1", fingerprint=fingerprint, owner=OTHER)
    line = metrics()
    assert (line["Claimed"], line["Conflicts"], line["Skipped"]) == counts


@pytest.fixture
def segment() -> Iterator[Any]:
    """A trace as it is open inside Lambda; nothing leaves the process."""
    opened = xray_recorder.begin_segment("orders-guard", sampling=1)
    yield opened
    xray_recorder.clear_trace_entities()


def test_a_line_that_cannot_be_printed_takes_no_claim_back(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr("idempotent_consumer.telemetry.emit_counts", full)
    assert workflow.ask(key="o-1")["proceed"] is True
    assert "fault: OSError" in caplog.text


def test_the_claim_is_a_subsegment_also_where_it_fails(segment: Any, workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.cloud.on(UPDATE, raises=client_error("InternalServerError"))
    with pytest.raises(ClaimUnavailable):
        workflow.ask(key="o-1", owner=ONE)
    assert [(each.name, each.in_progress) for each in segment.subsegments] == [("claim", False), ("claim", False)]


# The entry point


@pytest.mark.parametrize("name", ["CONSUMER_NAME", "IDEMPOTENCY_TABLE"])
def test_a_guard_without_its_settings_does_not_start(workflow: Workflow, name: str) -> None:
    environment = {"CONSUMER_NAME": "orders", "IDEMPOTENCY_TABLE": TABLE, name: " "}
    with pytest.raises(SettingsError, match=f"{name} is missing or blank"):
        Guard(environment, workflow.cloud.clients.dynamodb)


def test_the_handler_makes_its_client_once(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def create(service: str) -> Any:
        made.append(service)
        return workflow.cloud.clients.dynamodb

    monkeypatch.setattr(guard_module, "create_client", create)
    monkeypatch.setattr(guard_module, "_guard", None)
    monkeypatch.setenv("CONSUMER_NAME", "orders")
    monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
    assert handler({"key": "o-1", "owner": ONE}, None)["proceed"] is True
    assert handler({"key": "o-1", "owner": OTHER}, None)["proceed"] is False
    assert made == ["dynamodb"]


def in_lambda(module: str, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new process of a function that imports a module of the library, and runs code after that."""
    return subprocess.run(
        [sys.executable, "-c", f"from idempotent_consumer import {module}\n{code}"],
        env={**os.environ, "PYTHONPATH": str(LIBRARY), "AWS_LAMBDA_FUNCTION_NAME": "orders", **environment},
        capture_output=True,
        text=True,
    )


def test_inside_lambda_it_is_connected_before_its_first_request() -> None:
    code = "import gc; print(guard._guard is not None, gc.isenabled(), gc.get_freeze_count() > 0)"
    process = in_lambda("guard", code, CONSUMER_NAME="orders", IDEMPOTENCY_TABLE=TABLE)
    assert process.stdout == "True True True\n", process.stderr


def test_inside_lambda_a_wrong_environment_stops_it_before_its_first_request() -> None:
    process = in_lambda("guard", "print('started')", CONSUMER_NAME="orders")
    assert (process.returncode, process.stdout) == (1, "")
    assert "SettingsError: IDEMPOTENCY_TABLE is missing or blank" in process.stderr


def test_an_answer_is_json(workflow: Workflow) -> None:
    workflow.ask(key="o-1", owner=ONE)
    workflow.write(status={"S": "COMPLETED"}, result={"S": '{"id":"é"}'})
    answer = workflow.ask(key="o-1", owner=OTHER, returnResult=True)
    assert json.loads(json.dumps(answer)) == answer
