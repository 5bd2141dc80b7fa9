"""What docs/upgrading.md says that a plan shows is what Terraform and the provider plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.applied import changes, plan_of, state_after
from tests.docs.pages import text_of

PAGE = text_of("docs/upgrading.md")
ROWS = re.findall(r"^\| `([a-z_]+) = (.+)` \| (.+) \| (.+) \|$", PAGE, re.M)
# What the page calls the resources below the module.
WORDS = {
    "alarms": r"module\.alarms\.",
    "business table": r"module\.tables\.aws_dynamodb_table\.business",
    "dead-letter queue": r"module\.queue\.aws_sqs_queue\.dead_letter",
    "ledger": r"module\.tables\.aws_dynamodb_table\.ledger",
    "log groups": r".*\.aws_cloudwatch_log_group\.",
    "mapping": r".*\.aws_lambda_event_source_mapping\.",
    "queue": r"module\.queue\.aws_sqs_queue\.intake",
    "reconciler": r"module\.reconciler\[0\]\.(.*\.)?aws_lambda_function(_event_invoke_config)?\.",
    "redrive policies": r".*\.aws_sqs_queue_redrive_(allow_)?policy\.",
    "rights": r".*\.aws_iam_role_policy\.",
    "roles": r".*\.aws_iam_role\.",
    "schedule": r".*\.aws_scheduler_schedule\.",
    "topic": r"aws_sns_topic\.",
    "worker": r"module\.function\.aws_lambda_function\.",
}


def call(module: str, name: str, arguments: Mapping[str, str] | None = None) -> str:
    """The block that the page begins with."""
    given = {"source": '"@/"', "name": f'"{name}"', "business_table_name": f'"{name}_records"'}
    given |= arguments or {}
    return f'module "{module}" {{\n' + "".join(f"  {key} = {value}\n" for key, value in given.items()) + "}\n"


def resources_of(state: dict[str, Any], name: str) -> list[Any]:
    """The resources of the consumer `orders`, as those of another."""
    return list(json.loads(json.dumps(state["resources"]).replace("orders", name)))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One plan of a consumer for each row, and of two more: one that nobody touched, and one that is moved."""
    folder: Path = tmp_path_factory.mktemp("upgrading")
    before = call("orders", "orders")
    state = state_after(plan_of(folder, before))
    # What depends on what only AWS knows is planned once that is known, and what depends on that once more.
    for _ in range(2):
        state = state_after(plan_of(folder, before, state, init=False))
    (folder / "own.zip").write_bytes(b"zip")

    text, resources = call("untouched", "untouched"), resources_of(state, "untouched")
    resources += resources_of(state, "from")
    text += call("to", "from") + "moved {\n  from = module.from\n  to   = module.to\n}\n"
    for number, (setting, value, *_) in enumerate(ROWS):
        name = f"row{number}"
        text += call(name, name, {setting: value})
        resources += resources_of(state, name)
    return plan_of(folder, text, state | {"resources": resources})


def told(cell: str) -> set[str]:
    return set(cell.replace("*", "").split(", ")) - {"–"}


def words(addresses: list[str]) -> set[str]:
    found = {address: [word for word, pattern in WORDS.items() if re.match(pattern, address)] for address in addresses}
    assert {address: some for address, some in found.items() if len(some) != 1} == {}
    return {word for some in found.values() for word in some}


def test_settings_that_nobody_touched_change_nothing(planned: dict[str, Any]) -> None:
    """Else what is compared here with each change would not be what an apply leaves."""
    assert changes(planned, "module.untouched") == {}


def test_a_moved_block_changes_nothing_but_the_address(planned: dict[str, Any]) -> None:
    assert changes(planned, "module.to") == {}
    assert changes(planned, "module.from") == {}
    managed = [change for change in planned["resource_changes"] if change["mode"] == "managed"]
    moved = {
        change["address"]: change.get("previous_address") for change in managed if "module.to." in change["address"]
    }
    assert len(moved) > 30
    assert moved == {address: address.replace("module.to.", "module.from.", 1) for address in moved}


@pytest.mark.parametrize(
    ("number", "row"), list(enumerate(ROWS)), ids=[f"{setting} = {value}" for setting, value, *_ in ROWS]
)
def test_a_plan_shows_what_the_page_says(planned: dict[str, Any], number: int, row: tuple[str, str, str, str]) -> None:
    changed = changes(planned, f"module.row{number}")
    in_place = [address for address, actions in changed.items() if actions in (["update"], ["create"])]
    others = [address for address in changed if address not in in_place]
    assert (words(in_place), words(others)) == (told(row[2]), told(row[3]))


def test_the_page_has_the_rows_that_lose_something() -> None:
    lose = {f"{setting} = {value}": re.findall(r"\*\*(.+?)\*\*", last) for setting, value, _, last in ROWS}
    assert len(ROWS) == 11
    assert {setting: lost for setting, lost in lose.items() if lost} == {
        'business_table = { hash_key = "order_id" }': ["business table"],
        'business_table_name = "records"': ["business table"],
        "queue = { fifo = true }": ["queue", "dead-letter queue", "topic"],
        'name = "purchases"': ["ledger", "queue", "dead-letter queue", "topic"],
    }
