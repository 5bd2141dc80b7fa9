"""What an effect is handed and can say: the key that providers tell repetitions by, and the kinds of failure."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import pytest

from idempotent_consumer import Final, Retryable, Uncertain
from idempotent_consumer.effect import EffectFailed, idempotency_key


def test_the_idempotency_key_is_a_uuid_of_consumer_and_event() -> None:
    key = idempotency_key("orders", "o-1")
    assert key == "a8973469-5a5a-81e2-ae82-4aca8de24e9c"
    assert (uuid.UUID(key).variant, key[14]) == (uuid.RFC_4122, "8")
    digest = hashlib.sha256(b"orders\0o-1").hexdigest()
    assert digest[:8] == key[:8] and digest[20:32] == key[24:]


def test_keys_of_other_consumers_and_events_differ() -> None:
    pairs = [("orders", "o-1"), ("orders", "o-2"), ("refunds", "o-1"), ("order", "so-1"), ("orders\0o", "-1")]
    assert len({idempotency_key(*pair) for pair in pairs}) == 5


@pytest.mark.parametrize("event_id", ["ä" * 1024, "\U0001f600", " ", "0"])
def test_any_event_id_makes_a_key_of_36_plain_characters(event_id: str) -> None:
    key = idempotency_key("orders", event_id)
    assert (len(key), key.isascii(), str(uuid.UUID(key))) == (36, True, key)


@pytest.mark.parametrize("kind", [Retryable, Final])
def test_reasons_are_short_and_hold_what_a_message_can(kind: Any) -> None:
    failure = kind(" a\x00b" + "c" * 300, 7)
    assert (failure.reason, failure.detail) == ("a?b" + "c" * 253, "7")
    assert kind("").reason == "effect-failed"
    assert isinstance(failure, EffectFailed)


def test_uncertain_is_no_failure() -> None:
    uncertain = Uncertain("read-timeout", "9 s")
    assert (uncertain.reason, uncertain.detail) == ("read-timeout", "9 s")
    assert not isinstance(uncertain, EffectFailed)
