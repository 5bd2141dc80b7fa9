"""The pending rows of the ledger: events that are committed, and whose notification is not known to be out."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol

from idempotent_consumer.answer import Verdict
from idempotent_consumer.calls import CALL_ERRORS, OUT_OF_TIME, Budget, failed_call, retry_verdict
from idempotent_consumer.commit import PENDING_SHARDS

INDEX = "pending"


class PendingUnread(Exception):
    """The pending rows could not be read (any further); `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class PendingRows(Protocol):
    """Pending rows by shard and age. Each method may raise PendingUnread, its iterator at any step."""

    @property
    def shards(self) -> Sequence[str]: ...

    def oldest_ms(self, shard: str, budget: Budget) -> int | None:
        """When its oldest row was written, epoch milliseconds; None where it has none."""

    def counts(self, shard: str, until_ms: int, budget: Budget) -> Iterator[int]:
        """How many of its rows were written until then, call by call."""

    def pages(self, shard: str, until_ms: int, first: int, size: int, budget: Budget) -> Iterator[list[str]]:
        """The event ids of these rows, oldest first, at most `size` at a time: from the row with the number `first`
        to the last, then those before it."""


class PendingIndex:
    """The sparse index of the ledger. It lags behind the table: what it shows may be settled by now.

    dynamodb: a client made by `aws.Clients`.
    """

    shards = tuple(str(shard) for shard in range(PENDING_SHARDS))

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def oldest_ms(self, shard: str, budget: Budget) -> int | None:
        answer = self._query(shard, None, budget, Limit=1, ProjectionExpression="created_at")
        for row in answer["Items"]:
            return int(Decimal(row["created_at"]["N"]))
        return None

    def counts(self, shard: str, until_ms: int, budget: Budget) -> Iterator[int]:
        for answer in self._answers(shard, until_ms, None, budget, Select="COUNT"):
            yield answer["Count"]

    def pages(self, shard: str, until_ms: int, first: int, size: int, budget: Budget) -> Iterator[list[str]]:
        start = self._key_before(shard, until_ms, first, budget)
        yield from self._event_ids(shard, until_ms, start, size, budget)
        if start is None:
            return
        for event_ids in self._event_ids(shard, until_ms, None, size, budget):
            yield event_ids[:first]
            first -= len(event_ids)
            if first <= 0:
                return

    def _key_before(self, shard: str, until_ms: int, number: int, budget: Budget) -> Any:
        """The key of the row before the one with this number, counted from 0; None where there is none."""
        start = None
        while number > 0:
            answer = self._query(shard, until_ms, budget, start, Select="COUNT", Limit=number)
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return None
            number -= answer["Count"]
        return start

    def _event_ids(self, shard: str, until_ms: int, start: Any, size: int, budget: Budget) -> Iterator[list[str]]:
        for answer in self._answers(shard, until_ms, start, budget, Limit=size, ProjectionExpression="event_id"):
            event_ids = [row["event_id"]["S"] for row in answer["Items"]]
            if event_ids:
                yield event_ids

    def _answers(self, shard: str, until_ms: int, start: Any, budget: Budget, **options: Any) -> Iterator[Any]:
        while True:
            answer = self._query(shard, until_ms, budget, start, **options)
            yield answer
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    def _query(self, shard: str, until_ms: int | None, budget: Budget, start: Any = None, **options: Any) -> Any:
        """One call. until_ms: None for all rows. start: the key of the row before the first."""
        if not budget.allows_call():
            raise PendingUnread(OUT_OF_TIME)
        condition, values = "pending_shard = :shard", {":shard": {"S": shard}}
        if until_ms is not None:
            condition += " AND created_at <= :until"
            values[":until"] = {"N": str(until_ms)}
        if start is not None:
            options["ExclusiveStartKey"] = start
        try:
            answer = self._dynamodb.query(
                TableName=self._table,
                IndexName=INDEX,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                **options,
            )
        except CALL_ERRORS as error:
            raise PendingUnread(failed_call(error, "Query")) from error
        if "Count" not in answer or ("Items" not in answer and "Select" not in options):
            raise PendingUnread(retry_verdict("IncompleteAnswer", "Query"))
        return answer
