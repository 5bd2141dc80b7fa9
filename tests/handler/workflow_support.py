"""A workflow in process: its starter before a Step Functions that knows names, its guard before a table in moto."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from idempotent_consumer import telemetry
from idempotent_consumer.guard import Guard
from idempotent_consumer.starter import Starter
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.handler.operations import Clock
from tests.handler.support import HIDE, Cloud, Context, Item, client_error

START = "StartExecution"
TABLE = "orders-idempotency"
NAMESPACE = "ingestion"
STATE_MACHINE = "arn:aws:states:eu-central-1:111122223333:stateMachine:orders"
EXECUTION = "arn:aws:states:eu-central-1:111122223333:execution:orders:"
# Owners: executions of the workflow.
ONE, OTHER = EXECUTION + "one", EXECUTION + "other"

# As modules/workflow sets it.
STARTER_ENVIRONMENT = {
    "CONSUMER_NAME": "orders",
    "STATE_MACHINE_ARN": STATE_MACHINE,
    "IDEMPOTENCY_TABLE": TABLE,
    "WORKFLOW_NAMESPACE": NAMESPACE,
    "WORKFLOW_RETENTION_SECONDS": "1555200",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.test/orders-dlq",
    "QUEUE_URL": "https://sqs.test/orders",
    "VISIBILITY_TIMEOUT_SECONDS": "180",
    "BACKOFF_MAX_SECONDS": "900",
    "RETENTION_SECONDS": "345600",
    "MAX_RECEIVE_COUNT": "5",
    "EVENT_ENVELOPE": "raw",
    "EVENT_ID": "id",
}


@cache
def _start_shape() -> Any:
    return botocore.session.get_session().get_service_model("stepfunctions").operation_model(START).input_shape


class StepFunctions:
    """Executions by name: running ones are in `running`, and all inputs in `inputs`, in the order of their start.

    A name that is running is answered once more with the same input; else it is taken (Step Functions API Reference,
    StartExecution).
    """

    def __init__(self, cloud: Cloud) -> None:
        self.inputs: dict[str, str] = {}
        self.running: set[str] = set()
        self._cloud = cloud

    def start_execution(self, **request: Any) -> Any:
        # The product's clients do not compare requests with the service's model.
        report = ParamValidator().validate(request, _start_shape())
        if report.has_errors() or len(request["name"]) > 80:
            pytest.fail(f"{START}: {report.generate_report()} {request['name']}")
        return self._cloud.call(START, self._start, **request)

    def finish(self, *names: str) -> None:
        """They end; without names, all of them."""
        self.running -= set(names or self.inputs)

    def _start(self, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:
        is_same = name in self.running and self.inputs[name] == input
        if name in self.inputs and not is_same:
            raise client_error("ExecutionAlreadyExists", START)
        self.inputs[name] = input
        self.running.add(name)
        return {"executionArn": stateMachineArn.replace("stateMachine", "execution") + ":" + name, "startDate": 0}


class Workflow:
    """One workflow. Each delivery is a new process, and so is each call of the guard."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, **changes: str | None) -> None:
        self.cloud = cloud
        self.clock = Clock()
        self.step_functions = StepFunctions(cloud)
        values = {**STARTER_ENVIRONMENT, "DEAD_LETTER_QUEUE_URL": cloud.dead_letter_url, **changes}
        self.environment = {name: value for name, value in values.items() if value is not None}
        monkeypatch.setattr(telemetry, "now_ms", self.clock)
        # Moto knows no queue of that name, and the answer does not matter.
        cloud.on(HIDE, answers={"Successful": [], "Failed": []})
        cloud.real.dynamodb.create_table(
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            BillingMode="PAY_PER_REQUEST",
        )

    # The starter

    def starter(self) -> Starter:
        settings = WorkflowSettings.from_environment(self.environment)
        return Starter(settings, self.cloud.clients, self.step_functions)

    def deliver(self, *records: dict[str, Any], context: Context | None = None) -> Any:
        """One invocation of a new process; returns the literal answer."""
        return self.starter().handle({"Records": list(records)}, context or Context(self.cloud))

    @property
    def names(self) -> list[str]:
        """Of the executions that have been started, in that order."""
        return list(self.step_functions.inputs)

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Their inputs, read as any JSON."""
        return [json.loads(text) for text in self.step_functions.inputs.values()]

    @property
    def keys(self) -> list[str]:
        return [given["key"] for given in self.inputs]

    # The guard

    def ask(self, **request: Any) -> dict[str, Any]:
        """One invocation of a new process; returns the literal answer."""
        return Guard(self.environment, self.cloud.clients.dynamodb).handle(request)

    def row(self, key: str = "o-1", namespace: str = NAMESPACE) -> Item:
        """Without its key."""
        place = {"pk": {"S": key}, "sk": {"S": namespace}}
        item: Item = self.cloud.real.dynamodb.get_item(TableName=TABLE, Key=place)["Item"]
        return {name: value for name, value in item.items() if name not in place}

    def rows(self) -> int:
        return int(self.cloud.real.dynamodb.scan(TableName=TABLE)["Count"])

    def write(self, key: str = "o-1", **attributes: dict[str, Any]) -> None:
        """What the state machine or a person writes into a row."""
        row = {**self.row(key), **attributes} if self._is_there(key) else attributes
        place = {"pk": {"S": key}, "sk": {"S": NAMESPACE}}
        self.cloud.real.dynamodb.put_item(TableName=TABLE, Item={**place, **row})

    def delete(self, key: str = "o-1") -> None:
        """DynamoDB deletes the row after its time to live."""
        self.cloud.real.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": key}, "sk": {"S": NAMESPACE}})

    def _is_there(self, key: str) -> bool:
        place = {"pk": {"S": key}, "sk": {"S": NAMESPACE}}
        return "Item" in self.cloud.real.dynamodb.get_item(TableName=TABLE, Key=place)


NewWorkflow = Callable[..., Workflow]


def status_event(input_text: str | None, *, arn: str = STATE_MACHINE, status: str = "ABORTED", **detail: Any) -> str:
    """What EventBridge says of an execution that ended, as text.

    AWS Step Functions Developer Guide, "Automating Step Functions event delivery with EventBridge".
    """
    execution = arn.replace("stateMachine", "execution") + ":one"
    return json.dumps(
        {
            "version": "0",
            "id": "315c1398-40ff-a850-213b-158f73e60175",
            "detail-type": "Step Functions Execution Status Change",
            "source": "aws.states",
            "account": "111122223333",
            "time": "2030-01-02T03:04:06Z",
            "region": "eu-central-1",
            "resources": [execution],
            "detail": {
                "executionArn": execution,
                "stateMachineArn": arn,
                "name": "one",
                "status": status,
                "startDate": 1_893_553_445_000,
                "stopDate": 1_893_553_446_000,
                "input": input_text,
                "output": None,
                "inputDetails": {"included": input_text is not None},
                "outputDetails": None,
                "error": None,
                "cause": None,
                **detail,
            },
        }
    )
