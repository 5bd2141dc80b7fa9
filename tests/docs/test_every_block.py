"""Every code block of every page has a language, and for each language a test takes all blocks that are in it."""

from __future__ import annotations

import json
import re

from tests.docs.pages import SHELLS, Block, blocks, blocks_of, each
from tests.docs.programs import PROGRAMS

# The test that takes all blocks of a language.
RULES = {
    **dict.fromkeys(SHELLS, "tests/docs/test_shell_blocks.py"),
    "hcl": "tests/docs/test_terraform_blocks.py",
    "json": "tests/docs/test_every_block.py",
    "python": "tests/docs/test_python_blocks.py",
    # Output, diagrams, notation.
    "text": "tests/docs/test_every_block.py",
}


@each(blocks())
def test_each_block_is_in_a_language_that_a_test_takes(block: Block) -> None:
    assert block.language in RULES, (
        f"{block.where} is in {block.language!r}. Give it one of {', '.join(sorted(RULES))} after the fence; text is "
        "for output and diagrams. For another language write a test that takes its blocks, and name it here."
    )


@each(blocks("json"))
def test_json_can_be_read(block: Block) -> None:
    json.loads(block.text)


@each(blocks("text"))
def test_text_has_no_commands(block: Block) -> None:
    """They would go untested."""
    commands = [line for line in block.text.splitlines() if re.match(rf"(\$ )?({'|'.join(PROGRAMS)}) ", line)]
    assert commands == []


def test_there_are_blocks_in_readme() -> None:
    """None found would be none tested."""
    assert {block.language for block in blocks_of("README.md")} >= {"hcl", "python", "sh"}
