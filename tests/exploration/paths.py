"""The ways to values inside of an item. Pure; items are never changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tests.exploration.values import Invalid, Item, Value

Values = Mapping[str, Value]
Operand = Callable[[Item, Values], Value | None]
# Names of attributes, and indexes of lists.
Path = tuple[str | int, ...]


def getter(path: Path) -> Operand:
    name, *steps = path
    if not steps:
        return lambda item, values: item.get(name)  # type: ignore[arg-type]
    return lambda item, values: find(item, path)


def find(item: Item, path: Path) -> Value | None:
    name, *steps = path
    value: Any = item.get(str(name))
    for step in steps:
        if value is None:
            return None
        if isinstance(step, int):
            elements = value.get("L", ())
            value = elements[step] if step < len(elements) else None
        else:
            value = value.get("M", {}).get(step)
    return value  # type: ignore[no-any-return]


def put_at(new: Item, path: Path, value: Value) -> None:
    if len(path) == 1:
        new[str(path[0])] = value
        return
    inside = _parent(new, path)
    last = path[-1]
    if isinstance(last, int) and "L" in inside:
        inside["L"][last : last + 1] = [value]
    elif isinstance(last, str) and "M" in inside:
        inside["M"][last] = value
    else:
        raise _no_way()


def take_out(new: Item, path: Path) -> None:
    if len(path) == 1:
        new.pop(str(path[0]), None)
        return
    inside = _parent(new, path)
    last = path[-1]
    if isinstance(last, int) and "L" in inside:
        del inside["L"][last : last + 1]
    elif isinstance(last, str) and "M" in inside:
        inside["M"].pop(last, None)
    else:
        raise _no_way()


def _parent(new: Item, path: Path) -> dict[str, Any]:
    """Where the last step leads from, in a copy of the attribute: items are never changed in place."""
    name = str(path[0])
    if name not in new:
        raise _no_way()
    new[name] = deepcopy(new[name])
    found = find(new, path[:-1])
    if found is None:
        raise _no_way()
    return found


def _no_way() -> Invalid:
    return Invalid("The document path provided in the update expression is invalid for update")
