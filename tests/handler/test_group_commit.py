"""Whole batches share their calls: ten new events cost three, ten that were seen before cost one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Notification, Plan, Put
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    PUT,
    READ,
    Cloud,
    Context,
    client_error,
    events_of,
    record,
    reported,
)

Record = dict[str, Any]
Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]

BY_EVENT: dict[str, Any] = {"EVENT_ID": "event"}
UPSERT: dict[str, Any] = {**BY_EVENT, "EVENT_WRITE_MODE": "upsert"}
NEWER: dict[str, Any] = {**BY_EVENT, "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}


def order(number: int, *, receive_count: int = 1, **more: Any) -> Record:
    return record(f"m-{number}", {"id": f"o-{number}", **more}, receive_count=receive_count)


def orders(numbers: range, **more: Any) -> list[Record]:
    return [order(number, **more) for number in numbers]


def ids(numbers: range) -> list[str]:
    return [f"o-{number}" for number in numbers]


TEN = range(10)


# What batches cost


class TestTenNewEvents:
    @pytest.fixture
    def delivered(self, cloud: Cloud) -> Cloud:
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        return cloud

    def test_cost_three_calls(self, delivered: Cloud) -> None:
        assert delivered.operations == [COMMIT, PUBLISH, MARK]

    def test_are_committed_with_their_rows_in_one_transaction(self, delivered: Cloud) -> None:
        (transaction,) = delivered.requests(COMMIT)
        puts = [action["Put"] for action in transaction["TransactItems"]]
        assert [put["TableName"] for put in puts] == [LEDGER, BUSINESS] * 10
        assert [put["Item"]["event_id"]["S"] for put in puts] == [
            event_id for event_id in ids(TEN) for _table in (LEDGER, BUSINESS)
        ]
        assert {put["ConditionExpression"] for put in puts[::2]} == {"attribute_not_exists(event_id)"}
        assert sorted(delivered.rows()) == ids(TEN)

    def test_are_published_before_they_are_marked(self, delivered: Cloud) -> None:
        assert delivered.history == [
            *(("committed", event_id) for event_id in ids(TEN)),
            *(("published", event_id) for event_id in ids(TEN)),
            *(("marked", event_id) for event_id in ids(TEN)),
        ]

    def test_are_marked_by_the_messages_that_brought_them(self, delivered: Cloud) -> None:
        brought = {event_id: row["message_id"]["S"] for event_id, row in delivered.ledger().items()}
        assert brought == {f"o-{number}": f"m-{number}" for number in TEN}

    def test_cost_one_call_where_nothing_is_published(self, cloud: Cloud) -> None:
        assert cloud.deliver(*orders(TEN), TOPIC_ARN=None) == NOTHING_FAILED
        assert cloud.operations == [COMMIT]
        assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")


def test_ten_redelivered_events_that_are_sent_cost_one_call(cloud: Cloud, metrics: Metrics) -> None:
    cloud.deliver(*orders(TEN))
    cloud.forget()
    metrics()
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ]
    assert cloud.requests(READ) == [
        {
            "RequestItems": {
                LEDGER: {"Keys": [{"event_id": {"S": event_id}} for event_id in ids(TEN)], "ConsistentRead": True}
            }
        }
    ]
    assert metrics()["Duplicates"] == 10
    assert sorted(cloud.notified()) == ids(TEN)


def test_ten_redelivered_events_that_are_pending_are_read_published_and_marked(cloud: Cloud, metrics: Metrics) -> None:
    cloud.commit_without_publishing(*orders(TEN))
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ, PUBLISH, MARK]
    assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")
    assert metrics()["Resumed"] == 10


def test_five_new_and_five_redelivered_events_cost_a_read_more(cloud: Cloud, metrics: Metrics) -> None:
    cloud.deliver(*orders(range(5)))
    cloud.forget()
    metrics()
    batch = [
        message
        for number in range(5)
        for message in (order(number, receive_count=2), order(number + 5, receive_count=1))
    ]
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert cloud.operations == [READ, COMMIT, PUBLISH, MARK]
    assert cloud.reads == [ids(range(5))]
    assert cloud.transactions == [ids(range(5, 10))]
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"]) == (5, 5)


def test_new_and_pending_events_are_published_together(cloud: Cloud) -> None:
    cloud.commit_without_publishing(*orders(range(5)))
    assert cloud.deliver(*orders(range(5), receive_count=2), *orders(range(5, 10))) == NOTHING_FAILED
    assert cloud.operations == [READ, COMMIT, PUBLISH, MARK]
    assert len(cloud.requests(PUBLISH)[0]["PublishBatchRequestEntries"]) == 10
    assert set(cloud.statuses().values()) == {"sent"}


def test_ten_redelivered_events_that_the_ledger_does_not_know_are_committed_together(cloud: Cloud) -> None:
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ, COMMIT, PUBLISH, MARK]
    assert cloud.transactions == [ids(TEN)]


def test_ten_duplicates_on_their_first_receive_cost_the_transaction_that_says_so(
    cloud: Cloud, metrics: Metrics
) -> None:
    cloud.deliver(*orders(TEN))
    cloud.forget()
    metrics()
    assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT]
    assert metrics()["Duplicates"] == 10


def test_duplicates_among_new_events_leave_the_transaction_and_the_others_are_read_and_go_again(cloud: Cloud) -> None:
    cloud.deliver(*orders(range(0, 10, 2)))
    cloud.forget()
    assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK]
    assert cloud.transactions == [ids(TEN), ids(range(1, 10, 2))]
    assert cloud.reads == [ids(range(1, 10, 2))]
    assert sorted(cloud.notified()) == ids(TEN)


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        (11, [COMMIT, PUBLISH, PUBLISH, MARK]),
        (26, [COMMIT, PUBLISH, PUBLISH, PUBLISH, MARK, MARK]),
        (50, [COMMIT, *[PUBLISH] * 5, MARK, MARK]),
        (51, [COMMIT, *[PUBLISH] * 5, MARK, MARK, COMMIT, PUBLISH, MARK]),
        (100, [COMMIT, *[PUBLISH] * 5, MARK, MARK] * 2),
    ],
)
def test_larger_batch_is_settled_by_fifties(cloud: Cloud, events: int, calls: list[str]) -> None:
    assert cloud.deliver(*orders(range(events))) == NOTHING_FAILED
    assert cloud.operations == calls
    assert cloud.statuses() == dict.fromkeys(ids(range(events)), "sent")


# Messages of several events


SEVERAL: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ID": "id", "EVENT_ITEM": "{id: id}"}


def several(message_id: str, *event_ids: str | None) -> Record:
    """A message of several events; one without an id can never succeed."""
    return record(message_id, {"Records": [{"s3": {"object": {"key": "k"}}, "id": event_id} for event_id in event_ids]})


class TestMessagesOfSeveralEvents:
    BATCH = (several("m-1", "a", "b", "c"), several("m-2", "d"), several("m-3", "e", "f"))

    def test_share_a_transaction(self, cloud: Cloud) -> None:
        assert cloud.deliver(*self.BATCH, **SEVERAL) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, PUBLISH, MARK]
        assert cloud.transactions == [["a", "b", "c", "d", "e", "f"]]

    def test_one_that_fails_brings_its_message_back_and_the_others_are_duplicates_then(
        self, cloud: Cloud, metrics: Metrics
    ) -> None:
        def fail(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
            if "b" in events_of(request):
                raise client_error("InternalServerError")
            return effect()

        cloud.on(COMMIT, answers=fail)
        assert cloud.deliver(*self.BATCH, **SEVERAL) == reported("m-1")
        assert cloud.statuses() == dict.fromkeys("acdef", "sent")
        metrics()
        cloud.heal()
        assert cloud.deliver(self.BATCH[0], **SEVERAL) == NOTHING_FAILED
        assert sorted(cloud.notified()) == [*"abcdef"]
        counted = metrics()
        assert (counted["Applied"], counted["Duplicates"]) == (1, 2)

    def test_one_that_is_dead_is_told_of_once_the_others_are_settled(self, cloud: Cloud) -> None:
        cloud.store(BUSINESS, {"id": {"S": "b"}, "owner": {"S": "somebody else"}})
        bad = several("m-1", "a", "b", None)
        assert cloud.deliver(bad, *self.BATCH[1:], **SEVERAL) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK, BURY]
        assert cloud.transactions == [["a", "b", "d", "e", "f"], ["a", "d", "e", "f"]]
        (letter,) = cloud.dead_letters()
        assert (letter.body, letter.reason) == (bad["body"], "row-exists")
        assert letter.detail.split("; ")[:2] == [
            "1: applied",
            "2: conflict row-exists a row of this key is stored that must not be overwritten",
        ]

    @pytest.mark.parametrize("operation", [PUBLISH, MARK])
    def test_dead_one_waits_for_the_others(self, cloud: Cloud, operation: str) -> None:
        cloud.on(operation, raises=client_error("InternalServerError", operation), calls=[1])
        bad = several("m-1", "a", None)
        assert cloud.deliver(bad, *self.BATCH[1:], **SEVERAL) == reported("m-1", "m-2", "m-3")
        assert cloud.dead_letters() == []
        assert cloud.deliver(bad, *self.BATCH[1:], **SEVERAL) == NOTHING_FAILED
        assert cloud.reasons() == ["id-missing"]
        assert cloud.statuses() == dict.fromkeys("adef", "sent")

    def test_more_than_a_transaction_holds_take_several(self, cloud: Cloud) -> None:
        assert cloud.deliver(several("m-1", *ids(range(120))), record("m-2", "{"), **SEVERAL) == NOTHING_FAILED
        # All of a message in one part.
        assert cloud.operations == [COMMIT, COMMIT, COMMIT, *[PUBLISH] * 12, *[MARK] * 5, BURY]
        assert cloud.transactions == [ids(range(50)), ids(range(50, 100)), ids(range(100, 120))]


# Transactions are no larger than they may be


def of_many_rows(rows: int) -> Callable[[Event], Plan]:
    def plan(event: Event) -> Plan:
        return Plan([Put("order_records", {"id": f"{event.id}/{row}"}) for row in range(rows)], Notification("done"))

    return plan


@pytest.mark.parametrize(
    ("rows", "sizes"), [(0, [40]), (1, [40]), (2, [33, 2]), (3, [25, 10]), (49, [2, 1]), (50, [1, 1]), (99, [1, 1])]
)
def test_transaction_holds_a_hundred_actions_at_most(cloud: Cloud, rows: int, sizes: list[int]) -> None:
    """Its own row, and those that its plan writes."""
    handle = cloud.consumer(of_many_rows(rows)).handle
    assert handle({"Records": orders(range(sum(sizes)))}, Context(cloud)) == NOTHING_FAILED
    assert [len(events) for events in cloud.transactions] == sizes
    assert [event_id for events in cloud.transactions for event_id in events] == ids(range(sum(sizes)))


def test_event_that_no_transaction_can_hold_is_dead_lettered_alone(cloud: Cloud) -> None:
    def plan(event: Event) -> Plan:
        return of_many_rows(100 if event.id == "o-1" else 1)(event)

    assert cloud.consumer(plan).handle({"Records": orders(range(4))}, Context(cloud)) == NOTHING_FAILED
    assert cloud.transactions == [["o-0", "o-2", "o-3"]]
    assert cloud.reasons() == ["too-many-writes"]
    assert cloud.statuses() == {"o-0": "sent", "o-2": "sent", "o-3": "sent"}


def bytes_of(request: dict[str, Any]) -> int:
    return sum(len(str(action["Put"]["Item"])) for action in request["TransactItems"])


def test_rows_of_four_megabytes_in_all_go_in_several_transactions(cloud: Cloud) -> None:
    batch = orders(range(12), text="x" * 395_000)
    small: dict[str, Any] = {"NOTIFICATION_MESSAGE": "id"}
    assert cloud.deliver(*batch, **small) == NOTHING_FAILED
    assert [len(events) for events in cloud.transactions] == [10, 2]
    assert max(map(bytes_of, cloud.requests(COMMIT))) < 4_000_000
    assert cloud.statuses() == dict.fromkeys(ids(range(12)), "sent")


def test_large_notifications_count_as_rows_and_are_published_in_several_calls(cloud: Cloud) -> None:
    batch = orders(TEN, text="x" * 100_000)
    assert cloud.deliver(*batch) == NOTHING_FAILED
    # 2.0 MB in the transaction, half of it in the ledger; the topic takes 256 KiB a call.
    assert cloud.operations == [COMMIT, *[PUBLISH] * 5, MARK]
    published = [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)]
    assert published == [2, 2, 2, 2, 2]
    assert set(cloud.statuses().values()) == {"sent"}


def test_notification_and_row_together_fill_a_transaction(cloud: Cloud) -> None:
    """300 KB twice: of eight events six fit into 4 MB. The topic takes larger messages than moto's."""
    batch = orders(range(8), text="x" * 300_000)
    cloud.on(PUBLISH, answers=lambda request, _effect: partly(request, {}))
    assert cloud.deliver(*batch, NOTIFICATION_MAX_BYTES="350000") == NOTHING_FAILED
    assert cloud.count(PUBLISH) == 8
    assert [len(events) for events in cloud.transactions] == [6, 2]
    assert max(map(bytes_of, cloud.requests(COMMIT))) < 4_000_000


