"""What a cold start pays for: nothing is imported or made that the first invocation does not need."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import botocore.loaders
import botocore.session
import pytest

from idempotent_consumer.aws import Clients
from tests.build.support import FUNCTION_ENVIRONMENT, runtime_packages

TOPIC_ARN = "arn:aws:sns:eu-central-1:111122223333:orders"


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The services for which a client has been made."""
    made: list[str] = []
    create_client: Callable[..., Any] = botocore.session.Session.create_client

    def recorded(session: Any, service: str, *arguments: Any, **options: Any) -> Any:
        made.append(service)
        return create_client(session, service, *arguments, **options)

    monkeypatch.setattr(botocore.session.Session, "create_client", recorded)
    return made


def test_the_start_makes_the_clients_that_each_invocation_needs(made: list[str]) -> None:
    Clients.create(TOPIC_ARN)

    assert made == ["dynamodb", "sns"]


def test_without_a_topic_no_client_is_made_for_it(made: list[str]) -> None:
    Clients.create(None)

    assert made == ["dynamodb"]


def test_the_client_for_dead_letters_is_made_at_the_first_one(made: list[str]) -> None:
    clients = Clients.create(TOPIC_ARN)

    for _ in range(2):
        assert clients.sqs.meta.service_model.service_name == "sqs"

    assert made == ["dynamodb", "sns", "sqs"]


def test_threads_that_come_at_once_get_one_client(made: list[str]) -> None:
    clients = Clients.create(TOPIC_ARN)
    gate = threading.Barrier(8)

    def used(_: int) -> Any:
        gate.wait(timeout=30)
        return clients.sqs.meta

    with ThreadPoolExecutor(8) as threads:
        metas = list(threads.map(used, range(8)))

    assert made.count("sqs") == 1
    assert len({id(meta) for meta in metas}) == 1


def test_the_start_does_not_look_through_the_folders_of_all_services(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(loader: Any, type_name: str) -> None:
        pytest.fail(f"looked for {type_name} in each folder")

    monkeypatch.setattr(botocore.loaders.Loader, "list_available_services", refuse)

    clients = Clients.create(TOPIC_ARN)

    assert [client.meta.service_model.service_name for client in (clients.dynamodb, clients.sns, clients.sqs)] == [
        "dynamodb",
        "sns",
        "sqs",
    ]


class Sent(Exception):
    """The request would go out now."""


def test_requests_are_sent_without_a_check_of_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    clients = Clients.create(TOPIC_ARN)

    def send(**_: Any) -> None:
        raise Sent

    for client in (clients.dynamodb, clients.sns, clients.sqs):
        client.meta.events.register("before-send", send)

    # None of them names what its service requires.
    with pytest.raises(Sent):
        clients.dynamodb.transact_write_items(ClientRequestToken="1")
    with pytest.raises(Sent):
        clients.sns.publish_batch(TopicArn=TOPIC_ARN)
    with pytest.raises(Sent):
        clients.sqs.send_message(MessageBody="{}")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (FUNCTION_ENVIRONMENT, "True True"),
        ({**FUNCTION_ENVIRONMENT, "AWS_LAMBDA_FUNCTION_NAME": None}, "True False"),
    ],
    ids=["in the function", "elsewhere"],
)
def test_what_the_start_of_the_function_makes_is_no_work_for_the_garbage_collector(
    fresh_zip: Path, tmp_path: Path, runtime_python: str, environment: dict[str, str | None], expected: str
) -> None:
    script = """
import gc, sys
sys.path[:0] = sys.argv[1:]
import idempotent_consumer.handler
print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""
    command = [runtime_python, "-I", "-S", "-B", "-c", script, str(fresh_zip), str(runtime_packages(tmp_path / "r"))]
    variables = {name: value for name, value in environment.items() if value is not None}

    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_the_start_imports_no_package_but_botocore_and_what_it_and_tracing_stand_on(
    fresh_zip: Path, tmp_path: Path, runtime_python: str
) -> None:
    script = """
import json, sys
sys.path[:0] = sys.argv[1:]
before = set(sys.modules)
import idempotent_consumer.handler
imported = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names
print(json.dumps(sorted(imported)))
"""
    command = [runtime_python, "-I", "-S", "-B", "-c", script, str(fresh_zip), str(runtime_packages(tmp_path / "r"))]

    done = subprocess.run(command, env=FUNCTION_ENVIRONMENT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        "aws_xray_sdk",
        "botocore",
        "dateutil",
        "idempotent_consumer",
        "jmespath",
        "six",
        "urllib3",
        "wrapt",
    ]
