"""The requests that the library sends in a random life of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.calls import Budget
from idempotent_consumer.claims.claim import Claim
from idempotent_consumer.claims.resolution import Decision, NotResolvable, Resolution
from idempotent_consumer.claims.row import Row, StoredResult, read_row
from idempotent_consumer.claims.table import ClaimFailed, Claims
from idempotent_consumer.commit import PENDING_SHARDS, Commit, prepare, sent_attributes
from idempotent_consumer.event import Event
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.pending import PendingIndex
from idempotent_consumer.plan import Action, Check, Delete, Notification, Plan, Put, Update
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.settings import Settings, WriteMode
from idempotent_consumer.workflow import claim as workflow_claim
from tests.exploration.comparison import BUSINESS, COUNTERS, LEDGER, LINES, METHODS, WORKFLOW, Send
from tests.exploration.random_values import NAMES, random_condition, random_value_of, random_values
from tests.handler.support import NOW_MS
from tests.handler.workflow_model import write_of

_ENVIRONMENT = {
    "BUSINESS_TABLE": BUSINESS,
    "CONSUMER_NAME": "orders",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.test/dead",
    "EVENT_ENVELOPE": "raw",
    "LEDGER_TABLE": LEDGER,
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "60000",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_MAX_ATTEMPTS": "3",
    "OPERATION_RETRY_SECONDS": "30",
    "OPERATION_SETTLE_SECONDS": "30",
    "QUEUE_URL": "https://sqs.test/orders",
    "TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:orders",
    "TTL_WINDOW_DAYS": "30",
    "VISIBILITY_TIMEOUT_SECONDS": "360",
    "BACKOFF_MAX_SECONDS": "900",
    "RETENTION_SECONDS": "345600",
    "MAX_RECEIVE_COUNT": "15",
}
_STATES = ("Guard", "Complete", "Release", "Park", "Extend claim")


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 300_000


class Client:
    """A client whose calls are the API's, by their names there."""

    def __init__(self, send: Send) -> None:
        self._operations = {method: operation for operation, method in METHODS.items()}
        self._send = send

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = self._operations[method]
        return lambda **request: self._send(operation, request)


