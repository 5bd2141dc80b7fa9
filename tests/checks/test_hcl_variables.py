from __future__ import annotations

import pytest

from checks.hcl import variables
from tests.checks.support import module

GOOD = """\
variable "days" {
  default     = 30
  description = "Days that are remembered, 1 to 30."
  nullable    = false
  type        = number

  validation {
    condition     = var.days > 0
    error_message = "days is ${var.days}, but must be above 0."
  }
}

variable "queue" {
  default     = null
  description = "The queue: fifo keeps the order."

  type = object({
    fifo = optional(bool, false)
  })

  validation {
    condition     = !var.queue.fifo
    error_message = "queue.fifo is true, which this module does not take."
  }
}

output "arn" {
  description = "ARN of the queue."
  value       = "…"
}
"""


def test_variables_and_outputs_that_say_what_they_are_pass() -> None:
    assert [problem for rule in variables.RULES for problem in rule(module(GOOD))] == []


def found(text: str, folder: str = "") -> list[str]:
    return [problem for rule in variables.RULES for problem in rule(module(text, folder))]


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (
            '  description = "ARN of the queue."\n',
            "",
            'main.tf:27: output "arn" has no description: say what it is, in which unit and range, and what follows',
        ),
        (
            '"ARN of the queue."',
            '"arn of the queue."',
            'main.tf:27: output "arn" has a description that is no sentence: begin with a capital letter, end with a '
            "full stop",
        ),
        (
            '"Days that are remembered, 1 to 30."',
            '"Days that are remembered, 1 to 30"',
            'main.tf:1: variable "days" has a description that is no sentence: begin with a capital letter, end with '
            "a full stop",
        ),
        ("  type        = number\n", "", 'main.tf:1: variable "days" has no type: write one'),
        (
            "= number",
            "= map(any)",
            'main.tf:1: variable "days" has the type any, so that no mistake is found at plan: write the type out',
        ),
        (
            "  nullable    = false\n",
            "",
            'main.tf:1: variable "days" does not say whether null is a value: write nullable = false, or default = '
            "null",
        ),
        (
            "fifo keeps the order",
            "it keeps the order",
            'main.tf:13: variable "queue" does not describe its attribute fifo: name it in the description',
        ),
        (
            '"days is ${var.days}, but must be above 0."',
            '"${var.days} must be above 0."',
            "main.tf:7: the error_message does not name the variable: begin with days",
        ),
        (
            '"days is ${var.days}, but must be above 0."',
            '"days must be above 0."',
            "main.tf:7: the error_message does not say the value: write ${jsonencode(var.days)} into it",
        ),
        (
            'variable "days"',
            'variable "zeal"',
            'main.tf:13: variable "queue" is out of alphabetical order: move it above zeal',
        ),
    ],
)
def test_a_variable_or_output_that_does_not_is_found(good: str, bad: str, problem: str) -> None:
    assert good in GOOD
    assert problem in found(GOOD.replace(good, bad))


def test_an_example_need_not_say_whether_null_is_a_value() -> None:
    text = 'variable "days" {\n  default     = 30\n  description = "Days."\n  type        = number\n}\n'
    assert found(text, "examples/orders") == []
    assert len(found(text, "modules/queue")) == 1


def test_a_nested_attribute_is_described_too() -> None:
    text = GOOD.replace("fifo = optional(bool, false)", "fifo = optional(object({ deep = bool }))")
    assert found(text) == [
        'main.tf:13: variable "queue" does not describe its attribute deep: name it in the description'
    ]


def test_a_description_may_point_to_the_root_modules_variable() -> None:
    text = GOOD.replace("The queue: fifo keeps the order.", "The queue, as in the root module's variable of this name.")
    assert found(text) == []
