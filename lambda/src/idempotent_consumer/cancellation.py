"""What a transaction that failed says of each of its events. Pure.

A cancellation has a reason for each action, at the action's index; the ledger's action is the first of its event, and
its reason outranks the others. AWS does not promise to name every action that failed.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from idempotent_consumer.answer import PASSING_REASONS, Outcome, Verdict
from idempotent_consumer.business_row import judge_business_row, judge_identity
from idempotent_consumer.calls import retry_verdict
from idempotent_consumer.commit import Commit, judge_ledger_row

_CONDITION_FAILED = "ConditionalCheckFailed"
_CAN_NEVER_SUCCEED = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
_OPERATION = "TransactWriteItems"

Reasons = Sequence[Mapping[str, Any]]


class Next(Enum):
    """What follows from a refusal."""

    SETTLED = "the verdict stands"
    UNLESS_KNOWN = "the verdict stands unless a read of the ledger, made now, finds the event"
    AGAIN = "another attempt; the verdict stands when there is none left"
    ONCE_MORE = "one more attempt, after the others'; then the verdict stands"
    ASK_AND_AGAIN = "the same, after a read of the ledger"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a failed transaction says of one event."""

    next: Next
    verdict: Verdict


_UNDECIDED = Refusal(
    Next.ASK_AND_AGAIN, Verdict(Outcome.RETRY, "ledger-undecided", "the transaction was refused without saying why")
)


def read_reasons(
    commits: Sequence[Commit], indexes: Sequence[Sequence[int]], reasons: Reasons | None
) -> list[Refusal | None]:
    """The refusal of each event; None for one of several that no reason names, or where the reasons do not fit.

    indexes: those of each event's reasons, as `transaction.combine` gives them.
    """
    if not reasons or len(reasons) != 1 + max(map(max, indexes)) or _is_shared(_never(reasons), indexes):
        refusals: list[Refusal | None] = [None] * len(commits)
    else:
        refusals = [
            _read(commit, [reasons[index] for index in own]) for commit, own in zip(commits, indexes, strict=True)
        ]
    return refusals if len(commits) > 1 else [refusals[0] or _UNDECIDED]


def read_error(commits: Sequence[Commit], code: str, verdict: Verdict) -> list[Refusal | None]:
    """The same for a transaction that failed without reasons; verdict: what `calls.failed_call` makes of the error."""
    refusal: Refusal | None = None
    if verdict.reason in PASSING_REASONS:
        refusal = Refusal(Next.AGAIN, verdict)
    elif verdict.reason == "misconfigured" and len({commit.resources for commit in commits}) == 1:
        # A right or a table is missing, for all of them. Where they need different ones, smaller groups tell.
        refusal = Refusal(Next.SETTLED, replace(verdict, detail=f"{verdict.detail}{_written_by(commits[0])}"))
    elif len(commits) == 1:
        is_invalid = code == "ValidationException"
        refusal = Refusal(Next.UNLESS_KNOWN, _refused(code)) if is_invalid else Refusal(Next.SETTLED, verdict)
    return [refusal] * len(commits)


def _never(reasons: Reasons) -> set[int]:
    return {index for index, reason in enumerate(reasons) if reason.get("Code") in _CAN_NEVER_SUCCEED}


def _is_shared(failed: Set[int], indexes: Sequence[Sequence[int]]) -> bool:
    """Whether several events have a part in one of these actions: then it is not said whose is the one that failed."""
    return any(sum(index in own for own in indexes) > 1 for index in failed)


def _written_by(commit: Commit) -> str:
    """The error itself does not say which table it is about."""
    tables = sorted({table for _, table in commit.resources})
    return f" (it writes to {', '.join(tables)})" if tables else ""


def _read(commit: Commit, reasons: Reasons) -> Refusal | None:
    codes = [reason.get("Code", "Unknown") for reason in reasons]
    if codes[0] == _CONDITION_FAILED:
        row = reasons[0].get("Item")
        return Refusal(Next.SETTLED, judge_ledger_row(row, commit.event)) if row else _UNDECIDED
    if codes[0] not in ("None", *_CAN_NEVER_SUCCEED):
        return _by_code(codes[0])
    never = next((code for code in codes if code in _CAN_NEVER_SUCCEED), None)
    if never:
        return Refusal(Next.UNLESS_KNOWN, _refused(never))
    other = next((code for code in codes if code not in ("None", _CONDITION_FAILED)), None)
    if other:
        return _by_code(other)
    return _read_business(commit, reasons)


def _read_business(commit: Commit, reasons: Reasons) -> Refusal | None:
    """A refused business row decides only where the ledger, read after the refusal, knows nothing of the event.

    A row that was put for this very event outranks the others; of these the first in the plan's order decides.
    """
    refused = [
        (write, reason.get("Item"))
        for write, reason in zip(commit.writes, reasons[1:], strict=True)
        if reason.get("Code") == _CONDITION_FAILED
    ]
    if not refused:
        return None
    for write, row in refused:
        known = judge_identity(row, commit.event, write) if row else None
        if known is not None:
            return Refusal(Next.UNLESS_KNOWN, known)
    write, row = refused[0]
    if row:
        verdict = judge_business_row(row, commit.event, write)
    elif write.is_conditional:
        verdict = write.otherwise
    else:
        return _UNDECIDED
    return Refusal(Next.ONCE_MORE if verdict.outcome is Outcome.RETRY else Next.UNLESS_KNOWN, verdict)


def _by_code(code: str) -> Refusal:
    verdict = retry_verdict(code, _OPERATION)
    return Refusal(Next.AGAIN if verdict.reason in PASSING_REASONS else Next.SETTLED, verdict)


def _refused(code: str) -> Verdict:
    return Verdict(Outcome.REJECTED, "refused-by-dynamodb", f"{_OPERATION}: {code}")
