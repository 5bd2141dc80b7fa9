"""docs/privileges.md says what the plans and the end-to-end tests show, and no policy is left out of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.plan.privileges import document
from tests.plan.rights import Role
from tests.plan.roles import ROLES
from tests.plan.sources import SENDERS, TAKERS

PAGE = CHECKOUT / "docs" / "privileges.md"
TAKEN_AWAY = [(right.action, right.taken_away) for role in ROLES for right in role.all if right.taken_away]
POLICY = re.compile(r'^(?:data|resource) "(aws_\w*(?:polic|permission)\w*)" "(\w+)"', re.MULTILINE)


def modules() -> list[Path]:
    """The files of the root module and of all others."""
    return [*CHECKOUT.glob("*.tf"), *CHECKOUT.glob("modules/*/*.tf")]


def test_the_page_is_what_is_printed_of_the_rights_that_the_plans_are_compared_with() -> None:
    assert PAGE.read_text() == document(), "python -m tests.plan.privileges > docs/privileges.md"


@pytest.mark.parametrize(("action", "test"), TAKEN_AWAY)
def test_the_test_that_takes_a_right_away_is_there_and_names_it(action: str, test: str) -> None:
    assert action in source_of(test)


@pytest.mark.parametrize("sender", [sender for sender in SENDERS if sender.taken_away], ids=lambda each: each.service)
def test_the_test_that_takes_a_queues_policy_away_is_there(sender: Any) -> None:
    assert "without_policy(" in source_of(sender.taken_away)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.title)
def test_what_a_role_has_only_sometimes_is_given_in_some_variant(role: Role) -> None:
    given = {when for variant in role.variants.values() for when in variant}
    assert given == set(role.rights) - {""}


def test_the_modules_write_no_policy_but_those_that_are_looked_at() -> None:
    found = sorted(
        (path.parent.name if path.parent != CHECKOUT else ".", kind.removeprefix("aws_"), name)
        for path in modules()
        for kind, name in POLICY.findall(path.read_text())
    )
    assert found == [
        ("function", "iam_policy_document", "assume"),
        ("function", "iam_policy_document", "worker"),
        ("function", "iam_role_policy", "additional"),
        ("function", "iam_role_policy", "worker"),
        ("queue", "iam_policy_document", "producers"),
        ("queue", "sqs_queue_policy", "intake"),
        ("queue", "sqs_queue_redrive_allow_policy", "dead_letter"),
        ("queue", "sqs_queue_redrive_policy", "intake"),
        ("reconciler", "iam_policy_document", "assume_schedule"),
        ("reconciler", "iam_policy_document", "schedule"),
        ("reconciler", "iam_role_policy", "schedule"),
        ("workflow", "iam_policy_document", "assume"),
        ("workflow", "iam_policy_document", "dead_letter"),
        ("workflow", "iam_policy_document", "workflow"),
        ("workflow", "iam_role_policy", "effect"),
        ("workflow", "iam_role_policy", "workflow"),
        ("workflow", "sqs_queue_policy", "dead_letter"),
    ]


def test_the_modules_name_no_service_but_those_of_the_page() -> None:
    named = {service for path in modules() for service in re.findall(r'identifiers = \["(.+)"\]', path.read_text())}
    assert named == {taker.service for taker in TAKERS} | {"events.amazonaws.com"}


def source_of(test: str) -> str:
    """A test's text, with its decorators."""
    path, name = test.split("::")
    text = (CHECKOUT / path).read_text()
    (function,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    start = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return "\n".join(text.splitlines()[start - 1 : function.end_lineno])
