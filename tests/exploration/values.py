"""DynamoDB's typed values: how they compare, how numbers are stored and added. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Any

Value = dict[str, Any]
Item = dict[str, Value]

# Wide enough for the exact sum of any two numbers that DynamoDB takes.
_EXACT = Context(prec=400)
_MOST_DIGITS = 38
_ORDERED = ("S", "N", "B")
_SETS = ("SS", "NS", "BS")


class Invalid(Exception):
    """DynamoDB would not take the request, for what is in it or in the row; the text says why."""


class Malformed(Invalid):
    """No values and no row could make the request valid."""


class WrongKey(Invalid):
    """A key attribute, of the table or of its index, has another type. A transaction gives that as a reason."""


def is_equal(one: Value | None, other: Value | None) -> bool:
    """Numbers are equal by value, sets in any order; nothing is equal to what is missing."""
    if one is None or other is None:
        return False
    if one == other:
        return True
    ((kind, content),) = one.items()
    if kind not in other:
        return False
    against = other[kind]
    if kind == "N":
        return Decimal(content) == Decimal(against)
    if kind == "L":
        return len(content) == len(against) and all(map(is_equal, content, against))
    if kind == "M":
        return content.keys() == against.keys() and all(is_equal(content[name], against[name]) for name in content)
    if kind == "NS":
        return set(map(Decimal, content)) == set(map(Decimal, against))
    return kind in _SETS and set(content) == set(against)


def order(one: Value | None, other: Value | None) -> int | None:
    """Below 0, 0 or above 0 as the first is smaller, equal or larger; None: they have no order."""
    if one is None or other is None:
        return None
    ((kind, content),) = one.items()
    if kind not in other or kind not in _ORDERED:
        return None
    against = other[kind]
    if kind == "N":
        content, against = Decimal(content), Decimal(against)
    # Python compares texts by code point, which is the order of their UTF-8 bytes too.
    return int(content > against) - int(content < against)


def contains(whole: Value | None, part: Value | None) -> bool:
    if whole is None or part is None:
        return False
    ((kind, content),) = whole.items()
    if kind in ("S", "B"):
        return kind in part and part[kind] in content
    if kind == "L":
        return any(is_equal(element, part) for element in content)
    return kind in _SETS and any(is_equal({kind[0]: element}, part) for element in content)


def begins_with(whole: Value | None, prefix: Value | None) -> bool:
    if whole is None or prefix is None:
        return False
    return any(kind in whole and kind in prefix and whole[kind].startswith(prefix[kind]) for kind in ("S", "B"))


def size(value: Value | None) -> Value | None:
    if value is None:
        return None
    ((kind, content),) = value.items()
    return {"N": str(len(content))} if kind not in ("N", "BOOL", "NULL") else None


def stored(item: Item) -> Item:
    """The item as a table keeps it: its numbers are written in one way. The same object where they are already."""
    changed = {}
    for name, value in item.items():
        if "S" not in value:
            kept = stored_value(value)
            if kept is not value:
                changed[name] = kept
    return {**item, **changed} if changed else item


def stored_value(value: Value) -> Value:
    ((kind, content),) = value.items()
    kept: Any = content
    if kind == "N":
        kept = number_text(content)
    elif kind == "L":
        kept = [stored_value(element) for element in content]
    elif kind == "M":
        kept = {name: stored_value(inner) for name, inner in content.items()}
    elif kind in _SETS:
        if not content:
            raise Invalid("One or more parameter values were invalid: An set may not be empty")
        kept = [number_text(number) for number in content] if kind == "NS" else content
    return value if kept == content else {kind: kept}


def number_text(text: str) -> str:
    """The one text of a number. Raises Invalid for what DynamoDB cannot hold."""
    if text.isdigit() and text.isascii() and len(text) <= _MOST_DIGITS and (text[0] != "0" or text == "0"):
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise Invalid(f"The parameter cannot be converted to a numeric value: {text}") from None
    return _text(number)


def add(one: Value, other: Value) -> Value:
    return {"N": _text(_EXACT.add(Decimal(one["N"]), Decimal(other["N"])))}


def subtract(one: Value, other: Value) -> Value:
    return {"N": _text(_EXACT.subtract(Decimal(one["N"]), Decimal(other["N"])))}


def combine_sets(kind: str, one: Value, other: Value, keep: Callable[[bool], bool]) -> list[str]:
    """The elements of the first for which `keep(is in the other)`."""
    elements = set(other[kind])
    return [element for element in one[kind] if keep(element in elements)]


def check_kind(word: str, value: Value, kinds: Mapping[str, Any] | tuple[str, ...]) -> None:
    """Raises Invalid where an operator or function does not take this value."""
    for kind in value:
        if kind not in kinds:
            raise Invalid(f"Incorrect operand type for operator or function; {word}, operand type: {kind}")


def _text(number: Decimal) -> str:
    if not number.is_finite():
        raise Invalid("The parameter cannot be converted to a numeric value")
    if not number:
        return "0"
    number = _EXACT.normalize(number)
    if len(number.as_tuple().digits) > _MOST_DIGITS:
        raise Invalid("Attempting to store more than 38 significant digits in a Number")
    if not -130 <= number.adjusted() <= 125:
        raise Invalid("Number overflow. Attempting to store a number with magnitude outside of the supported range")
    return format(number, "f")
