"""What each producer really sends goes through the whole pipeline under its envelope."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.handler.support import EVENTS, NOTHING_FAILED, Cloud, record

RAW: dict[str, Any] = {"EVENT_ENVELOPE": "raw"}
SNS: dict[str, Any] = {"EVENT_ENVELOPE": "sns"}
EVENTBRIDGE: dict[str, Any] = {"EVENT_ENVELOPE": "eventbridge"}
S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key, change: eventName}"}
# Only puts and deletes have a sequencer; other events need an id of the user's own choice.
S3_ANY: dict[str, Any] = {**S3, "EVENT_ID": 'responseElements."x-amz-request-id"'}


def body(name: str) -> str:
    """The text of the fixture."""
    return (EVENTS / f"body_{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "settings", "event_ids"),
    [
        ("order", RAW, ["order-7001"]),
        ("sns_notification", SNS, ["order-7001"]),
        ("sns_notification_fifo", SNS, ["order-7002"]),
        ("eventbridge_custom", EVENTBRIDGE, ["c01836f5-31c1-58d4-adf1-bfa7fb4c05a7"]),
        ("eventbridge_s3_object_created", EVENTBRIDGE, ["63420516-2bf5-5ff1-9a8b-d7344a15bda7"]),
        ("s3_put", S3, ["example-invoices/in/2030/invoice-0001.csv//0070DBD1A5F31C0A01"]),
        ("s3_put_encoded_key", S3, ["example-invoices/in/a b+c (1).csv//0070DBD1A5F31C0A02"]),
        ("s3_put_percent_key", S3, ["example-invoices/offers/100% off %20.csv//0070DBD1A5F31C0A03"]),
        ("s3_put_non_ascii_key", S3, ["example-invoices/in/Zürich/日本 📦.csv//0070DBD1A5F31C0A04"]),
        (
            "s3_put_three_objects",
            S3,
            [f"example-invoices/in/2030/invoice-000{n}.csv//0070DBD1C0000000{n}0" for n in (1, 2, 3)],
        ),
        ("s3_delete", S3, ["example-invoices/in/2030/invoice-0001.csv//0070DBD20A11223344"]),
        ("s3_test_event", S3, []),
        ("s3_tagging_without_sequencer", S3_ANY, None),
        ("s3_restore_without_sequencer", S3_ANY, None),
    ],
)
def test_events_of_a_producer_are_written_and_published(
    cloud: Cloud, name: str, settings: dict[str, Any], event_ids: list[str] | None
) -> None:
    assert cloud.deliver(record("m-1", body(name)), **settings) == NOTHING_FAILED
    if event_ids is not None:
        assert sorted(cloud.statuses()) == event_ids
    assert set(cloud.statuses().values()) <= {"sent"}
    assert sorted(cloud.notified()) == sorted(cloud.statuses())
    assert len(cloud.rows()) == len(cloud.statuses())
    assert cloud.dead_letters() == []


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("sns_notification", RAW, "id-missing"),
        ("sns_notification_plain_text", SNS, "bad-json"),
        ("sns_subscription_confirmation", SNS, "sns-confirmation"),
        ("order", SNS, "not-an-sns-envelope"),
        ("order", EVENTBRIDGE, "not-an-eventbridge-event"),
        ("order", S3, "not-an-s3-notification"),
        ("eventbridge_custom", S3, "not-an-s3-notification"),
        ("s3_tagging_without_sequencer", S3, "id-missing"),
        ("s3_restore_without_sequencer", S3, "id-missing"),
    ],
)
def test_message_that_does_not_fit_the_settings_is_dead_lettered_with_its_reason(
    cloud: Cloud, name: str, settings: dict[str, Any], reason: str
) -> None:
    assert cloud.deliver(record("m-1", body(name)), **settings) == NOTHING_FAILED
    (letter,) = cloud.dead_letters()
    assert (letter.reason, letter.body) == (reason, body(name))
    assert cloud.ledger() == {}


@pytest.mark.parametrize("name", ["s3_put_versioned", "s3_delete_marker"])
def test_versions_of_an_object_are_events_of_their_own(cloud: Cloud, name: str) -> None:
    by_version: dict[str, Any] = {**S3, "EVENT_ITEM": "{id: join('?', [s3.object.key, s3.object.versionId])}"}
    assert cloud.deliver(record("m-1", body("s3_put")), **S3) == NOTHING_FAILED
    assert cloud.deliver(record("m-2", body(name)), **by_version) == NOTHING_FAILED
    assert len(cloud.statuses()) == 2


@pytest.mark.case("N06")
def test_replay_of_an_eventbridge_archive_is_a_duplicate_until_the_event_gets_a_new_id(cloud: Cloud) -> None:
    by_id: dict[str, Any] = {**EVENTBRIDGE, "EVENT_ITEM": "{id: id}"}
    original = body("eventbridge_custom")
    cloud.deliver(record("m-1", original), **by_id)
    replay = json.dumps({**json.loads(original), "replay-name": "orders-again"})
    assert cloud.deliver(record("m-2", replay), **by_id) == NOTHING_FAILED
    assert len(cloud.notified()) == 1
    assert cloud.dead_letters() == []
    again = original.replace("c01836f5-31c1-58d4-adf1-bfa7fb4c05a7", "c01836f5-again")
    assert cloud.deliver(record("m-3", again), **by_id) == NOTHING_FAILED
    assert sorted(cloud.rows()) == ["c01836f5-31c1-58d4-adf1-bfa7fb4c05a7", "c01836f5-again"]
