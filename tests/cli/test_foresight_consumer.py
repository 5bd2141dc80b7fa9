"""What is foretold is what the consumer then does: both are asked, on the same tables."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from moto import mock_aws

from idempotent_consumer.aws import Clients
from idempotent_consumer.settings import Settings
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.foresight.pipeline_lookup import Lookup
from idempotent_consumer_cli.foresight.prospect import Fate, LedgerState, Prospect
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.rows.tables import Tables
from tests.handler.support import BUSINESS, Cloud, fixture, record

NEVER_SEEN, PENDING, SENT, CONFLICT, NO_EVENT = (
    LedgerState.NEVER_SEEN,
    LedgerState.PENDING,
    LedgerState.SENT,
    LedgerState.CONFLICT,
    LedgerState.NO_EVENT,
)
Body = str | Mapping[str, Any]


@pytest.fixture(scope="module")
def clients() -> Clients:
    return Clients.create()


@pytest.fixture
def cloud(clients: Clients) -> Iterator[Cloud]:
    with mock_aws():
        yield Cloud(clients)


def letter(body: Body, message_id: str = "m-1") -> Letter:
    text = record(message_id, body)["body"]
    return Letter(message_id, text, {}, {"SentTimestamp": "1893553446000"})


def foretell(cloud: Cloud, *bodies: Body, **settings: Any) -> list[Prospect]:
    read = Settings.from_environment(cloud.environment(**settings))
    consumer = Consumer("orders", read, "queue", cloud.dead_letter_url, 30, "orders-worker", "log", True)
    page = [letter(body, f"m-{n}") for n, body in enumerate(bodies)]
    lookup = Lookup(Tables(cloud.real.dynamodb, read), consumer)
    return [prospect for _, prospect in lookup.foretell(page, 1893553446000)]


def do(cloud: Cloud, body: Body, **settings: Any) -> Fate:
    """Deliver the message, and say what the consumer did."""
    cloud.forget()
    answer = cloud.deliver(record("m-again", body), **settings)
    done = {what for what, _ in cloud.history}
    if "dead-lettered" in done or answer["batchItemFailures"]:
        return Fate.REFUSE
    if "committed" in done:
        return Fate.APPLY
    return Fate.PUBLISH if "published" in done else Fate.NO_OP


def order(event_id: Any = "order-1", **more: Any) -> dict[str, Any]:
    return {"id": event_id, "total": 5, **more}


def row(event_id: str, **more: str) -> dict[str, dict[str, str]]:
    """A business row that no event of this consumer has written, with the key of `order()`."""
    values = {"id": "order-1", "event_id": event_id, "event_consumer": "billing", "event_fingerprint": "f", **more}
    return {name: {"S": value} for name, value in values.items()}


def settled(cloud: Cloud, body: Body, **settings: Any) -> None:
    assert cloud.deliver(record("m-0", body), **settings) == {"batchItemFailures": []}


def expired(cloud: Cloud, body: Body, event_id: str = "order-1", **settings: Any) -> None:
    settled(cloud, body, **settings)
    cloud.expire(event_id)


UPSERT: dict[str, Any] = {"EVENT_WRITE_MODE": "upsert", "EVENT_ITEM": "{id: key || id, total: total}"}
NEWER: dict[str, Any] = {
    "EVENT_WRITE_MODE": "newer",
    "EVENT_VERSION": "v",
    "EVENT_ITEM": "{id: key || id, total: total}",
}
INSERT: dict[str, Any] = {"EVENT_ITEM": "{id: key || id, total: total}"}
S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}"}
SNS: dict[str, Any] = {"EVENT_ENVELOPE": "sns"}
BRIDGE: dict[str, Any] = {"EVENT_ENVELOPE": "eventbridge", "EVENT_ITEM": "{id: detail.order.id}"}
S3_ID = "example-invoices/in/2030/invoice-0001.csv//0070DBD1C000000010"

Before = Callable[[Cloud], object]
Case = tuple[str, Mapping[str, str], Before, Body, LedgerState, Fate, str]


def nothing(cloud: Cloud) -> None:
    """Nothing has happened before."""


CASES: list[Case] = [
    ("new", {}, nothing, order(), NEVER_SEEN, Fate.APPLY, ""),
    ("integer id", {}, nothing, order(7), NEVER_SEEN, Fate.APPLY, ""),
    ("pending", {}, lambda c: c.commit_without_publishing(record("m", order())), order(), PENDING, Fate.PUBLISH, ""),
    ("sent", {}, lambda c: settled(c, order()), order(), SENT, Fate.NO_OP, ""),
    ("other content", {}, lambda c: settled(c, order(total=6)), order(), CONFLICT, Fate.REFUSE, "id-reused"),
    ("no JSON", {}, nothing, "{", NO_EVENT, Fate.REFUSE, "bad-json"),
    ("a list", {}, nothing, "[1]", NO_EVENT, Fate.REFUSE, "not-an-object"),
    ("a string", {}, nothing, json.dumps(json.dumps(order())), NO_EVENT, Fate.REFUSE, "not-an-object"),
    ("null", {}, nothing, "null", NO_EVENT, Fate.REFUSE, "not-an-object"),
    ("byte order mark", {}, nothing, "\ufeff{}", NO_EVENT, Fate.REFUSE, "bad-json"),
    ("too deep", {}, nothing, "[" * 100_000, NO_EVENT, Fate.REFUSE, "nested-too-deep"),
    ("no id", {}, nothing, {"total": 5}, NO_EVENT, Fate.REFUSE, "id-missing"),
    ("blank id", {}, nothing, order(" "), NO_EVENT, Fate.REFUSE, "id-blank"),
    ("no fingerprint", {"EVENT_FINGERPRINT": "nil"}, nothing, order(), NO_EVENT, Fate.REFUSE, "fingerprint-missing"),
    ("no item", {"EVENT_ITEM": "nil"}, nothing, order(), NEVER_SEEN, Fate.REFUSE, "item-not-an-object"),
    ("no key", {"EVENT_ITEM": "{a: id}"}, nothing, order(), NEVER_SEEN, Fate.REFUSE, "key-missing"),
    ("too large", {}, nothing, order(text="x" * 420_000), NEVER_SEEN, Fate.REFUSE, "notification-too-large"),
    (
        "rejected by new code, but written by old code",
        {"EVENT_ITEM": "nil"},
        lambda c: c.commit_without_publishing(record("m", order())),
        order(),
        PENDING,
        Fate.PUBLISH,
        "",
    ),
    ("insert over a row", {}, lambda c: c.store(BUSINESS, row("b")), order(), NEVER_SEEN, Fate.REFUSE, "row-exists"),
    (
        "insert over its own row of another consumer",
        {},
        lambda c: c.store(BUSINESS, row("order-1")),
        order(),
        NEVER_SEEN,
        Fate.REFUSE,
        "row-exists",
    ),
    ("insert, expired", {}, lambda c: expired(c, order()), order(), NEVER_SEEN, Fate.NO_OP, "ledger-row-expired"),
    (
        "insert, expired, other content",
        {},
        lambda c: expired(c, order(total=6)),
        order(),
        NEVER_SEEN,
        Fate.REFUSE,
        "id-reused",
    ),
    ("upsert over a row", UPSERT, lambda c: c.store(BUSINESS, row("b")), order(), NEVER_SEEN, Fate.APPLY, ""),
    (
        "upsert over its own row of another consumer",
        UPSERT,
        lambda c: c.store(BUSINESS, row("order-1")),
        order(),
        NEVER_SEEN,
        Fate.APPLY,
        "",
    ),
    (
        "upsert, expired",
        UPSERT,
        lambda c: expired(c, order(), **UPSERT),
        order(),
        NEVER_SEEN,
        Fate.NO_OP,
        "ledger-row-expired",
    ),
    (
        "upsert, expired, other content",
        UPSERT,
        lambda c: expired(c, order(total=6), **UPSERT),
        order(),
        NEVER_SEEN,
        Fate.REFUSE,
        "id-reused",
    ),
    ("newer, first", NEWER, nothing, order(v=2), NEVER_SEEN, Fate.APPLY, ""),
    (
        "newer than the stored one",
        NEWER,
        lambda c: settled(c, order("order-0", key="order-1", v=9), **NEWER),
        order(v=10),
        NEVER_SEEN,
        Fate.APPLY,
        "",
    ),
    (
        "as new as the stored one",
        NEWER,
        lambda c: settled(c, order("order-0", key="order-1", v=9), **NEWER),
        order(v=9),
        NEVER_SEEN,
        Fate.NO_OP,
        "superseded",
    ),
    (
        "older than the stored one, as strings",
        NEWER,
        lambda c: settled(c, order("order-0", key="order-1", v="9"), **NEWER),
        order(v="10"),
        NEVER_SEEN,
        Fate.NO_OP,
        "superseded",
    ),
    (
        "newer over a row without a version",
        NEWER,
        lambda c: c.store(BUSINESS, row("b")),
        order(v=1),
        NEVER_SEEN,
        Fate.REFUSE,
        "row-exists",
    ),
    (
        "newer, expired",
        NEWER,
        lambda c: expired(c, order(v=2), **NEWER),
        order(v=2),
        NEVER_SEEN,
        Fate.NO_OP,
        "ledger-row-expired",
    ),
    ("newer without a version", NEWER, nothing, order(), NEVER_SEEN, Fate.REFUSE, "version-missing"),
    ("sns", SNS, nothing, fixture("body_sns_notification"), NEVER_SEEN, Fate.APPLY, ""),
    (
        "sns, sent",
        SNS,
        lambda c: settled(c, fixture("body_sns_notification"), **SNS),
        fixture("body_sns_notification"),
        SENT,
        Fate.NO_OP,
        "",
    ),
    (
        "sns, no envelope",
        SNS,
        nothing,
        order(),
        NO_EVENT,
        Fate.REFUSE,
        "not-an-sns-envelope",
    ),
    ("eventbridge", BRIDGE, nothing, fixture("body_eventbridge_custom"), NEVER_SEEN, Fate.APPLY, ""),
    (
        "eventbridge, replayed from its archive",
        BRIDGE,
        lambda c: settled(c, fixture("body_eventbridge_custom"), **BRIDGE),
        {**fixture("body_eventbridge_custom"), "replay-name": "again"},
        SENT,
        Fate.NO_OP,
        "",
    ),
    ("s3", S3, nothing, fixture("body_s3_put"), NEVER_SEEN, Fate.APPLY, ""),
    ("s3, its test event", S3, nothing, fixture("body_s3_test_event"), NO_EVENT, Fate.NO_OP, ""),
    ("s3, several", S3, nothing, fixture("body_s3_put_three_objects"), NEVER_SEEN, Fate.APPLY, ""),
]


@pytest.mark.parametrize(
    ("settings", "before", "body", "state", "fate", "reason"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_what_is_foretold_is_what_happens(
    cloud: Cloud,
    settings: dict[str, Any],
    before: Before,
    body: Body,
    state: LedgerState,
    fate: Fate,
    reason: str,
) -> None:
    before(cloud)
    (prospect,) = foretell(cloud, body, **settings)
    decisive = prospect.decisive
    assert (prospect.state, prospect.fate, decisive.reason if decisive else "") == (state, fate, reason)
    assert do(cloud, body, **settings) is fate
    if fate is Fate.REFUSE:
        assert cloud.reasons() == [reason]


def test_each_event_of_a_message_has_its_own_fate_and_the_worst_is_the_messages(cloud: Cloud) -> None:
    body = fixture("body_s3_put_three_objects")
    first, second, third = body["Records"]
    settled(cloud, {"Records": [first]}, **S3)
    cloud.commit_without_publishing(record("m", {"Records": [second]}), **S3)
    third["s3"]["object"]["key"] = "%ff"
    (prospect,) = foretell(cloud, body, **S3)
    assert [(event.state, event.fate) for event in prospect.events] == [
        (SENT, Fate.NO_OP),
        (PENDING, Fate.PUBLISH),
        (NO_EVENT, Fate.REFUSE),
    ]
    assert (prospect.state, prospect.fate) == (NO_EVENT, Fate.REFUSE)
    assert do(cloud, body, **S3) is Fate.REFUSE


MODES: dict[str, dict[str, Any]] = {"insert": INSERT, "upsert": UPSERT, "newer": NEWER}


@pytest.mark.parametrize("mode", MODES)
def test_letters_that_bear_on_each_other_are_foretold_in_their_order(cloud: Cloud, mode: str) -> None:
    settings = MODES[mode]
    for seed in range(40):
        draw = random.Random(f"{mode}-{seed}")

        def event(draw: random.Random = draw, seed: int = seed) -> dict[str, Any]:
            event_id, key = f"{seed}-{draw.choice('abc')}", f"{seed}-{draw.choice('xy')}"
            return {"id": event_id, "key": key, "total": draw.randint(1, 2), "v": draw.randint(1, 3)}

        for _ in range(3):
            past = event()
            if draw.random() < 0.3:
                try:
                    cloud.commit_without_publishing(record("m", past), **settings)
                except pytest.fail.Exception:
                    cloud.heal()  # it was not new, so there was nothing to publish
            else:
                cloud.deliver(record("m", past), **settings)
            if draw.random() < 0.3:
                cloud.expire(past["id"])
        letters = [event() for _ in range(6)]
        foretold = [prospect.fate for prospect in foretell(cloud, *letters, **settings)]
        assert foretold == [do(cloud, body, **settings) for body in letters], f"{mode}, seed {seed}"
