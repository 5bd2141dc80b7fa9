from __future__ import annotations

from pathlib import Path

from checks import tables
from checks.tables import markdown
from checks.tables.descriptions import Description, taken_apart
from checks.tree import Tree, read
from tests.checks.support import module

CODE = """\
variable "queue" {
  default     = {}
  description = <<-EOT
    The queue | its dead letters.
    - fifo: whether it keeps the order.
    - low, high: seconds, at most 5. producers: who may send; more than one.
  EOT
  type = object({
    fifo      = optional(bool, false)
    high      = optional(number, 5)
    low       = optional(number)
    other     = optional(map(string), {})
    producers = list(object({ service = string, d = optional(number, 4) }))
  })
}

variable "name" {
  description = "Name of the <consumer>, not *."
  type        = string
}

variable "encryption" {
  default     = {}
  description = "Encryption at rest: kms_key_arn is a key."
  type        = object({ kms_key_arn = optional(string) })
}

output "queue_url" {
  description = "URL of the queue."
  value       = 1
}

output "arn" {
  description = "ARN of the queue."
  value       = 1
}
"""
INPUTS = """\
| variable | type | default | what |
|---|---|---|---|
| `name` | `string` | required | Name of the &lt;consumer>, not \\*. |
| `encryption` | `object` of `kms_key_arn` (optional) | `{}` | Encryption at rest: kms_key_arn is a key. |
| `queue` | `object` | `{}` | The queue \\| its dead letters. |

The attributes of `queue`:

| attribute | type | default | what |
|---|---|---|---|
| `fifo` | `bool` | `false` | whether it keeps the order. |
| `low`<br>`high` | `number` | `null`<br>`5` | seconds, at most 5. |
| `producers` | `list(object)` of `service`, `d` (`4`) | required | who may send; more than one. |
| `other` | `map(string)` | `{}` |  |"""
OUTPUTS = """\
| output | what |
|---|---|
| `arn` | ARN of the queue. |
| `queue_url` | URL of the queue. |"""
README = f"""\
# queue

<!-- generated: inputs -->

{INPUTS}

<!-- end of inputs -->

Between.

<!-- generated: outputs -->

{OUTPUTS}

<!-- end of outputs -->
"""


def test_variables_and_their_attributes_are_tables_in_the_order_of_the_description() -> None:
    assert markdown.inputs(module(CODE)) == INPUTS


def test_attributes_of_which_nothing_is_said_have_no_column_for_it() -> None:
    text = """\
variable "function" {
  description = "As above."
  type = object({ d = string, a = string, c = string, b = string })
}
"""
    assert markdown.inputs(module(text)).endswith(
        "| attribute | type | default |\n|---|---|---|\n| `a` | `string` | required |\n| `b` | `string` | required |\n"
        "| `c` | `string` | required |\n| `d` | `string` | required |"
    )


def test_outputs_are_a_table_by_name() -> None:
    assert markdown.outputs(module(CODE)) == OUTPUTS


def test_only_names_of_attributes_begin_an_item() -> None:
    words = "What it is.\n- a: first, with b: not. note: nor this. b: second,\n  on two lines.\n- c, a_b: both."
    assert taken_apart(words, ["a", "b", "c", "a_b"]) == Description(
        "What it is.",
        ((("a",), "first, with b: not. note: nor this."), (("b",), "second, on two lines."), (("c", "a_b"), "both.")),
    )


def test_a_readme_with_the_tables_of_the_code_passes() -> None:
    assert tables.problems(Tree({"main.tf": CODE, "README.md": README})) == []


def test_a_table_that_is_not_what_the_code_says_is_found() -> None:
    tree = Tree({"main.tf": CODE.replace("URL of", "Address of"), "README.md": README})
    assert tables.problems(tree) == ["README.md:24: the table of outputs is not what the code says: run make docs"]


def test_a_readme_without_marks_and_a_module_without_readme_are_found() -> None:
    tree = Tree({"main.tf": CODE, "README.md": README.replace("end of inputs", "end"), "modules/m/main.tf": CODE})
    assert tables.problems(tree) == [
        "README.md:1: there is no table of inputs: write <!-- generated: inputs --> and <!-- end of inputs -->, each "
        "on a line of its own, and run make docs",
        "modules/m/README.md:1: this file is missing: describe the module, and run make docs",
    ]


def test_writing_fills_the_marks_and_nothing_else_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    stale = README.replace(INPUTS, "old").replace(OUTPUTS, "")
    (tmp_path / "README.md").write_text(stale)
    (tmp_path / "main.tf").write_text(CODE)
    assert tables.write(read(tmp_path, ["README.md", "main.tf"]), tmp_path) == ["README.md"]
    assert (tmp_path / "README.md").read_text() == README
    assert tables.write(read(tmp_path, ["README.md", "main.tf"]), tmp_path) == []
