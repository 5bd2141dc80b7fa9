"""From an action of a plan to an action of the transaction. Pure."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.condition import Path, Placeholders
from idempotent_consumer.event import Event
from idempotent_consumer.items import AttributeValue, Item, check_size, to_attribute_value, to_item
from idempotent_consumer.keys import business_key, check_business_key, check_key, row_key
from idempotent_consumer.plan import Action, AnyAction, Check, Delete, Put, Retry, Supersede, Update
from idempotent_consumer.rejection import InvalidPlan, Rejected
from idempotent_consumer.settings import Settings, WriteMode

OWN_ATTRIBUTES = frozenset({"event_id", "event_fingerprint", "event_consumer", "event_committed_at", "event_version"})
_SUMMABLE_DIGITS = 18
# What a refused write means where the plan does not say.
ROW_EXISTS = Verdict(Outcome.CONFLICT, "row-exists", "a row of this key is stored that must not be overwritten")


@dataclass(frozen=True, slots=True)
class Write:
    """One business action of the transaction, with what is needed to judge its refusal.

    mode, version: of a Put. key: the same for two writes of one row. size: bytes of the row, or of what is changed in
    it. otherwise: what it means that the plan's condition fails, or that an inserted row is stored already.
    is_conditional: it can be refused where no row is. sharing: writes of one row that have the same go as one action of
    a transaction; None: no transaction takes it and another one of its row.
    """

    action: Mapping[str, Any]
    mode: WriteMode | None
    version: AttributeValue | None
    consumer: AttributeValue
    key: Hashable = None
    size: int = 0
    otherwise: Verdict = ROW_EXISTS
    is_conditional: bool = False
    sharing: Hashable = None

    @property
    def table(self) -> str:
        return str(next(iter(self.action.values()))["TableName"])


def prepare_write(action: Action, event: Event, now_ms: int, settings: Settings) -> Write:
    """Raises Rejected for values that no table takes, InvalidPlan for a plan that makes no sense."""
    assert isinstance(action, AnyAction)  # as Plan has checked
    if action.table == settings.ledger_table:
        raise InvalidPlan(f"{type(action).__name__}({action.table!r}): the ledger is written by the consumer alone")
    return _put(action, event, now_ms, settings) if isinstance(action, Put) else _keyed(action, settings)


# --- Put


def _put(put: Put, event: Event, now_ms: int, settings: Settings) -> Write:
    values = _with_identity(put.item, event, settings.consumer_name)
    if "event_committed_at" in values:
        raise _reserved("event_committed_at")
    values["event_committed_at"] = now_ms
    key = _key_of_row(put, values, settings)
    version = _version(put)
    if version is not None:
        if values.get("event_version", put.version) != put.version:
            raise Rejected("reserved-attribute", "event_version is written by the consumer; select another name")
        values["event_version"] = put.version
    item = to_item(values)
    size = check_size(item, f"the row in {put.table}")
    action = {
        "TableName": put.table,
        "Item": item,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **_condition(put, next(iter(key)), item),
    }
    return Write(
        {"Put": action},
        put.mode,
        version,
        item["event_consumer"],
        row_key(put.table, {name: item[name] for name in key}),
        size,
        _otherwise(put),
        put.condition is not None,
    )


def _with_identity(values: Mapping[str, Any], event: Event, consumer_name: str) -> dict[str, Any]:
    """The row's values with what tells who wrote it; a value of the event's own is never replaced."""
    result = dict(values)
    identity = {"event_id": event.id, "event_fingerprint": event.fingerprint, "event_consumer": consumer_name}
    for name, value in identity.items():
        own = result.get(name, value)
        if isinstance(own, bool) or not isinstance(own, str | int) or str(own) != value:
            raise _reserved(name)
        result[name] = value
    return result


def _reserved(name: str) -> Rejected:
    return Rejected("reserved-attribute", f"{name} is written by the consumer; select other names in event.item")


def _key_of_row(put: Put, values: dict[str, Any], settings: Settings) -> list[str]:
    """The names of the row's key, whose values are checked, in place."""
    names = put.key_names
    if put.table != settings.business_table:
        if not names:
            raise InvalidPlan(
                f"Put({put.table!r}) names no key, which only the consumer's business table can do without"
            )
        check_key(values, names, put.table)
        return list(names)
    own = [key.name for key in business_key(settings)]
    if names and set(names) != set(own):
        raise _other_key(put, settings)
    check_business_key(values, settings)
    return own


def _version(put: Put) -> AttributeValue | None:
    if put.mode is not WriteMode.NEWER:
        return None
    is_number = isinstance(put.version, int | Decimal) and not isinstance(put.version, bool)
    if not is_number and not (isinstance(put.version, str) and put.version):
        raise Rejected(
            "version-missing",
            "the version of a newer row (event.version, or that of the Put) is neither a number nor a string",
        )
    return to_attribute_value(put.version, "event.version")


