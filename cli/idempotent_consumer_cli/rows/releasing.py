"""Shows claims of a workflow and gives them back, so that a replay runs the effect once more."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from idempotent_consumer.calls import error_code
from idempotent_consumer.items import AttributeValue, Item
from idempotent_consumer.workflow.settings import MESSAGE_ID_KEY, WorkflowSettings
from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.executions import Execution, Executions
from idempotent_consumer_cli.foresight.prospect import LedgerState
from idempotent_consumer_cli.foresight.workflow import HAS_NOT_RUN, HAS_RUN, is_in_question, state_of
from idempotent_consumer_cli.foresight.workflow_lookup import ClaimTable
from idempotent_consumer_cli.rows.claim import COMPLETED, RELEASED, Claim, claim_document, read_claim
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.words import age, count

_NO_ROW = (
    "there is no such claim: is the key written as `inspect` shows it? Case counts, and that of a message id begins "
    "with sqs:. If it has expired, replay --beyond-window"
)
# What the row has to have, or to lack, as it was read.
_AS_READ = ("owner", "parkedAt", "status")
_WARNING = "The effect may have been applied, and a replay runs it once more: see whether it was"
_RAN = "The effect has run, and a replay runs it once more"


@dataclass(frozen=True, slots=True)
class Release:
    """Who gives claims back, and why. is_forced: whether or not an execution runs, or can be read."""

    by: str
    why: str
    is_forced: bool = False

    def entry(self, now_ms: int) -> AttributeValue:
        """Its entry in the row's `audit`."""
        texts = {"by": self.by, "how": "release", "why": self.why}
        return {"M": {"at": {"N": str(now_ms)}, **{name: {"S": text} for name, text in texts.items()}}}


