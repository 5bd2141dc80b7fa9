"""The function's surroundings in process: moto keeps tables, topic and queues; calls are recorded, faults are played.

moto cannot play three things, so they are played here: it does not know the marking statement, `PublishBatch` never
fails in part, and no call ever fails by itself. What is played has the shape that AWS gives it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from idempotent_consumer.aws import Clients
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.plan import Planner
from idempotent_consumer.reconciler import ScheduledReconciler
from idempotent_consumer.settings import ReconcilerSettings, Settings

EVENTS = Path(__file__).parent.parent / "fixtures" / "events"

NOW_MS = 1_893_553_446_000
NOW = {"N": "1893553446000"}
# 30 days after NOW, in seconds.
TTL = {"N": "1896145446"}

LEDGER = "orders-processed-events"
BUSINESS = "order_records"
MARK_STATEMENT = (
    'UPDATE "orders-processed-events" SET "status"=? SET "sent_at"=? SET "ttl"=? SET "message_id"=? '
    'REMOVE "notification" REMOVE "pending_shard" WHERE "event_id"=?'
)

# A second consumer, with a ledger of its own: see `Cloud.add_ledger`.
BILLING_LEDGER = "billing-processed-events"
BILLING: dict[str, Any] = {"CONSUMER_NAME": "billing", "LEDGER_TABLE": BILLING_LEDGER}

# The three calls that a new event costs.
COMMIT, PUBLISH, MARK = "TransactWriteItems", "PublishBatch", "BatchExecuteStatement"
READ, PUT, BURY, HIDE = "BatchGetItem", "PutItem", "SendMessage", "ChangeMessageVisibilityBatch"
QUERY, UPDATE = "Query", "UpdateItem"
_OPERATIONS = {
    "transact_write_items": COMMIT,
    "batch_get_item": READ,
    "put_item": PUT,
    "batch_execute_statement": MARK,
    "publish_batch": PUBLISH,
    "send_message": BURY,
    "change_message_visibility_batch": HIDE,
    "query": QUERY,
    "update_item": UPDATE,
}

# No test makes so many; one that does would not end.
MOST_CALLS = 3_000

NOTHING_FAILED: dict[str, Any] = {"batchItemFailures": []}

Item = dict[str, dict[str, Any]]


class Killed(BaseException):
    """The process dies here: no handler of exceptions runs after it."""


def reported(*message_ids: str) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}


def fixture(name: str) -> Any:
    """An event of tests/fixtures/events, the caller's own copy."""
    return json.loads(_fixture_text(name))


@cache
def _fixture_text(name: str) -> str:
    return (EVENTS / f"{name}.json").read_text(encoding="utf-8")


def record(
    message_id: str,
    body: str | Mapping[str, Any],
    *,
    group: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    receive_count: int = 1,
) -> dict[str, Any]:
    """An SQS record as Lambda hands it over; with a group, one of a FIFO queue."""
    result: dict[str, Any] = fixture("sqs_fifo" if group else "sqs_standard")["Records"][0]
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    result["messageId"] = message_id
    result["body"] = text
    result["md5OfBody"] = hashlib.md5(text.encode()).hexdigest()
    result["messageAttributes"] = dict(attributes or {})
    result["attributes"]["ApproximateReceiveCount"] = str(receive_count)
    if group:
        result["attributes"]["MessageGroupId"] = group
        result["attributes"]["MessageDeduplicationId"] = "set-by-the-producer"
    return result


def client_error(code: str, operation: str = COMMIT, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "the text of the service, which may quote data"}, **more}
    return ClientError(response, operation)


def cancelled(*reasons: str | Mapping[str, Any]) -> ClientError:
    """A cancelled transaction; a reason is a code or the whole dict."""
    full = [{"Code": reason} if isinstance(reason, str) else dict(reason) for reason in reasons]
    return client_error("TransactionCanceledException", CancellationReasons=full)


@dataclass(frozen=True)
class Call:
    operation: str
    request: dict[str, Any]


@dataclass(frozen=True)
class Notification:
    """What a subscriber of the topic receives. attributes: name to (type, text)."""

    message: str
    attributes: dict[str, tuple[str, str]]
    group: str | None = None
    deduplication_id: str | None = None

    @property
    def event_id(self) -> str:
        return self.attributes["event_id"][1]


@dataclass(frozen=True)
class DeadLetter:
    body: str
    attributes: dict[str, Any]
    group: str | None = None
    deduplication_id: str | None = None

    @property
    def reason(self) -> str:
        return str(self.attributes["dead_letter_reason"]["StringValue"])

    @property
    def detail(self) -> str:
        return str(self.attributes["dead_letter_detail"]["StringValue"])


