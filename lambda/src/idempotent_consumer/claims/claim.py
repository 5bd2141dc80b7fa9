"""A claim, and the writes under its fence: the owner's token, the attempt's number and the lease. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idempotent_consumer.claims.row import Row, State
from idempotent_consumer.items import Item


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to make one attempt at an operation, until `lease_until_ms` (epoch milliseconds).

    owner: a token that no other claim has. attempt: the fencing token. tries: attempts so far, this one included.
    is_uncertain: an earlier attempt may have been applied.
    """

    event_id: str
    idempotency_key: str
    owner: str
    attempt: int
    tries: int
    lease_until_ms: int
    since_ms: int
    is_uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One write: what it sets and removes, and what must hold of the row. within_lease: its lease must run."""

    event_id: str
    sets: Item
    removes: Sequence[str] = ()
    equal: Item = field(default_factory=dict)
    absent: Sequence[str] = ()
    within_lease: bool = False

    def request(self, table: str, now_ms: int) -> dict[str, Any]:
        conditions = [
            *(f"#{name} = :is_{name}" for name in self.equal),
            *(f"attribute_not_exists(#{name})" for name in self.absent),
            *(["#lease_until > :now"] if self.within_lease else []),
        ]
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in self.sets)
        if self.removes:
            update += " REMOVE " + ", ".join(f"#{name}" for name in self.removes)
        names = {*self.sets, *self.removes, *self.equal, *self.absent}
        names |= {"lease_until"} if self.within_lease else set()
        return {
            "TableName": table,
            "Key": {"event_id": {"S": self.event_id}},
            "UpdateExpression": update,
            "ConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": {f"#{name}": name for name in sorted(names)},
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in self.sets.items()},
                **{f":is_{name}": value for name, value in self.equal.items()},
                **({":now": number(now_ms)} if self.within_lease else {}),
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def is_made_in(self, item: Item) -> bool:
        """Whether the row is as this write makes it: its first answer was lost, and the SDK's second try refused."""
        whose = {name: value for name, value in self.equal.items() if name in ("attempt", "owner")}
        made = {**{name: value for name, value in whose.items() if name not in self.removes}, **self.sets}
        is_as_made = all(item.get(name) == value for name, value in made.items())
        return is_as_made and not any(name in item for name in self.absent if name not in {"event_id", *self.sets})


def fence(claim: Claim) -> Mapping[str, Any]:
    """The fence: this very attempt, while its lease runs."""
    return {
        "equal": {
            "status": {"S": State.IN_PROGRESS.value},
            "owner": {"S": claim.owner},
            "attempt": number(claim.attempt),
        },
        "absent": ["parked_at"],
        "within_lease": True,
    }


def unchanged(row: Row) -> Mapping[str, Any]:
    """The row as it was read. A worker that has renewed its lease since, or a person who has decided, is seen."""
    equal = {
        "status": {"S": row.state.value},
        "attempt": number(row.attempt),
        "lease_until": number(row.lease_until_ms),
    }
    absent = []
    for name, value in (
        ("owner", None if row.owner is None else {"S": row.owner}),
        ("parked_at", None if row.parked_ms is None else number(row.parked_ms)),
    ):
        if value is None:
            absent.append(name)
        else:
            equal[name] = value
    return {"equal": equal, "absent": absent}


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}
