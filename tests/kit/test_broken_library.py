"""Each invariant can be broken, and is then reported: the library is broken here on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from idempotent_consumer import commit, consumer, group_commit, ledger
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import Budget, failed_call
from idempotent_consumer.commit import Commit
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.dead_letter import DeadLetterQueue
from idempotent_consumer.delivery import settle_events
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.testing import AssertIdempotent
from tests.kit import plans

pytestmark = pytest.mark.usefixtures("in_one_process")

ORDERS = [{"id": "o-1", "sku": "A-1", "quantity": 3}, {"id": "o-2", "sku": "A-1", "quantity": 20}]
ROWS = {"stock": [{"sku": "A-1", "free": 10}]}


class Plenty:
    """A context with time to spare."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture
def reported(assert_idempotent: AssertIdempotent) -> Callable[[], list[str]]:
    def report() -> list[str]:
        with pytest.raises(AssertionError) as caught:
            assert_idempotent(plans.take, ORDERS, rows=ROWS)
        return str(caught.value).splitlines()

    return report


Report = Callable[[], list[str]]


def test_two_commits_of_one_event(assert_idempotent: AssertIdempotent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition on the ledger row is gone."""
    put = Commit._ledger_put

    def unconditional(self: Commit, item: Any) -> dict[str, Any]:
        return {name: value for name, value in put(self, item).items() if not name.startswith(("Cond", "Return"))}

    monkeypatch.setattr(Commit, "_ledger_put", unconditional)
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.count_only, [{"id": "v-1", "page": "home", "seconds": 1}])
    assert str(caught.value).splitlines() == [
        "v-1 was committed more than once",
        "  when each message comes twice in one batch",
        "likely:  the library is at fault: please report it, with this text and the plan",
    ]


def test_two_transactions_for_one_event(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """The business rows are written outside of the ledger's transaction, and so again after a crash."""
    write = Ledger.write

    def apart(self: Ledger, commits: Any) -> Any:
        for each in commits:
            for one in each.writes:
                if "Update" in one.action:
                    request = {name: value for name, value in one.action["Update"].items() if "Condition" not in name}
                    request["ExpressionAttributeNames"] = {"#n0": "free"}
                    self._dynamodb._client.update_item(
                        **{**request, "ExpressionAttributeValues": {":v0": request["ExpressionAttributeValues"][":v0"]}}
                    )
        return write(self, [replace(each, writes=[w for w in each.writes if "Put" in w.action]) for each in commits])

    monkeypatch.setattr(Ledger, "write", apart)
    lines = reported()
    assert lines[0] == "the tables are not those of the undisturbed run"
    assert lines[1].startswith("  when ")
    assert lines[2].startswith("  stock 'A-1': free is ")


def test_marking_before_publishing(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    publish, mark = Consumer._publish, Consumer._mark
    monkeypatch.setattr(Consumer, "_publish", mark)
    monkeypatch.setattr(Consumer, "_mark", publish)
    lines = reported()
    assert lines[0] == "o-1 was marked as sent before its notification was published"
    assert lines[1] == "  when each event comes once and nothing fails"


def test_pending_event_that_is_taken_for_done(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = commit.judge_ledger_row

    def swallow(row: Any, event: Any) -> Verdict:
        verdict = judge(row, event)
        return Verdict(Outcome.DUPLICATE) if verdict.outcome is Outcome.RESUMED else verdict

    for module in (commit, group_commit):
        monkeypatch.setattr(module, "judge_ledger_row", swallow)
    monkeypatch.setattr("idempotent_consumer.cancellation.judge_ledger_row", swallow)
    lines = reported()
    assert lines[0] == "the message of o-1 was deleted, though it is neither settled nor dead-lettered"
    assert lines[1] == (
        "  when the process is killed after TransactWriteItems of o-1, and what is not settled delivered again"
    )


def test_publishing_that_is_taken_for_done_when_it_failed(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = Outbox.publish

    def optimistic(self: Outbox, notifications: Any, budget: Any) -> dict[str, Verdict]:
        publish(self, notifications, budget)
        return {}

    monkeypatch.setattr(Outbox, "publish", optimistic)
    lines = reported()
    assert lines[0] == "o-1 was marked as sent before its notification was published"
    assert lines[1] == "  when PublishBatch is refused, and what is not settled delivered again"


def test_dead_letter_that_is_not_sent(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeadLetterQueue, "send", lambda *_: None)
    lines = reported()
    assert lines[0] == "the message of o-2 was deleted, though it is neither settled nor dead-lettered"


def test_dead_letter_that_nobody_sent(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    send = DeadLetterQueue.send

    def twice(self: DeadLetterQueue, message: Any, *more: Any) -> Any:
        send(self, replace(message, body="{}"), *more)
        return send(self, message, *more)

    monkeypatch.setattr(DeadLetterQueue, "send", twice)
    assert reported()[0] == "a message that nobody sent is in the dead-letter queue"


def test_dead_letter_with_another_reason(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    send = DeadLetterQueue.send
    monkeypatch.setattr(
        DeadLetterQueue, "send", lambda self, message, _reason, *more: send(self, message, "other", *more)
    )
    lines = reported()
    expected = "o-2 was dead-lettered as other, not as id-reused, out-of-stock, refused-by-dynamodb and row-exists"
    assert lines[0] == expected


def test_duplicate_that_is_dead_lettered(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = commit.judge_ledger_row

    def refuse(row: Any, event: Any) -> Verdict:
        verdict = judge(row, event)
        return Verdict(Outcome.CONFLICT, "row-exists") if verdict.outcome is Outcome.DUPLICATE else verdict

    monkeypatch.setattr(group_commit, "judge_ledger_row", refuse)
    monkeypatch.setattr("idempotent_consumer.cancellation.judge_ledger_row", refuse)
    lines = reported()
    assert lines[0] == "o-1 was committed, and dead-lettered after it"


def test_ledger_row_that_is_not_marked(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "mark_sent", lambda *_: {})
    assert reported()[0] == "the message of o-1 was deleted, though it is neither settled nor dead-lettered"


def test_ledger_row_of_an_event_that_is_not_committed(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    send = DeadLetterQueue.send

    def mark(self: DeadLetterQueue, message: Any, *more: Any) -> Any:
        item = {"event_id": {"S": "o-2"}, "status": {"S": "sent"}, "fingerprint": {"S": "f"}}
        self._sqs._cloud._real.dynamodb.put_item(TableName="kit-processed-events", Item=item)
        return send(self, message, *more)

    monkeypatch.setattr(DeadLetterQueue, "send", mark)
    lines = reported()
    assert lines[0] == "the ledger is not as it has to be"
    assert "  o-2: sent, not without a row" in lines


def test_ledger_row_that_is_gone_before_it_is_marked(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = Ledger.mark_sent

    def delete(self: Ledger, message_ids: Any, *more: Any) -> Any:
        for event_id in message_ids:
            key = {"event_id": {"S": event_id}}
            self._dynamodb._client.delete_item(TableName="kit-processed-events", Key=key)
        return mark(self, message_ids, *more)

    monkeypatch.setattr(Ledger, "mark_sent", delete)
    assert reported()[0] == "the message of o-1 was deleted, though it is neither settled nor dead-lettered"


def test_notification_that_is_made_anew_for_a_retry(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = commit.judge_ledger_row

    def other(row: Any, event: Any) -> Verdict:
        verdict = judge(row, event)
        if verdict.notification is None:
            return verdict
        return replace(verdict, notification=replace(verdict.notification, message="other"))

    monkeypatch.setattr(group_commit, "judge_ledger_row", other)
    monkeypatch.setattr("idempotent_consumer.cancellation.judge_ledger_row", other)
    lines = reported()
    assert lines[0] == "the notifications are not those of the undisturbed run"
    assert "  not expected: o-1: 'other' {'kind': 'order-taken'}" in lines


def test_notification_that_nobody_planned(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published for an event that the batch holds twice."""
    publish = Outbox.publish

    def more(self: Outbox, notifications: Any, budget: Any) -> dict[str, Verdict]:
        published.append(self)
        return publish(self, notifications, budget)

    def again(pending: Any) -> None:
        for works in pending.values():
            if len(works) > 1:
                extra = replace(works[0].verdict.notification, message="more")
                publish(published[-1], {works[0].event_id: extra}, Budget(Plenty()))
        settle_events(pending)

    published: list[Outbox] = []
    monkeypatch.setattr(Outbox, "publish", more)
    monkeypatch.setattr(consumer, "settle_events", again)
    assert reported()[:3] == [
        "the notifications are not those of the undisturbed run",
        "  when each message comes twice in one batch",
        "  not expected: o-1: 'more' {'kind': 'order-taken'}",
    ]


def test_lost_answer_that_is_taken_for_a_refusal(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:

    def refused(error: Exception, operation: str) -> Verdict:
        is_commit = operation == "TransactWriteItems"
        return Verdict(Outcome.REJECTED, "refused-by-dynamodb") if is_commit else failed_call(error, operation)

    monkeypatch.setattr(ledger, "failed_call", refused)
    assert reported()[:2] == [
        "o-1 was committed, and dead-lettered after it",
        "  when the answer to TransactWriteItems of o-1 is lost, and what is not settled delivered again",
    ]


def test_event_that_nothing_settles(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Verdict(Outcome.RETRY, "unavailable", "PublishBatch: InternalError")
    monkeypatch.setattr(Outbox, "publish", lambda _self, notifications, _budget: dict.fromkeys(notifications, refused))
    assert reported()[:3] == [
        "o-1 cannot be settled: unavailable",
        "  when each event comes once and nothing fails",
        "  PublishBatch: InternalError",
    ]


def test_event_that_always_is_a_fault(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(consumer, "prepare", prepare)
    assert reported()[:2] == ["o-1 cannot be settled: fault", "  when each event comes once and nothing fails"]


def test_message_that_never_ends(reported: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delivery has an effect, and reports the message all the same."""
    monkeypatch.setattr(consumer, "returning_messages", lambda part, _held: [delivery.message.id for delivery in part])
    assert reported()[0] == "the message of o-1 comes back without end"
