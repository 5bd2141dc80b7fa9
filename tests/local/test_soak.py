"""The soak's verdict, its faults and its plan; tests/e2e/test_soak.py runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local import soak
from local.audit import Found, Report, audit
from local.faults import Rule
from local.soak_faults import CALLS, SHARES, Disturber, Kind, in_turn, topic_down, usual
from local.soak_run import Plan, Result
from local.terraform import CHECKOUT
from local.traffic import Traffic
from local.waiting import wait_for

PLAN = Plan(events=200, seed=3, kills=2, outage_seconds=1)
TRAFFIC = PLAN.traffic()
FIRED = {(kind, "sns"): 1 for kind in Kind}


def found(traffic: Traffic) -> Found:
    """What a faultless run leaves behind."""
    rows = [{**json.loads(body, parse_float=Decimal), "event_id": name} for name, body in traffic.events.items()]
    return Found(
        business_rows=rows,
        ledger_rows=[{"event_id": name, "status": "sent"} for name in traffic.events],
        notifications=list(traffic.events.items()),
        dead_letters=[(body, "some-reason") for body in (*traffic.poison, *traffic.impostors)],
        business_writes=list(traffic.events),
        commits=list(traffic.events),
    )


CLEAN = found(TRAFFIC)
FIRST = next(iter(TRAFFIC.events))


def result_of(report: Report, **more: Any) -> Result:
    figures = {"fired": FIRED, "killed": 1, "redelivered": 0, "replayed": 0, "reconciled": 0, "reported": {}, **more}
    return Result(report, **figures)


def test_a_run_that_leaves_each_event_once_passes() -> None:
    result = result_of(audit(TRAFFIC, CLEAN))
    assert result.is_passed
    figures = result.as_dict()
    assert (figures["verdict"], figures["problems"]) == ("passed", [])
    assert (figures["lost"], figures["doubled"], figures["business_rows"]) == (0, 0, 200)
    assert figures["faults"] == {"throttled": 1, "answer_lost": 1, "reset": 1, "slow": 1, "down": 1}


@pytest.mark.parametrize(
    ("changed", "lost", "doubled", "problem"),
    [
        (
            {"business_rows": CLEAN.business_rows[1:], "ledger_rows": CLEAN.ledger_rows[1:]},
            1,
            0,
            f"{FIRST} has no business row",
        ),
        (
            {"ledger_rows": [{"event_id": FIRST, "status": "pending"}, *CLEAN.ledger_rows[1:]]},
            1,
            0,
            f"{FIRST} is not settled in the ledger: pending",
        ),
        ({"notifications": CLEAN.notifications[1:]}, 1, 0, f"{FIRST} was never announced"),
        (
            {"notifications": [(FIRST, "{}"), *CLEAN.notifications[1:]]},
            1,
            0,
            f"{FIRST} was announced with other content",
        ),
        ({"business_writes": [*CLEAN.business_writes, FIRST]}, 0, 1, f"{FIRST} was written 2 times"),
        ({"commits": [*CLEAN.commits, FIRST]}, 0, 1, f"{FIRST} was committed 2 times"),
    ],
    ids=["lost", "pending", "unpublished", "published-otherwise", "doubled", "committed-twice"],
)
def test_one_event_of_all_that_is_not_once_there_fails_the_run(
    changed: Mapping[str, Any], lost: int, doubled: int, problem: str
) -> None:
    report = audit(TRAFFIC, replace(CLEAN, **changed))
    assert (report.lost, report.doubled) == (lost, doubled)
    figures = result_of(report).as_dict()
    assert (figures["verdict"], figures["problems"]) == ("failed", [problem])


def test_copies_of_a_notification_are_counted_and_allowed() -> None:
    report = audit(TRAFFIC, replace(CLEAN, notifications=[*CLEAN.notifications, *CLEAN.notifications[:7]]))
    figures = result_of(report).as_dict()
    assert (figures["verdict"], figures["published_duplicates"]) == ("passed", 7)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"fired": {**FIRED, (Kind.RESET, "sns"): 0}}, "no fault of the kind reset has fired"),
        ({"killed": 0}, "no process was killed"),
        ({"problems": ["the queue took 9 of 10 messages"]}, "the queue took 9 of 10 messages"),
    ],
)
def test_a_run_without_its_faults_proves_nothing_and_fails(more: Mapping[str, Any], problem: str) -> None:
    result = result_of(audit(TRAFFIC, CLEAN), **more)
    assert not result.is_passed
    assert result.as_dict()["problems"] == [problem]


def test_ten_thousand_events_have_two_thousand_duplicates_poison_and_reused_ids() -> None:
    traffic = Plan(events=10_000, seed=1, kills=40, outage_seconds=20).traffic()
    assert (len(traffic.events), traffic.duplicates) == (10_000, 2_000)
    assert (len(traffic.poison), len(traffic.impostors)) == (100, 20)


def test_the_same_seed_sends_the_same_and_another_does_not() -> None:
    assert PLAN.traffic() == TRAFFIC
    assert replace(PLAN, seed=4).traffic() != TRAFFIC


def test_each_fault_befalls_its_share_of_the_calls_though_the_first_that_fires_wins() -> None:
    left, shares = 1.0, {}
    for kind, probability in in_turn(SHARES):
        shares[kind] = round(left * probability, 6)
        left *= 1 - probability
    assert shares == {Kind.THROTTLED: 0.10, Kind.ANSWER_LOST: 0.05, Kind.RESET: 0.02, Kind.SLOW: 0.20}


def test_slowness_comes_last_of_each_call_and_the_outage_first_of_all() -> None:
    kinds = [fault.kind for fault in usual()]
    assert kinds == [Kind.THROTTLED, Kind.ANSWER_LOST, Kind.RESET, Kind.SLOW] * len(CALLS)
    assert [fault.kind for fault in topic_down()] == [Kind.DOWN, *kinds]


class Proxy:
    """Stands for the proxy: each of its rules has fired so often."""

    def __init__(self) -> None:
        self.rules: Sequence[Rule] = ()
        self.times = 0

    def set_rules(self, rules: Sequence[Rule]) -> None:
        self.rules, self.times = rules, 0

    def fired_by_rule(self) -> list[int]:
        return [self.times] * len(self.rules)


def test_what_has_fired_is_counted_over_all_changes_of_the_rules() -> None:
    proxy = Proxy()
    disturber = Disturber(proxy)
    disturber.bring(usual())
    proxy.times = 3
    disturber.bring(topic_down())
    proxy.times = 4
    disturber.bring([])
    fired = disturber.fired()
    assert fired[Kind.THROTTLED, "sns"] == 7
    assert fired[Kind.DOWN, "sns"] == 4
    assert proxy.rules == []


def test_a_handful_of_events_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--events", "9"])
    assert "--events is 9, but must be 100 at least" in capsys.readouterr().err


def test_an_interrupted_soak_leaves_nothing_behind(tmp_path: Path) -> None:
    work = tmp_path / "work"
    program = (
        "import sys; from pathlib import Path; from local import soak\n"
        f"soak.WORK = Path({str(work)!r}); soak.RESULT = Path({str(tmp_path / 'soak.json')!r})\n"
        "sys.exit(soak.main([]))\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    wait_for(lambda: "terraform apply" in process.stdout.readline(), "the apply begins")  # type: ignore[union-attr]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert not list(tmp_path.iterdir())
