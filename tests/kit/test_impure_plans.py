"""A plan that looks at anything but its event is found out, and told what is wrong with it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idempotent_consumer import Event, Notification, Plan, Reject, Update, pipeline
from idempotent_consumer.plan import Planner
from idempotent_consumer.testing import AssertIdempotent
from tests.kit import plans

pytestmark = pytest.mark.filterwarnings("ignore:assert_idempotent did not try")


@pytest.fixture
def refused(assert_idempotent: AssertIdempotent) -> Any:
    """The lines that a plan fails with."""

    def refuse(plan: Planner, *events: dict[str, Any]) -> list[str]:
        with pytest.raises(AssertionError) as caught:
            assert_idempotent(plan, events)
        return str(caught.value).splitlines()

    return refuse


def test_clock_is_found(refused: Any) -> None:
    assert refused(plans.by_time, {"id": "e-1"}, {"id": "e-2"}) == [
        "the plan is not pure: what it plans for e-1 and e-2 depends on the clock",
        "  writes[0].item.at",
        "    at 2001-02-14 03:04:05.678901  982119845",
        "    at 2061-12-31 23:59:58.999999  2903299198",
        "likely:  datetime.now(), date.today() or time.time() in the plan",
        "instead: take the time from the event, where its producer puts it; event_committed_at on the row says when it "
        "was written",
    ]


def test_date_in_a_notification_is_found(refused: Any) -> None:
    assert refused(plans.by_date, {"id": "e-1"})[:4] == [
        "the plan is not pure: what it plans for e-1 depends on the clock",
        "  notifications[0].message.day",
        "    at 2001-02-14 03:04:05.678901  '2001-02-14'",
        "    at 2061-12-31 23:59:58.999999  '2061-12-31'",
    ]


def test_deadline_is_found_that_rejects_only_later(refused: Any) -> None:
    assert refused(plans.by_deadline, {"id": "e-1", "until": "2030-01-02"})[:4] == [
        "the plan is not pure: what it plans for e-1 depends on the clock",
        "  writes[0]",
        "    at 2001-02-14 03:04:05.678901  Put('rows')",
        "    at 2061-12-31 23:59:58.999999  (absent)",
    ]


@pytest.mark.parametrize("plan", [plans.by_half_hour, plans.by_last_day])
def test_part_of_the_time_is_found(refused: Any, plan: Planner) -> None:
    assert refused(plan, {"id": "e-1"})[0] == "the plan is not pure: what it plans for e-1 depends on the clock"


def test_chance_is_found_that_mostly_comes_out_the_same(refused: Any) -> None:
    lines = refused(plans.by_random, {"id": "e-1"})
    assert lines[:2] == [
        "the plan is not pure: what it plans for e-1 depends on chance",
        "  writes[0].item.side",
    ]
    assert {line.split()[-1] for line in lines[2:4]} == {"'heads'", "'tails'"}
    assert lines[4:] == [
        "likely:  random, uuid.uuid4() or secrets in the plan",
        "instead: make ids from the event's own: uuid.uuid5(NAMESPACE, event.id)",
    ]


def test_random_id_is_found_whatever_the_number_of_events(refused: Any) -> None:
    assert refused(plans.by_uuid, {"id": "e-1"})[:2] == [
        "the plan is not pure: what it plans for e-1 depends on chance",
        "  writes[0].item.id",
    ]
    assert refused(plans.by_uuid, {"id": "e-1"}, {"id": "e-2"})[0] == (
        "the plan is not pure: what it plans for e-1 and e-2 depends on chance"
    )


@pytest.mark.parametrize("plan", [plans.by_counter, plans.by_seen, plans.by_last])
def test_what_is_kept_from_call_to_call_is_found(refused: Any, plan: Planner) -> None:
    lines = refused(plan, {"id": "e-1"}, {"id": "e-2"})
    assert lines[0] == "the plan is not pure: what it plans for e-1 and e-2 depends on what was planned before"
    assert lines[-2:] == [
        "likely:  a variable of the module or an object that lives from one call to the next, such as a counter, a "
        "cache or a list; or a source of chance or time of another library's",
        "instead: make all that a plan needs from its event; count in the table, by Update(…, add={…})",
    ]


@pytest.mark.parametrize("plan", [plans.by_cache, plans.by_memo])
def test_cache_that_the_first_event_fills_is_found(refused: Any, plan: Planner) -> None:
    lines = refused(plan, {"id": "e-1", "sku": "A"}, {"id": "e-2", "sku": "A"}, {"id": "e-3", "sku": "B"})
    assert lines[:2] == [
        "the plan is not pure: what it plans for e-1 and e-2 depends on what was planned before",
        "  writes[0].item.first",
    ]
    assert lines[-1] == "instead: make all that a plan needs from its event; count in the table, by Update(…, add={…})"


def test_order_of_a_set_is_found(refused: Any) -> None:
    lines = refused(plans.by_set, {"id": "e-1", "tags": [f"tag-{n}" for n in range(12)]})
    assert lines[0] == (
        "the plan is not pure: what it plans for e-1 depends on the order of a set: the parts are the same, their "
        "order is not"
    )
    assert lines[1].startswith("  writes[0].item.tags[")
    assert lines[-2:] == [
        "likely:  a loop over a set of texts, whose order is another in each process; or hash()",
        "instead: sorted(…), or dict.fromkeys(…) where each thing is to come once",
    ]


@pytest.mark.parametrize("plan", [plans.by_import, plans.by_process])
def test_value_that_each_process_makes_anew_is_found(refused: Any, plan: Planner) -> None:
    lines = refused(plan, {"id": "e-1"})
    assert lines[:2] == [
        "the plan is not pure: what it plans for e-1 differs from process to process",
        "  writes[0].item.worker",
    ]


def test_event_that_is_changed_is_found(refused: Any) -> None:
    assert refused(plans.changing, {"id": "e-1", "tags": ["a"]}) == [
        "the plan changes the event e-1 that it is given",
        "  event.data.tags[0]",
        "    before  'a'",
        "    after   (absent)",
        "likely:  pop(), update(), append(), sort() or an assignment on event.data",
        "instead: work on a copy: {**event.data, …}, sorted(…), or copy.deepcopy(event.data)",
    ]
    assert refused(plans.sorting, {"id": "e-1", "tags": ["b", "a"]})[:2] == [
        "the plan changes the event e-1 that it is given",
        "  event.data.tags[0]",
    ]


def test_network_is_found_and_not_reached(refused: Any) -> None:
    lines = refused(plans.looking_up, {"id": "e-1"})
    assert lines[0] == "for e-1 the plan opens a network connection"
    assert "dynamodb.us-east-1.amazonaws.com" in lines[1]


@pytest.mark.parametrize(
    "send",
    [
        lambda udp, address: udp.connect_ex(address),
        lambda udp, address: udp.sendto(b"visits:1|c", address),
        lambda udp, address: udp.sendmsg([b"visits:1|c"], [], 0, address),
    ],
)
def test_each_way_to_the_network_is_found(refused: Any, send: Callable[[socket.socket, Any], Any]) -> None:
    def plan(_event: Event) -> Plan:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            send(udp, ("127.0.0.1", 9))
        return Plan()

    headline, detail, *_ = refused(plan, {"id": "e-1"})
    assert headline == "for e-1 the plan opens a network connection"
    assert detail.endswith("('127.0.0.1', 9)")


def test_command_is_found_and_not_run(refused: Any, tmp_path: Path) -> None:
    def plan(_event: Event) -> Plan:
        subprocess.run(["touch", str(tmp_path / "touched")], check=True)
        return Plan()

    assert refused(plan, {"id": "e-1"})[:2] == [
        "for e-1 the plan starts another program",
        f"  ['touch', '{tmp_path}/touched']",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("first", "then", "headline"),
    [
        ("ok", "other", "the tables are not those of the undisturbed run"),
        ("ok", "no", "e-1 was dead-lettered as no, not as id-reused, refused-by-dynamodb and row-exists"),
        ("no", "never", "e-1 was dead-lettered as never, not as no"),
        ("no", "", "e-1 is not in the dead-letter queue"),
    ],
)
def test_plan_that_changes_later_than_the_experiments_see_is_found_by_what_it_does(
    refused: Any, first: str, then: str, headline: str
) -> None:
    """Planned 13 times by the experiments and once by the undisturbed run."""
    calls: list[str] = []

    def plan(event: Event) -> Plan:
        calls.append(event.id)
        says = first if len(calls) <= 14 else then
        if says.startswith("n"):
            raise Reject(says)
        return Plan([Update("rows", {"id": "a"}, set={"says": says})] if says else [])

    lines = refused(plan, {"id": "e-1"})
    assert lines[0] == headline
    assert lines[-1].startswith("likely:  the plan looks at something that its event does not hold, and that the ")


def test_notification_that_is_not_planned_any_more_is_missed(refused: Any) -> None:
    calls: list[str] = []

    def plan(event: Event) -> Plan:
        calls.append(event.id)
        return Plan(notifications=[Notification("told")] if len(calls) <= 14 else [])

    assert refused(plan, {"id": "e-1"})[:3] == [
        "the notifications are not those of the undisturbed run",
        "  when each message comes twice in one batch",
        "  never heard: e-1: 'told' {}",
    ]


def test_exception_is_shown_with_its_place(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(plans.raising, [{"id": "e-1", "total": 1}])
    lines = str(caught.value).splitlines()
    assert lines[0] == "for e-1 the plan raises KeyError: 'totl'"
    assert "tests/kit/plans.py, line " in lines[1]
    assert isinstance(caught.value.__cause__, KeyError)


def test_misuse_of_the_library_is_shown(refused: Any) -> None:
    assert refused(plans.senseless, {"id": "e-1"})[0] == (
        "for e-1 the plan makes no sense: Update('rows') changes nothing: to look at a row, use Check"
    )


def test_missing_return_is_shown(refused: Any) -> None:
    assert refused(plans.forgetting, {"id": "e-1", "quantity": 1}) == [
        "for e-1 the plan returns NoneType, and no Plan",
        "likely:  a branch without return",
        "instead: return Plan() where there is nothing to do",
    ]


def test_handler_in_place_of_the_plan_is_shown(assert_idempotent: AssertIdempotent) -> None:
    handler: Any = pipeline(plans.nothing)
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(handler, [{"id": "e-1"}])
    assert str(caught.value).splitlines() == [
        "this is the handler that pipeline(plan) gives",
        "instead: pass the plan itself",
    ]


def test_async_plan_is_shown(refused: Any, recwarn: pytest.WarningsRecorder) -> None:
    async def plan(_event: Event) -> Plan:
        return Plan()

    assert refused(plan, {"id": "e-1"}) == [
        "the plan is an async function",
        "instead: def: a plan has nothing to wait for",
    ]
    assert [str(each.message) for each in recwarn] == []


def test_plan_that_is_no_function_is_refused(assert_idempotent: AssertIdempotent) -> None:
    with pytest.raises(AssertionError, match="a function from an Event to a Plan, not Plan"):
        assert_idempotent(Plan(), [{"id": "e-1"}])  # type: ignore[arg-type]


def test_environment_and_chance_are_as_before(assert_idempotent: AssertIdempotent) -> None:
    random.seed(7)
    expected = random.Random(7).random()
    before = dict(os.environ)
    assert_idempotent(plans.nothing, [{"id": "e-1"}])
    assert random.random() == expected
    assert dict(os.environ) == before
