"""Each kind of bad input, missing right or missing resource is one line that says what to do, with exit code 2."""

from __future__ import annotations

import re
import sqlite3
import time

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from tests.cli.support import REGION, World, client_error, run_command_line

URL = "https://lambda.us-east-99.amazonaws.com"


def test_no_such_consumer(world: World) -> None:
    run = world.run("pending", "--name", "order")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == "Error: there is no function order-worker in us-east-1: check --name, --region and --profile\n"


def test_the_wrong_region(world: World) -> None:
    world.functions.clear()
    run = world.run("pending", "--region", "eu-west-1")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: there is no function orders-worker in eu-west-1: check --name, --region and --profile\n"
    )


def test_a_region_that_does_not_exist(world: World) -> None:
    world.on("GetFunctionConfiguration", raises=EndpointConnectionError(endpoint_url=URL))
    run = world.run("pending", "--region", "us-east-99")
    assert run.exit_code == 2
    assert run.stderr == (
        f'Error: AWS cannot be reached (Could not connect to the endpoint URL: "{URL}"): check --endpoint-url, '
        "--region and the network\n"
    )


def test_a_region_that_is_none() -> None:
    run = run_command_line("pending", "--name", "orders", "--region", "us east 1")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: the AWS call failed: Provided region_name 'us east 1' doesn't match a supported format.\n"
    )


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    run = run_command_line("pending", "--name", "orders")
    assert run.exit_code == 2
    assert run.stderr == "Error: no AWS Region is set: name the consumer's with --region\n"


def test_no_right_to_look_at_the_function(world: World) -> None:
    world.deny("GetFunctionConfiguration")
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: you may not call GetFunctionConfiguration: User: arn:aws:iam::123456789012:user/op is not authorized "
        "to perform this action (GetFunctionConfiguration). Ask for this right, or use another --profile\n"
    )


@pytest.mark.parametrize("command", ["pending", "reconcile", "verify"])
def test_a_missing_table(world: World, command: str) -> None:
    world.deploy(LEDGER_TABLE="elsewhere")
    run = world.run(command)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: DescribeTable found nothing (Requested resource not found: Table: elsewhere not found): check --name, "
        "--region and --profile\n"
    )


def test_a_missing_business_table(world: World) -> None:
    world.deploy(BUSINESS_TABLE="elsewhere")
    run = world.run("verify")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: DescribeTable found nothing (Requested resource not found: Table: elsewhere not found): check --name, "
        "--region and --profile\n"
    )


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("ExpiredTokenException", "AWS does not accept your credentials (ExpiredTokenException): sign in again"),
        ("UnrecognizedClientException", "AWS does not accept your credentials (UnrecognizedClientException): sign in"),
        ("ServiceException", "GetFunctionConfiguration was refused with ServiceException: the text of the service"),
    ],
)
def test_what_the_service_refuses_otherwise(world: World, code: str, what: str) -> None:
    world.on("GetFunctionConfiguration", raises=client_error(code, "GetFunctionConfiguration"))
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr.startswith(f"Error: {what}")
    assert run.stderr.count("\n") == 1


def test_an_answer_that_never_comes(world: World) -> None:
    world.on("GetFunctionConfiguration", raises=ReadTimeoutError(endpoint_url=URL))
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr == (
        f'Error: AWS cannot be reached (Read timeout on endpoint URL: "{URL}"): check --endpoint-url, --region and the '
        "network\n"
    )


def test_an_endpoint_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    run = run_command_line("pending", "--name", "orders", "--endpoint-url", "http://127.0.0.1:1")
    assert run.exit_code == 2
    assert run.stderr == (
        'Error: AWS cannot be reached (Could not connect to the endpoint URL: "http://127.0.0.1:1/2015-03-31/functions/'
        'orders-worker/configuration"): check --endpoint-url, --region and the network\n'
    )


def test_an_endpoint_that_is_no_address() -> None:
    run = run_command_line("pending", "--name", "orders", "--endpoint-url", "localhost")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: Invalid endpoint: localhost: check --region, and write --endpoint-url or AWS_ENDPOINT_URL as "
        "http://localhost:4566\n"
    )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            sqlite3.OperationalError("database or disk is full"),
            "no room in the temporary folder, it seems (database or disk is full): name another by SQLITE_TMPDIR",
        ),
        (
            OSError(28, "No space left on device"),
            "[Errno 28] No space left on device: see whether the disk is full, or the file may be written",
        ),
        (BrokenPipeError(32, "Broken pipe"), "nobody reads the output any more, so the command has ended"),
    ],
)
def test_what_the_machine_lacks_is_one_line(world: World, error: Exception, line: str) -> None:
    world.on("GetFunctionConfiguration", raises=error)
    run = world.run("pending")
    assert (run.exit_code, run.stderr) == (2, f"Error: {line}\n")


def test_an_error_of_the_program_is_one_line_with_its_place_and_without_its_text(world: World) -> None:
    world.on("GetFunctionConfiguration", raises=KeyError("a secret"))
    run = world.run("pending")
    assert run.exit_code == 2
    assert re.fullmatch(r"Error: an error of this program, please report it: KeyError at \w+\.py:\d+\n", run.stderr)


def test_an_endpoint_that_is_not_of_aws(world: World) -> None:
    world.on("GetFunctionConfiguration", raises=ResponseParserError("<html>"))
    run = world.run("pending")
    assert (run.exit_code, run.stderr) == (2, "Error: the answer is none of AWS's: check --endpoint-url\n")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    run = run_command_line("pending", "--name", "orders", "--region", REGION)
    assert run.exit_code == 2
    assert run.stderr == "Error: no AWS credentials were found: sign in, or name a profile with --profile\n"


def test_a_profile_that_does_not_exist() -> None:
    run = run_command_line("pending", "--name", "orders", "--profile", "night")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: The config profile (night) could not be found: `aws configure list-profiles` shows those that exist\n"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["pending", "--older-than", "soon"], "'soon' is no duration: write 90s, 15m, 2h or 3d"),
        (["pending", "--limit", "0"], "0 is not in the range x>=1"),
        (["verify", "--sample", "0"], "0 is not in the range x>=1"),
        (["verify", "--segments", "33"], "33 is not in the range 1<=x<=32"),
        (["mend"], "No such command 'mend'"),
    ],
)
def test_bad_options(arguments: list[str], complaint: str) -> None:
    run = run_command_line(*arguments)
    assert run.exit_code == 2
    assert complaint in run.stderr
