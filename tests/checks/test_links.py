from __future__ import annotations

import pytest

from checks import links
from checks.markdown import page
from checks.tree import Tree

TEXTS = {
    "docs/guide.md": "# Guide\n",
    "lambda/build.py": "",
    "modules/queue/iam.tf": "",
    "README.md": "# A title\n\n## `code`, and: more_of-it!\n\n## Twice\n\n## Twice\n\n<a id='set'></a>\n",
}


def found(text: str, path: str = "docs/page.md") -> list[str]:
    tree = Tree(TEXTS | {path: text}, frozenset({"lambda/dist/a.zip"}))
    return [problem for problem in links.problems(tree) if problem.startswith(path)]


@pytest.mark.parametrize(
    "text",
    [
        "[a](guide.md) [b](../README.md#a-title) [c](../README.md#code-and-more_of-it) [d](../modules/queue)",
        "[a](../README.md#twice) [b](../README.md#twice-1) [c](../README.md#set) [d](#here)\n\n# Here",
        "![picture](../lambda/dist/a.zip) [zip][z]\n\n[z]: ../lambda/dist/a.zip",
        "<a href='guide.md'>a</a>, <https://docs.aws.amazon.com/sqs/>, [b](https://example.com), [c](mailto:a@b.c)",
        "http://localhost:4566 is no link, [this](http://localhost:4566) and [this](http://127.0.0.1/) are",
        "`lambda/build.py --check`, `modules/queue/`, `lambda/dist/*.zip`, `iam.tf`, `lambda/build.py:3`",
        "`build/demo.json`, `arn:aws:s3`, `a/b`, `your.py`, `event.id`, `//modules/queue?ref=1`",
        "```\n[a](nothing.md) `docs/nothing.md`\n```\n",
    ],
)
def test_what_points_to_something_passes(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](none.md)", "1: none.md points to docs/none.md, which does not exist: correct the link"),
        ("\n\na\n[a](../guide.md)", "4: ../guide.md points to guide.md, which does not exist: correct the link"),
        ("![a](none.svg)", "1: none.svg points to docs/none.svg, which does not exist: correct the link"),
        ("<img src='none.svg'>", "1: none.svg points to docs/none.svg, which does not exist: correct the link"),
        (
            "[a](../README.md#title)",
            "1: ../README.md#title points to a heading that README.md does not have: correct what stands behind the #",
        ),
        (
            "[a](#none)",
            "1: #none points to a heading that docs/page.md does not have: correct what stands behind the #",
        ),
        ("[a](http://aws.amazon.com)", "1: http://aws.amazon.com is not https: write https"),
        ("[a](https://localhos/)", "1: https://localhos/ names no host: correct it"),
        (
            "[a](https://example.io/a)",
            "1: https://example.io/a is a host that can belong to someone: use example.com",
        ),
        ("`lambda/built.py`", "1: `lambda/built.py` looks like a path, but there is no such file: correct it"),
        (
            "| a |\n|---|\n| `python modules/queues/x` |",
            "3: `modules/queues/x` looks like a path, but there is no such file: correct it",
        ),
        ("`lambda/built.py:3`", "1: `lambda/built.py` looks like a path, but there is no such file: correct it"),
        ("`roles.tf`", "1: `roles.tf` looks like a path, but there is no such file: correct it"),
        ("`lambda/dist/*.whl`", "1: `lambda/dist/*.whl` looks like a path, but there is no such file: correct it"),
    ],
)
def test_what_points_to_nothing_is_found(text: str, problem: str) -> None:
    assert found(text) == [f"docs/page.md:{problem}"]


def test_anchors_are_those_that_github_gives() -> None:
    text = "# A `b-c` *d*\n\n## What's new, in 1.0?\n\n## Zwölf\n\n## [Link](x.md)\n\n## a  b\n"
    assert page(text).anchors == {"a-b-c-d", "whats-new-in-10", "zwölf", "link", "a--b"}
