"""What a refused input is told: the variable, its value and the rule.

`terraform test` tells only that an input is refused, not why. Here the inputs of tests/reject*.tftest.hcl are planned
in one root module, and each message is compared with the comment above its run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.plan.support import module_source, plan_errors

OPERATION = "modules/operation"
WORKFLOW = "modules/workflow"
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
    """One run of a reject file: the module, the arguments that it is given, as HCL, what the user is told, and what the
    run says that it fails at."""

    name: str
    source: str
    arguments: Mapping[str, str]
    message: str
    expected: str

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
    run = (
        r'^# ([^\n]*)\nrun "reject_(\w+)" \{\n(.*?)^  variables \{\n(.*?)\n^  \}$'
        r"\n\n  expect_failures = \[(\S+)\]\n\}"
    )
    return [
        Refusal(
            name,
            source[1] if (source := re.search(r'source = "\./(.*)"', before)) else ".",
            arguments_of(of_all, 2) | arguments_of(own, 4),
            message,
            expected,
        )
        for message, name, before, own, expected in re.findall(run, text, re.MULTILINE | re.DOTALL)
    ]


REFUSALS = [refusal for file in REJECT_FILES for refusal in read_refusals(file)]


@dataclass(frozen=True)
class Validation:
    """A validation of a variable. text: without its layout."""

    variable: str
    text: str
    rule: tuple[str, int]

    def text_of_a_standard_queue(self) -> str:
        """What is left of it where no queue is FIFO."""
        return re.sub(r"(?<!!)var\.queue\.fifo \|\| ", "", self.text)

    def beginning(self) -> str:
        """The first nine words of what it says, without the values."""
        said = self.text.split('error_message = "', 1)[1].removesuffix('"').replace('\\"', '"')
        return " ".join(re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "…", said).split()[:9])


def validations_of(module: str) -> list[Validation]:
    found = []
    for path in sorted((CHECKOUT / module).glob("variables*.tf")):
        text = path.read_text()
        for block in re.finditer(r'^variable "(\w+)" \{\n.*?^\}', text, re.MULTILINE | re.DOTALL):
            for each in re.finditer(r"^  validation \{\n(.*?)^  \}", block[0], re.MULTILINE | re.DOTALL):
                line = text.count("\n", 0, block.start() + each.start()) + 1
                rule = (path.relative_to(CHECKOUT).as_posix(), line)
                found.append(Validation(block[1], " ".join(each[1].split()), rule))
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Told]]:
    """What each input is told, by run."""
    return tell(REFUSALS, tmp_path_factory.mktemp)


@pytest.fixture(scope="module")
def told_by_operation(
    told: Mapping[str, list[Told]], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[Told]]:
    """What the module for operations says to the inputs that the root module refuses by a validation of both."""
    refusals = refused_by_root_too(OPERATION, told)
    return tell([as_operation(refusal) for refusal in refusals], tmp_path_factory.mktemp)


@pytest.fixture(scope="module")
def told_by_workflow(
    told: Mapping[str, list[Told]], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[Told]]:
    """What the module for workflows says to the inputs that the root module refuses by a validation of both."""
    refusals = refused_by_root_too(WORKFLOW, told)
    return tell([as_workflow(refusal) for refusal in refusals], tmp_path_factory.mktemp)


def refused_by_root_too(module: str, told: Mapping[str, list[Told]]) -> list[Refusal]:
    shared = {each.text_of_a_standard_queue() for each in validations_of(module)}
    rules = {each.rule for each in validations_of(".") if each.text_of_a_standard_queue() in shared}
    return [refusal for refusal in REFUSALS if any(each.rule in rules for each in told[refusal.name])]


def as_operation(refusal: Refusal) -> Refusal:
    """The same input, given to the module for operations."""
    names = {each.variable for each in validations_of(OPERATION)}
    arguments = {name: value for name, value in refusal.arguments.items() if name in names}
    url = "'https://api.example.com/v1/charges'"
    if "package" not in arguments.get("function", ""):
        arguments["http"] = f'{{ hosts = ["api.example.com"], url = "{url}" }}'
    return replace(refusal, source=OPERATION, arguments=arguments)


def as_workflow(refusal: Refusal) -> Refusal:
    """The same input, given to the module for workflows."""
    names = {each.variable for each in validations_of(WORKFLOW)}
    arguments = {name: value for name, value in refusal.arguments.items() if name in names}
    arguments["effect"] = '{ function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" } }'
    return replace(refusal, source=WORKFLOW, arguments=arguments)


def tell(refusals: Sequence[Refusal], make_folder: Callable[[str], Path]) -> dict[str, list[Told]]:
    """What each input is told, by run.

    Terraform first checks what concerns one variable alone, then what concerns several, and plans resources only if
    all of that holds: so the inputs that pass are planned again, without the others. A resource's precondition does not
    say in which module it failed: each of those has a plan of its own.
    """
    told: dict[str, list[Told]] = {}
    for attempt in ("alone", "together"):
        folder = make_folder(attempt)
        for error in plan_refusals(folder, [refusal for refusal in refusals if refusal.name not in told]):
            kind, name, *_ = error["snippet"]["context"].split('"')
            if kind == "module ":
                told.setdefault(name, []).append(read_error(folder, error))
    for refusal in refusals:
        if refusal.name not in told:
            folder = make_folder(refusal.name)
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
    assert runs == {
        "reject.tftest.hcl": 159,
        "reject_function.tftest.hcl": 3,
        "reject_operation.tftest.hcl": 127,
        "reject_queue.tftest.hcl": 15,
        "reject_workflow.tftest.hcl": 95,
    }
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
        "shorten function.environment, or the paths that are set (JMESPath)."
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


def test_a_run_fails_at_the_variable_that_refuses_it(told: Mapping[str, list[Told]]) -> None:
    """So `terraform test` passes with these files, which takes minutes: it runs the smallest ones."""
    modules = {refusal.source for refusal in REFUSALS}
    variables = {each.rule: f"var.{each.variable}" for module in modules for each in validations_of(module)}
    failing = {name: {variables[each.rule] for each in every if each.rule} for name, every in told.items()}
    assert {refusal.name: failing[refusal.name] or {"aws_lambda_function.worker"} for refusal in REFUSALS} == {
        refusal.name: {refusal.expected} for refusal in REFUSALS
    }


def test_every_validation_refuses_something(
    told: Mapping[str, list[Told]],
    told_by_operation: Mapping[str, list[Told]],
    told_by_workflow: Mapping[str, list[Told]],
) -> None:
    modules = (".", "modules/queue", OPERATION, WORKFLOW)
    rules = {each.rule for module in modules for each in validations_of(module)}
    answers = (told, told_by_operation, told_by_workflow)
    refusing = {each.rule for by_name in answers for every in by_name.values() for each in every}
    assert rules - refusing == set()


def said_otherwise(told: Mapping[str, list[Told]], told_by_other: Mapping[str, list[Told]]) -> dict[str, list[str]]:
    """What another module says to an input, where that is not what the root module says."""
    return {
        name: [each.message for each in every]
        for name, every in told_by_other.items()
        if told[name][0].message not in [each.message for each in every]
    }


def test_what_both_modules_refuse_they_refuse_in_the_same_words(
    told: Mapping[str, list[Told]], told_by_operation: Mapping[str, list[Told]]
) -> None:
    # The reconciler's setting, which is no other module's.
    assert said_otherwise(told, told_by_operation) == {"environment_that_the_module_sets_for_the_reconciler": []}


def test_a_workflow_refuses_in_the_root_modules_words_too(
    told: Mapping[str, list[Told]], told_by_workflow: Mapping[str, list[Told]]
) -> None:
    assert len(told_by_workflow) > 60
    # Settings that a workflow does not have.
    assert said_otherwise(told, told_by_workflow) == {
        "environment_that_the_module_sets": [],
        "environment_that_the_module_sets_for_the_reconciler": [],
    }


def test_the_modules_differ_in_the_validations_of_what_only_one_of_them_has() -> None:
    """A rule of both is one text: else it would be mended in one of them, and forgotten in the other."""
    root, operation = validations_of("."), validations_of(OPERATION)
    variables = {each.variable for each in root} & {each.variable for each in operation}

    def only_in(these: list[Validation], those: list[Validation]) -> list[str]:
        texts = {each.text for each in those}
        return [each.beginning() for each in these if each.variable in variables and each.text not in texts]

    assert only_in(root, operation) == [
        "batch_size is … and function.timeout_seconds is …: at 10",
        "alarms.stale_pending is …, but must be a whole number,",
        "event.write_mode is …, but must be insert, upsert or",
        'event.version is null and event.write_mode is "newer": without a',
        "event.version is … and event.write_mode is …: a version",
        "event has a blank path (fingerprint …, id …,",
        'event.envelope is "s3", event.item is "@" and business_table.hash_key is',
        "function.table_arns is …, but must be ARNs of DynamoDB",
        "function.table_arns is …, with a consumer's ledger: a plan",
        "function.table_arns is … and function.package is null: the shipped",
        "queue.max_receive_count (…) x the larger of queue.visibility_timeout_seconds (…) and",
    ]
    assert only_in(operation, root) == [
        "batch_size is …, operation.effect_timeout_seconds is … and function.timeout_seconds is",
        "alarms.failed is …, but must be a whole number,",
        "event has a blank path (fingerprint …, id …):",
        "queue.max_receive_count is …, not above operation.max_attempts (…): SQS would",
        "queue.max_receive_count (…) x the largest of queue.visibility_timeout_seconds (…), queue.backoff_max_seconds",
        'queue.retention_days is … (… seconds), but with operation.uncertain "reconcile"',
    ]


def test_a_workflow_differs_in_the_validations_of_what_only_it_has() -> None:
    """A rule that the root module or an operation has as well is one text, but for what concerns FIFO queues."""
    workflow = validations_of(WORKFLOW)
    others = [each for module in (".", OPERATION) for each in validations_of(module)]
    variables = {each.variable for each in workflow} & {each.variable for each in others}
    texts = {each.text_of_a_standard_queue() for each in others}
    assert [each.beginning() for each in workflow if each.variable in variables and each.text not in texts] == [
        "alarms.executions_failed is …, but must be a whole number,",
        "alarms.executions_throttled is …, but must be a whole number,",
        "queue.max_receive_count (…) x the larger of queue.visibility_timeout_seconds (…) and",
    ]


def test_reports_belong_to_runs_that_exist() -> None:
    assert set(REPORTS) <= {refusal.name for refusal in REFUSALS}
