"""What a plan could look at beside its event, held still: the time, chance, the network."""

import os
import random
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from freezegun import freeze_time

# Different in all that a plan might ask for: year, quarter, month and its end, day, weekday (a Saturday), half of the
# day and of the hour. Most dates of an event lie between them, so a comparison with the clock comes out differently.
SOME_DAY = "2001-02-14 03:04:05.678901"
ANOTHER_DAY = "2061-12-31 23:59:58.999999"


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
    """A connection or another program was asked for. No Exception, so that nobody between here and the kit tries again.

    does: as it goes on after "the plan". target: the address or the command.
    """

    def __init__(self, does: str, target: str) -> None:
        super().__init__(f"{does}: {target}")
        self.does = does
        self.target = target


@contextmanager
def offline() -> Iterator[None]:
    """Who opens a connection, sends a datagram or starts a program raises Unreachable."""
    connect, start = _refusing("opens a network connection"), _refusing("starts another program")
    with ExitStack() as patches:
        for name in ("connect", "connect_ex", "sendto", "sendmsg"):
            patches.enter_context(patch.object(socket.socket, name, connect, create=True))
        patches.enter_context(patch.object(socket, "getaddrinfo", connect))
        patches.enter_context(patch.object(subprocess.Popen, "__init__", start))
        yield


def _refusing(does: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **_: Any) -> Any:
        shown = (str(each) for each in arguments if isinstance(each, str | tuple | list | int))
        raise Unreachable(does, " ".join(shown))

    return refuse
