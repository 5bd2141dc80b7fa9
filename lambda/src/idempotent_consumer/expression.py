"""JMESPath expressions from the settings, evaluated without ever turning a number into a float."""

import math
from decimal import (
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import Any

import jmespath
from jmespath import exceptions, functions
from jmespath.parser import ParsedResult

from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.rejection import Rejected

# Arithmetic either fits DynamoDB's 38 digits or is refused: never rounded in silence.
_EXACT = Context(prec=38, Emax=400, Emin=-400, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])


class Expression:
    """A compiled JMESPath expression (https://jmespath.org/specification.html).

    Raises ValueError when `text` is not a valid expression.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            # A copy: jmespath keeps what it has compiled, and botocore uses it too.
            self._parsed = ParsedResult(text, _with_exact_literals(jmespath.compile(text).parsed))
        except (exceptions.JMESPathError, RecursionError, ValueError) as error:
            raise ValueError(f"not a JMESPath expression: {error}") from None

    def search(self, data: Any) -> Any:
        """The value that the expression selects from `data`, None where it selects nothing.

        Raises Rejected `expression-failed` where a function does not take the value, `number-out-of-range`
        where arithmetic leaves 38 digits.
        """
        if self.text == "@":
            return data
        try:
            with localcontext(_EXACT):
                return self._parsed.search(data, _OPTIONS)
        except Rejected:
            raise
        except DecimalException:
            raise Rejected("number-out-of-range", f"{self.text}: a result has more than 38 digits") from None
        except Exception as error:
            # JMESPath lets TypeError and others out as well; evaluation is pure, so a repeat fails the same way.
            raise Rejected("expression-failed", f"{self.text}: {type(error).__name__}") from None

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


class _ExactFunctions(functions.Functions):
    """JMESPath's built-in functions, which know no Decimal, taught to take it as a number."""

    def _get_allowed_pytypes(self, types: Any) -> Any:
        allowed, subtypes = super()._get_allowed_pytypes(types)
        return _with_decimal(allowed), [_with_decimal(names) for names in subtypes]

    def _convert_to_jmespath_type(self, pyobject: str) -> Any:
        return "number" if pyobject == "Decimal" else super()._convert_to_jmespath_type(pyobject)

    @functions.signature({"types": ["array-number"]})
    def _func_avg(self, arg: Any) -> Any:
        return sum(arg, Decimal(0)) / len(arg) if arg else None

    @functions.signature({"types": []})
    def _func_to_number(self, arg: Any) -> Any:
        if isinstance(arg, str):
            try:
                number = loads(arg)
            except Rejected as rejected:
                if rejected.reason == "number-out-of-range":
                    raise
                return None
            return number if self._func_type(number) == "number" else None
        return arg if self._func_type(arg) == "number" else None

    @functions.signature({"types": []})
    def _func_to_string(self, arg: Any) -> Any:
        return arg if isinstance(arg, str) else dumps(arg)

    @functions.signature({"types": []})
    def _func_type(self, arg: Any) -> Any:
        return "number" if isinstance(arg, Decimal) else super()._func_type(arg)


_OPTIONS = jmespath.Options(custom_functions=_ExactFunctions())


def _with_decimal(names: Any) -> Any:
    return [*names, "Decimal"] if "float" in names else names


def _with_exact_literals(node: Any) -> Any:
    """A copy of a parsed expression without floats; a float's shortest spelling is what the operator wrote."""
    if isinstance(node, float):
        if not math.isfinite(node):
            raise ValueError(f"{node} is no number of JSON")
        return Decimal(repr(node))
    if isinstance(node, dict):
        return {key: _with_exact_literals(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_exact_literals(value) for value in node]
    return node
