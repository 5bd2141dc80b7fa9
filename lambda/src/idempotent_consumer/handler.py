"""Entry points for Lambda."""

import gc
import os
from collections.abc import Callable
from typing import Any

# What the start imports and makes is there to stay. To search it for garbage, again and again, is a tenth of the start.
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    gc.disable()

from idempotent_consumer.aws import Clients, LambdaContext
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.plan import Planner, declarative_planner
from idempotent_consumer.settings import Settings

LambdaHandler = Callable[[Any, LambdaContext], dict[str, Any]]


def pipeline(planner_for: Callable[[Settings], Planner]) -> LambdaHandler:
    """A Lambda handler that runs each event of its SQS messages through the pipeline.

    planner_for: gives the planner for the settings read from the environment. Inside Lambda the consumer with its
    clients is made at once, in the initialisation phase; elsewhere at the first call, so that the module imports
    anywhere.
    """
    consumer: Consumer | None = None

    def connect() -> Consumer:
        settings = Settings.from_environment(os.environ)
        return Consumer(settings, Clients.create(settings.topic_arn), planner_for(settings))

    def handle(invocation: Any, context: LambdaContext) -> dict[str, Any]:
        nonlocal consumer
        consumer = consumer or connect()
        return consumer.handle(invocation, context)

    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        consumer = connect()
        gc.freeze()
        gc.enable()
    return handle


handler = pipeline(declarative_planner)
