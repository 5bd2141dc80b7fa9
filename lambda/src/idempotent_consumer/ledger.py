"""The ledger table: commits events exactly once and marks them sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import (
    CALL_ERRORS,
    OUT_OF_TIME,
    PASSING_REASONS,
    Budget,
    attempts,
    call_for_all,
    error_code,
    failed_call,
    retry_verdict,
)
from idempotent_consumer.commit import Commit, judge_business_row, judge_ledger_row
from idempotent_consumer.event import Event
from idempotent_consumer.items import Item

MAX_STATEMENTS = 25

_CONDITION_FAILED = "ConditionalCheckFailed"
_CAN_NEVER_SUCCEED = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
_UNDECIDED = Verdict(Outcome.RETRY, "ledger-undecided", "the transaction was refused without saying why")


class Ledger:
    """dynamodb: a client made by `aws.Clients`. All methods return verdicts; they raise only on a fault of our own."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._mark_statement = (
            f'UPDATE "{table}" SET "status"=? SET "sent_at"=? SET "ttl"=? SET "message_id"=? '
            'REMOVE "notification" REMOVE "pending_shard" WHERE "event_id"=?'
        )

    def commit(self, commit: Commit, budget: Budget) -> Verdict:
        """Write the ledger row and the event's writes in one transaction, unless the ledger holds the event.

        The SDK gives each call a token of its own and keeps it over its own attempts; a token derived from the
        event would fail once the same event is sent with another time stamp.
        """
        verdict = _UNDECIDED
        started_ms = budget.remaining_ms()
        for _ in attempts():
            if not budget.allows_commit():
                return OUT_OF_TIME
            decided, verdict = self._try_commit(commit, budget)
            if decided:
                break
        budget.observe_commit(started_ms - budget.remaining_ms())
        return verdict

    def recall(self, event: Event, budget: Budget) -> Verdict | None:
        """What the ledger says of an event by a consistent read; None where it does not know the event."""
        if not budget.allows_call():
            return OUT_OF_TIME
        try:
            answer = self._dynamodb.get_item(
                TableName=self._table, Key={"event_id": {"S": event.id}}, ConsistentRead=True
            )
        except CALL_ERRORS as error:
            return failed_call(error, "GetItem")
        row = answer.get("Item")
        return judge_ledger_row(row, event) if row else None

    def mark_sent(self, message_ids: Mapping[str, str], sent: Item, budget: Budget) -> dict[str, Verdict]:
        """Mark events as sent; returns a verdict for each event that could not be marked.

        message_ids: event id to the SQS message that settled it. sent: what `commit.sent_attributes` gives.
        Only an existing row is marked: an UPDATE without one fails its condition.
        """
        failures: dict[str, Verdict] = {}
        event_ids = list(message_ids)
        for start in range(0, len(event_ids), MAX_STATEMENTS):
            chunk = event_ids[start : start + MAX_STATEMENTS]
            failures |= call_for_all(chunk, lambda waiting: self._try_mark(waiting, message_ids, sent), budget)
        return failures

    def _try_commit(self, commit: Commit, budget: Budget) -> tuple[bool, Verdict]:
        """One attempt: whether it decided, and the verdict (or the one to give when no attempt is left)."""
        try:
            self._dynamodb.transact_write_items(TransactItems=commit.transaction())
        except CALL_ERRORS as error:
            code = error_code(error)
            if code == "TransactionCanceledException":
                reasons = getattr(error, "response", {}).get("CancellationReasons")
                return self._read_cancellation(commit, reasons, budget)
            if code == "ValidationException":
                return True, self.recall(commit.event, budget) or _refused(code)
            return _final(failed_call(error, "TransactWriteItems"))
        return True, Verdict(Outcome.APPLIED, notification=commit.notification)

    def _read_cancellation(
        self, commit: Commit, reasons: Sequence[Mapping[str, Any]] | None, budget: Budget
    ) -> tuple[bool, Verdict]:
        """Reasons stand at their action's index; the ledger's is the first, and outranks the others."""
        if not reasons or len(reasons) != 1 + len(commit.writes):
            return self._decided_by_ledger(commit, budget)
        codes = [reason.get("Code", "Unknown") for reason in reasons]
        if codes[0] == _CONDITION_FAILED:
            row = reasons[0].get("Item")
            return (True, judge_ledger_row(row, commit.event)) if row else self._decided_by_ledger(commit, budget)
        if codes[0] not in ("None", *_CAN_NEVER_SUCCEED):
            return _final(retry_verdict(codes[0], "TransactWriteItems"))
        never = next((code for code in codes if code in _CAN_NEVER_SUCCEED), None)
        if never:
            return True, self.recall(commit.event, budget) or _refused(never)
        passing = next((code for code in codes if code not in ("None", _CONDITION_FAILED)), None)
        if passing:
            return _final(retry_verdict(passing, "TransactWriteItems"))
        return self._judge_business(commit, reasons, budget)

    def _decided_by_ledger(self, commit: Commit, budget: Budget) -> tuple[bool, Verdict]:
        verdict = self.recall(commit.event, budget)
        return (True, verdict) if verdict else (False, _UNDECIDED)

    def _judge_business(
        self, commit: Commit, reasons: Sequence[Mapping[str, Any]], budget: Budget
    ) -> tuple[bool, Verdict]:
        """A refused business row decides only where the ledger, read after the refusal, knows nothing of the event."""
        known = self.recall(commit.event, budget)
        if known:
            return True, known
        for write, reason in zip(commit.writes, reasons[1:], strict=True):
            if reason.get("Code") == _CONDITION_FAILED:
                row = reason.get("Item")
                if not row:
                    return False, _UNDECIDED
                verdict = judge_business_row(row, commit.event, write)
                if verdict.outcome is Outcome.SUPERSEDED:
                    verdict = self._settle_superseded(commit, budget)
                return True, verdict
        return False, _UNDECIDED

    def _settle_superseded(self, commit: Commit, budget: Budget) -> Verdict:
        if not budget.allows_call():
            return OUT_OF_TIME
        try:
            self._dynamodb.put_item(**commit.superseded_put())
        except CALL_ERRORS as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return self.recall(commit.event, budget) or _UNDECIDED
            return failed_call(error, "PutItem")
        return Verdict(Outcome.SUPERSEDED)

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
            if response.get("Error")
        }


def _final(verdict: Verdict) -> tuple[bool, Verdict]:
    """A verdict that stands unless its reason passes by itself."""
    return verdict.reason not in PASSING_REASONS, verdict


def _refused(code: str) -> Verdict:
    return Verdict(Outcome.REJECTED, "refused-by-dynamodb", f"TransactWriteItems: {code}")
