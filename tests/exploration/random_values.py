"""Random values of rows, and random conditions on them."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from idempotent_consumer.condition import Attr, Condition

NAMES = ("free", "kind", "address", "address.city", "lines", "lines[0].sku", "tags", "event_version", "none")
_ORDERED = (0, 1, 2, -3, Decimal("2.50"), 10**20, "", "a", "ab", "Ü")


def random_value(chance: Random) -> Any:
    return chance.choice(
        (
            0,
            1,
            2,
            -3,
            Decimal("2.50"),
            Decimal("1E+2"),
            10**20,
            "",
            "a",
            "ab",
            "b",
            "Ü",
            None,
            True,
            ["a", 1],
            {"city": "Wien"},
            [{"sku": "A"}],
            {"x": [True]},
        )
    )


def random_value_of(chance: Random, name: str) -> Any:
    """A way leads into a map, or a list of maps, or to nothing: into any other value is a known difference."""
    if name == "address":
        return chance.choice(({"city": "Wien"}, {"x": [True]}))
    return [{"sku": "A"}] if name == "lines" else random_value(chance)


def random_values(chance: Random) -> dict[str, Any]:
    names = [name for name in NAMES if name.isalpha()]
    return {name: random_value_of(chance, name) for name in chance.sample(names, chance.randrange(len(names)))}


def random_condition(chance: Random, depth: int = 2) -> Condition:
    """Known differences are left out: operands that DynamoDB refuses, and two attributes that may both be missing."""
    if depth and chance.random() < 0.4:
        one, other = random_condition(chance, depth - 1), random_condition(chance, depth - 1)
        return chance.choice((one & other, one | other, ~one))
    attribute = Attr(chance.choice(NAMES))
    operand = chance.choice((attribute, attribute, attribute, attribute.size()))
    name = chance.choice(
        ("eq", "ne", "lt", "lte", "gt", "gte", "between", "is_in", "exists", "not_exists", "begins_with", "contains")
    )
    if name in ("exists", "not_exists"):
        arguments: tuple[Any, ...] = ()
        operand = attribute
    elif name in ("eq", "ne"):
        arguments = (random_value(chance),)
    elif name in ("lt", "lte", "gt", "gte"):
        arguments = (chance.choice((*_ORDERED, Attr("sum"))),)
    elif name == "between":
        arguments = chance.choice(((0, 2), (Decimal("-1"), 10**20), ("a", "b"), ("", "Ü")))
    elif name == "is_in":
        arguments = ([random_value(chance), random_value(chance)],)
    else:
        arguments = (chance.choice(("a", "", "Ü")) if name == "begins_with" else random_value(chance),)
        operand = attribute
    condition: Condition = getattr(operand, name)(*arguments)
    return condition
