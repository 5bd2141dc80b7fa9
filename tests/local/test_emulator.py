"""The emulator and the fault proxy as processes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import psutil
import pytest
from botocore.exceptions import ClientError

from local.emulator import Emulator, client
from local.faults import Faults
from local.processes import ServerError, clean_environment, start_on_free_port
from local.terraform import CHECKOUT
from local.waiting import wait_for

_SLEEPER = """
import time
def handler(event, context):
    time.sleep(30)
"""


def test_two_emulators_run_side_by_side_and_leave_nothing(tmp_path: Path) -> None:
    with Emulator(tmp_path / "a.log") as first, Emulator(tmp_path / "b.log") as second:
        assert first.endpoint != second.endpoint
        first.client("sqs").create_queue(QueueName="only-here")
        assert second.client("sqs").list_queues().get("QueueUrls", []) == []
        states = [first._state, second._state]
        pids = [first.pid, second.pid]
        assert all(state and state.is_dir() for state in states)
    assert not any(state and state.exists() for state in states)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_an_unknown_caller_is_refused(tmp_path: Path) -> None:
    with Emulator(tmp_path / "emulator.log") as emulator:
        iam = emulator.client("iam")
        iam.create_user(UserName="nobody")
        key = iam.create_access_key(UserName="nobody")["AccessKey"]
        import boto3

        nobody = boto3.client(
            "sqs",
            endpoint_url=emulator.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key["AccessKeyId"],
            aws_secret_access_key=key["SecretAccessKey"],
        )
        with pytest.raises(ClientError, match="AccessDenied"):
            nobody.list_queues()


def test_the_processes_of_a_function_can_be_killed_and_no_others(tmp_path: Path) -> None:
    with Emulator(tmp_path / "emulator.log") as emulator:
        for name in ("sleep", "sleep-longer"):
            _start_sleeper(emulator, name)
        wait_for(lambda: emulator.workers("sleep") and emulator.workers("sleep-longer"), "both run")
        assert emulator.kill_workers("sleep") == 1
        wait_for(lambda: not emulator.workers("sleep"), "the worker is gone")
        assert len(emulator.workers("sleep-longer")) == 1
        (worker,) = emulator.workers("sleep-longer")
    wait_for(lambda: not worker.is_running(), "the worker has ended with the emulator")


def test_the_emulator_ends_when_the_program_that_started_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from local.emulator import Emulator\n"
        f"emulator = Emulator(Path({str(tmp_path / 'emulator.log')!r})).__enter__()\n"
        "print(emulator.pid, emulator._state, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, state = parent.stdout.readline().split()
    parent.kill()
    parent.wait()
    wait_for(lambda: not psutil.pid_exists(int(pid)), "the emulator is gone", seconds=20)
    assert not Path(state).exists()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    def start(port: int) -> object:
        from local.processes import Server

        return Server("launch_ministack.py", [], clean_environment({}), tmp_path / "log", keep=False)

    with pytest.raises(ServerError, match="required: --state"):
        start_on_free_port(start, lambda port: f"http://127.0.0.1:{port}/")  # type: ignore[arg-type]


def test_the_environment_of_a_server_has_nothing_of_the_user_s_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "PYTHONPATH", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "the user's")
    environment = clean_environment({"ADDED": "1"})
    assert "the user's" not in environment.values()
    assert environment["ADDED"] == "1"


def test_the_proxy_forwards_signed_calls_and_injects_faults(tmp_path: Path) -> None:
    with (
        Emulator(tmp_path / "emulator.log") as emulator,
        Faults(emulator.endpoint, tmp_path / "faults.log") as faults,
    ):
        sqs = client("sqs", faults.endpoint)
        sqs.create_queue(QueueName="through-the-proxy")
        with faults.rules({"service": "sqs", "error": {"code": "ServiceUnavailable", "status": 503}}):
            with pytest.raises(ClientError, match="ServiceUnavailable"):
                sqs.list_queues()
            assert faults.fired("sqs") == 3
        assert len(sqs.list_queues()["QueueUrls"]) == 1


def _start_sleeper(emulator: Emulator, name: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("main.py", _SLEEPER)
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = emulator.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    functions = emulator.client("lambda")
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="main.handler",
        Role=role,
        Code={"ZipFile": archive.getvalue()},
        Timeout=60,
    )
    functions.invoke(FunctionName=name, InvocationType="Event")
