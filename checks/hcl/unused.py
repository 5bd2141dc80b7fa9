"""Rules for what a module declares and does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checks.hcl.module import Module
from checks.hcl.source import Attribute, Block
from checks.problem import at


def unused_variables(module: Module) -> Iterator[str]:
    """A use by its own validation alone is none."""
    for file, block in module.blocks("variable"):
        if not _is_used(module, rf"var\.{block.labels[0]}\b", block):
            yield at(file.path, block.line, f'variable "{block.labels[0]}" is not used: use it or remove it')


def unused_locals(module: Module) -> Iterator[str]:
    for file, block in module.blocks("locals"):
        for attribute in block.attributes:
            if not _is_used(module, rf"local\.{attribute.name}\b", attribute):
                yield at(file.path, attribute.line, f"local.{attribute.name} is not used: use it or remove it")


def unused_data(module: Module) -> Iterator[str]:
    for file, block in module.blocks("data"):
        address = ".".join(("data", *block.labels))
        if not _is_used(module, rf"{re.escape(address)}\b", block):
            yield at(file.path, block.line, f"{address} is read and not used: use it or remove it")


def _is_used(module: Module, reference: str, declared: Block | Attribute) -> bool:
    pattern = rf"(?<![\w.-]){reference}"
    return len(re.findall(pattern, module.code)) > len(re.findall(pattern, declared.text))


RULES = (unused_variables, unused_locals, unused_data)
