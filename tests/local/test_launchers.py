"""The repairs that the emulator and the fault proxy are started with."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from local import launch_microburst, launch_ministack
from local.waiting import wait_for


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ('UPDATE "orders-events" SET "status"=? WHERE "event_id"=?', ("dynamodb:PartiQLUpdate", "orders-events")),
        ("update orders set a=1 where b=2", ("dynamodb:PartiQLUpdate", "orders")),
        ("INSERT INTO \"t\" VALUE {'a': 1}", ("dynamodb:PartiQLInsert", "t")),
        ('DELETE FROM "t" WHERE "a"=1', ("dynamodb:PartiQLDelete", "t")),
        ('SELECT * FROM "t"."index" WHERE "a"=1', ("dynamodb:PartiQLSelect", "t")),
        ("nonsense", None),
    ],
)
def test_a_statement_is_checked_as_its_verb_on_its_table(statement: str, expected: tuple[str, str] | None) -> None:
    assert launch_ministack.statement_check(statement) == expected


def test_each_statement_of_a_call_is_checked() -> None:
    body = json.dumps({"Statements": [{"Statement": 'UPDATE "a" SET x=1'}, {"Statement": 'DELETE FROM "b"'}]})
    assert list(launch_ministack.statement_checks("dynamodb:BatchExecuteStatement", body.encode())) == [
        ("dynamodb:PartiQLUpdate", "a"),
        ("dynamodb:PartiQLDelete", "b"),
    ]


def test_a_single_statement_is_checked() -> None:
    body = json.dumps({"Statement": 'UPDATE "a" SET x=1'}).encode()
    assert list(launch_ministack.statement_checks("dynamodb:ExecuteStatement", body)) == [
        ("dynamodb:PartiQLUpdate", "a")
    ]


@pytest.mark.parametrize("body", [b"", b"not json", b"{}"])
def test_a_body_without_statements_gives_no_checks(body: bytes) -> None:
    assert list(launch_ministack.statement_checks("dynamodb:BatchExecuteStatement", body)) == []


@pytest.fixture
def repaired() -> Any:
    iam_actions = SimpleNamespace(
        extract_iam_action=lambda action: action,
        extract_resource_arn=lambda name: f"arn:aws:ssm:eu-west-1:123:parameter/{name}",
        dynamodb_transaction_checks=lambda action, body, region, account: [("original", action)],
    )
    launch_ministack.repair(iam_actions)
    return iam_actions


@pytest.mark.parametrize(
    ("asked", "checked"),
    [
        ("sns:PublishBatch", "sns:Publish"),
        ("sqs:SendMessageBatch", "sqs:SendMessage"),
        ("sqs:DeleteMessageBatch", "sqs:DeleteMessage"),
        ("sqs:ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility"),
        ("dynamodb:PutItem", "dynamodb:PutItem"),
        (None, None),
    ],
)
def test_batch_calls_are_checked_as_their_single_call(repaired: Any, asked: str | None, checked: str | None) -> None:
    assert repaired.extract_iam_action(asked) == checked


@pytest.mark.parametrize("name", ["payments/token", "arn:aws:ssm:eu-west-1:123:parameter/payments/token"])
def test_a_parameter_is_checked_by_its_arn_however_it_is_named(repaired: Any, name: str) -> None:
    assert repaired.extract_resource_arn(name) == "arn:aws:ssm:eu-west-1:123:parameter/payments/token"


def test_statements_are_checked_on_the_arn_of_their_table(repaired: Any) -> None:
    body = json.dumps({"Statements": [{"Statement": 'UPDATE "a" SET x=1'}]}).encode()
    assert repaired.dynamodb_transaction_checks("dynamodb:BatchExecuteStatement", body, "eu-west-1", "123") == [
        ("dynamodb:PartiQLUpdate", "arn:aws:dynamodb:eu-west-1:123:table/a")
    ]


def test_transactions_are_checked_as_before(repaired: Any) -> None:
    action = "dynamodb:TransactWriteItems"
    assert repaired.dynamodb_transaction_checks(action, b"{}", "eu-west-1", "123") == [("original", action)]


def test_the_proxy_keeps_the_signed_host() -> None:
    class Upstream:
        def _outbound_headers(self, request: Any) -> dict[str, str]:
            return {"host": "upstream:1", "x-other": "kept"}

    launch_microburst.keep_host(Upstream)
    request = SimpleNamespace(headers={"host": "client:2"})
    assert Upstream()._outbound_headers(request) == {"host": "client:2", "x-other": "kept"}


def test_a_schedule_that_is_asked_for_again_with_its_token_is_the_same_one() -> None:
    names: list[str] = []

    def create_schedule(name: str, body: Any) -> tuple[int, dict[str, str], bytes]:
        if name in names:
            return 409, {}, b"exists"
        names.append(name)
        return 200, {}, b"arn"

    scheduler = SimpleNamespace(_create_schedule=create_schedule)
    launch_ministack.honour_client_tokens(scheduler)
    answers = [scheduler._create_schedule("one", {"ClientToken": token})[0] for token in ("a", "a", "b")]
    assert answers == [200, 200, 409]
    assert [scheduler._create_schedule("two", {})[0] for _ in range(2)] == [200, 409]


def test_a_mapping_that_is_asked_for_again_is_the_same_one() -> None:
    mappings: dict[str, dict[str, Any]] = {}

    def resolve(name: str) -> tuple[str, str | None, Any]:
        function, _, alias = name.partition(":")
        return function, alias or None, "unknown" if function == "unknown" else None

    def create(request: Any) -> tuple[int, dict[str, str], bytes]:
        name, qualifier, error = resolve(request["FunctionName"])
        if error:
            return 404, {}, error.encode()
        number = str(len(mappings))
        mappings[number] = {
            "EventSourceArn": request["EventSourceArn"],
            "FunctionName": name,
            "Qualifier": qualifier,
            "UUID": number,
        }
        return 202, {}, number.encode()

    service = SimpleNamespace(
        _create_esm=create,
        _esm_response=lambda mapping: mapping["UUID"],
        _esms=mappings,
        _resolve_existing_esm_function=resolve,
        json_response=lambda body, status: (status, {}, body.encode()),
    )
    launch_ministack.map_once(service)
    wanted = [("queue", "one"), ("queue", "one"), ("queue", "one:live"), ("other", "one"), ("queue", "unknown")]
    answers = [service._create_esm({"EventSourceArn": source, "FunctionName": name}) for source, name in wanted]
    assert answers == [(202, {}, b"0"), (202, {}, b"0"), (202, {}, b"1"), (202, {}, b"2"), (404, {}, b"unknown")]


@pytest.fixture
def stepfunctions() -> Any:
    """Of ministack's own: the answer to a creation or an update, and what it keeps."""
    machines: dict[str, dict[str, Any]] = {}

    def create(request: Any) -> tuple[int, dict[str, str], bytes]:
        if request["name"] == "refused":
            return 400, {}, b"{}"
        machines.setdefault(f"arn:{request['name']}", {})
        return 200, {}, json.dumps({"stateMachineArn": f"arn:{request['name']}"}).encode()

    def update(request: Any) -> tuple[int, dict[str, str], bytes]:
        return (200 if request["stateMachineArn"] in machines else 400), {}, b"{}"

    def delete(request: Any) -> tuple[int, dict[str, str], bytes]:
        if request["stateMachineArn"] == "arn:refused":
            return 400, {}, b'{"__type": "InvalidArn"}'
        if machines.pop(request["stateMachineArn"], None) is None:
            return 400, {}, b'{"__type": "StateMachineDoesNotExist"}'
        return 200, {}, b"{}"

    module = SimpleNamespace(
        _create_state_machine=create,
        _delete_state_machine=delete,
        _error_matches=lambda names, error: "States.ALL" in names or error in names,
        _sfn_jsonata_parse=json.loads,
        _state_machines=machines,
        _update_state_machine=update,
        json_response=lambda body: (200, {}, json.dumps(body).encode()),
        jsonata=SimpleNamespace(utils=SimpleNamespace(Utils=SimpleNamespace(NULL_VALUE="null itself"))),
    )
    launch_ministack.keep_tracing(module)
    launch_ministack.leave_uncaught(module)
    launch_ministack.keep_null(module)
    launch_ministack.delete_what_is_gone(module)
    return module


