"""Python values become DynamoDB attribute values, and DynamoDB's limits are met before any call."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idempotent_consumer.items import Item, check_size, item_bytes, to_attribute_value, to_item
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected

FEW = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def rejection(values: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        to_item(values)
    return caught.value.reason, caught.value.detail


def test_each_json_type_has_its_attribute_type() -> None:
    values = loads('{"s":"a","empty":"","n":1,"d":19.99,"yes":true,"no":false,"none":null,"l":[1,"a"],"m":{"k":{}}}')

    assert to_item(values) == {
        "s": {"S": "a"},
        "empty": {"S": ""},
        "n": {"N": "1"},
        "d": {"N": "19.99"},
        "yes": {"BOOL": True},
        "no": {"BOOL": False},
        "none": {"NULL": True},
        "l": {"L": [{"N": "1"}, {"S": "a"}]},
        "m": {"M": {"k": {"M": {}}}},
    }


def test_a_tuple_is_a_list() -> None:
    assert to_attribute_value((1, "a"), "x") == {"L": [{"N": "1"}, {"S": "a"}]}


@pytest.mark.case("C36", "C37")
@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("19.99", "19.99"),
        ("30.40", "30.40"),
        ("0.1", "0.1"),
        ("-4.20", "-4.20"),
        ("1e-7", "1E-7"),
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0.00", "0"),
        ("0e5", "0"),
        ("0e-390", "0"),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
        ("-1.2345678901234567890123456789012345678", "-1.2345678901234567890123456789012345678"),
        ("1E+125", "1E+125"),
        ("9.9999999999999999999999999999999999999E+125", "9.9999999999999999999999999999999999999E+125"),
        ("1E-130", "1E-130"),
        ("1" + 125 * "0", "1" + 125 * "0"),
        ("1.000000000000000000000000000000000000000000", "1.000000000000000000000000000000000000000000"),
    ],
)
def test_a_number_within_dynamodb_s_range_is_stored_digit_by_digit(text: str, stored: str) -> None:
    assert to_item({"n": loads(text)}) == {"n": {"N": stored}}


@pytest.mark.case("C40")
@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890123456789",
        "-1.23456789012345678901234567890123456789",
        "0.1000000000000000055511151231257827021181583404541015625",
        "1E+126",
        "-1E+126",
        "1" + 126 * "0",
        "1E-131",
        "12E-132",
        "7" * 400,
    ],
)
def test_a_number_beyond_dynamodb_s_range_is_refused_by_name_and_never_rounded(text: str) -> None:
    assert rejection({"order": {"lines": [1, {"price": loads(text)}]}}) == (
        "number-out-of-range",
        "order.lines[1].price: DynamoDB keeps 38 digits between 1e-130 and 1e126",
    )


@pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")])
def test_a_decimal_that_is_no_number_is_refused(number: Decimal) -> None:
    assert rejection({"total": number}) == ("number-out-of-range", "total: not a number")


@pytest.mark.case("C36")
@pytest.mark.parametrize(
    ("value", "kind"), [(19.99, "float"), ({1}, "set"), (b"a", "bytes"), (object(), "object"), (1j, "complex")]
)
def test_floats_and_other_python_values_are_refused_by_name(value: object, kind: str) -> None:
    reason, detail = rejection({"order": [value]})
    assert reason == "value-type"
    assert detail.startswith(f"order[0]: {kind} is not a JSON type")


def test_an_attribute_needs_a_name() -> None:
    assert rejection({"": 1}) == ("attribute-name", "the item: an attribute's name is empty, or no text")
    assert rejection({"order": {"customer": {"": 1}}}) == (
        "attribute-name",
        "order.customer: an attribute's name is empty, or no text",
    )


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"n":', "}")])
def test_a_value_may_stand_at_level_32_but_not_at_33(left: str, right: str) -> None:
    """What DynamoDB itself accepts: 31 maps or lists around a value, and the attribute is level 1."""
    accepted = to_item({"data": loads(31 * left + '"leaf"' + 31 * right)})
    assert str(accepted).count("'leaf'") == 1

    reason, detail = rejection({"data": loads(32 * left + '"leaf"' + 32 * right)})
    assert reason == "nested-too-deep"
    assert detail.startswith("data")
    assert detail.endswith(": DynamoDB takes 32 levels")


def test_an_empty_list_counts_as_a_level() -> None:
    assert to_item({"data": loads(31 * "[" + 31 * "]")})
    assert rejection({"data": loads(32 * "[" + 32 * "]")})[0] == "nested-too-deep"


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "hello"}, 5),
        ({"S": "Zürich"}, 7),
        ({"S": "日本"}, 6),
        ({"S": "📦"}, 4),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "a"}, {"S": "bc"}]}, 3 + 2 + 3),
        ({"M": {"key": {"S": "value"}}}, 3 + 1 + 3 + 5),
        ({"M": {"ü": {"BOOL": True}, "l": {"L": [{"NULL": True}]}}}, 3 + (1 + 2 + 1) + (1 + 1 + 3 + 2)),
    ],
)
def test_sizes_are_those_of_the_developer_guide(value: dict[str, Any], size: int) -> None:
    assert item_bytes({"n": value}) == len("n") + size
    assert item_bytes({"größe": value}) == len("größe".encode()) + size


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("0", 1),
        ("1", 2),
        ("-1", 3),
        ("12", 2),
        ("123", 3),
        ("1234567", 5),
        ("-1234567", 6),
        ("19.99", 3),
        ("0.1", 2),
        ("0.0012", 2),
        ("100", 2),
        ("1.000", 2),
        ("1E-7", 2),
        ("1E+125", 2),
        ("1.5E-130", 2),
        ("99999999999999999999999999999999999999", 20),
        ("-9.9999999999999999999999999999999999999E+125", 21),
    ],
)
def test_a_number_counts_a_byte_for_two_digits_and_one_more_and_one_for_a_minus(number: str, size: int) -> None:
    assert item_bytes({"": {"N": number}}) == size


def test_many_small_numbers_do_not_make_an_item_too_large() -> None:
    """About 300 KB for DynamoDB, though the body has 500 KB."""
    numbers = [Decimal("1E-7")] * 100_000

    check_size(to_item({"id": "o-1", "numbers": numbers}), "the row")


@pytest.mark.case("C43", "N11")
def test_an_item_of_exactly_400_kb_fits_and_one_byte_more_does_not() -> None:
    fits: Item = {"id": {"S": "o-1"}, "note": {"S": "x" * (409_600 - 2 - 3 - 4)}}
    assert item_bytes(fits) == 409_600
    check_size(fits, "the row")

    with pytest.raises(Rejected) as caught:
        check_size(fits | {"": {"BOOL": True}}, "the row in order_records")
    assert caught.value.reason == "item-too-large"
    assert caught.value.detail == "the row in order_records would be 409601 bytes, DynamoDB takes 409600"


def test_the_limit_is_counted_in_bytes_not_in_characters() -> None:
    check_size({"n": {"S": "ü" * 204_799}}, "the row")
    with pytest.raises(Rejected):
        check_size({"n": {"S": "ü" * 204_800}}, "the row")


NUMBERS = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=10),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=4),
    max_leaves=12,
)


@FEW
@given(st.dictionaries(st.text(min_size=1, max_size=4), VALUES, max_size=4))
def test_an_item_reads_back_as_the_values_it_was_made_of(values: dict[str, Any]) -> None:
    assert {name: plain(value) for name, value in to_item(values).items()} == values


@FEW
@given(st.dictionaries(st.text(min_size=1, max_size=4), VALUES, max_size=4))
def test_an_item_s_size_is_the_sum_of_its_parts_by_the_developer_guide(values: dict[str, Any]) -> None:
    guide, numbers = 0, 0
    for name, value in values.items():
        size, count = guide_size(value)
        guide += len(name.encode()) + size
        numbers += count

    assert guide <= item_bytes(to_item(values)) <= guide + numbers


def plain(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "M":
        return {name: plain(inner) for name, inner in content.items()}
    if kind == "L":
        return [plain(inner) for inner in content]
    if kind == "N":
        return Decimal(content)
    return None if kind == "NULL" else content


def guide_size(value: Any) -> tuple[int, int]:
    """The size by "DynamoDB item sizes and formats", and how many numbers are in it, whose size is approximate."""
    if value is None or isinstance(value, bool):
        return 1, 0
    if isinstance(value, str):
        return len(value.encode()), 0
    if isinstance(value, int | Decimal):
        digits = "".join(map(str, Decimal(value).as_tuple().digits)).strip("0")
        return -(-len(digits) // 2) + 1, 1
    if isinstance(value, dict):
        parts = [(len(name.encode()), *guide_size(inner)) for name, inner in value.items()]
        return 3 + sum(1 + name + size for name, size, _ in parts), sum(count for *_, count in parts)
    sizes = [guide_size(inner) for inner in value]
    return 3 + sum(1 + size for size, _ in sizes), sum(count for _, count in sizes)
