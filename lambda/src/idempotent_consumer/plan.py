"""What an event does: its writes and its notifications. Pure: no clock, no network, no randomness."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any

from idempotent_consumer.answer import MISCONFIGURED_REASONS, PASSING_REASONS
from idempotent_consumer.condition import Condition, Path
from idempotent_consumer.event import Event
from idempotent_consumer.rejection import InvalidPlan, Reject
from idempotent_consumer.settings import WriteMode

# Amazon DynamoDB Developer Guide, "Quotas". An ARN would do for DynamoDB, and one table have two names here.
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")

Key = Mapping[str, str | int | Decimal]


@dataclass(frozen=True, slots=True)
class Retry:
    """What the failing of a condition means: not yet, so the event comes back. why: a short text for the log."""

    why: str

    def __post_init__(self) -> None:
        _check_why(self.why)
        if self.why in MISCONFIGURED_REASONS | PASSING_REASONS:
            raise InvalidPlan(f"Retry({self.why!r}) gives one of the consumer's own reasons: choose another word")


@dataclass(frozen=True, slots=True)
class Supersede:
    """What the failing of a condition means: the event is out of date. Nothing of it is written, and it is settled."""

    why: str

    def __post_init__(self) -> None:
        _check_why(self.why)


Otherwise = Reject | Retry | Supersede


class Action:
    """What a plan does to one row: a `Put`, `Update`, `Delete` or `Check`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Put(Action):
    """Writes one row.

    item: plain Python values, numbers as int or Decimal; `event_id`, `event_fingerprint`, `event_consumer` and
    `event_committed_at` are added. mode: what happens where a row of its key is stored. version: what `newer` compares,
    a number or a text. key: the table's key attributes, the hash key first; not needed for the consumer's own business
    table. condition, otherwise: see `Update`; with `insert`, otherwise says what a stored row means.
    """

    table: str
    item: Mapping[str, Any]
    mode: WriteMode = WriteMode.INSERT
    version: Any = None
    key: str | Sequence[str] | None = field(default=None, kw_only=True)
    condition: Condition | None = field(default=None, kw_only=True)
    otherwise: Otherwise | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_table(self.table)
        if not isinstance(self.item, Mapping):
            raise InvalidPlan(f"Put({self.table!r}): the item is no mapping of names and values")
        if not isinstance(self.mode, WriteMode):
            raise InvalidPlan(f"Put({self.table!r}): the mode is one of WriteMode")
        if self.key is not None:
            _check_key_names(self)
        if self.version is not None and self.mode is not WriteMode.NEWER:
            raise InvalidPlan(f"Put({self.table!r}): a version is compared in the mode NEWER alone")
        if self.condition is not None and self.mode is WriteMode.INSERT:
            raise InvalidPlan(f"Put({self.table!r}): insert takes no condition, as it writes only where no row is")
        _check_condition(self)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names in `key`; none where it is left out."""
        if self.key is None:
            return ()
        names = (self.key,) if isinstance(self.key, str) else self.key
        return tuple(map(str.__str__, names))


@dataclass(frozen=True, slots=True)
class Update(Action):
    """Changes attributes of one row, which is created where it is missing (a condition can forbid that).

    key: name to value, the hash key first. set: path to value. add: attribute to the number to add, from 0 where it
    is missing. remove: paths. A path is a name or leads into a map or list: `address.city`, `lines[0]`.
    condition: what the row must be like; otherwise: what its failing means, `Reject("condition-failed")` by default.
    """

    table: str
    key: Key
    set: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    add: Mapping[str, int | Decimal] = field(default_factory=dict, kw_only=True)
    remove: Sequence[str] = field(default=(), kw_only=True)
    condition: Condition | None = field(default=None, kw_only=True)
    otherwise: Otherwise | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_table(self.table)
        _check_key(self)
        _check_condition(self)
        if not isinstance(self.set, Mapping) or not isinstance(self.add, Mapping):
            raise InvalidPlan(f"Update({self.table!r}): set and add are mappings of names and values")
        if isinstance(self.remove, str) or not isinstance(self.remove, Sequence):
            raise InvalidPlan(f"Update({self.table!r}): remove is a list of paths")
        paths = [Path(path) for path in (*self.set, *self.add, *self.remove)]
        if not paths:
            raise InvalidPlan(f"Update({self.table!r}) changes nothing: to look at a row, use Check")
        if any(one.overlaps(other) for one, other in combinations(paths, 2)):
            raise InvalidPlan(f"Update({self.table!r}): two of the paths in set, add and remove meet in one value")
        if any(Path(path).is_nested for path in self.add):
            raise InvalidPlan(f"Update({self.table!r}): add takes attributes of the row itself, no paths into them")


@dataclass(frozen=True, slots=True)
class Delete(Action):
    """Deletes one row; one that is missing is no failure, unless a condition says so. See `Update`."""

    table: str
    key: Key
    condition: Condition | None = field(default=None, kw_only=True)
    otherwise: Otherwise | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_table(self.table)
        _check_key(self)
        _check_condition(self)


@dataclass(frozen=True, slots=True)
class Check(Action):
    """Writes nothing: the event is committed only if this row fulfils the condition at that moment. See `Update`."""

    table: str
    key: Key
    condition: Condition
    otherwise: Otherwise | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_table(self.table)
        _check_key(self)
        if self.condition is None:
            raise InvalidPlan(f"Check({self.table!r}) has no condition")
        _check_condition(self)


AnyAction = Put | Update | Delete | Check
_ACTIONS = (Put, Update, Delete, Check)  # the union itself is slow to test


@dataclass(frozen=True, slots=True)
class Notification:
    """Tells the topic. A string is sent as it is, any other message as JSON.

    attributes: SNS message attributes; None leaves one out. `event_id` is added to each notification, and where an
    event has several `notification_number`, from 1.
    """

    message: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, Mapping):
            raise InvalidPlan("the attributes of a notification are a mapping of names and values")
        if "event_id" in self.attributes or "notification_number" in self.attributes:
            raise InvalidPlan("event_id and notification_number are added to a notification: choose other names")


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one event changes: up to 99 writes in one transaction, the notifications after it.

    Empty, the event changes nothing and is settled. Several notifications go into `notifications`, as many as the
    ledger row holds: 400 KB with all else in it.
    """

    writes: Sequence[Action] = ()
    notification: Notification | None = None
    notifications: Sequence[Notification] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.writes, Sequence) or not isinstance(self.notifications, Sequence):
            raise InvalidPlan("the writes and the notifications of a plan are lists")
        for write in self.writes:
            if not isinstance(write, _ACTIONS):
                raise InvalidPlan("each write of a plan is a Put, Update, Delete or Check")
        if self.notification is not None and self.notifications:
            raise InvalidPlan("a plan has a notification or notifications, not both")
        for notification in self.all_notifications:
            if not isinstance(notification, Notification):
                raise InvalidPlan("what a plan announces is a Notification; several go into notifications")

    @property
    def all_notifications(self) -> Sequence[Notification]:
        return self.notifications if self.notification is None else (self.notification,)


