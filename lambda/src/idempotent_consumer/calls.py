"""Calls to AWS: whether there is time for one, what the error of one means, and when it is made again."""

import random
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.parsers import ResponseParserError

from idempotent_consumer.answer import PASSING_REASONS, Outcome, Verdict
from idempotent_consumer.aws import LONGEST_CALL_MS, SHORT_CALL_MS

# What a call can raise: refused by the service, failed on the way, or answered with something unreadable.
CALL_ERRORS = (ClientError, BotoCoreError, ResponseParserError)
# Left for the answer, the metrics and the runtime.
_CLOSING_MS = 500
_USUAL_COMMIT_MS = 500
# What an effect that is stopped takes on top of its time.
_OVERRUN_MS = 500

ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.05
# SnapStart clones the state of the shared generator: functions would pause in step.
_random = random.SystemRandom()

MISCONFIGURATIONS = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidArn",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "NotFound",
        "NotFoundException",
        "QueueDoesNotExist",
        "ResourceNotFound",
        "ResourceNotFoundException",
        "SignatureDoesNotMatch",
        "StateMachineDeleting",
        "StateMachineDoesNotExist",
        "UnrecognizedClientException",
    }
)
# The service will not take this request as it is: settings and queue, topic or table do not fit each other.
REFUSALS = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidExecutionInput",
        "InvalidMessageContents",
        "InvalidName",
        "InvalidParameter",
        "InvalidParameterException",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "ParameterValueInvalid",
        "SerializationException",
        "ValidationError",
        "ValidationException",
    }
)
THROTTLES = frozenset(
    {
        "ExecutionLimitExceeded",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
CONFLICTS = frozenset({"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"})

_Key = TypeVar("_Key", bound=Hashable)


class LambdaContext(Protocol):
    """What is used of the runtime's context object."""

    def get_remaining_time_in_millis(self) -> int: ...


class Budget:
    """The time that is left of one invocation."""

    def __init__(self, context: LambdaContext) -> None:
        self._context = context
        self._began_with_ms = self.remaining_ms()
        self._slowest_commit_ms = _USUAL_COMMIT_MS
        self._slowest_settling_ms = 0

    def remaining_ms(self) -> int:
        return self._context.get_remaining_time_in_millis()

    def elapsed_ms(self) -> int:
        """How long ago the invocation began."""
        return self._began_with_ms - self.remaining_ms()

    def allows_call(self) -> bool:
        """Whether an AWS call that starts now ends, at its slowest, before the function is stopped."""
        return self.remaining_ms() >= LONGEST_CALL_MS + _CLOSING_MS

    def allows_short_call(self) -> bool:
        """The same for a call of the client that gives up soon."""
        return self.remaining_ms() >= SHORT_CALL_MS + _CLOSING_MS

    def allows_commit(self) -> bool:
        """The same, with time left to publish and to mark: else a slow batch would be committed and never settled."""
        settling_ms = max(self._slowest_commit_ms, self._slowest_settling_ms)
        return self.remaining_ms() >= LONGEST_CALL_MS + _CLOSING_MS + self._slowest_commit_ms + settling_ms

    def allows_effect(self, effect_ms: int, calls: int) -> bool:
        """Whether an effect of so many milliseconds, with so many AWS calls around it, ends before that."""
        return self.remaining_ms() >= effect_ms + _OVERRUN_MS + calls * LONGEST_CALL_MS + _CLOSING_MS

    def observe_commit(self, duration_ms: int) -> None:
        """Publishing and marking are each expected to take what the slowest commit took."""
        self._slowest_commit_ms = max(self._slowest_commit_ms, duration_ms)

    def observe_settling(self, duration_ms: int) -> None:
        """Or, from the second part of a large batch on, what both took together."""
        self._slowest_settling_ms = max(self._slowest_settling_ms, duration_ms)


OUT_OF_TIME = Verdict(Outcome.RETRY, "out-of-time", "the invocation's time is used up")


def error_code(error: Exception) -> str:
    """The service's error code, or the kind of exception where there was no answer.

    Never the message, which may quote data.
    """
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__


def retry_verdict(code: str, operation: str) -> Verdict:
    """The verdict on an event whose call failed with `code` and may succeed later."""
    # SQS and SNS pass on what KMS says, under a dozen spellings: KMS.DisabledException, KmsDisabled, KMSThrottling, …
    is_kms = code.upper().startswith("KMS")
    if code in THROTTLES or (is_kms and "Throttl" in code):
        reason = "throttled"
    elif code in MISCONFIGURATIONS or is_kms:
        reason = "misconfigured"
    elif code in REFUSALS:
        reason = "refused"
    elif code in CONFLICTS:
        reason = "transaction-conflict"
    else:
        reason = "unavailable"
    return Verdict(Outcome.RETRY, reason, f"{operation}: {code}")


def failed_call(error: Exception, operation: str) -> Verdict:
    """The verdict on an event whose call raised `error`."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return Verdict(Outcome.RETRY, "misconfigured", f"{operation}: {error_code(error)}")
    return retry_verdict(error_code(error), operation)


def pause(attempt: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait before the next attempt: full jitter, doubling from 50 ms. attempt: 0 after the first."""
    sleep(_random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))


def attempts() -> Iterator[int]:
    """Count the attempts at one thing, with a pause before each but the first."""
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(attempt - 1)
        yield attempt


def call_for_all(
    keys: Iterable[_Key], call: Callable[[Sequence[_Key]], dict[_Key, Verdict]], budget: Budget
) -> dict[_Key, Verdict]:
    """Make a call that settles many keys at once, and again for those that fail for a passing reason.

    call: takes keys and returns a verdict for each that failed. Returns the verdicts on those that failed in the end.
    """
    failures: dict[_Key, Verdict] = {}
    waiting = list(keys)
    for _ in attempts():
        if not budget.allows_call():
            return failures | dict.fromkeys(waiting, OUT_OF_TIME)
        failed = call(waiting)
        failures = {key: verdict for key, verdict in failures.items() if key not in waiting} | failed
        waiting = [key for key, verdict in failed.items() if verdict.reason in PASSING_REASONS]
        if not waiting:
            break
    return failures
