"""Starts microburst so that the signatures of the calls it forwards stay valid.

microburst rewrites the `Host` header, which is signed; an emulator that checks signatures then refuses every
call. Here the header of the client is kept.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any


def keep_host(upstream: Any) -> None:
    """Make `microburst.forward.Upstream` send the client's own `Host` header."""
    original = upstream._outbound_headers

    def _outbound_headers(self: Any, request: Any) -> dict[str, str]:
        headers: dict[str, str] = original(self, request)
        headers["host"] = request.headers.get("host", headers["host"])
        return headers

    upstream._outbound_headers = _outbound_headers


def end_with_parent() -> None:
    """End this process once standard input closes."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> int:
    arguments = sys.argv[1:]
    if "--end-with-parent" in arguments:
        arguments.remove("--end-with-parent")
        end_with_parent()

    from microburst import forward

    keep_host(forward.Upstream)

    from microburst.cli import main as microburst

    return int(microburst(arguments))


if __name__ == "__main__":
    sys.exit(main())
