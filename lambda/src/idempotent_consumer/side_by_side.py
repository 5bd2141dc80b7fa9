"""Makes calls that do not depend on each other at the same time: in a large batch they mostly wait for answers."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

# At a time: what publishes a part of 50 events. The SDK keeps ten connections for a client.
CALLS = 5

_Chunk = TypeVar("_Chunk")
_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")


class SideBySide:
    """The threads are kept, as connections are; none of them is busy when Lambda freezes the process."""

    def __init__(self) -> None:
        self._threads: Any = None

    def call(
        self, call: Callable[[_Chunk], dict[_Key, _Result]], chunks: Sequence[_Chunk], *, in_order: bool = False
    ) -> dict[_Key, _Result]:
        """The results of a call for each chunk, in one dict. in_order: one after the other.

        Raises what a call raises, once all that have begun have ended.
        """
        if in_order or len(chunks) <= 1 or CALLS == 1:
            results = [call(chunk) for chunk in chunks]
        else:
            results = self._call(call, chunks)
        return {key: verdict for result in results for key, verdict in result.items()}

    def _call(
        self, call: Callable[[_Chunk], dict[_Key, _Result]], chunks: Sequence[_Chunk]
    ) -> list[dict[_Key, _Result]]:
        # Here, since a batch of ten seldom needs it, and a cold start never.
        from concurrent.futures import Future, ThreadPoolExecutor, wait

        self._threads = self._threads or ThreadPoolExecutor(CALLS)
        begun: list[Future[dict[_Key, _Result]]] = []
        try:
            for chunk in chunks:
                begun.append(self._threads.submit(call, chunk))
            wait(begun)
        except RuntimeError:  # no further thread is to be had: what has not begun is called in this one
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads = None
        results = [each.result() for each in begun if not each.cancelled()]
        done = {index for index, each in enumerate(begun) if not each.cancelled()}
        return results + [call(chunk) for index, chunk in enumerate(chunks) if index not in done]
