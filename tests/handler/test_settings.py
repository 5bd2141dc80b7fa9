"""The environment is read once, and what cannot work is refused with the variable's name and the rule."""

from __future__ import annotations

import dataclasses
import json

import pytest

from idempotent_consumer.settings import (
    MAX_CONFIGURED_ATTRIBUTES,
    MAX_NOTIFICATION_BYTES,
    Backoff,
    Envelope,
    KeyAttribute,
    ReconcilerSettings,
    Settings,
    SettingsError,
    WriteMode,
)

NEEDED = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": "orders-processed-events",
    "BUSINESS_TABLE": "order_records",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dead-letter",
}
OPTIONAL = {
    "BUSINESS_HASH_KEY": "order_id",
    "BUSINESS_HASH_KEY_TYPE": "N",
    "BUSINESS_RANGE_KEY": "line",
    "BUSINESS_RANGE_KEY_TYPE": "N",
    "EVENT_ENVELOPE": "sns",
    "EVENT_FINGERPRINT": "order",
    "EVENT_ID": "order.id",
    "EVENT_ITEM": "order",
    "EVENT_VERSION": "order.version",
    "EVENT_WRITE_MODE": "newer",
    "NOTIFICATION_ATTRIBUTES": '{"kind": "kind", "total": "order.total"}',
    "NOTIFICATION_MAX_BYTES": "350000",
    "NOTIFICATION_MESSAGE": "{id: order.id}",
    "TOPIC_ARN": "arn:aws:sns:eu-central-1:111122223333:orders",
    "TTL_WINDOW_DAYS": "45",
}


def read(**variables: str) -> Settings:
    return Settings.from_environment(NEEDED | variables)


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environment)
    return str(caught.value)


def test_the_four_needed_variables_make_a_working_consumer() -> None:
    settings = read()

    assert settings.consumer_name == "orders"
    assert settings.ledger_table == "orders-processed-events"
    assert settings.business_table == "order_records"
    assert settings.dead_letter_queue_url.endswith("/orders-dead-letter")
    assert settings.hash_key == KeyAttribute("id", "S")
    assert settings.range_key is None
    assert settings.ttl_window_seconds == 2_592_000
    assert settings.envelope is Envelope.RAW
    assert settings.write_mode is WriteMode.INSERT
    assert settings.version is None
    assert settings.topic_arn is None
    assert settings.attributes == {}
    assert settings.max_notification_bytes == 262_144
    assert [settings.event_id.text, settings.item.text, settings.fingerprint.text, settings.message.text] == [
        "id",
        "@",
        "@",
        "@",
    ]


def test_each_variable_is_read() -> None:
    settings = read(**OPTIONAL)

    assert settings.hash_key == KeyAttribute("order_id", "N")
    assert settings.range_key == KeyAttribute("line", "N")
    assert settings.ttl_window_seconds == 3_888_000
    assert settings.envelope is Envelope.SNS
    assert settings.write_mode is WriteMode.NEWER
    assert settings.version is not None and settings.version.text == "order.version"
    assert settings.topic_arn == "arn:aws:sns:eu-central-1:111122223333:orders"
    assert {name: path.text for name, path in settings.attributes.items()} == {"kind": "kind", "total": "order.total"}
    assert settings.max_notification_bytes == 350_000
    assert [settings.event_id.text, settings.item.text, settings.fingerprint.text, settings.message.text] == [
        "order.id",
        "order",
        "order",
        "{id: order.id}",
    ]


def test_fingerprint_of_an_eventbridge_event_leaves_out_what_a_replay_adds() -> None:
    by_envelope = {envelope.value: read(EVENT_ENVELOPE=envelope.value).fingerprint.text for envelope in Envelope}

    assert by_envelope == {"raw": "@", "sns": "@", "s3": "@", "eventbridge": '[source, "detail-type", detail]'}


def test_variables_of_others_are_of_no_concern() -> None:
    assert read(AWS_REGION="eu-central-1", LOG_LEVEL="nonsense", EVENT_IDS="[").event_id.text == "id"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().ledger_table = "another"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("envelope", "path"),
    [
        ("raw", "id"),
        ("sns", "id"),
        ("eventbridge", "id"),
        ("s3", "join('/', [s3.bucket.name, s3.object.key, s3.object.versionId || '', s3.object.sequencer])"),
    ],
)
@pytest.mark.case("C48")
def test_the_default_id_is_part_of_the_event_and_fits_the_envelope(envelope: str, path: str) -> None:
    settings = read(EVENT_ENVELOPE=envelope)

    assert settings.envelope.value == envelope
    assert settings.event_id.text == path


