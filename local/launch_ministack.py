"""Starts ministack so that it checks the permissions that AWS checks, and logs as the functions are set to.

With AUTH=true ministack asks for actions that AWS does not have: `dynamodb:BatchExecuteStatement` on `*`,
`sns:PublishBatch`, and the batch names of SQS. AWS authorises a PartiQL statement as `dynamodb:PartiQLUpdate`
(and its like) on its table, and a batch call as the single call. The shipped policy follows AWS, so the
emulator is repaired here, before it starts.

It also knows nothing of a function's log format. The module sets JSON, which Lambda writes with each field of a
record (AWS Lambda Developer Guide, "Using structured JSON logs with Python").

A provider whose answer is lost under load asks again. The emulator then answers as if somebody else had asked, or does
the work twice; here the second answer is the first one's.

Of a state machine it forgets the tracing, so that each plan would show a change, and lets `States.ALL` stand for errors
for which it does not (AWS Step Functions Developer Guide, "Handling errors in Step Functions workflows"). In JSONata it
takes the null that `$parse` reads for nothing at all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

AWS_ACTIONS = {
    "sns:PublishBatch": "sns:Publish",
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
PARTIQL_CALLS = {
    "dynamodb:BatchExecuteStatement": "Statements",
    "dynamodb:ExecuteTransaction": "TransactStatements",
    "dynamodb:ExecuteStatement": None,
}
# `States.ALL` and `States.TaskFailed` do not stand for these.
BY_NAME_ONLY = ("States.DataLimitExceeded", "States.Runtime")
# Put before what runs the functions.
JSON_LOGS = """
import json as _json, logging as _logging, sys as _sys, time as _time
_USUAL = set(vars(_logging.makeLogRecord({}))) | {"message", "asctime"}
class _JsonLine(_logging.Formatter):
    def format(self, record):
        line = {
            "timestamp": _time.strftime("%Y-%m-%dT%H:%M:%SZ", _time.gmtime(record.created)),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        line.update((name, value) for name, value in vars(record).items() if name not in _USUAL)
        return _json.dumps(line, default=str)
_handler = _logging.StreamHandler(_sys.stderr)
_handler.setFormatter(_JsonLine())
_logging.getLogger().addHandler(_handler)
_logging.getLogger().setLevel(_logging.INFO)
"""
_STATEMENT = re.compile(
    r"""\s*(?P<verb>SELECT|INSERT|UPDATE|DELETE)\b
        (?:.*?\bFROM\s+|\s+INTO\s+|\s+)
        (?:"(?P<quoted>[^"]+)"|(?P<bare>[A-Za-z0-9_.-]+))""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def statement_check(statement: str) -> tuple[str, str] | None:
    """The action and the table that AWS checks for one PartiQL statement, if it can be read."""
    match = _STATEMENT.match(statement)
    if match is None:
        return None
    return f"dynamodb:PartiQL{match['verb'].capitalize()}", match["quoted"] or match["bare"]


def statement_checks(action: str, body: bytes) -> Iterator[tuple[str, str]]:
    """The action and table of each PartiQL statement that a call carries; nothing for any other call."""
    if action not in PARTIQL_CALLS:
        return
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return
    member = PARTIQL_CALLS[action]
    for entry in [request] if member is None else request.get(member, []):
        check = statement_check(str(entry.get("Statement", "")))
        if check is not None:
            yield check


def repair(iam_actions: Any) -> None:
    """Make ministack's `core.iam_actions` ask for AWS's actions. Its callers look the names up on each call."""
    original_action: Callable[..., str | None] = iam_actions.extract_iam_action
    original_arn: Callable[..., str] = iam_actions.extract_resource_arn
    original_checks: Callable[..., list[tuple[str, str]]] = iam_actions.dynamodb_transaction_checks

    def extract_iam_action(*args: Any, **kwargs: Any) -> str | None:
        action = original_action(*args, **kwargs)
        return AWS_ACTIONS.get(action, action) if action else action

    def extract_resource_arn(*args: Any, **kwargs: Any) -> str:
        arn = original_arn(*args, **kwargs)
        # A parameter may be named by its ARN, which is taken for its name.
        return arn[arn.rindex("arn:") :] if ":parameter/arn:" in arn else arn

    def dynamodb_transaction_checks(
        iam_action: str, body: bytes, region: str, account_id: str
    ) -> list[tuple[str, str]]:
        statements = [
            (action, f"arn:aws:dynamodb:{region}:{account_id}:table/{table}")
            for action, table in statement_checks(iam_action, body)
        ]
        return statements or original_checks(iam_action, body, region, account_id)

    iam_actions.extract_iam_action = extract_iam_action
    iam_actions.extract_resource_arn = extract_resource_arn
    iam_actions.dynamodb_transaction_checks = dynamodb_transaction_checks


def honour_client_tokens(scheduler: Any) -> None:
    """Make ministack's `services.scheduler` answer a repeated CreateSchedule as AWS does, by its ClientToken."""
    original: Callable[[str, Any], tuple[int, Any, Any]] = scheduler._create_schedule
    created: dict[tuple[str, str], tuple[int, Any, Any]] = {}

    def create_schedule(name: str, body: Any) -> tuple[int, Any, Any]:
        token = body.get("ClientToken")
        if token and (name, token) in created:
            return created[name, token]
        answer = original(name, body)
        if token and answer[0] == 200:
            created[name, token] = answer
        return answer

    scheduler._create_schedule = create_schedule


