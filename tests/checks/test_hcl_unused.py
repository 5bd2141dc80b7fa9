from __future__ import annotations

from checks import hcl
from checks.hcl import unused
from checks.hcl.module import modules_of
from checks.tree import Tree
from tests.checks.support import module

GOOD = """\
variable "name" {}

locals {
  long  = "${var.name}-queue"
  whole = local.long
}

data "aws_partition" "current" {}

output "name" {
  value = "${local.whole} ${data.aws_partition.current.id}"
}
"""


def found(text: str) -> list[str]:
    return [problem for rule in unused.RULES for problem in rule(module(text))]


def test_what_is_used_passes() -> None:
    assert found(GOOD) == []


def test_an_unused_variable_is_found() -> None:
    assert found(GOOD.replace("${var.name}", "a")) == ['main.tf:1: variable "name" is not used: use it or remove it']


def test_a_use_in_a_comment_or_in_its_own_validation_is_none() -> None:
    text = 'variable "a" {\n  validation {\n    condition = var.a > 0\n  }\n}\n# var.a\n'
    assert found(text) == ['main.tf:1: variable "a" is not used: use it or remove it']


def test_a_use_of_a_longer_name_is_none() -> None:
    text = 'variable "a" {}\nvariable "a_b" {}\noutput "o" {\n  value = var.a_b\n}\n'
    assert found(text) == ['main.tf:1: variable "a" is not used: use it or remove it']


def test_an_unused_local_is_found() -> None:
    assert found(GOOD.replace("${local.whole} ", "")) == ["main.tf:5: local.whole is not used: use it or remove it"]


def test_an_unused_data_source_is_found() -> None:
    text = GOOD.replace("${data.aws_partition.current.id}", "")
    assert found(text) == ["main.tf:8: data.aws_partition.current is read and not used: use it or remove it"]


def test_a_use_in_another_file_of_the_module_counts_and_one_in_another_module_does_not() -> None:
    tree = Tree({"variables.tf": 'variable "a" {}\n', "main.tf": 'output "o" {\n  value = var.a\n}\n'})
    assert [problem for rule in unused.RULES for problem in rule(modules_of(tree)[0])] == []
    apart = Tree({"variables.tf": 'variable "a" {}\n', "modules/m/main.tf": tree.texts["main.tf"]})
    assert [problem for rule in unused.RULES for problem in rule(modules_of(apart)[0])] == [
        'variables.tf:1: variable "a" is not used: use it or remove it'
    ]


def test_a_fixture_of_the_tests_is_only_looked_at_for_what_is_unused() -> None:
    fixed = 'variable "a" {}\nlocals {\n  account = "123456789012"\n}\n'
    assert hcl.problems(Tree({"tests/fixtures/e2e/main.tf": fixed})) == [
        'tests/fixtures/e2e/main.tf:1: variable "a" is not used: use it or remove it',
        "tests/fixtures/e2e/main.tf:3: local.account is not used: use it or remove it",
    ]
