"""Rules for the files of a module."""

from __future__ import annotations

from collections.abc import Iterator

from checks.hcl.module import Module
from checks.problem import at

LONGEST = 150
# README.md is no Terraform, and the check of tables reads it.
FILES = ("main.tf", "outputs.tf", "variables.tf", "versions.tf")
VERSIONS = """\
terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}
"""


def files_are_there(module: Module) -> Iterator[str]:
    names = {file.path for file in module.files}
    for name in FILES:
        if module.path(name) not in names:
            yield at(module.path(name), 1, "this file is missing: each module has " + ", ".join(FILES))


def versions_are_equal(module: Module) -> Iterator[str]:
    for file in module.files:
        if file.path == module.path("versions.tf") and file.text != VERSIONS:
            what = "the versions differ: all modules take Terraform >= 1.9 and the aws provider >= 5.100, < 7"
            yield at(file.path, 1, f"{what}; copy another module's file")


def files_are_short(module: Module) -> Iterator[str]:
    for file in module.files:
        if (lines := file.text.count("\n")) > LONGEST:
            yield at(file.path, LONGEST + 1, f"{lines} lines are more than {LONGEST}: split the file by topic")


RULES = (files_are_there, versions_are_equal, files_are_short)
