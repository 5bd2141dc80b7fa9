"""The modules that docs/workflows.md shows can be planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import module_source, plan_errors

BLOCKS = re.findall(r"^```hcl\n(.*?)^```$", (CHECKOUT / "docs/workflows.md").read_text(), re.M | re.S)
# What the first one takes for granted.
INGEST = """
resource "aws_lambda_function" "ingest" {
  filename      = "ingest.zip"
  function_name = "ingest"
  handler       = "ingest.handler"
  role          = "arn:aws:iam::111122223333:role/ingest"
  runtime       = "python3.13"
}
"""


@pytest.mark.parametrize(("block", "more"), [(0, INGEST), (1, "")], ids=["function", "fragment"])
def test_a_module_of_the_guide_can_be_planned(tmp_path: Path, block: int, more: str) -> None:
    source = f'"{module_source(tmp_path, "modules/workflow")}"'
    text, replaced = re.subn(r'"git::[^"]*//modules/workflow\?ref=<tag>"', source, BLOCKS[block])
    assert (len(BLOCKS), replaced) == (2, 1)
    assert plan_errors(tmp_path, text + more) == []
