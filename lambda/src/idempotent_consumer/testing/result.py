"""What `assert_idempotent` returns."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification as a subscriber of the topic hears it.

    message: what its JSON says, or its text where it is none. attributes: without `event_id`.
    """

    event_id: str
    message: Any
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the events where each of them came once and nothing failed.

    Events go by their id. An event that has none goes by its place, `events[2]`; a second one of an id, with other
    content, is `o-1 (2)`.

    outcomes: `applied`, `superseded`, `rejected`, `conflict`, `ignored`; `retry` (or, on FIFO, `blocked`) for what
    still waits for a row. reasons, details: of the events that have one; of dead letters, what the letter says.
    notifications: in the order in which they were heard. scenarios: what was tried. not_tried: what could not be, and
    why. holds_beyond_window: whether nothing would change either if the events came once more after ttl_window_days,
    when the ledger has forgotten them.
    """

    outcomes: Mapping[str, str]
    reasons: Mapping[str, str]
    details: Mapping[str, str]
    notifications: tuple[Heard, ...]
    scenarios: tuple[str, ...]
    not_tried: tuple[str, ...]
    holds_beyond_window: bool
    tables: Mapping[str, list[dict[str, Any]]] = field(repr=False)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table in the order of their keys: whole numbers as int, others as Decimal, without what the
        library adds to a row (`event_id`, …). Raises KeyError where the plan knows no such table.
        """
        if table not in self.tables:
            raise KeyError(f"no table {table!r}; there are {', '.join(map(repr, self.tables))}")
        return copy.deepcopy(self.tables[table])

    def announced(self, event_id: str) -> list[Any]:
        """The messages of an event's notifications."""
        return [each.message for each in self.notifications if each.event_id == event_id]