# The read before the commit is only a shortcut


READ_ERRORS: dict[str, Exception] = {
    "throttled": client_error("ThrottlingException", READ),
    "denied": client_error("AccessDeniedException", READ),
    "5xx": client_error("InternalServerError", READ),
    "no answer": ConnectTimeoutError(endpoint_url="https://aws.example"),
    "fault of our own": TypeError("text"),
}


@pytest.mark.parametrize("error", READ_ERRORS)
def test_first_read_that_fails_changes_nothing(cloud: Cloud, error: str, metrics: Metrics) -> None:
    cloud.deliver(*orders(range(3)))
    cloud.commit_without_publishing(*orders(range(3, 6)))
    metrics()
    cloud.on(READ, raises=READ_ERRORS[error])
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")
    assert sorted(cloud.notified()) == ids(TEN)
    # The transaction names them.
    assert cloud.transactions == [ids(TEN), ids(range(6, 10))]
    counted = metrics()
    assert (counted["Applied"], counted["Resumed"], counted["Duplicates"], counted["Retries"]) == (4, 3, 3, 0)


def test_first_read_is_tried_again_where_it_is_throttled(cloud: Cloud, pauses: list[int]) -> None:
    cloud.deliver(*orders(TEN))
    cloud.forget()
    cloud.on(READ, raises=client_error("ThrottlingException", READ), calls=[1, 2])
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ, READ, READ]
    assert pauses == [0, 1]


