"""Publishes stored notifications to the topic."""

from collections.abc import Iterator, Mapping
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.calls import CALL_ERRORS, Budget, call_for_all, failed_call, retry_verdict
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.side_by_side import SideBySide

# Amazon SNS API Reference, PublishBatch: ten entries, and the sum of their sizes within one message's limit.
MAX_ENTRIES = 10
MAX_BATCH_BYTES = 262_144

_NO_TOPIC = Verdict(Outcome.RETRY, "misconfigured", "a notification is pending, but no topic is configured")

Notifications = Mapping[str, RenderedNotification]
# One entry of a batch: the event's id, and which of its notifications.
_One = tuple[str, int]
_Batch = dict[_One, RenderedNotification]


class Outbox:
    """sns: a client made by `aws.Clients`. topic_arn: None where nothing is published."""

    def __init__(self, sns: Any, topic_arn: str | None) -> None:
        self._sns = sns
        self._topic_arn = topic_arn
        self._is_fifo = topic_arn is not None and topic_arn.endswith(".fifo")
        self._side_by_side = SideBySide()

    def publish(self, notifications: Notifications, budget: Budget) -> dict[str, Verdict]:
        """Publish by event id; returns a verdict for each event whose notification may not have gone out."""
        if self._topic_arn is None:
            return dict.fromkeys(notifications, _NO_TOPIC)
        failures = self._side_by_side.call(
            lambda batch: self._publish_batch(batch, budget), list(_batches(notifications)), in_order=self._is_fifo
        )
        return {event_id: verdict for (event_id, _), verdict in failures.items()}

    def _publish_batch(self, batch: _Batch, budget: Budget) -> dict[_One, Verdict]:
        failures = self._attempt(batch, budget)
        refused = [one for one, verdict in failures.items() if verdict.reason == "refused"]
        if len(refused) > 1:
            # SNS refuses a batch as a whole for one entry of it: the others must not suffer.
            for one in refused:
                del failures[one]
                failures |= self._attempt({one: batch[one]}, budget)
        return failures

    def _attempt(self, batch: _Batch, budget: Budget) -> dict[_One, Verdict]:
        return call_for_all(batch, lambda waiting: self._call({one: batch[one] for one in waiting}), budget)

    def _call(self, batch: _Batch) -> dict[_One, Verdict]:
        entries = [self._entry(str(index), notification) for index, notification in enumerate(batch.values())]
        try:
            answer = self._sns.publish_batch(TopicArn=self._topic_arn, PublishBatchRequestEntries=entries)
        except CALL_ERRORS as error:
            return dict.fromkeys(batch, failed_call(error, "PublishBatch"))
        published = {entry["Id"] for entry in answer.get("Successful", [])}
        codes = {entry["Id"]: entry.get("Code", "Unknown") for entry in answer.get("Failed", [])}
        # An entry that the answer does not mention is not taken for published.
        return {
            one: retry_verdict(codes.get(str(index), "NotAnswered"), "PublishBatch")
            for index, one in enumerate(batch)
            if str(index) not in published
        }

    def _entry(self, entry_id: str, notification: RenderedNotification) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "Id": entry_id,
            "Message": notification.message,
            "MessageAttributes": {
                name: {"DataType": kind, "StringValue": text} for name, (kind, text) in notification.attributes.items()
            },
        }
        if self._is_fifo:
            entry["MessageGroupId"] = notification.group
            entry["MessageDeduplicationId"] = notification.deduplication_id
        return entry


def _batches(notifications: Notifications) -> Iterator[_Batch]:
    batch: _Batch = {}
    total = 0
    for event_id, first in notifications.items():
        for number, notification in enumerate(first.all):
            size = notification.own_size
            if batch and (len(batch) == MAX_ENTRIES or total + size > MAX_BATCH_BYTES):
                yield batch
                batch, total = {}, 0
            batch[event_id, number] = notification
            total += size
    if batch:
        yield batch
