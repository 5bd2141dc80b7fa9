from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import World

ORDERS = {
    "dead_letter_queue_url": {"value": "https://sqs/orders-dlq"},
    "function_name": {"value": "orders-worker"},
    "ledger_table_name": {"value": "orders-processed-events"},
    "queue_url": {"value": "https://sqs/orders"},
}
WHOLE = {name: entry["value"] for name, entry in ORDERS.items()}


def billing(function_name: str = "billing-worker") -> dict[str, Any]:
    return {**WHOLE, "function_name": function_name}


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a terraform on the path that knows these outputs; returns the folder to name."""

    def create(values: Any, *, fails_with: str = "") -> str:
        (tmp_path / "outputs.json").write_text(json.dumps(values), encoding="utf-8")
        program = tmp_path / "bin" / "terraform"
        program.parent.mkdir()
        program.write_text(
            "#!/bin/sh\n"
            f'[ "$*" = "-chdir={tmp_path} output -json -no-color" ] || exit 9\n'
            + (f"echo '{fails_with}' >&2; exit 1\n" if fails_with else f"cat {tmp_path}/outputs.json\n"),
            encoding="utf-8",
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/bin{os.pathsep}/usr/bin")
        return str(tmp_path)

    return create


def test_a_consumer_is_found_by_its_name(world: World) -> None:
    assert world.run("pending", "--name", "orders").exit_code == 0
    assert world.requests("GetFunctionConfiguration") == [{"FunctionName": "orders-worker"}]


def test_without_a_name_one_is_asked_for(world: World) -> None:
    run = world.run_command_line("pending")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: which consumer? Give --name, or --terraform-dir with the folder that it was applied from\n"
    )


@pytest.mark.parametrize(
    "values",
    [
        ORDERS,
        {"orders": {"value": WHOLE}},
        {"consumers": {"value": {"orders": WHOLE}}, "other": {"value": [1]}},
        {"orders": {"value": WHOLE}, "all": {"value": {"orders": WHOLE}}, **ORDERS},
    ],
    ids=["outputs of the root module", "the whole module in one output", "one of several in one output", "thrice"],
)
def test_a_consumer_is_found_by_the_outputs_of_a_folder(world: World, outputs: Any, values: Any) -> None:
    assert world.run("pending", "--terraform-dir", outputs(values)).exit_code == 0
    assert world.requests("GetFunctionConfiguration") == [{"FunctionName": "orders-worker"}]


@pytest.mark.parametrize("name", ["billing", "pipes.two"])
def test_the_name_chooses_among_the_consumers_of_a_folder(world: World, outputs: Any, name: str) -> None:
    world.deploy("billing-worker")
    folder = outputs({"pipes": {"value": {"one": WHOLE, "two": billing()}}})
    assert world.run("pending", "--terraform-dir", folder, "--name", name).exit_code == 0
    assert world.requests("GetFunctionConfiguration") == [{"FunctionName": "billing-worker"}]


def test_a_folder_with_several_consumers_asks_which(world: World, outputs: Any) -> None:
    folder = outputs({"one": {"value": WHOLE}, "two": {"value": billing()}})
    run = world.run("pending", "--terraform-dir", folder)
    assert run.exit_code == 2
    assert run.stderr == f"Error: {folder} has several consumers: choose one with --name (billing, orders)\n"


def test_a_name_that_a_folder_does_not_have_is_refused(world: World, outputs: Any) -> None:
    folder = outputs({"one": {"value": WHOLE}})
    run = world.run("pending", "--terraform-dir", folder, "--name", "billing")
    assert run.exit_code == 2
    assert run.stderr == f"Error: {folder} has no consumer named billing: it has orders\n"


def test_a_folder_without_a_consumer_says_which_output_to_add(world: World, outputs: Any) -> None:
    folder = outputs({"queue_url": {"value": "https://sqs/orders"}})
    run = world.run("pending", "--terraform-dir", folder)
    assert run.exit_code == 2
    assert run.stderr == (
        f'Error: {folder} has no output with a consumer in it: add `output "orders" {{ value = module.orders }}` and '
        "apply, or give --name\n"
    )


def test_what_terraform_complains_of_is_one_line(world: World, outputs: Any) -> None:
    folder = outputs({}, fails_with="Error: no\n   state")
    run = world.run("pending", "--terraform-dir", folder)
    assert (run.exit_code, run.stderr) == (
        2,
        f"Error: terraform output failed in {folder} (Error: no state): run terraform init there, or give --name "
        "instead\n",
    )


@pytest.mark.parametrize("printed", ["a wrapper's warning", "[1]", '{"orders": 1}', "[" * 10_000])
def test_outputs_that_are_none_are_one_line(world: World, outputs: Any, tmp_path: Path, printed: str) -> None:
    folder = outputs({})
    (tmp_path / "outputs.json").write_text(printed)
    run = world.run("pending", "--terraform-dir", folder)
    assert run.exit_code == 2
    assert run.stderr == f"Error: {tmp_path}/bin/terraform output -json gives no JSON of outputs: give --name instead\n"


def test_a_terraform_that_cannot_be_run_is_one_line(world: World, outputs: Any, tmp_path: Path) -> None:
    folder = outputs({})
    (tmp_path / "bin" / "terraform").write_bytes(b"\x7fELF no program")
    run = world.run("pending", "--terraform-dir", folder)
    assert run.exit_code == 2
    assert run.stderr.startswith(f"Error: {tmp_path}/bin/terraform cannot be run (")
    assert run.stderr.count("\n") == 1


def test_without_terraform_the_name_has_to_be_given(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = world.run("pending", "--terraform-dir", str(tmp_path))
    assert run.exit_code == 2
    assert run.stderr == ("Error: terraform is not installed, so --terraform-dir cannot be read: give --name instead\n")


def test_a_folder_that_does_not_exist_is_bad_input(world: World) -> None:
    run = world.run("pending", "--terraform-dir", "/nowhere")
    assert run.exit_code == 2
    assert "Directory '/nowhere' does not exist" in run.stderr


def test_a_function_that_is_no_consumer_is_refused(world: World) -> None:
    world.functions["orders-worker"]["Environment"]["Variables"] = {"CONSUMER_NAME": "orders"}
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: orders-worker is not a consumer of this version of the module (LEDGER_TABLE is missing or blank): "
        "apply the module again, or use the command line of its version\n"
    )


def test_a_setting_that_cannot_work_is_named(world: World) -> None:
    world.deploy(EVENT_ID="parcel..id")
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr.startswith("Error: orders-worker cannot start (EVENT_ID is 'parcel..id': ")
    assert run.stderr.endswith(
        "): mend what the module sets it from, and apply; or, if it is of another version, use the command line of "
        "that\n"
    )


def test_a_consumer_of_an_older_module_is_told_so(world: World) -> None:
    world.deploy(QUEUE_URL=None)
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: orders-worker is not a consumer of this version of the module (QUEUE_URL is missing): apply the module "
        "again, or use the command line of its version\n"
    )


def test_settings_under_a_key_that_may_not_be_used_are_named(world: World) -> None:
    world.functions["orders-worker"]["Environment"] = {
        "Error": {"ErrorCode": "AccessDeniedException", "Message": "Lambda was unable to decrypt your variables"}
    }
    run = world.run("pending")
    assert run.exit_code == 2
    assert run.stderr == (
        "Error: the settings of orders-worker cannot be read (Lambda was unable to decrypt your variables): you need "
        "kms:Decrypt on its key\n"
    )
