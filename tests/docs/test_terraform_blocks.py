"""Each Terraform block of a page can be planned, all in one plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.object_keys import unknown_attributes
from tests.docs.pages import Block, blocks
from tests.docs.terraform_blocks import complete, write_root
from tests.plan.support import plan_errors


def test_each_terraform_block_can_be_planned(tmp_path: Path) -> None:
    some = blocks("hcl")
    write_root(tmp_path, some)
    errors = "\n".join(
        f"{error['summary']}: {error['detail']} {error.get('range')}" for error in plan_errors(tmp_path, "")
    )
    for block in some:
        errors = re.sub(rf"\b{block.name}\b", block.where, errors)
    assert len(some) > 0
    assert errors == ""


@pytest.mark.parametrize("block", blocks("hcl"), ids=lambda block: block.where)
def test_no_object_has_an_attribute_that_its_variable_does_not_know(block: Block) -> None:
    assert unknown_attributes(complete(block, [])) == []


def test_an_attribute_that_terraform_would_drop_is_found() -> None:
    assert unknown_attributes(
        """
        module "orders" {
          source = "@/"
          queue  = { fifo = true, nope = 1, producers = [{ service = "sns.amazonaws.com", arn = "x" }] }
          tags   = { any = "thing" }
        }
        """
    ) == ["queue.nope", "queue.producers.arn"]
