"""Each command of a page exists and takes what it is given.

Some are run as they stand, too: those of docs/runbook.md by tests/e2e/test_runbook.py, the builder's of
docs/writing-a-plan.md by tests/e2e/test_writing_a_plan.py. What the examples' pages do by hand,
tests/e2e/test_examples.py does by the API.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs.pages import SHELLS, Block, blocks, each, pages, text_of
from tests.docs.programs import PROJECT, problem
from tests.docs.shell_blocks import Command, commands_of, shell_commands

# What is said in passing: `make test`, `idempotent-consumer status`. A target or command is one word of small letters.
INLINE = re.compile(r"`((?:make|idempotent-consumer) +[a-z][a-z-]*)(?=[ `])")


@each(blocks(*SHELLS))
def test_a_block_is_shell_that_bash_can_read(block: Block) -> None:
    text = re.sub(r"<([a-z_]+)>", r"\1", block.text)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.case("O10")
def test_each_command_exists_and_takes_what_it_is_given() -> None:
    wrong = {(command.block.where, command.line): said for command in shell_commands() if (said := problem(command))}
    assert wrong == {}


def test_commands_are_found_wherever_a_line_has_them() -> None:
    text = """
a=$(terraform output -raw x | jq -r .y)  # why
send() { aws sqs z --q "$a"; }
send 1
X=1 make test && cd b
"""
    found = [command.words for command in commands_of(Block("README.md", 1, "sh", text))]
    assert found == [
        ("terraform", "output", "-raw", "x"),
        ("jq", "-r", ".y"),
        ("aws", "sqs", "z", "--q", "$a"),
        ("make", "test"),
        ("cd", "b"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("idempotent-consumer replay --name orders --alll", "No such option '--alll'"),
        ("idempotent-consumer repaly --name orders", "the command line has no repaly"),
        ("aws sqs send-message --queue-url q", "sqs send-message: no [], missing ['--message-body']"),
        ("aws sqs send-message --queue-url q --message-body b --body b", "sqs send-message: no ['--body'], missing []"),
        ("aws sqs send-message --queue-url q --message-body '{id: 1}'", "no JSON: {id: 1}"),
        ("aws sqs send-massage", "sqs has no operation send-massage"),
        ("make tset", "the Makefile has no tset"),
        ("make test PYTEST=1", "the Makefile has no PYTEST=1"),
        ("terraform -chdir=examples/order apply", "there is no folder examples/order"),
        ("terraform -chdir=examples/orders apply -var protected=false", "orders has no variable protected"),
        ("terraform -chdir=examples/orders output -raw queue", "orders has no output queue"),
        ("terraform state move a b", "terraform has no state move"),
        (
            'pip install "git+https://github.com/you/another.git@v1"',
            "git+https://github.com/you/another.git@v1 is not this project",
        ),
        (
            f'pip install "git+https://github.com/you/{PROJECT}@v0.1"',
            f"git+https://github.com/you/{PROJECT}@v0.1 is not of",
        ),
        ("python lambda/build.py --sauce x", "unrecognized arguments: --sauce x"),
        ("python -m tests.explore", "there is no program tests.explore"),
        ("cd examples/order", "there is no folder examples/order"),
        ("curl https://example.com", "no test knows curl: say in tests/docs/programs.py what it takes"),
    ],
)
def test_a_command_that_cannot_be_right_is_told(line: str, said: str) -> None:
    (command,) = commands_of(Block("README.md", 1, "sh", line))
    assert str(problem(command)).startswith(said)


def test_what_is_named_in_passing_exists() -> None:
    named = {(page, found) for page in pages() for found in INLINE.findall(text_of(page))}
    wrong = {}
    for page, line in named:
        block = Block(page, 0, "sh", line)
        said = problem(Command(block, tuple(line.split()), ""))
        # Only what comes first is said in passing.
        if said and ("the Makefile has no" in said or "the command line has no" in said):
            wrong[page, line] = said
    assert len(named) > 5
    assert wrong == {}
