"""Finds attributes that the objects of a module's variables do not have: Terraform drops them without a word."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import hcl2

from checks.hcl.module import modules_of
from checks.hcl.types import Type, type_of
from checks.tree import checkout
from tests.docs.terraform_blocks import SOURCE


def unknown_attributes(text: str) -> list[str]:
    """Of all calls of this project's modules in a text, such as `queue.fifoo`."""
    found: list[str] = []
    for call in hcl2.loads(text).get("module", []):
        (body,) = call.values()
        source = SOURCE.search(f"source = {body['source']}")
        types = _variables((source[2] or source[3] or "").strip("/")) if source else {}
        for name in body.keys() & types.keys():
            found += _unknown(name, body[name], types[name])
    return sorted(found)


@functools.cache
def _variables(folder: str) -> Mapping[str, Type]:
    (module,) = (module for module in modules_of(checkout()) if module.folder == folder)
    return {
        block.labels[0]: type_of(attribute)
        for _, block in module.blocks("variable")
        if (attribute := block.attribute("type"))
    }


def _unknown(where: str, value: Any, type: Type) -> Iterator[str]:
    if isinstance(value, list) and type.of:
        for each in value:
            yield from _unknown(where, each, type.of)
    elif isinstance(value, dict) and type.fields:
        fields = {field.name: field.type for field in type.fields}
        for name, inner in ((key.strip('"'), inner) for key, inner in value.items() if not key.startswith("__")):
            if name in fields:
                yield from _unknown(f"{where}.{name}", inner, fields[name])
            else:
                yield f"{where}.{name}"
