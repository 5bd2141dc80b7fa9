"""The messages of the demo and the soak: orders, many more than once, and some that can never be processed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BATCH = 10  # the most that SendMessageBatch takes

# Each can never be processed, for a reason of its own; # stands for what makes it unlike the others.
POISON = (
    '{"id": "#-broken", "total": ',
    '{"customer": "no id at all", "note": "#"}',
    '{"id": "   ", "note": "#"}',
    '{"id": true, "note": "#"}',
    '{"id": "#-too-precise", "total": 0.1234567890123456789012345678901234567890123456789}',
    '{"id": "#-not-a-number", "total": NaN}',
    '{"id": "#-two-totals", "total": 1, "total": 2}',
    '"only a string: #"',
)


@dataclass(frozen=True)
class Traffic:
    """What is sent.

    `events`: event id → the body it is first sent with. `batches`: bodies, one inner list for each
    SendMessageBatch call. `late`: sent once all of `batches` is settled; it holds more resends and `impostors`,
    ids of before with other content. `poison`: bodies that no event comes of.
    """

    events: Mapping[str, str]
    batches: Sequence[Sequence[str]]
    late: Sequence[Sequence[str]]
    poison: Sequence[str]
    impostors: Sequence[str]

    @property
    def sent(self) -> int:
        return sum(map(len, [*self.batches, *self.late]))

    @property
    def duplicates(self) -> int:
        """Messages that carry an event sent before, with the same content."""
        return self.sent - len(self.events) - len(self.poison) - len(self.impostors)


def orders(
    events: int = 860,
    resends: int = 220,
    twins: int = 80,
    seed: int = 1,
    *,
    prefix: str = "order",
    poison: int = len(POISON),
    impostors: int = 1,
) -> Traffic:
    """Orders of which `resends` are sent again later and `twins` twice in one batch call; the same for a seed.

    All ids, and all poison, begin with `prefix` or hold it. With each of the `impostors` nine of the resends come late.
    """
    dice = random.Random(seed)
    first = {order["id"]: json.dumps(order) for order in (_order(prefix, n, dice) for n in range(1, events + 1))}
    bodies = list(first.values())
    spoilt = [POISON[n % len(POISON)].replace("#", f"{prefix}-{n}") for n in range(poison)]
    late_resends = impostors * (BATCH - 1)
    stream = _with_repeats(bodies, resends - late_resends, dice)
    for body in spoilt:
        stream.insert(dice.randrange(len(stream)), body)
    false = [_impostor(bodies[n * events // impostors]) for n in range(impostors)]
    again = dice.sample(bodies, late_resends)
    return Traffic(
        events=first,
        batches=list(_batches(stream, twins, set(spoilt), dice)),
        late=[[*again[n * (BATCH - 1) : (n + 1) * (BATCH - 1)], body] for n, body in enumerate(false)],
        poison=spoilt,
        impostors=false,
    )


def _order(prefix: str, number: int, dice: random.Random) -> dict[str, Any]:
    lines = [
        {"sku": f"SKU-{dice.randint(100, 999)}", "quantity": dice.randint(1, 5)} for _ in range(dice.randint(1, 3))
    ]
    return {
        "id": f"{prefix}-{number:04d}",
        "customer": f"customer-{dice.randint(1, 200)}",
        "total": round(dice.uniform(5, 500), 2),
        "currency": "EUR",
        "lines": lines,
        "express": dice.random() < 0.2,
    }


def _impostor(body: str) -> str:
    return json.dumps(json.loads(body) | {"total": 1_000_000})


def _with_repeats(bodies: list[str], repeats: int, dice: random.Random) -> list[str]:
    """The bodies in order, with `repeats` of them once more, anywhere after their first time."""
    again: dict[int, list[str]] = {}
    for index in dice.sample(range(len(bodies)), repeats):
        again.setdefault(dice.randint(index, len(bodies) - 1), []).append(bodies[index])
    return [body for index, first in enumerate(bodies) for body in (first, *again.get(index, []))]


def _batches(stream: Sequence[str], twins: int, never_twice: set[str], dice: random.Random) -> Iterator[list[str]]:
    """The stream in calls of up to ten; in the first `twins` of them one message stands twice."""
    size = BATCH - 1
    for number, start in enumerate(range(0, len(stream), size)):
        batch = list(stream[start : start + size])
        if number < twins:
            batch.append(dice.choice([body for body in batch if body not in never_twice]))
        yield batch
