"""What `terraform validate` does not accept is told with its file and line; the modules here need no provider."""

from __future__ import annotations

from pathlib import Path

from checks.hcl.module import modules_of
from checks.terraform_validate import read, root_modules, validate
from checks.tree import checkout
from local.terraform import CHECKOUT

VARIABLE = 'variable "name" {\n  type = string\n}\n'


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_module_and_each_example_is_a_root_module_in_its_turn() -> None:
    assert root_modules(CHECKOUT) == [
        ".",
        "examples/eventbridge",
        "examples/fan-out",
        "examples/fifo",
        "examples/ingestion",
        "examples/orders",
        "examples/payments",
        "examples/s3-ingest",
        "examples/stock",
        "examples/webhook",
        "modules/alarms",
        "modules/function",
        "modules/operation",
        "modules/queue",
        "modules/reconciler",
        "modules/tables",
        "modules/workflow",
    ]


def test_the_rules_for_terraform_files_hold_for_the_same_modules() -> None:
    shipped = [module.folder or "." for module in modules_of(checkout()) if module.is_shipped]
    assert shipped == root_modules(CHECKOUT)


def test_an_error_is_told_with_the_path_and_line_in_the_checkout_and_a_warning_is_not() -> None:
    where = {"filename": "../../modules/queue/main.tf", "start": {"line": 7, "column": 3, "byte": 90}}
    report = {
        "format_version": "1.0",
        "valid": False,
        "error_count": 2,
        "warning_count": 1,
        "diagnostics": [
            {"severity": "error", "summary": "Unsupported argument", "detail": "Not\nexpected here.", "range": where},
            {"severity": "error", "summary": "Missing provider", "detail": ""},
            {"severity": "warning", "summary": "Deprecated", "detail": "Soon gone.", "range": where},
        ],
    }
    assert read("examples/orders", report) == [
        "modules/queue/main.tf:7: Unsupported argument: Not expected here.",
        "examples/orders: Missing provider",
    ]


def test_an_error_of_a_module_that_two_others_call_is_told_once(tmp_path: Path) -> None:
    call = 'module "queue" {\n  source = "../../modules/queue"\n  name   = "orders"\n}\n'
    work = write(
        tmp_path,
        {
            "modules/queue/main.tf": VARIABLE + 'output "name" {\n  value = var.nane\n}\n',
            "examples/a/main.tf": call,
            "examples/b/main.tf": call,
        },
    )
    assert validate(work, ["examples/a", "examples/b", "modules/queue"]) == [
        "modules/queue/main.tf:5: Reference to undeclared input variable: "
        'An input variable with the name "nane" has not been declared. Did you mean "name"?'
    ]


def test_a_file_that_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    work = write(tmp_path, {"main.tf": VARIABLE, "modules/queue/main.tf": "locals {\n  name =\n}\n"})
    assert validate(work, [".", "modules/queue"]) == [
        "modules/queue/main.tf:2: Invalid expression: "
        "Expected the start of an expression, but found an invalid expression token."
    ]


def test_a_module_that_is_not_there_is_told(tmp_path: Path) -> None:
    work = write(tmp_path, {"main.tf": VARIABLE, "examples/a/main.tf": 'module "queue" {\n  source = "../gone"\n}\n'})
    (found,) = validate(work, [".", "examples/a"])
    assert found.startswith("examples/a/main.tf:1: ")


def test_what_is_right_is_no_problem(tmp_path: Path) -> None:
    work = write(tmp_path, {"main.tf": VARIABLE, "modules/queue/main.tf": 'output "name" {\n  value = "orders"\n}\n'})
    assert validate(work, [".", "modules/queue"]) == []
