"""The plan in processes of its own: what finds it there, and what is said where nothing can."""

from __future__ import annotations

import io
import json
import pickle
import sys
import types
from functools import partial
from pathlib import Path

import pytest

from idempotent_consumer import Event, Plan
from idempotent_consumer.testing import AssertIdempotent, other_process, planning_process
from idempotent_consumer.testing.description import describe
from idempotent_consumer.testing.other_process import Place, find
from idempotent_consumer.testing.planning_process import Job
from tests.kit import plans

pytestmark = pytest.mark.filterwarnings("ignore:assert_idempotent did not try")
DAY = "2030-01-02 03:04:05"
EVENT = Event("e-1", {"id": "e-1", "quantity": 0}, "")


class Shop:
    @staticmethod
    def plan(_event: Event) -> Plan:
        return Plan()

    def bound(self, _event: Event) -> Plan:
        return Plan()


def test_function_of_a_module_or_class_is_found_by_its_name() -> None:
    assert find(plans.nothing) == Place("tests.kit.plans", "nothing", plans.__file__)
    assert find(Shop.plan) == Place(__name__, "Shop.plan", __file__)


def test_what_is_made_by_a_call_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(partial(plans.nothing)) is None
    assert find(Shop().bound) is None
    assert find(lambda _event: Plan()) is None
    monkeypatch.setattr(Shop.plan, "__module__", "__main__")
    assert find(Shop.plan) is None


def job(name: str, module: str = "tests.kit.plans", file: str = plans.__file__) -> Job:
    return Job(module, name, file, [EVENT], DAY, 1)


def test_process_reads_a_job_and_writes_descriptions() -> None:
    answer = io.StringIO()
    planning_process.main(io.BytesIO(pickle.dumps(job("nothing"))), answer)
    assert json.loads(answer.getvalue()) == [{"writes": "[]", "notifications": "[]"}]
    assert planning_process.run(job("rejecting")) == [{"raises": "Reject('no-quantity', 'quantity is below 1')"}]
    assert planning_process.run(job("raising")) == [{"raises": "KeyError(\"'totl'\")"}]
    assert planning_process.run(job("forgetting")) == [describe(Plan())]
    assert planning_process.run(job("count")) == [{"raises": "TypeError('a number is required')"}]


def test_process_plans_backwards_and_answers_in_order() -> None:
    events = [Event(f"e-{n}", {"sku": "backwards"}, "") for n in (1, 2)]
    answer = planning_process.run(Job("tests.kit.plans", "by_cache", plans.__file__, events, DAY, -1))
    assert [(each["writes[0].item.id"], each["writes[0].item.first"]) for each in answer] == [
        ("'e-1'", "'e-2'"),
        ("'e-2'", "'e-2'"),
    ]


def test_process_loads_a_file_that_has_no_name_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.py"
    file.write_text("from idempotent_consumer import Plan\nclass Shop:\n    plan = lambda event: None\n")
    monkeypatch.setitem(sys.modules, "of_nobody.some", types.ModuleType("replaced"))
    monkeypatch.delitem(sys.modules, "of_nobody.some")
    assert planning_process.run(job("Shop.plan", "of_nobody.some", str(file))) == [{"returns": "NoneType"}]
    with pytest.raises(ImportError):
        planning_process.run(job("plan", "of_nobody.other", str(tmp_path)))


def test_process_that_cannot_import_the_plan_is_no_finding_but_said(
    assert_idempotent: AssertIdempotent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text(
        "import sys\nfrom idempotent_consumer import Plan\nif 'pytest' not in sys.modules:\n"
        "    raise RuntimeError('not here')\ndef plan(event):\n    return Plan()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    only_here = __import__("only_here")
    assert assert_idempotent(only_here.plan, [{"id": "e-1"}]).not_tried == (
        "the order of sets: another process cannot run the plan (RuntimeError: not here)",
    )


def test_process_that_does_not_end_is_ended(
    assert_idempotent: AssertIdempotent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_process, "_SECONDS", 0.001)
    assert assert_idempotent(plans.nothing, [{"id": "e-1"}]).not_tried == (
        "the order of sets: another process cannot run the plan (it did not end within 0.001 seconds)",
    )
