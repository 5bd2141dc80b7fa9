"""Lint rules for Terraform files: those that take no provider, and that hold for this repository."""

from __future__ import annotations

from checks.hcl import forbidden, layout, unused, variables
from checks.hcl.module import Module, modules_of
from checks.problem import at
from checks.tree import Tree

# For what users read. Fixtures of tests fix account ids, Regions and the like on purpose.
_OTHER_FORMS = ("*.tf.json", "*.tofu")
_SHIPPED = (*variables.RULES, *forbidden.RULES, *layout.RULES)


def problems(tree: Tree) -> list[str]:
    """All that is wrong with the Terraform files."""
    unread = [at(path, 1, "no rule reads this form: write it as .tf") for path in tree.matching(*_OTHER_FORMS)]
    return unread + [problem for module in modules_of(tree) for problem in problems_of(module)]


def problems_of(module: Module) -> list[str]:
    rules = (*_SHIPPED, *unused.RULES) if module.is_shipped else unused.RULES
    return [problem for rule in rules for problem in rule(module)]
