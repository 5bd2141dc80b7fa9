"""The ledger table: commits events exactly once and marks them sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import (
    CALL_ERRORS,
    OUT_OF_TIME,
    Budget,
    call_for_all,
    error_code,
    failed_call,
    retry_verdict,
)
from idempotent_consumer.cancellation import Refusal, read_error, read_reasons
from idempotent_consumer.commit import Commit
from idempotent_consumer.items import Item
from idempotent_consumer.side_by_side import SideBySide
from idempotent_consumer.transaction import combine

MAX_STATEMENTS = 25


class Ledger:
    """dynamodb: a client made by `aws.Clients`. Failed calls are returned as verdicts; only faults of our own raise."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._side_by_side = SideBySide()
        self._mark_statement = (
            f'UPDATE "{table}" SET "status"=? SET "sent_at"=? SET "ttl"=? SET "message_id"=? '
            'REMOVE "notification" REMOVE "pending_shard" WHERE "event_id"=?'
        )

    def write(self, commits: Sequence[Commit]) -> list[Refusal | None]:
        """Write the rows of events that the ledger does not hold, all in one transaction or none of them.

        Returns an empty list once they are written, else what the failure says of each event.

        The SDK gives each call a token of its own and keeps it over its own attempts; a token derived from the
        events would fail once the same event is sent with another time stamp.
        """
        transaction = combine(commits)
        try:
            self._dynamodb.transact_write_items(TransactItems=transaction.actions)
        except CALL_ERRORS as error:
            code = error_code(error)
            if code == "TransactionCanceledException":
                return read_reasons(
                    commits, transaction.indexes, getattr(error, "response", {}).get("CancellationReasons")
                )
            return read_error(commits, code, failed_call(error, "TransactWriteItems"))
        return []

    def recall(self, event_ids: Sequence[str], budget: Budget) -> tuple[dict[str, Item], dict[str, Verdict]]:
        """The rows of events by a consistent read, at most 100, and a verdict on each that could not be read.

        The ledger does not know an event that is in neither.
        """
        rows: dict[str, Item] = {}
        failures = call_for_all(event_ids, lambda waiting: self._read_all(waiting, rows, budget), budget)
        return rows, failures

    def settle_superseded(self, commit: Commit, budget: Budget) -> Verdict | None:
        """Write the row of an event that changes nothing else; None where the ledger holds one by now."""
        if not budget.allows_call():
            return OUT_OF_TIME
        try:
            self._dynamodb.put_item(**commit.superseded_put())
        except CALL_ERRORS as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return None
            return failed_call(error, "PutItem")
        return Verdict(Outcome.SUPERSEDED)

    def mark_sent(self, message_ids: Mapping[str, str], sent: Item, budget: Budget) -> dict[str, Verdict]:
        """Mark events as sent; returns a verdict for each event that could not be marked.

        message_ids: event id to the SQS message that settled it. sent: what `commit.sent_attributes` gives.
        Only an existing row is marked: an UPDATE without one fails its condition.
        """
        event_ids = list(message_ids)
        chunks = [event_ids[start : start + MAX_STATEMENTS] for start in range(0, len(event_ids), MAX_STATEMENTS)]
        return self._side_by_side.call(
            lambda chunk: call_for_all(chunk, lambda waiting: self._try_mark(waiting, message_ids, sent), budget),
            chunks,
        )

    def _read_all(self, event_ids: Sequence[str], rows: dict[str, Item], budget: Budget) -> dict[str, Verdict]:
        """Read on as long as a call reads something: one gives 16 MB, and 1 MB of a partition, at most."""
        waiting = event_ids
        while budget.allows_call():
            try:
                left = self._read(waiting, rows)
            except CALL_ERRORS as error:
                return dict.fromkeys(waiting, failed_call(error, "BatchGetItem"))
            if left is None:
                return dict.fromkeys(waiting, retry_verdict("IncompleteAnswer", "BatchGetItem"))
            if not left:
                return {}
            if len(left) == len(waiting):
                return dict.fromkeys(left, retry_verdict("Throttled", "BatchGetItem"))
            waiting = left
        return dict.fromkeys(waiting, OUT_OF_TIME)

    def _read(self, event_ids: Sequence[str], rows: dict[str, Item]) -> list[str] | None:
        """One call, which adds to `rows`; the events that it leaves over, None for an answer without the table."""
        keys = [{"event_id": {"S": event_id}} for event_id in event_ids]
        answer = self._dynamodb.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}})
        unprocessed = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
        found = answer.get("Responses", {}).get(self._table)
        if found is None and len(unprocessed) < len(keys):
            return None
        rows.update((row["event_id"]["S"], row) for row in found or ())
        return [key["event_id"]["S"] for key in unprocessed]

    def _try_mark(self, event_ids: Sequence[str], message_ids: Mapping[str, str], sent: Item) -> dict[str, Verdict]:
        """One call; a verdict for each statement that failed. Their errors stand inside an answer that succeeded."""
        statements = [
            {
                "Statement": self._mark_statement,
                "Parameters": [
                    sent["status"],
                    sent["sent_at"],
                    sent["ttl"],
                    {"S": message_ids[event_id]},
                    {"S": event_id},
                ],
            }
            for event_id in event_ids
        ]
        try:
            responses = self._dynamodb.batch_execute_statement(Statements=statements).get("Responses", [])
        except CALL_ERRORS as error:
            return dict.fromkeys(event_ids, failed_call(error, "BatchExecuteStatement"))
        if len(responses) != len(event_ids):
            return dict.fromkeys(event_ids, retry_verdict("IncompleteAnswer", "BatchExecuteStatement"))
        return {
            event_id: retry_verdict(response["Error"].get("Code", "Unknown"), "BatchExecuteStatement")
            for event_id, response in zip(event_ids, responses, strict=True)
            if "Error" in response
        }
