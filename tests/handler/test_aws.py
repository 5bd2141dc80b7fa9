"""The clients: their calls end before the function does, and an error code says what to do about it."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError, ReadTimeoutError

from idempotent_consumer import aws
from idempotent_consumer.answer import Outcome
from idempotent_consumer.aws import Clients
from idempotent_consumer.calls import Budget, error_code, failed_call, pause, retry_verdict
from tests.handler.support import Cloud, client_error, record, reported

Logged = Callable[[], list[tuple[str, str, str, str]]]


class _Time:
    def __init__(self, remaining_ms: int) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


# Timeouts


@pytest.mark.case("C65")
@pytest.mark.parametrize("service", ["dynamodb", "sns", "sqs"])
def test_clients_have_short_timeouts_and_two_attempts(clients: Clients, service: str) -> None:
    config = getattr(clients, service).meta.config
    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.retries == {"mode": "standard", "total_max_attempts": 2}


@pytest.mark.case("C65")
def test_longest_call_is_seven_seconds() -> None:
    # Two attempts of 1 s to connect and 2 s to read, and the SDK's pause of at most 1 s between them.
    assert aws.LONGEST_CALL_MS == 7_000


@pytest.mark.case("C65")
@pytest.mark.parametrize(
    ("remaining_ms", "call", "commit"),
    [(30_000, True, True), (8_500, True, True), (8_499, True, False), (7_500, True, False), (7_499, False, False)],
)
def test_step_starts_only_if_its_call_ends_in_time(remaining_ms: int, call: bool, commit: bool) -> None:
    budget = Budget(_Time(remaining_ms))
    assert (budget.allows_call(), budget.allows_commit()) == (call, commit)


@pytest.mark.case("C65")
def test_client_for_what_can_be_missed_gives_up_soon_and_does_not_try_again(clients: Clients) -> None:
    config = clients.sqs_short.meta.config
    assert (config.connect_timeout, config.read_timeout) == (0.5, 1)
    assert config.retries["total_max_attempts"] == 1
    assert aws.SHORT_CALL_MS == 1_500


@pytest.mark.case("C55", "C65")
@pytest.mark.parametrize(
    ("remaining_ms", "allowed"), [(30_000, True), (2_000, True), (1_999, False), (0, False), (-1, False)]
)
def test_short_call_starts_only_if_it_ends_in_time(remaining_ms: int, allowed: bool) -> None:
    assert Budget(_Time(remaining_ms)).allows_short_call() is allowed


@pytest.mark.parametrize(("remaining_ms", "allowed"), [(19_500, True), (19_499, False)])
def test_commit_leaves_the_time_that_settling_took(remaining_ms: int, allowed: bool) -> None:
    budget = Budget(_Time(remaining_ms))
    budget.observe_settling(11_500)
    budget.observe_settling(100)
    assert budget.allows_commit() is allowed


@pytest.mark.parametrize(("remaining_ms", "allowed"), [(11_500, True), (11_499, False)])
def test_commit_leaves_time_to_publish_and_to_mark_as_slowly_as_it_took_itself(
    remaining_ms: int, allowed: bool
) -> None:
    budget = Budget(_Time(remaining_ms))
    budget.observe_commit(2_000)
    budget.observe_commit(100)
    assert budget.allows_commit() is allowed
    assert budget.allows_call()


@pytest.mark.case("C55")
@pytest.mark.parametrize("remaining_ms", [0, 40, -1])
def test_no_time_left_is_no_time_and_not_time_without_end(remaining_ms: int) -> None:
    budget = Budget(_Time(remaining_ms))
    assert (budget.allows_call(), budget.allows_commit()) == (False, False)


@pytest.fixture
def black_hole() -> Iterator[str]:
    """The URL of a listener that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in accepted:
        connection.close()


