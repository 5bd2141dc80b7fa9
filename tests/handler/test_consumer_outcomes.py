"""Each outcome on its own and all in one batch: the literal answer, and what is stored and sent afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from idempotent_consumer import telemetry
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    MARK_STATEMENT,
    NOTHING_FAILED,
    NOW,
    PUBLISH,
    PUT,
    READ,
    TTL,
    Cloud,
    DeadLetter,
    Notification,
    client_error,
    fixture,
    record,
    reported,
)

ORDER = {"id": "o-1", "amount": 10}
# SHA-256 of {"amount":10,"id":"o-1"}
ORDER_FINGERPRINT = {"S": "1b72ca12ffb84279c85e3b4bbb4711fc8282b1725c76697489c35436c74a8c59"}
ORDER_ROW = {
    "id": {"S": "o-1"},
    "amount": {"N": "10"},
    "event_id": {"S": "o-1"},
    "event_fingerprint": ORDER_FINGERPRINT,
    "event_consumer": {"S": "orders"},
    "event_committed_at": NOW,
}
ORDER_NOTIFICATION = Notification('{"id":"o-1","amount":10}', {"event_id": ("String", "o-1")})
SENT_ROW = {
    "event_id": {"S": "o-1"},
    "status": {"S": "sent"},
    "fingerprint": ORDER_FINGERPRINT,
    "message_id": {"S": "m-1"},
    "created_at": NOW,
    "sent_at": NOW,
    "ttl": TTL,
}

NEWER: dict[str, Any] = {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}

Metrics = Callable[[], dict[str, Any]]
Logged = Callable[[], list[tuple[str, str, str, str]]]


def test_new_event_is_written_published_and_marked_in_three_calls(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", ORDER)) == {"batchItemFailures": []}
    assert cloud.operations == ["TransactWriteItems", "PublishBatch", "BatchExecuteStatement"]
    assert cloud.ledger() == {"o-1": SENT_ROW}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == [ORDER_NOTIFICATION]
    assert cloud.dead_letters() == []


@pytest.mark.case("C22")
def test_one_conditional_transaction_decides_and_nothing_is_read_before_it(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER))
    assert cloud.requests(COMMIT) == [
        {
            "TransactItems": [
                {
                    "Put": {
                        "TableName": "orders-processed-events",
                        "Item": {
                            "event_id": {"S": "o-1"},
                            "status": {"S": "pending"},
                            "fingerprint": ORDER_FINGERPRINT,
                            "message_id": {"S": "m-1"},
                            "created_at": NOW,
                            "pending_shard": {"S": "10"},
                            "notification": {
                                "S": '{"message":"{\\"id\\":\\"o-1\\",\\"amount\\":10}",'
                                '"attributes":{"event_id":["String","o-1"]},'
                                '"group":"a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38",'
                                '"deduplication_id":"a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"}'
                            },
                        },
                        "ConditionExpression": "attribute_not_exists(event_id)",
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
                {
                    "Put": {
                        "TableName": "order_records",
                        "Item": ORDER_ROW,
                        "ConditionExpression": "attribute_not_exists(#key)",
                        "ExpressionAttributeNames": {"#key": "id"},
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ]
        }
    ]
    assert cloud.count(READ) == 0


def test_marking_quotes_the_reserved_words_and_names_only_the_events_of_the_batch(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-2"}))
    assert cloud.requests(MARK) == [
        {
            "Statements": [
                {
                    "Statement": MARK_STATEMENT,
                    "Parameters": [{"S": "sent"}, NOW, TTL, {"S": "m-1"}, {"S": "o-1"}],
                },
                {
                    "Statement": MARK_STATEMENT,
                    "Parameters": [{"S": "sent"}, NOW, TTL, {"S": "m-2"}, {"S": "o-2"}],
                },
            ]
        }
    ]


@pytest.mark.case("C50")
def test_ttl_is_ten_digits_of_seconds_after_the_window(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER), TTL_WINDOW_DAYS="7")
    assert cloud.ledger()["o-1"]["ttl"] == {"N": str(1_893_553_446 + 7 * 86_400)}


def test_pending_row_has_the_notification_and_its_index_key_but_no_ttl(cloud: Cloud) -> None:
    cloud.commit_without_publishing(record("m-1", ORDER))
    row = cloud.ledger()["o-1"]
    assert set(row) == {
        "event_id",
        "status",
        "fingerprint",
        "message_id",
        "created_at",
        "notification",
        "pending_shard",
    }
    assert row["status"] == {"S": "pending"}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == []


def test_second_delivery_of_a_sent_event_changes_nothing(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER))
    cloud.forget()
    assert cloud.deliver(record("m-2", ORDER)) == {"batchItemFailures": []}
    assert cloud.operations == ["TransactWriteItems"]
    assert cloud.ledger() == {"o-1": SENT_ROW}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == [ORDER_NOTIFICATION]
    assert cloud.dead_letters() == []


@pytest.mark.case("C47")
def test_key_order_and_number_spelling_make_no_other_event(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", '{"id":"o-1","amount":10}'))
    assert cloud.deliver(record("m-2", '{"amount": 10.00, "id": "o-1"}')) == NOTHING_FAILED
    assert cloud.dead_letters() == []
    assert cloud.rows() == {"o-1": ORDER_ROW}


@pytest.mark.case("C58", "C62")
def test_pending_event_is_published_from_its_row_and_marked(cloud: Cloud) -> None:
    cloud.commit_without_publishing(record("m-1", ORDER))
    assert cloud.deliver(record("m-1", ORDER, receive_count=2)) == {"batchItemFailures": []}
    assert cloud.history == [("published", "o-1"), ("marked", "o-1")]
    assert cloud.ledger() == {"o-1": SENT_ROW}
    assert cloud.notifications() == [ORDER_NOTIFICATION]


@pytest.mark.case("C58")
def test_redrive_with_a_new_message_id_finishes_the_pending_event(cloud: Cloud) -> None:
    cloud.commit_without_publishing(record("m-1", ORDER))
    assert cloud.deliver(record("m-redriven", ORDER)) == NOTHING_FAILED
    assert cloud.notified() == ["o-1"]
    assert cloud.ledger()["o-1"] == {**SENT_ROW, "message_id": {"S": "m-redriven"}}


def test_retry_says_what_the_first_attempt_decided_though_the_settings_have_changed(cloud: Cloud) -> None:
    cloud.commit_without_publishing(
        record("m-1", ORDER), NOTIFICATION_MESSAGE="amount", NOTIFICATION_ATTRIBUTES='{"kind":"id"}'
    )
    answer = cloud.deliver(
        record("m-1", ORDER), NOTIFICATION_MESSAGE="'something else'", NOTIFICATION_ATTRIBUTES='{"colour":"amount"}'
    )
    assert answer == NOTHING_FAILED
    assert cloud.notifications() == [
        Notification("10", {"kind": ("String", "o-1"), "event_id": ("String", "o-1")}),
    ]


@pytest.mark.case("C47")
def test_same_id_with_other_content_goes_to_the_dead_letter_queue(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", ORDER))
    assert cloud.deliver(record("m-2", {"id": "o-1", "amount": 99})) == {"batchItemFailures": []}
    assert cloud.ledger() == {"o-1": SENT_ROW}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == [ORDER_NOTIFICATION]
    assert cloud.dead_letters() == [
        DeadLetter(
            '{"id":"o-1","amount":99}',
            {
                "dead_letter_reason": {"DataType": "String", "StringValue": "id-reused"},
                "dead_letter_detail": {
                    "DataType": "String",
                    "StringValue": "the ledger holds this event id with other content",
                },
            },
        )
    ]


def test_same_id_with_other_content_is_a_conflict_while_the_first_is_pending_too(cloud: Cloud) -> None:
    cloud.commit_without_publishing(record("m-1", ORDER))
    assert cloud.deliver(record("m-2", {"id": "o-1", "amount": 99})) == NOTHING_FAILED
    assert cloud.reasons() == ["id-reused"]
    assert cloud.statuses() == {"o-1": "pending"}
    assert cloud.notifications() == []


def test_fingerprint_of_a_selected_part_ignores_the_rest(cloud: Cloud) -> None:
    select: dict[str, Any] = {"EVENT_FINGERPRINT": "amount"}
    cloud.deliver(record("m-1", {**ORDER, "sent": 1}), **select)
    assert cloud.deliver(record("m-2", {**ORDER, "sent": 2}), **select) == NOTHING_FAILED
    assert cloud.dead_letters() == []
    cloud.deliver(record("m-3", {**ORDER, "amount": 11, "sent": 3}), **select)
    assert cloud.reasons() == ["id-reused"]


@pytest.mark.case("C45")
def test_events_without_an_id_go_to_the_dead_letter_queue_each_on_its_own(cloud: Cloud) -> None:
    records = [record(f"m-{number}", {"amount": number}) for number in (1, 2, 3)]
    assert cloud.deliver(*records) == NOTHING_FAILED
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [
        ('{"amount":1}', "id-missing"),
        ('{"amount":2}', "id-missing"),
        ('{"amount":3}', "id-missing"),
    ]
    assert cloud.operations == ["SendMessage", "SendMessage", "SendMessage"]
    assert cloud.ledger() == {}
    assert cloud.rows() == {}


@pytest.mark.case("C34", "N01")
@pytest.mark.parametrize(
    ("event_id", "reason"),
    [("", "id-blank"), ("   ", "id-blank"), (None, "id-missing"), (True, "id-wrong-type"), ("é" * 1025, "id-too-long")],
)
def test_unusable_id_is_dead_lettered_before_any_other_call(cloud: Cloud, event_id: Any, reason: str) -> None:
    assert cloud.deliver(record("m-1", {"id": event_id})) == NOTHING_FAILED
    assert cloud.operations == ["SendMessage"]
    assert cloud.reasons() == [reason]


@pytest.mark.case("N04", "C13")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "bad-json"),
        ("[1]", "not-an-object"),
        ('"{\\"id\\":1}"', "not-an-object"),
        ("null", "not-an-object"),
        ("\ufeff{}", "bad-json"),
        ('{"id":"o-1","id":"o-2"}', "duplicate-json-key"),
        ('{"id":"o-1","n":NaN}', "bad-json"),
        ('{"detail-type":"x","detail":{}}', "id-missing"),
    ],
)
def test_body_that_is_no_event_fails_alone(cloud: Cloud, body: str, reason: str) -> None:
    assert cloud.deliver(record("m-1", ORDER), record("m-2", body), record("m-3", {"id": "o-3"})) == NOTHING_FAILED
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [(body, reason)]
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}


@pytest.mark.case("C43", "N11")
def test_row_over_400_kb_is_dead_lettered_before_it_is_written(cloud: Cloud) -> None:
    cloud.on(BURY, answers={})  # SQS takes 1 MiB, moto less
    event = record("m-1", {"id": "o-1", "text": "x" * 410_000})
    assert cloud.deliver(event, NOTIFICATION_MESSAGE="id") == NOTHING_FAILED
    assert cloud.operations == ["BatchGetItem", "SendMessage"]
    attributes = cloud.requests(BURY)[0]["MessageAttributes"]
    assert attributes["dead_letter_reason"]["StringValue"] == "item-too-large"
    assert cloud.ledger() == {}
    assert cloud.rows() == {}


@pytest.mark.case("C66", "C41")
def test_notification_that_could_never_be_published_leaves_no_row(cloud: Cloud) -> None:
    event = {"id": "o-1", "text": "x" * 200}
    assert cloud.deliver(record("m-1", event), NOTIFICATION_MAX_BYTES="200") == NOTHING_FAILED
    assert cloud.reasons() == ["notification-too-large"]
    assert cloud.ledger() == {}
    assert cloud.rows() == {}


@pytest.mark.case("C36", "C37", "C41")
def test_numbers_are_exact_in_the_row_and_in_the_notification(cloud: Cloud) -> None:
    body = '{"id":"o-1","total":19.99,"parts":[30.40,0.1,1e-7]}'
    cloud.deliver(record("m-1", body))
    row = cloud.rows()["o-1"]
    assert row["total"] == {"N": "19.99"}
    assert [row["parts"]["L"][index]["N"] for index in (0, 1)] == ["30.40", "0.1"]
    assert cloud.notifications()[0].message == '{"id":"o-1","total":19.99,"parts":[30.40,0.1,0.0000001]}'


def test_integer_id_is_written_in_decimal(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", {"id": 7}))
    assert cloud.statuses() == {"7": "sent"}
    assert cloud.rows()["7"]["id"] == {"S": "7"}
    assert cloud.notified() == ["7"]


def test_zero_is_an_id(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", {"id": 0}))
    assert cloud.statuses() == {"0": "sent"}


def test_event_older_than_the_stored_version_is_superseded(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", {"id": "s-1", "event": "e-2", "version": 2}), EVENT_ID="event", **NEWER)
    cloud.forget()
    answer = cloud.deliver(record("m-2", {"id": "s-1", "event": "e-1", "version": 1}), EVENT_ID="event", **NEWER)
    assert answer == {"batchItemFailures": []}
    assert cloud.operations == ["TransactWriteItems", "BatchGetItem", "PutItem"]
    assert cloud.rows()["s-1"]["event"] == {"S": "e-2"}
    assert cloud.notified() == ["e-2"]
    assert cloud.statuses() == {"e-2": "sent", "e-1": "sent"}
    row = cloud.ledger()["e-1"]
    assert set(row) == {"event_id", "status", "fingerprint", "message_id", "created_at", "sent_at", "ttl"}
    assert row["ttl"] == TTL
    assert cloud.dead_letters() == []


def test_superseded_event_is_a_duplicate_the_second_time(cloud: Cloud, metrics: Metrics) -> None:
    cloud.deliver(record("m-1", {"id": "s-1", "event": "e-2", "version": 2}), EVENT_ID="event", **NEWER)
    late = {"id": "s-1", "event": "e-1", "version": 1}
    metrics_before = metrics()
    cloud.deliver(record("m-2", late), EVENT_ID="event", **NEWER)
    first = metrics()
    cloud.deliver(record("m-3", late), EVENT_ID="event", **NEWER)
    second = metrics()
    assert (metrics_before["Superseded"], first["Superseded"], second["Superseded"]) == (0, 1, 0)
    assert second["Duplicates"] == 1


@pytest.mark.case("C11")
def test_test_event_of_s3_is_acknowledged_without_a_row(cloud: Cloud, metrics: Metrics) -> None:
    s3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key, bucket: s3.bucket.name}"}
    answer = cloud.deliver(
        record("m-1", fixture("body_s3_put")),
        record("m-2", fixture("body_s3_test_event")),
        record("m-3", {"x": 1}),
        **s3,
    )
    assert answer == NOTHING_FAILED
    assert len(cloud.ledger()) == 1
    assert [(letter.body, letter.reason) for letter in cloud.dead_letters()] == [('{"x":1}', "not-an-s3-notification")]
    counted = metrics()
    assert (counted["Applied"], counted["Ignored"], counted["Rejected"]) == (1, 1, 1)


@pytest.mark.case("C08")
def test_throttled_event_is_reported(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("ThrottlingException"))
    assert cloud.deliver(record("m-1", ORDER)) == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    assert cloud.ledger() == {}
    assert cloud.rows() == {}
    assert cloud.notifications() == []
    assert cloud.dead_letters() == []


@pytest.mark.case("C01", "C03", "C08")
@pytest.mark.alone
def test_only_the_failing_record_of_a_batch_is_reported(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
    answer = cloud.deliver(*(record(f"m-{number}", {"id": f"o-{number}"}) for number in (1, 2, 3)))
    assert json.dumps(answer) == '{"batchItemFailures": [{"itemIdentifier": "m-2"}]}'
    assert cloud.statuses() == {"o-1": "sent", "o-3": "sent"}
    assert sorted(cloud.notified()) == ["o-1", "o-3"]


@pytest.mark.case("C03")
def test_whole_batch_that_comes_back_is_harmless(cloud: Cloud) -> None:
    batch = [record(f"m-{number}", {"id": f"o-{number}"}) for number in range(10)]
    cloud.deliver(*batch)
    assert cloud.deliver(*batch) == NOTHING_FAILED
    assert sorted(cloud.notified()) == [f"o-{number}" for number in range(10)]
    assert cloud.count(PUBLISH) == 1


@pytest.mark.alone
def test_every_outcome_in_one_batch(cloud: Cloud, metrics: Metrics) -> None:
    newer: dict[str, Any] = {"EVENT_ID": "event", **NEWER}
    cloud.deliver(record("m-0", {"id": "s-1", "event": "sent", "version": 5}), **newer)
    cloud.commit_without_publishing(record("m-0", {"id": "s-2", "event": "pending", "version": 5}), **newer)
    cloud.store(BUSINESS, {"id": {"S": "s-3"}, "owner": {"S": "somebody else"}})
    cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[6])
    metrics()

    answer = cloud.deliver(
        record("m-new", {"id": "s-4", "event": "new", "version": 1}),
        record("m-pending", {"id": "s-2", "event": "pending", "version": 5}),
        record("m-sent", {"id": "s-1", "event": "sent", "version": 5}),
        record("m-late", {"id": "s-1", "event": "late", "version": 4}),
        record("m-bad", "{"),
        record("m-foreign", {"id": "s-3", "event": "foreign", "version": 1}),
        record("m-unlucky", {"id": "s-5", "event": "unlucky", "version": 1}),
        **newer,
    )

    assert answer == reported("m-unlucky")
    assert cloud.statuses() == {"new": "sent", "pending": "sent", "sent": "sent", "late": "sent"}
    assert {key: row.get("event_id") for key, row in cloud.rows().items()} == {
        "s-1": {"S": "sent"},
        "s-2": {"S": "pending"},
        "s-3": None,
        "s-4": {"S": "new"},
    }
    assert sorted(cloud.notified()) == ["new", "pending", "sent"]
    assert cloud.reasons() == ["bad-json", "row-exists"]
    counted = metrics()
    assert {name: counted[name] for name in ("Applied", "Resumed", "Duplicates", "Superseded", "Ignored")} == {
        "Applied": 1,
        "Resumed": 1,
        "Duplicates": 1,
        "Superseded": 1,
        "Ignored": 0,
    }
    assert {name: counted[name] for name in ("Rejected", "Conflicts", "Retries", "Blocked", "Misconfigured")} == {
        "Rejected": 1,
        "Conflicts": 1,
        "Retries": 1,
        "Blocked": 0,
        "Misconfigured": 0,
    }


def test_steps_are_traced_with_their_counts(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[tuple[str, dict[str, int]]] = []

    @contextmanager
    def phase(name: str) -> Iterator[dict[str, int]]:
        annotations: dict[str, int] = {}
        phases.append((name, annotations))
        yield annotations

    monkeypatch.setattr(telemetry, "phase", phase)
    cloud.commit_without_publishing(record("m-0", {"id": "o-0"}))
    phases.clear()
    cloud.deliver(record("m-1", ORDER), record("m-2", {"id": "o-0"}), record("m-3", "{"))
    assert phases == [
        ("commit", {"applied": 1, "resumed": 1, "rejected": 1}),
        ("publish", {"published": 2, "failed": 0}),
        ("mark", {"marked": 2, "failed": 0}),
    ]
    phases.clear()
    cloud.deliver(record("m-4", ORDER))
    assert phases == [("commit", {"duplicate": 1})]


def test_without_a_topic_an_event_is_sent_at_once(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", ORDER), TOPIC_ARN=None) == NOTHING_FAILED
    assert cloud.operations == ["TransactWriteItems"]
    assert cloud.ledger() == {"o-1": SENT_ROW}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == []


@pytest.mark.case("C51")
@pytest.mark.parametrize("ttl", ["1893553445", "1893549846", "1"])
def test_row_past_its_ttl_still_counts_as_seen(cloud: Cloud, ttl: str) -> None:
    cloud.deliver(record("m-1", ORDER))
    old = {**SENT_ROW, "ttl": {"N": ttl}}
    cloud.store(LEDGER, old)
    cloud.real.dynamodb.delete_item(TableName=BUSINESS, Key={"id": {"S": "o-1"}})
    assert cloud.deliver(record("m-2", ORDER)) == NOTHING_FAILED
    assert cloud.ledger() == {"o-1": old}
    assert cloud.rows() == {}
    assert cloud.notifications() == [ORDER_NOTIFICATION]


def test_duplicate_whose_ledger_row_has_expired_is_known_by_the_business_row(cloud: Cloud, logged: Logged) -> None:
    cloud.deliver(record("m-1", ORDER))
    cloud.expire("o-1")
    assert cloud.deliver(record("m-2", ORDER)) == NOTHING_FAILED
    assert cloud.ledger() == {}
    assert cloud.rows() == {"o-1": ORDER_ROW}
    assert cloud.notifications() == [ORDER_NOTIFICATION]
    assert cloud.dead_letters() == []
    assert logged() == [("m-2", "duplicate", "ledger-row-expired", "the business row carries this event")]


def test_number_key_and_range_key_are_written_with_their_types(cloud: Cloud) -> None:
    cloud.real.dynamodb.create_table(
        TableName="readings",
        AttributeDefinitions=[
            {"AttributeName": "sensor", "AttributeType": "N"},
            {"AttributeName": "taken", "AttributeType": "S"},
        ],
        KeySchema=[{"AttributeName": "sensor", "KeyType": "HASH"}, {"AttributeName": "taken", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    answer = cloud.deliver(
        record("m-1", {"id": "r-1", "sensor": 7, "taken": "2030-01-02"}),
        record("m-2", {"id": "r-2", "sensor": "7", "taken": "2030-01-03"}),
        BUSINESS_TABLE="readings",
        BUSINESS_HASH_KEY="sensor",
        BUSINESS_HASH_KEY_TYPE="N",
        BUSINESS_RANGE_KEY="taken",
    )
    assert answer == NOTHING_FAILED
    rows = cloud.real.dynamodb.scan(TableName="readings")["Items"]
    assert [(row["sensor"], row["taken"], row["event_id"]) for row in rows] == [
        ({"N": "7"}, {"S": "2030-01-02"}, {"S": "r-1"})
    ]
    assert cloud.reasons() == ["key-wrong-type"]


@pytest.mark.parametrize("message", ["body_sns_notification", "sqs_sns_envelope"])
@pytest.mark.case("C19")
def test_event_inside_an_sns_envelope_is_found_by_setting(cloud: Cloud, message: str) -> None:
    content = fixture(message)
    body = content["Records"][0]["body"] if "Records" in content else content
    assert cloud.deliver(record("m-1", body), EVENT_ENVELOPE="sns") == NOTHING_FAILED
    assert cloud.statuses() == {"order-7001": "sent"}


@pytest.mark.case("C19")
def test_unopened_sns_envelope_never_gives_its_own_message_id(cloud: Cloud) -> None:
    assert cloud.deliver(record("m-1", fixture("body_sns_notification"))) == NOTHING_FAILED
    assert cloud.ledger() == {}
    (letter,) = cloud.dead_letters()
    assert letter.reason == "id-missing"
    assert "looks like an SNS envelope" in letter.detail


@pytest.mark.case("C14", "C15")
def test_both_spellings_of_an_object_key_are_one_event(cloud: Cloud) -> None:
    s3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}
    answer = cloud.deliver(
        record("m-1", fixture("body_s3_put_colon_key_upper_case")),
        record("m-2", fixture("body_s3_put_colon_key_lower_case")),
        record("m-3", fixture("body_s3_put_encoded_key")),
        **s3,
    )
    assert answer == NOTHING_FAILED
    assert sorted(cloud.rows()) == ["in/a b+c (1).csv", "logs/2030-01-02T03:04:05.gz"]
    assert len(cloud.notified()) == 2


def test_a_conditional_put_is_all_that_a_superseded_event_costs(cloud: Cloud) -> None:
    cloud.deliver(record("m-1", {"id": "s-1", "event": "e-2", "version": 2}), EVENT_ID="event", **NEWER)
    cloud.forget()
    cloud.deliver(record("m-2", {"id": "s-1", "event": "e-1", "version": 1}), EVENT_ID="event", **NEWER)
    (request,) = cloud.requests(PUT)
    assert request["TableName"] == "orders-processed-events"
    assert request["ConditionExpression"] == "attribute_not_exists(event_id)"
    assert request["Item"]["status"] == {"S": "sent"}
