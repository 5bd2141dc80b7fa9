"""The actions of one transaction of several events, and which of them are whose. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from idempotent_consumer.commit import Commit

# As wide as the widest sum of numbers that share an action.
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Transaction:
    """actions: of `TransactWriteItems`. indexes: of each event's actions, the ledger's first, then its writes'."""

    actions: Sequence[Mapping[str, Any]]
    indexes: Sequence[Sequence[int]]


def combine(commits: Sequence[Commit]) -> Transaction:
    """One transaction of these events. Writes that share a row are one action: what they add is added up."""
    actions: list[Mapping[str, Any]] = []
    indexes: list[list[int]] = []
    shared: dict[Hashable, int] = {}
    for commit in commits:
        ledger, *others = commit.transaction()
        own = [len(actions)]
        actions.append(ledger)
        for write, action in zip(commit.writes, others, strict=True):
            at = len(actions) if write.sharing is None else shared.setdefault((write.key, write.sharing), len(actions))
            if at == len(actions):
                actions.append(action)
            elif "Update" in action:
                actions[at] = {"Update": _added(actions[at]["Update"], action["Update"])}
            own.append(at)
        indexes.append(own)
    return Transaction(actions, indexes)


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both name the same attributes in the same order, so their placeholders are the same."""
    more = other["ExpressionAttributeValues"]
    sums = {
        placeholder: {"N": str(_EXACT.add(Decimal(value["N"]), Decimal(more[placeholder]["N"])))}
        for placeholder, value in one["ExpressionAttributeValues"].items()
    }
    return {**one, "ExpressionAttributeValues": sums}
