"""The shape of the library's Python: short files, short functions, no module that nothing uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from checks.problem import at
from checks.tree import Tree

LONGEST_FILE = 300
LONGEST_FUNCTION = 40
# Where the library lies, each folder with the one that its imports begin in.
FOLDERS = {
    "checks/": "",
    "cli/": "cli/",
    "lambda/idempotent_consumer_build/": "lambda/",
    "lambda/src/": "lambda/src/",
}
_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def problems(tree: Tree) -> list[str]:
    """All that is too long, and all that is unused."""
    paths = tree.matching(*(f"{folder}*.py" for folder in FOLDERS))
    try:
        parsed = {path: ast.parse(tree.texts[path], path) for path in paths}
    except SyntaxError as error:
        return [at(str(error.filename), error.lineno or 1, f"this is not Python: {error.msg}")]
    files = (problem for path in paths for problem in long_files(path, tree.texts[path]))
    functions = (problem for path in paths for problem in long_functions(path, parsed[path]))
    return [*files, *functions, *unused_modules(parsed, tree)]


def long_files(path: str, text: str) -> Iterator[str]:
    if (lines := text.count("\n")) > LONGEST_FILE:
        yield at(path, LONGEST_FILE + 1, f"{lines} lines are more than {LONGEST_FILE}: split the file by what it does")


def long_functions(path: str, module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, Function) and (length := function_length(node)) > LONGEST_FUNCTION:
            what = f"{node.name} has {length} lines, more than {LONGEST_FUNCTION}: take a step out of it"
            yield at(path, node.lineno, what)


def function_length(node: Function) -> int:
    """Its lines from `def` on, without decorators and docstring."""
    docstring = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    said = (docstring.end_lineno or 0) - docstring.lineno + 1 if docstring else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - said


def unused_modules(parsed: Mapping[str, ast.Module], tree: Tree) -> Iterator[str]:
    """What no other module imports or names in a string, and no setting names: pytest's plugin, Lambda's handlers."""
    used = {name for path in tree.matching("pyproject.toml", "*.tf") for name in _named_in(tree.texts[path])}
    for path, module in parsed.items():
        used |= _used_by(module) - {module_name(path)}
    for path in parsed:
        name = module_name(path)
        is_entry = PurePosixPath(path).name in ("__init__.py", "__main__.py")
        if not is_entry and name not in used and f"{name.rpartition('.')[0]}.*" not in used:
            yield at(path, 1, "no other module of the library imports this one: use it or remove it")


def module_name(path: str) -> str:
    """`lambda/src/idempotent_consumer/event.py` → `idempotent_consumer.event`."""
    start = next(start for folder, start in FOLDERS.items() if path.startswith(folder))
    return path.removeprefix(start).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _used_by(module: ast.Module) -> set[str]:
    """The modules that a module names; `package.*` for an f-string that begins with the name of a package."""
    used: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(_DOTTED, node.value):
            used |= {node.value, node.value.rpartition(".")[0]}
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(first := node.values[0], ast.Constant):
            used.add(f"{first.value!s}*")
    return used


def _named_in(text: str) -> Iterator[str]:
    """The words and dotted names of a text; `module.function` names the module too."""
    yield from re.findall(r"\w+", text)
    for name in re.findall(_DOTTED, text):
        yield from (name, name.rpartition(".")[0])
