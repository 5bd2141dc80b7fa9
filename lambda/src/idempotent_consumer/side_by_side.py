"""Makes calls that do not depend on each other at the same time: in a large batch they mostly wait for answers."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from idempotent_consumer.answer import Verdict

# What publishes a part of 50 events. The SDK keeps ten connections for a client.
THREADS = 5

_Chunk = TypeVar("_Chunk")


def call_side_by_side(
    call: Callable[[_Chunk], dict[str, Verdict]], chunks: Sequence[_Chunk], *, in_order: bool = False
) -> dict[str, Verdict]:
    """The results of all calls in one dict. Raises what a call raises, once all that have begun have ended.

    in_order: one after the other. The threads end with it: none is left when Lambda freezes the process.
    """
    if in_order or len(chunks) <= 1 or THREADS == 1:
        results = [call(chunk) for chunk in chunks]
    else:
        from concurrent.futures import ThreadPoolExecutor  # it would slow the cold start of those who never need it

        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(call, chunks))
    return {key: verdict for result in results for key, verdict in result.items()}
