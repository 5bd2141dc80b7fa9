"""Claims: at most one worker is at an operation, and only it can say what became of it.

Each write is one `UpdateItem` under a condition. Its fence is the owner's token, the attempt's number and the lease: a
worker that wakes up after its lease, or after another attempt, changes nothing. A refused write returns the row that
stands in its way.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from idempotent_consumer import calls
from idempotent_consumer.answer import PASSING_REASONS, Outcome, Verdict
from idempotent_consumer.calls import CALL_ERRORS, OUT_OF_TIME, Budget, error_code, failed_call
from idempotent_consumer.claims.claim import Change, Claim, fence, number, unchanged
from idempotent_consumer.claims.resolution import Decision, Resolution, check_resolvable
from idempotent_consumer.claims.row import Row, State, StoredResult, read_row
from idempotent_consumer.commit import pending_shard
from idempotent_consumer.effect import idempotency_key
from idempotent_consumer.items import Item
from idempotent_consumer.message import REFUSED_CHARACTER
from idempotent_consumer.operation_settings import OperationSettings

_UNDECIDED = Verdict(Outcome.RETRY, "ledger-undecided", "the row was refused without being shown, or is gone")
_UNREADABLE = Verdict(Outcome.RETRY, "ledger-row-unreadable", "not the row of an operation")
# What stands in the dead letter too, and is read by people.
_MAX_DETAIL = 1_000
_ATTEMPTS = 5
_LONGEST_PAUSE = 5
_DOUBTS = ("parked_at", "uncertain_at")
_UNFINISHED = ("next_attempt_at", "pending_shard", *_DOUBTS)
# What the SDK met at its last try; an earlier one may have been made all the same.
_PERHAPS_WRITTEN = PASSING_REASONS | {"unavailable"}


class ClaimFailed(Exception):
    """The call failed, so nobody knows whether the row was written; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class Claims:
    """The operations of one ledger table. dynamodb: a client made by `aws.Clients`. now_ms: epoch milliseconds.

    A write returns None once the row is as it says, or the row that refuses it. Each raises ClaimFailed where the call
    fails; the row may be written then.
    """

    def __init__(self, dynamodb: Any, settings: OperationSettings, now_ms: Callable[[], int]) -> None:
        self._dynamodb = dynamodb
        self._settings = settings
        self._now_ms = now_ms

    def claim(self, event_id: str, fingerprint: str, message_id: str, budget: Budget) -> Claim | Row:
        """Claim an operation that the ledger does not hold; returns the row where it does."""
        now_ms = self._now_ms()
        key = idempotency_key(self._settings.consumer_name, event_id)
        claim = Claim(event_id, key, _new_owner(), 1, 1, now_ms + self._settings.lease_ms, now_ms)
        sets = {
            **self._claimed(claim, message_id, now_ms),
            "fingerprint": {"S": fingerprint},
            "idempotency_key": {"S": key},
            "created_at": number(now_ms),
            "since": number(now_ms),
            "pending_shard": pending_shard(event_id),
        }
        return self._write_claim(claim, Change(event_id, sets, absent=["event_id"]), budget)

    def take(self, row: Row, message_id: str, budget: Budget, *, is_uncertain: bool = False) -> Claim | Row:
        """Claim the next attempt, if the row is still as it was read; returns the row where it is not.

        is_uncertain: whether an earlier attempt may have been applied, all the same.
        """
        now_ms = self._now_ms()
        claim = Claim(
            row.event_id,
            row.idempotency_key,
            _new_owner(),
            row.attempt + 1,
            row.tries + 1,
            now_ms + self._settings.lease_ms,
            row.since_ms,
            is_uncertain,
        )
        sets = self._claimed(claim, message_id, now_ms)
        removes = ["detail", "next_attempt_at", "reason"]
        if is_uncertain:
            sets["uncertain_at"] = number(row.uncertain_ms or row.lease_until_ms)
        else:
            removes.append("uncertain_at")
        return self._write_claim(claim, Change(row.event_id, sets, removes, **unchanged(row)), budget)

    def renew(self, claim: Claim, budget: Budget) -> Claim | Row:
        """Make the lease last from now on; returns the row where the claim is lost.

        For work that outlasts a lease. In Lambda none does: a lease outlasts the function.
        """
        renewed = replace(claim, lease_until_ms=self._now_ms() + self._settings.lease_ms)
        sets = {"lease_until": number(renewed.lease_until_ms)}
        return self._write(Change(claim.event_id, sets, **fence(claim)), budget) or renewed

    def release(self, claim: Claim, budget: Budget) -> Row | None:
        """Give back a claim whose effect has not begun: the attempt does not count, the next one may come at once."""
        now_ms = self._now_ms()
        sets: Item = {"tries": number(claim.tries - 1), "next_attempt_at": number(now_ms)}
        if claim.is_uncertain:
            sets["lease_until"] = number(now_ms)
        else:
            sets["status"] = {"S": State.FAILED_RETRYABLE.value}
        return self._write(Change(claim.event_id, sets, **fence(claim)), budget)

    def complete(self, standing: Claim | Row, result: StoredResult, budget: Budget) -> Row | None:
        """Record that the effect was applied, with its result.

        standing: the claim of the attempt, or a row without a worker that the provider was asked about.
        """
        return self._settle(standing, *self._completed(result), budget)

    def fail(self, standing: Claim | Row, reason: str, detail: str, budget: Budget) -> Row | None:
        """Record that it was certainly not applied, and never will be."""
        return self._settle(standing, *self._failed(reason, detail), budget)

    def fail_for_now(
        self, standing: Claim | Row, reason: str, detail: str, retry_at_ms: int, budget: Budget
    ) -> Row | None:
        """Record that it was certainly not applied so far; the next attempt is no earlier than `retry_at_ms`."""
        sets = {"status": {"S": State.FAILED_RETRYABLE.value}, "next_attempt_at": number(retry_at_ms)}
        return self._settle(standing, sets | _explained(reason, detail), _DOUBTS, budget)

    def doubt(self, claim: Claim, reason: str, detail: str, retry_at_ms: int | None, budget: Budget) -> Row | None:
        """Record why nobody knows whether it was applied. It stays IN_PROGRESS.

        retry_at_ms: where another attempt is safe, its time, and the lease ends now; None keeps the lease.
        """
        now_ms = self._now_ms()
        sets = {"uncertain_at": number(now_ms)} | _explained(reason, detail)
        if retry_at_ms is not None:
            sets |= {"lease_until": number(now_ms), "next_attempt_at": number(retry_at_ms)}
        return self._settle(claim, sets, [], budget)

    def park(self, standing: Claim | Row, reason: str, detail: str, budget: Budget) -> Row | None:
        """Leave an uncertain operation to a person: nothing is tried any more until one has decided."""
        sets = {"parked_at": number(self._now_ms())} | _explained(reason, detail)
        return self._settle(standing, sets, ["next_attempt_at"], budget)

    def resolve(self, row: Row, resolution: Resolution, budget: Budget) -> Row | None:
        """Record what a person has decided, and who and why. The attempt is raised: a worker of before is fenced off.

        Raises NotResolvable where nothing is to be decided.
        """
        now_ms = self._now_ms()
        check_resolvable(row, resolution.decision, now_ms)
        if resolution.decision is Decision.COMPLETED:
            sets, removes = self._completed(StoredResult.of(resolution.result))
        elif resolution.decision is Decision.FAILED:
            sets, removes = self._failed("resolved-failed", resolution.why)
        else:
            sets, removes = _anew(row.event_id, now_ms)
        sets |= {"attempt": number(row.attempt + 1), "audit": {"L": [*row.audit, resolution.entry(now_ms)]}}
        return self._write(Change(row.event_id, sets, ["owner", *removes], **unchanged(row)), budget)

    def _claimed(self, claim: Claim, message_id: str, now_ms: int) -> Item:
        return {
            "status": {"S": State.IN_PROGRESS.value},
            "owner": {"S": claim.owner},
            "attempt": number(claim.attempt),
            "tries": number(claim.tries),
            "lease_until": number(claim.lease_until_ms),
            "claimed_at": number(now_ms),
            "message_id": {"S": message_id},
        }

    def _completed(self, result: StoredResult) -> tuple[Item, Sequence[str]]:
        """What makes a row completed: what is set, and what is removed."""
        sets = self._final(State.COMPLETED) | result.attributes | _explained(result.problem, "")
        return sets, [name for name in ("reason", "detail", *_UNFINISHED) if name not in sets]

    def _failed(self, reason: str, detail: str) -> tuple[Item, Sequence[str]]:
        """The same of one that has failed for good."""
        return self._final(State.FAILED_FINAL) | _explained(reason, detail), _UNFINISHED

    def _final(self, state: State) -> Item:
        now_ms = self._now_ms()
        return {
            "status": {"S": state.value},
            "settled_at": number(now_ms),
            "ttl": number(now_ms // 1000 + self._settings.ttl_window_seconds),
        }

    def _write_claim(self, claim: Claim, change: Change, budget: Budget) -> Claim | Row:
        try:
            return self._write(change, budget) or claim
        except ClaimFailed as failure:
            if failure.verdict.reason in _PERHAPS_WRITTEN:
                # Its effect will not begin, so it must not be taken for uncertain.
                with suppress(ClaimFailed):
                    self.release(claim, budget)
            raise

    def _settle(self, standing: Claim | Row, sets: Item, removes: Sequence[str], budget: Budget) -> Row | None:
        """Record what is known by now. To lose it would make the outcome uncertain: tried as long as there is time."""
        condition = fence(standing) if isinstance(standing, Claim) else unchanged(standing)
        return self._write(Change(standing.event_id, sets, removes, **condition), budget, is_lasting=True)

    def _write(self, change: Change, budget: Budget, *, is_lasting: bool = False) -> Row | None:
        failure = OUT_OF_TIME
        attempt = 0
        while budget.allows_call():
            try:
                self._dynamodb.update_item(**change.request(self._settings.ledger_table, self._now_ms()))
                return None
            except CALL_ERRORS as error:
                if error_code(error) == "ConditionalCheckFailedException":
                    return _standing(change, error)
                failure = failed_call(error, "UpdateItem")
            if not (failure.reason in PASSING_REASONS or (is_lasting and failure.reason == "unavailable")):
                break
            attempt += 1
            if attempt >= _ATTEMPTS and not is_lasting:
                break
            calls.pause(min(attempt - 1, _LONGEST_PAUSE))
        raise ClaimFailed(failure)


def _standing(change: Change, error: Exception) -> Row | None:
    item = getattr(error, "response", {}).get("Item")
    if not item:
        raise ClaimFailed(_UNDECIDED)
    if change.is_made_in(item):
        return None
    try:
        return read_row(item)
    except ValueError:
        raise ClaimFailed(_UNREADABLE) from None


def _anew(event_id: str, now_ms: int) -> tuple[Item, Sequence[str]]:
    """What makes a row, final or not, one to be tried at once, its attempts counted anew: set, and removed."""
    sets: Item = {
        "status": {"S": State.FAILED_RETRYABLE.value},
        "tries": number(0),
        "since": number(now_ms),
        "next_attempt_at": number(now_ms),
        "pending_shard": pending_shard(event_id),
    }
    return sets, [*_DOUBTS, "reason", "detail", "settled_at", "ttl"]


def _explained(reason: str, detail: str) -> Item:
    told = {"reason": reason, "detail": REFUSED_CHARACTER.sub("?", detail)[:_MAX_DETAIL]}
    return {name: {"S": text} for name, text in told.items() if text}


def _new_owner() -> str:
    return secrets.token_hex(16)
