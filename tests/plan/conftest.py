from __future__ import annotations

import pytest

from tests.plan.support import Plan, plan


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The consumers of tests/fixtures/variants, each configured in another way."""
    return plan("tests/fixtures/variants", tmp_path_factory.mktemp("variants"))


@pytest.fixture(scope="session")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The operations of tests/fixtures/operations: in the shortest form, and with everything set."""
    return plan("tests/fixtures/operations", tmp_path_factory.mktemp("operations"))


@pytest.fixture(scope="session")
def workflow_alarms(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The workflows of tests/fixtures/workflow_alarms: with each guard, and with all alarms set."""
    return plan("tests/fixtures/workflow_alarms", tmp_path_factory.mktemp("workflow-alarms"))
