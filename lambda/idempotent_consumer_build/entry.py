"""Whether the zip has the handler that the function is told to call."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping

from idempotent_consumer_build.problem import CannotBuild

# What is not so when Lambda imports a module.
NEVER = re.compile(r"(\w+\.)?TYPE_CHECKING|__name__ == '__main__'")


def parsed(source: bytes, path: str) -> ast.Module:
    with warnings.catch_warnings():
        # Of odd escapes and the like; who runs the code sees them.
        warnings.simplefilter("ignore")
        return ast.parse(source, path)


def check_handler(handler: str, members: Mapping[str, bytes]) -> None:
    """Refuses a handler, as in stock.handler, whose module is not in the zip or does not define it."""
    module, _, name = handler.rpartition(".")
    if not module or not name.isidentifier():
        raise CannotBuild(f"the handler {handler!r} is not module.function, as in stock.handler")
    # As Lambda reads it: a handler may name its module with slashes.
    folder = module.replace(".", "/")
    path = next((path for path in (f"{folder}/__init__.py", f"{folder}.py") if path in members), None)
    if path is None:
        raise CannotBuild(f"the handler is {handler}, but the zip holds neither {folder}.py nor {folder}/__init__.py")
    try:
        tree = parsed(members[path], path)
    except (SyntaxError, ValueError) as problem:
        raise CannotBuild(f"the handler's module {path} does not compile: {problem}") from problem
    defined = list(definitions(tree.body))
    if any(isinstance(found, ast.AsyncFunctionDef) and found.name == name for found in statements(tree.body)):
        raise CannotBuild(f"{name} in {path} is an async function, which Lambda does not await: write it with def")
    if name not in defined and "*" not in defined:
        raise CannotBuild(f"the handler is {handler}, but {path} defines no {name}")


def definitions(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that a module defines at its top level; * where it imports all names of another one."""
    for statement in statements(body):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if statement.value is not None:
                for target in targets:
                    yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that may run when Lambda imports the module, those within if, try, with and loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If) and NEVER.fullmatch(ast.unparse(statement.test)):
            yield from statements(statement.orelse)
            continue
        for _, value in ast.iter_fields(statement):
            for part in value if isinstance(value, list) else []:
                if isinstance(part, ast.stmt):
                    yield from statements([part])
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    yield from statements(part.body)
