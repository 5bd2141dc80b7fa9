"""A deployed consumer in process: moto keeps tables, topic and queues; calls are recorded, faults are played.

What moto lacks is played in the shape that AWS gives it: the marking statement, the function with its environment, and
its mapping (moto's would take messages off the queue as they come). No call ever fails by itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner

from idempotent_consumer.commit import Commit, prepare, sent_attributes
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event, fingerprint, read_event_id
from idempotent_consumer.settings import Settings
from idempotent_consumer_cli.main import main

REGION = "us-east-1"
NAME = "orders"
FUNCTION = "orders-worker"
LEDGER = "orders-processed-events"
BUSINESS = "order_records"
VISIBILITY_SECONDS = 180
HOUR = 3600
DAY = 86_400

Item = dict[str, dict[str, Any]]

_OF_PIPELINES = {
    "BUSINESS_HASH_KEY": "id",
    "BUSINESS_HASH_KEY_TYPE": "S",
    "BUSINESS_TABLE": BUSINESS,
    "EVENT_ITEM": "@",
    "EVENT_WRITE_MODE": "insert",
}
_OF_OPERATIONS = {
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "180000",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_MAX_ATTEMPTS": "5",
    "OPERATION_RETRY_SECONDS": "30",
    "OPERATION_SETTLE_SECONDS": "130",
}

STATE_MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:orders"
CLAIMS = "orders-idempotency"
_OF_WORKFLOWS = {
    "IDEMPOTENCY_TABLE": CLAIMS,
    "LEDGER_TABLE": None,
    "RETENTION_SECONDS": "345600",
    "STATE_MACHINE_ARN": STATE_MACHINE,
    "TTL_WINDOW_DAYS": None,
    "WORKFLOW_NAMESPACE": "ingestion",
    "WORKFLOW_RETENTION_SECONDS": "1555200",
}

_MARK_STATEMENT = (
    'UPDATE "orders-processed-events" SET "status"=? SET "sent_at"=? SET "ttl"=? SET "message_id"=? '
    'REMOVE "notification" REMOVE "pending_shard" WHERE "event_id"=?'
)
_make_api_call = BaseClient._make_api_call


@dataclass(frozen=True)
class Run:
    """What a command printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def documents(self) -> list[Any]:
        """The JSON lines of standard output."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def document(self) -> Any:
        """The one JSON line of standard output."""
        (document,) = self.documents
        return document

    @property
    def verdict(self) -> str:
        """The last line for people."""
        return self.stdout.splitlines()[-1]


@dataclass
class Fault:
    """What happens at some calls of one operation. calls: their numbers, from 1; None for all of them."""

    operation: str
    raises: BaseException | None
    answers: Callable[[dict[str, Any], Callable[[], Any]], Any] | None
    runs: Callable[[], Any] | None
    calls: Collection[int] | None
    is_after: bool
    seen: int = 0

    def applies(self, operation: str) -> bool:
        """Whether this call is one of its calls. To be asked once at every call, since it counts them."""
        if self.operation != operation:
            return False
        self.seen += 1
        return self.calls is None or self.seen in self.calls


@dataclass(frozen=True)
class Call:
    operation: str
    request: dict[str, Any]
    region: str


@dataclass
class World:
    """The consumer `orders`, deployed. now_ms: the command line's time, which stands still.

    fifo: both queues are FIFO queues. index: the ledger has its index of pending rows. topic: whether it publishes.
    mappings: what the event source mappings of the queue say. settings: changes of the function's environment, None
    takes a variable out. operation: it is an operation, with this policy for uncertain outcomes. workflow: it is a
    workflow, with this path to its business key; blank for the message's own id. executions: of it, by ARN, as Step
    Functions describes them.
    """

    now_ms: int
    fifo: bool = False
    fifo_topic: bool = False
    index: bool = True
    topic: bool = True
    topic_region: str = REGION
    handler: str = "idempotent_consumer.handler.handler"
    operation: str | None = None
    workflow: str | None = None
    executions: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, str | None] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    functions: dict[str, dict[str, Any]] = field(default_factory=dict)
    mappings: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.RLock()
        self._sent: list[str] = []
        self.is_watching = False
        self._inner = threading.local()
        self.dynamodb = _client("dynamodb")
        self.sqs = _client("sqs")
        self.cloudwatch = _client("cloudwatch")
        self.queue_url, self.dead_letter_url = self._create_queues()
        self.topic_arn: str | None = None
        self._subscriber_url: str | None = None
        is_pipeline = self.operation is None and self.workflow is None
        if self.topic and is_pipeline:
            self.topic_arn, self._subscriber_url = self._create_topic()
        self.deploy()
        if self.workflow is None:
            self._create_ledger()
        else:
            self._create_claims()
        if is_pipeline:
            self._create_business_table()
        self.set_mapping("Enabled")

    # --- what is deployed

    def deploy(self, name: str = FUNCTION, **changes: str | None) -> None:
        """Change the environment of the function, or make another function with it."""
        self.functions[name] = {
            "FunctionName": name,
            "Handler": self.handler,
            "Environment": {"Variables": self.environment(**changes)},
            "LoggingConfig": {"LogFormat": "JSON", "LogGroup": f"/aws/lambda/{name}"},
        }

    def environment(self, **changes: str | None) -> dict[str, str]:
        kind: dict[str, str | None] = {}
        if self.workflow is not None:
            kind = {**_OF_WORKFLOWS, **({"EVENT_ID": self.workflow} if self.workflow else {})}
        values: dict[str, str | None] = {
            **(_OF_PIPELINES if self.operation is None else {**_OF_OPERATIONS, "OPERATION_UNCERTAIN": self.operation}),
            "BACKOFF_MAX_SECONDS": "900",
            "CONSUMER_NAME": NAME,
            "DEAD_LETTER_QUEUE_URL": self.dead_letter_url,
            "EVENT_ENVELOPE": "raw",
            "LEDGER_TABLE": LEDGER,
            "QUEUE_URL": self.queue_url,
            "TOPIC_ARN": self.topic_arn,
            "TTL_WINDOW_DAYS": "30",
            "VISIBILITY_TIMEOUT_SECONDS": str(VISIBILITY_SECONDS),
            **kind,
            **self.settings,
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def set_mapping(self, *states: str) -> None:
        """The states of the mappings from the queue to the function; none for no mapping."""
        arn = f"arn:aws:lambda:{REGION}:123456789012:function:{FUNCTION}"
        self.mappings = [{"UUID": f"u-{n}", "FunctionArn": arn, "State": state} for n, state in enumerate(states)]

    # --- what goes wrong

    def on(
        self,
        operation: str,
        *,
        raises: BaseException | None = None,
        answers: Any = None,
        runs: Callable[[], Any] | None = None,
        calls: Collection[int] | None = None,
        after: bool = False,
    ) -> None:
        """Play a fault at a command's calls of one operation, named as AWS names it, such as `SendMessage`.

        raises: before the effect, or after it, when its answer is lost. answers: instead of the effect; a callable
        gets the request and the effect. runs: before anything else. calls: at which calls from now on, from 1.
        """
        answer = answers if callable(answers) or answers is None else lambda _request, _effect: answers
        self._faults.append(Fault(operation, raises, answer, runs, calls, after))

    def deny(self, *operations: str) -> None:
        for operation in operations:
            self.on(operation, raises=denied(operation))

    def heal(self) -> None:
        self._faults.clear()

    # --- what is run

    def run(self, *arguments: str) -> Run:
        """Run the command line; without --name or --terraform-dir it is for this consumer."""
        is_named = {"--name", "--terraform-dir", "--help", "--version"} & set(arguments)
        return self.run_command_line(*arguments, *(() if is_named else ("--name", NAME)))

    def run_command_line(self, *arguments: str) -> Run:
        """The same with these arguments only."""
        self.is_watching = True
        try:
            return run_command_line(*arguments)
        finally:
            self.is_watching = False

    def requests(self, operation: str) -> list[dict[str, Any]]:
        """What the commands have asked of one operation."""
        return [call.request for call in self.calls if call.operation == operation]

    # --- what has happened before

    def event(self, data: Mapping[str, Any], group: str | None = None) -> Event:
        settings = self.read_settings()
        content = dict(data)
        return Event(
            read_event_id(content, settings.event_id), content, fingerprint(content, settings.fingerprint), group
        )

    def read_settings(self) -> Settings:
        return Settings.from_environment(self.functions[FUNCTION]["Environment"]["Variables"])

    def commit(self, data: Mapping[str, Any], *, age: float = 0, message_id: str = "m-1") -> Commit:
        """As the worker commits an event, `age` seconds ago; not published yet."""
        commit = self._prepare(data, age, message_id)
        self._store_rows(commit, commit.ledger_item)
        return commit

    def settle(self, data: Mapping[str, Any], *, age: float = 0, message_id: str = "m-1") -> Commit:
        """As the worker commits an event, publishes and marks it, `age` seconds ago; the topic gets nothing here."""
        commit = self._prepare(data, age, message_id)
        self._store_rows(commit, commit.ledger_item_as_sent)
        return commit

    def _prepare(self, data: Mapping[str, Any], age: float, message_id: str) -> Commit:
        settings, event = self.read_settings(), self.event(data)
        return prepare(event, declarative_planner(settings)(event), message_id, self._ago(age), settings)

    def _store_rows(self, commit: Commit, ledger_item: Item) -> None:
        self.store(commit.ledger_table, ledger_item)
        for write in commit.writes:
            put = write.action["Put"]
            self.store(put["TableName"], put["Item"])

    def mark(self, event_id: str, *, age: float = 0) -> None:
        """As the worker marks a pending row."""
        row = self.ledger()[event_id]
        sent = sent_attributes(self._ago(age), self.read_settings().ttl_window_seconds)
        kept = {name: value for name, value in row.items() if name not in ("notification", "pending_shard")}
        self.store(LEDGER, {**kept, **sent})

    def store(self, table: str, item: Item) -> None:
        self.dynamodb.put_item(TableName=table, Item=item)

    def forget(self, table: str, event_id: str, key: str = "event_id") -> None:
        """Delete a row by its hash key."""
        self.dynamodb.delete_item(TableName=table, Key={key: {"S": event_id}})

    def send(
        self,
        body: str | Mapping[str, Any],
        *,
        dead: bool = False,
        attributes: Mapping[str, str] | None = None,
        group: str = "g",
    ) -> str:
        """Send a message to the queue, or a dead letter; returns its message id."""
        entry: dict[str, Any] = {
            "QueueUrl": self.dead_letter_url if dead else self.queue_url,
            "MessageBody": body if isinstance(body, str) else json.dumps(body),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value} for name, value in (attributes or {}).items()
            },
        }
        if self.fifo:
            self._sent.append(group)
            entry |= {"MessageGroupId": group, "MessageDeduplicationId": f"d-{len(self._sent)}"}
        return str(self.sqs.send_message(**entry)["MessageId"])

    def measure(
        self, metric: str, value: float, *, namespace: str = "IdempotentConsumer", age: float = 60, **dimensions: str
    ) -> None:
        """Put one value of a metric, `age` seconds ago."""
        names = dimensions or {"Consumer": NAME}
        self.cloudwatch.put_metric_data(
            Namespace=namespace,
            MetricData=[
                {
                    "MetricName": metric,
                    "Value": value,
                    "Timestamp": datetime.fromtimestamp(self._ago(age) / 1000, UTC),
                    "Dimensions": [{"Name": name, "Value": text} for name, text in names.items()],
                }
            ],
        )

    # --- what is there

    def ledger(self) -> dict[str, Item]:
        return {row["event_id"]["S"]: row for row in self._scan(LEDGER)}

    def statuses(self) -> dict[str, str]:
        return {event_id: row["status"]["S"] for event_id, row in self.ledger().items()}

    def rows(self) -> dict[str, Item]:
        """The business rows by their hash key."""
        return {next(iter(row["id"].values())): row for row in self._scan(BUSINESS)}

    def published(self) -> list[str]:
        """The event ids of what the topic's subscriber has received since the last look, sorted."""
        assert self._subscriber_url is not None
        messages = self._drain(self._subscriber_url)
        return sorted(message["MessageAttributes"]["event_id"]["StringValue"] for message in messages)

    def queued(self) -> list[dict[str, Any]]:
        """Takes all messages off the queue."""
        return self._drain(self.queue_url)

    def dead_letters(self) -> list[dict[str, Any]]:
        """Takes all dead letters."""
        return self._drain(self.dead_letter_url)

    # --- the machinery

    def call(self, client: Any, operation: str, request: dict[str, Any]) -> Any:
        """Stands where botocore makes a call."""
        if not self.is_watching or getattr(self._inner, "is_played", False):
            return _make_api_call(client, operation, request)
        with self._lock:
            self.calls.append(Call(operation, request, client.meta.region_name))
            applying = [fault for fault in self._faults if fault.applies(operation)]
        fault = applying[0] if applying else None

        def effect() -> Any:
            played = getattr(self, f"_play_{operation}", None)
            return self._play(lambda: played(request)) if played else _make_api_call(client, operation, request)

        if fault is not None and fault.runs is not None:
            self._play(fault.runs)
        if fault is not None and fault.raises is not None and not fault.is_after:
            raise fault.raises
        answer = fault.answers(request, effect) if fault is not None and fault.answers else effect()
        if fault is not None and fault.raises is not None:
            raise fault.raises
        return answer

    def _play(self, what: Callable[[], Any]) -> Any:
        """What is played makes calls of its own, which are none of the command's."""
        self._inner.is_played = True
        try:
            return what()
        finally:
            self._inner.is_played = False

    def _play_GetFunctionConfiguration(self, request: Mapping[str, Any]) -> Any:
        with suppress(KeyError):
            return self.functions[request["FunctionName"]]
        text = f"Function not found: arn:aws:lambda:{REGION}:123456789012:function:{request['FunctionName']}"
        raise client_error("ResourceNotFoundException", "GetFunctionConfiguration", text)

    def _play_ListEventSourceMappings(self, request: Mapping[str, Any]) -> Any:
        return {"EventSourceMappings": self.mappings}

    def _play_DescribeExecution(self, request: Mapping[str, Any]) -> Any:
        with suppress(KeyError):
            return self.executions[request["executionArn"]]
        raise client_error("ExecutionDoesNotExist", "DescribeExecution")

    def _play_ListExecutions(self, request: Mapping[str, Any]) -> Any:
        assert request["stateMachineArn"] == STATE_MACHINE
        found = [each for each in self.executions.values() if each["status"] == request["statusFilter"]]
        found.sort(key=lambda each: each["startDate"], reverse=True)
        start, size = int(request.get("nextToken", 0)), request["maxResults"]
        more = {"nextToken": str(start + size)} if len(found) > start + size else {}
        return {"executions": found[start : start + size], **more}

    def _play_BatchExecuteStatement(self, request: Mapping[str, Any]) -> Any:
        assert 1 <= len(request["Statements"]) <= 25
        return {"Responses": [self._mark_one(statement) for statement in request["Statements"]]}

    def _mark_one(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        assert statement["Statement"] == _MARK_STATEMENT
        status, sent_at, ttl, message_id, event_id = statement["Parameters"]
        try:
            self.dynamodb.update_item(
                TableName=LEDGER,
                Key={"event_id": event_id},
                UpdateExpression="SET #s = :s, sent_at = :a, #t = :t, message_id = :m "
                "REMOVE notification, pending_shard",
                ConditionExpression="attribute_exists(event_id)",
                ExpressionAttributeNames={"#s": "status", "#t": "ttl"},
                ExpressionAttributeValues={":s": status, ":a": sent_at, ":t": ttl, ":m": message_id},
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            error = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            return {"Error": error, "TableName": LEDGER}
        return {"TableName": LEDGER}

    def _ago(self, seconds: float) -> int:
        return self.now_ms - int(seconds * 1000)

    def _create_queues(self) -> tuple[str, str]:
        suffix, attributes = (".fifo", {"FifoQueue": "true"}) if self.fifo else ("", {})
        dead = self.sqs.create_queue(QueueName=f"orders-dlq{suffix}", Attributes=attributes)["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 10 if self.fifo else 5})
        queue = self.sqs.create_queue(
            QueueName=f"orders{suffix}",
            Attributes={**attributes, "RedrivePolicy": redrive, "VisibilityTimeout": str(VISIBILITY_SECONDS)},
        )["QueueUrl"]
        return queue, dead

    def _create_topic(self) -> tuple[str, str]:
        sns = _client("sns", self.topic_region)
        suffix, kind = (".fifo", "Fifo") if self.fifo_topic else ("", "")
        topic_attributes = {"FifoTopic": "true"} if kind else {}
        topic_arn = sns.create_topic(Name=f"orders-notifications{suffix}", Attributes=topic_attributes)["TopicArn"]
        queue_attributes = {"FifoQueue": "true"} if kind else {}
        url = self.sqs.create_queue(QueueName=f"subscriber{suffix}", Attributes=queue_attributes)["QueueUrl"]
        queue = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        raw = {"RawMessageDelivery": "true"}
        sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=queue, Attributes=raw)
        return str(topic_arn), str(url)

    def _create_ledger(self) -> None:
        names = {"event_id": "S"} | ({"pending_shard": "S", "created_at": "N"} if self.index else {})
        key = [("pending_shard", "HASH"), ("created_at", "RANGE")]
        index = {
            "IndexName": "pending",
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in key],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        self.dynamodb.create_table(
            TableName=LEDGER,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in names.items()],
            KeySchema=[{"AttributeName": "event_id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": [index]} if self.index else {}),
        )

    def _create_claims(self) -> None:
        self.dynamodb.create_table(
            TableName=CLAIMS,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def _create_business_table(self) -> None:
        settings = self.read_settings()
        keys = [(settings.hash_key, "HASH")] + ([(settings.range_key, "RANGE")] if settings.range_key else [])
        self.dynamodb.create_table(
            TableName=settings.business_table,
            AttributeDefinitions=[{"AttributeName": key.name, "AttributeType": key.kind} for key, _ in keys],
            KeySchema=[{"AttributeName": key.name, "KeyType": kind} for key, kind in keys],
            BillingMode="PAY_PER_REQUEST",
        )

    def _scan(self, table: str) -> Iterable[Item]:
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table)
        return [row for page in pages for row in page["Items"]]

    def _drain(self, url: str) -> list[dict[str, Any]]:
        drained: list[dict[str, Any]] = []
        while messages := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages", []):
            for message in messages:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            drained += messages
        return drained


def run_command_line(*arguments: str) -> Run:
    """Run the command line in this process, wherever its calls go."""
    result = CliRunner().invoke(main, list(arguments), prog_name="idempotent-consumer")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Run(result.exit_code, result.stdout, result.stderr)


_clients: dict[tuple[str, str], Any] = {}


def _client(service: str, region: str = REGION) -> Any:
    """Made once: each takes a tenth of a second."""
    if (service, region) not in _clients:
        _clients[service, region] = boto3.client(service, region_name=region, config=Config(max_pool_connections=20))
    return _clients[service, region]


def client_error(code: str, operation: str, text: str = "the text of the service") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": text}}, operation)


def denied(operation: str) -> ClientError:
    """As AWS refuses a call for which there is no right."""
    text = f"User: arn:aws:iam::123456789012:user/op is not authorized to perform this action ({operation})."
    return client_error("AccessDeniedException", operation, text)
