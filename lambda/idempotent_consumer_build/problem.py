"""Why there is no zip, and how paths are shown to whoever reads it."""

from __future__ import annotations

from pathlib import Path


class CannotBuild(Exception):
    """The zip cannot be built; the message says why and what to do."""


def shown(path: Path) -> str:
    """A path as the reader would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
