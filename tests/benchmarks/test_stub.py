"""The stub's answers, as botocore's clients parse them."""

from __future__ import annotations

from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError

from benchmarks.stub import Access, Stub, UnknownCall

LEDGER, BUSINESS = "ledger", "orders"
KEYS = {LEDGER: "event_id", BUSINESS: "id"}
PENDING = {"event_id": {"S": "order-1"}, "status": {"S": "pending"}, "notification": {"S": "{}"}}
MARK = 'UPDATE "ledger" SET "status"=? SET "ttl"=? REMOVE "notification" WHERE "event_id"=?'


@pytest.fixture
def stub() -> Stub:
    return Stub(KEYS, observes=True)


@pytest.fixture
def dynamodb(stub: Stub) -> Any:
    return client(stub, "dynamodb")


@pytest.fixture
def sns(stub: Stub) -> Any:
    return client(stub, "sns")


def client(stub: Stub, service: str) -> Any:
    session = botocore.session.get_session()
    session.register("before-send", stub.answer)
    return session.create_client(service)


def put(item: dict[str, Any], table: str = LEDGER) -> dict[str, Any]:
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({KEYS[table]})",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_a_conditional_put_succeeds_once_and_then_answers_the_old_row(dynamodb: Any) -> None:
    dynamodb.put_item(**put(PENDING))

    with pytest.raises(ClientError) as refused:
        dynamodb.put_item(**put({"event_id": {"S": "order-1"}, "status": {"S": "new"}}))

    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    assert refused.value.response["Item"] == PENDING


def test_a_put_without_a_condition_overwrites(dynamodb: Any, stub: Stub) -> None:
    for total in ("1", "2"):
        dynamodb.put_item(TableName=BUSINESS, Item={"id": {"S": "order-1"}, "total": {"N": total}})

    assert stub.rows == {(BUSINESS, "order-1"): {"id": {"S": "order-1"}, "total": {"N": "2"}}}


def test_an_update_sets_its_attributes(dynamodb: Any, stub: Stub) -> None:
    dynamodb.put_item(**put(PENDING))

    dynamodb.update_item(
        TableName=LEDGER,
        Key={"event_id": {"S": "order-1"}},
        UpdateExpression="SET #data = :data, #status = :status",
        ExpressionAttributeNames={"#data": "data", "#status": "status"},
        ExpressionAttributeValues={":data": {"S": "null"}, ":status": {"S": "COMPLETED"}},
    )

    assert stub.rows[LEDGER, "order-1"] == {**PENDING, "data": {"S": "null"}, "status": {"S": "COMPLETED"}}


def test_a_cancelled_transaction_writes_nothing_and_tells_the_reasons_by_index(dynamodb: Any, stub: Stub) -> None:
    dynamodb.put_item(**put(PENDING))
    business = {"id": {"S": "order-1"}}

    with pytest.raises(ClientError) as cancelled:
        dynamodb.transact_write_items(TransactItems=[{"Put": put(business, BUSINESS)}, {"Put": put(PENDING)}])

    response = cancelled.value.response
    assert response["Error"]["Code"] == "TransactionCanceledException"
    assert response["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed", "Item": PENDING},
    ]
    assert stub.rows_of(BUSINESS) == 0


def test_a_transaction_of_new_rows_writes_all(dynamodb: Any, stub: Stub) -> None:
    business = {"id": {"S": "order-1"}}

    dynamodb.transact_write_items(TransactItems=[{"Put": put(PENDING)}, {"Put": put(business, BUSINESS)}])

    assert (stub.rows_of(LEDGER), stub.rows_of(BUSINESS)) == (1, 1)


def test_marking_changes_the_rows_that_are_there_and_refuses_the_others(dynamodb: Any, stub: Stub) -> None:
    dynamodb.put_item(**put(PENDING))

    statements = [
        {"Statement": MARK, "Parameters": [{"S": "sent"}, {"N": "7"}, {"S": event_id}]}
        for event_id in ("order-1", "order-2")
    ]
    answers = dynamodb.batch_execute_statement(Statements=statements)["Responses"]

    assert answers == [
        {"TableName": LEDGER},
        {"Error": {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}},
    ]
    sent = {"event_id": {"S": "order-1"}, "status": {"S": "sent"}, "ttl": {"N": "7"}}
    assert stub.rows == {(LEDGER, "order-1"): sent}
    assert stub.accesses[-1] == Access("BatchExecuteStatement", LEDGER, PENDING, sent)


