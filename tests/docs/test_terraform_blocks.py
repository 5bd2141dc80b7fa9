"""Each Terraform block of a page can be planned, all in one plan."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import blocks
from tests.docs.terraform_blocks import write_root
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
