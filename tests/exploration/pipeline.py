"""The pipeline's surroundings in memory: tables, topic and queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.aws import Clients
from tests.exploration.dynamodb import Database, Item, Place
from tests.exploration.faults import FAULTS, Fault, Request, reasons_of
from tests.exploration.pipeline_law import STOCK, WINDOW_MS, Law
from tests.exploration.scheduling import Client, Play
from tests.handler.support import BUSINESS, LEDGER, NOW_MS, record

DEAD_LETTER_REASON = "dead_letter_reason"
CLIENTS = Clients(
    dynamodb=Client(
        {
            "batch_execute_statement": "BatchExecuteStatement",
            "batch_get_item": "BatchGetItem",
            "put_item": "PutItem",
            "query": "Query",
            "transact_write_items": "TransactWriteItems",
        }
    ),
    sns=Client({"publish_batch": "PublishBatch"}),
    sqs=Client({"send_message": "SendMessage"}),
    sqs_short=None,
)


@dataclass(frozen=True)
class Message:
    """A message of the queue. reasons: those for which it may be dead-lettered; without any it never may.

    must_die: it can never succeed, and must be in the dead-letter queue in the end.
    """

    id: str
    body: str
    group: str | None = None
    reasons: frozenset[str] = frozenset()
    must_die: bool = False

    def received(self, count: int) -> dict[str, Any]:
        return record(self.id, self.body, group=self.group, receive_count=count)


@dataclass(frozen=True)
class Known:
    """One event of a message, as the law knows it."""

    id: str
    fingerprint: str
    row: str


class PipelineWorld:
    """Tables, topic and queues during one play. messages: in the order of the queue. is_counting: each event adds 1 to
    `reserved` of the shelf."""

    def __init__(
        self, messages: Sequence[Message], events: Mapping[str, Sequence[Known]], *, is_counting: bool = False
    ) -> None:
        self.now_ms = NOW_MS
        self.actor = ""
        self.messages = messages
        self.events = events
        self.is_counting = is_counting
        self.database = _Watched(self)
        self.published: Counter[tuple[str, str]] = Counter()
        self.letters: Counter[tuple[str, str]] = Counter()
        self.deduplicated: set[str] = set()
        self.expired: set[str] = set()
        self.law = Law(self)
        self.play: Play

    # What the processes do

    def call(self, operation: str, request: Request) -> Any:
        if operation == "PublishBatch":
            return self._publish(request["PublishBatchRequestEntries"])
        if operation == "SendMessage":
            if self._is_new(request):
                letter = request["MessageBody"], request["MessageAttributes"][DEAD_LETTER_REASON]["StringValue"]
                self.letters[letter] += 1
                self.law.note_letter(*letter)
            return {}
        if operation == "BatchGetItem":
            self.law.note_read({key["event_id"]["S"] for key in request["RequestItems"][LEDGER]["Keys"]})
        return self.database.call(operation, request)

    def rows_of(self, request: Request) -> list[Callable[[], None]]:
        """A transaction as writes that become visible one after the other."""
        writes = self.database.prepare(request)
        places = {place for place, _ in writes}
        self.database.busy |= places

        def make(place: Place, item: Item | None, is_last: bool) -> None:
            self.database.write(place, item)
            if is_last:
                self.database.busy -= places

        last = len(writes) - 1
        return [partial(make, *write, number == last) for number, write in enumerate(writes)]

    def faults(self, operation: str, request: Request) -> Sequence[Fault]:
        """Those that make a difference."""
        faults = FAULTS.get(operation, ())
        if operation != "TransactWriteItems":
            return faults
        idle: Sequence[Fault]
        try:
            self.database.prepare(request)
            idle = (Fault.UNNAMED,)
        except ClientError as refusal:
            failed = sum(reason["Code"] != "None" for reason in reasons_of(refusal))
            idle = (Fault.ONE_BY_ONE,) if failed > 1 else (Fault.ONE_BY_ONE, Fault.UNNAMED)
        return [fault for fault in faults if fault not in idle]

    def _publish(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        for entry in entries:
            event_id = entry["MessageAttributes"]["event_id"]["StringValue"]
            if self._is_new(entry):
                self.published[event_id, entry["Message"]] += 1
            self.law.note_publishing(event_id, entry["Message"])
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}

    def _is_new(self, request: Request) -> bool:
        """A FIFO queue or topic drops, without a word, what it has got under the same deduplication id."""
        deduplication_id = request.get("MessageDeduplicationId")
        is_new = deduplication_id not in self.deduplicated
        if deduplication_id is not None:
            self.deduplicated.add(deduplication_id)
        return is_new

    # What happens by itself

    def expire(self) -> None:
        """All that has settled is past its time to live, and DynamoDB deletes it."""
        self.pass_window()
        for place, item in list(self.database.rows.items()):
            if place[0] == LEDGER and int(item.get("ttl", {"N": "9" * 12})["N"]) * 1000 <= self.now_ms:
                self.expired.add(place[1])
                self.database.write(place, None)

    def pass_window(self) -> None:
        """It is past its time to live, but not deleted yet."""
        self.now_ms += WINDOW_MS + 1_000

    def key(self) -> Any:
        """All that decides what happens from here on."""
        return (
            self.now_ms,
            tuple(sorted(self.database.texts.items())),
            tuple(sorted(self.database.busy)),
            tuple(sorted(self.published)),
            tuple(sorted(self.letters)),
            tuple(sorted(self.deduplicated)),
            tuple(sorted(self.expired)),
            self.law.state(),
        )


class _Watched(Database):
    def __init__(self, world: PipelineWorld) -> None:
        super().__init__(
            {LEDGER: {"event_id": "S"}, BUSINESS: {"id": "S"}, STOCK: {"sku": "S"}},
            {LEDGER: ("pending", "pending_shard", "created_at")},
        )
        self._world = world
        self.texts: dict[Place, str] = {}

    def write(self, place: Place, item: Item | None) -> None:
        before = self.rows.get(place)
        super().write(place, item)
        self.texts[place] = repr(item)
        self._world.law.note(place, before, item)
