"""Python values to DynamoDB attribute values, checked against DynamoDB's limits before any call.

Limits and size rules: Amazon DynamoDB Developer Guide, "Constraints", "Item sizes and formats", "Supported data types".
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from idempotent_consumer.rejection import Rejected

MAX_ITEM_BYTES = 400 * 1024
MAX_HASH_KEY_BYTES = 2048
MAX_RANGE_KEY_BYTES = 1024
MAX_NESTING = 32
# A key of half a megabyte must not be copied for each value below it; a reason shows no more in any case.
_MAX_PATH = 1_000
MAX_NUMBER_DIGITS = 38
MAX_NUMBER_EXPONENT = 125
MIN_NUMBER_EXPONENT = -130

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]


def to_item(values: Mapping[str, Any]) -> Item:
    """Serialise `values` as one item.

    Raises Rejected: `number-out-of-range`, `nested-too-deep`, `attribute-name`, `value-type`, naming the attribute.
    """
    return {name: to_attribute_value(value, name) for name, value in _named(values, "")}


def to_attribute_value(value: Any, path: str, depth: int = 1) -> AttributeValue:
    """One value at `path` (its name for messages); sets, bytes and floats are no JSON and are refused."""
    if isinstance(value, str):
        return {"S": value if type(value) is str else _exact(value)}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | Decimal):
        return {"N": number_text(value, path)}
    if depth >= MAX_NESTING:
        raise Rejected("nested-too-deep", f"{path}: DynamoDB takes {MAX_NESTING} levels")
    path = path[:_MAX_PATH]
    if isinstance(value, Mapping):
        return {"M": {k: to_attribute_value(v, f"{path}.{k}", depth + 1) for k, v in _named(value, path)}}
    if isinstance(value, list | tuple):
        return {"L": [to_attribute_value(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]}
    hint = ": use Decimal, from text" if isinstance(value, float) else ""
    raise Rejected("value-type", f"{path}: {type(value).__name__} is not a JSON type{hint}")


def item_bytes(item: Item) -> int:
    """The size that DynamoDB counts; for a number a byte for two digits, one for the exponent, one for a minus."""
    size = 0
    for name, value in item.items():
        size += _utf8_bytes(name) + _value_bytes(value)
    return size


def check_size(item: Item, what: str) -> int:
    """The item's size in bytes. Raises Rejected `item-too-large` over 400 KB; `what` names the row."""
    size = item_bytes(item)
    if size > MAX_ITEM_BYTES:
        raise Rejected("item-too-large", f"{what} would be {size} bytes, DynamoDB takes {MAX_ITEM_BYTES}")
    return size


def _named(values: Mapping[str, Any], path: str) -> Iterable[tuple[str, Any]]:
    is_plain = True
    for name in values:
        if not isinstance(name, str) or not name:
            raise Rejected("attribute-name", f"{path or 'the item'}: an attribute's name is empty, or no text")
        is_plain = is_plain and type(name) is str
    return values.items() if is_plain else [(_exact(name), value) for name, value in values.items()]


def _exact(text: str) -> str:
    """A plan's own kind of string may say that it is another: what is compared here has to be what is written."""
    return str.__str__(text)


def number_text(value: int | Decimal, path: str) -> str:
    """Raises Rejected `number-out-of-range` for what DynamoDB cannot hold exactly."""
    # Most of them need no look at each digit.
    if isinstance(value, int):
        if type(value) is not int:
            value = int(value)
        if -(10**18) < value < 10**18:
            return str(value)
    else:
        if type(value) is not Decimal:
            value = Decimal(value)
        text = str(value)
        if len(text) <= MAX_NUMBER_DIGITS and text[-1].isdigit() and "E" not in text and "N" not in text:
            return text if value else "0"
    _sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise Rejected("number-out-of-range", f"{path}: not a number")
    significant = "".join(map(str, digits)).strip("0")
    magnitude = exponent + len(digits) - 1
    if significant and (
        len(significant) > MAX_NUMBER_DIGITS or not MIN_NUMBER_EXPONENT <= magnitude <= MAX_NUMBER_EXPONENT
    ):
        raise Rejected(
            "number-out-of-range",
            f"{path}: DynamoDB keeps {MAX_NUMBER_DIGITS} digits between 1e-130 and 1e126",
        )
    return str(value) if significant else "0"


def _value_bytes(value: AttributeValue) -> int:
    for kind, content in value.items():  # one
        if kind == "S":
            return _utf8_bytes(content)
        if kind == "N":
            significant = content.partition("E")[0].replace(".", "").strip("-0")
            return (len(significant) + 1) // 2 + 1 + int(content.startswith("-"))
        if kind == "M":
            return 3 + sum([1 + _utf8_bytes(name) + _value_bytes(inner) for name, inner in content.items()])
        if kind == "L":
            return 3 + sum([1 + _value_bytes(inner) for inner in content])
    return 1


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
