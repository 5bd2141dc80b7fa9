"""Tables, topic and dead-letter queue on moto, with clients whose calls are watched and can fail.

moto does not know the statement that marks events as sent: it is played here.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

from moto import mock_aws
from moto.core.models import MockAWS, botocore_stubber

from idempotent_consumer.aws import Clients
from idempotent_consumer.items import Item
from idempotent_consumer.settings import KeyAttribute, Settings
from idempotent_consumer.testing.faults import Fault
from idempotent_consumer.testing.history import MARK, History, described
from idempotent_consumer.testing.problem import CannotTry
from idempotent_consumer.testing.tables import LEDGER, Table, Tables

_REGION = "us-east-1"
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_DEFAULT_REGION": _REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": _REGION,
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
_OPERATIONS = {
    "batch_execute_statement": MARK,
    "batch_get_item": "BatchGetItem",
    "publish_batch": "PublishBatch",
    "put_item": "PutItem",
    "send_message": "SendMessage",
    "transact_write_items": "TransactWriteItems",
}
_CHANGE = re.compile(r'(SET|REMOVE) "(\w+)"')


@contextmanager
def moto_alone() -> Iterator[MockAWS]:
    """moto, and no account in reach: neither credentials nor an address of the environment are used.

    All is put back after it. Raises CannotTry where moto runs already: each cloud begins by wiping what it holds.
    """
    if botocore_stubber.enabled:
        raise CannotTry("mock_aws is active, and the kit would wipe what it holds: call the kit outside of it")
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with patch.dict(os.environ, {**others, **_ENVIRONMENT}, clear=True), mock_aws() as moto:
        yield moto


@cache
def _real_clients() -> Clients:
    """Made once, since that takes longer than most scenarios."""
    clients = Clients.create()
    for client in (clients.dynamodb, clients.sns, clients.sqs):
        client._endpoint.http_session.send = _refuse_to_send
    return clients


def _refuse_to_send(request: Any) -> None:
    """What botocore does once moto has not answered."""
    raise RuntimeError(f"the test kit sends nothing to {request.url}")


class Cloud:
    """What is on moto is gone once it is made. labels: what to call a message, by its body.

    fault: what goes wrong. has_struck: whether it did. calls: what was called, in words.
    """

    def __init__(self, moto: MockAWS, tables: Tables, labels: Mapping[str, str], *, fifo: bool, topic: bool) -> None:
        moto.reset()
        real = _real_clients()
        self.fault: Fault | None = None
        self.has_struck = False
        self.calls: list[str] = []
        self.operations: list[str] = []
        self.history = History()
        self._real = real
        self._tables = tables
        self._labels = labels
        dynamodb, sns, sqs = (_Client(self, client) for client in (real.dynamodb, real.sns, real.sqs))
        self.clients = Clients(dynamodb, sns, sqs, sqs_short=sqs)
        for table in (Table(LEDGER, (KeyAttribute("event_id", "S"),)), *tables.all):
            self._create_table(table)
        self._dead_letter_url = self._create_queue("kit-dead-letter", fifo=fifo)
        self._topic_arn = str(real.sns.create_topic(Name="kit-notifications")["TopicArn"]) if topic else None

    def settings(self, settings: Settings) -> Settings:
        """The consumer's settings with what is here."""
        hash_key, *range_key = self._tables.business.key
        return replace(
            settings,
            business_table=self._tables.business.name,
            hash_key=hash_key,
            range_key=range_key[0] if range_key else None,
            topic_arn=self._topic_arn,
            dead_letter_queue_url=self._dead_letter_url,
        )

    def rows(self, table: str) -> list[Item]:
        """All rows of a table."""
        rows: list[Item] = []
        start: dict[str, Any] = {}
        while True:
            answer = self._real.dynamodb.scan(TableName=table, ConsistentRead=True, **start)
            rows += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return rows
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def statuses(self) -> dict[str, str]:
        """What the ledger says of each event."""
        return {row["event_id"]["S"]: row["status"]["S"] for row in self.rows(LEDGER)}

    def forget_events(self) -> None:
        """DynamoDB deletes the ledger's rows after their ttl."""
        for event_id in self.statuses():
            self._real.dynamodb.delete_item(TableName=LEDGER, Key={"event_id": {"S": event_id}})

    def call(self, operation: str, effect: Callable[..., Any], request: dict[str, Any]) -> Any:
        """A call of the consumer's."""
        self.operations.append(operation)
        self.calls.append(described(operation, request, self._labels))
        fault = self.fault if self.fault and self.fault.applies(len(self.calls), operation) else None
        if fault is not None:
            self.has_struck = True
            fault.before(operation)
        answer = effect(**request)
        self.history.note(operation, request, answer)
        if fault is not None:
            fault.after()
        return answer

    def mark(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """BatchExecuteStatement: changes rows that are there, and says so of each that is not."""
        rows = {row["event_id"]["S"]: row for row in self.rows(LEDGER)}
        responses: list[dict[str, Any]] = []
        changed: list[Item] = []
        for statement in Statements:
            *values, event_id = statement["Parameters"]
            row = rows.get(event_id["S"])
            if row is None:
                responses.append({"Error": {"Code": "ConditionalCheckFailed"}, "TableName": LEDGER})
            else:
                responses.append({"TableName": LEDGER})
                changed.append(_marked(row, statement["Statement"], values))
        if changed:
            puts = [{"PutRequest": {"Item": row}} for row in changed]
            self._real.dynamodb.batch_write_item(RequestItems={LEDGER: puts})
        return {"Responses": responses}

    def _create_table(self, table: Table) -> None:
        kinds = zip(("HASH", "RANGE"), table.key, strict=False)
        self._real.dynamodb.create_table(
            TableName=table.name,
            AttributeDefinitions=[{"AttributeName": key.name, "AttributeType": key.kind} for key in table.key],
            KeySchema=[{"AttributeName": key.name, "KeyType": kind} for kind, key in kinds],
            BillingMode="PAY_PER_REQUEST",
        )
        for item in table.items:
            self._real.dynamodb.put_item(TableName=table.name, Item=item)

    def _create_queue(self, name: str, *, fifo: bool = False) -> str:
        suffix, attributes = (".fifo", {"FifoQueue": "true"}) if fifo else ("", {})
        return str(self._real.sqs.create_queue(QueueName=name + suffix, Attributes=attributes)["QueueUrl"])


def _marked(row: Item, statement: str, values: Sequence[Any]) -> Item:
    changes = _CHANGE.findall(statement)
    set_names = [name for word, name in changes if word == "SET"]
    removed = {name for word, name in changes if word == "REMOVE"}
    kept = {name: value for name, value in row.items() if name not in removed}
    return kept | dict(zip(set_names, values, strict=True))


class _Client:
    """One service's client, its calls going through the cloud."""

    def __init__(self, cloud: Cloud, client: Any) -> None:
        self._cloud = cloud
        self._client = client

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = _OPERATIONS[method]
        effect = self._cloud.mark if operation == MARK else getattr(self._client, method)
        return lambda **request: self._cloud.call(operation, effect, request)