def test_events_that_the_first_read_leaves_over_are_not_taken_for_unknown(cloud: Cloud, metrics: Metrics) -> None:
    cloud.commit_without_publishing(*orders(TEN))

    def leave_over(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        answer = effect()
        rows = answer["Responses"][LEDGER]
        left = [{"event_id": row["event_id"]} for row in rows if row["event_id"]["S"] in ("o-3", "o-7")]
        kept = [row for row in rows if {"event_id": row["event_id"]} not in left]
        return {"Responses": {LEDGER: kept}, "UnprocessedKeys": {LEDGER: {"Keys": left}} if left else {}}

    cloud.on(READ, answers=leave_over)
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    # Read on, again as often as may be, and then committed, which says that they are pending.
    assert cloud.reads == [ids(TEN), *[["o-3", "o-7"]] * 5]
    assert cloud.transactions == [["o-3", "o-7"]]
    assert metrics()["Resumed"] == 10
    assert sorted(cloud.notified()) == ids(TEN)


# All that can become of an event, in one batch


S3: dict[str, Any] = {
    "EVENT_ENVELOPE": "s3",
    "EVENT_ID": "id",
    "EVENT_ITEM": "item",
    "EVENT_WRITE_MODE": "newer",
    "EVENT_VERSION": "version",
}


def s3_body(event_id: str, *, row: str | None = None, version: int = 1, amount: int = 1) -> dict[str, Any]:
    item = {"id": row or event_id, "amount": amount}
    return {"Records": [{"s3": {"object": {"key": "k"}}, "id": event_id, "version": version, "item": item}]}


def mixed(receive_count: int) -> list[Record]:
    bodies: dict[str, Any] = {
        "m-new-1": s3_body("new-1"),
        "m-pending": s3_body("pending"),
        "m-bad-json": "{",
        "m-sent": s3_body("sent"),
        "m-reused": s3_body("reused", amount=2),
        "m-ignored": {"Event": "s3:TestEvent"},
        "m-old": s3_body("old", row="versioned", version=2),
        "m-taken": s3_body("taken"),
        "m-no-item": {"Records": [{"s3": {"object": {"key": "k"}}, "id": "no-item", "version": 1}]},
        "m-new-2": s3_body("new-2", row="versioned", version=4),
    }
    return [record(message_id, body, receive_count=receive_count) for message_id, body in bodies.items()]


class TestEveryOutcomeInOneBatch:
    @pytest.fixture
    def prepared(self, cloud: Cloud, metrics: Metrics) -> Cloud:
        before = [s3_body("sent"), s3_body("reused"), s3_body("first", row="versioned", version=3)]
        cloud.deliver(*(record(f"m-{number}", body) for number, body in enumerate(before)), **S3)
        cloud.commit_without_publishing(record("m-0", s3_body("pending")), **S3)
        cloud.store(BUSINESS, {"id": {"S": "taken"}, "owner": {"S": "somebody else"}})
        cloud.notifications()
        metrics()
        return cloud

    def check(self, cloud: Cloud, metrics: Metrics) -> None:
        new = ["new-1", "new-2", "pending"]
        assert cloud.statuses() == dict.fromkeys(["first", "old", "reused", "sent", *new], "sent")
        assert sorted(cloud.notified()[3:]) == new
        assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
            ("{", "bad-json"),
            (mixed(1)[4]["body"], "id-reused"),
            (mixed(1)[7]["body"], "row-exists"),
            (mixed(1)[8]["body"], "item-not-an-object"),
        ]
        assert cloud.rows()["reused"]["amount"] == {"N": "1"}
        assert cloud.rows()["taken"] == {"id": {"S": "taken"}, "owner": {"S": "somebody else"}}
        assert cloud.rows()["versioned"]["event_id"] == {"S": "new-2"}
        counted = metrics()
        assert {name: counted[name] for name in ("Applied", "Resumed", "Duplicates", "Superseded", "Ignored")} == {
            "Applied": 2,
            "Resumed": 1,
            "Duplicates": 1,
            "Superseded": 1,
            "Ignored": 1,
        }
        assert (counted["Rejected"], counted["Conflicts"], counted["Retries"]) == (2, 2, 0)

    def test_on_their_first_receive(self, prepared: Cloud, metrics: Metrics) -> None:
        assert prepared.deliver(*mixed(1), **S3) == NOTHING_FAILED
        assert prepared.operations == [READ, COMMIT, READ, PUT, COMMIT, *[BURY] * 4, PUBLISH, MARK]
        assert prepared.transactions == [
            ["new-1", "pending", "sent", "reused", "old", "taken"],
            ["new-1", "new-2"],
        ]
        assert prepared.reads == [["no-item"], ["new-1", "old", "taken"]]
        self.check(prepared, metrics)

    def test_when_they_are_redelivered(self, prepared: Cloud, metrics: Metrics) -> None:
        assert prepared.deliver(*mixed(2), **S3) == NOTHING_FAILED
        assert prepared.operations == [READ, READ, COMMIT, READ, PUT, COMMIT, *[BURY] * 4, PUBLISH, MARK]
        assert prepared.transactions == [["new-1", "old", "taken"], ["new-1", "new-2"]]
        assert prepared.reads == [
            ["new-1", "pending", "sent", "reused", "old", "taken", "no-item", "new-2"],
            ["no-item"],
            ["new-1", "old", "taken"],
        ]
        self.check(prepared, metrics)


