"""The key attributes of tables and of their indexes, and which row a request is about. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tests.exploration import values as typed
from tests.exploration.reads import Index
from tests.exploration.values import Invalid, Item, Malformed, WrongKey

# Table, key: the plain text of the key's values, joined by NUL where there are two.
Place = tuple[str, str]

_MOST_BYTES = (2048, 1024)


class UnknownTable(Exception):
    """There is no such table."""


class Schema:
    """keys, index: see `dynamodb.Database`."""

    def __init__(self, keys: Mapping[str, Mapping[str, str]], index: Mapping[str, tuple[str, str, str]]) -> None:
        self._keys = {
            table: [(name, kind, most) for (name, kind), most in zip(key.items(), _MOST_BYTES, strict=False)]
            for table, key in keys.items()
        }
        self.indexes = {table: Index(*parts, key=tuple(keys[table])) for table, parts in index.items()}

    def key_names(self, table: str) -> list[str]:
        return [name for name, _, _ in self._keys[table]]

    def place(self, table: str, item: Item, *, is_whole: bool = False) -> Place:
        """is_whole: a whole item, not its key alone. Raises UnknownTable, Malformed, WrongKey or Invalid."""
        key = self._keys.get(table)
        if key is None:
            raise UnknownTable(table)
        if not is_whole and len(item) != len(key):
            raise Malformed("The provided key element does not match the schema")
        parts: list[str] = []
        is_wrong = ""
        for name, kind, most in key:
            value = item.get(name)
            if value is None:
                raise Malformed(f"One of the required keys was not given a value: {name}")
            text = value.get(kind)
            if text is None:
                is_wrong = name
            elif kind == "N":
                parts.append(typed.number_text(text))
            elif not text or (len(text) > most // 4 and len(text.encode()) > most):
                raise Invalid(f"One or more parameter values are not valid: {name} takes 1 to {most} bytes")
            else:
                parts.append(text)
        if is_wrong:
            raise WrongKey(f"One or more parameter values were invalid: Type mismatch for key {is_wrong}")
        return table, parts[0] if len(parts) == 1 else "\0".join(parts)

    def check_index(self, table: str, item: Item) -> None:
        """Raises WrongKey or Invalid for a row that could not be in the table's index."""
        index = self.indexes.get(table)
        if index is not None:
            index.check(item)
