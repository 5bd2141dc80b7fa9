"""An event becomes one transaction, and a row that stands in its way has one verdict."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.business_row import judge_business_row
from idempotent_consumer.commit import Commit, judge_ledger_row, prepare, sent_attributes
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item, item_bytes
from idempotent_consumer.json_text import loads
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.plan import Notification, Plan, Put
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.settings import Settings, WriteMode
from idempotent_consumer.write import Write

NOW_MS = 1_893_553_446_789
NOW_SECONDS = 1_893_553_446
DAY = 86_400
PRINT = "a" * 64
# SHA-256 of "orders", a zero byte and "o-1".
ORDERS_O_1 = "a89734695a5aa1e2ae824aca8de24e9cf178b769b57a60a56fc464a29be03b38"

ENVIRONMENT = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": "ledger",
    "BUSINESS_TABLE": "order_records",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dead-letter",
    "TOPIC_ARN": "arn:aws:sns:eu-central-1:111122223333:orders",
}


def settings(without: str = "", **variables: str) -> Settings:
    environment = ENVIRONMENT | variables
    environment.pop(without, None)
    return Settings.from_environment(environment)


def event(text: str = '{"id":"o-1","total":19.90}', event_id: str = "o-1", group: str | None = None) -> Event:
    return Event(event_id, loads(text), PRINT, group)


def prepared(what: Event, configured: Settings) -> Commit:
    return prepare(what, declarative_planner(configured)(what), "m-1", NOW_MS, configured)


def put(values: dict[str, Any], configured: Settings | None = None, **kwargs: Any) -> Item:
    """The business row that a plan with this one write leads to."""
    commit = prepare(event(), Plan([Put("order_records", values, **kwargs)]), "m-1", NOW_MS, configured or settings())
    item: Item = commit.writes[0].action["Put"]["Item"]
    return item


def rejection(values: dict[str, Any], configured: Settings | None = None, **kwargs: Any) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        put(values, configured, **kwargs)
    return caught.value.reason, caught.value.detail


# --- the plan


def test_by_default_the_whole_event_is_the_row_and_the_notification() -> None:
    data = loads('{"id":"o-1","total":19.90}')

    assert declarative_planner(settings())(Event("o-1", data, PRINT)) == Plan(
        [Put("order_records", {"id": "o-1", "total": Decimal("19.90")}, WriteMode.INSERT, None)],
        Notification({"id": "o-1", "total": Decimal("19.90")}, {}),
    )


def test_the_plan_selects_row_version_message_and_attributes() -> None:
    configured = settings(
        EVENT_ITEM="{id: order.id, total: sum(order.prices)}",
        EVENT_VERSION="order.version",
        EVENT_WRITE_MODE="newer",
        NOTIFICATION_ATTRIBUTES='{"shop": "shop", "total": "sum(order.prices)", "absent": "nothing"}',
        NOTIFICATION_MESSAGE="join(' ', ['order', order.id])",
    )
    data = loads('{"shop":"berlin","order":{"id":"o-1","version":3,"prices":[0.1,0.2]}}')

    assert declarative_planner(configured)(Event("o-1", data, PRINT)) == Plan(
        [Put("order_records", {"id": "o-1", "total": Decimal("0.3")}, WriteMode.NEWER, 3)],
        Notification("order o-1", {"shop": "berlin", "total": Decimal("0.3"), "absent": None}),
    )


def test_without_a_topic_nothing_is_told() -> None:
    assert declarative_planner(settings(without="TOPIC_ARN"))(event()).notification is None


def test_planning_twice_gives_the_same_plan_and_leaves_the_event_alone() -> None:
    plan, what = declarative_planner(settings()), event()

    assert plan(what) == plan(what)
    prepared(what, settings())
    assert what == event()


@pytest.mark.parametrize("item", ["missing", "id", "lines", "total", "gift"])
def test_an_item_that_is_no_object_is_refused(item: str) -> None:
    what = event('{"id":"o-1","lines":[{}],"total":1.5,"gift":null}')

    with pytest.raises(Rejected) as caught:
        declarative_planner(settings(EVENT_ITEM=item))(what)
    assert (caught.value.reason, caught.value.detail) == ("item-not-an-object", f"{item} selects no object")


@pytest.mark.parametrize("name", ["EVENT_ITEM", "EVENT_VERSION", "NOTIFICATION_MESSAGE"])
def test_an_expression_that_fails_on_the_event_refuses_it(name: str) -> None:
    with pytest.raises(Rejected) as caught:
        declarative_planner(settings(**{"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "total", name: "keys(id)"}))(
            event()
        )

    assert caught.value.reason == "expression-failed"


# --- the transaction


def test_an_event_becomes_one_transaction_with_the_ledger_s_action_first() -> None:
    commit = prepared(event(), settings())

    assert commit.transaction() == [
        {
            "Put": {
                "TableName": "ledger",
                "Item": {
                    "event_id": {"S": "o-1"},
                    "fingerprint": {"S": PRINT},
                    "created_at": {"N": "1893553446789"},
                    "message_id": {"S": "m-1"},
                    "status": {"S": "pending"},
                    "notification": {
                        "S": (
                            '{"message":"{\\"id\\":\\"o-1\\",\\"total\\":19.90}",'
                            '"attributes":{"event_id":["String","o-1"]},'
                            f'"group":"{ORDERS_O_1}","deduplication_id":"{ORDERS_O_1}"}}'
                        )
                    },
                    "pending_shard": {"S": "10"},
                },
                "ConditionExpression": "attribute_not_exists(event_id)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        },
        {
            "Put": {
                "TableName": "order_records",
                "Item": {
                    "id": {"S": "o-1"},
                    "total": {"N": "19.90"},
                    "event_id": {"S": "o-1"},
                    "event_fingerprint": {"S": PRINT},
                    "event_consumer": {"S": "orders"},
                    "event_committed_at": {"N": "1893553446789"},
                },
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": {"#key": "id"},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        },
    ]
    assert commit.notification == RenderedNotification(
        '{"id":"o-1","total":19.90}', {"event_id": ("String", "o-1")}, ORDERS_O_1, ORDERS_O_1
    )


@pytest.mark.parametrize(
    ("variables", "condition"),
    [
        (
            {"EVENT_WRITE_MODE": "insert", "BUSINESS_HASH_KEY": "order_id"},
            {
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": {"#key": "order_id"},
            },
        ),
        (
            {"EVENT_WRITE_MODE": "upsert", "BUSINESS_HASH_KEY": "order_id"},
            {
                "ConditionExpression": (
                    "attribute_not_exists(#event_id) OR #event_id <> :event_id "
                    "OR attribute_not_exists(#consumer) OR #consumer <> :consumer"
                ),
                "ExpressionAttributeNames": {"#event_id": "event_id", "#consumer": "event_consumer"},
                "ExpressionAttributeValues": {":event_id": {"S": "o-1"}, ":consumer": {"S": "orders"}},
            },
        ),
        (
            {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "v", "BUSINESS_HASH_KEY": "order_id"},
            {
                "ConditionExpression": "attribute_not_exists(#key) OR #version < :version",
                "ExpressionAttributeNames": {"#key": "order_id", "#version": "event_version"},
                "ExpressionAttributeValues": {":version": {"N": "3"}},
            },
        ),
    ],
    ids=["insert", "upsert", "newer"],
)
def test_each_write_mode_has_its_condition_and_asks_for_the_row_in_its_way(
    variables: dict[str, str], condition: dict[str, Any]
) -> None:
    commit = prepared(event('{"order_id":"k-1","v":3}'), settings(**variables))

    (write,) = commit.writes
    version: Item = {"event_version": {"N": "3"}} if "EVENT_VERSION" in variables else {}
    assert write.action == {
        "Put": {
            "TableName": "order_records",
            "Item": {
                "order_id": {"S": "k-1"},
                "v": {"N": "3"},
                "event_id": {"S": "o-1"},
                "event_fingerprint": {"S": PRINT},
                "event_consumer": {"S": "orders"},
                "event_committed_at": {"N": "1893553446789"},
                **version,
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **condition,
        }
    }
    assert write.mode is WriteMode(variables["EVENT_WRITE_MODE"])
    assert write.version == version.get("event_version")
    assert write.consumer == {"S": "orders"}


def test_a_plan_may_write_several_rows_or_none() -> None:
    configured = settings()
    writes = [
        Put("order_records", {"id": "a"}),
        Put("order_records", {"id": "b"}, WriteMode.UPSERT),
        Put("order_records", {"id": "c"}, WriteMode.NEWER, "v1"),
    ]

    commit = prepare(event(), Plan(writes), "m-1", NOW_MS, configured)
    assert [action["Put"]["Item"].get("id", {}).get("S") for action in commit.transaction()] == [None, "a", "b", "c"]
    assert len(prepare(event(), Plan(), "m-1", NOW_MS, configured).transaction()) == 1


@pytest.mark.case("C50")
def test_an_event_without_a_notification_is_committed_as_sent_with_a_ttl_in_seconds() -> None:
    commit = prepared(event(), settings(without="TOPIC_ARN", TTL_WINDOW_DAYS="45"))

    item = commit.transaction()[0]["Put"]["Item"]
    assert item == {
        "event_id": {"S": "o-1"},
        "fingerprint": {"S": PRINT},
        "created_at": {"N": "1893553446789"},
        "message_id": {"S": "m-1"},
        "status": {"S": "sent"},
        "sent_at": {"N": "1893553446789"},
        "ttl": {"N": str(NOW_SECONDS + 45 * DAY)},
    }
    assert commit.notification is None
    assert re.fullmatch(r"\d{10}", item["ttl"]["N"])


@pytest.mark.case("C50", "C51")
def test_what_marks_an_event_as_sent_is_status_time_and_a_ttl_in_whole_seconds() -> None:
    assert sent_attributes(NOW_MS, 86_400) == {
        "status": {"S": "sent"},
        "sent_at": {"N": "1893553446789"},
        "ttl": {"N": "1893639846"},
    }


@pytest.mark.case("C62")
def test_a_pending_row_has_a_notification_and_no_ttl() -> None:
    item = prepared(event(), settings()).ledger_item

    assert item["status"] == {"S": "pending"}
    assert "notification" in item
    assert "ttl" not in item
    assert "sent_at" not in item


def test_a_superseded_event_leaves_a_settled_row_and_nothing_else() -> None:
    assert prepared(event(), settings(TTL_WINDOW_DAYS="30")).superseded_put() == {
        "TableName": "ledger",
        "Item": {
            "event_id": {"S": "o-1"},
            "fingerprint": {"S": PRINT},
            "created_at": {"N": "1893553446789"},
            "message_id": {"S": "m-1"},
            "status": {"S": "sent"},
            "sent_at": {"N": "1893553446789"},
            "ttl": {"N": str(NOW_SECONDS + 30 * DAY)},
        },
        "ConditionExpression": "attribute_not_exists(event_id)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_pending_events_spread_over_sixteen_shards_and_each_keeps_its_own() -> None:
    def shard(event_id: str) -> str:
        return str(prepared(event(event_id=event_id), settings()).ledger_item["pending_shard"]["S"])

    ids = [f"order-{number}" for number in range(400)]

    assert {shard(event_id) for event_id in ids} == {str(number) for number in range(16)}
    assert [shard(event_id) for event_id in ids[:5]] == [shard(event_id) for event_id in ids[:5]]


@pytest.mark.case("C41", "C66")
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (None, "notification-empty"),
        ("a\x00", "notification-characters"),
        ("x" * 262_144, "notification-too-large"),
    ],
)
def test_a_notification_that_can_never_be_published_stops_the_event_before_anything_is_written(
    message: str | None, reason: str
) -> None:
    plan = Plan([Put("order_records", {"id": "o-1"})], Notification(message))

    with pytest.raises(Rejected) as caught:
        prepare(event(), plan, "m-1", NOW_MS, settings())
    assert caught.value.reason == reason


# --- the row's own attributes


@pytest.mark.parametrize(
    ("own", "stored"),
    [
        ({"event_id": "o-1"}, {"S": "o-1"}),
        ({"event_fingerprint": PRINT}, {"S": PRINT}),
        ({"event_consumer": "orders"}, {"S": "orders"}),
    ],
)
def test_an_item_may_hold_what_the_consumer_would_write(own: dict[str, str], stored: dict[str, str]) -> None:
    (name,) = own

    assert put({"id": "k", **own})[name] == stored


def test_an_integer_event_id_of_the_item_is_written_as_text() -> None:
    what = event('{"id":"k","event_id":7}', event_id="7")

    (write,) = prepared(what, settings(EVENT_ID="event_id", EVENT_WRITE_MODE="upsert")).writes

    assert write.action["Put"]["Item"]["event_id"] == {"S": "7"}
    assert write.action["Put"]["ExpressionAttributeValues"] == {":event_id": {"S": "7"}, ":consumer": {"S": "orders"}}


@pytest.mark.parametrize("own", ["07", "7.0", "+7", " 7", "٧"])
def test_an_event_id_of_the_item_that_is_spelt_otherwise_is_refused(own: str) -> None:
    what = event(json.dumps({"id": "k", "event": 7, "event_id": own}), event_id="7")

    with pytest.raises(Rejected) as caught:
        prepared(what, settings(EVENT_ID="event"))
    assert caught.value.reason == "reserved-attribute"


@pytest.mark.parametrize("name", ["event_id", "event_fingerprint", "event_consumer", "event_committed_at"])
@pytest.mark.parametrize("value", ["other", "", 7, True, None, Decimal("1.5"), ["o-1"], {"id": "o-1"}])
def test_a_value_of_the_item_is_never_replaced_by_the_consumer_s(name: str, value: Any) -> None:
    assert rejection({"id": "k", name: value}) == (
        "reserved-attribute",
        f"{name} is written by the consumer; select other names in event.item",
    )


def test_true_is_not_the_event_id_named_true() -> None:
    what = event('{"id":"k","event_id":true}', event_id="True")

    with pytest.raises(Rejected) as caught:
        prepared(what, settings())
    assert caught.value.reason == "reserved-attribute"


@pytest.mark.parametrize("mode", [WriteMode.INSERT, WriteMode.UPSERT])
@pytest.mark.parametrize(
    ("own", "stored"), [(9, {"N": "9"}), ("v9", {"S": "v9"}), (None, {"NULL": True}), ([1], {"L": [{"N": "1"}]})]
)
def test_a_version_of_the_item_s_own_is_kept_where_versions_are_not_compared(
    own: Any, stored: AttributeValue, mode: WriteMode
) -> None:
    assert put({"id": "k", "event_version": own}, mode=mode)["event_version"] == stored


@pytest.mark.parametrize(
    ("own", "version", "stored"),
    [
        (3, 3, {"N": "3"}),
        (Decimal("3.0"), 3, {"N": "3"}),
        (3, Decimal("3.00"), {"N": "3.00"}),
        ("2030-01-02", "2030-01-02", {"S": "2030-01-02"}),
    ],
)
def test_in_newer_mode_an_item_may_hold_the_version_that_the_consumer_would_write(
    own: Any, version: Any, stored: AttributeValue
) -> None:
    assert put({"id": "k", "event_version": own}, mode=WriteMode.NEWER, version=version)["event_version"] == stored


@pytest.mark.parametrize("own", [2, 4, "3", Decimal("3.1"), None, "", [3], {"v": 3}])
def test_in_newer_mode_another_version_of_the_item_s_own_is_never_replaced(own: Any) -> None:
    assert rejection({"id": "k", "event_version": own}, mode=WriteMode.NEWER, version=3) == (
        "reserved-attribute",
        "event_version is written by the consumer; select another name",
    )


def test_the_plan_s_values_are_not_changed() -> None:
    values = {"id": 7}

    put(values)

    assert values == {"id": 7}


# --- keys


@pytest.mark.parametrize("values", [{}, {"id": None}, {"ID": "k"}])
def test_an_item_without_its_key_is_refused(values: dict[str, Any]) -> None:
    assert rejection(values) == ("key-missing", "the item has no id, a key of the business table")


@pytest.mark.parametrize("value", [0, 7, -7, 12345678901234567890])
def test_an_integer_is_written_in_decimal_where_the_key_is_a_string(value: int) -> None:
    assert put({"id": value})["id"] == {"S": str(value)}


@pytest.mark.parametrize("value", [True, Decimal("1.0"), Decimal("19.99"), ["k"], {"k": 1}])
def test_a_string_key_takes_a_string_or_an_integer_only(value: Any) -> None:
    assert rejection({"id": value}) == ("key-wrong-type", "id is neither a string nor an integer")


@pytest.mark.parametrize(
    ("value", "stored"),
    [(0, "0"), (Decimal("-0.0"), "0"), (7, "7"), (Decimal("19.99"), "19.99"), (Decimal("-1"), "-1")],
)
def test_a_number_key_takes_any_number(value: Any, stored: str) -> None:
    assert put({"id": value}, settings(BUSINESS_HASH_KEY_TYPE="N"))["id"] == {"N": stored}


@pytest.mark.parametrize("value", ["7", "", True, [7], {}])
def test_a_number_key_takes_nothing_else(value: Any) -> None:
    assert rejection({"id": value}, settings(BUSINESS_HASH_KEY_TYPE="N")) == (
        "key-wrong-type",
        "id is not a number, as the business table's key is",
    )


def test_a_number_key_of_over_38_digits_is_refused() -> None:
    reason, detail = rejection({"id": 10**38 + 1}, settings(BUSINESS_HASH_KEY_TYPE="N"))

    assert (reason, detail[:4]) == ("number-out-of-range", "id: ")


@pytest.mark.case("N01", "C34")
@pytest.mark.parametrize(
    ("value", "size"),
    [("", 0), ("x" * 2_049, 2_049), ("é" * 1_025, 2_050), ("📦" * 513, 2_052), (int("7" * 2_049), 2_049)],
)
def test_a_hash_key_has_1_to_2048_bytes(value: Any, size: int) -> None:
    assert rejection({"id": value}) == ("key-size", f"id has {size} UTF-8 bytes, a key takes 1 to 2048")


@pytest.mark.parametrize("value", ["x", " ", "x" * 2_048, "é" * 1_024])
def test_a_hash_key_up_to_2048_bytes_passes(value: str) -> None:
    assert put({"id": value})["id"] == {"S": value}


COMPOSITE = {"BUSINESS_HASH_KEY": "shop", "BUSINESS_RANGE_KEY": "number", "BUSINESS_RANGE_KEY_TYPE": "N"}


def test_both_parts_of_a_composite_key_are_checked() -> None:
    numbers = settings(**COMPOSITE)

    assert put({"shop": "berlin", "number": Decimal("7.5")}, numbers)["number"] == {"N": "7.5"}
    assert rejection({"shop": "berlin"}, numbers) == (
        "key-missing",
        "the item has no number, a key of the business table",
    )
    assert rejection({"number": 7}, numbers)[1] == "the item has no shop, a key of the business table"
    assert rejection({"shop": "berlin", "number": "7"}, numbers)[0] == "key-wrong-type"


@pytest.mark.parametrize("value", ["x" * 1_025, "é" * 513])
def test_a_range_key_has_at_most_1024_bytes(value: str) -> None:
    strings = settings(**COMPOSITE | {"BUSINESS_RANGE_KEY_TYPE": "S"})

    assert put({"shop": "berlin", "number": value[:-1][:512]}, strings)["shop"] == {"S": "berlin"}
    assert rejection({"shop": "berlin", "number": value}, strings) == (
        "key-size",
        f"number has {len(value.encode())} UTF-8 bytes, a key takes 1 to 1024",
    )
    assert put({"shop": "berlin", "number": 7}, strings)["number"] == {"S": "7"}


def test_the_condition_of_an_insert_names_the_hash_key_alone() -> None:
    """The condition looks at the row with the whole key of the item; one attribute says whether it is there."""
    commit = prepare(
        event(), Plan([Put("order_records", {"shop": "a", "number": 1})]), "m-1", NOW_MS, settings(**COMPOSITE)
    )

    assert commit.writes[0].action["Put"]["ExpressionAttributeNames"] == {"#key": "shop"}


def test_the_event_s_id_may_be_the_key_of_the_business_table() -> None:
    by_event = settings(BUSINESS_HASH_KEY="event_id")

    assert put({"total": 1}, by_event) == {
        "total": {"N": "1"},
        "event_id": {"S": "o-1"},
        "event_fingerprint": {"S": PRINT},
        "event_consumer": {"S": "orders"},
        "event_committed_at": {"N": "1893553446789"},
    }


# --- versions


@pytest.mark.parametrize(
    ("version", "stored"),
    [
        (0, {"N": "0"}),
        (3, {"N": "3"}),
        (Decimal("1.50"), {"N": "1.50"}),
        ("2030-01-02T03:04:05Z", {"S": "2030-01-02T03:04:05Z"}),
    ],
)
def test_a_version_is_a_number_or_a_string_and_is_stored_with_the_row(version: Any, stored: AttributeValue) -> None:
    assert put({"id": "k"}, mode=WriteMode.NEWER, version=version)["event_version"] == stored


@pytest.mark.parametrize("version", [None, "", True, False, [], {}, [3]])
def test_a_version_that_cannot_be_compared_is_refused(version: Any) -> None:
    assert rejection({"id": "k"}, mode=WriteMode.NEWER, version=version) == (
        "version-missing",
        "the version of a newer row (event.version, or that of the Put) is neither a number nor a string",
    )


def test_what_stands_in_the_place_of_a_table_is_not_quoted() -> None:
    """Where the arguments of a Put are swapped it is the event, and the text is logged."""
    with pytest.raises(InvalidPlan) as caught:
        Put({"card": "4111"}, "order_records")  # type: ignore[arg-type]
    assert str(caught.value) == "a table goes by its name, 3 to 255 letters, digits, _, - and dots, not by its ARN"


@pytest.mark.parametrize("mode", [WriteMode.INSERT, WriteMode.UPSERT])
def test_the_other_modes_store_no_version(mode: WriteMode) -> None:
    assert "event_version" not in put({"id": "k"}, mode=mode)
    with pytest.raises(InvalidPlan, match="in the mode NEWER alone"):
        Put("order_records", {"id": "k"}, mode, 3)


# --- limits


@pytest.mark.case("C36", "C40")
def test_a_value_that_dynamodb_cannot_hold_stops_the_event() -> None:
    for text, reason in (
        ('{"id":"o-1","n":123456789012345678901234567890123456789}', "number-out-of-range"),
        ('{"id":"o-1","":1}', "attribute-name"),
        ('{"id":"o-1","deep":' + 32 * "[" + 32 * "]" + "}", "nested-too-deep"),
    ):
        with pytest.raises(Rejected) as caught:
            prepared(event(text), settings())
        assert caught.value.reason == reason


@pytest.mark.case("C43")
def test_a_business_row_of_exactly_400_kb_passes_and_a_byte_more_is_refused_with_its_size() -> None:
    own = item_bytes(put({"id": "o-1", "note": ""}))
    largest = 409_600 - own

    assert item_bytes(put({"id": "o-1", "note": "x" * largest})) == 409_600
    assert rejection({"id": "o-1", "note": "x" * (largest + 1)}) == (
        "item-too-large",
        "the row in order_records would be 409601 bytes, DynamoDB takes 409600",
    )


@pytest.mark.case("C43", "C66", "N11")
def test_a_ledger_row_that_could_not_hold_its_notification_stops_the_event() -> None:
    """Quotes double when the message is stored: 300,000 bytes of them do not fit into 400 KB."""
    plan = Plan([Put("order_records", {"id": "o-1"})], Notification('"' * 300_000))

    with pytest.raises(Rejected) as caught:
        prepare(event(), plan, "m-1", NOW_MS, settings(NOTIFICATION_MAX_BYTES="350000"))
    assert caught.value.reason == "item-too-large"
    assert caught.value.detail.startswith("the ledger row would be 600")


@pytest.mark.case("C76")
def test_no_refusal_quotes_a_value_of_the_event() -> None:
    plans = [
        Plan([Put("order_records", {"id": ["marker"]})]),
        Plan([Put("order_records", {"id": "marker" * 500})]),
        Plan([Put("order_records", {"id": "k", "event_id": "marker"})]),
        Plan([Put("order_records", {"id": "k", "note": "marker" * 80_000})]),
        Plan([Put("order_records", {"id": "k", "note": {"marker"}})]),
        Plan([Put("order_records", {"id": "k"}, WriteMode.NEWER, ["marker"])]),
    ]
    for plan in plans:
        with pytest.raises(Rejected) as caught:
            prepare(event(), plan, "m-1", NOW_MS, settings())
        assert "marker" not in f"{caught.value} {caught.value.reason} {caught.value.detail}"


# --- the verdict on a ledger row

STORED = RenderedNotification('{"said":"then"}', {"event_id": ("String", "o-1")}, "g", "d")
PENDING: Item = {
    "event_id": {"S": "o-1"},
    "fingerprint": {"S": PRINT},
    "status": {"S": "pending"},
    "notification": {"S": STORED.to_text()},
}
SENT: Item = {"event_id": {"S": "o-1"}, "fingerprint": {"S": PRINT}, "status": {"S": "sent"}}


@pytest.mark.case("C58")
def test_a_sent_row_makes_the_event_a_duplicate() -> None:
    assert judge_ledger_row(SENT, event()) == Verdict(Outcome.DUPLICATE)


@pytest.mark.case("C51")
def test_a_sent_row_past_its_ttl_still_counts_as_seen() -> None:
    assert judge_ledger_row({**SENT, "ttl": {"N": "1000000000"}}, event()) == Verdict(Outcome.DUPLICATE)


@pytest.mark.case("C28", "C58", "C62")
def test_a_pending_row_is_finished_with_the_notification_that_was_stored() -> None:
    assert judge_ledger_row(PENDING, event()) == Verdict(Outcome.RESUMED, notification=STORED)


@pytest.mark.case("C47")
@pytest.mark.parametrize("row", [SENT, PENDING], ids=["sent", "pending"])
@pytest.mark.parametrize("stored", [{"S": "b" * 64}, {"S": ""}, {"N": "1"}, None])
def test_a_row_with_another_fingerprint_is_a_conflict_whatever_its_status(
    row: Item, stored: AttributeValue | None
) -> None:
    other = {name: value for name, value in row.items() if name != "fingerprint"}
    if stored is not None:
        other["fingerprint"] = stored

    assert judge_ledger_row(other, event()) == Verdict(
        Outcome.CONFLICT, "id-reused", "the ledger holds this event id with other content"
    )


@pytest.mark.parametrize("stored", [None, {"S": ""}, {"S": "{}"}, {"S": "garbage"}, {"N": "7"}])
def test_a_pending_row_without_a_readable_notification_is_left_for_a_person(stored: AttributeValue | None) -> None:
    row = {name: value for name, value in PENDING.items() if name != "notification"}
    if stored is not None:
        row["notification"] = stored

    assert judge_ledger_row(row, event()) == Verdict(
        Outcome.RETRY, "ledger-row-unreadable", "pending, without a notification"
    )


@pytest.mark.parametrize("status", [None, {"S": ""}, {"S": "IN_PROGRESS"}, {"S": "SENT"}, {"N": "1"}])
def test_a_status_that_the_pipeline_does_not_write_is_left_for_a_person(status: AttributeValue | None) -> None:
    row = {name: value for name, value in SENT.items() if name != "status"}
    if status is not None:
        row["status"] = status

    assert judge_ledger_row(row, event()) == Verdict(
        Outcome.RETRY, "ledger-row-unreadable", "a status that the pipeline does not write"
    )


# --- the verdict on a business row

CONSUMER: AttributeValue = {"S": "orders"}
SAME: Item = {
    "id": {"S": "k"},
    "event_id": {"S": "o-1"},
    "event_fingerprint": {"S": PRINT},
    "event_consumer": CONSUMER,
}
OTHER: Item = {
    "id": {"S": "k"},
    "event_id": {"S": "o-0"},
    "event_fingerprint": {"S": "b" * 64},
    "event_consumer": CONSUMER,
}
EXPIRED = Verdict(Outcome.DUPLICATE, "ledger-row-expired", "the business row carries this event")
ROW_EXISTS = Verdict(Outcome.CONFLICT, "row-exists", "a row of this key is stored that must not be overwritten")


def judged(row: Item, mode: WriteMode = WriteMode.INSERT, version: AttributeValue | None = None) -> Verdict:
    return judge_business_row(row, event(), Write({}, mode, version, CONSUMER))


@pytest.mark.parametrize("mode", list(WriteMode))
def test_a_row_that_this_event_wrote_makes_it_a_duplicate_whose_ledger_row_has_expired(mode: WriteMode) -> None:
    row = {**SAME, "event_version": {"N": "3"}}

    assert judged(row, mode, {"N": "3"}) == EXPIRED


def test_a_row_with_the_event_s_id_as_a_number_is_the_same_event_s() -> None:
    row = {**SAME, "event_id": {"N": "7"}}

    assert judge_business_row(row, event(event_id="7"), Write({}, WriteMode.INSERT, None, CONSUMER)) == EXPIRED


@pytest.mark.parametrize("mode", list(WriteMode))
@pytest.mark.parametrize("consumer", [{"S": "billing"}, {"S": ""}, {"N": "7"}, None])
def test_a_row_that_another_consumer_wrote_for_the_same_event_is_a_conflict(
    consumer: AttributeValue | None, mode: WriteMode
) -> None:
    row = {name: value for name, value in SAME.items() if name != "event_consumer"}
    if consumer is not None:
        row["event_consumer"] = consumer

    row["event_version"] = {"N": "3"}

    assert judged(row, mode, {"N": "3"}) == ROW_EXISTS
    assert judged({**row, "event_fingerprint": {"S": "b" * 64}}, mode, {"N": "3"}) == ROW_EXISTS


@pytest.mark.case("C47")
@pytest.mark.parametrize("mode", list(WriteMode))
def test_a_row_of_the_same_id_with_other_content_is_a_conflict(mode: WriteMode) -> None:
    row = {**SAME, "event_fingerprint": {"S": "b" * 64}, "event_version": {"N": "9"}}

    assert judged(row, mode, {"N": "3"}) == Verdict(
        Outcome.CONFLICT, "id-reused", "the business row holds this event id with other content"
    )


@pytest.mark.parametrize("mode", [WriteMode.INSERT, WriteMode.UPSERT])
@pytest.mark.parametrize("row", [OTHER, {"id": {"S": "k"}}, {"id": {"S": "k"}, "event_id": {"S": "o-1"}}, {}])
def test_a_row_of_another_event_or_of_another_writer_is_a_conflict(row: Item, mode: WriteMode) -> None:
    assert judged(row, mode) == ROW_EXISTS


@pytest.mark.parametrize(
    ("stored", "version", "outcome"),
    [
        ({"N": "4"}, {"N": "3"}, Outcome.SUPERSEDED),
        ({"N": "3"}, {"N": "3"}, Outcome.SUPERSEDED),
        ({"N": "3.0"}, {"N": "3"}, Outcome.SUPERSEDED),
        ({"N": "1E+1"}, {"N": "9.5"}, Outcome.SUPERSEDED),
        ({"N": "10"}, {"N": "9"}, Outcome.SUPERSEDED),
        ({"N": "-1"}, {"N": "-2"}, Outcome.SUPERSEDED),
        ({"S": "b"}, {"S": "a"}, Outcome.SUPERSEDED),
        ({"S": "a"}, {"S": "a"}, Outcome.SUPERSEDED),
        ({"S": "9"}, {"S": "10"}, Outcome.SUPERSEDED),
        ({"S": "\U00010000"}, {"S": "\uffff"}, Outcome.SUPERSEDED),
        ({"N": "2"}, {"N": "3"}, Outcome.CONFLICT),
        ({"S": "a"}, {"S": "b"}, Outcome.CONFLICT),
        ({"S": "4"}, {"N": "3"}, Outcome.CONFLICT),
        ({"N": "4"}, {"S": "3"}, Outcome.CONFLICT),
        ({"BOOL": True}, {"N": "3"}, Outcome.CONFLICT),
        ({"B": b"4"}, {"B": b"3"}, Outcome.CONFLICT),
        (None, {"N": "3"}, Outcome.CONFLICT),
        ({"N": "4"}, None, Outcome.CONFLICT),
    ],
)
def test_in_newer_mode_a_version_that_is_not_older_supersedes_the_event(
    stored: AttributeValue | None, version: AttributeValue | None, outcome: Outcome
) -> None:
    row = OTHER if stored is None else {**OTHER, "event_version": stored}

    assert judged(row, WriteMode.NEWER, version) == (
        Verdict(Outcome.SUPERSEDED) if outcome is Outcome.SUPERSEDED else ROW_EXISTS
    )


@pytest.mark.parametrize("mode", [WriteMode.INSERT, WriteMode.UPSERT])
def test_only_the_newer_mode_compares_versions(mode: WriteMode) -> None:
    assert judged({**OTHER, "event_version": {"N": "4"}}, mode, {"N": "3"}) == ROW_EXISTS


def test_a_row_written_by_hand_in_the_newer_mode_is_still_compared() -> None:
    row: Item = {"id": {"S": "k"}, "event_version": {"N": "4"}}

    assert judged(row, WriteMode.NEWER, {"N": "3"}) == Verdict(Outcome.SUPERSEDED)


# --- what is stored can be read back


def test_a_commit_s_ledger_row_leads_a_second_delivery_to_the_same_notification() -> None:
    first = prepared(event(), settings())

    verdict = judge_ledger_row(first.ledger_item, event())

    assert verdict == Verdict(Outcome.RESUMED, notification=first.notification)
    assert judge_ledger_row(first.ledger_item_as_sent, event()) == Verdict(Outcome.DUPLICATE)
    assert json.loads(verdict.notification.message if verdict.notification else "") == {"id": "o-1", "total": 19.9}


@pytest.mark.parametrize("version", [3, Decimal("2.5"), "2030-01-02"])
def test_a_commit_s_business_row_tells_a_second_delivery_that_it_is_one(version: Any) -> None:
    commit = prepare(
        event(), Plan([Put("order_records", {"id": "k"}, WriteMode.NEWER, version)]), "m-1", NOW_MS, settings()
    )
    (write,) = commit.writes

    assert judge_business_row(write.action["Put"]["Item"], event(), write) == EXPIRED
