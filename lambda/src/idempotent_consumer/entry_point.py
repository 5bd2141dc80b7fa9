"""From a plan, or an effect, to the function that Lambda calls."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from idempotent_consumer.effect import Effect, Prepare, Reconcile
from idempotent_consumer.plan import Planner

# What talks to AWS is imported once it is needed: a plan can be imported, checked and tested without the SDKs.
if TYPE_CHECKING:
    from idempotent_consumer.calls import LambdaContext
    from idempotent_consumer.consumer import Consumer
    from idempotent_consumer.operation_consumer import OperationConsumer

LambdaHandler = Callable[[Any, "LambdaContext"], dict[str, Any]]


def pipeline(plan: Planner) -> LambdaHandler:
    """A Lambda handler that runs each event of its SQS messages through `plan` and what follows from it.

    plan: a pure function from an event to its plan. Where it raises `Reject`, the message is dead-lettered with that
    reason; where it raises anything else, this event alone is tried again. Inside Lambda the clients are made at once,
    in the initialisation phase; elsewhere at the first call, so that the module imports anywhere.

    Raises TypeError where `plan` cannot be called, `settings.SettingsError` inside Lambda where the environment is not
    the module's.
    """
    if not callable(plan):
        raise TypeError(f"pipeline takes the plan function itself, not {type(plan).__name__}")
    return handler_of(lambda: _connect(plan))


def operation(effect: Effect, reconcile: Reconcile | None = None, *, prepare: Prepare | None = None) -> LambdaHandler:
    """A Lambda handler that applies `effect` to each event of its SQS messages: outside the database, and at most once
    where nobody can tell whether it was applied.

    effect: gets the event and its idempotency key, which is the same for all attempts at it; returns a JSON value to be
    stored. It raises `Retryable` or `Final` where it was certainly not applied; whatever else it raises is taken for an
    outcome that nobody knows. It is stopped after the operation's `effect_timeout_seconds`. reconcile: asks the
    provider whether it was applied, needed with `uncertain = "reconcile"`. prepare: makes ready what effects need,
    before any is claimed; what it raises `Retryable` for is no attempt, and its detail is logged.

    Made and raising as `pipeline`; TypeError also for functions that only run once they are awaited or iterated.
    """
    for name, function in (("effect", effect), ("reconcile", reconcile), ("prepare", prepare)):
        if not callable(function) and not (function is None and name != "effect"):
            raise TypeError(f"operation takes the {name} function itself, not {type(function).__name__}")
        if function is not None and _is_run_later(function):
            raise TypeError(f"operation calls the {name} function, and neither awaits nor iterates what it returns")
    return handler_of(lambda: _connect_operation(effect, reconcile, prepare))


def _is_run_later(function: Callable[..., Any]) -> bool:
    import inspect  # the SDK needs it too

    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_kind(code) for is_kind in kinds for code in (function, getattr(function, "__call__", None)))  # noqa: B004


def handler_of(connect: Callable[[], "Consumer | OperationConsumer"]) -> LambdaHandler:
    """A handler that is connected inside Lambda at once, elsewhere at its first call."""
    consumer: Consumer | OperationConsumer | None = None

    def handle(invocation: Any, context: "LambdaContext") -> dict[str, Any]:
        nonlocal consumer
        consumer = consumer or connect()
        return consumer.handle(invocation, context)

    if is_inside_lambda():
        with uncollected():
            consumer = connect()
    return handle


def is_inside_lambda() -> bool:
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


@contextmanager
def uncollected() -> Iterator[None]:
    """What a start imports and makes is there to stay. To search it for garbage, again and again, is a tenth of it."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _connect(plan: Planner) -> "Consumer":
    from idempotent_consumer.aws import Clients
    from idempotent_consumer.consumer import Consumer
    from idempotent_consumer.settings import Settings

    settings = Settings.from_environment(os.environ)
    return Consumer(settings, Clients.create(settings.topic_arn), plan)


def _connect_operation(effect: Effect, reconcile: Reconcile | None, prepare: Prepare | None) -> "OperationConsumer":
    from idempotent_consumer.aws import Clients
    from idempotent_consumer.operation_consumer import Operation, OperationConsumer
    from idempotent_consumer.operation_settings import OperationSettings

    settings = OperationSettings.from_environment(os.environ)
    return OperationConsumer(settings, Clients.create(), Operation(effect, reconcile, prepare))