# One event, or one business row, in several messages


def test_copies_and_an_id_that_is_used_again_wait_for_the_first_of_them(cloud: Cloud, metrics: Metrics) -> None:
    batch = [order(1), order(2), record("m-3", {"id": "o-1", "amount": 99}), record("m-4", {"id": "o-1"}), order(5)]
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, COMMIT, BURY, PUBLISH, MARK]
    assert cloud.transactions == [["o-1", "o-2", "o-5"], ["o-1"], ["o-1"]]
    assert cloud.reasons() == ["id-reused"]
    assert cloud.notified() == ["o-1", "o-2", "o-5"]
    assert cloud.ledger()["o-1"]["message_id"] == {"S": "m-1"}
    counted = metrics()
    assert (counted["Applied"], counted["Duplicates"], counted["Conflicts"]) == (3, 1, 1)


def test_copies_of_a_redelivered_event_are_decided_by_one_read(cloud: Cloud, metrics: Metrics) -> None:
    """A read takes each key once."""
    cloud.deliver(order(1))
    cloud.forget()
    metrics()
    copies = [record(f"m-{number}", {"id": "o-1"}, receive_count=2) for number in range(3)]
    other = record("m-other", {"id": "o-1", "amount": 99}, receive_count=2)
    assert cloud.deliver(*copies, other, order(2, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ, COMMIT, BURY, PUBLISH, MARK]
    assert cloud.reads == [["o-1", "o-2"]]
    assert cloud.transactions == [["o-2"]]
    assert [letter.body for letter in cloud.dead_letters()] == ['{"id":"o-1","amount":99}']
    assert metrics()["Duplicates"] == 3


def test_copies_of_a_redelivered_event_that_the_ledger_does_not_know_wait_for_the_first(cloud: Cloud) -> None:
    copies = [record(f"m-{number}", {"id": "o-1"}, receive_count=2) for number in range(3)]
    assert cloud.deliver(*copies, order(2, receive_count=2)) == NOTHING_FAILED
    assert cloud.reads == [["o-1", "o-2"], ["o-1"]]
    assert cloud.transactions == [["o-1", "o-2"]]
    assert sorted(cloud.notified()) == ["o-1", "o-2"]


def test_copies_in_another_part_of_a_large_batch_are_duplicates(cloud: Cloud, metrics: Metrics) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number % 50}"}) for number in range(100)]
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, *[PUBLISH] * 5, MARK, MARK, COMMIT]
    counted = metrics()
    assert (counted["Applied"], counted["Resumed"], counted["Duplicates"]) == (50, 0, 50)


