from __future__ import annotations

import ast

from checks import shape
from checks.tree import Tree


def length(text: str) -> int:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return shape.function_length(function)


def test_a_functions_length_leaves_out_decorators_and_docstring() -> None:
    assert length("def f():\n    return 1\n") == 2
    assert length("@one\n@two(\n    1\n)\ndef f(\n    a,\n):\n    '''What.\n\n    More.\n    '''\n    return 1\n") == 4


def function(lines: int) -> str:
    return "def f() -> None:\n" + "    f()\n" * (lines - 1)


def test_a_function_of_41_lines_is_found_and_one_of_40_is_not() -> None:
    assert shape.problems(Tree({"cli/a/__init__.py": function(40)})) == []
    assert shape.problems(Tree({"cli/a/__init__.py": function(41)})) == [
        "cli/a/__init__.py:1: f has 41 lines, more than 40: take a step out of it"
    ]


def test_a_method_and_an_inner_function_count_too() -> None:
    text = "class A:\n    async def f(self) -> None:\n" + "        f()\n" * 40
    assert shape.problems(Tree({"cli/a/__init__.py": text})) == [
        "cli/a/__init__.py:2: f has 41 lines, more than 40: take a step out of it"
    ]


def test_a_file_of_301_lines_is_found_and_one_of_300_is_not() -> None:
    assert shape.problems(Tree({"lambda/src/a/__init__.py": "a = 1\n" * 300})) == []
    assert shape.problems(Tree({"lambda/src/a/__init__.py": "a = 1\n" * 301})) == [
        "lambda/src/a/__init__.py:301: 301 lines are more than 300: split the file by what it does"
    ]


def test_what_is_not_of_the_library_may_be_long() -> None:
    assert shape.problems(Tree({"tests/a.py": "a = 1\n" * 301, "local/a.py": function(41)})) == []


def test_a_module_that_is_used_passes() -> None:
    texts = {
        "lambda/src/a/__init__.py": "from a.one import f\nfrom a import two\nimport a.three\n",
        "lambda/src/a/one.py": "",
        "lambda/src/a/two.py": "",
        "lambda/src/a/three.py": "NAME = 'a.four'\n",
        "lambda/src/a/four.py": "",
        "lambda/src/a/handler.py": "",
        "lambda/src/plugin.py": "",
        "cli/b/__main__.py": "import importlib\n\nimportlib.import_module(f'b.commands.{1}')\n",
        "cli/b/commands/drop.py": "",
        "main.tf": 'handler = "a.handler.handle"\n',
        "pyproject.toml": 'entry = "plugin"\n',
    }
    assert shape.problems(Tree(texts)) == []


def test_a_module_that_only_itself_or_a_test_uses_is_found() -> None:
    texts = {
        "lambda/src/a/one.py": "import a.one\n",
        "lambda/idempotent_consumer_build/two.py": "",
        "tests/test_one.py": "import a.one\nimport idempotent_consumer_build.two\n",
    }
    assert shape.problems(Tree(texts)) == [
        "lambda/idempotent_consumer_build/two.py:1: no other module of the library imports this one: use it or "
        "remove it",
        "lambda/src/a/one.py:1: no other module of the library imports this one: use it or remove it",
    ]


def test_what_is_no_python_is_found() -> None:
    (problem,) = shape.problems(Tree({"cli/a/__init__.py": "a = 1\nb = (\n"}))
    assert problem.startswith("cli/a/__init__.py:2: this is not Python: ")
