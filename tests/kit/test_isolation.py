"""The kit reaches no account, leaves nothing behind, and is imported by nobody who does not ask for it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from idempotent_consumer import Event, Plan, calls, telemetry
from idempotent_consumer.testing import AssertIdempotent, CannotTry, cloud
from tests.kit import plans

pytestmark = pytest.mark.filterwarnings("ignore:assert_idempotent did not try")
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "lambda" / "src"


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_settings_that_lead_to_an_account_are_not_used_and_are_put_back(
    assert_idempotent: AssertIdempotent, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def plan(_event: Event) -> Plan:
        seen.append(os.environ.get("AWS_ENDPOINT_URL"))
        return Plan()

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "real")
    cloud._real_clients.cache_clear()
    before = dict(os.environ)
    assert assert_idempotent(plan, [{"id": "e-1"}]).outcomes == {"e-1": "applied"}
    assert dict(os.environ) == before
    assert seen[-1] is None


def test_environment_is_put_back_after_a_failure(assert_idempotent: AssertIdempotent) -> None:
    before = dict(os.environ)
    pause, emit = calls.pause, telemetry.emit_metrics
    with pytest.raises(AssertionError):
        assert_idempotent(plans.announce, [{"id": "e-1", "times": 1}], topic=False)
    assert dict(os.environ) == before
    assert (calls.pause, telemetry.emit_metrics) == (pause, emit)
    assert not logging.getLogger("idempotent_consumer").disabled


def test_what_moto_does_not_answer_is_not_sent(assert_idempotent: AssertIdempotent) -> None:
    assert_idempotent(plans.nothing, [{"id": "e-1"}])
    with pytest.raises(Exception, match="the test kit sends nothing to https://dynamodb"):
        cloud._real_clients().dynamodb.list_tables()


def test_moto_of_the_users_own_is_not_wiped(assert_idempotent: AssertIdempotent) -> None:
    with mock_aws(), pytest.raises(CannotTry, match="mock_aws is active"):
        assert_idempotent(plans.nothing, [{"id": "e-1"}])


def test_nothing_is_printed_or_logged(
    assert_idempotent: AssertIdempotent, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert_idempotent(plans.rejecting, [{"id": "e-1", "quantity": 0}, {"id": "e-2", "quantity": 1}])
    assert capsys.readouterr() == ("", "")
    assert [entry for entry in caplog.records if entry.name.startswith("idempotent_consumer")] == []


def test_library_and_plugin_import_neither_moto_nor_each_other() -> None:
    done = run(
        "-c",
        "import sys, idempotent_consumer; print('moto' in sys.modules, 'pytest' in sys.modules)",
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")
    done = run("-c", "import sys, idempotent_consumer_pytest; print('idempotent_consumer' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("name", ["moto", "freezegun", "aws_xray_sdk"])
def test_missing_package_says_how_to_install_it(name: str) -> None:
    hide = f"u.find_spec = lambda name, find=u.find_spec: None if name == {name!r} else find(name)"
    done = run("-c", f"import importlib.util as u; {hide}; import idempotent_consumer.testing")
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: idempotent_consumer.testing needs {name}: install the extra `testing`, pip install "
        '"idempotent-consumer[testing] @ git+https://github.com/<you>/terraform-aws-idempotent-consumer.git@<tag>"'
    )


USERS_PLAN = """
from idempotent_consumer import Event, Plan, Update, pipeline

def plan(event: Event) -> Plan:
    return Plan([Update("counts", {"page": event.data["page"]}, add={"visits": 1})])

def tagging(event: Event) -> Plan:
    return Plan([Update("counts", {"page": event.id}, set={"tags": list(set(event.data["tags"]))})])

handler = pipeline(plan)
"""
USERS_TEST = """
from visits import plan, tagging

def test_visits_count_once(assert_idempotent):
    result = assert_idempotent(plan, [{"id": "v-1", "page": "home"}, {"id": "v-2", "page": "home"}])
    assert result.rows("counts") == [{"page": "home", "visits": 2}]
    assert result.not_tried == ()

def test_tags(assert_idempotent):
    assert_idempotent(tagging, [{"id": "v-1", "tags": [str(n) for n in range(20)]}])

def test_what_another_process_cannot_import(assert_idempotent):
    assert_idempotent(lambda event: plan(event), [{"id": "v-1", "page": "home"}])
"""


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_fixture_serves_a_user_in_a_folder_of_his_own(tmp_path: Path, mode: str) -> None:
    (tmp_path / "visits.py").write_text(USERS_PLAN)
    (tmp_path / "test_visits.py").write_text(USERS_TEST)
    options = ["-q", "-p", "idempotent_consumer_pytest", "-p", "no:cacheprovider", f"--import-mode={mode}"]
    path = f"{SOURCE}{os.pathsep}{tmp_path}"
    done = run(
        "-m", "pytest", *options, cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=path, COLUMNS="200"
    )
    assert "1 failed, 2 passed, 1 warning" in done.stdout
    assert f"{tmp_path}/test_visits.py:13: UserWarning: assert_idempotent did not try the order of sets" in done.stdout
    assert "AssertionError: the plan is not pure: what it plans for v-1 depends on the order of a set" in done.stdout
    assert "idempotent_consumer/testing" not in done.stdout.partition("short test summary")[0]


def test_plan_inside_a_test_file_is_tried_in_other_processes_too(tmp_path: Path) -> None:
    own = USERS_PLAN + USERS_TEST.replace("from visits import plan, tagging", "")
    (tmp_path / "test_visits.py").write_text(own)
    options = ["-q", "-p", "idempotent_consumer_pytest", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = run("-m", "pytest", *options, cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 failed, 2 passed" in done.stdout


def test_plugin_is_an_entry_point_of_the_package() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"idempotent_consumer": "idempotent_consumer_pytest"}
    names = {requirement.split(">=")[0] for requirement in project["optional-dependencies"]["testing"]}
    assert names == {"aws-xray-sdk", "freezegun", "moto[dynamodb,sns,sqs]", "pytest"}