def test_a_state_machine_that_is_gone_can_be_deleted_again(stepfunctions: Any) -> None:
    stepfunctions._create_state_machine({"name": "one"})
    answers = [stepfunctions._delete_state_machine({"stateMachineArn": "arn:one"}) for _ in range(2)]
    assert answers == [(200, {}, b"{}"), (200, {}, b"{}")]
    assert stepfunctions._delete_state_machine({"stateMachineArn": "arn:refused"})[0] == 400


def test_a_state_machine_keeps_its_tracing(stepfunctions: Any) -> None:
    traced = {"tracingConfiguration": {"enabled": True}}
    assert stepfunctions._create_state_machine({"name": "one", **traced})[0] == 200
    assert stepfunctions._create_state_machine({"name": "two"})[0] == 200
    assert stepfunctions._create_state_machine({"name": "refused", **traced})[0] == 400
    off = {"tracingConfiguration": {"enabled": False}}
    assert stepfunctions._state_machines == {"arn:one": traced, "arn:two": off}

    assert stepfunctions._update_state_machine({"stateMachineArn": "arn:two", **traced})[0] == 200
    assert stepfunctions._update_state_machine({"stateMachineArn": "arn:one"})[0] == 200
    assert stepfunctions._update_state_machine({"stateMachineArn": "arn:none", **off})[0] == 400
    assert stepfunctions._state_machines == {"arn:one": traced, "arn:two": traced}


