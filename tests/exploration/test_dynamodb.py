"""What no emulator shows of the model: transactions that are not over, and what it is for an explorer."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.exploration.dynamodb import Database

KEYS = {"events": {"event_id": "S"}, "lines": {"order": "S", "line": "N"}}
KEY = {"TableName": "events", "Key": {"event_id": {"S": "e-1"}}}
PLACE = ("events", "e-1")
PUT: dict[str, Any] = {"TableName": "events", "Item": {"event_id": {"S": "e-1"}}}
UPDATE: dict[str, Any] = {**KEY, "UpdateExpression": "SET sent = :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}
MARK = {"Statement": 'UPDATE "events" SET "sent"=? WHERE "event_id"=?', "Parameters": [{"N": "1"}, {"S": "e-1"}]}


@pytest.fixture
def database() -> Database:
    return Database(KEYS, {"events": ("pending", "pending_shard", "created_at")})


def refused(database: Database, operation: str, request: dict[str, Any]) -> Any:
    with pytest.raises(ClientError) as raised:
        database.call(operation, request)
    return raised.value.response


def code(response: Any) -> str:
    return str(response["Error"]["Code"])


@pytest.mark.parametrize(("operation", "request_"), [("PutItem", PUT), ("UpdateItem", UPDATE), ("DeleteItem", KEY)])
def test_a_write_meets_a_conflict_where_a_transaction_is_not_over(
    operation: str, request_: dict[str, Any], database: Database
) -> None:
    database.busy.add(PLACE)
    assert code(refused(database, operation, request_)) == "TransactionConflictException"
    assert database.rows == {}


def test_a_transaction_says_which_of_its_items_another_one_is_at(database: Database) -> None:
    database.busy.add(PLACE)
    other = {"Put": {"TableName": "lines", "Item": {"order": {"S": "a"}, "line": {"N": "1"}}}}
    check = {"ConditionCheck": {**KEY, "ConditionExpression": "attribute_exists(event_id)"}}
    response = refused(database, "TransactWriteItems", {"TransactItems": [other, check]})
    assert [reason["Code"] for reason in response["CancellationReasons"]] == ["None", "TransactionConflict"]


def test_a_statement_meets_a_conflict_inside_of_an_answer(database: Database) -> None:
    database.busy.add(PLACE)
    answer = database.call("BatchExecuteStatement", {"Statements": [MARK]})
    assert answer["Responses"][0]["Error"]["Code"] == "TransactionConflict"


def test_a_read_meets_no_conflict(database: Database) -> None:
    database.call("PutItem", PUT)
    database.busy.add(PLACE)
    assert database.call("GetItem", {**KEY, "ConsistentRead": True}) == {"Item": PUT["Item"]}


def test_a_prepared_transaction_has_written_nothing(database: Database) -> None:
    line: dict[str, Any] = {"TableName": "lines", "Key": {"order": {"S": "a"}, "line": {"N": "1"}}}
    actions = [
        {"Put": PUT},
        {"Update": {**UPDATE, **line}},
        {"Delete": {**line, "Key": {**line["Key"], "line": {"N": "2"}}}},
    ]
    writes = database.prepare({"TransactItems": actions})
    assert database.rows == {}
    assert writes == [
        (PLACE, {"event_id": {"S": "e-1"}}),
        (("lines", "a\0001"), {"order": {"S": "a"}, "line": {"N": "1"}, "sent": {"N": "1"}}),
        (("lines", "a\0002"), None),
    ]


def test_a_copy_of_the_rows_is_a_snapshot(database: Database) -> None:
    database.call("PutItem", {**PUT, "Item": {**PUT["Item"], "way": {"M": {"it": {"L": [{"N": "1"}]}}}}})
    snapshot = dict(database.rows)
    database.call(
        "UpdateItem",
        {**UPDATE, "UpdateExpression": "SET way.it[0] = :v", "ExpressionAttributeValues": {":v": {"N": "2"}}},
    )
    assert snapshot[PLACE]["way"] == {"M": {"it": {"L": [{"N": "1"}]}}}
    assert database.rows[PLACE]["way"] == {"M": {"it": {"L": [{"N": "2"}]}}}


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("TransactWriteItems", {"TransactItems": []}),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}] * 101}),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Update": UPDATE}]}),
        ("UpdateItem", {**UPDATE, "UpdateExpression": "SET status = :v"}),
        ("UpdateItem", {**UPDATE, "UpdateExpression": "SET event_id = :v"}),
        ("UpdateItem", {**UPDATE, "UpdateExpression": "SET sent = :w"}),
        ("UpdateItem", {**UPDATE, "ConditionExpression": "((sent = :v))"}),
        ("UpdateItem", {**UPDATE, "ExpressionAttributeNames": {"#sent": "sent"}}),
        ("BatchGetItem", {"RequestItems": {"events": {"Keys": [KEY["Key"]] * 2, "ConsistentRead": True}}}),
        ("BatchExecuteStatement", {"Statements": [MARK] * 26}),
    ],
)
def test_a_request_that_could_never_be_valid_is_noted(
    operation: str, request_: dict[str, Any], database: Database
) -> None:
    assert code(refused(database, operation, request_)) == "ValidationException"
    assert len(database.complaints) == 1


@pytest.mark.parametrize("value", [{"N": "1"}, {"S": ""}, {"S": "x" * 2049}])
def test_a_key_that_data_make_invalid_is_refused_and_not_noted(value: dict[str, str], database: Database) -> None:
    response = refused(database, "PutItem", {**PUT, "Item": {"event_id": value}})
    assert code(response) == "ValidationException"
    assert database.complaints == []


def test_a_read_that_does_not_decide_is_noted(database: Database) -> None:
    assert database.call("GetItem", KEY) == {}
    assert len(database.complaints) == 1


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("amount = :v", True),
        ("amount IN (:v)", True),
        ("parts = :v", False),
        ("contains(parts, :v)", True),
        ("amount BETWEEN :v AND :v", True),
        ("amount < :v", False),
        ("lacking <> :v", True),
    ],
)
def test_numbers_are_compared_by_value(condition: str, holds: bool, database: Database) -> None:
    item = {**PUT["Item"], "amount": {"N": "2.50"}, "parts": {"L": [{"N": "2.5"}, {"N": "3"}]}}
    database.call("PutItem", {**PUT, "Item": item})
    assert database.rows[PLACE]["amount"] == {"N": "2.5"}
    request = {**UPDATE, "ConditionExpression": condition, "ExpressionAttributeValues": {":v": {"N": "2.500"}}}
    if holds:
        assert database.call("UpdateItem", request) == {}
    else:
        assert code(refused(database, "UpdateItem", request)) == "ConditionalCheckFailedException"
