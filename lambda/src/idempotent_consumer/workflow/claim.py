"""Claims of a workflow: under one key at most one execution runs the effect.

One `UpdateItem` decides. modules/workflow/definition.tf writes the same row, where Step Functions claims without a
function, and records there what became of the effect.
"""

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from idempotent_consumer.answer import Verdict
from idempotent_consumer.calls import CALL_ERRORS, error_code, failed_call
from idempotent_consumer.items import MAX_HASH_KEY_BYTES, Item
from idempotent_consumer.workflow.settings import MAX_CLAIM_SECONDS, MESSAGE_ID_KEY

NAMESPACE = "ingestion"
RETENTION_SECONDS = 86_400
# Amazon DynamoDB Developer Guide, "Quotas": a sort key.
_MAX_RANGE_KEY_BYTES = 1_024

# A claim that is there stands, past its time to live too, until DynamoDB has deleted it. Its owner may ask again: it
# may have died, or its answer been lost, before the effect began.
_CONDITION = (
    "attribute_not_exists(pk) OR #status = :released"
    " OR (#owner = :owner AND #status = :status AND attribute_not_exists(parkedAt))"
)
_OF_BEFORE = ("completedAt", "detail", "parkedAt", "reason", "releasedAt", "result")


class InvalidRequest(ValueError):
    """The guard was asked in a way that makes no sense; the message names the field and the rule."""


class ClaimUnavailable(RuntimeError):
    """The call failed, so nobody knows whether the key is claimed: its owner asks again. `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.reason}: {verdict.detail}")
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What the guard is asked.

    key: 1 to 2,048 UTF-8 bytes; without it `sqs:` and the message id. owner: the execution's id; without it nobody can
    ask again. retention_seconds: how long the key is remembered from now on. fingerprint: of the content; where the
    claim has another, it is a conflict. wants_result: the answer also has the claim's status, and its result.
    """

    key: str
    namespace: str
    owner: str
    retention_seconds: int
    message_id: str | None
    fingerprint: str | None
    wants_result: bool

    @classmethod
    def read(cls, request: Any) -> "ClaimRequest":
        """Raises InvalidRequest."""
        if not isinstance(request, dict):
            raise InvalidRequest(f"the request is {type(request).__name__}, not an object")
        message_id = _text(request, "messageId")
        key = _text(request, "key", MAX_HASH_KEY_BYTES)
        if key is None and message_id is None:
            raise InvalidRequest("key and messageId are both missing: one of them is needed")
        seconds = request.get("retentionSeconds", RETENTION_SECONDS)
        if type(seconds) is not int or not 1 <= seconds <= MAX_CLAIM_SECONDS:
            raise InvalidRequest(f"retentionSeconds is {seconds!r}, not a whole number from 1 to ten years")
        return cls(
            key=f"{MESSAGE_ID_KEY}{message_id}" if key is None else key,
            namespace=_text(request, "namespace", _MAX_RANGE_KEY_BYTES) or NAMESPACE,
            owner=_text(request, "owner") or secrets.token_hex(16),
            retention_seconds=seconds,
            message_id=message_id,
            fingerprint=_text(request, "fingerprint"),
            wants_result=request.get("returnResult") is True,
        )


def claim(dynamodb: Any, table: str, request: ClaimRequest, now_ms: int) -> dict[str, Any]:
    """Claim the key, or say why not: the guard's answer. now_ms: epoch milliseconds.

    Returns `proceed`, `reason` (claimed, duplicate, parked or conflict) and `idempotencyKey`; where the result is asked
    for and the key is not to be had, its `status` too, and the `result` of a completed one. Raises ClaimUnavailable.
    """
    answer: dict[str, Any] = {
        "proceed": True,
        "reason": "claimed",
        "idempotencyKey": {"pk": request.key, "sk": request.namespace},
    }
    try:
        dynamodb.update_item(**_update(table, request, now_ms))
        return answer
    except CALL_ERRORS as error:
        if error_code(error) != "ConditionalCheckFailedException":
            raise ClaimUnavailable(failed_call(error, "UpdateItem")) from None
        standing: Item = getattr(error, "response", {}).get("Item", {})
    answer |= {"proceed": False, "reason": _reason(standing, request)}
    if request.wants_result:
        answer["status"] = standing.get("status", {}).get("S")
        # Null where it was too large to be recorded.
        if "S" in standing.get("result", {}):
            with suppress(RecursionError, ValueError):  # somebody wrote it by hand: no reason to refuse an answer
                answer["result"] = json.loads(standing["result"]["S"])
    return answer


def _update(table: str, request: ClaimRequest, now_ms: int) -> dict[str, Any]:
    sets: Item = {
        "status": {"S": "IN_PROGRESS"},
        "owner": {"S": request.owner},
        "claimedAt": {"N": str(now_ms)},
        "expiresAt": {"N": str(now_ms // 1000 + request.retention_seconds)},
    }
    told = {"fingerprint": request.fingerprint, "messageId": request.message_id}
    sets |= {name: {"S": value} for name, value in told.items() if value is not None}
    removes = sorted({*_OF_BEFORE, *told} - sets.keys())
    return {
        "TableName": table,
        "Key": {"pk": {"S": request.key}, "sk": {"S": request.namespace}},
        "UpdateExpression": f"SET {', '.join(f'#{name} = :{name}' for name in sets)}"
        f" REMOVE {', '.join(f'#{name}' for name in removes)}",
        "ConditionExpression": _CONDITION,
        "ExpressionAttributeNames": {f"#{name}": name for name in (*sets, *removes)},
        "ExpressionAttributeValues": {
            **{f":{name}": value for name, value in sets.items()},
            ":released": {"S": "RELEASED"},
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _reason(standing: Item, request: ClaimRequest) -> str:
    stored = standing.get("fingerprint", {}).get("S")
    if stored is not None and request.fingerprint not in (None, stored):
        return "conflict"
    return "parked" if "parkedAt" in standing else "duplicate"


def _text(request: dict[str, Any], name: str, most: int | None = None) -> str | None:
    value = request.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name} is {type(value).__name__}, but must be a string that is not blank")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name} has half of a surrogate pair in it") from None
    if most is not None and size > most:
        raise InvalidRequest(f"{name} has {size} UTF-8 bytes, over {most}")
    return value
