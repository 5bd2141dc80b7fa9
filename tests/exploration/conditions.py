"""DynamoDB's condition expressions. Pure.

Amazon DynamoDB Developer Guide, "Condition and filter expressions, operators, and functions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.exploration import values as typed
from tests.exploration.expressions import Parser
from tests.exploration.paths import Operand, Path, Values, find, getter
from tests.exploration.values import Invalid, Item, Malformed, Value

Test = Callable[[Item, Values], bool]

# Amazon DynamoDB API Reference: IN takes 100 operands.
_MOST_OPERANDS = 100
_FUNCTIONS = frozenset({"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"})
_ORDERED = ("S", "N", "B")
_COMPARED: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class ConditionParser(Parser):
    """Reads a condition."""

    def condition(self) -> Test:
        """The whole text as a condition."""
        test = self._any()
        if self.token:
            raise Malformed(f"Syntax error; token: {self.token!r}")
        return test

    def _any(self) -> Test:
        tests = [self._all()]
        while self.take("OR"):
            tests.append(self._all())
        return _joined(tests, any)

    def _all(self) -> Test:
        tests = [self._one()]
        while self.take("AND"):
            tests.append(self._one())
        return _joined(tests, all)

    def _one(self) -> Test:
        if self.take("NOT"):
            inner = self._one()
            return lambda item, values: not inner(item, values)
        if self.word == "(":
            return self._parenthesis()
        if self._tokens[self._at + 1] == "(" and self.token in _FUNCTIONS:
            return self._function()
        return self._comparison()

    def _parenthesis(self) -> Test:
        start = self._at
        self.expect("(")
        test = self._any()
        self.expect(")")
        if self._tokens[start + 1] == "(" and _end(self._tokens, start + 1) == self._at - 2:
            raise Malformed("The expression has redundant parentheses")
        return test

    def _function(self) -> Test:
        name = self.next()
        self.expect("(")
        is_path = self.token[0] != ":"
        if name in ("attribute_exists", "attribute_not_exists"):
            if not is_path:
                raise Malformed(f"Operator or function requires a document path; {name}")
            way = self.path()
            self.expect(")")
            return _exists(way) if name == "attribute_exists" else _not_exists(way)
        start = self._at
        one = self._operand()
        first = self._tokens[start : self._at]
        self.expect(",")
        other_token = self.token
        start = self._at
        other = self._operand()
        self._check_distinct(first, self._tokens[start : self._at])
        self.expect(")")
        if name == "begins_with":
            self._check("begins_with", other_token, ("S", "B"))
            return lambda item, values: typed.begins_with(one(item, values), other(item, values))
        if name == "attribute_type":
            return lambda item, values: (other(item, values) or {}).get("S") in (one(item, values) or {})
        return lambda item, values: typed.contains(one(item, values), other(item, values))

    def _comparison(self) -> Test:
        start = self._at
        one = self._operand()
        first = self._tokens[start : self._at]
        operator = self.take("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN")
        if operator is None:
            raise Malformed(f"Syntax error; token: {self.token!r}, expected: a comparison")
        if operator == "IN":
            return self._in(one)
        start = self._at
        other = self._operand()
        second = self._tokens[start : self._at]
        self._check_distinct(first, second)
        if operator == "=":
            return lambda item, values: typed.is_equal(one(item, values), other(item, values))
        if operator == "<>":
            return lambda item, values: not typed.is_equal(one(item, values), other(item, values))
        for operand in (first, second):
            self._check(operator, operand[0], _ORDERED)
        if operator == "BETWEEN":
            return self._between(one, other, second[0])
        is_so = _COMPARED[operator]

        def test(item: Item, values: Values) -> bool:
            order = typed.order(one(item, values), other(item, values))
            return order is not None and is_so(order)

        return test

    def _between(self, one: Operand, low: Operand, low_token: str) -> Test:
        self.expect("AND")
        high_token = self.token
        high = self._operand()
        self._check("BETWEEN", high_token, _ORDERED)
        if low_token[0] == high_token[0] == ":":
            self.checks.append(lambda values: _check_bounds(values[low_token], values[high_token]))

        def test(item: Item, values: Values) -> bool:
            value = one(item, values)
            from_low, to_high = typed.order(low(item, values), value), typed.order(value, high(item, values))
            return from_low is not None and to_high is not None and from_low <= 0 and to_high <= 0

        return test

    def _in(self, one: Operand) -> Test:
        self.expect("(")
        others = [self._operand()]
        while self.take(","):
            others.append(self._operand())
        self.expect(")")
        if len(others) > _MOST_OPERANDS:
            raise Malformed("Too many operands for IN")

        def test(item: Item, values: Values) -> bool:
            value = one(item, values)
            return any(typed.is_equal(value, other(item, values)) for other in others)

        return test

    def _operand(self) -> Operand:
        if self.token == "size" and self._tokens[self._at + 1] == "(":
            self.next()
            self.expect("(")
            inner = self._operand()
            self.expect(")")
            return lambda item, values: typed.size(inner(item, values))
        return self.value() if self.token.startswith(":") else getter(self.path())

    def _check_distinct(self, one: list[str], other: list[str]) -> None:
        if one == other:
            raise Malformed("The first operand must be distinct from the remaining operands of an operator or function")

    def _check(self, word: str, token: str, kinds: tuple[str, ...]) -> None:
        if token[0] == ":":
            self.checks.append(lambda values: typed.check_kind(word, values[token], kinds))


def _joined(tests: list[Test], how: Callable[[Any], bool]) -> Test:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        one, other = tests
        if how is any:
            return lambda item, values: one(item, values) or other(item, values)
        return lambda item, values: one(item, values) and other(item, values)
    if how is any:
        return lambda item, values: any(test(item, values) for test in tests)
    return lambda item, values: all(test(item, values) for test in tests)


def _exists(path: Path) -> Test:
    name, *steps = path
    return (lambda item, values: find(item, path) is not None) if steps else lambda item, values: name in item


def _not_exists(path: Path) -> Test:
    name, *steps = path
    return (lambda item, values: find(item, path) is None) if steps else lambda item, values: name not in item


def _end(tokens: list[str], start: int) -> int:
    """Where the parenthesis that opens at `start` closes."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if not depth:
            return at
    raise Malformed("Syntax error: a parenthesis is not closed")


def _check_bounds(low: Value, high: Value) -> None:
    order = typed.order(low, high)
    if order is None:
        raise Invalid("The BETWEEN operator requires same data type for lower and upper bounds")
    if order > 0:
        raise Invalid("The BETWEEN operator requires upper bound to be greater than or equal to lower bound")
