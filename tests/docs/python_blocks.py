"""What the Python blocks of the pages are: whole programs and tests, or pieces that take something for granted."""

from __future__ import annotations

import re
from textwrap import indent

from tests.docs.pages import Block, blocks

# Programs that others import, by the page and the block's number in it. All others get a name of their own.
NAMES = {
    ("README.md", 0): "readme",
    ("docs/operations.md", 0): "payments",
    ("docs/writing-a-plan.md", 0): "visits",
}
# Pages whose tests run beside those of the function, with their fixtures.
OF_THE_FUNCTION = {"docs/adding-an-event-fixture.md"}

# What the pieces take for granted.
PIECES_BEGIN = """import pytest
from idempotent_consumer import Attr, Event, Notification, Plan, Reject, Update
from idempotent_consumer.testing import assert_idempotent


def plan(event: Event) -> Plan:
    enough, out_of_stock = Attr("free").gte(event.data["quantity"]), Reject("out-of-stock")
    key, taken = {"sku": event.data["sku"]}, {"free": -event.data["quantity"]}
    update = Update("stock", key, add=taken, condition=enough, otherwise=out_of_stock)
    return Plan([update], Notification({"order": event.id}))


events = [{"id": "o-1", "sku": "A-1", "quantity": 8}, {"id": "o-2", "sku": "A-1", "quantity": 3}]
event = Event("o-1", {"id": "o-1", "sku": "A-1", "quantity": 0}, "f")
"""
# The pieces by their first line, and what they are to raise.
PIECES = {
    'result = assert_idempotent(plan, events, rows={"stock": [{"sku": "A-1", "free": 10}]})': None,
    "Update(": None,
    'if event.data["quantity"] < 1:': "no-quantity",
}


def is_program(block: Block) -> bool:
    return re.match(r'(from|import|"""|def|class|@)\b', block.text) is not None


def is_test(block: Block) -> bool:
    return re.search(r"^def test_", block.text, re.M) is not None


def programs() -> dict[str, Block]:
    """The whole programs by the name of their module."""
    found: dict[str, Block] = {}
    numbers: dict[str, int] = {}
    for block in blocks("python"):
        number = numbers[block.page] = numbers.get(block.page, -1) + 1
        if is_program(block):
            name = NAMES.get((block.page, number), block.name)
            found[f"test_{name}" if is_test(block) else name] = block
    return found


def pieces() -> list[Block]:
    return [block for block in blocks("python") if not is_program(block)]


def pieces_test() -> str:
    """A test of each piece."""
    text = PIECES_BEGIN
    for block in pieces():
        raises = PIECES.get(first_line(block))
        text += f"\n\ndef test_{block.name}() -> None:\n"
        text += f"    with pytest.raises(Reject, match={raises!r}):\n" if raises else "    if True:\n"
        text += indent(block.text, 8 * " ")
    return text


def first_line(block: Block) -> str:
    return block.text.splitlines()[0]
