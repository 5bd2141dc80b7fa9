"""JSON that loses nothing: exact numbers, no duplicate keys, no NaN, no broken Unicode."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from idempotent_consumer.rejection import Rejected

# json.dumps cannot write a Decimal. It is handed over as a string behind a mark instead. In what is canonical the mark
# is a lone surrogate, which no string of an event can hold, since loads() refuses it. What a plan announces may hold
# any string, so there the mark is one that nobody can know.
_MARK = "\ud800"
_SECRET_MARK = _MARK + secrets.token_hex(8)
_MARKED_NUMBER = re.compile(f'"{_SECRET_MARK}([^"]*)"')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

# Wider than any IEEE double; a bound is needed, since "1e999999999" is eleven bytes that unfold to a gigabyte.
_LARGEST_EXPONENT = 400


def loads(text: str, *, takes_last: bool = False) -> Any:
    """Parse JSON; integers become `int`, all other numbers `Decimal`. takes_last: of a key that is named twice.

    Raises Rejected: `bad-json`, `duplicate-json-key`, `bad-unicode`, `number-out-of-range`;
    RecursionError where it is nested too deep for the interpreter.
    """
    try:
        value = (_LAST_DECODER if takes_last else _DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise Rejected("bad-json", f"{error.msg} at character {error.pos}") from None
    if _SURROGATE.search(text):
        _refuse_lone_surrogates(value)
    return value


def dumps(value: Any) -> str:
    """Compact JSON; a Decimal is written digit by digit, without an exponent.

    Raises TypeError, ValueError for what is not JSON, Rejected `number-out-of-range`.
    """
    text = _ENCODER.encode(value)
    if _MARK in text:
        text = _MARKED_NUMBER.sub(r"\1", text)
    # Valid in JSON, refused in SQS and SNS messages.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def canonical(value: Any) -> bytes:
    """The same bytes for the same content, whatever the order of keys or the spelling of numbers (1, 1.0, 1e0)."""
    return _CANONICAL_ENCODER.encode(value).encode("ascii")


def _parse_integer(digits: str) -> int:
    if len(digits) > _LARGEST_EXPONENT:
        raise Rejected("number-out-of-range", f"an integer has over {_LARGEST_EXPONENT} digits")
    return int(digits)


def _parse_decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits
        number = None
    if number is None or abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise Rejected("number-out-of-range", "a number is beyond 1e400 or closer to zero than 1e-400")
    return number


def _refuse_constant(name: str) -> None:
    raise Rejected("bad-json", f"{name} is not JSON")


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Rejected("duplicate-json-key", "an object names the same key twice")
    return result


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Rejected("bad-unicode", "a string holds half of a surrogate pair") from None


def _mark_plain(value: Any) -> str | dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    number = _decimal(value)
    if number and abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise Rejected("number-out-of-range", "a number is beyond 1e400 or closer to zero than 1e-400")
    return _SECRET_MARK + (Decimal.__format__(number, "f") if number else "0")


def _mark_normal(value: Any) -> int | str:
    number = _decimal(value)
    text = str(number)
    if "E" not in text and len(text) <= _LARGEST_EXPONENT:  # most of them, and twice as fast
        whole, _, fraction = text.partition(".")
        fraction = fraction.rstrip("0")
        if not fraction:
            return int(whole)
        return f"{_MARK}{'-' if whole[0] == '-' else ''}{(whole + fraction).lstrip('-0')}e-{len(fraction)}"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).rstrip("0")
    if not significant:
        return 0
    exponent += len(digits) - len(significant)
    if exponent >= 0 and number.adjusted() <= _LARGEST_EXPONENT:
        return int(number)
    return f"{_MARK}{'-' if sign else ''}{significant}e{exponent}"


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        return value
    raise TypeError(f"{type(value).__name__} is not a JSON type")


# Made once: json's own functions make them anew at each call.
_DECODER = json.JSONDecoder(
    parse_float=_parse_decimal,
    parse_int=_parse_integer,
    parse_constant=_refuse_constant,
    object_pairs_hook=_unique_keys,
)
_LAST_DECODER = json.JSONDecoder(parse_float=_parse_decimal, parse_int=_parse_integer, parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_mark_plain, allow_nan=False)
_CANONICAL_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_mark_normal, allow_nan=False)
