"""`make emulator` says how to reach it, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import psutil
import pytest

from local.processes import clean_environment
from local.terraform import CHECKOUT

COMMAND = [sys.executable, "-u", "-m", "local.playground"]


@pytest.fixture
def playground() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        COMMAND, cwd=CHECKOUT, env=clean_environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def told(process: subprocess.Popen[str]) -> dict[str, str]:
    """What the lines for the shell export."""
    assert process.stdout
    exports: dict[str, str] = {}
    for line in process.stdout:
        exports |= dict(re.findall(r"(\w+)=(\S+)", line)) if line.startswith("export ") else {}
        if "Ctrl-C" in line:
            break
    return exports


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stderr
    return process.wait(30), process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_up_until_it_is_interrupted(playground: subprocess.Popen[str], number: signal.Signals) -> None:
    exports = told(playground)
    queues = boto3.client(
        "sqs",
        endpoint_url=exports["AWS_ENDPOINT_URL"],
        region_name=exports["AWS_DEFAULT_REGION"],
        aws_access_key_id=exports["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=exports["AWS_SECRET_ACCESS_KEY"],
    )
    assert queues.create_queue(QueueName="mine")["QueueUrl"].endswith("/mine")
    assert Path(exports["TF_CLI_CONFIG_FILE"]).is_file()
    (emulator,) = psutil.Process(playground.pid).children()
    playground.send_signal(number)
    assert ended(playground) == (0, "\nStopped, and gone with all that it held.\n")
    assert not emulator.is_running()


def test_it_says_so_when_the_emulator_dies(playground: subprocess.Popen[str]) -> None:
    told(playground)
    (emulator,) = psutil.Process(playground.pid).children()
    emulator.kill()
    assert ended(playground) == (1, "\nThe emulator has ended by itself: build/emulator.log may say why.\n")
