"""A workflow in memory: the real starter and guard, and between them Step Functions, a table, queues and EventBridge.

The state machine's order of steps is written down here; what it writes, and on which condition, is read from
modules/workflow/definition*.tf. Where something happens that never may, that is noted in `complaints`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from idempotent_consumer.aws import Clients
from idempotent_consumer.guard import Guard
from idempotent_consumer.starter import Starter
from idempotent_consumer.workflow.claim import ClaimUnavailable
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.handler.plan_model import Expression
from tests.handler.support import NOW_MS, UPDATE, Item, Killed, client_error, record
from tests.handler.workflow_support import NAMESPACE, START, STARTER_ENVIRONMENT, STATE_MACHINE, TABLE, status_event

DEFINITION = Path(__file__).parents[2] / "modules" / "workflow"
RETENTION_SECONDS = 1_555_200
# Of each task, where it is twenty and more.
ATTEMPTS = 3
# A failed call of a task; Step Functions tries it again.
FAILURES = (ClientError, BotoCoreError, ClaimUnavailable, Killed)
REFUSED = "ConditionalCheckFailedException"

# The state, the reason it gives, and what is done first.
FAILING = {
    "Claim kept": ("claim-kept", "Extend claim"),
    "Conflict": ("id-reused", "Dead letter"),
    "Guard failed": ("guard-failed", "Release"),
    "Not applied": ("not-applied", "Release"),
    "Outcome not recorded": ("outcome-not-recorded", "Dead letter"),
    "Outcome unknown": ("outcome-unknown", "Park"),
}

Request = dict[str, Any]
Effect = Callable[[], Any]
# The next state, and what it is given.
Step = tuple[str | None, Any]


@cache
def definition() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DEFINITION.glob("definition*.tf")))


@cache
def state_text(name: str) -> str:
    """The text of a state that calls a service. Of the guards, the direct one's."""
    text = definition()
    text = text[text.index("direct = {") :] if name in ("Guard", "Look up claim") else text
    found = re.search(rf'^( +)"?{name}"? = {{\n(.*?)^\1}}', text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[2]


def one(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return str(found)


def write_of(name: str, values: Mapping[str, Any]) -> Request:
    """The UpdateItem of a state, without its key. values: of the placeholders that the definition computes."""
    text, record = state_text(name), state_text("record")
    if "merge(local.record.values" in text:
        text += record
    text = text.replace("local.record.condition", '"' + one(r'condition += "(.*)"$', record) + '"')
    text = text.replace("${local.record.sets}", one(r'sets += "(.*)"$', record))
    literal = {key: {"S": value} for key, value in re.findall(r'"(:\w+)" += { S = "([A-Z_]+)" }', text)}
    return {
        "ConditionExpression": one(r'ConditionExpression += "(.*)"$', text),
        "UpdateExpression": one(r'UpdateExpression += "(.*)"$', text),
        "ExpressionAttributeNames": dict(re.findall(r'"(#\w+)" = "(\w+)"', text)),
        "ExpressionAttributeValues": {
            each: literal.get(each) or values[each] for each in re.findall(r'"(:\w+)" += ', text)
        },
    }


class Letter(NamedTuple):
    """A message in the dead-letter queue; attributes in the SQS API's spelling. reason: also where none fits on it."""

    body: str
    attributes: Mapping[str, Mapping[str, str]]
    reason: str = ""


@dataclass
class Message:
    """A message in the queue; attributes in Lambda's spelling."""

    id: str
    body: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    received: int = 0


@dataclass
class Execution:
    """status: RUNNING, or how it ended. life: of the row that it has claimed. output, error: of its end. last: the
    state that it was in last."""

    name: str
    input: str
    status: str = "RUNNING"
    output: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    state: str | None = "Guard"
    data: Any = None
    life: int | None = None
    is_redriven: bool = False
    last: Step = None, None
    tries: Counter[str] = field(default_factory=Counter)

    @property
    def arn(self) -> str:
        return STATE_MACHINE.replace("stateMachine", "execution") + ":" + self.name

    @property
    def given(self) -> dict[str, Any]:
        given: dict[str, Any] = json.loads(self.input)
        return given

    @property
    def is_letter(self) -> bool:
        return "dead_letter_key" in self.given["attributes"]


class World:
    """interfere: decides over each call; it gets what puts it into effect. decide: what becomes of an effect, which is
    `applied`, `not-applied`, `unknown` (it may have acted, and did) or `unknown-idle` (and did not).

    lives: how often the row of a key has been deleted. effects, releases: how often the effect ran, and a person
    released the key, by key and life. ran: the bodies whose effect ran.
    """

    def __init__(self, guard: str, has_key: bool, is_idempotent: bool) -> None:
        self.now_ms = NOW_MS
        self.rows: dict[str, Item] = {}
        self.lives: Counter[str] = Counter()
        self.effects: Counter[tuple[str, int]] = Counter()
        self.releases: Counter[tuple[str, int]] = Counter()
        self.ran: set[str] = set()
        self.queue: list[Message] = []
        self.letters: list[Letter] = []
        self.executions: dict[str, Execution] = {}
        self.complaints: list[str] = []
        self.interfere: Callable[[Effect], Any] = lambda effect: effect()
        self.decide: Callable[[], str] = lambda: "applied"
        self._guard = guard
        self._is_idempotent = is_idempotent
        self._sent = 0
        # The state and the execution that wrote a row last.
        self._wrote: dict[str, tuple[str, str]] = {}
        left_out = set() if has_key else {"EVENT_ID"}
        self._environment = {name: value for name, value in STARTER_ENVIRONMENT.items() if name not in left_out}
        self._service = _Service(self)

    # The queue and the starter

    def send(self, body: str, attributes: Mapping[str, Any] | None = None) -> None:
        self._sent += 1
        self.queue.append(Message(f"m-{self._sent}", body, attributes or {}))

    def replay(self, letter: Letter) -> None:
        """A person sends a letter back; it has a new id then."""
        self.letters.remove(letter)
        self.send(letter.body, {name: _to_record(value) for name, value in letter.attributes.items()})

    def give_up(self, message: Message) -> None:
        """The queue's redrive policy: it has been received too often."""
        self.queue.remove(message)
        self.letters.append(Letter(message.body, {name: _to_api(v) for name, v in message.attributes.items()}))

    def deliver(self, messages: list[Message]) -> list[Message]:
        """One invocation of a new starter; returns the messages that are settled. Raises what it raises."""
        for message in messages:
            message.received += 1
        clients = Clients(dynamodb=None, sns=None, sqs=self._service, sqs_short=self._service)
        starter = Starter(WorkflowSettings.from_environment(self._environment), clients, self._service)
        records = [
            record(each.id, each.body, attributes=each.attributes, receive_count=each.received) for each in messages
        ]
        answer = starter.handle({"Records": records}, _Time())
        back = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        return [message for message in messages if message.id not in back]

    def start(self, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:
        known = self.executions.get(name)
        if known is None:
            self.executions[name] = Execution(name, input)
        elif not (self._is_idempotent and known.status == "RUNNING" and known.input == input):
            raise client_error("ExecutionAlreadyExists", START)
        return {}

    # The table

    def update(self, by: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """UpdateItem. Raises ConditionalCheckFailedException, with the row."""
        key = request["Key"]["pk"]["S"]
        row, used = self.rows.get(key), set[str]()
        holds = Expression(request["ConditionExpression"], request, row or {}, used).holds()
        changed = _updated(request, row or request["Key"], used)
        given = {*request["ExpressionAttributeNames"], *request["ExpressionAttributeValues"]}
        if given != {name for name in used if name[0] in "#:"}:
            self.complaints.append(f"DynamoDB would not take {request}")
        writer = by, request["ExpressionAttributeValues"].get(":owner", {"S": ""})["S"]
        if not holds:
            if self._wrote.get(key) == writer:
                self.complaints.append(f"{by} was refused what it had written itself: {key}")
            wants_row = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            raise client_error(REFUSED, UPDATE, **({"Item": row} if row and wants_row else {}))
        self._write(by, key, row or {}, changed)
        self._wrote[key] = writer
        return {}

    def release(self, key: str, is_unparked: bool) -> None:
        """A person says that the effect did not run, or may run again."""
        row = self.rows[key]
        self.releases[key, self.lives[key]] += 1
        changed = {**row, "status": {"S": "RELEASED"}, "audit": {"L": [*row.get("audit", {"L": []})["L"], {"M": {}}]}}
        if is_unparked:
            changed.pop("parkedAt", None)
        self._write("person", key, row, changed)
        self._wrote.pop(key, None)

    def sweep(self, key: str) -> None:
        """DynamoDB deletes a row that is past its time to live."""
        if int(self.rows[key]["expiresAt"]["N"]) * 1000 <= self.now_ms:
            del self.rows[key]
            self._wrote.pop(key, None)
            self.lives[key] += 1

    def _write(self, by: str, key: str, before: Item, after: Item) -> None:
        was, is_now = before.get("status", {}).get("S"), after["status"]["S"]
        if was == "COMPLETED" != is_now:
            self.complaints.append(f"{by} took back what is completed: {key}")
        if "parkedAt" in before and was == "IN_PROGRESS" and "parkedAt" not in after and by != "person":
            self.complaints.append(f"{by} took back what is parked: {key}")
        audit = before.get("audit", {"L": []})["L"]
        if audit and after.get("audit", {"L": []})["L"][: len(audit)] != audit:
            self.complaints.append(f"{by} lost the audit of {key}")
        self.rows[key] = after

    # The state machine

    def running(self) -> list[Execution]:
        return [each for each in self.executions.values() if each.status == "RUNNING"]

    def step(self, execution: Execution) -> None:
        """One state, or one attempt at it."""
        name, given = execution.state, execution.data
        assert name is not None and execution.status == "RUNNING"
        execution.last = name, given
        if name in FAILING:
            reason, following = FAILING[name]
            execution.state, execution.data = following, reason
        else:
            execution.state, execution.data = self._states[name](self, execution, given)

    def redrive(self, execution: Execution) -> None:
        """A person lets one that has failed go on, at the state where it stopped."""
        if execution.state is None:
            execution.state, execution.data = execution.last
        if execution.state == "Effect answers":
            execution.state, execution.data = "Effect", None
        execution.status, execution.error, execution.is_redriven = "RUNNING", "", True
        execution.tries.clear()

    def end(self, execution: Execution, status: str, error: str = "", *, is_told: bool = True) -> None:
        """It ends without a letter of its own: EventBridge tells. is_told: with its input."""
        execution.status, execution.error = status, error
        text = execution.input if is_told else None
        self.letters.append(Letter(status_event(text, status=status, error=error, executionArn=execution.arn), {}))

    def _task(self, execution: Execution, name: str, call: Effect, then: Step, failed: Step, refused: Step) -> Step:
        try:
            call()
        except FAILURES as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == REFUSED:
                return refused
            execution.tries[name] += 1
            return (name, execution.data) if execution.tries[name] < ATTEMPTS else failed
        return then

    def _ask_guard(self, execution: Execution, _data: Any) -> Step:
        given, answers = execution.given, []
        failed: Step = "Guard failed", None
        if self._guard == "function":
            payload = {
                "fingerprint": given["fingerprint"],
                "key": given["key"],
                "messageId": given["messageId"],
                "namespace": NAMESPACE,
                "owner": execution.arn,
                "retentionSeconds": RETENTION_SECONDS,
                "returnResult": True,
            }
            guard = Guard({"CONSUMER_NAME": "orders", "IDEMPOTENCY_TABLE": TABLE}, self._service)
            step = self._task(
                execution, "Guard", lambda: answers.append(guard.handle(payload)), ("Claimed?", None), failed, failed
            )
            if step[0] != "Claimed?":
                return step
            if answers[0]["proceed"]:
                execution.life = self.lives[given["key"]]
            return "Claimed?", answers[0]
        claimed: Step = "Claimed?", {"proceed": True}
        look_up: Step = "Look up claim", None
        step = self._task(execution, "Guard", self._writing(execution, "Guard", ""), claimed, failed, look_up)
        if step is claimed:
            execution.life = self.lives[given["key"]]
        return step

    def _look_up(self, execution: Execution, _data: Any) -> Step:
        rows: list[Item] = []
        given = execution.given
        failed: Step = "Guard failed", None
        get = lambda: rows.append(self.interfere(lambda: self.rows.get(given["key"], {})))  # noqa: E731
        step = self._task(execution, "Look up claim", get, ("Claimed?", None), failed, failed)
        if step[0] != "Claimed?":
            return step
        row = rows[-1]
        status = row.get("status", {}).get("S")
        reason = "parked" if "parkedAt" in row else "duplicate"
        if "fingerprint" in row and row["fingerprint"]["S"] != given["fingerprint"]:
            reason = "conflict"
        if not row or status == "RELEASED":
            reason = "gone"
        return "Claimed?", {"proceed": False, "reason": reason, "status": status}

    def _choose(self, execution: Execution, answer: Mapping[str, Any]) -> Step:
        if answer["proceed"]:
            return "Effect", None
        if answer["reason"] == "gone":
            return "Guard", None
        if answer["reason"] == "conflict":
            return "Conflict", None
        if execution.is_letter and answer["status"] != "COMPLETED":
            return "Claim kept", None
        return "Skipped", answer

    def _begin_effect(self, execution: Execution, _data: Any) -> Step:
        if execution.is_redriven:  # it may have begun before
            return "Outcome unknown", None
        outcome = self.decide()
        if outcome in ("applied", "unknown"):
            given = execution.given
            assert execution.life is not None
            place = given["key"], execution.life
            self.effects[place] += 1
            self.ran.add(given["body"])
            if self.effects[place] > 1 + self.releases[place]:
                self.complaints.append(f"the effect ran once too often: {place}")
        return "Effect answers", outcome

    def _end_effect(self, execution: Execution, outcome: str) -> Step:
        if outcome == "applied":
            return "Complete", None
        if outcome == "not-applied":
            execution.tries["Effect"] += 1
            return ("Effect" if execution.tries["Effect"] < ATTEMPTS else "Not applied"), None
        return "Outcome unknown", None

    def _complete(self, execution: Execution, _data: Any) -> Step:
        failed: Step = "Outcome not recorded", None
        writing = self._writing(execution, "Complete", "")
        step = self._task(execution, "Complete", writing, (None, None), failed, failed)
        if step[0] is None:
            execution.status, execution.output = "SUCCEEDED", {"status": "completed"}
        return step

    def _skip(self, execution: Execution, answer: Mapping[str, Any]) -> Step:
        execution.status, execution.output = "SUCCEEDED", {"status": "skipped", "reason": answer["reason"]}
        if execution.life is not None:
            self.complaints.append(f"skipped what it has claimed: {execution.name}")
        return None, None

    def _release(self, execution: Execution, reason: str) -> Step:
        bury: Step = "Dead letter", reason
        return self._task(execution, "Release", self._writing(execution, "Release", reason), bury, bury, bury)

    def _park(self, execution: Execution, reason: str) -> Step:
        bury: Step = "Dead letter", reason
        return self._task(execution, "Park", self._writing(execution, "Park", reason), bury, bury, bury)

    def _extend(self, execution: Execution, reason: str) -> Step:
        bury: Step = "Dead letter", reason
        return self._task(execution, "Extend claim", self._writing(execution, "Extend claim", ""), bury, bury, bury)

    def _bury(self, execution: Execution, reason: str) -> Step:
        given, body = execution.given, execution.given["body"]
        own = {
            "dead_letter_detail": "why",
            "dead_letter_execution": execution.arn,
            "dead_letter_key": given["key"],
            "dead_letter_reason": reason,
        }
        producers = {name: value for name, value in given["attributes"].items() if name not in own}
        attributes = {name: {"DataType": "String", "StringValue": text} for name, text in own.items()}
        if len(producers) > 6:
            text = json.dumps({"key": given["key"], "body": body, "attributes": producers})
            error = f"IdempotentConsumer.{reason}"
            body = status_event(text, status="FAILED", error=error, executionArn=execution.arn)
        else:
            attributes |= producers
        letter = Letter(body, attributes, reason)
        send = lambda: self.interfere(lambda: self.letters.append(letter))  # noqa: E731
        unsent: Step = None, None
        step = self._task(execution, "Dead letter", send, ("Failed", reason), unsent, unsent)
        if step is unsent:
            self.end(execution, "FAILED", "States.TaskFailed")
        return step

    def _fail(self, execution: Execution, reason: str) -> Step:
        execution.status, execution.error = "FAILED", f"IdempotentConsumer.{reason}"
        return None, None

    def _writing(self, execution: Execution, name: str, reason: str) -> Effect:
        given = execution.given
        values = {
            ":now": {"N": str(self.now_ms)},
            ":expires": {"N": str(self.now_ms // 1000 + RETENTION_SECONDS)},
            ":owner": {"S": execution.arn},
            ":reason": {"S": reason},
            ":detail": {"S": "why"},
            ":message_id": {"S": given["messageId"]},
            ":fingerprint": {"S": given["fingerprint"]},
            ":result": {"S": "7"},
        }
        request = {**write_of(name, values), "Key": {"pk": {"S": given["key"]}, "sk": {"S": NAMESPACE}}}
        return lambda: self.interfere(lambda: self.update(name, request))

    _states: Mapping[str, Callable[[World, Execution, Any], Step]] = {
        "Guard": _ask_guard,
        "Look up claim": _look_up,
        "Claimed?": _choose,
        "Effect": _begin_effect,
        "Effect answers": _end_effect,
        "Complete": _complete,
        "Skipped": _skip,
        "Release": _release,
        "Park": _park,
        "Extend claim": _extend,
        "Dead letter": _bury,
        "Failed": _fail,
    }


class _Service:
    """The clients of the starter and the guard."""

    def __init__(self, world: World) -> None:
        self._world = world

    def start_execution(self, **request: Any) -> Any:
        return self._world.interfere(lambda: self._world.start(**request))

    def update_item(self, **request: Any) -> Any:
        return self._world.interfere(lambda: self._world.update("Guard", request))

    def send_message(self, QueueUrl: str, MessageBody: str, MessageAttributes: Mapping[str, Any]) -> Any:
        letter = Letter(MessageBody, MessageAttributes, MessageAttributes["dead_letter_reason"]["StringValue"])
        return self._world.interfere(lambda: self._world.letters.append(letter))

    def change_message_visibility_batch(self, **_request: Any) -> Any:
        return self._world.interfere(lambda: {"Successful": [], "Failed": []})


class _Time:
    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def _updated(request: Mapping[str, Any], row: Item, used: set[str]) -> Item:
    """Here an update sets attributes to values, then removes some."""
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    sets, _, removes = request["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    pairs = [pair.split(" = ") for pair in sets.split(", ")]
    gone = removes.split(", ") if removes else []
    used.update(token for pair in pairs for token in pair)
    used.update(gone)
    changed = {**row, **{names.get(name, name): values[value] for name, value in pairs}}
    return {name: value for name, value in changed.items() if name not in {names.get(each, each) for each in gone}}


def _to_record(value: Mapping[str, str]) -> dict[str, Any]:
    return {"dataType": value["DataType"], "stringValue": value["StringValue"]}


def _to_api(value: Mapping[str, str]) -> dict[str, str]:
    return {"DataType": value["dataType"], "StringValue": value["stringValue"]}


def drained(world: World) -> Iterator[None]:
    """All goes well until nothing is left in the queue, and no execution runs; in turns."""
    while world.queue or world.running():
        for message in world.deliver(list(world.queue)):
            world.queue.remove(message)
        for execution in world.running():
            world.step(execution)
        yield
