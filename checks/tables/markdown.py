"""Inputs and outputs of a module as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checks.hcl.module import Module
from checks.hcl.source import Block
from checks.hcl.types import Field, Type, type_of
from checks.tables.descriptions import Description, one_line, taken_apart

# An object with so few attributes is written into its cell; one with more has a table of its own.
_FEW = 3


def inputs(module: Module) -> str:
    """One table of all variables, those without a default first, and one for each object with many attributes."""
    variables = [block for _, block in module.blocks("variable")]
    variables.sort(key=lambda block: (block.attribute("default") is not None, block.labels))
    rows, tables = [], []
    for block in variables:
        type_, description = _type(block), _description(block)
        has_table = len(type_.innermost().fields) > _FEW or bool(description.items)
        name = block.labels[0]
        shown = _code(str(type_)) if has_table else _written_out(type_)
        rows.append((_code(name), shown, _default(block), _cell(description.whole)))
        if has_table:
            tables.append(f"The attributes of {_code(name)}:\n\n{_attributes(type_, description)}")
    return "\n\n".join([_table(("variable", "type", "default", "what"), rows), *tables])


def outputs(module: Module) -> str:
    """One table of all outputs."""
    blocks = sorted((block for _, block in module.blocks("output")), key=lambda block: block.labels)
    return _table(("output", "what"), [(_code(block.labels[0]), _cell(_words(block))) for block in blocks])


def _attributes(type_: Type, description: Description) -> str:
    """In the order of the description, where one item may be about several attributes; the others behind it."""
    fields = {field.name: field for field in type_.innermost().fields}
    told = {name for names, _ in description.items for name in names}
    items = [*description.items, *(((name,), "") for name in sorted(fields.keys() - told))]
    rows = [
        (
            _lines(map(_code, names)),
            _lines(_written_out(fields[name].type) for name in names),
            _lines(_field_default(fields[name]) for name in names),
            _cell(text),
        )
        for names, text in items
    ]
    head = ("attribute", "type", "default", "what")
    return _table(head, rows) if told else _table(head[:3], [row[:3] for row in rows])


def _lines(texts: Iterable[str]) -> str:
    """One below the other, or once if all say the same."""
    shown = list(texts)
    return "<br>".join(shown[:1] if len(set(shown)) == 1 else shown)


def _written_out(type_: Type) -> str:
    """The type, and of an object its attributes with their defaults."""
    fields = [_code(field.name) + _noted(field) for field in type_.innermost().fields]
    return _code(str(type_)) + (f" of {', '.join(fields)}" if fields else "")


def _noted(field: Field) -> str:
    if not field.optional:
        return ""
    return " (optional)" if field.default in (None, "null") else f" ({_field_default(field)})"


def _field_default(field: Field) -> str:
    if not field.optional:
        return "required"
    return _code(one_line(field.default or "null"))


def _default(block: Block) -> str:
    found = block.attribute("default")
    return _code(one_line(found.text)) if found else "required"


def _type(block: Block) -> Type:
    found = block.attribute("type")
    return type_of(found) if found else Type("any")


def _description(block: Block) -> Description:
    return taken_apart(_words(block), [field.name for field in _type(block).innermost().fields])


def _words(block: Block) -> str:
    found = block.attribute("description")
    return found.words() if found else ""


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    """Text that Markdown shows as it is written."""
    for special, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("[", "\\[")):
        text = text.replace(special, shown)
    return one_line(text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" if line[0] != "---" else f"|{'|'.join(line)}|" for line in lines)
