"""What the other end-to-end tests rely on: the emulator polls and refuses as AWS does."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.emulator import ACCOUNT, REGION, Emulator
from local.waiting import wait_for

_HANDLER = """
def handler(event, context):
    failed = []
    for record in event["Records"]:
        count = record["attributes"]["ApproximateReceiveCount"]
        print("delivery", record["body"], count)
        if record["body"] == "bad" and count == "1":
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
"""


@pytest.fixture
def deliveries(emulator: Emulator) -> Iterator[Any]:
    """A queue with a function that fails `bad` on its first delivery: its URL, and what it has been given."""
    sqs, functions, iam = (emulator.client(name) for name in ("sqs", "lambda", "iam"))
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="contract", AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
    url = sqs.create_queue(QueueName="contract", Attributes={"VisibilityTimeout": "2"})["QueueUrl"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("main.py", _HANDLER)
    functions.create_function(
        FunctionName="contract",
        Runtime="python3.13",
        Handler="main.handler",
        Role=role,
        Code={"ZipFile": archive.getvalue()},
        Timeout=2,
    )
    mapping = functions.create_event_source_mapping(
        FunctionName="contract",
        EventSourceArn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:contract",
        BatchSize=10,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )["UUID"]

    def seen() -> list[str]:
        logs = emulator.client("logs")
        try:
            events = logs.filter_log_events(logGroupName="/aws/lambda/contract")["events"]
        except logs.exceptions.ResourceNotFoundException:
            return []
        lines = [event["message"].split() for event in events]
        return sorted(" ".join(line[1:]) for line in lines if line[:1] == ["delivery"])

    yield url, seen
    functions.delete_event_source_mapping(UUID=mapping)
    functions.delete_function(FunctionName="contract")
    sqs.delete_queue(QueueUrl=url)
    iam.delete_role(RoleName="contract")


@pytest.mark.case("O13", "C01")
def test_only_the_failing_record_of_a_batch_is_delivered_again(emulator: Emulator, deliveries: Any) -> None:
    url, seen = deliveries
    entries = [{"Id": body, "MessageBody": body} for body in ("good", "bad", "fine")]
    emulator.client("sqs").send_message_batch(QueueUrl=url, Entries=entries)

    wait_for(lambda: "bad 2" in seen(), "the failing record comes again")
    assert seen() == ["bad 1", "bad 2", "fine 1", "good 1"]


@pytest.fixture
def resources(emulator: Emulator) -> Iterator[dict[str, str]]:
    """Two tables, a topic and a queue, for calls under a role."""
    dynamodb, sns, sqs = (emulator.client(name) for name in ("dynamodb", "sns", "sqs"))
    for name in ("contract-a", "contract-b"):
        dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.put_item(TableName=name, Item={"id": {"S": "x"}})
    topic = sns.create_topic(Name="contract")["TopicArn"]
    queue = sqs.create_queue(QueueName="contract-target")["QueueUrl"]
    yield {"topic": topic, "queue": queue}
    for name in ("contract-a", "contract-b"):
        dynamodb.delete_table(TableName=name)
    sns.delete_topic(TopicArn=topic)
    sqs.delete_queue(QueueUrl=queue)


def test_batch_calls_need_the_actions_that_aws_has(emulator: Emulator, resources: dict[str, str]) -> None:
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/contract-a"
    allowed = {
        "dynamodb:PartiQLUpdate": table,
        "sns:Publish": resources["topic"],
        "sqs:SendMessage": f"arn:aws:sqs:{REGION}:{ACCOUNT}:contract-target",
    }
    assert _refused(emulator, resources, allowed) == {"mark contract-b"}
    for action in allowed:
        fewer = {name: arn for name, arn in allowed.items() if name != action}
        assert _refused(emulator, resources, fewer) - {"mark contract-b"} == {_CALL_OF[action]}


def test_the_emulator_s_own_action_names_open_nothing(emulator: Emulator, resources: dict[str, str]) -> None:
    names = ("dynamodb:BatchExecuteStatement", "sns:PublishBatch", "sqs:SendMessageBatch")
    assert _refused(emulator, resources, dict.fromkeys(names, "*")) == {
        "mark contract-a",
        "mark contract-b",
        "publish",
        "send",
    }


_CALL_OF = {"dynamodb:PartiQLUpdate": "mark contract-a", "sns:Publish": "publish", "sqs:SendMessage": "send"}


def _refused(emulator: Emulator, resources: dict[str, str], allowed: dict[str, str]) -> set[str]:
    """The batch calls that a role with these rights (action → resource) is refused."""
    with _role(emulator, allowed) as client:
        calls: dict[str, Callable[[], object]] = {
            "mark contract-a": lambda: client("dynamodb").batch_execute_statement(Statements=[_mark("contract-a")]),
            "mark contract-b": lambda: client("dynamodb").batch_execute_statement(Statements=[_mark("contract-b")]),
            "publish": lambda: client("sns").publish_batch(
                TopicArn=resources["topic"], PublishBatchRequestEntries=[{"Id": "1", "Message": "m"}]
            ),
            "send": lambda: client("sqs").send_message_batch(
                QueueUrl=resources["queue"], Entries=[{"Id": "1", "MessageBody": "m"}]
            ),
        }
        return {name for name, call in calls.items() if _is_refused(call)}


def _mark(table: str) -> dict[str, Any]:
    return {"Statement": f'UPDATE "{table}" SET "seen"=? WHERE "id"=?', "Parameters": [{"S": "1"}, {"S": "x"}]}


def _is_refused(call: Any) -> bool:
    try:
        call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        assert "AccessDenied" in code or "AuthorizationError" in code, code
        return True
    return False


@contextmanager
def _role(emulator: Emulator, allowed: dict[str, str]) -> Iterator[Callable[[str], Any]]:
    """Makes clients that have these rights (action → resource) and no others."""
    iam = emulator.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="caller", AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
    rights = [{"Effect": "Allow", "Action": action, "Resource": arn} for action, arn in allowed.items()]
    iam.put_role_policy(RoleName="caller", PolicyName="rights", PolicyDocument=_policy(*rights))
    credentials = emulator.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    yield lambda service: boto3.client(
        service,
        endpoint_url=emulator.endpoint,
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
        config=Config(region_name=REGION, proxies={}, retries={"total_max_attempts": 1}),
    )
    iam.delete_role_policy(RoleName="caller", PolicyName="rights")
    iam.delete_role(RoleName="caller")


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