Planner = Callable[[Event], Plan]


def _check_table(table: Any) -> None:
    if not isinstance(table, str) or not _TABLE_NAME.fullmatch(table):
        # Not what it is instead: where arguments are swapped that is the event, and this text is logged.
        raise InvalidPlan("a table goes by its name, 3 to 255 letters, digits, _, - and dots, not by its ARN")


def _check_why(why: Any) -> None:
    if not isinstance(why, str) or not why.strip():
        raise InvalidPlan("Retry and Supersede say why in a short text")


def _check_key_names(put: Put) -> None:
    names = [put.key] if isinstance(put.key, str) else put.key
    is_listed = isinstance(names, Sequence) and all(isinstance(name, str) and name for name in names)
    if names is None or not is_listed or not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise InvalidPlan(f"Put({put.table!r}): a key is one name or two, as 'sku' or ('order_id', 'line')")


def _check_key(action: Update | Delete | Check) -> None:
    key = action.key
    if not isinstance(key, Mapping) or not 1 <= len(key) <= 2 or not all(isinstance(name, str) for name in key):
        raise InvalidPlan(
            f"{type(action).__name__}({action.table!r}): a key has one or two attributes, as {{'sku': …}}"
        )


def _check_condition(action: AnyAction) -> None:
    condition, otherwise = action.condition, action.otherwise
    if condition is None and otherwise is None:
        return
    what = f"{type(action).__name__}({action.table!r})"
    if condition is not None and not isinstance(condition, Condition):
        raise InvalidPlan(f"{what}: the condition is no Condition; one is made by Attr('name').eq(…) and the like")
    if otherwise is not None and not isinstance(otherwise, Reject | Retry | Supersede):
        raise InvalidPlan(f"{what}: otherwise is Reject, Retry or Supersede")
    is_insert = isinstance(action, Put) and action.mode is WriteMode.INSERT
    if otherwise is not None and condition is None and not is_insert:
        raise InvalidPlan(f"{what}: otherwise without a condition never applies")
