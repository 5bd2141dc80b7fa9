"""Processes that take turns: threads that stop where they wait for a turn, of which one alone goes on at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.handler.support import Killed

# Of a process that does not come to its next stop, or to its end.
PATIENCE_SECONDS = 60


class Process:
    """Runs `work` in turns. answer: what it returned; None before its end, and where it died or raised.

    fault: what it raised. is_dead: nothing that it does has an effect any more, although its code may go on.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self.answer: Any = None
        self.fault: BaseException | None = None
        self.is_over = False
        self.is_dead = False
        self._work = work
        self._turn = threading.Semaphore(0)
        self._stop = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.process = self  # type: ignore[attr-defined]
        self._thread.start()

    def go_on(self) -> None:
        """It comes to its next stop or to its end."""
        self._turn.release()
        assert self._stop.acquire(timeout=PATIENCE_SECONDS)

    def await_turn(self) -> None:
        """To be called by the work itself. Raises Killed in a process that is dead."""
        if not self.is_dead:
            self._stop.release()
            self._turn.acquire()
        if self.is_dead:
            raise Killed

    def die(self) -> None:
        """To be called by the work itself: it dies here."""
        self.is_dead = True
        raise Killed

    def kill(self) -> None:
        """It dies where it has stopped; its code has ended when this returns."""
        self.is_dead = True
        self._turn.release()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self.is_dead:
                self.answer = self._work()
        except BaseException as error:
            self.fault = error
        if self.is_dead:
            self.answer = None
        self.is_over = True
        self._stop.release()


def this_process() -> Any:
    """The process whose work calls this; None outside of all."""
    return getattr(threading.current_thread(), "process", None)
