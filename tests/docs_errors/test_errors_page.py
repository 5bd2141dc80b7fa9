"""docs/errors.md has each message that a user can meet, and none that nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import messages
from checks.messages.message import normal
from checks.messages.python import python_messages
from checks.messages.terraform import plan_messages
from checks.tree import Tree, checkout

LIST = """\
### batch_size

- `batch_size is <…>, but must be 1.` (root, operation)

### function

- `function.package is <…>, and there is no such file.` (root, operation, workflow)"""
PAGE = f"""\
# Errors

| message | what to do |
|---|---|
| `<file> is missing: give another one`<br>`<name> is wrong` | as it says |

| error of AWS | what to do |
|---|---|
| `AccessDenied` | ask |

<!-- generated: plan messages -->

{LIST}

<!-- end of plan messages -->
"""
VALIDATION = (
    'variable "batch_size" {\n  validation {\n    error_message = "batch_size is ${var.batch_size}, but must be 1."\n'
)
FILES = {
    "docs/errors.md": PAGE,
    "variables.tf": VALIDATION,
    "modules/operation/variables.tf": VALIDATION,
    "modules/function/main.tf": (
        'resource "aws_lambda_function" "worker" {\n'
        '    error_message = "function.package is ${jsonencode(local.package)}, and there is no such file."\n'
    ),
    "cli/a.py": 'raise OSError(f"{file} is missing: give another one")\n',
    "local/b.py": 'log.warning(f"{name} is wrong")\n',
}


def problems(**changed: str) -> list[str]:
    """changed: texts of files, by path with two underscores for each slash and one for the dot before the suffix."""
    return messages.problems(
        Tree(FILES | {path.replace("__", "/").replace("_", "."): changed[path] for path in changed})
    )


def test_the_page_has_each_message_and_no_other() -> None:
    assert messages.problems(checkout()) == []


def test_each_error_message_of_the_modules_is_read() -> None:
    terraform = {path: text for path, text in checkout().texts.items() if path.endswith(".tf")}
    assert len(list(plan_messages(terraform))) == sum(text.count("error_message") for text in terraform.values()) > 250


def test_what_the_code_says_and_the_page_has_is_well() -> None:
    assert problems() == []


def test_a_new_message_needs_a_row() -> None:
    code = 'raise OSError(\n    f"{file} is missing: "\n    "give another one"\n)\nraise ValueError("it is too late")\n'
    assert problems(cli__a_py=code) == ["cli/a.py:5: docs/errors.md has no row for: it is too late"]


def test_a_message_that_changes_leaves_a_row_behind() -> None:
    assert problems(local__b_py='log.warning(f"{name} is bad")\n') == [
        "local/b.py:1: docs/errors.md has no row for: <…> is bad",
        "docs/errors.md:5: no code says: <…> is wrong",
    ]


def test_the_list_of_plan_messages_is_held_against_the_modules() -> None:
    stale = "docs/errors.md:11: the list is not what the modules say: run make docs"
    assert problems(variables_tf=VALIDATION.replace("be 1.", "be 2.")) == [stale]


def test_a_page_without_marks_is_told() -> None:
    assert problems(docs__errors_md="# Errors\n") == [
        "docs/errors.md:1: there is no list of plan messages between its marks"
    ]


def test_writing_renews_the_list_alone(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    before = PAGE.replace(LIST, "old")
    assert messages.write(Tree(FILES | {"docs/errors.md": before}), tmp_path) == ["docs/errors.md"]
    assert (tmp_path / "docs" / "errors.md").read_text(encoding="utf-8") == PAGE
    assert messages.write(Tree(FILES), tmp_path) == []


@pytest.mark.parametrize(
    ("string", "text"),
    [
        (r"no value", "no value"),
        (r"${var.a} and ${jsonencode(var.b)}", "<…> and <…>"),
        (r"event is \"s3\"", 'event is "s3"'),
        (r'a ${join(", ", [for k, v in { a = "}" } : "${k} of ${v}"])} b', "a <…> b"),
        (r'${try("\"${x}\" }", "")}!', "<…>!"),
    ],
)
def test_a_plan_message_is_read_with_its_values_left_out(string: str, text: str) -> None:
    code = f'variable "x" {{\n  validation {{\n    error_message = "{string}"\n  }}\n}}\n'
    ((variable, message),) = plan_messages({"a.tf": code})
    assert (variable, message.text, message.line) == ("x", text, 3)


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ('raise ValueError(f"{a} is {b!r}: {c:.2f}")', ["<…> is <…>: <…>"]),
        ('raise ValueError("a" if x else f"b {y}")', ["a", "b <…>"]),
        ('class Own(OSError): ...\nclass Other(Own): ...\nreturn_ = Other("what", why="why")', ["what", "why"]),
        ('raise fields.wrong("hosts", value, f"over {most} hosts")', ["<…> is <…>, over <…> hosts"]),
        ('self.fail(f"{value!r} is no duration", param, ctx)', ["<…> is no duration"]),
        ('logger.error("lost")\n_log(logging.WARNING, f"no {x}", {})', ["lost", "no <…>"]),
        ('logger.info("fine")\n_log(logging.DEBUG, "quiet", {})\nprint("said")', []),
        ('class Rejected(Exception): ...\nraise Rejected("id-missing", "no id")', []),
        ("raise ValueError(text)\nraise OSError", []),
        ('raise ValueError(f"{a}: {b}")', []),
    ],
)
def test_a_message_of_the_code_is_read_with_its_values_left_out(code: str, texts: list[str]) -> None:
    assert [message.text for message in python_messages({"a.py": code})] == texts


def test_the_page_may_name_what_is_put_in_and_lay_it_out() -> None:
    assert normal("<folder> has\n no   <a name>, a < b") == "<…> has no <…>, a < b"
