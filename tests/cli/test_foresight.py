"""What the ledger knows, what differs, and how old an event is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from moto import mock_aws

from idempotent_consumer.aws import Clients
from idempotent_consumer.commit import prepare
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Put
from idempotent_consumer.settings import Settings, WriteMode
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.foresight import pipeline_lookup as lookup_module
from idempotent_consumer_cli.foresight.pipeline import compare, is_refused
from idempotent_consumer_cli.foresight.pipeline_lookup import Lookup
from idempotent_consumer_cli.foresight.prospect import Difference, Fate, Foretold, LedgerState, Prospect
from idempotent_consumer_cli.letters import opened
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.rows.tables import Tables
from tests.handler.support import BUSINESS, LEDGER, READ, Cloud, client_error, fixture, record

NOW_MS = 1_893_553_446_000
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def clients() -> Clients:
    return Clients.create()


@pytest.fixture
def cloud(clients: Clients) -> Iterator[Cloud]:
    with mock_aws():
        yield Cloud(clients)


def letter(body: str | Mapping[str, Any], message_id: str = "m-1", **system: str) -> Letter:
    values = {"SentTimestamp": str(NOW_MS), **system}
    return Letter(message_id, body if isinstance(body, str) else json.dumps(body), {}, values)


def lookup(
    cloud: Cloud, *, own_code: bool = False, compares: bool = False, fifo: bool = False, **settings: Any
) -> Lookup:
    read = Settings.from_environment(cloud.environment(**settings))
    queue = "https://sqs/orders.fifo" if fifo else "https://sqs/orders"
    consumer = Consumer("orders", read, queue, queue, 30, "orders-worker", "log", not own_code)
    # The recording client knows only the function's own calls, and the row is read by another.
    dynamodb = cloud.real.dynamodb if compares else cloud.clients.dynamodb
    return Lookup(Tables(dynamodb, read), consumer, compares=compares)


def foretell(
    cloud: Cloud, *letters: Letter, now_ms: int = NOW_MS, fifo: bool = False, **options: Any
) -> list[Prospect]:
    look = lookup(cloud, fifo=fifo, **options)
    return [prospect for _, prospect in look.foretell(letters, now_ms)]


def first_event(cloud: Cloud, *letters: Letter, **options: Any) -> Foretold:
    return foretell(cloud, *letters, **options)[0].events[0]


def order(event_id: str = "e-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def deliver(cloud: Cloud, body: Mapping[str, Any], **settings: Any) -> None:
    cloud.deliver(record("m-0", body), **settings)


# --- what the ledger knows


def test_a_row_past_its_ttl_still_counts_as_seen(cloud: Cloud) -> None:
    deliver(cloud, order())
    row = {**cloud.ledger()["e-1"], "ttl": {"N": "1"}}
    cloud.store(LEDGER, row)
    event = first_event(cloud, letter(order()))
    assert (event.state, event.fate) == (LedgerState.SENT, Fate.NO_OP)


def test_a_pending_row_without_its_notification_fails_again(cloud: Cloud) -> None:
    cloud.commit_without_publishing(record("m-0", order()))
    row = cloud.ledger()["e-1"]
    del row["notification"]
    cloud.store(LEDGER, row)
    event = first_event(cloud, letter(order()))
    assert (event.state, event.fate, event.reason) == (LedgerState.PENDING, Fate.REFUSE, "ledger-row-unreadable")


def test_a_row_with_a_status_of_nobodys_is_unreadable(cloud: Cloud) -> None:
    deliver(cloud, order())
    cloud.store(LEDGER, {**cloud.ledger()["e-1"], "status": {"S": "done"}})
    event = first_event(cloud, letter(order()))
    assert (event.state, event.fate, event.reason) == (LedgerState.UNREADABLE, Fate.REFUSE, "ledger-row-unreadable")


def test_what_own_code_does_with_a_new_event_is_unknown(cloud: Cloud) -> None:
    event = first_event(cloud, letter(order()), own_code=True)
    assert (event.state, event.fate, event.detail) == (
        LedgerState.NEVER_SEEN,
        Fate.UNKNOWN,
        "the consumer's own code decides",
    )


def test_of_own_code_too_the_ledger_tells_what_is_written(cloud: Cloud) -> None:
    deliver(cloud, order())
    cloud.commit_without_publishing(record("m-0", order("e-2")))
    prospects = foretell(cloud, letter(order()), letter(order("e-2")), letter(order(total=6)), own_code=True)
    assert [prospect.fate for prospect in prospects] == [Fate.NO_OP, Fate.PUBLISH, Fate.REFUSE]


def test_the_ledger_is_asked_once_for_a_page_and_the_business_table_too(cloud: Cloud) -> None:
    foretell(cloud, *(letter(order(f"e-{number}")) for number in range(10)))
    assert cloud.operations == [READ, READ]


def test_a_ledger_that_cannot_be_read_ends_the_command_with_what_is_missing(cloud: Cloud) -> None:
    cloud.on(READ, raises=client_error("AccessDeniedException", READ))
    with pytest.raises(Exception, match=r"orders-processed-events cannot be read.*You need dynamodb:BatchGetItem"):
        foretell(cloud, letter(order()))


def test_a_throttled_ledger_ends_the_command_too(cloud: Cloud) -> None:
    cloud.on(READ, raises=client_error("ThrottlingException", READ))
    with pytest.raises(Exception, match=r"ThrottlingException. Run it again later"):
        foretell(cloud, letter(order()))


# --- letters that bear on each other


def test_of_two_letters_with_one_event_only_the_first_applies(cloud: Cloud) -> None:
    first, copy, other = foretell(cloud, letter(order()), letter(order(), "m-2"), letter(order(total=6), "m-3"))
    assert (first.fate, copy.fate, other.fate) == (Fate.APPLY, Fate.NO_OP, Fate.REFUSE)
    assert copy.events[0].detail == "an earlier letter holds the same event"
    assert (other.events[0].reason, other.events[0].detail) == (
        "id-reused",
        "an earlier letter holds this event id with other content",
    )


def test_the_second_event_of_a_row_is_refused_and_the_first_named(cloud: Cloud) -> None:
    settings: Any = {"EVENT_ITEM": "{id: key}"}
    first, second = foretell(cloud, letter(order(key="k")), letter(order("e-2", key="k")), **settings)
    assert (first.fate, second.fate) == (Fate.APPLY, Fate.REFUSE)
    assert second.events[0].difference == Difference(owner=("e-1", "orders"))


def test_a_letter_that_stays_where_it_is_bears_on_no_other(cloud: Cloud) -> None:
    look = lookup(cloud)
    page = [letter(order(), name) for name in ("m-1", "m-2")]
    foretold = look.foretell(page, NOW_MS, leaves=lambda prospect: prospect.message_id == "m-1")
    assert [prospect.fate for _, prospect in foretold] == [Fate.APPLY, Fate.APPLY]


def test_letters_of_later_pages_know_of_earlier_ones(cloud: Cloud) -> None:
    look = lookup(cloud)
    fates = []
    for name in ("m-1", "m-2"):
        fates += [prospect.fate for _, prospect in look.foretell([letter(order(), name)], NOW_MS)]
    assert fates == [Fate.APPLY, Fate.NO_OP]


# --- FIFO


def test_a_moved_letter_behind_another_of_its_group_was_blocked(cloud: Cloud) -> None:
    letters = [
        letter(order("e-1"), "m-1", MessageGroupId="a"),
        letter(order("e-2"), "m-2", MessageGroupId="a"),
        letter(order("e-3"), "m-3", MessageGroupId="b"),
    ]
    prospects = foretell(cloud, *letters, fifo=True)
    assert [prospect.state for prospect in prospects] == [
        LedgerState.NEVER_SEEN,
        LedgerState.BLOCKED,
        LedgerState.NEVER_SEEN,
    ]
    assert [prospect.fate for prospect in prospects] == [Fate.APPLY] * 3


def test_a_letter_with_a_reason_or_a_ledger_row_was_not_blocked(cloud: Cloud) -> None:
    deliver(cloud, order("e-2"))
    reason = {"dead_letter_reason": {"DataType": "String", "StringValue": "row-exists"}}
    system = {"SentTimestamp": str(NOW_MS), "MessageGroupId": "a"}
    letters = [
        letter(order("e-1"), "m-1", MessageGroupId="a"),
        letter(order("e-2"), "m-2", MessageGroupId="a"),
        Letter("m-3", json.dumps(order("e-3")), reason, system),
    ]
    states = [prospect.state for prospect in foretell(cloud, *letters, fifo=True)]
    assert states == [LedgerState.NEVER_SEEN, LedgerState.SENT, LedgerState.NEVER_SEEN]


def test_letters_that_are_not_chosen_stand_before_others_all_the_same(cloud: Cloud) -> None:
    look = lookup(cloud, fifo=True)
    page = [letter(order(f"e-{n}"), f"m-{n}", MessageGroupId="a") for n in (1, 2)]
    foretold = look.foretell(page, NOW_MS, takes=lambda opened, now_ms: opened.letter.message_id == "m-2")
    assert [(prospect.message_id, prospect.state) for _, prospect in foretold] == [("m-2", LedgerState.BLOCKED)]


def test_a_group_on_a_standard_queue_blocks_nothing(cloud: Cloud) -> None:
    letters = [letter(order(f"e-{n}"), f"m-{n}", MessageGroupId="a") for n in (1, 2)]
    assert [prospect.state for prospect in foretell(cloud, *letters)] == [LedgerState.NEVER_SEEN] * 2


# --- age


@pytest.mark.case("O05")
@pytest.mark.parametrize("mode", ["insert", "newer", "upsert"])
def test_only_an_upsert_beyond_the_window_could_apply_a_second_time(cloud: Cloud, mode: str) -> None:
    old = NOW_MS + 30 * DAY_MS + 1
    body = letter(order(v=1))
    settings = {"EVENT_WRITE_MODE": mode, "EVENT_VERSION": "v"}
    assert not first_event(cloud, body, now_ms=NOW_MS + 30 * DAY_MS, **settings).is_beyond_window
    assert first_event(cloud, body, now_ms=old, **settings).is_beyond_window is (mode == "upsert")


@pytest.mark.case("O05")
def test_beyond_the_window_an_event_that_changes_nothing_is_no_danger(cloud: Cloud) -> None:
    upsert: Any = {"EVENT_WRITE_MODE": "upsert"}
    old = NOW_MS + 31 * DAY_MS
    deliver(cloud, order("expired"), **upsert)
    cloud.expire("expired")
    deliver(cloud, order("known"), **upsert)
    cloud.commit_without_publishing(record("m", order("pending")), **upsert)
    names = ("expired", "known", "pending")
    prospects = foretell(cloud, *(letter(order(name), name) for name in names), now_ms=old, **upsert)
    assert [prospect.fate for prospect in prospects] == [Fate.NO_OP, Fate.NO_OP, Fate.PUBLISH]
    assert not any(prospect.is_beyond_window for prospect in prospects)


@pytest.mark.case("O05")
def test_beyond_the_window_own_code_could_do_anything_twice(cloud: Cloud) -> None:
    assert first_event(cloud, letter(order()), now_ms=NOW_MS + 31 * DAY_MS, own_code=True).is_beyond_window


@pytest.mark.parametrize(
    ("envelope", "fixture_name", "settings", "moment"),
    [
        ("eventbridge", "body_eventbridge_custom", {"EVENT_ITEM": "{id: detail.order.id}"}, "2030-01-02T03:04:05Z"),
        ("sns", "body_sns_notification", {}, "2030-01-02T03:04:05.432Z"),
        ("s3", "body_s3_put", {"EVENT_ITEM": "{id: s3.object.key}"}, "2030-01-02T03:04:05.120Z"),
    ],
)
@pytest.mark.case("O05")
def test_the_envelope_tells_the_first_time_which_a_redrive_does_not_change(
    cloud: Cloud, envelope: str, fixture_name: str, settings: dict[str, str], moment: str
) -> None:
    happened_ms = int(datetime.fromisoformat(moment).astimezone(UTC).timestamp() * 1000)
    body = letter(fixture(fixture_name), SentTimestamp=str(happened_ms + 40 * DAY_MS))
    upsert = {"EVENT_ENVELOPE": envelope, "EVENT_WRITE_MODE": "upsert", **settings}
    event = first_event(cloud, body, now_ms=happened_ms + 41 * DAY_MS, **upsert)
    assert event.first_ms == happened_ms
    assert event.is_beyond_window


@pytest.mark.parametrize("time", ["yesterday", 5, None, "9999-99-99T00:00:00Z"])
def test_a_time_that_is_none_counts_for_nothing(cloud: Cloud, time: Any) -> None:
    body = {**fixture("body_eventbridge_custom"), "time": time}
    settings = {"EVENT_ENVELOPE": "eventbridge", "EVENT_ITEM": "{id: detail.order.id}"}
    event = first_event(cloud, letter(body), **settings)
    assert (event.fate, event.first_ms) == (Fate.APPLY, NOW_MS)


def test_a_time_without_a_zone_is_utc(cloud: Cloud) -> None:
    body = {**fixture("body_eventbridge_custom"), "time": "1970-01-01T00:00:01"}
    settings = {"EVENT_ENVELOPE": "eventbridge", "EVENT_ITEM": "{id: detail.order.id}"}
    assert first_event(cloud, letter(body), **settings).first_ms == 1000


# --- what differs


def difference(cloud: Cloud, body: Mapping[str, Any], **options: Any) -> Difference | None:
    return first_event(cloud, letter(body), compares=True, **options).difference


def test_a_conflict_names_the_attributes_that_differ(cloud: Cloud) -> None:
    deliver(cloud, order(note="same", gone=True, nested={"a": [1, 2]}, total=1.50))
    found = difference(cloud, order(note="same", new=None, nested={"a": [1, 3]}, total=1.5))
    assert found == Difference(
        {
            "gone": ("True", "nothing"),
            "nested": ("{a: [1, 2]}", "{a: [1, 3]}"),
            "new": ("nothing", "null"),
        }
    )


def test_a_conflict_beyond_the_window_names_them_too(cloud: Cloud) -> None:
    deliver(cloud, order())
    cloud.expire("e-1")
    assert difference(cloud, order(total=6)) == Difference({"total": ("5", "6")})


def test_a_long_value_is_cut(cloud: Cloud) -> None:
    deliver(cloud, order(text="x" * 100))
    assert difference(cloud, order(text="y")) == Difference({"text": ("x" * 59 + "…", "y")})


def test_a_conflict_whose_row_is_another_events_by_now_names_that_one(cloud: Cloud) -> None:
    upsert = {"EVENT_WRITE_MODE": "upsert", "EVENT_ITEM": "{id: key, total: total}"}
    deliver(cloud, order("e-1", key="k"), **upsert)
    deliver(cloud, order("e-2", key="k"), **upsert)
    assert difference(cloud, order("e-1", key="k", total=6), **upsert) == Difference(owner=("e-2", "orders"))


def test_a_conflict_without_a_row_says_so(cloud: Cloud) -> None:
    settings = {"EVENT_ITEM": "{id: key}"}
    deliver(cloud, order(key="k"), **settings)
    found = difference(cloud, order(key="other"), **settings)
    assert found == Difference(remark="no row is stored where this event would write")


def test_a_conflict_of_own_code_says_that_nothing_is_compared(cloud: Cloud) -> None:
    deliver(cloud, order())
    found = difference(cloud, order(total=6), own_code=True)
    assert found == Difference(remark="the consumer's own code plans its rows, so they are not compared")


def test_a_conflict_that_cannot_be_planned_says_so(cloud: Cloud) -> None:
    deliver(cloud, order())
    found = difference(cloud, order(total=6), EVENT_ITEM="nil")
    assert found == Difference(remark="this event cannot be planned")


@pytest.mark.parametrize(
    ("stored", "owner"),
    [
        ({"event_id": {"S": "e-9"}, "event_consumer": {"S": "billing"}}, ("e-9", "billing")),
        ({"event_id": {"N": "9"}}, ("9", None)),
        ({"note": {"S": "by hand"}}, (None, None)),
    ],
)
def test_a_row_that_stands_in_the_way_tells_whose_it_is(
    cloud: Cloud, stored: dict[str, Any], owner: tuple[str | None, str | None]
) -> None:
    cloud.store(BUSINESS, {"id": {"S": "e-1"}, **stored})
    event = first_event(cloud, letter(order()))
    assert (event.reason, event.difference) == ("row-exists", Difference(owner=owner))


def test_without_being_asked_no_row_is_read_for_a_conflict(cloud: Cloud) -> None:
    deliver(cloud, order())
    cloud.forget()
    assert first_event(cloud, letter(order(total=6))).difference is None
    assert cloud.operations == [READ]


# --- conditions, which DynamoDB reads


def write(mode: WriteMode, version: Any, cloud: Cloud) -> Any:
    event = Event("e-1", {}, "f")
    settings = Settings.from_environment(cloud.environment())
    put = Put("order_records", {"id": "k"}, mode, version if mode is WriteMode.NEWER else None)
    return prepare(event, Plan([put]), "m", NOW_MS, settings).writes[0]


@pytest.mark.parametrize(
    ("stored", "version", "refused"),
    [
        ({"N": "9"}, 10, False),
        ({"N": "10"}, 10, True),
        ({"N": "11"}, 10, True),
        ({"S": "9"}, 10, True),
        ({"S": "09"}, "1", False),
        ({"S": "9"}, "10", True),
        ({"S": "ä"}, "z", True),
        ({"B": b"1"}, "2", True),
        (None, 10, True),
    ],
)
def test_newer_refuses_what_is_not_less_or_of_another_type(
    cloud: Cloud, stored: dict[str, Any] | None, version: Any, refused: bool
) -> None:
    row = {"id": {"S": "k"}} | ({"event_version": stored} if stored else {})
    assert is_refused(write(WriteMode.NEWER, version, cloud), row) is refused


def test_upsert_compares_ids_as_dynamodb_does_with_their_types(cloud: Cloud) -> None:
    upsert = write(WriteMode.UPSERT, None, cloud)
    own = {"event_id": {"S": "e-1"}, "event_consumer": {"S": "orders"}}
    assert is_refused(upsert, own)
    assert not is_refused(upsert, {**own, "event_id": {"N": "1"}})
    assert not is_refused(upsert, {**own, "event_consumer": {"S": "billing"}})
    assert not is_refused(upsert, {"event_id": {"S": "e-1"}})


def test_numbers_are_the_same_whatever_their_spelling() -> None:
    identity: Any = {"event_id": {"S": "e"}, "event_consumer": {"S": "c"}}
    one = {**identity, "a": {"N": "1.0"}, "b": {"L": [{"N": "100"}]}, "c": {"M": {"x": {"N": "0"}}}}
    other = {**identity, "a": {"N": "1"}, "b": {"L": [{"N": "1E2"}]}, "c": {"M": {"x": {"N": "0.0"}}}}
    assert compare(one, other) == Difference({})


def test_what_the_consumer_writes_beside_the_event_is_no_difference() -> None:
    identity = {"event_id": {"S": "e"}, "event_consumer": {"S": "c"}}
    one = {**identity, "event_fingerprint": {"S": "1"}, "event_committed_at": {"N": "1"}}
    other = {**identity, "event_fingerprint": {"S": "2"}, "event_committed_at": {"N": "2"}}
    assert compare(one, other) == Difference({})


# --- faults


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (KeyError("secret"), "fault", "KeyError"),
        (RecursionError(), "nested-too-deep", "the body is nested too deep to be processed"),
    ],
)
@pytest.mark.parametrize(("module", "name"), [(opened, "fingerprint"), (lookup_module, "prepare")])
def test_where_the_library_itself_fails_the_consumer_does_too(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: Exception, reason: str, detail: str
) -> None:
    def fail(*arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(module, name, fail)
    event = first_event(cloud, letter(order()))
    assert (event.fate, event.reason, event.detail) == (Fate.REFUSE, reason, detail)
