"""What docs/upgrading.md says that a plan shows is what Terraform and the provider plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.applied import planned_actions, state_of
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
def actions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One plan of a consumer for each row, and of two more: one that nobody touched, and one that is moved."""
    folder: Path = tmp_path_factory.mktemp("upgrading")
    (folder / "own.zip").write_bytes(b"zip")
    state = state_of(folder, call("orders", "orders"))

    text, resources = call("untouched", "untouched"), resources_of(state, "untouched")
    text += call("to", "from") + "moved {\n  from = module.from\n  to   = module.to\n}\n"
    resources += resources_of(state, "from")
    for number, (setting, value, *_) in enumerate(ROWS):
        name = f"row{number}"
        text += call(name, name, {setting: value})
        resources += resources_of(state, name)
    return planned_actions(folder, text, state | {"resources": resources})


def below(actions: dict[str, str], module: str) -> dict[str, str]:
    prefix = f"module.{module}."
    return {address.removeprefix(prefix): each for address, each in actions.items() if address.startswith(prefix)}


def told(cell: str) -> set[str]:
    return set(cell.replace("*", "").split(", ")) - {"–"}


def words(addresses: list[str]) -> set[str]:
    found = {address: [word for word, pattern in WORDS.items() if re.match(pattern, address)] for address in addresses}
    assert {address: some for address, some in found.items() if len(some) != 1} == {}
    return {word for some in found.values() for word in some}


def test_settings_that_nobody_touched_change_nothing(actions: dict[str, str]) -> None:
    """Else what is compared here with each change would not be what an apply leaves."""
    assert below(actions, "untouched") == {}


def test_a_moved_block_changes_nothing_but_the_address(actions: dict[str, str]) -> None:
    assert below(actions, "from") == {}
    moved = below(actions, "to")
    assert moved["module.tables.aws_dynamodb_table.ledger"] == "move"
    assert set(moved.values()) == {"move"}


@pytest.mark.parametrize(
    ("number", "row"), list(enumerate(ROWS)), ids=[f"{setting} = {value}" for setting, value, *_ in ROWS]
)
def test_a_plan_shows_what_the_page_says(actions: dict[str, str], number: int, row: tuple[str, str, str, str]) -> None:
    changed = below(actions, f"row{number}")
    in_place = [address for address, action in changed.items() if action in ("create", "update")]
    others = [address for address, action in changed.items() if action in ("delete", "replace")]
    assert len(in_place) + len(others) == len(changed)
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
