"""What the consumer's calls have changed, in the order in which it happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.commit import stored_notification
from idempotent_consumer.dead_letter import DETAIL, REASON
from idempotent_consumer.event import Event
from idempotent_consumer.items import Item
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.testing.problem import listed
from idempotent_consumer.testing.result import Heard
from idempotent_consumer.testing.tables import LEDGER

COMMIT, READ, SETTLE, MARK, PUBLISH, BURY = (
    "TransactWriteItems",
    "BatchGetItem",
    "PutItem",
    "BatchExecuteStatement",
    "PublishBatch",
    "SendMessage",
)


@dataclass(frozen=True, slots=True)
class Letter:
    """A message in the dead-letter queue. committed_before: how many events were committed when it got there."""

    body: str
    reason: str
    detail: str
    committed_before: int


@dataclass(slots=True)
class History:
    """committed: event ids, each as often as its rows were written. superseded: what changed nothing but is settled.

    sent: settled for good. unheard: marked as sent before all of its notifications were published. steps: all effects.
    """

    committed: list[str] = field(default_factory=list)
    fingerprints: dict[str, str] = field(default_factory=dict)
    superseded: list[str] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    unheard: list[str] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    steps: int = 0
    _to_publish: dict[str, set[int]] = field(default_factory=dict)

    def note(self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """A call has taken effect."""
        if operation == COMMIT:
            for item in _ledger_items(request):
                self._commit(item)
        elif operation == SETTLE:
            self._supersede(request["Item"])
        elif operation == PUBLISH:
            self._publish(request, {entry["Id"] for entry in answer["Successful"]})
        elif operation == MARK:
            for statement, response in zip(request["Statements"], answer["Responses"], strict=True):
                if "Error" not in response:
                    self._mark(statement["Parameters"][-1]["S"])
        elif operation == BURY:
            self._bury(request)
        self.steps += operation != READ

    def holds(self, event: Event) -> bool:
        """Whether it is settled for good: this event, and no other of its id."""
        return event.id in self.sent and self.is_of(event)

    def is_of(self, event: Event) -> bool:
        """Whether what is written under its id is of this event."""
        return self.fingerprints.get(event.id) == event.fingerprint

    def _supersede(self, item: Item) -> None:
        event_id = item["event_id"]["S"]
        self.superseded.append(event_id)
        self.sent.add(event_id)
        self.fingerprints[event_id] = item["fingerprint"]["S"]

    def _commit(self, item: Item) -> None:
        event_id = item["event_id"]["S"]
        self.committed.append(event_id)
        self.fingerprints[event_id] = item["fingerprint"]["S"]
        if item["status"]["S"] == "sent":
            self.sent.add(event_id)
        else:
            self._to_publish[event_id] = set(range(1, 1 + len(stored_notification(item).all)))

    def _publish(self, request: Mapping[str, Any], done: set[str]) -> None:
        for entry in request["PublishBatchRequestEntries"]:
            if entry["Id"] in done:
                heard = _heard(entry)
                self.heard.append(heard)
                self._to_publish.get(heard.event_id, set()).discard(heard.attributes.get("notification_number", 1))

    def _mark(self, event_id: str) -> None:
        self.sent.add(event_id)
        if self._to_publish.get(event_id):
            self.unheard.append(event_id)

    def _bury(self, request: Mapping[str, Any]) -> None:
        texts = {name: value.get("StringValue", "") for name, value in request["MessageAttributes"].items()}
        letter = Letter(request["MessageBody"], texts.get(REASON, ""), texts.get(DETAIL, ""), len(self.committed))
        self.letters.append(letter)


def described(operation: str, request: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """A call in words. labels: of what a message is, by its body."""
    if operation == BURY:
        return f"{operation} of {labels.get(request['MessageBody'], 'a message')} to the dead-letter queue"
    return f"{operation} of {listed(_event_ids(operation, request))}"


def _event_ids(operation: str, request: Mapping[str, Any]) -> list[str]:
    if operation == COMMIT:
        return [item["event_id"]["S"] for item in _ledger_items(request)]
    if operation == READ:
        return [key["event_id"]["S"] for table in request["RequestItems"].values() for key in table["Keys"]]
    if operation == SETTLE:
        return [request["Item"]["event_id"]["S"]]
    if operation == PUBLISH:
        entries = request["PublishBatchRequestEntries"]
        return [entry["MessageAttributes"]["event_id"]["StringValue"] for entry in entries]
    return [statement["Parameters"][-1]["S"] for statement in request["Statements"]]


def _heard(entry: Mapping[str, Any]) -> Heard:
    attributes = {name: _value(value) for name, value in entry["MessageAttributes"].items()}
    return Heard(str(attributes.pop("event_id", "")), _json(entry["Message"]), attributes)


def _value(attribute: Mapping[str, Any]) -> Any:
    text = attribute["StringValue"]
    return text if attribute["DataType"] == "String" else _json(text)


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (Rejected, RecursionError):
        return text


def _ledger_items(request: Mapping[str, Any]) -> list[Item]:
    puts = [action["Put"] for action in request["TransactItems"] if "Put" in action]
    return [put["Item"] for put in puts if put["TableName"] == LEDGER]
