"""What can befall one call of a process, and how it is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError

from idempotent_consumer.effect import Final, Retryable
from idempotent_consumer.time_limit import TimeIsUp

Request = Mapping[str, Any]
Call = Callable[[str, Request], Any]


class Dies(BaseException):
    """The process dies here. Raised by `play`, for the scheduler alone."""


class Fault(Enum):
    """LOST_ANSWER: the call takes effect, the process sees a closed connection. REPEATED: the SDK loses the first
    answer, and gets one for its second attempt. IN_PART: an answer that succeeds, and says of one entry that it failed;
    UNANSWERED: and says nothing of it.
    UNNAMED: a cancelled transaction names one of the actions that failed, where there are several. ONE_BY_ONE: the rows
    of a transaction become visible one after the other. TIME_IS_UP: it succeeds so slowly that no time is left.
    DECLINED, REFUSED: the provider has done nothing, for good or for now, and says so.
    """

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    LOST_ANSWER = "answer lost"
    REPEATED = "sent twice"
    THROTTLED = "throttled"
    CONFLICT = "conflict"
    IN_PART = "in part"
    UNANSWERED = "one entry not answered"
    UNNAMED = "one reason named"
    ONE_BY_ONE = "row by row"
    TIME_IS_UP = "time is up"
    # Of effects outside the database.
    DECLINED = "declined"
    REFUSED = "refused for now"
    TIMED_OUT = "timed out"
    LATE = "timed out, and applied later"


_WRITE = (Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.TIME_IS_UP)
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    # Sent twice under one token, a transaction is answered as if it were sent once.
    "TransactWriteItems": (*_WRITE, Fault.CONFLICT, Fault.UNNAMED, Fault.ONE_BY_ONE),
    "PutItem": (*_WRITE, Fault.REPEATED, Fault.CONFLICT),
    "UpdateItem": (*_WRITE, Fault.REPEATED, Fault.CONFLICT),
    "BatchExecuteStatement": (*_WRITE, Fault.REPEATED, Fault.IN_PART),
    "PublishBatch": (*_WRITE, Fault.REPEATED, Fault.IN_PART, Fault.UNANSWERED),
    "SendMessage": (*_WRITE, Fault.REPEATED),
    "StartExecution": (*_WRITE, Fault.REPEATED),
    "BatchGetItem": (Fault.DIES_BEFORE, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.IN_PART, Fault.TIME_IS_UP),
    "Effect": (
        Fault.DIES_BEFORE,
        Fault.DIES_AFTER,
        Fault.LOST_ANSWER,
        Fault.DECLINED,
        Fault.REFUSED,
        Fault.TIMED_OUT,
        Fault.LATE,
    ),
    "Reconcile": (Fault.DIES_BEFORE, Fault.TIMED_OUT),
    "Query": (Fault.DIES_BEFORE, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.TIME_IS_UP),
}
_DEATHS = (Fault.DIES_BEFORE, Fault.DIES_AFTER)


def deaths_only(operation: str) -> tuple[Fault, ...]:
    return tuple(fault for fault in FAULTS.get(operation, ()) if fault in _DEATHS)


def play(fault: Fault | None, operation: str, request: Request, call: Call) -> Any:
    """The answer that the process sees. call: makes a call take effect. Raises what the process sees, or Dies."""
    if fault is None or fault is Fault.TIME_IS_UP:
        return call(operation, request)
    if fault is Fault.DIES_BEFORE:
        raise Dies
    if fault is Fault.DIES_AFTER:
        with suppress(ClientError):
            call(operation, request)
        raise Dies
    if fault is Fault.LOST_ANSWER:
        with suppress(ClientError):
            call(operation, request)
        raise ConnectionClosedError(endpoint_url="https://aws.example")
    if fault is Fault.REPEATED:
        with suppress(ClientError):
            call(operation, request)
        return call(operation, request)
    if fault is Fault.THROTTLED:
        raise error("ThrottlingException", operation)
    if fault is Fault.CONFLICT:
        raise _conflict(operation, request)
    if fault is Fault.DECLINED:
        raise Final("declined")
    if fault is Fault.REFUSED:
        raise Retryable("busy")
    if fault is Fault.TIMED_OUT:
        raise TimeIsUp
    if fault is Fault.LATE:
        call("Effect later", request)
        raise TimeIsUp
    if fault is Fault.UNNAMED:
        return _name_one(operation, request, call)
    answer = _in_part(operation, request, call)
    return {**answer, "Failed": []} if fault is Fault.UNANSWERED else answer


def error(code: str, operation: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "the text of the service"}, **more}
    return ClientError(response, operation)


def reasons_of(refusal: ClientError) -> list[dict[str, Any]]:
    """The reasons of a cancelled transaction, by action."""
    response: Mapping[str, Any] = refusal.response
    return list(response.get("CancellationReasons", []))


def _conflict(operation: str, request: Request) -> ClientError:
    if operation != "TransactWriteItems":
        return error("TransactionConflictException", operation)
    others = [{"Code": "None"}] * (len(request["TransactItems"]) - 1)
    reasons = [*others, {"Code": "TransactionConflict"}]
    return error("TransactionCanceledException", operation, CancellationReasons=reasons)


def _name_one(operation: str, request: Request, call: Call) -> Any:
    """AWS does not promise to name every action that failed: here it names the last one."""
    try:
        return call(operation, request)
    except ClientError as refusal:
        reasons = reasons_of(refusal)
        failed = [index for index, reason in enumerate(reasons) if reason["Code"] != "None"]
        for index in failed[:-1]:
            reasons[index] = {"Code": "None"}
        raise error("TransactionCanceledException", operation, CancellationReasons=reasons) from None


def _in_part(operation: str, request: Request, call: Call) -> Any:
    """The first entry fails, and the others take effect."""
    if operation == "PublishBatch":
        first, *others = request["PublishBatchRequestEntries"]
        answer = call(operation, {**request, "PublishBatchRequestEntries": others}) if others else {"Successful": []}
        return {**answer, "Failed": [{"Id": first["Id"], "Code": "InternalError", "SenderFault": False}]}
    if operation == "BatchExecuteStatement":
        _, *others = request["Statements"]
        responses = call(operation, {"Statements": others})["Responses"] if others else []
        return {"Responses": [{"Error": {"Code": "ThrottlingError", "Message": ""}}, *responses]}
    ((table, wanted),) = request["RequestItems"].items()
    first, *others = wanted["Keys"]
    answer = (
        call(operation, {"RequestItems": {table: {**wanted, "Keys": others}}}) if others else {"Responses": {table: []}}
    )
    return {**answer, "UnprocessedKeys": {table: {"Keys": [first]}}}
