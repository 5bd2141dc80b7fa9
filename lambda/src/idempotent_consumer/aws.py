"""AWS clients whose calls end before the function does, and what their errors mean."""

import random
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import botocore
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError

from idempotent_consumer.answer import PASSING_REASONS, Outcome, Verdict

CONNECT_SECONDS = 1
READ_SECONDS = 2
SDK_ATTEMPTS = 2
# Both attempts time out, with the SDK's pause of up to a second between them. An endpoint with several addresses that
# all swallow packets, or an answer that trickles in, takes longer: then the function times out and the batch returns.
LONGEST_CALL_MS = SDK_ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) * 1000 + 1000
# What can be missed gives up soon: it may start where there is no time left for another call.
_SHORT_CONNECT_SECONDS, _SHORT_READ_SECONDS = 0.5, 1
SHORT_CALL_MS = int((_SHORT_CONNECT_SECONDS + _SHORT_READ_SECONDS) * 1000)
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


@dataclass(frozen=True)
class Clients:
    """sqs_short: gives up soon, for what can be missed."""

    dynamodb: Any
    sns: Any
    sqs: Any
    sqs_short: Any

    @classmethod
    def create(cls, topic_arn: str | None = None) -> "Clients":
        """One client a service, from one session: made once for the life of the function's process.

        topic_arn: a topic takes messages in its own Region only, which may be another than the function's. None where
        nothing is published.
        """
        config = _config()
        session = _session()
        session.register("before-call.sns.PublishBatch", _encode_form)

        def client(service: str, region: str | None = None, config: Config = config) -> Any:
            return session.create_client(service, region_name=region, config=config)

        def short_client(service: str) -> Any:
            timeouts = {"connect_timeout": _SHORT_CONNECT_SECONDS, "read_timeout": _SHORT_READ_SECONDS}
            return client(service, config=config.merge(Config(**timeouts, retries={"total_max_attempts": 1})))

        return cls(
            dynamodb=client("dynamodb"),
            sns=client("sns", topic_arn.split(":")[3]) if topic_arn else _MadeOnFirstUse(lambda: client("sns")),
            sqs=_MadeOnFirstUse(lambda: client("sqs")),
            sqs_short=_MadeOnFirstUse(lambda: short_client("sqs")),
        )


def create_client(service: str, region: str | None = None) -> Any:
    """A client of a service beside those of `Clients`, with the same limits. region: None for the function's own."""
    return _session().create_client(service, region_name=region, config=_config())


def _config() -> Config:
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": SDK_ATTEMPTS},
        # Costs up to two fifths of a call. The tests check each request against botocore's model instead.
        parameter_validation=False,
        # botocore's own is put together anew for each call, a twelfth of it.
        user_agent=f"idempotent-consumer botocore/{botocore.__version__}",
    )


def _session() -> botocore.session.Session:
    session = botocore.session.get_session()
    session.register_component("data_loader", _OwnServicesLoader())
    return session


def _encode_form(params: dict[str, Any], **_: Any) -> None:
    """SNS takes a form. botocore would encode it twice, to sign it and to send it."""
    if isinstance(params.get("body"), dict):
        params["body"] = urlencode(params["body"], doseq=True).encode()


class _MadeOnFirstUse:
    """A client that most processes never need, such as the one for dead letters; it would slow each cold start."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._make()
        return getattr(self._client, name)


class _OwnServicesLoader(Loader):  # type: ignore[misc]
    """Loads the services' models without what botocore would do with them in vain."""

    def list_available_services(self, type_name: str) -> list[str]:
        """To load a model, botocore would look through the folders of all 400 services for those it knows."""
        own = ["dynamodb", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions"]
        return [*own, "sts", "sso", "sso-oidc", "signin"]  # the last ones for credentials

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> dict[str, Any]:
        """For each call botocore gathers the tables in it, to find an account in their ARNs: they go by name here."""
        model: dict[str, Any] = super().load_service_model(service_name, type_name, api_version)
        for operation in model.get("operations", {}).values():
            operation.pop("operationContextParams", None)
        return model


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
