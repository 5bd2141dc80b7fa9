"""What a refused input is told: the variable, its value and the rule.

`terraform test` tells only that an input is refused, not why. Here the inputs of tests/reject.tftest.hcl are planned in
one root module, and each message is compared with the comment above its run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import module_source, plan_errors

REJECT_FILE = CHECKOUT / "tests" / "reject.tftest.hcl"
REQUIRED = {"business_table_name": '"order_records"', "name": '"orders"'}
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
    """One run of the reject file: the arguments that it sets, as HCL, and what the user is told."""

    name: str
    arguments: str
    message: str

    def module(self, source: str) -> str:
        given = re.findall(r"^ {4}(\w+) +=", self.arguments, re.MULTILINE)
        missing = "\n".join(f"{name} = {value}" for name, value in REQUIRED.items() if name not in given)
        return f'module "{self.name}" {{\nsource = "{source}"\n{missing}\n{self.arguments}\n}}\n'


@dataclass(frozen=True)
class Told:
    """What Terraform said: the message, and the file and line of the validation."""

    message: str
    rule: tuple[str, int]


def read_refusals() -> list[Refusal]:
    run = r'^# ([^\n]*)\nrun "reject_(\w+)" \{.*?^  variables \{\n(.*?)\n^  \}$'
    runs = re.findall(run, REJECT_FILE.read_text(), re.MULTILINE | re.DOTALL)
    return [Refusal(name, arguments, message) for message, name, arguments in runs]


REFUSALS = read_refusals()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Told]]:
    """What each input is told, by run.

    Terraform first checks what concerns one variable alone, and plans only if all of that holds: so the inputs that
    pass are planned again, without the others.
    """
    told: dict[str, list[Told]] = {}
    for attempt in ("alone", "together"):
        left = [refusal for refusal in REFUSALS if refusal.name not in told]
        told |= plan_all(tmp_path_factory.mktemp(attempt), left)
    return told


def plan_all(folder: Path, refusals: list[Refusal]) -> dict[str, list[Told]]:
    source = module_source(folder)
    told: dict[str, list[Told]] = {}
    for error in plan_errors(folder, "\n".join(refusal.module(source) for refusal in refusals)):
        _, name, _ = error["snippet"]["context"].split('"')
        message, checked = error["detail"].split("\n\n")
        rule = re.search(r"(\w+\.tf):(\d+),", checked)
        assert rule, checked
        told.setdefault(name, []).append(Told(message, (rule[1], int(rule[2]))))
    return told


def test_every_run_of_the_reject_file_is_read() -> None:
    assert len(REFUSALS) == REJECT_FILE.read_text().count("\nrun ") == 111


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


def test_every_validation_of_the_root_module_refuses_something(told: Mapping[str, list[Told]]) -> None:
    rules = {
        (path.name, line)
        for path in CHECKOUT.glob("variables*.tf")
        for line, text in enumerate(path.read_text().splitlines(), 1)
        if text == "  validation {"
    }
    assert rules - {each.rule for every in told.values() for each in every} == set()


def test_reports_belong_to_runs_that_exist() -> None:
    assert set(REPORTS) <= {refusal.name for refusal in REFUSALS}