def test_copies_in_two_parts_of_a_large_batch_whose_publish_fails_come_back_or_are_made_good(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number % 50}"}) for number in range(100)]
    cloud.on(PUBLISH, raises=client_error("InternalError", PUBLISH), calls=range(1, 6))
    # The copies in the second part find pending rows, publish and mark them.
    assert cloud.deliver(*batch) == reported(*(f"m-{number}" for number in range(50)))
    assert cloud.statuses() == dict.fromkeys(ids(range(50)), "sent")
    assert sorted(cloud.notified()) == sorted(ids(range(50)))


def on_one_row(*versions: int) -> list[Record]:
    return [
        record(f"m-{version}", {"id": "s-1", "event": f"e-{version}", "version": version}, receive_count=1)
        for version in versions
    ]


NEIGHBOUR = record("m-0", {"id": "s-0", "event": "e-0", "version": 1})


def test_second_insert_of_one_row_is_a_conflict_and_its_neighbours_do_not_wait(cloud: Cloud) -> None:
    assert cloud.deliver(*on_one_row(1, 2), NEIGHBOUR, **BY_EVENT) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, READ, BURY, PUBLISH, MARK]
    assert cloud.transactions == [["e-1", "e-0"], ["e-2"]]
    assert cloud.rows()["s-1"]["event_id"] == {"S": "e-1"}
    assert cloud.reasons() == ["row-exists"]
    assert sorted(cloud.notified()) == ["e-0", "e-1"]


