"""A workflow `orders` in process: its real starter and claims, and between them its state machine's order of steps."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import Any

import pytest

from idempotent_consumer.aws import Clients
from idempotent_consumer.event import fingerprint
from idempotent_consumer.starter import Starter
from idempotent_consumer.workflow.claim import ClaimRequest, claim
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.cli.letters_support import Dead, deploy, text
from tests.cli.support import CLAIMS, FUNCTION, STATE_MACHINE, Item, Run, World
from tests.handler.support import record

EXECUTION = STATE_MACHINE.replace("stateMachine", "execution") + ":"
OPERATOR = "arn:aws:iam::123456789012:user/op"
# What a letter of the state machine carries besides the producer's attributes.
_OWN = ("dead_letter_key", "dead_letter_reason", "dead_letter_execution", "dead_letter_detail")


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 59_000


class Workflow:
    """age: seconds ago, by the command line's clock. Keys are business keys unless it is deployed without."""

    def __init__(self, dead: Dead) -> None:
        self.dead = dead
        self.world: World = dead.world
        self.started: list[dict[str, Any]] = []
        # The input of the last execution.
        self.last: dict[str, Any] = {}
        # The keys of which the effect has run, in order.
        self.ran: list[str] = []

    @property
    def settings(self) -> WorkflowSettings:
        return WorkflowSettings.from_environment(self.world.functions[FUNCTION]["Environment"]["Variables"])

    # --- what has happened before

    def execution(
        self, name: str, status: str = "RUNNING", *, age: float = 60, ended: float = 30, reason: str | None = None
    ) -> str:
        """Started `age` seconds ago, and ended `ended` seconds ago unless it runs. reason: for which the state machine
        has failed it. Returns its ARN.
        """
        arn = EXECUTION + name
        end: dict[str, Any] = {} if status == "RUNNING" else {"stopDate": self._moment(ended)}
        end |= {} if reason is None else {"error": f"IdempotentConsumer.{reason}"}
        self.world.executions[arn] = {"executionArn": arn, "status": status, "startDate": self._moment(age), **end}
        return arn

    def claim(
        self,
        data: Mapping[str, Any],
        status: str = "RUNNING",
        *,
        key: str | None = None,
        age: float = 60,
        reason: str | None = None,
    ) -> str:
        """An execution, which has this status now, has claimed the key. Returns the execution's ARN."""
        key = key or str(data["id"])
        arn = self.execution(f"of-{key.removeprefix('sqs:')}", status, age=age, reason=reason)
        answer = self._claim(key, arn, fingerprint(dict(data), self.settings.fingerprint), "m-1", age)
        assert answer["proceed"]
        return arn

    def complete(self, data: Mapping[str, Any], *, key: str | None = None, age: float = 60) -> None:
        self.claim(data, "SUCCEEDED", key=key, age=age)
        self.change(key or data["id"], status={"S": "COMPLETED"}, completedAt=self._ago(age), result={"S": '{"a": 1}'})

    def park(self, data: Mapping[str, Any], *, key: str | None = None, age: float = 60, detail: str = "boom") -> str:
        """Its effect failed after a minute, and may have acted."""
        arn = self.claim(data, "FAILED", key=key, age=age + 60)
        parked = {"reason": {"S": "outcome-unknown"}, "detail": {"S": detail}}
        self.change(key or data["id"], parkedAt=self._ago(age), **parked)
        return arn

    def release(self, data: Mapping[str, Any], *, age: float = 60) -> None:
        """Its effect certainly did nothing."""
        self.claim(data, "FAILED", age=age)
        released = {"reason": {"S": "not-applied"}, "detail": {"S": "throttled"}}
        self.change(data["id"], status={"S": "RELEASED"}, releasedAt=self._ago(age), **released)

    def change(self, key: str, **attributes: Any) -> None:
        """Edit a row by hand; None takes an attribute out."""
        row = {**self.rows()[key], **attributes}
        self.world.store(CLAIMS, {name: value for name, value in row.items() if value is not None})

    def forget(self, key: str) -> None:
        """The claim expires."""
        self.world.dynamodb.delete_item(TableName=CLAIMS, Key={"pk": {"S": key}, "sk": {"S": "ingestion"}})

    # --- letters

    def letter(
        self,
        data: str | Mapping[str, Any],
        reason: str | None = None,
        *,
        key: str | None = None,
        execution: str | None = None,
        detail: str | None = None,
        **more: Any,
    ) -> str:
        """A dead letter: with a key of the state machine, with a reason only of the starter, else of SQS."""
        own = {"dead_letter_key": key, "dead_letter_execution": execution}
        attributes = {name: text(value) for name, value in own.items() if value is not None}
        attributes |= more.pop("attributes", {})
        return self.dead.letter(data, reason, detail, attributes=attributes, **more)

    def event_letter(
        self,
        data: str | Mapping[str, Any],
        status: str = "ABORTED",
        *,
        key: str | None = None,
        execution: str = EXECUTION + "one",
        error: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        **detail: Any,
    ) -> str:
        """What EventBridge says of an execution's end. detail: changes of the event's detail."""
        body = data if isinstance(data, str) else json.dumps(data)
        given = {
            "key": key or json.loads(body)["id"],
            "messageId": "m-1",
            "fingerprint": "f",
            "event": json.loads(body),
            "body": body,
            "attributes": dict(attributes or {}),
        }
        return self.dead.letter(status_event(status, execution, json.dumps(given), error, **detail))

    # --- what is run

    def run(self, *arguments: str) -> Run:
        return self.dead.run(*arguments)

    def work(self, fates: Mapping[str, str], default: str = "completed") -> None:
        """Starter and state machine take all that is in the queue.

        fates: by key, how the effect ends: `completed`, `unknown`, `not-applied`, `aborted`, or it `runs` on.
        """
        self.dead.clock.seconds += 1
        messages = self.world.queued()
        starter = Starter(self.settings, Clients.create(), self)
        for message in messages:
            attributes = {name: _to_record(value) for name, value in message.get("MessageAttributes", {}).items()}
            delivered = record(message["MessageId"], message["Body"], attributes=attributes)
            with redirect_stdout(io.StringIO()):  # its metrics are no output of the command
                answer = starter.handle({"Records": [delivered]}, _Context())
            assert answer == {"batchItemFailures": []}
        started, self.started = self.started, []
        self.last = started[-1] if started else {}
        for number, execution in enumerate(started):
            self._execute(f"run-{len(self.ran)}-{number}", execution, fates.get(execution["key"], default))

    def start_execution(self, **request: Any) -> Any:
        """Stands where the starter calls Step Functions."""
        assert request["stateMachineArn"] == STATE_MACHINE
        self.started.append(json.loads(request["input"]))
        return {}

    def _execute(self, name: str, given: dict[str, Any], fate: str) -> None:
        """As modules/workflow/definition.tf has it."""
        key, arn = given["key"], self.execution(name)
        answer = self._claim(key, arn, given["fingerprint"], given["messageId"], 0)
        if not answer["proceed"]:
            if answer["reason"] == "conflict":
                self._fail(given, arn, "id-reused")
            elif "dead_letter_key" in given["attributes"] and answer["status"] != "COMPLETED":
                self._fail(given, arn, "claim-kept")
            return
        self.ran.append(key)
        if fate == "completed":
            self.change(key, status={"S": "COMPLETED"}, completedAt=self._ago(0))
        elif fate == "unknown":
            self.change(key, parkedAt=self._ago(0), reason={"S": "outcome-unknown"})
            self._fail(given, arn, "outcome-unknown")
        elif fate == "not-applied":
            self.change(key, status={"S": "RELEASED"}, releasedAt=self._ago(0))
            self._fail(given, arn, "not-applied")
        elif fate == "aborted":
            self.execution(name, "ABORTED")
            self.dead.letter(status_event("ABORTED", arn, json.dumps(given)))

    def _fail(self, given: dict[str, Any], arn: str, reason: str) -> None:
        """With over six attributes of the producer's, it sends what EventBridge would."""
        producers = {name: value for name, value in given["attributes"].items() if name not in _OWN}
        body = given["body"]
        if len(producers) > 6:
            kept = {"key": given["key"], "body": body, "attributes": producers}
            body, producers = status_event("FAILED", arn, json.dumps(kept), f"IdempotentConsumer.{reason}"), {}
        self.letter(body, reason, key=given["key"], execution=arn, detail="d", attributes=producers)

    def _claim(self, key: str, owner: str, digest: str, message_id: str, age: float) -> dict[str, Any]:
        request = {"key": key, "owner": owner, "fingerprint": digest, "messageId": message_id}
        seconds = self.settings.retention_seconds
        wanted = ClaimRequest.read({**request, "retentionSeconds": seconds, "returnResult": True})
        return claim(self.world.dynamodb, CLAIMS, wanted, self._ago_ms(age))

    # --- what is there

    def rows(self) -> dict[str, Item]:
        return {row["pk"]["S"]: row for row in self.world.dynamodb.scan(TableName=CLAIMS)["Items"]}

    @property
    def queued(self) -> list[tuple[str, dict[str, Any]]]:
        """Bodies and attributes of what is in the queue."""
        messages = self.dead.queued
        return [
            (each.body, {name: _value(value) for name, value in each.message_attributes.items()}) for each in messages
        ]

    def _ago_ms(self, age: float) -> int:
        return self.world.now_ms - int(age * 1000)

    def _ago(self, age: float) -> dict[str, str]:
        return {"N": str(self._ago_ms(age))}

    def _moment(self, age: float) -> datetime:
        return datetime.fromtimestamp(self._ago_ms(age) / 1000, UTC)


