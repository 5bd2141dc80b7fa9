"""DynamoDB's update expressions, and what a request's expressions are together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tests.exploration import values as typed
from tests.exploration.conditions import ConditionParser, Test
from tests.exploration.expressions import Check, Parser
from tests.exploration.paths import Operand, Path, Values, find, getter, put_at, take_out
from tests.exploration.values import Invalid, Item, Malformed, Value

# What to do to the new row, which the old row decides.
Step = Callable[[Item, Item, Values], None]
_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")


@dataclass(frozen=True, slots=True)
class Expressions:
    """values: the placeholders of values. checks: what these have to be like. attributes: those that are updated.

    sets, removals: what is done to the row, in order.
    """

    holds: Test | None
    sets: tuple[Step, ...]
    removals: tuple[Step, ...]
    attributes: frozenset[str]
    values: frozenset[str]
    checks: tuple[Check, ...]

    def update(self, item: Item | None, key: Item, values: Values) -> Item | None:
        """The row afterwards. Raises Invalid where that cannot be done to it.

        Where no row is, what only takes away makes none, and takes away any path. scylladb/scylladb,
        test/alternator/test_item.py and test_update_expression.py, measured that.
        """
        if item is None:
            if not self.sets:
                return None
            old, steps = key, self.sets
        else:
            old, steps = item, self.sets + self.removals
        new = dict(old)
        for step in steps:
            step(old, new, values)
        return new


@cache
def expressions(condition: str | None, update: str | None, names: tuple[tuple[str, str], ...]) -> Expressions:
    """Raises Malformed, also for a name's placeholder that is not used."""
    by_placeholder = dict(names)
    used: set[str] = set()
    checks: list[Check] = []
    holds = None
    if condition is not None:
        reader = ConditionParser(condition, by_placeholder)
        holds = reader.condition()
        used |= reader.used
        checks += reader.checks
    sets: list[Step] = []
    removals: list[Step] = []
    paths: list[Path] = []
    if update is not None:
        parser = Parser(update, by_placeholder)
        sets, removals, paths = _read(parser)
        used |= parser.used
        checks += parser.checks
    unused = by_placeholder.keys() - used
    if unused:
        raise Malformed(f"Value provided in ExpressionAttributeNames unused in expressions: {sorted(unused)}")
    _check_paths(paths)
    return Expressions(
        holds,
        tuple(sets),
        tuple(removals),
        frozenset(str(path[0]) for path in paths),
        frozenset(name for name in used if name[0] == ":"),
        tuple(checks),
    )


def _read(parser: Parser) -> tuple[list[Step], list[Step], list[Path]]:
    steps: dict[str, list[tuple[Path, Step]]] = {}
    while parser.token:
        word = parser.take(*_CLAUSES)
        if word is None:
            raise Malformed(f"Syntax error; token: {parser.token!r}, expected: one of {', '.join(_CLAUSES)}")
        if word in steps:
            raise Malformed(f"The {word} section can only be used once in an update expression")
        steps[word] = []
        while True:
            path = parser.path()
            steps[word].append((path, _READERS[word](parser, path)))
            if not parser.take(","):
                break
    if not steps:
        raise Malformed("The expression can not be empty")
    if "REMOVE" in steps:
        # Indexes are those of the old row: what is removed goes from the end.
        steps["REMOVE"].sort(key=lambda pair: _sortable(pair[0]), reverse=True)
    sets, removals = (
        [step for word in words for _, step in steps.get(word, ())] for words in (("SET", "ADD"), ("DELETE", "REMOVE"))
    )
    return sets, removals, [path for pairs in steps.values() for path, _ in pairs]


def _sortable(path: Path) -> list[tuple[int, str]]:
    return [(step, "") if isinstance(step, int) else (-1, step) for step in path]


def _set(parser: Parser, path: Path) -> Step:
    parser.expect("=")
    get = _sum(parser)
    if len(path) == 1:
        name = str(path[0])

        def step(item: Item, new: Item, values: Values) -> None:
            new[name] = _there(get(item, values))

        return step
    return lambda item, new, values: put_at(new, path, _there(get(item, values)))


def _remove(parser: Parser, path: Path) -> Step:
    if len(path) == 1:
        name = str(path[0])

        def step(item: Item, new: Item, values: Values) -> None:
            new.pop(name, None)

        return step
    return lambda item, new, values: take_out(new, path)


def _add(parser: Parser, path: Path) -> Step:
    token = parser.token
    parser.value()

    def step(item: Item, new: Item, values: Values) -> None:
        old, value = find(item, path), values[token]
        typed.check_kind("operator: ADD", value, ("N", "SS", "NS", "BS"))
        put_at(new, path, value if old is None else _added(old, value))

    return step


def _delete(parser: Parser, path: Path) -> Step:
    token = parser.token
    parser.value()

    def step(item: Item, new: Item, values: Values) -> None:
        old, value = find(item, path), values[token]
        typed.check_kind("operator: DELETE", value, ("SS", "NS", "BS"))
        if old is None:
            return
        kind = _same_kind(old, value)
        left = typed.combine_sets(kind, old, value, lambda is_in: not is_in)
        if left:
            put_at(new, path, {kind: left})
        else:
            take_out(new, path)

    return step


_READERS: Mapping[str, Callable[[Parser, Path], Step]] = {
    "SET": _set,
    "REMOVE": _remove,
    "ADD": _add,
    "DELETE": _delete,
}


def _sum(parser: Parser) -> Operand:
    one = _operand(parser)
    operator = parser.take("+", "-")
    if operator is None:
        return one
    other = _operand(parser)
    calculate = typed.add if operator == "+" else typed.subtract

    def get(item: Item, values: Values) -> Value:
        numbers = _there(one(item, values)), _there(other(item, values))
        for number in numbers:
            if "N" not in number:
                raise Invalid("An operand in the update expression has an incorrect data type")
        return calculate(*numbers)

    return get


def _operand(parser: Parser) -> Operand:
    word = parser.token
    if word.startswith(":"):
        return parser.value()
    path = parser.path()
    if word not in ("if_not_exists", "list_append") or not parser.take("("):
        return getter(path)
    one = _operand(parser)
    parser.expect(",")
    other = _operand(parser)
    parser.expect(")")
    if word == "if_not_exists":
        return lambda item, values: one(item, values) or other(item, values)

    def get(item: Item, values: Values) -> Value:
        lists = _there(one(item, values)), _there(other(item, values))
        if any("L" not in each for each in lists):
            raise Invalid("An operand in the update expression has an incorrect data type")
        return {"L": [*lists[0]["L"], *lists[1]["L"]]}

    return get


def _there(value: Value | None) -> Value:
    if value is None:
        raise Invalid("The provided expression refers to an attribute that does not exist in the item")
    return value


def _added(old: Value, value: Value) -> Value:
    kind = _same_kind(old, value)
    if kind == "N":
        return typed.add(old, value)
    return {kind: [*old[kind], *typed.combine_sets(kind, value, old, lambda is_in: not is_in)]}


def _same_kind(old: Value, value: Value) -> str:
    ((kind, _),) = value.items()
    if kind not in old:
        raise Invalid("An operand in the update expression has an incorrect data type")
    return kind


def _check_paths(paths: list[Path]) -> None:
    for at, one in enumerate(paths):
        for other in paths[at + 1 :]:
            if all(mine == theirs for mine, theirs in zip(one, other, strict=False)):
                raise Malformed(f"Two document paths overlap with each other: {one}, {other}")
