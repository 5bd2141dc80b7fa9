"""A plan as flat text, path by path, so that two of them can be compared across processes and shown to a person."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from idempotent_consumer.condition import Condition, Operand, Path, Value
from idempotent_consumer.plan import AnyAction, Notification, Plan, Put, Retry, Supersede, Update
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.testing.problem import shortened

# Path to text: `writes[0].item.total` to `Decimal('9.95')`.
Description = dict[str, str]
Difference = tuple[str, str, str]

_ABSENT = "(absent)"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MOST_LEVELS = 40
_MOST_SHOWN = 5


class _Words(str):
    """Text of the kit's own."""


def describe(planned: Plan | Rejected) -> Description:
    """The order of a dict's keys is left out: it changes nothing of what a plan does."""
    if isinstance(planned, Rejected):
        return {"raises": _otherwise(planned)}
    parts = {
        "writes": [_write(action) for action in planned.writes if isinstance(action, AnyAction)],
        "notifications": [_notification(notification) for notification in planned.all_notifications],
    }
    return dict(_flat("", parts, 0))


def describe_data(data: Any) -> Description:
    """An event's data in the same way."""
    return dict(_flat("event.data", data, 0))


def differences(one: Description, other: Description) -> list[Difference]:
    """Path and both texts of all that is not the same."""
    paths = list(dict.fromkeys([*one, *other]))
    both = ((path, one.get(path, _ABSENT), other.get(path, _ABSENT)) for path in paths)
    return [(path, first, second) for path, first, second in both if first != second]


def shown(found: Sequence[Difference], names: tuple[str, str]) -> list[str]:
    """The first differences as lines. names: what the two sides are called."""
    width = max(map(len, names))
    lines = []
    for path, first, second in found[:_MOST_SHOWN]:
        lines.append(path)
        lines += [f"  {name:<{width}}  {shortened(text)}" for name, text in zip(names, (first, second), strict=True)]
    if len(found) > _MOST_SHOWN:
        lines.append(f"and {len(found) - _MOST_SHOWN} more")
    return lines


def is_other_order(one: Description, other: Description) -> bool:
    """Whether two plans hold the same, in another order."""
    return sorted(one.values()) == sorted(other.values())


def condition_text(condition: Any) -> str:
    """A condition as a person would write it."""
    if isinstance(condition, Condition | Operand):
        return "".join(condition_text(part) for part in condition.parts)
    if isinstance(condition, Path):
        return condition.text
    return repr(condition.value) if isinstance(condition, Value) else str(condition)


def _write(action: AnyAction) -> dict[str, Any]:
    result: dict[str, Any] = {"": _Words(f"{type(action).__name__}({action.table!r})")}
    if isinstance(action, Put):
        result |= {"item": action.item, "mode": action.mode}
        result |= {"version": action.version} if action.version is not None else {}
        result |= {"key": action.key_names} if action.key_names else {}
    else:
        result["key"] = action.key
    if isinstance(action, Update):
        result |= {name: part for name in ("set", "add", "remove") if (part := getattr(action, name))}
    if action.condition is not None:
        result["condition"] = action.condition
    if action.otherwise is not None:
        result["otherwise"] = action.otherwise
    return result


def _notification(notification: Notification) -> dict[str, Any]:
    attributes = {"attributes": notification.attributes} if notification.attributes else {}
    return {"message": notification.message, **attributes}


def _flat(path: str, value: Any, level: int) -> Iterator[tuple[str, str]]:
    if level > _MOST_LEVELS:
        yield path, "…"
    elif isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}".strip("."), inner, level + 1)
    elif isinstance(value, list | tuple) and value:
        for index, inner in enumerate(value):
            yield from _flat(f"{path}[{index}]", inner, level + 1)
    else:
        yield path, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, Condition):
        return condition_text(value)
    if isinstance(value, Rejected | Retry | Supersede):
        return _otherwise(value)
    if isinstance(value, _Words):
        return str(value)
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__} of {', '.join(sorted(map(repr, value)))}"
    return value.name if isinstance(value, Enum) else _ADDRESS.sub("", repr(value))


def _otherwise(value: Rejected | Retry | Supersede) -> str:
    if isinstance(value, Rejected):
        detail = f", {value.detail!r}" if value.detail else ""
        return f"Reject({value.reason!r}{detail})"
    return f"{type(value).__name__}({value.why!r})"
