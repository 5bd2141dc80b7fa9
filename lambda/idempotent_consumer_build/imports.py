"""What a user's modules import as they are loaded, and whether it will be there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from idempotent_consumer_build.collisions import RUNTIME_MODULES, root_modules, standard_library
from idempotent_consumer_build.entry import parsed
from idempotent_consumer_build.problem import CannotBuild


def missing_imports(modules: Mapping[str, bytes], members: Mapping[str, bytes], version: str) -> str | None:
    """A warning that names what nothing brings; None if all is there.

    modules: the user's. members: all of the zip. version: of the function's Python, as in 3.13.
    """
    known = root_modules(members).keys() | standard_library(version) | RUNTIME_MODULES
    wanted: dict[str, str] = {}
    for path, statement in top_level(modules):
        for name in sorted(roots(statement) - known):
            wanted.setdefault(name, path)
    if not wanted:
        return None
    named = ", ".join(f"{name} (imported by {path})" for name, path in wanted.items())
    return f"warning: neither the zip nor the Lambda runtime has {named}: pin it in requirements.txt, or bring a layer"


def refuse_relative_imports(modules: Mapping[str, bytes]) -> None:
    """Refuses those that lead out of the zip: its root is no package."""
    for path, statement in top_level(modules):
        if isinstance(statement, ast.ImportFrom) and statement.level > path.count("/"):
            raise CannotBuild(
                f"{path} has `{ast.unparse(statement)}`, which fails when Lambda imports it, as the zip's root is no "
                "package: import it without the dots, or put the modules into a folder of their own"
            )


def top_level(modules: Mapping[str, bytes]) -> Iterator[tuple[str, ast.stmt]]:
    """The statements that always run on import; those under if and try may be meant for another place."""
    for path, source in modules.items():
        if not path.endswith(".py"):
            continue
        try:
            tree = parsed(source, path)
        except (SyntaxError, ValueError):
            # The runtime's Python decides whether it compiles.
            continue
        yield from ((path, statement) for statement in tree.body)


def roots(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        return {(statement.module or "").partition(".")[0]}
    return set()
