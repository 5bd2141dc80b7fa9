"""Rules for variables and outputs: what a caller reads and gives."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from checks.hcl.module import Module
from checks.hcl.source import Block, File
from checks.hcl.types import type_of
from checks.problem import at


def description_is_a_sentence(module: Module) -> Iterator[str]:
    for file, block in module.blocks("variable", "output"):
        found = block.attribute("description")
        if found is None:
            yield _says(file, block, "has no description: say what it is, in which unit and range, and what follows")
            continue
        words = found.words().strip()
        if not words[:1].isupper() or not words.endswith("."):
            yield _says(
                file, block, "has a description that is no sentence: begin with a capital letter, end with a full stop"
            )


def type_is_written(module: Module) -> Iterator[str]:
    for file, block in module.blocks("variable"):
        found = block.attribute("type")
        if found is None:
            yield _says(file, block, "has no type: write one")
        elif re.search(r"\bany\b", found.text):
            yield _says(file, block, "has the type any, so that no mistake is found at plan: write the type out")


def null_is_said(module: Module) -> Iterator[str]:
    """An example's variables are there to try it: only callers of the library need to know."""
    for file, block in module.blocks("variable") if module.is_library else ():
        default = block.attribute("default")
        if block.attribute("nullable") is None and (default is None or default.text != "null"):
            yield _says(file, block, "does not say whether null is a value: write nullable = false, or default = null")


def fields_are_described(module: Module) -> Iterator[str]:
    """The parts of the pipeline may refer to the root's variable of the same name, which has the descriptions."""
    for file, block in module.blocks("variable"):
        description, type_ = block.attribute("description"), block.attribute("type")
        if description is None or type_ is None or "root module's variable of this name" in description.text:
            continue
        for field in type_of(type_).all_fields():
            if not re.search(rf"\b{field.name}\b", description.words()):
                yield _says(file, block, f"does not describe its attribute {field.name}: name it in the description")


def refusal_names_variable_and_value(module: Module) -> Iterator[str]:
    """The value stands in the message as a reference, or, where only one is refused, as `name is value`."""
    for file, block in module.blocks("variable"):
        name = block.labels[0]
        for validation in (inner for inner in block.blocks if inner.kind == "validation"):
            message = validation.attribute("error_message")
            text = message.text if message else ""
            if not re.search(rf"\b{name}\b", re.sub(r"\$\{.*?\}", "", text)):
                yield at(file.path, validation.line, f"the error_message does not name the variable: begin with {name}")
            elif "${" not in text and not re.search(rf"\b{name}[\w.]* (is|has) ", text):
                yield at(
                    file.path,
                    validation.line,
                    f"the error_message does not say the value: write ${{jsonencode(var.{name})}} into it",
                )


def alphabetical(module: Module) -> Iterator[str]:
    for file in module.files:
        for kind in ("variable", "output"):
            blocks = file.of_kind(kind)
            for before, after in itertools.pairwise(blocks):
                if after.labels < before.labels:
                    yield _says(file, after, f"is out of alphabetical order: move it above {before.labels[0]}")


def _says(file: File, block: Block, what: str) -> str:
    return at(file.path, block.line, f'{block.kind} "{block.labels[0]}" {what}')


RULES = (
    description_is_a_sentence,
    type_is_written,
    null_is_said,
    fields_are_described,
    refusal_names_variable_and_value,
    alphabetical,
)