class Life:
    """What the library does, in a random order. call: gets each request. Each step makes at least one."""

    def __init__(self, chance: Random, send: Send, rows: Callable[[], Mapping[Any, Any]]) -> None:
        self._chance = chance
        self._rows = rows
        self._now_ms = NOW_MS
        self._events = 0
        client = Client(send)
        self._client = client
        self._settings = Settings.from_environment(_ENVIRONMENT)
        self._ledger = Ledger(client, LEDGER)
        self._index = PendingIndex(client, LEDGER)
        operation = OperationSettings.from_environment(_ENVIRONMENT)
        self._claims = Claims(client, operation, lambda: self._now_ms)
        self._held: list[Claim] = []
        self._budget = Budget(_Context())

    def step(self) -> None:
        self._now_ms += self._chance.choice((0, 1, 1000, 70_000, 300_000))
        step = self._chance.choice(
            (
                self._commit,
                self._commit,
                self._commit,
                self._commit,
                self._settle,
                self._mark,
                self._recall,
                self._read_index,
                self._claim,
                self._claim,
                self._work,
                self._work,
                self._ask_guard,
                self._run_state,
            )
        )
        with suppress(Rejected, InvalidPlan, ClaimFailed, NotResolvable, workflow_claim.ClaimUnavailable):
            step()

    # --- events

    def _commit(self) -> None:
        ids = self._chance.sample(range(6), self._chance.choice((1, 1, 1, 2, 3)))
        if self._chance.random() < 0.6:  # events that the ledger does not know, so that the transaction may succeed
            self._events += 1
            ids = [10 * self._events]
        self._ledger.write([self._prepared(f"e-{number}") for number in ids])

    def _settle(self) -> None:
        self._ledger.settle_superseded(self._prepared(self._event_id()), self._budget)

    def _prepared(self, event_id: str) -> Commit:
        chance = self._chance
        event = Event(event_id, {}, chance.choice(("print-1", "print-2")))
        writes = [self._action() for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        plan = Plan(writes, chance.choice((None, Notification({"n": 1}))))
        return prepare(event, plan, f"m-{chance.randrange(9)}", self._now_ms, self._settings)

    def _action(self) -> Action:
        chance = self._chance
        table = chance.choice((BUSINESS, LINES, COUNTERS))
        condition = chance.choice((None, None, random_condition(chance)))
        kind = chance.choice(("put", "put", "update", "update", "add", "delete", "check"))
        if kind == "put":
            mode = chance.choice(tuple(WriteMode))
            item = {**self._key(table), **random_values(chance)}
            version = chance.choice((1, 2, Decimal("2.0"), "a")) if mode is WriteMode.NEWER else None
            given = None if mode is WriteMode.INSERT else condition
            return Put(table, item, mode, version, key=tuple(self._key(table)), condition=given)
        if kind == "delete":
            return Delete(table, self._key(table), condition=condition)
        if kind == "check":
            return Check(table, self._key(table), random_condition(chance))
        if kind == "add":
            amounts = {chance.choice(("free", "kind", "sum")): chance.choice((1, -2, Decimal("0.5"), 10**20))}
            return Update(table, self._key(table), add=amounts, condition=condition)
        paths = chance.sample(NAMES, chance.choice((1, 2, 3)))
        # Known differences are left out: to remove alone where no row is, or a nested value that is not there.
        sets = {path: random_value_of(chance, path) for path in paths[: chance.choice((1, 2))]}
        removes = [path for path in paths[len(sets) :] if path.isalpha()]
        return Update(table, self._key(table), set=sets, remove=removes, condition=condition)

    def _key(self, table: str) -> dict[str, Any]:
        chance = self._chance
        if table == BUSINESS:
            return {"id": chance.choice(("a", "b", "ü"))}
        if table == COUNTERS:
            return {"number": chance.choice((1, 2, Decimal("2.5")))}
        return {"order": chance.choice(("a", "b")), "line": chance.choice((1, 2))}

    def _mark(self) -> None:
        ids = self._chance.sample(range(7), self._chance.choice((1, 2, 4)))
        messages = {f"e-{number}": f"m-{number}" for number in ids}
        self._ledger.mark_sent(messages, sent_attributes(self._now_ms, 86_400), self._budget)

    def _recall(self) -> None:
        ids = self._chance.sample(range(7), self._chance.choice((1, 2, 7)))
        self._ledger.recall([f"e-{number}" for number in ids], self._budget)

    def _read_index(self) -> None:
        chance = self._chance
        pending = [row["pending_shard"]["S"] for row in self._rows().values() if "pending_shard" in row]
        shard = chance.choice([*pending, str(chance.randrange(PENDING_SHARDS))])
        until_ms = self._now_ms - chance.choice((0, 1000, 400_000))
        how = chance.choice(("oldest", "counts", "pages", "pages"))
        if how == "oldest":
            self._index.oldest_ms(shard, self._budget)
        elif how == "counts":
            list(self._index.counts(shard, until_ms, self._budget))
        else:
            first, size = chance.choice((0, 0, 1, 2)), chance.choice((1, 2, 10))
            list(self._index.pages(shard, until_ms, first, size, self._budget))

    # --- operations

    def _event_id(self) -> str:
        return f"e-{self._chance.randrange(6)}"

    def _claim(self) -> None:
        event_id = self._event_id()
        claimed = self._claims.claim(event_id, "print-1", "m-1", self._budget)
        if isinstance(claimed, Row) and self._chance.random() < 0.8:
            claimed = self._claims.take(claimed, "m-2", self._budget, is_uncertain=self._chance.random() < 0.3)
        if isinstance(claimed, Claim):
            self._held.append(claimed)

    def _work(self) -> None:
        chance, budget, claims = self._chance, self._budget, self._claims
        row = self._operation()
        if self._held and (row is None or chance.random() < 0.7):
            claim = chance.choice(self._held)
            standing: Claim | Row = claim
            if chance.random() < 0.5:
                steps: list[Callable[[], Any]] = [
                    lambda: claims.renew(claim, budget),
                    lambda: claims.release(claim, budget),
                    lambda: claims.doubt(claim, "timed-out", "", chance.choice((None, self._now_ms)), budget),
                ]
                chance.choice(steps)()
                return
        elif row is not None:
            standing = row
            if chance.random() < 0.5:
                decision = chance.choice(tuple(Decision))
                claims.resolve(row, Resolution(decision, "me", "I asked", {"n": [1]}), budget)
                return
        else:
            return self._claim()
        result = StoredResult.of(chance.choice(({"charge": "c-1"}, None, "x" * 10)))
        chance.choice(
            (
                lambda: claims.complete(standing, result, budget),
                lambda: claims.fail(standing, "refused", "the card", budget),
                lambda: claims.fail_for_now(standing, "busy", "", self._now_ms + 1000, budget),
                lambda: claims.park(standing, "timed-out", "ü", budget),
            )
        )()

    def _operation(self) -> Row | None:
        rows = [row for (table, _), row in self._rows().items() if table == LEDGER and "attempt" in row]
        with suppress(ValueError):  # variations write rows that nobody can read
            return read_row(self._chance.choice(rows)) if rows else None
        return None

    # --- workflows

    def _ask_guard(self) -> None:
        chance = self._chance
        request = {
            "key": chance.choice(("k-1", "k-2")),
            "owner": chance.choice(("x-1", "x-2", "x-3")),
            "messageId": chance.choice((None, "m-1")),
            "fingerprint": chance.choice((None, "print-1", "print-2")),
            "returnResult": True,
        }
        workflow_claim.claim(self._client, WORKFLOW, workflow_claim.ClaimRequest.read(request), self._now_ms)

    def _run_state(self) -> None:
        chance = self._chance
        texts = {
            ":detail": "it broke",
            ":fingerprint": chance.choice(("print-1", "print-2")),
            ":message_id": "m-1",
            ":owner": chance.choice(("x-1", "x-2", "x-3")),
            ":reason": "not-applied",
        }
        values: dict[str, Any] = {name: {"S": text} for name, text in texts.items()}
        values |= {":now": {"N": str(self._now_ms)}, ":expires": {"N": str(self._now_ms // 1000)}}
        values[":result"] = chance.choice(({"S": '{"n":1}'}, {"NULL": True}))
        key = {"pk": {"S": chance.choice(("k-1", "k-2"))}, "sk": {"S": workflow_claim.NAMESPACE}}
        row = {"TableName": WORKFLOW, "Key": key}
        with suppress(ClientError):
            request = {name: value for name, value in write_of(chance.choice(_STATES), values).items() if value}
            self._client.update_item(**row, **request)
            return
        self._client.get_item(**row, ConsistentRead=True)
