"""The shipped function of an operation, whose effect is the HTTP call in the settings."""

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from idempotent_consumer import Applied, Event, NotApplied, Unknown, operation
from idempotent_consumer.entry_point import is_inside_lambda, uncollected

# It imports the SDK; the module can be imported without, and without an environment.
if TYPE_CHECKING:
    from idempotent_consumer.http.effect import HttpEffect


def call(event: Event, key: str) -> Any:
    """Make the HTTP call. See `HttpEffect` for what it returns and raises, here and below."""
    return _effect()(event, key)


def reconcile(event: Event, key: str) -> Applied | NotApplied | Unknown:
    """Ask the provider whether an earlier call was applied."""
    return _effect().reconcile(event, key)


def prepare() -> None:
    """Have the secret ready before an event is claimed."""
    _effect().prepare()


@cache
def _effect() -> "HttpEffect":
    from idempotent_consumer.http.effect import HttpEffect

    return HttpEffect.from_environment(os.environ)


handler = operation(call, reconcile=reconcile, prepare=prepare)
if is_inside_lambda():
    with uncollected():
        _effect()
