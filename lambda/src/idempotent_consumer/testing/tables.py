"""The tables that a plan writes to: their keys, found in what is planned, and what they hold before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from idempotent_consumer.items import Item, to_item
from idempotent_consumer.json_text import dumps, loads
from idempotent_consumer.plan import AnyAction, Plan, Put
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import KeyAttribute
from idempotent_consumer.testing.problem import CannotTry
from idempotent_consumer.testing.purity import Planned

# One name, the names of hash and range key, or names with their types ("S" or "N").
KeyOption = str | Sequence[str] | Mapping[str, str]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]

LEDGER = "kit-processed-events"
# Where the plan puts no row without naming its key, nothing is written there.
NO_BUSINESS_TABLE = "kit-business-table"
# As the module's business_table.hash_key; its type is S.
_DEFAULT_KEY = ("id",)
_BY_DEFAULT = "of the module's business table by default: pass business_key= as it is set in business_table"


@dataclass(frozen=True, slots=True)
class Table:
    """key: the hash key, then the range key if there is one. items: what it holds before."""

    name: str
    key: tuple[KeyAttribute, ...]
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables but the ledger; `business` is one of them."""

    all: tuple[Table, ...]
    business: Table


def find_tables(
    planned: Sequence[Planned],
    rows: Rows,
    options: Mapping[str, KeyOption],
    business_name: str | None,
    business_key: KeyOption | None,
) -> Tables:
    """Raises CannotTry, naming the option, where a table's key cannot be found."""
    plans = [each.plan for each in planned if isinstance(each.plan, Plan)]
    actions = [action for plan in plans for action in plan.writes if isinstance(action, AnyAction)]
    business_name = business_name or _business_name(actions)
    given = dict(options) | ({business_name: business_key} if business_key is not None else {})
    names = dict.fromkeys([*(action.table for action in actions), business_name, *given, *rows])
    if LEDGER in names:
        raise CannotTry(f"{LEDGER} is the kit's own ledger: give the table another name")
    tables = {
        name: _table(name, actions, rows.get(name, ()), given.get(name), is_business=name == business_name)
        for name in names
    }
    return Tables(tuple(tables.values()), tables[business_name])


def plain(value: Mapping[str, Any]) -> Any:
    """One DynamoDB value as a Python value."""
    ((kind, content),) = value.items()
    if kind == "N":
        number = Decimal(content)
        return int(number) if number == number.to_integral_value() else number
    if kind == "M":
        return {name: plain(inner) for name, inner in content.items()}
    if kind == "L":
        return [plain(inner) for inner in content]
    return None if kind == "NULL" else content


def _business_name(actions: Sequence[AnyAction]) -> str:
    """The consumer's own table is the only one that a row can be put into without naming its key."""
    names = list(dict.fromkeys(action.table for action in actions if isinstance(action, Put) and not action.key_names))
    if len(names) > 1:
        raise CannotTry(
            f"Put names no key for {' and '.join(names)}, which only the module's business table can do without: pass "
            f"business_table= for that one, and name the key of the others in the plan, as key="
        )
    return names[0] if names else NO_BUSINESS_TABLE


def _table(
    name: str,
    actions: Sequence[AnyAction],
    rows: Sequence[Mapping[str, Any]],
    option: KeyOption | None,
    *,
    is_business: bool,
) -> Table:
    own = [action for action in actions if action.table == name]
    given = _given(name, option)
    key = tuple(given) or (_DEFAULT_KEY if is_business else _planned_key(own) or _only_attribute(rows))
    if not key:
        raise CannotTry(f'nothing says what the key of {name} is: pass tables={{"{name}": "…"}}')
    _check_planned(name, own, key, is_business=is_business and not given)
    kinds = [given.get(each) or ("S" if is_business else _kind(name, each, own, rows)) for each in key]
    typed = tuple(map(KeyAttribute, key, kinds))
    return Table(name, typed, tuple(_items(name, rows, typed, "business_key" if is_business else "tables")))


def _given(name: str, option: KeyOption | None) -> dict[str, str]:
    """The names with their types, "" where it is left open."""
    if option is None:
        return {}
    pairs = (
        dict(option)
        if isinstance(option, Mapping)
        else dict.fromkeys([option] if isinstance(option, str) else option, "")
    )
    if not 1 <= len(pairs) <= 2 or not set(pairs.values()) <= {"", "S", "N"}:
        raise CannotTry(
            f"the key of {name} is given as {option!r}; it is one name, the names of hash and range key, or names with "
            'their types: {"order_id": "S", "line": "N"}'
        )
    return pairs


def _planned_key(actions: Sequence[AnyAction]) -> tuple[str, ...]:
    return next((names for names in map(_key_names, actions) if names), ())


def _key_names(action: AnyAction) -> tuple[str, ...]:
    return action.key_names if isinstance(action, Put) else tuple(action.key)


def _only_attribute(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = {name for row in rows for name in row}
    return tuple(names) if len(names) == 1 else ()


def _check_planned(
    name: str,
    actions: Sequence[AnyAction],
    key: tuple[str, ...],
    *,
    is_business: bool,
) -> None:
    for action in actions:
        names = _key_names(action)
        if names and set(names) != set(key):
            where = _BY_DEFAULT if is_business else "elsewhere in the plan or in the options"
            raise CannotTry(
                f"the plan names {' and '.join(names)} as the key of {name}, which is {' and '.join(key)} {where}"
            )
    puts = [action for action in actions if isinstance(action, Put)]
    if is_business and puts and not any(set(key) <= set(put.item) for put in puts):
        raise CannotTry(
            f"no row that the plan puts into {name} has {' and '.join(key)}, which is the key {_BY_DEFAULT}"
        )


def _kind(name: str, attribute: str, actions: Sequence[AnyAction], rows: Sequence[Mapping[str, Any]]) -> str:
    values = [*_values(attribute, actions), *(row[attribute] for row in rows if attribute in row)]
    kinds = {"S" if isinstance(value, str) else "N" for value in values if _is_key_value(value)}
    if len(kinds) == 2:
        raise CannotTry(
            f"{attribute}, a key of {name}, is a text here and a number there: pass "
            f'tables={{"{name}": {{"{attribute}": "S"}}}} or "N", as it is'
        )
    return "N" if kinds == {"N"} else "S"


def _values(attribute: str, actions: Sequence[AnyAction]) -> Iterator[Any]:
    for action in actions:
        values = action.item if isinstance(action, Put) else action.key
        if attribute in values:
            yield values[attribute]


def _is_key_value(value: Any) -> bool:
    return isinstance(value, str | int | float | Decimal) and not isinstance(value, bool)


def _items(name: str, rows: Sequence[Mapping[str, Any]], key: Sequence[KeyAttribute], option: str) -> Iterator[Item]:
    for row in rows:
        missing = [attribute.name for attribute in key if attribute.name not in row]
        if missing:
            raise CannotTry(f"a row of {name} in rows= has no {' and '.join(missing)}, which is its key: {row!r}")
        try:
            item = to_item(loads(dumps(dict(row))))
        except (Rejected, TypeError, ValueError) as error:
            raise CannotTry(f"a row of {name} in rows= cannot be stored: {getattr(error, 'detail', error)}") from None
        if any(each.kind not in item[each.name] for each in key):
            types = {each.name: each.kind for each in key}
            raise CannotTry(f"the key of {name} is {types} here, a row in rows= is {row!r}: pass {option}= as it is")
        yield item
