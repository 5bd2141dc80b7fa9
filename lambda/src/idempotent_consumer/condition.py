"""Conditions on rows, and the expressions that DynamoDB takes for them. Pure.

Amazon DynamoDB Developer Guide, "Condition and filter expressions, operators, and functions". Names and values always
travel as placeholders, so that no reserved word has to be known and no value is ever part of an expression's text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from idempotent_consumer.items import AttributeValue, to_attribute_value
from idempotent_consumer.rejection import InvalidPlan

_INDEX = re.compile(r"\[([0-9]+)\]")
_STEP = re.compile(r"(?P<name>[^.\[\]]+)(?P<indexes>(?:\[[0-9]+\])*)")
# Amazon DynamoDB API Reference: IN takes 100 operands.
_MOST_OPERANDS = 100


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row has to be like, made by the methods of `Attr`; combined by `&`, `|` and `~`."""

    parts: tuple["str | Condition | Operand", ...]

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(("(", self, " AND ", _condition(other), ")"))

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(("(", self, " OR ", _condition(other), ")"))

    def __invert__(self) -> "Condition":
        return Condition(("(NOT ", self, ")"))

    def __bool__(self) -> NoReturn:
        raise InvalidPlan("conditions are combined by & | ~, each in parentheses, not by and, or, not")


@dataclass(frozen=True, slots=True)
class Operand:
    """What conditions compare with a value or with another operand."""

    parts: tuple["str | Path | Value", ...]

    def eq(self, other: Any) -> Condition:
        return Condition((self, " = ", _operand(other)))

    def ne(self, other: Any) -> Condition:
        """Also true where the attribute is missing."""
        return Condition((self, " <> ", _operand(other)))

    def lt(self, other: Any) -> Condition:
        return Condition((self, " < ", _operand(other)))

    def lte(self, other: Any) -> Condition:
        return Condition((self, " <= ", _operand(other)))

    def gt(self, other: Any) -> Condition:
        return Condition((self, " > ", _operand(other)))

    def gte(self, other: Any) -> Condition:
        return Condition((self, " >= ", _operand(other)))

    def between(self, low: Any, high: Any) -> Condition:
        """Both bounds included."""
        return Condition(("(", self, " BETWEEN ", _operand(low), " AND ", _operand(high), ")"))

    def is_in(self, values: Sequence[Any]) -> Condition:
        """One of 1 to 100 values."""
        if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= _MOST_OPERANDS:
            raise InvalidPlan(f"is_in takes a list of 1 to {_MOST_OPERANDS} values")
        first, *others = (_operand(value) for value in values)
        listed = [part for other in others for part in (", ", other)]
        return Condition(("(", self, " IN (", first, *listed, "))"))


class Attr(Operand):
    """An attribute of the row: `Attr("free").gte(2)`.

    path: a name, or the way to a nested value: `address.city`, `lines[0].sku`. An attribute that is missing fulfils
    no comparison but `ne`. The other side may be an `Attr` of the same row.
    """

    __slots__ = ()

    def __init__(self, path: str) -> None:
        super().__init__((Path(path),))

    def exists(self) -> Condition:
        return Condition(("attribute_exists(", self, ")"))

    def not_exists(self) -> Condition:
        return Condition(("attribute_not_exists(", self, ")"))

    def begins_with(self, prefix: str) -> Condition:
        return Condition(("begins_with(", self, ", ", _operand(prefix), ")"))

    def contains(self, value: Any) -> Condition:
        """A text that contains a text, or a list one of whose elements is the value."""
        return Condition(("contains(", self, ", ", _operand(value), ")"))

    def size(self) -> Operand:
        """The number of characters of a text, or of elements of a list or map."""
        return Operand(("size(", *self.parts, ")"))


class Path:
    """A checked document path. Raises InvalidPlan."""

    __slots__ = ("flat", "steps", "text")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidPlan(f"a path is a text such as 'free' or 'lines[0].sku', not {type(text).__name__}")
        matches = [_STEP.fullmatch(step) for step in text.split(".")]
        self.text = text
        self.steps = [(match["name"], match["indexes"]) for match in matches if match]
        if len(self.steps) < len(matches):
            raise InvalidPlan("a name is no path such as 'free' or 'lines[0].sku'")
        self.flat = [part for name, indexes in self.steps for part in (name, *_INDEX.findall(indexes))]

    @property
    def attribute(self) -> str:
        """The row's own attribute that it leads through."""
        return self.steps[0][0]

    @property
    def is_nested(self) -> bool:
        return len(self.steps) > 1 or bool(self.steps[0][1])

    def overlaps(self, other: "Path") -> bool:
        """Whether one is the way to the other, or both are the same."""
        return all(mine == theirs for mine, theirs in zip(self.flat, other.flat, strict=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


@dataclass(frozen=True, slots=True)
class Value:
    """A plain Python value inside an expression."""

    value: Any


class Placeholders:
    """Collects the names and values of one action's expressions. table: for messages."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._names: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}

    def path(self, path: Path) -> str:
        return ".".join(self._name(name) + indexes for name, indexes in path.steps)

    def value(self, value: Any, what: str) -> str:
        """Raises Rejected as `to_attribute_value` does; what: the attribute that it is for."""
        if isinstance(value, Operand | Condition):
            raise InvalidPlan(f"a value written to {self._table} is an Attr, which only conditions take")
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = to_attribute_value(value, f"{self._table}: {what}")
        return placeholder

    def condition(self, condition: Condition) -> str:
        return "".join(self._part(part) for part in condition.parts)

    def arguments(self) -> dict[str, Any]:
        """What an action takes beside its expressions; DynamoDB refuses empty maps."""
        arguments: dict[str, Any] = {}
        if self._names:
            arguments["ExpressionAttributeNames"] = {placeholder: name for name, placeholder in self._names.items()}
        if self._values:
            arguments["ExpressionAttributeValues"] = self._values
        return arguments

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def _part(self, part: Any) -> str:
        if isinstance(part, Condition | Operand):
            return "".join(self._part(inner) for inner in part.parts)
        if isinstance(part, Path):
            return self.path(part)
        if isinstance(part, Value):
            return self.value(part.value, "a value of its condition")
        return str(part)


def _condition(other: Any) -> Condition:
    if not isinstance(other, Condition):
        raise InvalidPlan(f"a condition is combined with another condition, not with {type(other).__name__}")
    return other


def _operand(value: Any) -> Operand:
    if isinstance(value, Condition):
        raise InvalidPlan("a condition is no value: put each comparison in parentheses before & | ~")
    return value if isinstance(value, Operand) else Operand((Value(value),))
