"""From a plan to the function that Lambda calls."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from idempotent_consumer.plan import Planner

# What talks to AWS is imported once it is needed: a plan can be imported, checked and tested without the SDKs.
if TYPE_CHECKING:
    from idempotent_consumer.aws import LambdaContext
    from idempotent_consumer.consumer import Consumer

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
    consumer: Consumer | None = None

    def handle(invocation: Any, context: "LambdaContext") -> dict[str, Any]:
        nonlocal consumer
        consumer = consumer or _connect(plan)
        return consumer.handle(invocation, context)

    if is_inside_lambda():
        with uncollected():
            consumer = _connect(plan)
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