def status_event(status: str, execution: str, given: str | None, error: str | None = None, **detail: Any) -> str:
    """As EventBridge sends it (Step Functions Developer Guide, "Automating Step Functions event delivery")."""
    return json.dumps(
        {
            "version": "0",
            "id": "315c1398-40ff-a850-213b-158f73e60175",
            "detail-type": "Step Functions Execution Status Change",
            "source": "aws.states",
            "account": "123456789012",
            "time": "2030-01-02T03:04:06Z",
            "region": "us-east-1",
            "resources": [execution],
            "detail": {
                "executionArn": execution,
                "stateMachineArn": STATE_MACHINE,
                "name": execution.rpartition(":")[2],
                "status": status,
                "startDate": 1893553446000,
                "stopDate": 1893553447000,
                "input": given,
                "inputDetails": {"included": given is not None},
                "output": None,
                "error": error,
                "cause": None,
                **detail,
            },
        }
    )


def deploy_workflow(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, key: str = "id", **options: Any
) -> Workflow:
    """key: the path to its business key; blank for the message's own id. See `World` for the options."""
    workflow = Workflow(deploy(new_world, monkeypatch, workflow=key, **options))
    workflow.world.on("GetCallerIdentity", answers={"Arn": OPERATOR})
    return workflow


def order(event_id: str = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def _to_record(value: Mapping[str, Any]) -> dict[str, Any]:
    if "BinaryValue" in value:
        return {"dataType": value["DataType"], "binaryValue": base64.b64encode(value["BinaryValue"]).decode()}
    return {"dataType": value["DataType"], "stringValue": value["StringValue"]}


def _value(attribute: Mapping[str, Any]) -> Any:
    return attribute["BinaryValue"] if "BinaryValue" in attribute else attribute["StringValue"]
