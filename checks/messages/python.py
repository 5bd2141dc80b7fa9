"""The messages of errors and warnings in Python code, found in its syntax trees."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping

from checks.messages.message import BLANK, Message

_WARNINGS = frozenset({"critical", "error", "exception", "warning"})
_QUIET = frozenset({"DEBUG", "INFO"})
_OF_CLICK = frozenset({"BadParameter", "ClickException", "UsageError"})
# Methods that say what is wrong with a value: `fields.wrong(name, value, rule)`, click's `self.fail(message, …)`.
_OF_A_FIELD, _FAIL = "wrong", "fail"
# They carry a code, which the page of reasons explains, or a remedy of their own.
_EXPLAINED_ELSEWHERE = frozenset(
    {"AnswerLost", "Final", "Finding", "NotSent", "Rejected", "Reject", "Retry", "Retryable", "Supersede", "Uncertain"}
)


def python_messages(texts: Mapping[str, str]) -> Iterator[Message]:
    """What is given to errors, and to log calls at warning or above. texts: of Python files, by path."""
    trees = {path: ast.parse(text) for path, text in sorted(texts.items())}
    errors = error_classes(trees.values()) - _EXPLAINED_ELSEWHERE
    for path, tree in trees.items():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for text in _said(call, errors):
                if any(letter.isalpha() for letter in text.replace(BLANK, "")):
                    yield Message(text, path, call.lineno)


def error_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    """The exceptions of Python and click, and the classes that are derived from them."""
    known = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    known |= _OF_CLICK
    bases = {
        node.name: {_name(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    while more := {name for name, parents in bases.items() if parents & known} - known:
        known |= more
    return frozenset(known)


def _said(call: ast.Call, errors: frozenset[str]) -> Iterator[str]:
    name = _name(call.func)
    is_method = isinstance(call.func, ast.Attribute)
    if name in errors:
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            yield from _texts(argument)
    elif is_method and name == _OF_A_FIELD:
        yield from (f"{BLANK} is {BLANK}, {text}" for text in _texts(call.args[-1]))
    elif (is_method and name in {*_WARNINGS, _FAIL}) or (name == "_log" and _name(call.args[0]) not in _QUIET):
        for argument in call.args:
            yield from _texts(argument)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts that an expression can be, with BLANK for what is put in."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.BinOp):
        yield from _texts(node.left)
        yield from _texts(node.right)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else BLANK for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