@pytest.mark.parametrize("versions", [(1, 2, 3), (3, 1, 2)])
def test_upserts_of_one_row_are_applied_in_the_order_of_the_batch(cloud: Cloud, versions: tuple[int, ...]) -> None:
    assert cloud.deliver(*on_one_row(*versions), NEIGHBOUR, **UPSERT) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, COMMIT, PUBLISH, MARK]
    first, second, third = (f"e-{version}" for version in versions)
    assert cloud.transactions == [[first, "e-0"], [second], [third]]
    assert cloud.rows()["s-1"]["event_id"] == {"S": third}
    assert sorted(cloud.notified()) == ["e-0", "e-1", "e-2", "e-3"]


def test_newer_version_of_a_row_in_one_batch_is_applied_after_the_older(cloud: Cloud) -> None:
    assert cloud.deliver(*on_one_row(1, 2), NEIGHBOUR, **NEWER) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, PUBLISH, MARK]
    assert cloud.rows()["s-1"]["event_version"] == {"N": "2"}
    assert sorted(cloud.notified()) == ["e-0", "e-1", "e-2"]


def test_older_version_of_a_row_in_one_batch_is_superseded(cloud: Cloud) -> None:
    assert cloud.deliver(*on_one_row(2, 1), NEIGHBOUR, **NEWER) == NOTHING_FAILED
    assert cloud.operations == [COMMIT, COMMIT, READ, PUT, PUBLISH, MARK]
    assert cloud.rows()["s-1"]["event_version"] == {"N": "2"}
    assert cloud.statuses() == {"e-0": "sent", "e-1": "sent", "e-2": "sent"}
    assert sorted(cloud.notified()) == ["e-0", "e-2"]


