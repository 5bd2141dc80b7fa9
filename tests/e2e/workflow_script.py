"""A sequence of deliveries whose results do not depend on who claims: told without owners, times and names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.workflows import Attributes, Message, Workflow, text

# What differs from one workflow to another; the fingerprint, since the keys are not the same.
_OWN = ("claimedAt", "completedAt", "expiresAt", "fingerprint", "owner", "parkedAt", "releasedAt")
_LONG = "k" * 2000
# Each is returned by an effect, recorded, and returned to a duplicate. The last is just short enough: its quotes count.
RESULTS: Sequence[Any] = (
    None,
    0,
    -1.5,
    123456789012345,
    0.1,
    1e21,
    False,
    "",
    "hello",
    'a "quoted" \\ line\nü ☃ 𝄞 {% 1 %} $x',
    [],
    [None],
    [[1], [2, [3]]],
    {},
    {"a": {"b": [1, "2", None, True]}, "": " "},
    "x" * 59_992,
)
TOO_LONG = "x" * 59_993


@dataclass(frozen=True)
class Delivery:
    """One message. name: in place of its id. letter_of: the key that it is a replayed letter of."""

    name: str
    body: Mapping[str, Any]
    letter_of: str = ""

    @property
    def attributes(self) -> Attributes:
        return {"dead_letter_key": text(self.letter_of)} if self.letter_of else {}


@dataclass(frozen=True)
class Release:
    key: str


@dataclass
class Played:
    """What came of it. results: (status, output or error) by delivery; letters: (body, attributes)."""

    results: list[tuple[str, Any]] = field(default_factory=list)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    letters: list[Any] = field(default_factory=list)


def script(prefix: str) -> Iterator[Delivery | Release]:
    plain, other = {"id": f"{prefix}plain", "n": 1}, {"id": f"{prefix}plain", "n": 2}
    yield Delivery("1", plain)
    yield Delivery("1", plain)
    yield Delivery("2", plain)
    yield Delivery("3", other)
    yield Delivery("4", other, letter_of=f"{prefix}plain")
    yield Delivery("5", plain, letter_of=f"{prefix}plain")

    fails = {"id": f"{prefix}fails", "does": "fails-once"}
    yield Delivery("11", fails)
    yield Delivery("12", fails)
    yield Delivery("13", fails, letter_of=fails["id"])
    yield Delivery("14", fails | {"other": "content"})
    yield Release(fails["id"])
    yield Delivery("15", fails, letter_of=fails["id"])
    yield Delivery("16", fails)
    yield Delivery("17", fails, letter_of=fails["id"])

    # Released for other content: what was claimed before is no conflict any more.
    edited = {"id": f"{prefix}edited", "does": "fails-once"}
    yield Delivery("21", edited)
    yield Release(edited["id"])
    yield Delivery("22", edited | {"n": 2})
    yield Delivery("23", edited)

    for number, result in enumerate(RESULTS):
        returns = {"id": f"{prefix}returns {number}", "result": result}
        yield Delivery(f"30-{number}", returns)
        yield Delivery(f"31-{number}", returns)
    grows = {"id": f"{prefix}grows", "does": "grows", "size": len(TOO_LONG)}
    yield Delivery("40", grows)
    yield Delivery("41", grows)

    for number, key in enumerate(("ключ ☃ 'a' \"b\" \\ {% 1 %}", " ", "a\nb", _LONG)):
        odd = {"id": f"{prefix}{key}", "text": "\u2028 {% $x %} $.y"}
        yield Delivery(f"50-{number}", odd)
        yield Delivery(f"51-{number}", odd)


def play(workflow: Workflow, release: Callable[[Workflow, str], None], prefix: str) -> Played:
    """Deliver message after message, each when the one before has come to its end. prefix: of all keys."""
    played = Played()
    for step in script(prefix):
        if isinstance(step, Release):
            release(workflow, step.key)
            continue
        key = str(step.body["id"])
        message = Message(prefix + step.name, json.dumps(step.body), step.attributes)
        workflow.deliver(message)
        ended = workflow.ended(key, message)
        played.results.append((ended.status, _without(prefix, ended.result)))
    rows = {key: row for key, row in workflow.rows().items() if key.startswith(prefix)}
    for key, row in rows.items():
        told = {name: value for name, value in row.items() if name not in _OWN}
        audit = [entry["how"] for entry in told.pop("audit", [])]
        played.rows[key.removeprefix(prefix)] = _without(prefix, told) | {
            "is": sorted(row.keys() & set(_OWN)),
            "audit": audit,
        }
    played.letters = [_without(prefix, _told(letter)) for letter in workflow.dead_letters.take()]
    return played


def _told(letter: Mapping[str, Any]) -> Any:
    attributes = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    del attributes["dead_letter_execution"]
    return json.loads(letter["Body"]), attributes


def _without(prefix: str, told: Any) -> Any:
    return json.loads(json.dumps(told, default=str).replace(prefix, "…"))
