"""What a plan could look at beside its event, held still: the time, chance, the network."""

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from freezegun import freeze_time

# Different in all that a plan might ask for: year, month, day, weekday (a Saturday), hour, minute, second. Most dates
# of an event lie between them, so that a comparison of one with the clock comes out differently.
SOME_DAY = "2001-02-14 03:04:05.678901"
ANOTHER_DAY = "2061-11-26 17:28:39.123456"


@contextmanager
def clock_at(text: str) -> Iterator[None]:
    """The time stands still there."""
    with freeze_time(text):
        yield


@contextmanager
def chance_from(seed: int) -> Iterator[None]:
    """What is drawn at random (`random`, `uuid4`, `secrets`) follows from the seed alone."""
    source = random.Random(seed)
    state = random.getstate()
    random.seed(seed)
    try:
        with patch.object(os, "urandom", source.randbytes), patch.object(random, "_urandom", source.randbytes):
            yield
    finally:
        random.setstate(state)


class Unreachable(BaseException):
    """A connection was asked for. No Exception, so that nobody between here and the kit tries again."""


@contextmanager
def offline() -> Iterator[None]:
    """Who opens a connection raises Unreachable, with the address."""

    def refuse(*arguments: Any, **_: Any) -> Any:
        raise Unreachable(" ".join(str(each) for each in arguments if isinstance(each, str | tuple | int)))

    with patch.object(socket.socket, "connect", refuse), patch.object(socket, "getaddrinfo", refuse):
        yield
