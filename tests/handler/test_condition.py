"""Conditions become the expressions that DynamoDB takes, with names and values as placeholders."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from idempotent_consumer import Attr, Condition, InvalidPlan
from idempotent_consumer.condition import Path, Placeholders
from idempotent_consumer.rejection import Rejected


def rendered(condition: Condition) -> tuple[str, dict[str, str], dict[str, Any]]:
    placeholders = Placeholders("stock")
    text = placeholders.condition(condition)
    arguments = placeholders.arguments()
    return text, arguments.get("ExpressionAttributeNames", {}), arguments.get("ExpressionAttributeValues", {})


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Attr("free").eq(2), "#n0 = :v0"),
        (Attr("free").ne(2), "#n0 <> :v0"),
        (Attr("free").lt(2), "#n0 < :v0"),
        (Attr("free").lte(2), "#n0 <= :v0"),
        (Attr("free").gt(2), "#n0 > :v0"),
        (Attr("free").gte(2), "#n0 >= :v0"),
        (Attr("free").contains(2), "contains(#n0, :v0)"),
        (Attr("free").size().gte(2), "size(#n0) >= :v0"),
        (Attr("free").is_in([2]), "(#n0 IN (:v0))"),
    ],
)
def test_a_comparison_with_a_value(condition: Condition, text: str) -> None:
    assert rendered(condition) == (text, {"#n0": "free"}, {":v0": {"N": "2"}})


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Attr("status").exists(), "attribute_exists(#n0)"),
        (Attr("status").not_exists(), "attribute_not_exists(#n0)"),
        (~Attr("status").exists(), "(NOT attribute_exists(#n0))"),
    ],
)
def test_what_needs_no_value_brings_none(condition: Condition, text: str) -> None:
    placeholders = Placeholders("stock")
    assert placeholders.condition(condition) == text
    assert placeholders.arguments() == {"ExpressionAttributeNames": {"#n0": "status"}}


@pytest.mark.parametrize(
    ("condition", "text", "names", "values"),
    [
        (
            Attr("free").between(1, Decimal("2.50")),
            "(#n0 BETWEEN :v0 AND :v1)",
            {"#n0": "free"},
            {":v0": {"N": "1"}, ":v1": {"N": "2.50"}},
        ),
        (
            Attr("kind").is_in(["a", "b", "c"]),
            "(#n0 IN (:v0, :v1, :v2))",
            {"#n0": "kind"},
            {":v0": {"S": "a"}, ":v1": {"S": "b"}, ":v2": {"S": "c"}},
        ),
        (Attr("name").begins_with("Ü"), "begins_with(#n0, :v0)", {"#n0": "name"}, {":v0": {"S": "Ü"}}),
        (Attr("reserved").lte(Attr("free")), "#n0 <= #n1", {"#n0": "reserved", "#n1": "free"}, {}),
        (
            Attr("lines").size().eq(Attr("tags").size()),
            "size(#n0) = size(#n1)",
            {"#n0": "lines", "#n1": "tags"},
            {},
        ),
        (
            Attr("address.city").eq("Wien"),
            "#n0.#n1 = :v0",
            {"#n0": "address", "#n1": "city"},
            {":v0": {"S": "Wien"}},
        ),
        (
            Attr("lines[0].sku[12][3]").eq("A"),
            "#n0[0].#n1[12][3] = :v0",
            {"#n0": "lines", "#n1": "sku"},
            {":v0": {"S": "A"}},
        ),
        (
            Attr("a").eq(0) & Attr("b").eq("") | ~Attr("a").eq(None),
            "((#n0 = :v0 AND #n1 = :v1) OR (NOT #n0 = :v2))",
            {"#n0": "a", "#n1": "b"},
            {":v0": {"N": "0"}, ":v1": {"S": ""}, ":v2": {"NULL": True}},
        ),
        (
            Attr("a").eq(1) & (Attr("b").eq(2) | Attr("c").eq(3)),
            "(#n0 = :v0 AND (#n1 = :v1 OR #n2 = :v2))",
            {"#n0": "a", "#n1": "b", "#n2": "c"},
            {":v0": {"N": "1"}, ":v1": {"N": "2"}, ":v2": {"N": "3"}},
        ),
        (
            Attr("tags").contains({"x": [True]}),
            "contains(#n0, :v0)",
            {"#n0": "tags"},
            {":v0": {"M": {"x": {"L": [{"BOOL": True}]}}}},
        ),
    ],
)
def test_conditions_are_composed(
    condition: Condition, text: str, names: dict[str, str], values: dict[str, Any]
) -> None:
    assert rendered(condition) == (text, names, values)


def test_a_condition_can_be_used_again() -> None:
    condition = Attr("free").gte(2)
    assert rendered(condition & condition) == (
        "(#n0 >= :v0 AND #n0 >= :v1)",
        {"#n0": "free"},
        {":v0": {"N": "2"}, ":v1": {"N": "2"}},
    )
    assert rendered(condition) == ("#n0 >= :v0", {"#n0": "free"}, {":v0": {"N": "2"}})


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "[0]", "a[", "a[x]", "a[0]b", "a[-1]", 7, None])
def test_what_is_no_path_is_refused_without_quoting_it(text: Any) -> None:
    with pytest.raises(InvalidPlan, match=r"path such as 'free' or 'lines\[0\].sku'|a path is a text"):
        Attr(text)


def test_a_path_knows_the_attribute_that_it_leads_through() -> None:
    assert (Path("lines[0].sku").attribute, Path("lines[0].sku").is_nested) == ("lines", True)
    assert (Path("lines[0]").attribute, Path("lines[0]").is_nested) == ("lines", True)
    assert (Path("free stock-1").attribute, Path("free stock-1").is_nested) == ("free stock-1", False)


def test_python_s_own_and_or_not_are_refused() -> None:
    one, other = Attr("a").eq(1), Attr("b").eq(2)
    combinations: list[Callable[[], object]] = [
        lambda: one and other,
        lambda: one or other,
        lambda: not one,
        lambda: 1 if one else 2,
    ]
    for combine in combinations:
        with pytest.raises(InvalidPlan, match=r"combined by & \| ~"):
            combine()


@pytest.mark.parametrize("other", [True, None, "x", Attr("b")])
def test_a_condition_is_combined_with_conditions_alone(other: Any) -> None:
    with pytest.raises(InvalidPlan, match="another condition"):
        Attr("a").eq(1) & other
    with pytest.raises(InvalidPlan, match="another condition"):
        Attr("a").eq(1) | other


def test_a_comparison_without_its_parentheses_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="in parentheses"):
        Attr("a").eq(Attr("b").eq(1))


@pytest.mark.parametrize("values", [[], "text", list(range(101))])
def test_is_in_takes_one_to_a_hundred_values(values: Any) -> None:
    with pytest.raises(InvalidPlan, match="1 to 100"):
        Attr("a").is_in(values)
    assert rendered(Attr("a").is_in(range(100)))[0].count(":v") == 100


@pytest.mark.parametrize(
    ("value", "reason"), [(0.1, "value-type"), (10**38 + 1, "number-out-of-range"), ({"a"}, "value-type")]
)
def test_a_value_that_dynamodb_cannot_hold_is_rejected_with_its_table(value: Any, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        rendered(Attr("a").eq(value))
    assert caught.value.reason == reason
    assert caught.value.detail.startswith("stock: a value of its condition")
