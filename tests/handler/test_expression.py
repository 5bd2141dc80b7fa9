"""JMESPath expressions see exact decimals, and fail in one way only."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import jmespath
import pytest

from idempotent_consumer.expression import Expression
from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.rejection import Rejected

ORDER = """
{
  "id": "o-1", "total": 19.99, "count": 7, "text": "7.5", "paid": true, "zero": 0.0, "gift": null,
  "rates": [0.1, 0.2, 1],
  "lines": [{"sku": "b", "price": 2.5}, {"sku": "a", "price": 1}, {"sku": "c", "price": 2.25}],
  "large": 12345678901234567890123456789012345678.5
}
"""


def searched(text: str) -> Any:
    return Expression(text).search(loads(ORDER))


def exactly(value: Any) -> str:
    """Tells 1 from 1.0 from true, and 19.99 from a float."""
    if isinstance(value, list):
        return "[" + ", ".join(exactly(inner) for inner in value) + "]"
    return f"{type(value).__name__} {value}"


@pytest.mark.case("C36", "C37")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("total", "Decimal 19.99"),
        ("count", "int 7"),
        ("sum(rates)", "Decimal 1.3"),
        ("sum([total, `0.01`])", "Decimal 20.00"),
        ("sum(`[]`)", "int 0"),
        ("avg(rates[:2])", "Decimal 0.15"),
        ("avg([count, `8`])", "Decimal 7.5"),
        ("avg(`[]`)", "NoneType None"),
        ("max(rates)", "int 1"),
        ("min(rates)", "Decimal 0.1"),
        ("max_by(lines, &price).sku", "str b"),
        ("min_by(lines, &price).sku", "str a"),
        ("sort_by(lines, &price)[].sku", "[str a, str c, str b]"),
        ("sort(rates)", "[Decimal 0.1, Decimal 0.2, int 1]"),
        ("reverse(rates)", "[int 1, Decimal 0.2, Decimal 0.1]"),
        ("abs(`-19.99`)", "Decimal 19.99"),
        ("ceil(total)", "int 20"),
        ("floor(total)", "int 19"),
        ("to_string(total)", "str 19.99"),
        ("to_string(`0.0000001`)", "str 0.0000001"),
        ("to_string(text)", "str 7.5"),
        ("to_string(lines[0])", 'str {"sku":"b","price":2.5}'),
        ("to_string(gift)", "str null"),
        ("map(&to_string(@), rates)", "[str 0.1, str 0.2, str 1]"),
        ("to_number(text)", "Decimal 7.5"),
        ("to_number('7')", "int 7"),
        ("to_number('1e3')", "Decimal 1E+3"),
        ("to_number('')", "NoneType None"),
        ("to_number('true')", "NoneType None"),
        ("to_number('[1]')", "NoneType None"),
        ("to_number(total)", "Decimal 19.99"),
        ("to_number(count)", "int 7"),
        ("to_number('x')", "NoneType None"),
        ("to_number('NaN')", "NoneType None"),
        ("to_number('Infinity')", "NoneType None"),
        ("to_number(paid)", "NoneType None"),
        ("to_number(rates)", "NoneType None"),
        ("to_number(gift)", "NoneType None"),
        ("type(total)", "str number"),
        ("type(count)", "str number"),
        ("type(paid)", "str boolean"),
        ("type(gift)", "str null"),
        ("type(id)", "str string"),
        ("type(`1.5`)", "str number"),
        ("contains(rates, `0.1`)", "bool True"),
        ("not_null(gift, total)", "Decimal 19.99"),
        ("to_array(total)", "[Decimal 19.99]"),
        ("merge(lines[0], {price: `3.5`}).price", "Decimal 3.5"),
        ("join('/', [id, to_string(total)])", "str o-1/19.99"),
    ],
)
def test_functions_take_and_give_exact_numbers(text: str, result: str) -> None:
    assert exactly(searched(text)) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("total == `19.99`", True),
        ("total != `19.990`", False),
        ("total > `19.98`", True),
        ("total <= `19`", False),
        ("count == `7.0`", True),
        ("zero == `0`", True),
        ("lines[?price > `2.3`].sku", ["b"]),
        ("rates[?@ >= `0.2`]", [Decimal("0.2"), 1]),
        ("count < paid", None),
        ("zero && id", "o-1"),
        ("gift || id", "o-1"),
    ],
)
def test_numbers_compare_by_value_and_zero_counts_as_a_value(text: str, result: object) -> None:
    assert searched(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("`0.1`", Decimal("0.1")),
        ("`1.50`", Decimal("1.5")),
        ("`1`", 1),
        ('`[1.5, {"rate": 2.25}]`', [Decimal("1.5"), {"rate": Decimal("2.25")}]),
        ("{rate: `0.19`, id: id}", {"rate": Decimal("0.19"), "id": "o-1"}),
        ("[`0.1`, total]", [Decimal("0.1"), Decimal("19.99")]),
        ("'0.1'", "0.1"),
        ("rates[::2]", [Decimal("0.1"), 1]),
    ],
)
def test_a_literal_is_as_exact_as_the_data(text: str, result: object) -> None:
    found = searched(text)

    assert found == result
    assert dumps(found) == dumps(result)


def test_the_same_text_can_be_compiled_more_than_once() -> None:
    """A team may well use one expression for the item and for the message."""
    for _ in range(3):
        assert Expression("{vat: `0.175`}").search({}) == {"vat": Decimal("0.175")}


@pytest.mark.parametrize("text", ["missing", "total.missing", "total[0]", "id[0]", "lines[9]", "gift", "lines.sku"])
def test_what_selects_nothing_gives_none(text: str) -> None:
    assert searched(text) is None


@pytest.mark.parametrize("data", [{"id": 1}, [1], "text", None, Decimal("1.50")])
def test_the_whole_event_is_handed_on_as_it_is(data: object) -> None:
    assert Expression("@").search(data) is data


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("total < text", "total < text: TypeError"),
        ("lines[?sku > `1`]", "lines[?sku > `1`]: TypeError"),
        ("sum(text)", "sum(text): JMESPathTypeError"),
        ("sum([total, text])", "sum([total, text]): JMESPathTypeError"),
        ("avg(lines)", "avg(lines): JMESPathTypeError"),
        ("max([total, text])", "max([total, text]): JMESPathTypeError"),
        ("sort_by(lines, &missing)", "sort_by(lines, &missing): JMESPathTypeError"),
        ("length(total)", "length(total): JMESPathTypeError"),
        ("join('/', rates)", "join('/', rates): JMESPathTypeError"),
        ("keys(id)", "keys(id): JMESPathTypeError"),
        ("unknown(id)", "unknown(id): UnknownFunctionError"),
        ("abs(total, count)", "abs(total, count): ArityError"),
    ],
)
def test_a_value_that_a_function_does_not_take_rejects_the_event(text: str, detail: str) -> None:
    with pytest.raises(Rejected) as caught:
        searched(text)

    assert (caught.value.reason, caught.value.detail) == ("expression-failed", detail)


@pytest.mark.case("C76")
def test_the_detail_of_a_failure_names_the_expression_and_never_the_data() -> None:
    with pytest.raises(Rejected) as caught:
        Expression("sum(card)").search({"card": "marker-4111"})

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "marker" not in f"{caught.value} {caught.value.reason} {caught.value.detail}"


@pytest.mark.case("C37", "C40")
@pytest.mark.parametrize(
    "text",
    [
        "avg(`[1, 1, 2]`)",
        "sum([large, `0.01`])",
        "abs(large)",
        "sum([`1e30`, `0.000000001`])",
    ],
)
def test_arithmetic_that_would_have_to_round_rejects_the_event(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        searched(text)

    assert caught.value.reason == "number-out-of-range"
    assert caught.value.detail == f"{text}: a result has more than 38 digits"


def test_arithmetic_may_use_all_of_38_digits() -> None:
    data = loads('{"n": [99999999999999999999999999999999999.998, 0.001]}')

    assert str(Expression("sum(n)").search(data)) == "99999999999999999999999999999999999.999"


def test_arithmetic_leaves_the_caller_s_decimal_context_alone() -> None:
    searched("sum(rates)")

    assert Decimal(1) / Decimal(3) == Decimal("0.3333333333333333333333333333")


@pytest.mark.parametrize("text", ["to_number(n)", "to_string(to_number(n))", "ceil(to_number(n))"])
@pytest.mark.parametrize("number", ["1e401", "-1e401", "1e-401", "7" * 401, "7" * 5_000])
def test_a_text_cannot_smuggle_in_a_number_that_unfolds_to_gigabytes(text: str, number: str) -> None:
    """Small enough for a test; 1e999999999 would fill the memory if it came through."""
    with pytest.raises(Rejected) as caught:
        Expression(text).search({"n": number})

    assert caught.value.reason == "number-out-of-range"


@pytest.mark.parametrize("text", ["", "a[", "-a", "a.", "foo(", "a b", "[?", "'a"])
def test_what_is_no_expression_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a JMESPath expression: "):
        Expression(text)


@pytest.mark.parametrize("text", ["`1e400`", "`-1e400`", "[`NaN`]", "{a: `[Infinity]`}"])
def test_a_literal_that_no_decimal_can_hold_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a JMESPath expression: "):
        Expression(text)


def test_reading_an_expression_leaves_the_compiled_ones_of_others_alone() -> None:
    text = "[`0.375`]"
    Expression(text)

    assert type(jmespath.compile(text).search({})[0]) is float


def test_an_expression_shows_its_text() -> None:
    expression = Expression("order.id")

    assert expression.text == "order.id"
    assert repr(expression) == "Expression('order.id')"
