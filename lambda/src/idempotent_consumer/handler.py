"""The shipped function, whose plan is in the settings."""

import os
from functools import cache

from idempotent_consumer import Event, Plan, pipeline
from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.plan import Planner
from idempotent_consumer.settings import Settings


def plan(event: Event) -> Plan:
    """What the environment says of an event."""
    return _planner()(event)


@cache
def _planner() -> Planner:
    return declarative_planner(Settings.from_environment(os.environ))


handler = pipeline(plan)