@pytest.mark.parametrize("name", list(NEEDED))
def test_a_needed_variable_that_is_missing_or_blank_is_named(name: str) -> None:
    without = {key: value for key, value in NEEDED.items() if key != name}

    assert refusal(without) == f"{name} is missing or blank"
    assert refusal(without | {name: ""}) == f"{name} is missing or blank"
    assert refusal(without | {name: " \t"}) == f"{name} is missing or blank"


@pytest.mark.parametrize("name", list(OPTIONAL))
def test_an_optional_variable_that_is_set_but_blank_is_named(name: str) -> None:
    for blank in ("", "  "):
        assert refusal(NEEDED | OPTIONAL | {name: blank}) == f"{name} is missing or blank"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EVENT_ENVELOPE", "sqs", "EVENT_ENVELOPE is 'sqs', not one of raw, sns, eventbridge, s3"),
        ("EVENT_ENVELOPE", "RAW", "EVENT_ENVELOPE is 'RAW', not one of raw, sns, eventbridge, s3"),
        ("EVENT_WRITE_MODE", "replace", "EVENT_WRITE_MODE is 'replace', not one of insert, upsert, newer"),
        ("BUSINESS_HASH_KEY_TYPE", "B", "BUSINESS_HASH_KEY_TYPE is 'B', not S or N"),
        ("BUSINESS_HASH_KEY_TYPE", "s", "BUSINESS_HASH_KEY_TYPE is 's', not S or N"),
        ("BUSINESS_RANGE_KEY_TYPE", "SS", "BUSINESS_RANGE_KEY_TYPE is 'SS', not S or N"),
        ("TTL_WINDOW_DAYS", "0", "TTL_WINDOW_DAYS is '0', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "3651", "TTL_WINDOW_DAYS is '3651', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "-1", "TTL_WINDOW_DAYS is '-1', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "1.5", "TTL_WINDOW_DAYS is '1.5', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", " 30", "TTL_WINDOW_DAYS is ' 30', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "3_0", "TTL_WINDOW_DAYS is '3_0', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "٣٠", "TTL_WINDOW_DAYS is '٣٠', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "²", "TTL_WINDOW_DAYS is '²', not a whole number from 1 to 3650"),
        ("TTL_WINDOW_DAYS", "a month", "TTL_WINDOW_DAYS is 'a month', not a whole number from 1 to 3650"),
        ("NOTIFICATION_MAX_BYTES", "0", "NOTIFICATION_MAX_BYTES is '0', not a whole number from 1 to 350000"),
        ("NOTIFICATION_MAX_BYTES", "350001", "NOTIFICATION_MAX_BYTES is '350001', not a whole number from 1 to 350000"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_the_rule(name: str, value: str, message: str) -> None:
    assert refusal(NEEDED | OPTIONAL | {name: value}) == message


@pytest.mark.parametrize(
    "name", ["EVENT_ID", "EVENT_ITEM", "EVENT_VERSION", "EVENT_FINGERPRINT", "NOTIFICATION_MESSAGE"]
)
def test_an_expression_that_cannot_be_read_is_named(name: str) -> None:
    assert refusal(NEEDED | OPTIONAL | {name: "order["}).startswith(f"{name} is 'order[': not a JMESPath expression: ")


def test_the_newer_mode_needs_a_version() -> None:
    assert refusal(NEEDED | {"EVENT_WRITE_MODE": "newer"}) == (
        "EVENT_VERSION is missing: EVENT_WRITE_MODE newer compares versions"
    )


def test_a_range_key_is_a_string_unless_its_type_says_otherwise() -> None:
    assert read(BUSINESS_RANGE_KEY="line").range_key == KeyAttribute("line", "S")
    assert read(BUSINESS_RANGE_KEY_TYPE="N").range_key is None


@pytest.mark.case("C50")
@pytest.mark.parametrize(("days", "seconds"), [("1", 86_400), ("30", 2_592_000), ("3650", 315_360_000)])
def test_the_window_is_kept_in_seconds(days: str, seconds: int) -> None:
    assert read(TTL_WINDOW_DAYS=days).ttl_window_seconds == seconds


@pytest.mark.parametrize("value", ["[", "[]", "null", "7", '"kind"', '{"kind": 1}', '{"kind": null}', '{"kind": {}}'])
def test_attributes_that_are_no_object_of_expressions_are_refused(value: str) -> None:
    assert refusal(NEEDED | {"NOTIFICATION_ATTRIBUTES": value}) == (
        f"NOTIFICATION_ATTRIBUTES is {value!r}, not a JSON object of attribute names and JMESPath expressions"
    )


def test_an_attribute_s_expression_that_cannot_be_read_is_named() -> None:
    message = refusal(NEEDED | {"NOTIFICATION_ATTRIBUTES": '{"kind": "kind", "total": "order["}'})

    assert message.startswith("NOTIFICATION_ATTRIBUTES.total is 'order[': not a JMESPath expression: ")


@pytest.mark.case("C21")
def test_nine_attributes_and_the_event_s_id_are_ten_and_no_more_fit() -> None:
    nine = {f"a{number}": "id" for number in range(9)}
    assert MAX_CONFIGURED_ATTRIBUTES == 9
    assert len(read(NOTIFICATION_ATTRIBUTES=json.dumps(nine)).attributes) == 9

    assert refusal(NEEDED | {"NOTIFICATION_ATTRIBUTES": json.dumps(nine | {"a9": "id"})}) == (
        "NOTIFICATION_ATTRIBUTES has 10 attributes, over 9: SNS takes ten, event_id is one"
    )


def test_the_attribute_with_the_event_s_id_cannot_be_configured() -> None:
    assert refusal(NEEDED | {"NOTIFICATION_ATTRIBUTES": '{"event_id": "id"}'}) == (
        "NOTIFICATION_ATTRIBUTES names event_id, which every notification carries already"
    )


@pytest.mark.parametrize(
    "text", ["orders", "arn:aws:sns:eu-central-1:orders", "https://sns.eu-central-1.amazonaws.com"]
)
def test_a_topic_that_is_no_arn_is_refused(text: str) -> None:
    assert refusal(NEEDED | {"TOPIC_ARN": text}) == f"TOPIC_ARN is {text!r}, not an ARN"


def test_the_largest_notification_leaves_room_in_the_ledger_row() -> None:
    assert MAX_NOTIFICATION_BYTES == 350_000


def test_the_same_expression_may_serve_in_several_places() -> None:
    shared = "{id: id, vat: `0.07`}"

    settings = read(EVENT_ITEM=shared, EVENT_FINGERPRINT=shared, NOTIFICATION_MESSAGE=shared)

    assert settings.item.search({"id": "o-1"}) == settings.message.search({"id": "o-1"})


# The backoff

BACKOFF = {
    "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders",
    "VISIBILITY_TIMEOUT_SECONDS": "180",
    "BACKOFF_MAX_SECONDS": "900",
}


def test_backoff_is_read() -> None:
    assert read(**BACKOFF).backoff == Backoff(
        queue_url="https://sqs.eu-central-1.amazonaws.com/111122223333/orders",
        visibility_seconds=180,
        max_seconds=900,
        retention_seconds=1_209_600,
        max_receives=1,
    )


def test_what_the_queue_does_with_a_message_in_the_end_is_read() -> None:
    backoff = read(**BACKOFF | {"RETENTION_SECONDS": "345600", "MAX_RECEIVE_COUNT": "5"}).backoff

    assert backoff is not None
    assert (backoff.retention_seconds, backoff.max_receives) == (345_600, 5)


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("RETENTION_SECONDS", "59", "60 to 1209600"),
        ("RETENTION_SECONDS", "1209601", "60 to 1209600"),
        ("MAX_RECEIVE_COUNT", "0", "1 to 1000"),
        ("MAX_RECEIVE_COUNT", "1001", "1 to 1000"),
    ],
)
def test_a_retention_or_receives_that_no_queue_has_is_refused(name: str, value: str, bounds: str) -> None:
    assert refusal(NEEDED | BACKOFF | {name: value}) == f"{name} is {value!r}, not a whole number from {bounds}"