def test_event_that_is_committed_while_it_is_found_superseded_is_decided_by_its_row(cloud: Cloud) -> None:
    """Another process is faster, with other content: this one must not be swallowed as superseded."""
    other = record("m-other", {"id": "s-other", "event": "e-1", "version": 1})
    cloud.on(PUT, runs=lambda: cloud.deliver(other, **NEWER), calls=[1])
    assert cloud.deliver(*on_one_row(2, 1), **NEWER) == NOTHING_FAILED
    assert [(letter.reason, letter.body) for letter in cloud.dead_letters()] == [
        ("id-reused", on_one_row(1)[0]["body"])
    ]
    assert sorted(cloud.rows()) == ["s-1", "s-other"]


@pytest.mark.parametrize("keys", [("1", "1.0"), ("10", "1e1"), ("0", "-0.0")])
def test_numbers_that_are_one_key_are_one_row(cloud: Cloud, keys: tuple[str, str]) -> None:
    """A transaction takes a row once, and DynamoDB compares numbers by value."""
    numeric: dict[str, Any] = {**UPSERT, "BUSINESS_HASH_KEY": "number", "BUSINESS_HASH_KEY_TYPE": "N"}
    batch = [
        record(f"m-{index}", f'{{"id":"r-{index}","event":"e-{index}","number":{key}}}')
        for index, key in enumerate(keys)
    ]
    assert cloud.deliver(*batch, **numeric) == NOTHING_FAILED
    assert cloud.transactions == [["e-0"], ["e-1"]]


# Publishing and marking in part


def partly(request: dict[str, Any], failing: dict[int, str]) -> dict[str, Any]:
    entries = request["PublishBatchRequestEntries"]
    return {
        "Successful": [{"Id": entry["Id"]} for entry in entries if int(entry["Id"]) not in failing],
        "Failed": [{"Id": str(index), "Code": code, "SenderFault": False} for index, code in failing.items()],
    }


