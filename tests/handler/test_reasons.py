"""The page of reasons names each reason that the code can give, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "lambda" / "src" / "idempotent_consumer"
# "Name of a state" = ["reason", …], of the states by which an execution fails.
STATE_MACHINE = ROOT / "modules" / "workflow"
GIVEN_BY_STATES = re.compile(r'^ +"[A-Z][a-z ]+" += \["([a-z-]+)", ', re.MULTILINE)
# Rejected("code" …), Verdict(Outcome.X, "code" …) and the codes that calls.retry_verdict assigns.
GIVEN = re.compile(r'(?:Rejected\(\s*|Verdict\(\s*Outcome\.[A-Z]+,\s*|\breason = )"([a-z0-9-]+)"')
NAMED = re.compile(r"^\| `([a-z0-9-]+)` \|", re.MULTILINE)
# In the modules of operations whatever looks like a reason is one, but for these.
OF_OPERATIONS = ("claims/*.py", "effect.py", "http/*.py", "http_operation.py", "operation_consumer.py", "attempt.py")
NO_REASONS = {
    "accept-encoding",
    "content-length",
    "content-type",
    "idempotent-consumer",
    "keep-alive",
    "no-cache",
    "retry-after",
    "transfer-encoding",
}


def reasons_of_operations() -> Iterator[str]:
    for source in (source for pattern in OF_OPERATIONS for source in LIBRARY.glob(pattern)):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch("[a-z]+(-[a-z]+)+", text) and text not in NO_REASONS:
                yield text


def reasons_of_guards() -> Iterator[str]:
    """What the guard answers to whoever may not proceed."""
    tree = ast.parse((LIBRARY / "workflow" / "claim.py").read_text(encoding="utf-8"))
    (function,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_reason"]
    for returned in (node for node in ast.walk(function) if isinstance(node, ast.Return)):
        for node in ast.walk(returned):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch("[a-z]+", node.value):
                yield node.value


def reasons_of_executions() -> Iterator[str]:
    """What the state machine puts on a dead letter, and fails with."""
    for source in STATE_MACHINE.glob("definition*.tf"):
        yield from GIVEN_BY_STATES.findall(source.read_text(encoding="utf-8"))


def test_reasons_of_workflows_are_found() -> None:
    assert sorted(reasons_of_guards()) == ["conflict", "duplicate", "parked"]
    assert sorted(reasons_of_executions()) == [
        "claim-kept",
        "guard-failed",
        "id-reused",
        "not-applied",
        "outcome-not-recorded",
        "outcome-unknown",
    ]


def test_each_reason_is_explained_once() -> None:
    shipped = [source for source in LIBRARY.rglob("*.py") if "testing" not in source.parts]
    given = {reason for source in shipped for reason in GIVEN.findall(source.read_text(encoding="utf-8"))}
    named = NAMED.findall((ROOT / "docs" / "reasons.md").read_text(encoding="utf-8"))

    given |= {*reasons_of_operations(), *reasons_of_guards(), *reasons_of_executions()}
    assert sorted(named) == sorted(given)
    assert len(named) == 92