def test_without_the_queue_s_url_there_is_no_backoff() -> None:
    assert read().backoff is None
    assert read(VISIBILITY_TIMEOUT_SECONDS="180", BACKOFF_MAX_SECONDS="nonsense").backoff is None


@pytest.mark.parametrize("name", list(BACKOFF))
def test_a_variable_of_the_backoff_that_is_blank_is_named(name: str) -> None:
    for blank in ("", "  "):
        assert refusal(NEEDED | BACKOFF | {name: blank}) == f"{name} is missing or blank"


@pytest.mark.parametrize("name", ["VISIBILITY_TIMEOUT_SECONDS", "BACKOFF_MAX_SECONDS"])
def test_a_variable_of_the_backoff_that_is_missing_is_named(name: str) -> None:
    without = {key: value for key, value in (NEEDED | BACKOFF).items() if key != name}

    assert refusal(without) == f"{name} is missing or blank"


@pytest.mark.parametrize("name", ["VISIBILITY_TIMEOUT_SECONDS", "BACKOFF_MAX_SECONDS"])
@pytest.mark.parametrize("value", ["-1", "43201", "1.5", "an hour", " 30"])
def test_seconds_that_the_queue_would_not_take_are_refused(name: str, value: str) -> None:
    assert refusal(NEEDED | BACKOFF | {name: value}) == f"{name} is {value!r}, not a whole number from 0 to 43200"


