"""The type of a variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import lark

from checks.hcl.source import Attribute

Node = lark.Tree[lark.Token]
_SKIPPED = ("new_line_or_comment",)


@dataclass(frozen=True)
class Type:
    """`string`, `list` of another type, or `object` with its fields."""

    name: str
    of: Type | None = None
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({self.of})" if self.of else self.name

    def innermost(self) -> Type:
        """The object in a list, or this type."""
        return self.of.innermost() if self.of else self

    def all_fields(self) -> Iterator[Field]:
        """The fields, and those of objects in them."""
        for field in self.innermost().fields:
            yield field
            yield from field.type.all_fields()


@dataclass(frozen=True)
class Field:
    """One attribute of an object; `default` is as written, None if there is none."""

    name: str
    type: Type
    optional: bool
    default: str | None


def type_of(attribute: Attribute) -> Type:
    """The type that `type = …` says."""
    offset = attribute.node.meta.start_pos
    return _type(attribute.node, attribute.text, offset)


def _type(node: Node, text: str, offset: int) -> Type:
    node = _inner(node)
    if node.data != "function_call":
        return Type(_span(node, text, offset))
    name, arguments = _call(node, text, offset)
    inner = _inner(arguments[0])
    if inner.data == "object":
        elements = [child for child in _nodes(inner) if child.data == "object_elem"]
        return Type(name, fields=tuple(_field(element, text, offset) for element in elements))
    return Type(name, _type(inner, text, offset))


def _field(element: Node, text: str, offset: int) -> Field:
    key, value = _nodes(element)[0], _inner(_nodes(element)[-1])
    name = _span(key, text, offset)
    if value.data == "function_call":
        function, arguments = _call(value, text, offset)
        if function == "optional":
            default = _span(arguments[1], text, offset) if len(arguments) > 1 else None
            return Field(name, _type(arguments[0], text, offset), True, default)
    return Field(name, _type(value, text, offset), False, None)


def _call(node: Node, text: str, offset: int) -> tuple[str, list[Node]]:
    name, *rest = _nodes(node)
    return _span(name, text, offset), [argument for part in rest for argument in _nodes(part)]


def _inner(node: Node) -> Node:
    """The node without what only wraps it."""
    while node.data == "expr_term" and len(_nodes(node)) == 1:
        node = _nodes(node)[0]
    return node


def _nodes(node: Node) -> list[Node]:
    return [child for child in node.children if isinstance(child, lark.Tree) and child.data not in _SKIPPED]


def _span(node: Node, text: str, offset: int) -> str:
    return text[node.meta.start_pos - offset : node.meta.end_pos - offset]