def map_once(lambda_service: Any) -> None:
    """Make ministack's `services.lambda_svc` keep one mapping of a queue to a function, as AWS does.

    AWS refuses a second one (ResourceConflictException). Here a repeated CreateEventSourceMapping is answered with the
    first: two would stay, and a destroy would know of one.
    """
    original: Callable[[Any], tuple[int, Any, Any]] = lambda_service._create_esm

    def create(request: Any) -> tuple[int, Any, Any]:
        name, qualifier, error = lambda_service._resolve_existing_esm_function(request.get("FunctionName", ""))
        for mapping in [] if error else lambda_service._esms.values():
            wanted = (request.get("EventSourceArn"), name, qualifier)
            if (mapping["EventSourceArn"], mapping["FunctionName"], mapping["Qualifier"]) == wanted:
                answer: tuple[int, Any, Any] = lambda_service.json_response(lambda_service._esm_response(mapping), 202)
                return answer
        return original(request)

    lambda_service._create_esm = create


def keep_tracing(stepfunctions: Any) -> None:
    """Make ministack's `services.stepfunctions` give back the tracing that a state machine was made with."""
    original_create: Callable[[Any], tuple[int, Any, Any]] = stepfunctions._create_state_machine
    original_update: Callable[[Any], tuple[int, Any, Any]] = stepfunctions._update_state_machine
    machines = stepfunctions._state_machines

    def create(request: Any) -> tuple[int, Any, Any]:
        answer = original_create(request)
        if answer[0] == 200:
            arn = json.loads(answer[2])["stateMachineArn"]
            machines[arn].setdefault("tracingConfiguration", request.get("tracingConfiguration", {"enabled": False}))
        return answer

    def update(request: Any) -> tuple[int, Any, Any]:
        answer = original_update(request)
        if answer[0] == 200 and "tracingConfiguration" in request:
            machines[request["stateMachineArn"]]["tracingConfiguration"] = request["tracingConfiguration"]
        return answer

    stepfunctions._create_state_machine = create
    stepfunctions._update_state_machine = update


def leave_uncaught(stepfunctions: Any) -> None:
    """Make ministack's `services.stepfunctions` catch and retry some errors by their own names only, as AWS does."""
    original: Callable[[Any, str], bool] = stepfunctions._error_matches

    def error_matches(error_equals: Any, error: str) -> bool:
        if error in BY_NAME_ONLY:
            return error in error_equals
        return original(error_equals, error)

    stepfunctions._error_matches = error_matches


def keep_null(stepfunctions: Any) -> None:
    """Make ministack's `services.stepfunctions` give `$parse('null')` as the null that it is."""
    original: Callable[[Any], Any] = stepfunctions._sfn_jsonata_parse
    null = stepfunctions.jsonata.utils.Utils.NULL_VALUE

    def parse(text: Any) -> Any:
        value = original(text)
        return null if value is None else value

    stepfunctions._sfn_jsonata_parse = parse


def delete_what_is_gone(stepfunctions: Any) -> None:
    """Make ministack's `services.stepfunctions` answer a repeated DeleteStateMachine: AWS has no error for it."""
    original: Callable[[Any], tuple[int, Any, Any]] = stepfunctions._delete_state_machine
    gone: tuple[int, Any, Any] = stepfunctions.json_response({})

    def delete(request: Any) -> tuple[int, Any, Any]:
        answer = original(request)
        return gone if answer[0] == 400 and b"StateMachineDoesNotExist" in answer[2] else answer

    stepfunctions._delete_state_machine = delete


def hold_connections(config: Any) -> None:
    """Let hypercorn's `Config` queue what connects while it is busy, and keep what is connected.

    By default it queues 100 connections, drops further ones in silence, and closes each after 1,000 requests.
    """
    config.backlog = 4096
    config.keep_alive_max_requests = sys.maxsize


def take_turns(lambda_service: Any, most: int = 6) -> None:
    """Make ministack's `services.lambda_svc` run so many calls of a function at once at the most; the others wait.

    It has a process for each call, and goes on with those that its caller does not wait for any more. On few cores a
    crowd of starting processes ends none of its calls in time, all of them are made again, and it never ends.
    """
    original: Callable[..., Any] = lambda_service._execute_function_dispatch
    turns: dict[str, threading.Semaphore] = {}

    def dispatch(function: Any, config: Any, *arguments: Any) -> Any:
        with turns.setdefault(config["FunctionName"], threading.Semaphore(most)):
            return original(function, config, *arguments)

    lambda_service._execute_function_dispatch = dispatch


def end_with_parent(clean_up: Callable[[], None]) -> None:
    """End this process group once standard input closes: gently, then, after some seconds, for certain."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(8)
        clean_up()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True, help="folder of this run, removed at the end")
    parser.add_argument("--end-with-parent", action="store_true", help="end when standard input closes")
    arguments = parser.parse_args()

    def clean_up() -> None:
        shutil.rmtree(arguments.state, ignore_errors=True)

    if arguments.end_with_parent:
        end_with_parent(clean_up)

    from hypercorn.config import Config
    from ministack.core import iam_actions, lambda_runtime
    from ministack.services import lambda_svc, scheduler, stepfunctions

    repair(iam_actions)
    honour_client_tokens(scheduler)
    map_once(lambda_svc)
    take_turns(lambda_svc)
    keep_tracing(stepfunctions)
    leave_uncaught(stepfunctions)
    keep_null(stepfunctions)
    delete_what_is_gone(stepfunctions)
    hold_connections(Config)
    if path := os.environ.pop("RECORD_CALLS_TO", ""):
        from local.call_log import record_calls

        del os.environ["PYTHONPATH"]  # led to it; the functions get nothing from here
        record_calls(lambda_svc, Path(path))
    lambda_runtime._PYTHON_WORKER_SCRIPT = JSON_LOGS + lambda_runtime._PYTHON_WORKER_SCRIPT

    from ministack.app import main as ministack

    sys.argv = ["ministack"]
    try:
        ministack()
    finally:
        clean_up()


if __name__ == "__main__":
    main()
