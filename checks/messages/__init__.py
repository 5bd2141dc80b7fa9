"""docs/errors.md names each message that a user can meet; its list of what a plan refuses is made from the code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from checks.messages.message import Message, normal
from checks.messages.python import python_messages
from checks.messages.terraform import plan_messages
from checks.problem import at, line_of
from checks.tree import Tree

PAGE = "docs/errors.md"
AGAIN = "make docs"
_MODULES = {"": "root", "modules/operation": "operation", "modules/workflow": "workflow", "modules/queue": "queue"}
# Who calls the modules that users do not call.
_CALLERS = {
    "modules/alarms": ["root", "operation", "workflow"],
    "modules/function": ["root", "operation", "workflow"],
    "modules/reconciler": ["root"],
    "modules/tables": ["root"],
}
# What users run.
_PROGRAMS = ("lambda/src/*.py", "lambda/idempotent_consumer_build/*.py", "cli/*.py", "local/*.py", "benchmarks/*.py")
_MARKS = re.compile(r"^<!-- generated: plan messages -->\n(.*?)^<!-- end of plan messages -->$", re.M | re.S)
# Raised and caught by the code itself, or put into a message that the page has.
INTERNAL = frozenset(
    {
        "<…> is no number of JSON",
        "<…> is not JSON",
        "<…> is not a JSON type",
        "a charge has an order, a text, and an amount",
        "no plan: <…>",
        "not a JMESPath expression: <…>",
        "not a host name, nor host:port",
        "not a pair",
        "not a port from 1 to 65535",
        "not a stored notification",
        "not the row of an operation: <…>",
        "unreachable",
    }
)


def problems(tree: Tree) -> list[str]:
    """Messages without a row, rows without a message, and a list of plan messages that is out of date."""
    page = tree.texts.get(PAGE, "")
    marked = _MARKS.search(page)
    if marked is None:
        return [at(PAGE, 1, "there is no list of plan messages between its marks")]
    found = []
    if marked[1].strip() != plan_list(tree):
        found.append(at(PAGE, line_of(page, marked.start()), f"the list is not what the modules say: run {AGAIN}"))
    return found + list(_unmatched(tree, page))


def write(tree: Tree, root: Path) -> list[str]:
    """Make the list of plan messages anew; the paths that were written."""
    page = tree.texts[PAGE]
    marked = _MARKS.search(page)
    if marked is None or marked[1].strip() == plan_list(tree):
        return []
    fresh = f"{page[: marked.start(1)]}\n{plan_list(tree)}\n\n{page[marked.end(1) :]}"
    (root / PAGE).write_text(fresh, encoding="utf-8")
    return [PAGE]


def plan_list(tree: Tree) -> str:
    """All messages of a plan, by variable, with the modules that have them."""
    variables: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for variable, message in plan_messages({path: tree.texts[path] for path in _module_files(tree)}):
        variables[variable][message.text].extend(_modules_of(message.path))
    return "\n\n".join(_section(name, variables[name]) for name in sorted(variables))


def _module_files(tree: Tree) -> list[str]:
    """The Terraform files of the modules, those of the root module first."""
    files = [path for path in tree.matching("*.tf") if "/" not in path or path.startswith("modules/")]
    return sorted(files, key=lambda path: (path.count("/"), path))


def _modules_of(path: str) -> list[str]:
    """Which of the modules that users call say it."""
    folder = path.rpartition("/")[0]
    return [_MODULES[folder]] if folder in _MODULES else _CALLERS[folder]


def _section(variable: str, messages: Mapping[str, list[str]]) -> str:
    rows = [f"- {_code(text)} ({_listed(modules)})" for text, modules in messages.items()]
    return "\n".join([f"### {variable}", "", *rows])


def _listed(modules: list[str]) -> str:
    return ", ".join(name for name in _MODULES.values() if name in modules)


def _code(text: str) -> str:
    """A code span; one that holds backticks is in two of them."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def code_messages(tree: Tree) -> list[Message]:
    """What the function, the command line, the builder and the make targets say."""
    texts = {path: tree.texts[path] for path in tree.matching(*_PROGRAMS)}
    return [message for message in python_messages(texts) if normal(message.text) not in INTERNAL]


def _unmatched(tree: Tree, page: str) -> Iterator[str]:
    said = code_messages(tree)
    rows = {normal(text): line for line, text in row_messages(page)}
    for message in said:
        if normal(message.text) not in rows:
            yield at(message.path, message.line, f"{PAGE} has no row for: {normal(message.text)}")
    known = {normal(message.text) for message in said}
    for text, line in rows.items():
        if text not in known:
            yield at(PAGE, line, f"no code says: {text}")


def row_messages(page: str) -> list[tuple[int, str]]:
    """The code spans in the first column of the tables that begin with "message", each with its line."""
    found, is_wanted = [], False
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            first = tokens[index + 2]
            if tokens[index + 1].type == "th_open":
                is_wanted = first.content == "message"
            elif is_wanted:
                found += [
                    (_line(token), inner.content) for inner in first.children or () if inner.type == "code_inline"
                ]
    return found


def _line(token: Token) -> int:
    return (token.map or [0])[0] + 1