def test_a_message_is_hidden_for_twelve_hours_at_most() -> None:
    backoff = read(**BACKOFF | {"VISIBILITY_TIMEOUT_SECONDS": "0", "BACKOFF_MAX_SECONDS": "43200"}).backoff

    assert backoff is not None
    assert (backoff.visibility_seconds, backoff.max_seconds) == (0, 43_200)


# The reconciler

RECONCILER = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": "orders-processed-events",
    "RECONCILER_THRESHOLD_SECONDS": "900",
}


def reconciler_refusal(**changes: str | None) -> str:
    environment = {name: value for name, value in {**RECONCILER, **changes}.items() if value is not None}
    with pytest.raises(SettingsError) as caught:
        ReconcilerSettings.from_environment(environment)
    return str(caught.value)


def test_the_three_needed_variables_make_a_working_reconciler() -> None:
    assert ReconcilerSettings.from_environment(RECONCILER) == ReconcilerSettings(
        consumer_name="orders",
        ledger_table="orders-processed-events",
        topic_arn=None,
        ttl_window_seconds=2_592_000,
        threshold_ms=900_000,
    )


def test_each_variable_of_the_reconciler_is_read() -> None:
    environment = RECONCILER | {
        "TOPIC_ARN": "arn:aws:sns:eu-central-1:111122223333:orders",
        "TTL_WINDOW_DAYS": "45",
        "RECONCILER_THRESHOLD_SECONDS": "1209600",
        "BUSINESS_TABLE": "order_records",
        "EVENT_ENVELOPE": "nonsense",
    }

    assert ReconcilerSettings.from_environment(environment) == ReconcilerSettings(
        consumer_name="orders",
        ledger_table="orders-processed-events",
        topic_arn="arn:aws:sns:eu-central-1:111122223333:orders",
        ttl_window_seconds=3_888_000,
        threshold_ms=1_209_600_000,
    )


@pytest.mark.parametrize("name", list(RECONCILER))
def test_a_variable_that_the_reconciler_needs_is_named_where_it_is_missing_or_blank(name: str) -> None:
    for absent in (None, "", " \t"):
        assert reconciler_refusal(**{name: absent}) == f"{name} is missing or blank"


@pytest.mark.parametrize("name", ["TOPIC_ARN", "TTL_WINDOW_DAYS"])
def test_an_optional_variable_of_the_reconciler_that_is_set_but_blank_is_named(name: str) -> None:
    assert reconciler_refusal(**{name: " "}) == f"{name} is missing or blank"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("RECONCILER_THRESHOLD_SECONDS", "-1", "a whole number from 0 to 10000000"),
        ("RECONCILER_THRESHOLD_SECONDS", "10000001", "a whole number from 0 to 10000000"),
        ("RECONCILER_THRESHOLD_SECONDS", "15 minutes", "a whole number from 0 to 10000000"),
        ("TTL_WINDOW_DAYS", "0", "a whole number from 1 to 3650"),
        ("TOPIC_ARN", "orders", "an ARN"),
    ],
)
def test_a_value_that_the_reconciler_cannot_use_is_refused_with_the_rule(name: str, value: str, rule: str) -> None:
    assert reconciler_refusal(**{name: value}) == f"{name} is {value!r}, not {rule}"


def test_a_threshold_of_zero_takes_all_rows() -> None:
    assert ReconcilerSettings.from_environment(RECONCILER | {"RECONCILER_THRESHOLD_SECONDS": "0"}).threshold_ms == 0
