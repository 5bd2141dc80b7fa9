"""What the clients leave out of botocore's work is missed by nobody: their requests are those of plain clients."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSPreparedRequest

from idempotent_consumer.aws import Clients

REGION = "eu-central-1"
TOPIC_ARN = f"arn:aws:sns:{REGION}:111122223333:orders"
PUT = {"Put": {"TableName": "orders-processed-events", "Item": {"event_id": {"S": "o-1"}, "total": {"N": "9.95"}}}}

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("dynamodb", "transact_write_items", {"TransactItems": [PUT], "ClientRequestToken": "t-1"}),
    (
        "dynamodb",
        "batch_get_item",
        {"RequestItems": {"orders-processed-events": {"Keys": [{"event_id": {"S": "o-1"}}], "ConsistentRead": True}}},
    ),
    ("dynamodb", "batch_execute_statement", {"Statements": [{"Statement": 'UPDATE "t" SET "ttl"=? WHERE "id"=?'}]}),
    ("dynamodb", "put_item", PUT["Put"]),
    (
        "dynamodb",
        "query",
        {
            "TableName": "orders-processed-events",
            "IndexName": "pending",
            "KeyConditionExpression": "pending_shard = :shard AND created_at <= :until",
            "ExpressionAttributeValues": {":shard": {"S": "15"}, ":until": {"N": "1893553446000"}},
            "Select": "COUNT",
        },
    ),
    (
        "sns",
        "publish_batch",
        {
            "TopicArn": TOPIC_ARN,
            "PublishBatchRequestEntries": [
                {
                    "Id": "0",
                    "Message": '{"text":"größer & \U0001f600 + 50 % = ~"}',
                    "MessageAttributes": {"event_id": {"DataType": "String", "StringValue": "a/b c"}},
                }
            ],
        },
    ),
    ("sqs", "send_message", {"QueueUrl": f"https://sqs.{REGION}.amazonaws.com/1/dead", "MessageBody": "{}"}),
    (
        "sqs_short",
        "change_message_visibility_batch",
        {
            "QueueUrl": f"https://sqs.{REGION}.amazonaws.com/1/orders",
            "Entries": [{"Id": "0", "ReceiptHandle": "AQEB+/=", "VisibilityTimeout": 60}],
        },
    ),
]


class Sent(Exception):
    """The request would go out now."""


@pytest.fixture(autouse=True)
def _function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_ACCOUNT_ID", "111122223333")


def sent(client: Any, method: str, request: dict[str, Any]) -> tuple[Any, ...]:
    """What goes over the wire: method, address, body and the headers that say how to read it."""
    found: list[AWSPreparedRequest] = []

    def stop(request: AWSPreparedRequest, **_: Any) -> None:
        found.append(request)
        raise Sent

    client.meta.events.register("before-send", stop)
    with pytest.raises(Sent):
        getattr(client, method)(**request)
    wire = found[0]
    body = wire.body.encode() if isinstance(wire.body, str) else wire.body
    headers = [wire.headers.get(name) for name in ("Content-Type", "X-Amz-Target", "Content-Length")]
    return wire.method, wire.url, body, headers


@pytest.mark.parametrize(("service", "method", "request_"), CALLS, ids=[method for _, method, _ in CALLS])
def test_request_is_that_of_a_plain_client(service: str, method: str, request_: dict[str, Any]) -> None:
    plain = botocore.session.Session().create_client(service.removesuffix("_short"))
    assert sent(getattr(Clients.create(TOPIC_ARN), service), method, request_) == sent(plain, method, request_)


@pytest.mark.parametrize("service", ["dynamodb", "sns", "sqs", "sqs_short"])
def test_requests_say_who_sends_them(service: str) -> None:
    client = getattr(Clients.create(TOPIC_ARN), service)
    agent = client.meta.config.user_agent
    assert agent.startswith("idempotent-consumer botocore/1.")