def test_entries_that_are_not_published_are_reported_and_no_others(cloud: Cloud, logged: Logged) -> None:
    cloud.on(PUBLISH, answers=lambda request, _effect: partly(request, {2: "InternalError", 7: "KMSDisabled"}))
    assert cloud.deliver(*orders(TEN)) == reported("m-2", "m-7")
    assert cloud.operations == [COMMIT, PUBLISH, MARK]
    pending = {event_id for event_id, status in cloud.statuses().items() if status == "pending"}
    assert pending == {"o-2", "o-7"}
    assert logged() == [
        ("m-2", "retry", "unavailable", "PublishBatch: InternalError"),
        ("m-7", "retry", "misconfigured", "PublishBatch: KMSDisabled"),
    ]
    cloud.heal()
    cloud.forget()
    assert cloud.deliver(order(2, receive_count=2), order(7, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == [READ, PUBLISH, MARK]
    assert set(cloud.statuses().values()) == {"sent"}


def test_throttled_entries_are_published_again_with_no_others(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(PUBLISH, answers=lambda request, _effect: partly(request, {1: "Throttled", 9: "Throttled"}), calls=[1])
    assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
    entries = [
        [entry["MessageAttributes"]["event_id"]["StringValue"] for entry in request["PublishBatchRequestEntries"]]
        for request in cloud.requests(PUBLISH)
    ]
    assert entries == [ids(TEN), ["o-1", "o-9"]]
    assert pauses == [0]


MARK_ERRORS = {"ConditionalCheckFailed": 1, "InternalServerError": 1, "ThrottlingError": 5, "TransactionConflict": 5}


@pytest.mark.parametrize("code", MARK_ERRORS)
def test_events_that_are_not_marked_are_reported_and_no_others(cloud: Cloud, code: str) -> None:
    def answer(request: dict[str, Any], effect: Callable[..., Any]) -> Any:
        failing = [
            index
            for index, statement in enumerate(request["Statements"])
            if statement["Parameters"][4]["S"] in ("o-0", "o-5")
        ]
        statements = [statement for index, statement in enumerate(request["Statements"]) if index not in failing]
        done = iter(cloud.mark(statements)["Responses"] if statements else [])
        error = {"Error": {"Code": code, "Message": "text"}}
        return {"Responses": [error if index in failing else next(done) for index in range(len(request["Statements"]))]}

    cloud.on(MARK, answers=answer)
    assert cloud.deliver(*orders(TEN)) == reported("m-0", "m-5")
    assert [len(request["Statements"]) for request in cloud.requests(MARK)] == [10, 2, 2, 2, 2][: MARK_ERRORS[code]]
    pending = {event_id for event_id, status in cloud.statuses().items() if status == "pending"}
    assert pending == {"o-0", "o-5"}
    cloud.heal()
    assert cloud.deliver(order(0, receive_count=2), order(5, receive_count=2)) == NOTHING_FAILED
    # Allowed: published, not marked, published again.
    assert sorted(cloud.notified()) == sorted([*ids(TEN), "o-0", "o-5"])


def test_row_that_is_gone_before_it_is_marked_is_reported_alone(cloud: Cloud) -> None:
    """Somebody deletes it by hand: an update must not make a row of its own."""
    cloud.on(MARK, runs=lambda: cloud.expire("o-4"))
    assert cloud.deliver(*orders(TEN)) == reported("m-4")
    assert sorted(cloud.statuses()) == [event_id for event_id in ids(TEN) if event_id != "o-4"]


@pytest.mark.parametrize("failing", [1, 2])
def test_one_failing_call_of_two_that_mark_reports_its_events_alone(cloud: Cloud, failing: int) -> None:
    cloud.on(MARK, raises=client_error("InternalServerError", MARK), calls=[failing])
    of_the_call = {1: range(25), 2: range(25, 30)}[failing]
    assert cloud.deliver(*orders(range(30))) == reported(*(f"m-{number}" for number in of_the_call))
    pending = {event_id for event_id, status in cloud.statuses().items() if status == "pending"}
    assert pending == set(ids(of_the_call))


def test_refused_publish_of_ten_is_made_one_by_one(cloud: Cloud) -> None:
    def refuse(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        entries = request["PublishBatchRequestEntries"]
        if any(entry["MessageAttributes"]["event_id"]["StringValue"] == "o-6" for entry in entries):
            raise ClientError({"Error": {"Code": "InvalidParameter", "Message": "text"}}, PUBLISH)
        return effect()

    cloud.on(PUBLISH, answers=refuse)
    assert cloud.deliver(*orders(TEN)) == reported("m-6")
    assert cloud.count(PUBLISH) == 11
    pending = [event_id for event_id, status in cloud.statuses().items() if status == "pending"]
    assert pending == ["o-6"]