@dataclass
class Fault:
    """What happens at some calls of one operation. calls: their numbers, from 1; None for all of them."""

    operation: str
    calls: Collection[int] | None
    raises: BaseException | None
    is_after: bool
    answers: Callable[[dict[str, Any], Callable[[], Any]], Any] | None
    runs: Callable[[], Any] | None
    seen: int = 0

    def applies(self, operation: str) -> bool:
        """Whether this call is one of its calls. To be asked once at every call, since it counts them."""
        if self.operation not in (operation, "*"):
            return False
        self.seen += 1
        return self.calls is None or self.seen in self.calls


@dataclass
class Context:
    """The runtime's context: the time left, less what the calls since then have cost."""

    cloud: Cloud
    remaining_ms: int = 30_000
    costs_ms: Mapping[str, int] = field(default_factory=dict)
    _first_call: int = -1

    def get_remaining_time_in_millis(self) -> int:
        if self._first_call < 0:
            self._first_call = len(self.cloud.calls)
        calls = self.cloud.calls[self._first_call :]
        return self.remaining_ms - sum(self.costs_ms.get(call.operation, 0) for call in calls)


class Cloud:
    """Tables, topic with one subscriber, dead-letter queue, and a consumer of the queue before them.

    pending_index: the ledger has the reconciler's index. history: what took effect, in order, as (what, event id or
    body).
    """

    def __init__(
        self, clients: Clients, *, fifo_queue: bool = False, fifo_topic: bool = False, pending_index: bool = False
    ) -> None:
        self.real = clients
        self.calls: list[Call] = []
        self.history: list[tuple[str, str]] = []
        self._faults: list[Fault] = []
        self._lock = threading.RLock()
        self._notifications: list[Notification] = []
        self._dead_letters: list[DeadLetter] = []
        self.clients = Clients(
            *(_Client(self, client) for client in (clients.dynamodb, clients.sns, clients.sqs, clients.sqs_short))
        )
        self._create_table(LEDGER, "event_id", "S", pending_index=pending_index)
        self._create_table(BUSINESS, "id", "S")
        self.topic_arn, self._subscriber_url = self._create_topic(".fifo" if fifo_topic else "")
        self.dead_letter_url = self._create_queue("orders-dead-letter", ".fifo" if fifo_queue else "")

    # What is configured

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The function's environment; a change to None takes a variable out."""
        values: dict[str, str | None] = {
            "CONSUMER_NAME": "orders",
            "LEDGER_TABLE": LEDGER,
            "BUSINESS_TABLE": BUSINESS,
            "BUSINESS_HASH_KEY": "id",
            "BUSINESS_HASH_KEY_TYPE": "S",
            "TTL_WINDOW_DAYS": "30",
            "EVENT_ENVELOPE": "raw",
            "EVENT_WRITE_MODE": "insert",
            "TOPIC_ARN": self.topic_arn,
            "DEAD_LETTER_QUEUE_URL": self.dead_letter_url,
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def consumer(self, planner: Planner | None = None, **changes: Any) -> Consumer:
        """A new process of the function."""
        settings = Settings.from_environment(self.environment(**changes))
        return Consumer(settings, self.clients, planner or declarative_planner(settings))

    def deliver(self, *records: dict[str, Any], context: Context | None = None, **changes: Any) -> Any:
        """One invocation of a new process; returns the literal answer."""
        return self.consumer(**changes).handle({"Records": list(records)}, context or Context(self))

    def reconciler(self, **changes: str | None) -> ScheduledReconciler:
        """A new process of the scheduled function, which takes for stuck what is older than 15 minutes."""
        environment = self.environment(RECONCILER_THRESHOLD_SECONDS="900", **changes)
        return ScheduledReconciler(ReconcilerSettings.from_environment(environment), self.clients)

    # What goes wrong

    def on(
        self,
        operation: str,
        *,
        raises: BaseException | None = None,
        after: bool = False,
        answers: Any = None,
        runs: Callable[[], Any] | None = None,
        calls: Collection[int] | None = None,
    ) -> None:
        """Play a fault; of several for one call, the first that was set is played.

        raises: before the effect, or after it, when its answer is lost. answers: instead of the effect; a callable
        gets the request and the effect. runs: before anything else. calls: at which calls of the operation from now
        on, from 1. The operation "*" is any.
        """
        answer = answers if callable(answers) or answers is None else lambda _request, _effect: answers
        self._faults.append(Fault(operation, calls, raises, after, answer, runs))

    def heal(self) -> None:
        self._faults.clear()

    # What happened

    @property
    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def requests(self, operation: str) -> list[dict[str, Any]]:
        return [call.request for call in self.calls if call.operation == operation]

    def count(self, operation: str) -> int:
        return self.operations.count(operation)

    @property
    def transactions(self) -> list[list[str]]:
        """The events of each transaction that was tried."""
        return [events_of(request) for request in self.requests(COMMIT)]

    @property
    def reads(self) -> list[list[str]]:
        """The events of each read of the ledger."""
        tables = [request["RequestItems"] for request in self.requests(READ)]
        return [[key["event_id"]["S"] for table in names.values() for key in table["Keys"]] for names in tables]

    def ledger(self, table: str = LEDGER) -> dict[str, Item]:
        return {row["event_id"]["S"]: row for row in self._scan(table)}

    def statuses(self, table: str = LEDGER) -> dict[str, str]:
        return {event_id: row["status"]["S"] for event_id, row in self.ledger(table).items()}

    def rows(self) -> dict[str, Item]:
        """The business rows by their hash key."""
        return {row["id"]["S"]: row for row in self._scan(BUSINESS)}

    def notifications(self) -> list[Notification]:
        """All that the topic's subscriber has received."""
        for message in self._drain(self._subscriber_url):
            attributes = {
                name: (value["DataType"], value["StringValue"])
                for name, value in message.get("MessageAttributes", {}).items()
            }
            self._notifications.append(Notification(message["Body"], attributes, *_fifo_ids(message)))
        return list(self._notifications)

    def notified(self) -> list[str]:
        """The event ids of the notifications."""
        return [notification.event_id for notification in self.notifications()]

    def dead_letters(self) -> list[DeadLetter]:
        """All that the dead-letter queue has received."""
        for message in self._drain(self.dead_letter_url):
            attributes = message.get("MessageAttributes", {})
            self._dead_letters.append(DeadLetter(message["Body"], attributes, *_fifo_ids(message)))
        return list(self._dead_letters)

    def reasons(self) -> list[str]:
        return [letter.reason for letter in self.dead_letters()]

    # What is there before

    def add_ledger(self, name: str) -> None:
        """The ledger of another consumer."""
        self._create_table(name, "event_id", "S")

    def add_table(self, name: str, hash_key: str) -> None:
        """A further table of a user's own plan, its key a string."""
        self._create_table(name, hash_key, "S")

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table as plain values, without what the consumer adds, in the order of their text."""
        rows = [
            {key: _plain(value) for key, value in row.items() if not key.startswith("event_")}
            for row in self._scan(name)
        ]
        return sorted(rows, key=repr)

    def store(self, table: str, item: Item) -> None:
        self.real.dynamodb.put_item(TableName=table, Item=item)

    def commit_without_publishing(self, *records: dict[str, Any], **changes: Any) -> None:
        """A process commits the events and dies before it publishes."""
        faults, self._faults = self._faults, []
        self.on(PUBLISH, raises=Killed())
        with pytest.raises(Killed):
            self.deliver(*records, **changes)
        self._faults = faults
        self.forget()

    def forget(self) -> None:
        """Start counting calls and effects anew; state stays."""
        self.calls.clear()
        self.history.clear()

    def expire(self, event_id: str) -> None:
        """DynamoDB deletes the ledger row of an event after its ttl."""
        self.real.dynamodb.delete_item(TableName=LEDGER, Key={"event_id": {"S": event_id}})

    # The machinery

    def call(self, operation: str, effect: Callable[..., Any], **request: Any) -> Any:
        self.calls.append(Call(operation, request))
        if len(self.calls) > MOST_CALLS:
            pytest.fail("calls without end")
        with self._lock:
            applying = [fault for fault in self._faults if fault.applies(operation)]
        fault = applying[0] if applying else None
        if fault is not None and fault.runs is not None:
            fault.runs()
        if fault is not None and fault.raises is not None and not fault.is_after:
            raise fault.raises
        take_effect = partial(self._take_effect, operation, effect, request)
        answer = fault.answers(request, take_effect) if fault is not None and fault.answers else take_effect()
        if fault is not None and fault.raises is not None:
            raise fault.raises
        return answer

    def _take_effect(self, operation: str, effect: Callable[..., Any], request: dict[str, Any]) -> Any:
        # moto copies whole tables in a transaction: it needs the order that DynamoDB gives by itself.
        with self._lock:
            answer = effect(**request)
            self.history += _effects(operation, request, answer)
        return answer

    def mark(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """BatchExecuteStatement for the one statement that the product sends."""
        if not 1 <= len(Statements) <= 25:
            raise client_error("ValidationException", MARK)
        return {"Responses": [self._mark_one(statement) for statement in Statements]}

    def _mark_one(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        table = str(statement["Statement"]).split('"')[1]
        if statement["Statement"] != MARK_STATEMENT.replace(LEDGER, table):
            pytest.fail(f"another marking statement: {statement['Statement']}")
        status, sent_at, ttl, message_id, event_id = statement["Parameters"]
        try:
            self.real.dynamodb.update_item(
                TableName=table,
                Key={"event_id": event_id},
                UpdateExpression="SET #s = :s, sent_at = :a, #t = :t, message_id = :m "
                "REMOVE notification, pending_shard",
                ConditionExpression="attribute_exists(event_id)",
                ExpressionAttributeNames={"#s": "status", "#t": "ttl"},
                ExpressionAttributeValues={":s": status, ":a": sent_at, ":t": ttl, ":m": message_id},
            )
        except self.real.dynamodb.exceptions.ConditionalCheckFailedException:
            error = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            return {"Error": error, "TableName": table}
        return {"TableName": table}

    def _create_table(self, name: str, hash_key: str, kind: str, *, pending_index: bool = False) -> None:
        kinds = {hash_key: kind, **({"pending_shard": "S", "created_at": "N"} if pending_index else {})}
        index = {
            "IndexName": "pending",
            "KeySchema": [
                {"AttributeName": "pending_shard", "KeyType": "HASH"},
                {"AttributeName": "created_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        self.real.dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": of} for key, of in kinds.items()],
            KeySchema=[{"AttributeName": hash_key, "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": [index]} if pending_index else {}),
        )

    def _create_queue(self, name: str, suffix: str) -> str:
        attributes = {"FifoQueue": "true"} if suffix else {}
        return str(self.real.sqs.create_queue(QueueName=name + suffix, Attributes=attributes)["QueueUrl"])

    def _create_topic(self, suffix: str) -> tuple[str, str]:
        attributes = {"FifoTopic": "true"} if suffix else {}
        topic_arn = self.real.sns.create_topic(Name="orders-notifications" + suffix, Attributes=attributes)["TopicArn"]
        url = self._create_queue("subscriber", suffix)
        queue = self.real.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        self.real.sns.subscribe(
            TopicArn=topic_arn,
            Protocol="sqs",
            Endpoint=queue["QueueArn"],
            Attributes={"RawMessageDelivery": "true"},
        )
        return topic_arn, url

    def _scan(self, table: str) -> list[Item]:
        return self.real.dynamodb.scan(TableName=table)["Items"]  # type: ignore[no-any-return]

    def _drain(self, url: str) -> list[dict[str, Any]]:
        drained: list[dict[str, Any]] = []
        while messages := self.real.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages", []):
            for message in messages:
                self.real.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            drained += messages
        return drained


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return int(content) if kind == "N" else content


class _Client:
    """One service's client, with its calls going through the cloud."""

    def __init__(self, cloud: Cloud, client: Any) -> None:
        self._cloud = cloud
        self._client = client

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = _OPERATIONS[method]
        effect = self._cloud.mark if operation == MARK else getattr(self._client, method)

        def call(**request: Any) -> Any:
            self._check(operation, request)
            return self._cloud.call(operation, effect, **request)

        return call

    def _check(self, operation: str, request: dict[str, Any]) -> None:
        """The product's clients do not compare requests with the service's model, so that is done here."""
        shape = self._client.meta.service_model.operation_model(operation).input_shape
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            pytest.fail(f"{operation}: {report.generate_report()}")


def _fifo_ids(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    system = message.get("Attributes", {})
    return system.get("MessageGroupId"), system.get("MessageDeduplicationId")


def events_of(transaction: Mapping[str, Any]) -> list[str]:
    """The events that a transaction commits, in its order: those of its ledger rows."""
    items = [action["Put"]["Item"] for action in transaction["TransactItems"] if "Put" in action]
    return [item["event_id"]["S"] for item in items if "status" in item and "fingerprint" in item]


def _effects(operation: str, request: Mapping[str, Any], answer: Any) -> list[tuple[str, str]]:
    if operation == COMMIT:
        return [("committed", event_id) for event_id in events_of(request)]
    if operation == PUT:
        return [("superseded", request["Item"]["event_id"]["S"])]
    if operation == PUBLISH:
        published = {entry["Id"] for entry in answer["Successful"]}
        return [
            ("published", entry["MessageAttributes"]["event_id"]["StringValue"])
            for entry in request["PublishBatchRequestEntries"]
            if entry["Id"] in published
        ]
    if operation == MARK:
        return [
            ("marked", statement["Parameters"][4]["S"])
            for statement, response in zip(request["Statements"], answer["Responses"], strict=True)
            if "Error" not in response
        ]
    if operation == BURY:
        return [("dead-lettered", request["MessageBody"])]
    return []