def test_reads_answer_the_rows_that_are_there(dynamodb: Any) -> None:
    dynamodb.put_item(**put(PENDING))
    keys = [{"event_id": {"S": event_id}} for event_id in ("order-1", "order-2")]

    many = dynamodb.batch_get_item(RequestItems={LEDGER: {"Keys": keys, "ConsistentRead": True}})
    one, none = (dynamodb.get_item(TableName=LEDGER, Key=key) for key in keys)

    assert (many["Responses"], many["UnprocessedKeys"]) == ({LEDGER: [PENDING]}, {})
    assert one["Item"] == PENDING
    assert "Item" not in none


def test_a_read_gives_only_what_it_asks_for(dynamodb: Any) -> None:
    dynamodb.put_item(**put(PENDING))
    wanted = {
        "Keys": [{"event_id": {"S": "order-1"}}],
        "ProjectionExpression": "event_id, #status, missing",
        "ExpressionAttributeNames": {"#status": "status"},
    }

    answer = dynamodb.batch_get_item(RequestItems={LEDGER: wanted})

    assert answer["Responses"][LEDGER] == [{"event_id": {"S": "order-1"}, "status": {"S": "pending"}}]


def test_publishing_is_counted_one_by_one_and_by_the_batch(sns: Any, stub: Stub) -> None:
    topic = "arn:aws:sns:us-east-1:123456789012:orders"
    entries = [{"Id": str(number), "Message": "hello&Id=9"} for number in range(3)]

    single = sns.publish(TopicArn=topic, Message="hello")
    batch = sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)

    assert single["MessageId"] == "94f20ce6-13c5-43a0-9a9e-ca52d816e90b"
    assert [entry["Id"] for entry in batch["Successful"]] == ["0", "1", "2"]
    assert batch["Failed"] == []
    assert stub.published == 4
    assert stub.calls() == {"Publish": 1, "PublishBatch": 1}


def test_a_call_that_it_does_not_know_is_named(dynamodb: Any, sns: Any) -> None:
    with pytest.raises(UnknownCall, match="DeleteItem: teach it"):
        dynamodb.delete_item(TableName=LEDGER, Key={"event_id": {"S": "order-1"}})
    with pytest.raises(UnknownCall, match="ListTopics: teach it"):
        sns.list_topics()


def test_one_that_remembers_nothing_takes_all_as_new() -> None:
    stub = Stub(KEYS, remembers=False)
    dynamodb = client(stub, "dynamodb")
    statement = {"Statement": MARK, "Parameters": [{"S": "sent"}, {"N": "7"}, {"S": "order-1"}]}

    for _ in range(2):
        dynamodb.transact_write_items(TransactItems=[{"Put": put(PENDING)}])
    answers = dynamodb.batch_execute_statement(Statements=[statement])["Responses"]

    assert answers == [{"TableName": LEDGER}]
    assert stub.rows == {}


def test_it_answers_the_clients_of_boto3_and_of_botocore_alike(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.session.Session, "__init__", botocore.session.Session.__init__)  # put back at the end

    stub.attach()
    boto3.session.Session().client("dynamodb").put_item(**put(PENDING))
    answer = botocore.session.get_session().create_client("dynamodb").get_item(
        TableName=LEDGER, Key={"event_id": {"S": "order-1"}}
    )  # fmt: skip

    assert answer["Item"] == PENDING
    assert stub.cpu_seconds > 0


def test_forgetting_begins_anew(dynamodb: Any, stub: Stub) -> None:
    dynamodb.put_item(**put(PENDING))

    stub.forget()

    assert (stub.rows, stub.calls(), stub.accesses, stub.cpu_seconds) == ({}, {}, [], 0.0)