@pytest.mark.parametrize(
    ("names", "error", "matches"),
    [
        (["States.ALL"], "Refused", True),
        (["States.ALL"], "States.Runtime", False),
        (["States.TaskFailed"], "States.DataLimitExceeded", False),
        (["States.Runtime"], "States.Runtime", True),
        (["States.DataLimitExceeded", "States.ALL"], "States.DataLimitExceeded", True),
    ],
)
def test_an_error_that_ends_an_execution_is_caught_by_its_name_only(
    stepfunctions: Any, names: list[str], error: str, matches: bool
) -> None:
    assert stepfunctions._error_matches(names, error) is matches


def test_a_null_that_is_read_from_a_text_is_a_value(stepfunctions: Any) -> None:
    texts = ("null", "0", '""', "[null]")
    assert [stepfunctions._sfn_jsonata_parse(text) for text in texts] == ["null itself", 0, "", [None]]


def test_calls_of_a_function_beyond_so_many_wait_for_their_turn() -> None:
    running: list[str] = []
    most: list[int] = []
    is_free = threading.Event()

    def dispatch(function: str, config: dict[str, str], number: int) -> int:
        running.append(function)
        most.append(running.count(function))
        assert is_free.wait(10)
        running.remove(function)
        return number

    lambda_service = SimpleNamespace(_execute_function_dispatch=dispatch)
    launch_ministack.take_turns(lambda_service, most=2)
    with ThreadPoolExecutor(5) as pool:
        calls = [
            pool.submit(lambda_service._execute_function_dispatch, name, {"FunctionName": name}, number)
            for number, name in enumerate(["guard", "guard", "guard", "guard", "effect"])
        ]
        wait_for(lambda: sorted(running) == ["effect", "guard", "guard"], "two and one are running")
        is_free.set()
        assert [call.result(10) for call in calls] == [0, 1, 2, 3, 4]
    assert max(most) == 2
