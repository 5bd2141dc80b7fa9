from __future__ import annotations

import pytest

from checks.hcl.source import parse
from checks.hcl.types import Field, Type, type_of
from checks.problem import CannotRun

VARIABLE = """\
# A comment with var.other in it.
variable "queue" {
  description = <<-EOT
    The queue.
    - fifo: "in order".
  EOT
  type = list(object({
    # Why it is here.
    fifo  = optional(bool, false)
    names = list(string)
    limit = optional(object({ seconds = optional(number) }), {})
  })) # and after it

  validation {
    condition     = var.queue == "a # b"
    error_message = "queue is \\"${var.queue}\\"."
  }
}
"""


def test_a_block_has_its_labels_lines_attributes_and_blocks() -> None:
    block = parse("main.tf", VARIABLE).blocks[0]
    assert (block.kind, block.labels, block.line) == ("variable", ("queue",), 2)
    assert [(found.name, found.line) for found in block.attributes] == [("description", 3), ("type", 7)]
    assert [(inner.kind, inner.line) for inner in block.blocks] == [("validation", 14)]


def test_the_words_of_a_string_are_what_terraform_makes_of_it() -> None:
    block = parse("main.tf", VARIABLE).blocks[0]
    description, message = block.attribute("description"), block.blocks[0].attribute("error_message")
    assert description and description.words() == 'The queue.\n- fifo: "in order".'
    assert message and message.words() == 'queue is "${var.queue}".'


def test_comments_are_blanked_out_and_strings_are_not() -> None:
    file = parse("main.tf", VARIABLE)
    assert "var.other" not in file.code
    assert "Why it is here" not in file.code
    assert "and after it" not in file.code
    assert '"a # b"' in file.code
    assert len(file.code) == len(VARIABLE)


def test_a_type_has_its_fields_with_their_defaults() -> None:
    attribute = parse("main.tf", VARIABLE).blocks[0].attribute("type")
    assert attribute
    type_ = type_of(attribute)
    assert str(type_) == "list(object)"
    assert type_.innermost().fields == (
        Field("fifo", Type("bool"), True, "false"),
        Field("names", Type("list", Type("string")), False, None),
        Field("limit", Type("object", None, (Field("seconds", Type("number"), True, None),)), True, "{}"),
    )
    assert [field.name for field in type_.all_fields()] == ["fifo", "names", "limit", "seconds"]


def test_what_is_no_hcl_is_refused_with_its_line() -> None:
    with pytest.raises(CannotRun, match=r"^main\.tf:2: this is not HCL"):
        parse("main.tf", 'variable "a" {\n  type = = string\n}\n')
