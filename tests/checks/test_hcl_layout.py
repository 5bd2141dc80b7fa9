from __future__ import annotations

from checks.hcl import layout
from checks.hcl.module import modules_of
from checks.tree import Tree

GOOD = {
    "modules/queue/main.tf": "",
    "modules/queue/outputs.tf": "",
    "modules/queue/variables.tf": "",
    "modules/queue/versions.tf": """\
terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}
""",
}


def found(texts: dict[str, str]) -> list[str]:
    (module,) = modules_of(Tree(texts))
    return [problem for rule in layout.RULES for problem in rule(module)]


def test_a_module_with_its_files_passes() -> None:
    assert found(GOOD) == []


def test_a_missing_file_is_found() -> None:
    texts = {path: text for path, text in GOOD.items() if "outputs" not in path}
    assert found(texts) == [
        "modules/queue/outputs.tf:1: this file is missing: each module has main.tf, outputs.tf, variables.tf, "
        "versions.tf"
    ]


def test_other_versions_are_found() -> None:
    versions = GOOD["modules/queue/versions.tf"].replace("5.100", "5.80")
    assert found(GOOD | {"modules/queue/versions.tf": versions}) == [
        "modules/queue/versions.tf:1: the versions differ: all modules take Terraform >= 1.9 and the aws provider "
        ">= 5.100, < 7; copy another module's file"
    ]


def test_a_file_of_151_lines_is_found_and_one_of_150_is_not() -> None:
    assert found(GOOD | {"modules/queue/main.tf": "\n" * 150}) == []
    assert found(GOOD | {"modules/queue/main.tf": "\n" * 151}) == [
        "modules/queue/main.tf:151: 151 lines are more than 150: split the file by topic"
    ]
