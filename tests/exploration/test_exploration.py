"""A part of `make explore`: some hundred schedules of each scope, drawn by chance; and that it would find faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idempotent_consumer import commit
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.claims import claim
from idempotent_consumer.claims import table as claims
from idempotent_consumer.consumer import Consumer
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.workflow import claim as workflow_claim
from tests.exploration import __main__ as command
from tests.exploration.faults import FAULTS, Fault
from tests.exploration.scheduling import deterministic
from tests.exploration.scopes import SCOPES
from tests.exploration.search import Explored, Scope, draw, explore, parts_of, replay

SEED = 7
# The small scopes have no more, and those of storms take long.
SCHEDULES, STORM_SCHEDULES = 1_000, 300
NAMES = [scope.name for scope in SCOPES]
Explore = Callable[[str], Explored]


def scope_of(name: str) -> Scope:
    (scope,) = (scope for scope in SCOPES if scope.name == name)
    return scope


@pytest.fixture(scope="module")
def explored() -> Explore:
    """What came of a scope, played once for all tests."""
    played: dict[str, Explored] = {}

    def of(name: str) -> Explored:
        if name not in played:
            with deterministic():
                scope = scope_of(name)
                played[name] = draw(scope, SEED, STORM_SCHEDULES if scope.schedules else SCHEDULES)
        return played[name]

    return of


@pytest.fixture
def _deterministic() -> Iterator[None]:
    with deterministic():
        yield


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_violated(explored: Explore, name: str) -> None:
    failure = explored(name).failure
    assert failure is None, "\n".join([failure.error, *failure.steps, failure.command])


def test_twenty_thousand_schedules_are_played(explored: Explore) -> None:
    assert sum(len(explored(name).schedules) for name in NAMES) >= 20_000


def test_each_fault_befalls_each_call(explored: Explore) -> None:
    """Else the laws would hold for want of cases."""
    met = {pair for name in NAMES for pair in explored(name).met}
    missing = {(operation, fault) for operation, faults in FAULTS.items() for fault in faults} - met
    assert {pair for pair in missing if pair[0] != "StartExecution"} == set()
    assert {("Start", fault) for fault in FAULTS["StartExecution"]} - met == {("Start", Fault.TIME_IS_UP)}


@pytest.mark.usefixtures("_deterministic")
def test_all_schedules_of_a_scope_are_played_each_once() -> None:
    scope = scope_of("no notification")
    parts = [explore(scope, part) for part in range(parts_of(scope))]
    schedules = [part.schedules for part in parts]
    assert len(set.union(*schedules)) == sum(map(len, schedules)) == 921


@pytest.mark.usefixtures("_deterministic")
def test_the_same_choices_lead_to_the_same_steps() -> None:
    scope = scope_of("twice")
    first, again = replay(scope, (8, 0, 3, 1)), replay(scope, (8, 0, 3, 1))
    assert first == again
    assert first.steps[0] == "delivery 2: BatchGetItem"


# Faults that are planted


def _no_publishing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outbox, "publish", lambda *_: {})


def _no_marking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "mark_sent", lambda *_: {})


def _no_condition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "_LEDGER_KEY_IS_NEW", "attribute_not_exists(nothing)")


def _no_fingerprint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "judge_ledger_row", lambda _row, _event: Verdict(Outcome.DUPLICATE))
    patch.setattr("idempotent_consumer.group_commit.judge_ledger_row", commit.judge_ledger_row)
    patch.setattr("idempotent_consumer.cancellation.judge_ledger_row", commit.judge_ledger_row)


def _expiring_while_pending(patch: pytest.MonkeyPatch) -> None:
    pending = commit._pending_attributes
    patch.setattr(commit, "_pending_attributes", lambda *each: {**pending(*each), "ttl": {"N": "1"}})


def _no_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consumer, "_in_turn", lambda _, deliveries, *__: [work for d in deliveries for work in d.undecided])


def _no_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims, "fence", lambda held: {**claim.fence(held), "within_lease": False})


def _no_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims, "fence", lambda _claim: {"equal": {}, "absent": ["nothing"]})


def _claimed_by_anybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(workflow_claim, "_CONDITION", f"{workflow_claim._CONDITION} OR #status = :status")


@pytest.mark.usefixtures("_deterministic")
@pytest.mark.parametrize(
    ("plant", "name", "violation"),
    [
        (_no_publishing, "twice", "I2: order-1 is marked before it is published"),
        (_no_marking, "twice", "I3: m-1 is deleted, but order-1 is not sent"),
        (_no_condition, "counter", "order-1 was sent, and is pending again"),
        (_no_fingerprint, "id reused", "I3: m-2 is deleted, but the ledger holds order-1 with other content (I5)"),
        (_expiring_while_pending, "twice", "I4: order-1 is pending with"),
        (_no_order, "FIFO", "I6: order-3 is committed before m-2 is settled"),
        (_no_fence, "operation, park, leases", "O3: worker 1 changes order-1, which worker 2 is at"),
        (_no_lease, "operation, park, storm", "O3: worker 1 changes order-1, and its lease is over"),
        (_claimed_by_anybody, "workflow, twice, function guard", "the effect ran once too often"),
    ],
    ids=lambda each: each.__name__.strip("_") if callable(each) else "",
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], name: str, violation: str
) -> None:
    plant(monkeypatch)
    scope = scope_of(name)
    failure = draw(scope, SEED, 5_000).failure
    assert failure is not None
    assert violation in failure.error
    assert replay(scope, failure.choices).error == failure.error


@pytest.mark.usefixtures("_deterministic")
def test_a_failing_schedule_is_shrunk_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fault is needed, and no other order."""
    monkeypatch.setattr(Outbox, "publish", lambda *_: {})
    failure = draw(scope_of("storm"), SEED, 5_000).failure
    assert failure is not None
    assert failure.choices == ()
    assert failure.command.endswith('-m tests.exploration --scope "storm" --replay ""')


# The command


def test_a_schedule_is_replayed_by_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["explore", "--scope", "twice", "--replay", "8,0"])
    assert command.main() == 0
    assert capsys.readouterr().out.splitlines()[0] == "    1  delivery 2: BatchGetItem"


def test_a_choice_that_the_scope_has_not_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["explore", "--scope", "twice", "--replay", "99"])
    assert command.main() == 2
    assert "twice has no such schedule." in capsys.readouterr().err


@pytest.mark.parametrize("plant", [_no_publishing, _no_marking])
def test_the_command_tells_of_a_fault_that_needs_no_race(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    plant(monkeypatch)
    monkeypatch.setattr(command, "REPORT", tmp_path / "build" / "explore.json")
    monkeypatch.setattr("sys.argv", ["explore", "--scope", "no notification"])
    assert command.main() == 0
    monkeypatch.setattr("sys.argv", ["explore", "--scope", "twice"])
    assert command.main() == 1
    told = capsys.readouterr().out
    assert "Violated in twice: I" in told
    assert 'Again: .venv/bin/python -m tests.exploration --scope "twice" --replay ""' in told
    report = json.loads((tmp_path / "build" / "explore.json").read_text())
    assert (report["violations"], report["all_scopes"]) == (1, False)
    assert report["schedules"] < 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scope", "fifo"], "--scope is 'fifo', and there is none of that name: --list names them, such as 'FIFO'"),
        (["--replay", "1"], "--replay needs --scope"),
        (["--scope", "twice", "--replay", "one"], "--replay is 'one', not numbers with commas between them"),
        (["--scope", "twice", "--replay", "-1"], "--replay is '-1', not numbers with commas between them"),
    ],
)
def test_odd_arguments_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr("sys.argv", ["explore", *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
