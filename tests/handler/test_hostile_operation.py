"""Strangers write the messages of an operation, and rows may be anybody's: neither crashes it, nor tells on a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from idempotent_consumer import Event, operation_consumer
from idempotent_consumer.operation_consumer import Operation, OperationConsumer
from idempotent_consumer.operation_settings import OperationSettings
from tests.handler.hostile import Stranger, body_of, examples, strangers
from tests.handler.hostile_json import VALUE_MARKER
from tests.handler.hostile_world import DEAD, DEAD_LETTERS, check_letter, event_ids, hostile_record
from tests.handler.operation_model import World
from tests.handler.support import BURY, HIDE, LEDGER, NOTHING_FAILED, UPDATE, Item
from tests.handler.watching import Watched, watched

ENVELOPES = ("raw", "sns", "eventbridge", "s3")
GOOD = {
    "raw": '{"id":"good"}',
    "sns": '{"Type":"Notification","Message":"{\\"id\\":\\"good\\"}"}',
    "eventbridge": '{"id":"good","detail-type":"t","detail":{}}',
    "s3": '{"Records":[{"s3":{"bucket":{"name":"good"},"object":{"key":"k","sequencer":"1"}}}]}',
}
QUEUE = "https://sqs.test/orders"
ENVIRONMENT = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": LEDGER,
    "DEAD_LETTER_QUEUE_URL": DEAD_LETTERS,
    "QUEUE_URL": QUEUE,
    "VISIBILITY_TIMEOUT_SECONDS": "360",
    "BACKOFF_MAX_SECONDS": "900",
    "OPERATION_EFFECT_TIMEOUT_SECONDS": "10",
    "OPERATION_LEASE_MS": "180000",
    "OPERATION_SETTLE_SECONDS": "130",
    "OPERATION_MAX_ATTEMPTS": "3",
    "OPERATION_MAX_AGE_SECONDS": "82800",
    "OPERATION_RETRY_SECONDS": "30",
}
MOST_CALLS = 60
# What an `UpdateItem` may name of a row.
ATTRIBUTES = {
    *("attempt", "claimed_at", "created_at", "detail", "event_id", "fingerprint", "idempotency_key", "lease_until"),
    *("message_id", "next_attempt_at", "owner", "parked_at", "pending_shard", "reason", "result", "result_bytes"),
    *("result_sha256", "settled_at", "since", "status", "tries", "ttl", "uncertain_at"),
}


class Shop:
    """An operation whose effect answers with what it was asked for, so that the row holds it."""

    def __init__(self, **changes: str) -> None:
        self.world = World(lambda: None)
        self.charges: list[str] = []
        settings = OperationSettings.from_environment(ENVIRONMENT | changes)
        self._consumer = OperationConsumer(settings, self.world.clients, Operation(self._charge))

    @property
    def rows(self) -> dict[str, Item]:
        return self.world.ledger.rows

    def requests(self, operation: str) -> list[dict[str, Any]]:
        return [call.request for call in self.world.calls if call.operation == operation]

    def deliver(self, records: Sequence[dict[str, Any]]) -> tuple[Any, Watched]:
        with watched() as seen:
            answer = self._consumer.handle({"Records": list(records)}, self)
        seen.check()
        self._check_calls()
        return answer, seen

    def get_remaining_time_in_millis(self) -> int:
        return 60_000

    def _charge(self, event: Event, _key: str) -> Any:
        self.charges.append(event.id)
        return event.data

    def _check_calls(self) -> None:
        """Whatever bodies say, one row of the ledger is written under its own id, and letters go to the one queue."""
        assert self.world.ledger.complaints == []
        assert len(self.world.calls) <= MOST_CALLS
        for request in self.requests(UPDATE):
            assert (request["TableName"], list(request["Key"])) == (LEDGER, ["event_id"])
            assert request["Key"]["event_id"].keys() == {"S"}
            assert set(request["ExpressionAttributeNames"].values()) <= ATTRIBUTES
        assert all(request["QueueUrl"] == DEAD_LETTERS for request in self.requests(BURY))
        assert all(request["QueueUrl"] == QUEUE for request in self.requests(HIDE))


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_consumer, "drawn_seconds", lambda least, _count, _most: least)


def check_outcomes(shop: Shop, answer: Any, seen: Watched, hostile: Sequence[Stranger], envelope: str) -> None:
    """Each message is applied once, or dead, or comes back since there is no room for a reason."""
    returned = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
    dead = shop.requests(BURY)
    for number, stranger in enumerate(hostile, 1):
        reason = seen.reasons.get(f"m-{number}")
        if f"m-{number}" in returned:
            assert reason == "dead-letter-does-not-fit"
            continue
        letter = next((each for each in dead if each["MessageBody"] == stranger.body), None)
        if letter is not None:
            check_letter(letter, stranger, DEAD)
            dead.remove(letter)
            continue
        for event_id in event_ids(stranger.body, envelope):
            assert shop.charges.count(event_id) == 1
            assert shop.rows[event_id]["status"] == {"S": "COMPLETED"}
    assert dead == []


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_strangers_harm_no_operation_whatever_they_send(envelope: str) -> None:
    (good_id,) = event_ids(GOOD[envelope], envelope)

    @examples(50)
    @given(st.lists(strangers(envelope), min_size=2, max_size=5, unique_by=body_of))
    @example([Stranger('{"id":"o-1","total":1e400}'), Stranger('{"id":"o-1","id":"o-2"}'), Stranger("")])
    def check(hostile: list[Stranger]) -> None:
        shop = Shop(EVENT_ENVELOPE=envelope)
        among = [hostile_record(f"m-{number}", stranger) for number, stranger in enumerate(hostile, 1)]
        answer, seen = shop.deliver([*among, hostile_record("m-good", Stranger(GOOD[envelope]))])
        check_outcomes(shop, answer, seen, hostile, envelope)
        assert shop.charges.count(good_id) == 1
        row = shop.rows[good_id]
        assert (row["status"], row["attempt"], row["tries"]) == ({"S": "COMPLETED"}, {"N": "1"}, {"N": "1"})
        assert "m-good" not in seen.reasons

    check()


_values: st.SearchStrategy[Any] = st.sampled_from(
    (
        *({"S": ""}, {"S": VALUE_MARKER}, {"S": "COMPLETED"}, {"S": "IN_PROGRESS"}, {"S": "FAILED_RETRYABLE"}),
        *({"S": "FAILED_FINAL"}, {"S": "pending"}, {"S": "[" * 5_000}, {"N": "0"}, {"N": "-1"}, {"N": "1E+125"}),
        *({"N": "1.5"}, {"N": "1893553446000"}, {"NULL": True}, {"BOOL": False}, {"M": {}}, {"L": [{"S": "x"}]}),
        *({"B": b"\xff"}, {"SS": ["a"]}, {"NS": ["1"]}, None),
    )
)
_changes = st.dictionaries(st.sampled_from(sorted({*ATTRIBUTES, "audit"} - {"event_id"})), _values, max_size=4)


@pytest.mark.parametrize("uncertain", ["park", "provider_key"])
def test_row_that_somebody_wrote_crashes_nothing_and_harms_nobody(uncertain: str) -> None:
    @examples(150)
    @given(_changes, st.booleans())
    @example({"status": {"N": "1"}}, False)
    @example({"status": {"S": "COMPLETED"}, "result": {"S": "[" * 5_000}}, True)
    @example({"lease_until": {"N": "1E+125"}, "audit": {"S": VALUE_MARKER}}, True)
    @example({"status": {"S": "FAILED_RETRYABLE"}, "next_attempt_at": {"N": "1E+125"}}, True)
    def check(changes: dict[str, Any], is_of_an_operation: bool) -> None:
        shop = Shop(OPERATION_UNCERTAIN=uncertain)
        odd, good = (hostile_record(f"m-{name}", Stranger(f'{{"id":"{name}"}}')) for name in ("odd", "good"))
        if is_of_an_operation:
            shop.deliver([odd])
        row = {"event_id": {"S": "odd"}, **shop.rows.get("odd", {}), **changes}
        shop.rows["odd"] = {name: value for name, value in row.items() if value is not None}
        charges = len(shop.charges)

        answer, seen = shop.deliver([odd, good])

        assert shop.charges.count("good") == 1
        assert shop.rows["good"]["status"] == {"S": "COMPLETED"}
        assert answer in (NOTHING_FAILED, {"batchItemFailures": [{"itemIdentifier": "m-odd"}]})
        if seen.reasons.get("m-odd") == "ledger-row-unreadable":
            assert len(shop.charges) == charges + 1
            assert answer != NOTHING_FAILED

    check()
