"""The pending rows of the ledger: events that are committed, and whose notification is not known to be out."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from idempotent_consumer.commit import PENDING_SHARDS

INDEX = "pending"


class PendingRows(Protocol):
    """Pending rows by shard and age. Each call may raise what a call to DynamoDB raises."""

    @property
    def shards(self) -> Sequence[str]: ...

    def oldest_ms(self, shard: str) -> int | None:
        """When its oldest row was written, epoch milliseconds; None where it has none."""

    def counts(self, shard: str, until_ms: int) -> Iterator[int]:
        """How many of its rows were written until then, call by call."""

    def pages(self, shard: str, from_ms: int, until_ms: int, size: int) -> Iterator[list[str]]:
        """The event ids of its rows written in this time, bounds included, oldest first, `size` at a time."""


class PendingIndex:
    """The sparse index of the ledger. It lags behind the table: what it shows may be settled by now.

    dynamodb: a client made by `aws.Clients`.
    """

    shards = tuple(str(shard) for shard in range(PENDING_SHARDS))

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def oldest_ms(self, shard: str) -> int | None:
        rows = self._query(shard, Limit=1, ProjectionExpression="created_at")["Items"]
        return int(rows[0]["created_at"]["N"]) if rows else None

    def counts(self, shard: str, until_ms: int) -> Iterator[int]:
        for answer in self._answers(shard, 0, until_ms, Select="COUNT"):
            yield answer["Count"]

    def pages(self, shard: str, from_ms: int, until_ms: int, size: int) -> Iterator[list[str]]:
        for answer in self._answers(shard, from_ms, until_ms, Limit=size, ProjectionExpression="event_id"):
            event_ids = [row["event_id"]["S"] for row in answer["Items"]]
            if event_ids:
                yield event_ids

    def _answers(self, shard: str, from_ms: int, until_ms: int, **options: Any) -> Iterator[Any]:
        if from_ms > until_ms:  # DynamoDB refuses such bounds
            return
        start: dict[str, Any] = {}
        while True:
            answer = self._query(shard, from_ms, until_ms, **options, **start)
            yield answer
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _query(self, shard: str, from_ms: int = 0, until_ms: int = 10**15, **options: Any) -> Any:
        return self._dynamodb.query(
            TableName=self._table,
            IndexName=INDEX,
            KeyConditionExpression="pending_shard = :shard AND created_at BETWEEN :from AND :until",
            ExpressionAttributeValues={
                ":shard": {"S": shard},
                ":from": {"N": str(from_ms)},
                ":until": {"N": str(until_ms)},
            },
            **options,
        )