def _condition(put: Put, hash_key: str, item: Item) -> dict[str, Any]:
    if put.mode is WriteMode.INSERT:
        return {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": hash_key},
        }
    if put.mode is WriteMode.UPSERT:
        # An event that wrote this row and whose ledger row has expired must not write it again.
        expression = (
            "attribute_not_exists(#event_id) OR #event_id <> :event_id "
            "OR attribute_not_exists(#consumer) OR #consumer <> :consumer"
        )
        names = {"#event_id": "event_id", "#consumer": "event_consumer"}
        values = {":event_id": item["event_id"], ":consumer": item["event_consumer"]}
    else:
        expression = "attribute_not_exists(#key) OR #version < :version"
        names = {"#key": hash_key, "#version": "event_version"}
        values = {":version": item["event_version"]}
    if put.condition is not None:
        placeholders = Placeholders(put.table)
        expression = f"({expression}) AND {placeholders.condition(put.condition)}"
        own = placeholders.arguments()
        names |= own.get("ExpressionAttributeNames", {})
        values |= own.get("ExpressionAttributeValues", {})
    return {
        "ConditionExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


# --- Update, Delete, Check


def _keyed(action: Update | Delete | Check, settings: Settings) -> Write:
    values = dict(action.key)
    if action.table == settings.business_table:
        if set(values) != {key.name for key in business_key(settings)}:
            raise _other_key(action, settings)
        check_business_key(values, settings)
    else:
        check_key(values, values, action.table)
    key_item = to_item(values)
    placeholders = Placeholders(action.table)
    request: dict[str, Any] = {"TableName": action.table, "Key": key_item}
    if isinstance(action, Update):
        request["UpdateExpression"] = _update_expression(action, placeholders)
    if action.condition is not None:
        request["ConditionExpression"] = placeholders.condition(action.condition)
    arguments = placeholders.arguments()
    size = check_size(
        {**key_item, **arguments.get("ExpressionAttributeValues", {})}, f"what is changed in a row of {action.table}"
    )
    return Write(
        {_API_NAMES[type(action)]: {**request, **arguments}},
        None,
        None,
        {"S": settings.consumer_name},
        row_key(action.table, key_item),
        size,
        _otherwise(action),
        action.condition is not None,
        _sharing(action, request, arguments),
    )


_API_NAMES: Mapping[type, str] = {Update: "Update", Delete: "Delete", Check: "ConditionCheck"}


def _update_expression(update: Update, placeholders: Placeholders) -> str:
    def clause(word: str, changes: Mapping[str, Any] | None, joint: str, paths: Iterable[str]) -> str:
        parts = []
        for text in paths:
            path = _changeable(Path(text), update)
            value = joint + placeholders.value(changes[text], text) if changes is not None else ""
            parts.append(placeholders.path(path) + value)
        return f"{word} {', '.join(parts)}" if parts else ""

    for name, number in update.add.items():
        if isinstance(number, bool) or not isinstance(number, int | Decimal):
            raise Rejected(
                "value-type", f"{update.table}: {name}: only a number can be added, no {type(number).__name__}"
            )
    clauses = [
        clause("SET", update.set, " = ", update.set),
        clause("REMOVE", None, "", update.remove),
        clause("ADD", update.add, " ", update.add),
    ]
    return " ".join(text for text in clauses if text)


def _sharing(action: Update | Delete | Check, request: Mapping[str, Any], arguments: Mapping[str, Any]) -> Hashable:
    """Many events may add to one counter, or ask the same of one row: they need not wait for each other."""
    if isinstance(action, Check):
        return request["ConditionExpression"], repr(arguments)
    if not isinstance(action, Update) or action.set or action.remove or action.condition is not None:
        return None
    names = tuple(arguments["ExpressionAttributeNames"].values())
    return names if all(_is_summable(number) for number in action.add.values()) else None


def _is_summable(number: int | Decimal) -> bool:
    """Whether as many as a transaction holds can be added up within DynamoDB's 38 digits."""
    exponent = Decimal(number).as_tuple().exponent
    size = Decimal(number).copy_abs()  # abs() would round as the plan's own context says
    return isinstance(exponent, int) and exponent >= -_SUMMABLE_DIGITS and size < 10**_SUMMABLE_DIGITS


def _changeable(path: Path, update: Update) -> Path:
    if path.attribute in OWN_ATTRIBUTES:
        raise Rejected("reserved-attribute", f"{path.attribute} is written by the consumer; take another name")
    if path.attribute in update.key:
        raise Rejected("key-changed", f"{update.table}: {path.attribute} is a key, which no update can change")
    return path


# --- what both need


def _otherwise(action: AnyAction) -> Verdict:
    otherwise = action.otherwise
    if otherwise is None:
        if action.condition is None:
            return ROW_EXISTS
        return Verdict(Outcome.REJECTED, "condition-failed", f"the plan's condition on a row of {action.table}")
    if isinstance(otherwise, Retry):
        return Verdict(Outcome.RETRY, otherwise.why)
    if isinstance(otherwise, Supersede):
        return Verdict(Outcome.SUPERSEDED, otherwise.why)
    return Verdict(Outcome.REJECTED, otherwise.reason, otherwise.detail)


def _other_key(action: AnyAction, settings: Settings) -> InvalidPlan:
    names = ", ".join(key.name for key in business_key(settings))
    return InvalidPlan(f"{type(action).__name__}({action.table!r}): the key of this table is {names}")
