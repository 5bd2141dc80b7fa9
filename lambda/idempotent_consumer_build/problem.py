"""Why there is no zip, and how paths are shown to whoever reads it."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

# What zipfile raises for an archive that is damaged, encrypted, or compressed in a way that it does not know.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)


class CannotBuild(Exception):
    """The zip cannot be built; the message says why and what to do."""


def shown(path: Path) -> str:
    """A path as the reader would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
