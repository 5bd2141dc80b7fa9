"""Plans and conditions in words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from idempotent_consumer import (
    Attr,
    Check,
    Delete,
    Notification,
    Plan,
    Put,
    Reject,
    Retry,
    Supersede,
    Update,
    WriteMode,
)
from idempotent_consumer.testing.description import describe, differences, shown


def test_each_part_of_a_plan_has_a_path() -> None:
    plan = Plan(
        [
            Put("rows", {"id": 1, "price": Decimal("9.95"), "tags": ["a", {"b": None}]}),
            Put("rows", {"id": 2}, WriteMode.NEWER, 7, key="id"),
            Update(
                "stock", {"sku": "A"}, add={"free": -1}, condition=Attr("free").gte(1), otherwise=Reject("out", "A")
            ),
            Update("stock", {"sku": "B"}, set={"x.y": True}, remove=["z"]),
            Delete("carts", {"id": "c"}, condition=~Attr("lines").size().eq(0), otherwise=Retry("full")),
            Check("shops", {"id": "s"}, Attr("a").exists() & Attr("b").is_in([1, 2]), otherwise=Supersede("closed")),
        ],
        Notification("word", {"kind": "k"}),
    )
    assert describe(plan) == {
        "writes[0]": "Put('rows')",
        "writes[0].item.id": "1",
        "writes[0].item.price": "Decimal('9.95')",
        "writes[0].item.tags[0]": "'a'",
        "writes[0].item.tags[1].b": "None",
        "writes[0].mode": "INSERT",
        "writes[1]": "Put('rows')",
        "writes[1].item.id": "2",
        "writes[1].mode": "NEWER",
        "writes[1].version": "7",
        "writes[1].key[0]": "'id'",
        "writes[2]": "Update('stock')",
        "writes[2].key.sku": "'A'",
        "writes[2].add.free": "-1",
        "writes[2].condition": "free >= 1",
        "writes[2].otherwise": "Reject('out', 'A')",
        "writes[3]": "Update('stock')",
        "writes[3].key.sku": "'B'",
        "writes[3].set.x.y": "True",
        "writes[3].remove[0]": "'z'",
        "writes[4]": "Delete('carts')",
        "writes[4].key.id": "'c'",
        "writes[4].condition": "(NOT size(lines) = 0)",
        "writes[4].otherwise": "Retry('full')",
        "writes[5]": "Check('shops')",
        "writes[5].key.id": "'s'",
        "writes[5].condition": "(attribute_exists(a) AND (b IN (1, 2)))",
        "writes[5].otherwise": "Supersede('closed')",
        "notifications[0].message": "'word'",
        "notifications[0].attributes.kind": "'k'",
    }


def test_sets_and_objects_look_the_same_in_each_process() -> None:
    class Thing:
        pass

    item: dict[str, Any] = {"id": "a", "set": {"b", "a"}, "thing": Thing()}
    described = describe(Plan([Put("rows", item)]))
    assert described["writes[0].item.set"] == "set of 'a', 'b'"
    assert " at 0x" not in described["writes[0].item.thing"]


def test_value_that_holds_itself_has_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert list(describe(Plan([Put("rows", {"id": endless})])).values()).count("…") == 1


def test_order_of_keys_is_no_difference_and_long_values_are_cut() -> None:
    assert describe(Plan([Put("rows", {"a": 1, "b": 2})])) == describe(Plan([Put("rows", {"b": 2, "a": 1})]))
    one = {f"path-{n}": "x" * 300 for n in range(7)}
    lines = shown(differences(one, {}), ("first", "then"))
    assert lines[:3] == ["path-0", f"  first  {'x' * 200}… (300 characters)", "  then   (absent)"]
    assert lines[15:] == ["and 2 more"]
