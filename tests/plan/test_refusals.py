"""What a refused input is told: the variable, its value and the rule.

`terraform test` tells only that an input is refused, not why. Here the inputs of tests/reject*.tftest.hcl are planned
in one root module, and each message is compared with the comment above its run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import module_source, plan_errors

REJECT_FILES = sorted((CHECKOUT / "tests").glob("reject*.tftest.hcl"))
# An argument and its value, up to the next argument or the end.
ARGUMENT = r"^{indent}(\w+) += (.*?)\n*(?=^{indent}\w|\Z)"
# Reports of users whom a plan could have told.
REPORTS = {
    "fifo_with_a_window": ("T31",),
    "fifo_with_a_window_of_0": ("T31",),
    "fifo_batch_of_11": ("T31",),
    "batch_of_11_without_a_window": ("T30",),
    "batch_of_11_with_a_window_of_0": ("T30",),
    "visibility_below_the_timeout": ("T01", "T02"),
    "kms_alias_name": ("T19", "T22"),
    "kms_alias_arn": ("T19",),
    "max_receive_count_of_1": ("N09",),
    "maximum_concurrency_of_1": ("N08",),
    "reserved_concurrency_below_the_maximum": ("O01",),
    "reserved_concurrency_without_a_maximum": ("O01",),
    "dead_letter_retention_of_the_queue_on_a_standard_queue": ("O03",),
    "ttl_window_below_both_retentions": ("O03",),
    "ttl_window_below_both_retentions_of_fifo_queues": ("O04",),
}


@dataclass(frozen=True)
class Refusal:
    """One run of a reject file: the module, the arguments that it is given, as HCL, and what the user is told."""

    name: str
    source: str
    arguments: Mapping[str, str]
    message: str

    def call(self, folder: Path) -> str:
        arguments = "\n".join(f"{name} = {value}" for name, value in self.arguments.items())
        return f'module "{self.name}" {{\nsource = "{module_source(folder, self.source)}"\n{arguments}\n}}\n'


@dataclass(frozen=True)
class Told:
    """What Terraform said: the message, and the file and line of the validation, which a precondition does not name."""

    message: str
    rule: tuple[str, int] | None


def arguments_of(text: str, indent: int) -> dict[str, str]:
    return dict(re.findall(ARGUMENT.format(indent=" " * indent), text, re.MULTILINE | re.DOTALL))


def read_refusals(file: Path) -> list[Refusal]:
    text = file.read_text()
    (of_all,) = re.findall(r"^variables \{\n(.*?)\n^\}$", text, re.MULTILINE | re.DOTALL)
    run = r'^# ([^\n]*)\nrun "reject_(\w+)" \{\n(.*?)^  variables \{\n(.*?)\n^  \}$'
    return [
        Refusal(
            name,
            source[1] if (source := re.search(r'source = "\./(.*)"', before)) else ".",
            arguments_of(of_all, 2) | arguments_of(own, 4),
            message,
        )
        for message, name, before, own in re.findall(run, text, re.MULTILINE | re.DOTALL)
    ]


REFUSALS = [refusal for file in REJECT_FILES for refusal in read_refusals(file)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Told]]:
    """What each input is told, by run.

    Terraform first checks what concerns one variable alone, then what concerns several, and plans resources only if
    all of that holds: so the inputs that pass are planned again, without the others. A resource's precondition does not
    say in which module it failed: each of those has a plan of its own.
    """
    told: dict[str, list[Told]] = {}
    for attempt in ("alone", "together"):
        folder = tmp_path_factory.mktemp(attempt)
        for error in plan_refusals(folder, [refusal for refusal in REFUSALS if refusal.name not in told]):
            kind, name, *_ = error["snippet"]["context"].split('"')
            if kind == "module ":
                told.setdefault(name, []).append(read_error(folder, error))
    for refusal in REFUSALS:
        if refusal.name not in told:
            folder = tmp_path_factory.mktemp(refusal.name)
            told[refusal.name] = [read_error(folder, error) for error in plan_refusals(folder, [refusal])]
    return told


def plan_refusals(folder: Path, refusals: list[Refusal]) -> list[Mapping[str, Any]]:
    return plan_errors(folder, "\n".join(refusal.call(folder) for refusal in refusals))


def read_error(folder: Path, error: Mapping[str, Any]) -> Told:
    message, _, checked = error["detail"].partition("\n\n")
    rule = re.search(r"(\S+\.tf):(\d+),", checked)
    if rule is None:
        return Told(message, None)
    return Told(message, ((folder / rule[1]).resolve().relative_to(CHECKOUT).as_posix(), int(rule[2])))


def test_every_run_of_the_reject_files_is_read() -> None:
    runs = {file.name: file.read_text().count("\nrun ") for file in REJECT_FILES}
    assert runs == {"reject.tftest.hcl": 159, "reject_function.tftest.hcl": 3, "reject_queue.tftest.hcl": 15}
    assert len(REFUSALS) == len({refusal.name for refusal in REFUSALS}) == sum(runs.values())


def test_a_long_event_is_refused_although_no_address_is_known_yet(tmp_path: Path) -> None:
    call = f'''
    module "orders" {{
      source              = "{module_source(tmp_path)}"
      business_table_name = "order_records"
      event               = {{ item = format("%4097s", "x") }}
      name                = "orders"
    }}
    '''
    assert [error["detail"] for error in plan_errors(tmp_path, call)] == [
        "The function's variables are at least 4549 bytes of JSON, but Lambda takes at most 4096: "
        "shorten function.environment, or the paths in event and notification."
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(
            refusal,
            id=refusal.name,
            marks=[pytest.mark.case(*REPORTS[refusal.name])] if refusal.name in REPORTS else [],
        )
        for refusal in REFUSALS
    ],
)
def test_a_refused_input_is_told_why_and_only_that(refusal: Refusal, told: Mapping[str, list[Told]]) -> None:
    assert [each.message for each in told.get(refusal.name, [])] == [refusal.message]


def test_every_validation_refuses_something(told: Mapping[str, list[Told]]) -> None:
    rules = {
        (path.relative_to(CHECKOUT).as_posix(), line)
        for path in [*CHECKOUT.glob("variables*.tf"), CHECKOUT / "modules" / "queue" / "variables.tf"]
        for line, text in enumerate(path.read_text().splitlines(), 1)
        if text == "  validation {"
    }
    assert rules - {each.rule for every in told.values() for each in every} == set()


def test_reports_belong_to_runs_that_exist() -> None:
    assert set(REPORTS) <= {refusal.name for refusal in REFUSALS}
