"""`make emulator` says how to reach it, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import boto3

from local.processes import clean_environment
from local.terraform import CHECKOUT


def test_it_is_up_until_it_is_interrupted() -> None:
    command = [sys.executable, "-u", "-m", "local.playground"]
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=clean_environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        exports: dict[str, str] = {}
        for line in process.stdout:
            exports |= dict(re.findall(r"(\w+)=(\S+)", line)) if line.startswith("export ") else {}
            if "Ctrl-C" in line:
                break
        queues = boto3.client(
            "sqs",
            endpoint_url=exports["AWS_ENDPOINT_URL"],
            region_name=exports["AWS_DEFAULT_REGION"],
            aws_access_key_id=exports["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=exports["AWS_SECRET_ACCESS_KEY"],
        )
        assert queues.create_queue(QueueName="mine")["QueueUrl"].endswith("/mine")
        assert Path(exports["TF_CLI_CONFIG_FILE"]).is_file()
        process.send_signal(signal.SIGINT)
        assert (process.wait(30), process.stderr.read()) == (0, "\nStopped, and gone with all that it held.\n")
