from __future__ import annotations

import pytest

from checks import words
from checks.tree import Tree

# Put together, since this file is checked too.
PLACEHOLDER = "TO" + "DO"
HOME = "/ho" + "me/maria"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "One.\n\nTwo.\n"),
        ("empty.py", ""),
        ("Makefile", "all:\n\techo\n"),
        ("a.patch", " \n+\tcode \n\n"),
        ("a.py", "path = '/home/you/project', '/homework', 'https://a.b/root/c', '/var/task'\n"),
        ("a.md", "mastodons, TODOS and FIXMEs are words\n"),
    ],
)
def test_clean_text_passes(path: str, text: str) -> None:
    assert words.problems(Tree({path: text})) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\nb \n", "2: there is space at the end of the line: remove it"),
        ("a\n\tb\n", "2: there is a tab: use spaces"),
        ("a\nb\r\n", "2: lines end with a carriage return: end them with a line feed"),
        ("a\nb", "2: the file does not end with a newline: add one"),
        ("a\n\n", "2: the file ends with an empty line: remove it"),
        (f"a\n# {PLACEHOLDER}: b\n", "2: this is a placeholder: do it, or say what is missing in a sentence"),
        (f"a\nsee {HOME}/project.\n", f"2: {HOME} is a place of one machine: name it relative to the project"),
    ],
)
def test_an_unclean_line_is_found(text: str, problem: str) -> None:
    assert words.problems(Tree({"a.md": text})) == [f"a.md:{problem}"]


def test_a_line_with_two_of_one_kind_is_told_once() -> None:
    assert words.problems(Tree({"a.md": "\ta\tb\n"})) == ["a.md:1: there is a tab: use spaces"]
