"""JSON is read and written without losing anything, and the same content has one canonical form."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idempotent_consumer.json_text import canonical, dumps, loads
from idempotent_consumer.rejection import Rejected

# The same examples in every run.
FEW = settings(max_examples=80, deadline=None, derandomize=True, database=None)

NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    # Up to 399 digits and a minus before the point: with more, what is written is too long to be read.
    st.decimals(allow_nan=False, allow_infinity=False).filter(lambda number: -400 <= number.adjusted() <= 398),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def rejection(text: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as caught:
        loads(text)
    return caught.value.reason, caught.value.detail


@pytest.mark.case("C36", "C37")
@pytest.mark.parametrize("text", ["19.99", "30.40", "0.1", "0.10", "-19.99", "4.20", "12345678.90"])
def test_a_decimal_is_read_and_written_digit_by_digit(text: str) -> None:
    number = loads(text)

    assert type(number) is Decimal
    assert str(number) == text
    assert dumps(number) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1e0", "1"),
        ("1e3", "1000"),
        ("1.50E+2", "150"),
        ("1e-7", "0.0000001"),
        ("-2.5e-3", "-0.0025"),
        ("0.0", "0"),
        ("-0.0", "0"),
        ("0.00", "0"),
        ("0e5", "0"),
        ("0e-390", "0"),
        ("1E+125", "1" + 125 * "0"),
        ("1E-130", "0." + 129 * "0" + "1"),
    ],
)
@pytest.mark.case("C37", "C41")
def test_a_number_is_written_without_an_exponent(text: str, written: str) -> None:
    assert dumps(loads(text)) == written


@pytest.mark.parametrize("text", ["0", "1", "-1", "9007199254740993", "12345678901234567890123456789012345678901"])
def test_an_integer_of_any_length_stays_an_integer(text: str) -> None:
    number = loads(text)

    assert type(number) is int
    assert dumps(number) == text


@pytest.mark.case("C40")
def test_reading_keeps_more_digits_than_dynamodb_takes() -> None:
    text = "0.1000000000000000055511151231257827021181583404541015625"

    assert str(loads(text)) == text


@pytest.mark.parametrize("text", ["7" * 400, "-" + "7" * 399])
def test_an_integer_of_400_characters_keeps_its_digits(text: str) -> None:
    assert loads(text) == int(text)
    assert dumps(loads(f"[{text}]")) == f"[{text}]"


@pytest.mark.parametrize("text", ["7" * 401, "-" + "7" * 401, "7" * 4_300, "7" * 4_301, "[0, 1" + "0" * 400 + "]"])
def test_an_integer_of_over_400_digits_is_refused_before_the_interpreter_refuses_it(text: str) -> None:
    assert rejection(text) == ("number-out-of-range", "an integer has over 400 digits")


@pytest.mark.parametrize("text", ["1e400", "9.9e400", "1e-400", "-1e400"])
def test_a_number_up_to_400_powers_of_ten_is_read(text: str) -> None:
    assert loads(text) == Decimal(text)


@pytest.mark.parametrize(
    "text", ["1e401", "1e-401", "-1e401", "1e999999999", "1e-999999999", "1e999999999999999999999", "[0, 1e401]"]
)
def test_an_exponent_that_would_unfold_to_a_huge_text_is_refused(text: str) -> None:
    assert rejection(text) == ("number-out-of-range", "a number is beyond 1e400 or closer to zero than 1e-400")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "Expecting value at character 0"),
        ("   ", "Expecting value at character 3"),
        ("hello", "Expecting value at character 0"),
        ('{"id": }', "Expecting value at character 7"),
        ('{"id":1} {}', "Extra data at character 9"),
        ("{'id':1}", "Expecting property name enclosed in double quotes at character 1"),
        ('{"id" 1}', "Expecting ':' delimiter at character 6"),
        ('"a\nb"', "Invalid control character at at character 2"),
        ("01", "Extra data at character 1"),
        (".5", "Expecting value at character 0"),
        ("+1", "Expecting value at character 0"),
    ],
)
def test_what_is_no_json_is_refused_with_its_position(text: str, detail: str) -> None:
    assert rejection(text) == ("bad-json", detail)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_refused(name: str) -> None:
    assert rejection(f'{{"total": {name}}}') == ("bad-json", f"{name} is not JSON")


@pytest.mark.parametrize(
    "text",
    [
        '{"id":"a","id":"b"}',
        '{"id":"a","id":"a"}',
        '{"order":{"id":1,"sku":2,"id":3}}',
        '[{"a":1},{"a":1,"a":2}]',
        '{"a":1,"\\u0061":2}',
    ],
)
def test_a_key_that_stands_twice_in_an_object_is_refused(text: str) -> None:
    assert rejection(text) == ("duplicate-json-key", "an object names the same key twice")


def test_the_same_key_in_different_objects_is_fine() -> None:
    assert loads('{"a":{"a":1},"b":[{"a":2},{"a":3}]}') == {"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}


@pytest.mark.parametrize(
    "text",
    [
        r'"\ud83d"',
        r'"\uDE00"',
        r'{"note":"a\ud83dz"}',
        r'{"\udc00":1}',
        r'["\ude00\ud83d"]',
        '"\ud83d"',
        '{"note":"\udfff"}',
    ],
)
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    assert rejection(text) == ("bad-unicode", "a string holds half of a surrogate pair")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\uD83D\uDCE6 x"', "\U0001f4e6 x"),
        ('"\U0001f600"', "\U0001f600"),
        (r'"\\ud83d"', "\\ud83d"),
        (r'{"\ud83d\udce6":19.99}', {"\U0001f4e6": Decimal("19.99")}),
    ],
)
def test_a_whole_surrogate_pair_is_one_character(text: str, value: object) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_a_hundred_thousand_brackets_end_in_a_recursion_error_not_in_a_crash(left: str, right: str) -> None:
    with pytest.raises(RecursionError):
        loads(100_000 * left + "1" + 100_000 * right)


def test_nesting_within_reason_is_read_and_written() -> None:
    text = 300 * '{"a":[' + "1.50" + 300 * "]}"

    assert dumps(loads(text)) == text


@pytest.mark.case("N11")
def test_a_body_of_a_megabyte_is_read_and_written() -> None:
    lines = ",".join(f'{{"sku":"lamp-{number:06}","price":{number}.90}}' for number in range(26_500))
    text = f'{{"id":"o-1","lines":[{lines}]}}'
    assert 1_000_000 < len(text) < 1_048_576

    assert dumps(loads(text)) == text


def test_writing_is_compact_keeps_key_order_and_leaves_text_readable() -> None:
    assert dumps({"b": 1, "a": [True, None, "Zürich"]}) == '{"b":1,"a":[true,null,"Zürich"]}'


def test_a_string_that_looks_like_a_number_keeps_its_quotes() -> None:
    assert dumps({"a": "19.99", "b": Decimal("19.99")}) == '{"a":"19.99","b":19.99}'


def test_characters_that_no_message_may_hold_are_written_as_escapes() -> None:
    text = dumps({"\ufffe": "a\uffff", "b": "\x00\x1f"})

    assert text == '{"\\ufffe":"a\\uffff","b":"\\u0000\\u001f"}'
    assert loads(text) == {"\ufffe": "a\uffff", "b": "\x00\x1f"}


@pytest.mark.parametrize(("value", "kind"), [({1, 2}, "set"), (b"a", "bytes"), (object(), "object")])
def test_what_is_no_json_type_is_not_written(value: object, kind: str) -> None:
    for write in (dumps, canonical):
        with pytest.raises(TypeError, match=f"^{kind} is not a JSON type$"):
            write([value])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_nan_and_infinity_are_never_written(value: float | Decimal) -> None:
    for write in (dumps, canonical):
        with pytest.raises(ValueError, match="JSON"):
            write([value])


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"b":1,"a":2}', b'{"a":2,"b":1}'),
        ("19.99", b'"\\ud8001999e-2"'),
        ("-0.50", b'"\\ud800-5e-1"'),
        ("1500", b"1500"),
        ("1.5e3", b"1500"),
        ("-0.0", b"0"),
        ('"Z\u00fcrich"', b'"Z\\u00fcrich"'),
        ("[true,false,null]", b"[true,false,null]"),
    ],
)
def test_the_canonical_form_never_changes_because_fingerprints_are_stored(text: str, form: bytes) -> None:
    assert canonical(loads(text)) == form


@pytest.mark.case("C47")
@pytest.mark.parametrize(
    "spellings",
    [
        ["1", "1.0", "1e0", "1.00", "10e-1", "0.1e1", "1E+0"],
        ["0", "-0", "0.0", "-0.0", "0e5", "0.000"],
        ["-12.5", "-12.50", "-125e-1", "-1.25e1"],
        ["0.0000001", "1e-7", "10e-8"],
        ["1e125", "1" + 125 * "0", "10.0e124"],
        ["1e399", "1" + 399 * "0", "10e398"],
        ["1e400", "10e399", "0.1e401"],
        ["-3e2", "-300", "-300.000"],
    ],
)
def test_one_number_has_one_canonical_form_however_it_is_spelt(spellings: list[str]) -> None:
    assert len({canonical(loads(spelling)) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "values",
    [
        ["1", '"1"', "true", "[1]", '{"1":1}', "10", "0.1", "-1", "null", '"true"'],
        ["19.99", '"19.99"', "19.990000000000000000000000000000000000001", "1999", '"1999e-2"'],
        ["0", '""', "false", "[]", "{}", "null"],
        ["1e400", "1e399", "1e-400"],
        ["7" * 400, "7" * 399 + "8", "7" * 399],
    ],
)
@pytest.mark.case("C47")
def test_different_values_have_different_canonical_forms(values: list[str]) -> None:
    assert len({canonical(loads(value)) for value in values}) == len(values)


@pytest.mark.case("C47")
def test_the_canonical_form_is_blind_to_key_order_and_white_space_but_not_to_list_order() -> None:
    same = canonical(loads('{"id":"o-1","lines":[{"sku":"a","n":1},2]}'))

    assert canonical(loads('{ "lines" : [ {"n": 1.0, "sku": "a"}, 2 ],\n "id": "o-1" }')) == same
    assert canonical(loads('{"id":"o-1","lines":[2,{"sku":"a","n":1}]}')) != same


@FEW
@given(VALUES)
def test_reading_what_was_written_gives_the_same_value_to_the_last_digit(value: Any) -> None:
    text = dumps(value)

    assert canonical(loads(text)) == canonical(value)
    assert dumps(loads(text)) == text
    assert json.loads(text, parse_float=Decimal) == value


@FEW
@given(VALUES, st.randoms(use_true_random=False))
def test_the_canonical_form_survives_any_order_of_keys_and_any_spelling(value: Any, chance: random.Random) -> None:
    assert canonical(loads(respelt(value, chance))) == canonical(value)


@FEW
@given(NUMBERS, NUMBERS)
def test_two_numbers_share_a_canonical_form_only_if_they_are_equal(one: int | Decimal, other: int | Decimal) -> None:
    assert (canonical(one) == canonical(other)) == (one == other)


def respelt(value: Any, chance: random.Random) -> str:
    """JSON of the same content: keys shuffled, spaces added, numbers and characters written in another way."""
    space = chance.choice(["", " ", "\n"])
    if isinstance(value, dict):
        pairs = [f"{respelt(key, chance)}{space}:{space}{respelt(inner, chance)}" for key, inner in value.items()]
        chance.shuffle(pairs)
        return "{" + f",{space}".join(pairs) + space + "}"
    if isinstance(value, list):
        return "[" + space + f",{space}".join(respelt(inner, chance) for inner in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=chance.choice([True, False]))
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    _sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    coefficient = ("-" if value < 0 else "") + "".join(map(str, digits))
    spellings = f"{coefficient}e{exponent}", f"{coefficient}.00E{exponent:+}", f"{coefficient}0e{exponent - 1}"
    return chance.choice(spellings)