@pytest.mark.case("C65")
def test_black_holed_table_is_reported_with_the_true_error_before_the_function_ends(
    cloud: Cloud, black_hole: str, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    monkeypatch.setattr(aws, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(aws, "READ_SECONDS", 0.1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", black_hole)
    # moto answers for AWS's own addresses only.
    cloud.clients = replace(cloud.clients, dynamodb=Clients.create().dynamodb)
    start = time.monotonic()
    answer = cloud.deliver(record("m-1", {"id": "o-1"}), record("m-2", "{"))
    seconds = time.monotonic() - start
    assert answer == reported("m-1")
    assert cloud.reasons() == ["bad-json"]
    assert logged()[-1] == ("m-1", "retry", "unavailable", "TransactWriteItems: ReadTimeoutError")
    # Two attempts and the SDK's pause between them, as LONGEST_CALL_MS reckons.
    assert seconds < 2 * (0.1 + 0.1) + 1 + 1


@pytest.mark.case("C65")
def test_refused_connection_is_reported_with_the_true_error(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{port}")
    cloud.clients = replace(cloud.clients, dynamodb=Clients.create().dynamodb)
    assert cloud.deliver(record("m-1", {"id": "o-1"})) == reported("m-1")
    assert logged() == [("m-1", "retry", "unavailable", "TransactWriteItems: EndpointConnectionError")]


@pytest.mark.case("C65")
def test_black_holed_queue_ends_a_short_call_with_its_only_attempt(
    black_hole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "_SHORT_READ_SECONDS", 0.1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", black_hole)
    sqs = Clients.create().sqs_short
    requests: list[Any] = []
    sqs.meta.events.register("before-send", lambda **_: requests.append(1))
    entry = {"Id": "0", "ReceiptHandle": "h", "VisibilityTimeout": 60}
    with pytest.raises(ReadTimeoutError):
        sqs.change_message_visibility_batch(QueueUrl=f"{black_hole}/1/orders", Entries=[entry])
    assert len(requests) == 1


@pytest.fixture
def flaky_table() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A table whose first answer to each call is lost. The URL, and the requests that came in."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if len(requests) % 2 == 0:
                self.send_response(200)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
            self.close_connection = True

        def log_message(self, *_arguments: object) -> None:
            """The test's output is no access log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join()


@pytest.mark.case("C28")
def test_one_request_token_is_kept_over_the_attempts_of_a_call_and_no_longer(
    flaky_table: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, requests = flaky_table
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
    dynamodb = Clients.create().dynamodb
    item = {"Put": {"TableName": "t", "Item": {"id": {"S": "o-1"}}}}
    dynamodb.transact_write_items(TransactItems=[item])
    dynamodb.transact_write_items(TransactItems=[item])
    tokens = [request["ClientRequestToken"] for request in requests]
    assert len(tokens) == 4
    assert tokens[0] == tokens[1]
    assert tokens[2] == tokens[3]
    assert tokens[0] != tokens[2]


def test_client_of_the_topic_is_made_for_the_region_of_the_topic() -> None:
    made = Clients.create("arn:aws:sns:eu-central-1:111122223333:orders")
    regions = [client.meta.region_name for client in (made.dynamodb, made.sns, made.sqs, made.sqs_short)]
    assert regions == ["us-east-1", "eu-central-1", "us-east-1", "us-east-1"]


def test_clients_are_of_the_three_services(clients: Clients) -> None:
    made = (clients.dynamodb, clients.sns, clients.sqs, clients.sqs_short)
    assert [client.meta.service_model.service_name for client in made] == ["dynamodb", "sns", "sqs", "sqs"]


@pytest.mark.parametrize("name", ["sqs", "sqs_short"])
def test_client_that_most_processes_never_need_is_made_on_its_first_use_and_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    create = botocore.session.Session.create_client

    def note(session: Any, service: str, **options: Any) -> Any:
        made.append(service)
        return create(session, service, **options)

    monkeypatch.setattr(botocore.session.Session, "create_client", note)
    clients = Clients.create("arn:aws:sns:eu-central-1:111122223333:orders")
    assert made == ["dynamodb", "sns"]
    for _ in range(2):
        assert getattr(clients, name).meta.service_model.service_name == "sqs"
    assert made == ["dynamodb", "sns", "sqs"]


def test_topic_s_client_is_not_made_where_nothing_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    create = botocore.session.Session.create_client

    def note(session: Any, service: str, **options: Any) -> Any:
        made.append(service)
        return create(session, service, **options)

    monkeypatch.setattr(botocore.session.Session, "create_client", note)
    Clients.create()
    assert made == ["dynamodb"]


# Pauses


def test_pause_doubles_from_50_ms_with_full_jitter() -> None:
    for attempt, longest in enumerate([0.05, 0.1, 0.2, 0.4]):
        slept: list[float] = []
        for _ in range(50):
            pause(attempt, sleep=slept.append)
        assert all(0 <= seconds <= longest for seconds in slept)
        assert len(set(slept)) > 40


def test_jitter_comes_from_the_system_and_not_from_a_state_that_snapstart_would_clone() -> None:
    slept: list[float] = []
    state = random.getstate()
    pause(0, sleep=slept.append)
    random.setstate(state)
    pause(0, sleep=slept.append)
    assert slept[0] != slept[1]


# Error codes


@pytest.mark.parametrize(
    "code",
    [
        # DynamoDB
        "AccessDeniedException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
        "ExpiredTokenException",
        # inside the answers of BatchExecuteStatement
        "AccessDenied",
        "ResourceNotFound",
        # SNS
        "AuthorizationError",
        "NotFound",
        "InvalidClientTokenId",
        "ExpiredToken",
        "SignatureDoesNotMatch",
        "InvalidSecurity",
        "KMSAccessDenied",
        "KMSDisabled",
        "KMSInvalidState",
        "KMSNotFound",
        "KMSOptInRequired",
        # SQS; its JSON errors carry the codes of its older protocol
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "KMS.AccessDeniedException",
        "KMS.DisabledException",
        "KMS.InvalidStateException",
        "KMS.NotFoundException",
        "KMS.OptInRequired",
    ],
)
def test_missing_right_or_resource_is_a_misconfiguration(code: str) -> None:
    verdict = retry_verdict(code, "Operation")
    assert (verdict.outcome, verdict.reason, verdict.detail) == (Outcome.RETRY, "misconfigured", f"Operation: {code}")


@pytest.mark.parametrize("service", ["sns", "sqs", "dynamodb"])
def test_all_errors_of_keys_that_the_services_model_are_known(service: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    codes = {shape.metadata.get("error", {}).get("code", shape.name) for shape in model.error_shapes}
    keys = {code for code in codes if code.upper().startswith("KMS")}
    reasons = {code: retry_verdict(code, "Operation").reason for code in keys}
    assert reasons == {code: "throttled" if "Throttl" in code else "misconfigured" for code in keys}


@pytest.mark.parametrize(
    "code",
    [
        "ThrottlingException",
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttled",
        "Throttling",
        "KMS.ThrottlingException",
    ],
)
def test_throttles_are_known(code: str) -> None:
    assert retry_verdict(code, "Operation").reason == "throttled"


@pytest.mark.parametrize(
    "code", ["TransactionConflict", "TransactionConflictException", "TransactionInProgressException"]
)
def test_conflicts_of_transactions_are_known(code: str) -> None:
    assert retry_verdict(code, "Operation").reason == "transaction-conflict"


@pytest.mark.parametrize("code", ["InternalServerError", "ServiceUnavailable", "Unknown", "", "ConditionalCheckFailed"])
def test_any_other_code_waits_for_the_next_delivery(code: str) -> None:
    assert retry_verdict(code, "Operation").reason == "unavailable"


@pytest.mark.parametrize(
    "error", [NoCredentialsError(), PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY")]
)
def test_missing_credentials_are_a_misconfiguration(error: Any) -> None:
    assert failed_call(error, "Operation").reason == "misconfigured"


@pytest.mark.case("C76")
def test_text_of_an_error_is_never_used() -> None:
    assert error_code(client_error("SomeCode")) == "SomeCode"
    assert error_code(ClientError({}, "Operation")) == "Unknown"
    assert error_code(ReadTimeoutError(endpoint_url="https://secret.example")) == "ReadTimeoutError"
    assert "quote data" not in failed_call(client_error("SomeCode"), "Operation").detail
