"""What becomes of checkov's findings and skips; checkov itself is run by `make check`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from checks import security
from checks.problem import CannotRun

TABLE = 'resource "aws_dynamodb_table" "ledger" {{\n  # checkov:skip=CKV_AWS_119{}\n  name = "ledger"\n}}\n'


def check(check_id: str, path: str, lines: list[int], resource: str) -> dict[str, Any]:
    """A part of what checkov says of one check on one resource."""
    return {
        "check_id": check_id,
        "check_name": "Ensure DynamoDB Tables are encrypted using a KMS Customer Managed CMK",
        "check_result": {"result": "FAILED", "evaluated_keys": []},
        "file_path": path,
        "file_line_range": lines,
        "resource": resource,
    }


def report(**results: list[Any]) -> dict[str, Any]:
    lists = ("passed_checks", "failed_checks", "skipped_checks", "parsing_errors")
    return {"check_type": "terraform", "results": {name: results.get(name, []) for name in lists}}


def test_a_finding_is_told_once_with_its_line_and_both_ways_out() -> None:
    failed = [
        check("CKV_AWS_119", "/modules/tables/main.tf", [8, 55], f"{caller}.aws_dynamodb_table.ledger")
        for caller in ("module.orders.module.tables", "module.tables")
    ]
    assert security.findings(report(failed_checks=failed)) == [
        "modules/tables/main.tf:8: CKV_AWS_119: Ensure DynamoDB Tables are encrypted using a KMS Customer Managed CMK. "
        "Mend it, or say in the block why not: # checkov:skip=CKV_AWS_119:<reason>"
    ]


SKIPPED = report(skipped_checks=[check("CKV_AWS_119", "/main.tf", [1, 4], "aws_dynamodb_table.ledger")])


def test_a_skip_with_a_reason_that_checkov_heeds_is_no_problem() -> None:
    assert security.judge_skips({"main.tf": TABLE.format(":The key is the caller's.")}, SKIPPED) == []


@pytest.mark.parametrize("reason", ["", ":", ":  "])
def test_a_skip_without_a_reason_is_a_problem(reason: str) -> None:
    assert security.judge_skips({"main.tf": TABLE.format(reason)}, SKIPPED) == [
        "main.tf:2: CKV_AWS_119 is skipped without a reason: give one behind a colon."
    ]


def test_a_skip_that_checkov_does_not_heed_is_a_problem() -> None:
    texts = {"main.tf": TABLE.format(":Why."), "other.tf": TABLE.format(":Why.")}
    assert security.judge_skips(texts, SKIPPED) == [
        "other.tf:2: CKV_AWS_119 checks no block here: remove the skip, or put it into its block."
    ]


def test_a_file_that_checkov_cannot_read_is_a_problem_where_it_makes_something() -> None:
    texts = {"main.tf": TABLE, "data.tf": 'data "aws_region" "here" {}\n', "variables.tf": 'variable "a" {}\n'}
    assert [
        line.partition(" ")[0] for line in security.judge_unread(texts, ["variables.tf", "main.tf", "data.tf"])
    ] == [
        "data.tf:1:",
        "main.tf:1:",
    ]


# What checkov 3.3.30 says of a folder in which there is nothing for it.
NOTHING = (
    '{"passed": 0, "failed": 0, "skipped": 0, "parsing_errors": 0, "resource_count": 0, "checkov_version": "3.3.30"}'
)


@pytest.mark.parametrize("output", [NOTHING, json.dumps(report())])
def test_a_run_that_checked_nothing_does_not_pass(output: str) -> None:
    with pytest.raises(CannotRun, match="has read no Terraform files"):
        security.read(output)


def test_a_run_that_checked_something_is_taken() -> None:
    passed = report(passed_checks=[check("CKV_AWS_28", "/main.tf", [1, 4], "aws_dynamodb_table.ledger")])
    assert security.read(json.dumps(passed)) == passed


def test_the_environment_is_made_once_for_a_state_of_the_requirements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requirements, made = tmp_path / "requirements.txt", []
    monkeypatch.setattr(security, "REQUIREMENTS", requirements)
    monkeypatch.setattr(security, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(security, "_run", lambda command, seconds: made.append(command[1:3]))

    for text in ("checkov==1\n", "checkov==1\n", "checkov==2\n"):
        requirements.write_text(text)
        assert security._checkov() == tmp_path / "bin" / "checkov"
    assert made == [["-m", "venv"], ["-m", "pip"]] * 2
    assert capsys.readouterr().err.count("once: about a minute") == 2


def test_the_requirements_are_pinned_to_the_last() -> None:
    lines = [line for line in security.REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert "checkov==3.3.30" in lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", line)] == []


def test_no_setting_of_the_users_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BC_API_KEY", "0c5a")
    monkeypatch.setenv("CKV_IGNORE_HIDDEN_DIRECTORIES", "false")
    seen = security._run(["env"], 30, home=Path("/nowhere")).stdout.splitlines()
    assert "HOME=/nowhere" in seen
    assert [line for line in seen if line.startswith(("BC_", "CKV_"))] == []