class Releaser:
    """One run. is_dry: change nothing."""

    def __init__(
        self,
        dynamodb: Any,
        step_functions: Any,
        settings: WorkflowSettings,
        screen: Screen,
        release: Release,
        *,
        is_dry: bool,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = ClaimTable(dynamodb, settings)
        self._executions = Executions(step_functions)
        self._settings = settings
        self._screen = screen
        self._release = release
        self._is_dry = is_dry
        self._released: list[str] = []
        # Why the executions of these have failed, as far as they say so.
        self._reasons: dict[str, str] = {}
        self._free = 0
        self._left = 0

    @property
    def how_far(self) -> str:
        """What is done, for one who stops."""
        if self._is_dry:
            return "Nothing was changed."
        done = f" ({', '.join(self._released)})" if self._released else ""
        return f"{count(len(self._released), 'claim')} released{done}. Run it again for the others."

    def run(self, keys: Sequence[str]) -> None:
        """Show the claims, then release them one by one. Raises what a call to DynamoDB raises, and CommandError."""
        claims = self._table.claims(keys)
        owners = {key: self._executions.read(claim.owner) for key, claim in claims.items() if is_in_question(claim)}
        self._show([claims[key] for key in keys if key in claims], owners)
        for key in keys:
            if key in claims:
                self._settle(claims[key], owners.get(key))
            else:
                self._leave(key, _NO_ROW)

    def close(self) -> int:
        """Show the sums, and what is to be done next; returns the exit code."""
        then = self._then()
        for warning in self._warnings():
            self._screen.say(warning)
        if then:
            self._screen.say(then)
        verb = "would be released" if self._is_dry else "released"
        parts = [f"{count(len(self._released), 'claim')} {verb}"]
        parts += [f"{self._free:,} released before"] if self._free else []
        parts += [f"{self._left:,} left"] if self._left else []
        self._screen.say(", ".join(parts) + (". Nothing was changed." if self._is_dry else "."))
        self._screen.emit(
            {
                "kind": "summary",
                "dry_run": self._is_dry,
                "released": len(self._released),
                "released_before": self._free,
                "left": self._left,
                "then": then,
            }
        )
        return 1 if self._left else 0

    def _settle(self, claim: Claim, execution: Execution | None) -> None:
        if claim.status == RELEASED:
            self._free += 1
            self._screen.say(f"{claim.key}: released already: a replay runs the effect")
            self._emit(claim.key, "released-before", claim)
            return
        refusal = _refusal(claim, execution, is_forced=self._release.is_forced)
        if not refusal and not self._is_dry:
            refusal = self._write(claim)
        if refusal:
            self._leave(claim.key, refusal, claim)
            return
        self._released.append(claim.key)
        self._reasons[claim.key] = execution.reason if execution is not None else ""
        self._screen.say(
            f"{claim.key}: " + ("would be released" if self._is_dry else f"released by {self._release.by}")
        )
        self._emit(claim.key, "would-be-released" if self._is_dry else "released", claim)

    def _write(self, claim: Claim) -> str:
        """Give the claim back if it is as it was read. Returns why not; raises what the call raises."""
        now_ms = clock.now_ms()
        entry = self._release.entry(now_ms)
        try:
            self._dynamodb.update_item(**_update(self._settings, claim, entry, now_ms))
            return ""
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            stored: Item = error.response.get("Item", {})
        if not stored:
            return "it was changed meanwhile: its row is gone. Look again"
        if stored.get("audit", {}).get("L", [None])[-1] == entry:
            return ""  # the answer to an earlier try of this very call was lost
        return f"it was changed meanwhile: it is {_state_text(read_claim(stored))} now. Look again"

    def _leave(self, key: str, text: str, claim: Claim | None = None) -> None:
        self._left += 1
        self._screen.say(f"{key}: not released: {text}")
        self._emit(key, "left", claim, text)

    def _emit(self, key: str, outcome: str, claim: Claim | None, reason: str = "") -> None:
        self._screen.emit(
            {
                "kind": "claim",
                "key": key,
                "outcome": outcome,
                "reason": reason,
                "by": self._release.by,
                "why": self._release.why,
                "before": None if claim is None else claim_document(claim),
            }
        )

    def _show(self, claims: Sequence[Claim], owners: dict[str, Execution]) -> None:
        if not claims:
            return
        now_ms = clock.now_ms()
        columns = ["key", "claim", "for", "execution", "why"]
        rows = [_cells(claim, owners.get(claim.key), now_ms) for claim in claims]
        self._screen.table(f"Claims of {self._settings.consumer_name}", columns, rows)

    def _warnings(self) -> list[str]:
        """What a replay does to the effects of what is released."""
        known = {HAS_RUN, *HAS_NOT_RUN}
        ran = [key for key in self._released if self._reasons[key] == HAS_RUN]
        warnings = [f"{_RAN}: {', '.join(ran)}. Rather `drop` the letter."] if ran else []
        is_uncertain = any(self._reasons[key] not in known for key in self._released)
        return [*warnings, f"{_WARNING}."] if is_uncertain else warnings

    def _then(self) -> str:
        if not self._released or self._is_dry:
            return ""
        ids = " ".join(f"--id {shlex.quote(key)}" for key in self._released)
        # A message that is sent anew has another id, and so another key.
        is_by_message = any(key.startswith(MESSAGE_ID_KEY) for key in self._released)
        again = "with the attribute dead_letter_key" if is_by_message else "again"
        return (
            f"Next: idempotent-consumer replay --name {self._settings.consumer_name} {ids} "
            f"(where there is no letter, send the message {again})."
        )


def _refusal(claim: Claim, execution: Execution | None, *, is_forced: bool) -> str:
    """Why a claim is not to be given back; empty where it is."""
    if claim.status == COMPLETED:
        return "it is completed: the effect has run. To run it again, send the event under another key"
    if not claim.is_readable:
        return "its row was written by no workflow"
    if execution is None or is_forced:
        return ""
    if execution.is_running:
        return "its execution runs, and the effect could run twice: wait for its end, or stop it; else --force"
    if not execution.status:
        return f"{execution.problem}. If you know that it does not run: --force"
    return ""


def _update(settings: WorkflowSettings, claim: Claim, entry: AttributeValue, now_ms: int) -> dict[str, Any]:
    as_read = {name: claim.item.get(name) for name in _AS_READ}
    conditions = [
        f"attribute_not_exists(#{name})" if value is None else f"#{name} = :{name}" for name, value in as_read.items()
    ]
    names = (*_AS_READ, "audit", "detail", "reason", "releasedAt")
    return {
        "TableName": settings.table,
        "Key": {"pk": {"S": claim.key}, "sk": {"S": settings.namespace}},
        "ConditionExpression": " AND ".join(["attribute_exists(pk)", *conditions]),
        "UpdateExpression": "SET #status = :released, #releasedAt = :now, "
        "#audit = list_append(if_not_exists(#audit, :none), :entry) REMOVE #parkedAt, #reason, #detail",
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": {
            **{f":{name}": value for name, value in as_read.items() if value is not None},
            ":entry": {"L": [entry]},
            ":none": {"L": []},
            ":now": {"N": str(now_ms)},
            ":released": {"S": RELEASED},
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _state_text(claim: Claim) -> str:
    state = state_of(claim, None)
    return f"claimed by {claim.owner}" if state is LedgerState.IN_PROGRESS else state.value


def _cells(claim: Claim, execution: Execution | None, now_ms: int) -> list[Any]:
    return [
        claim.key,
        state_of(claim, execution).value,
        age(now_ms, claim.since_ms),
        claim.owner or None,
        claim.why or (execution.reason if execution is not None else "") or None,
    ]
