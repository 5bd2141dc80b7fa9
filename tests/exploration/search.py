"""Which schedules are played: all of a small scope, or many of a larger one by chance; and the shortest that fails."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.exploration.faults import Fault
from tests.exploration.scheduling import Option, Play

# What is chosen where there are several options, by their numbers; what lacks at the end is 0.
Choices = tuple[int, ...]
Choose = Callable[[Sequence[Option]], int]
# How often chance lets a call succeed where a fault could befall it.
_WELL = 0.6


def count_of(number: int, name: str, names: str = "") -> str:
    """Such as `1 fault` and `2 faults`."""
    return f"{number:,} {name if number == 1 else names or name + 's'}"


def bound_of(who: str, most_faults: int, moves: Sequence[str], schedules: int | None, fault: str = "fault") -> str:
    """A scope's bound in words. who: takes turns."""
    told = f"{who}, at most {count_of(most_faults, fault)}" if most_faults else f"{who}, no faults"
    told += "".join(f", {move.replace('_', ' ')}" for move in moves)
    return told + (", by chance" if schedules else ", all")


class Scope(Protocol):
    """A scenario with a bound, told in words.

    schedules: how many are to be drawn by chance; None: all there are.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def bound(self) -> str: ...

    @property
    def schedules(self) -> int | None: ...

    def play(self, choose: Choose) -> Play:
        """A play from the start."""

    def state(self, play: Play) -> Hashable:
        """All that decides what happens from here on."""

    def end(self, play: Play) -> None:
        """Let all go well for a while, and raise where something is not as it must be."""


@dataclass(frozen=True)
class Played:
    """A schedule with what happened. error: the violation that it ends in, if it does."""

    scope: str
    choices: Choices
    steps: tuple[str, ...]
    error: str = ""

    @property
    def command(self) -> str:
        """What plays it again."""
        choices = ",".join(map(str, self.choices))
        return f'.venv/bin/python -m tests.exploration --scope "{self.scope}" --replay "{choices}"'


@dataclass
class Explored:
    """What came of some schedules. schedules, states: their hashes, since chance draws some twice. met: which fault
    befell a call of which operation. failure: the shortest schedule found that fails.
    """

    schedules: set[int] = field(default_factory=set)
    states: set[int] = field(default_factory=set)
    met: set[tuple[str | None, Fault | None]] = field(default_factory=set)
    failure: Played | None = None


def explore(scope: Scope, part: int) -> Explored:
    """Play all schedules of the scope that begin with this choice, up to the first that fails."""
    return _explore(scope, _all(part, parts_of(scope)))


def draw(scope: Scope, seed: int, schedules: int) -> Explored:
    """Play so many schedules drawn by chance, up to the first that fails."""
    chance = random.Random(seed)
    return _explore(scope, (_ByChance(chance) for _ in range(schedules)))


def parts_of(scope: Scope) -> int:
    """How many options there are for the first choice."""
    first = _Next([])
    _run(scope, first, Explored(), set())  # what it violates is told once it is played for itself
    return first.path[0][1] if first.path else 1


def _explore(scope: Scope, choosers: Iterable[_Chooser]) -> Explored:
    explored = Explored()
    settled: set[Hashable] = set()
    for chooser in choosers:
        played = _run(scope, chooser, explored, settled)
        explored.schedules.add(hash(played.choices))
        if played.error:
            explored.failure = shrink(scope, played)
            break
    return explored


def replay(scope: Scope, choices: Choices) -> Played:
    """Play one schedule."""
    return _run(scope, _Given(choices), Explored(), set(), is_told=True)


def shrink(scope: Scope, failure: Played) -> Played:
    """A shorter schedule that fails too, in which fewer things happen."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for choices in _smaller(failure.choices):
            other = replay(scope, choices)
            if other.error and _weight(other.choices) < _weight(failure.choices):
                failure, is_smaller = other, True
                break
    return failure


def _weight(choices: Choices) -> tuple[int, int, int]:
    return sum(choice > 0 for choice in choices), len(choices), sum(choices)


def _smaller(choices: Choices) -> Iterator[Choices]:
    for size in (len(choices) // 2, 4, 2, 1):
        for start in range(0, len(choices), max(1, size)):
            yield choices[:start] + choices[start + size :]
    for index, choice in enumerate(choices):
        for other in range(choice):
            yield (*choices[:index], other, *choices[index + 1 :])


class _Chooser(ABC):
    """Chooses, and remembers what."""

    def __init__(self) -> None:
        self.choices: Choices = ()

    def __call__(self, options: Sequence[Option]) -> int:
        choice = self._choose(options)
        self.choices += (choice,)
        return choice

    @abstractmethod
    def _choose(self, options: Sequence[Option]) -> int: ...


class _Given(_Chooser):
    def __init__(self, given: Choices) -> None:
        super().__init__()
        self._given = given

    def _choose(self, options: Sequence[Option]) -> int:
        number = len(self.choices)
        choice = self._given[number] if number < len(self._given) else 0
        return choice if choice < len(options) else 0


class _Next(_Chooser):
    """The schedule that follows another one in the order of all. path: of it, each choice with the options' number."""

    def __init__(self, path: list[tuple[int, int]]) -> None:
        super().__init__()
        self.path = path

    def _choose(self, options: Sequence[Option]) -> int:
        number = len(self.choices)
        if number == len(self.path):
            self.path.append((0, len(options)))
        choice, count = self.path[number]
        assert count == len(options), "the same choices have led to something else"
        return choice


class _ByChance(_Chooser):
    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        # How often who had the last turn has the next one too: else nobody gets far while another waits.
        self._stays = chance.choice((0.0, 0.5, 0.9))
        self._last = ""

    def _choose(self, options: Sequence[Option]) -> int:
        numbers = list(range(len(options)))
        if self._chance.random() < self._stays:
            numbers = [number for number in numbers if options[number].who.name == self._last] or numbers
        if self._chance.random() < _WELL:
            numbers = [number for number in numbers if options[number].fault is None]
        number = self._chance.choice(numbers)
        self._last = options[number].who.name
        return number


def _all(part: int, parts: int) -> Iterator[_Chooser]:
    path = [(part, parts)]
    while True:
        yield _Next(path)
        while path[-1][0] + 1 == path[-1][1] and len(path) > 1:
            path.pop()
        if len(path) == 1:
            return
        choice, count = path.pop()
        path.append((choice + 1, count))


def _run(
    scope: Scope, chooser: _Chooser, explored: Explored, settled: set[Hashable], *, is_told: bool = False
) -> Played:
    play = scope.play(chooser)
    check = play.check

    def check_and_count() -> None:
        check()
        explored.states.add(hash(scope.state(play)))

    play.check = check_and_count
    error = ""
    try:
        play.run()
        # Nothing survives an invocation but what is in the world: how it ends is told by its state.
        last = scope.state(play)
        if last not in settled:
            scope.end(play)
            settled.add(last)
    except Exception as problem:  # a violation, or code that broke
        error = str(problem) if isinstance(problem, AssertionError) else repr(problem)
    explored.met.update((step.operation, step.fault) for step in play.steps)
    return Played(
        scope.name, significant(chooser.choices), tuple(map(str, play.steps)) if error or is_told else (), error
    )


def significant(choices: Choices) -> Choices:
    """Without the zeros at the end."""
    while choices and choices[-1] == 0:
        choices = choices[:-1]
    return choices
