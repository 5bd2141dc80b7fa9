"""Ledger rows that somebody wrote by hand: the reconciler and the pipeline leave them alone, and serve the others."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.handler.hostile import Stranger, examples
from tests.handler.hostile_json import KEY_MARKER, VALUE_MARKER, values
from tests.handler.hostile_world import Configured, Context, HostileWorld, check_calls, hostile_record
from tests.handler.pending_model import IndexedWorld, pending_row
from tests.handler.support import LEDGER, NOW_MS, PUBLISH, client_error
from tests.handler.table_model import Effect, Request
from tests.handler.watching import watched

# SHA-256 of {"id":"odd"}
OWN = "23fef21a24ffa0b7d36b8327c84993c39b9fb5d315221fcc4bacb5b24c477548"
LONG_AGO_MS = NOW_MS - 86_400_000
_TEXTS: st.SearchStrategy[Any] = st.sampled_from(("", "a", VALUE_MARKER, "\0", "\ufffe", "x" * 2_000, 1, None, [], {}))
_pairs = st.one_of(st.tuples(_TEXTS, _TEXTS), st.lists(_TEXTS, max_size=3), _TEXTS)
_attributes = st.dictionaries(st.sampled_from(("event_id", "a", "b.", "", KEY_MARKER)), _pairs, max_size=4) | _TEXTS
_notification = st.fixed_dictionaries(
    {},
    optional={"message": _TEXTS, "attributes": _attributes, "group": _TEXTS, "deduplication_id": _TEXTS},
)
_notifications = st.builds(
    json.dumps,
    _notification
    | st.just({"message": "{}", "attributes": {}, "group": "g", "deduplication_id": "d"})
    | st.lists(_notification, max_size=3).map(lambda several: {"notifications": several})
    | _TEXTS,
)
# What may stand in an attribute; text that nobody can read, or that no consumer writes.
_stored = st.one_of(
    st.builds(lambda text: {"S": text}, st.one_of(_notifications, values)),
    st.sampled_from(
        (
            *({"S": ""}, {"S": VALUE_MARKER}, {"S": "sent"}, {"S": "PENDING"}, {"N": "1"}, {"N": "1E+125"}),
            *({"NULL": True}, {"BOOL": True}, {"M": {}}, {"L": [{"S": "x"}]}, {"B": b"\xff"}, {"SS": ["a"]}, None),
        )
    ),
)
_NAMES = ("status", "notification", "notification", "message_id", "fingerprint", "ttl", "sent_at", "more")
_changes = st.dictionaries(st.sampled_from(_NAMES), _stored, max_size=4)


def refuse_what_sns_would(operation: str, request: Request, effect: Effect) -> Any:
    """SNS takes no empty message and no odd attribute; of others the model wants to know the event."""
    if operation == PUBLISH:
        for entry in request["PublishBatchRequestEntries"]:
            texts = [text for value in entry["MessageAttributes"].values() for text in value.values()]
            if not entry["Message"] or not all(texts) or "event_id" not in entry["MessageAttributes"]:
                raise client_error("InvalidParameter", PUBLISH)
    return effect()


@examples(120)
@given(st.lists(_changes, min_size=1, max_size=4))
@example([{"notification": {"S": "[" * 5_000}}])
@example([{"notification": {"S": '{"notifications":[]}'}}, {"message_id": {"N": "1"}, "status": {"N": "1"}}])
def test_reconciler_publishes_the_others_whatever_stands_in_a_row(odd: list[dict[str, Any]]) -> None:
    world = IndexedWorld()
    world.interfere = refuse_what_sns_would
    rows = [pending_row(f"odd-{number}", LONG_AGO_MS, shard="3", **changes) for number, changes in enumerate(odd)]
    world.add(pending_row("first", LONG_AGO_MS - 1, shard="3"), *rows, pending_row("last", NOW_MS - 10**6, shard="3"))

    with watched() as seen:
        run = world.reconciler().handle(Context())

    seen.check_silence()
    assert run.keys() == {"published", "still_stale"}
    assert run["published"] >= 2
    assert [world.ledger[name]["status"] for name in ("first", "last")] == [{"S": "sent"}, {"S": "sent"}]
    assert (world.published().count("first"), world.published().count("last")) == (1, 1)
    assert all(call.request["TopicArn"].endswith(":orders") for call in world.calls if call.operation == PUBLISH)
    assert len(world.calls) <= 60


@examples(120)
@given(_changes, st.booleans(), st.sampled_from((1, 2)))
@example({"status": {"N": "1"}}, False, 1)
@example({"notification": {"S": "[" * 5_000}}, True, 1)
@example({"notification": {"S": "[" * 5_000}}, True, 2)
@example({"notification": {"S": '{"notifications":[]}'}}, True, 2)
def test_pipeline_serves_the_others_whatever_stands_in_a_row(
    changes: dict[str, Any], has_its_content: bool, receives: int
) -> None:
    world = HostileWorld()
    world.interfere = refuse_what_sns_would
    odd = hostile_record("m-odd", Stranger('{"id":"odd"}', receives=receives))
    good = hostile_record("m-good", Stranger('{"id":"good"}'))
    own = {"S": OWN if has_its_content else "other"}
    world.tables[LEDGER]["odd"] = pending_row("odd", LONG_AGO_MS, **{"fingerprint": own, **changes})

    with watched() as seen:
        answer = world.consumer().handle({"Records": [odd, good]}, Context())

    seen.check()
    check_calls(world.calls, Configured())
    assert world.ledger["good"]["status"] == {"S": "sent"}
    assert "good" in world.rows
    assert answer in ({"batchItemFailures": []}, {"batchItemFailures": [{"itemIdentifier": "m-odd"}]})
    assert "odd" not in world.rows
