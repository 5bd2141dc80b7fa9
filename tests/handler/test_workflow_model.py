"""Workflows among random faults, deaths, lost and late answers, releases, replays and rows that expire.

Chance decides who goes on, what is lost, and what a person does in between. Then all goes well for a while, and nothing
may be lost; then a person deals with the dead letters, and everything must be done.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from idempotent_consumer import telemetry
from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import Killed, client_error
from tests.handler.workflow_model import (
    FAILING,
    RETENTION_SECONDS,
    Execution,
    World,
    definition,
    drained,
    one,
    state_text,
)

SEEDS = range(300)
STEPS = 150
MAX_RECEIVES = 4
# Letters that no replay mends.
FINAL_REASONS = {"bad-json", "id-missing", "id-reused", "input-missing"}
AWS = "https://aws.example"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Of thousands of processes nobody reads the logs and metrics."""
    caplog.set_level("CRITICAL", "idempotent_consumer")
    for name in ("emit_starts", "emit_counts"):
        monkeypatch.setattr(telemetry, name, lambda *_: None)


class Chance:
    """Who goes on, and what is spoilt. harm: the part of calls that something happens to."""

    def __init__(self, seed: int, guard: str) -> None:
        self.random = Random(seed)
        self.has_key = self.random.random() < 0.75
        self.harm = self.random.choice([0.0, 0.1, 0.4])
        self.is_expiring = self.random.random() < 0.3
        self.late: list[Callable[[], Any]] = []
        self.world = World(guard, self.has_key, is_idempotent=self.random.random() < 0.5)
        self.world.interfere = self.interfere
        self.world.decide = self.decide
        self.produced: set[str] = set()

    # What is spoilt

    def interfere(self, effect: Callable[[], Any]) -> Any:
        if self.random.random() >= self.harm:
            return effect()
        return self.random.choice(
            [self.refuse, self.lose_answer, self.call_twice, self.be_late, self.die_before, self.die_after]
        )(effect)

    def refuse(self, _effect: Callable[[], Any]) -> Any:
        raise client_error("ThrottlingException")

    def lose_answer(self, effect: Callable[[], Any]) -> Any:
        with suppress(ClientError):  # this answer is lost too
            effect()
        raise ConnectionClosedError(endpoint_url=AWS)

    def call_twice(self, effect: Callable[[], Any]) -> Any:
        """The SDK lost the first answer, and calls again."""
        with suppress(ClientError):
            effect()
        return effect()

    def be_late(self, effect: Callable[[], Any]) -> Any:
        """It takes effect when nobody waits for it any more."""
        self.late.append(effect)
        raise ReadTimeoutError(endpoint_url=AWS)

    def die_before(self, _effect: Callable[[], Any]) -> Any:
        raise Killed

    def die_after(self, effect: Callable[[], Any]) -> Any:
        with suppress(ClientError):
            effect()
        raise Killed

    def decide(self) -> str:
        if self.random.random() >= 2 * self.harm:
            return "applied"
        return self.random.choice([*["not-applied"] * 3, "unknown", "unknown-idle"])

    # Who goes on

    def produce(self) -> None:
        if self.random.random() < 0.05:
            return self.world.send(self.random.choice(["not JSON", '{"amount":1}']) if self.has_key else "not JSON")
        # Without a business key each message is an event of its own.
        number = self.random.randint(1, 3) if self.has_key else len(self.produced)
        amount = 2 if self.random.random() < 0.1 else 1
        body = f'{{"id":"o-{number}","amount":{amount}}}'
        self.produced.add(body)
        source = {"dataType": "String", "stringValue": "checkout"}
        return self.world.send(body, {f"source-{index}": source for index in range(self.random.choice([0, 1, 10]))})

    def deliver(self) -> None:
        world = self.world
        messages = self.some(world.queue)
        for message in [each for each in messages if each.received == MAX_RECEIVES]:
            messages.remove(message)
            world.give_up(message)
        with suppress(Killed, Misconfigured):
            for message in world.deliver(messages):
                if self.random.random() >= self.harm:  # else it is delivered once more
                    world.queue.remove(message)

    def advance(self) -> None:
        for execution in self.some(self.world.running()):
            self.world.step(execution)

    def advance_one(self) -> None:
        if running := self.world.running():
            execution = self.random.choice(running)
            for _ in range(self.random.randint(1, 6)):
                if execution.status == "RUNNING":
                    self.world.step(execution)

    def stop(self) -> None:
        """A person stops an execution, or an error ends it that no state can catch."""
        running = self.world.running()
        if running and self.random.random() < self.harm:
            status, error = self.random.choice(
                [("ABORTED", ""), ("TIMED_OUT", "States.Timeout"), ("FAILED", "States.Runtime")]
            )
            self.world.end(self.random.choice(running), status, error, is_told=self.random.random() < 0.9)

    def redrive(self) -> None:
        stopped = [each for each in self.world.executions.values() if each.status in ("ABORTED", "TIMED_OUT", "FAILED")]
        if stopped:
            self.world.redrive(self.random.choice(stopped))

    def be_late_now(self) -> None:
        if self.late:
            late = self.late.pop(self.random.randrange(len(self.late)))
            with suppress(ClientError):
                late()

    def release(self) -> None:
        """At any time: also while the effect runs."""
        keys = [key for key, row in self.world.rows.items() if row["status"]["S"] == "IN_PROGRESS"]
        if keys and self.random.random() < 0.3:
            self.world.release(self.random.choice(keys), is_unparked=self.random.random() < 0.5)

    def replay(self) -> None:
        for letter in self.some(self.world.letters):
            self.world.replay(letter)

    def pass_time(self) -> None:
        """No call takes effect after days."""
        if self.random.random() < 0.3:
            while self.late:
                self.be_late_now()
            self.world.now_ms += RETENTION_SECONDS * 500
        self.world.now_ms += self.random.choice([1, 1_000, 60_000])
        if self.is_expiring:
            for key in self.some(list(self.world.rows)):
                self.world.sweep(key)

    def some(self, things: list[Any]) -> list[Any]:
        return [thing for thing in things if self.random.random() < 0.5]

    def storm(self) -> None:
        actions = [
            *[self.produce] * 3,
            *[self.deliver] * 5,
            *[self.advance] * 6,
            *[self.advance_one] * 4,
            self.stop,
            self.redrive,
            self.be_late_now,
            self.release,
            self.replay,
            self.pass_time,
        ]
        for _ in range(STEPS):
            self.random.choice(actions)()

    def calm(self) -> None:
        """From now on all goes well; what is on its way arrives first."""
        self.harm = 0.0
        while self.late:
            self.be_late_now()
        self.drain()

    def drain(self) -> None:
        for turn, _ in enumerate(drained(self.world)):
            assert turn < 500, "it does not come to an end"

    def deal_with_letters(self) -> None:
        """As a person does who knows that nothing is under way: keys are released, letters sent back."""
        world = self.world
        for _ in range(5):
            for key, row in list(world.rows.items()):
                if row["status"]["S"] == "IN_PROGRESS":
                    world.release(key, is_unparked=False)
            for letter in [each for each in world.letters if each.reason not in FINAL_REASONS]:
                world.replay(letter)
            self.drain()

    # What must hold

    def bodies_in_letters(self) -> set[str]:
        """Of messages in the dead-letter queue; of an event without it, as the execution that it names has it."""
        by_arn = {execution.arn: execution for execution in self.world.executions.values()}
        bodies = set()
        for letter in self.world.letters:
            body = letter.body
            if '"aws.states"' in body:
                body = by_arn[json.loads(body)["detail"]["executionArn"]].given["body"]
            bodies.add(body)
        return bodies

    def check_safety(self) -> None:
        assert self.world.complaints == []

    def check_nothing_is_lost(self) -> None:
        assert self.produced - self.world.ran - self.bodies_in_letters() == set()

    def check_ends(self) -> None:
        ends = {end_of(execution) for execution in self.world.executions.values()}
        reasons = {f"failed: IdempotentConsumer.{reason}" for reason, _ in FAILING.values()}
        assert ends - reasons <= {
            "completed",
            "skipped: duplicate",
            "skipped: parked",
            "aborted: ",
            "timed_out: States.Timeout",
            "failed: States.Runtime",
            "failed: States.TaskFailed",
        }

    def check_all_is_done(self) -> None:
        """What is left are letters that only a person can mend, or bring to their message."""
        assert {letter.reason for letter in self.world.letters} <= FINAL_REASONS
        assert self.produced - self.world.ran - self.bodies_in_letters() == set()
        # A late claim of an execution that has ended keeps a key that nobody waits for, until it is released.
        assert {row["status"]["S"] for row in self.world.rows.values()} <= {"COMPLETED", "RELEASED"}

    def check_duplicates_are_skipped(self) -> None:
        """All that has been done is sent once more."""
        if not self.has_key:
            return
        before, known = dict(self.world.effects), set(self.world.executions)
        completed = [(key, row) for key, row in self.world.rows.items() if row["status"]["S"] == "COMPLETED"]
        stored = {key: row["fingerprint"]["S"] for key, row in completed}
        for body in sorted(self.world.ran):
            self.world.send(body)
        self.drain()
        new = [execution for name, execution in self.world.executions.items() if name not in known]
        assert len(new) == len(self.world.ran)
        for execution in new:
            key, fingerprint = execution.given["key"], execution.given["fingerprint"]
            if stored.get(key) == fingerprint:
                assert end_of(execution) == "skipped: duplicate"
            elif key in stored:
                assert end_of(execution) == "failed: IdempotentConsumer.id-reused"
        assert {place: count for place, count in self.world.effects.items() if place[0] in stored} == {
            place: count for place, count in before.items() if place[0] in stored
        }


NewChance = Callable[[int, str], Chance]


@pytest.fixture
def new_chance(monkeypatch: pytest.MonkeyPatch) -> NewChance:
    """Its time is that of the functions."""

    def create(seed: int, guard: str) -> Chance:
        chance = Chance(seed, guard)
        monkeypatch.setattr(telemetry, "now_ms", lambda: chance.world.now_ms)
        return chance

    return create


def end_of(execution: Execution) -> str:
    if execution.status == "SUCCEEDED":
        return ": ".join(str(value) for value in execution.output.values())
    return f"{execution.status.lower()}: {execution.error}"


@pytest.mark.parametrize("guard", ["function", "direct"])
@pytest.mark.parametrize("tens", range(len(SEEDS) // 10))
def test_the_effect_runs_at_most_once_and_nothing_is_lost(new_chance: NewChance, guard: str, tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        try:
            chance = new_chance(seed, guard)
            chance.storm()
            chance.check_safety()
            chance.calm()
            chance.check_nothing_is_lost()
            chance.check_ends()
            chance.deal_with_letters()
            chance.check_all_is_done()
            chance.check_duplicates_are_skipped()
            chance.check_safety()
        except Exception as error:
            error.add_note(f"seed {seed}, guard {guard}")
            raise


@pytest.mark.parametrize("guard", ["function", "direct"])
def test_without_faults_each_effect_runs_exactly_once(new_chance: NewChance, guard: str) -> None:
    for seed in range(10):
        chance = new_chance(seed, guard)
        chance.harm, chance.is_expiring = 0.0, False
        chance.release = lambda: None  # type: ignore[method-assign]
        chance.storm()
        chance.calm()
        assert set(chance.world.effects.values()) == {1}
        assert {letter.reason for letter in chance.world.letters} <= {"bad-json", "id-missing", "id-reused"}


def test_the_storms_bring_about_all_that_can_happen(new_chance: NewChance) -> None:
    """Else the laws above would hold for want of cases."""
    seen: set[str] = set()
    reasons: set[str] = set()
    for seed in range(80):
        chance = new_chance(seed, "function" if seed % 2 else "direct")
        chance.storm()
        seen |= {end_of(each) for each in chance.world.executions.values() if each.status != "RUNNING"}
        reasons |= {letter.reason for letter in chance.world.letters}
        seen |= {"expired" for life in chance.world.lives.values() if life}
        seen |= {"again" for count in chance.world.effects.values() if count > 1}
    assert seen == {
        "again",
        "expired",
        "completed",
        "skipped: duplicate",
        "skipped: parked",
        "aborted: ",
        "timed_out: States.Timeout",
        "failed: States.Runtime",
        "failed: States.TaskFailed",
        *(f"failed: IdempotentConsumer.{reason}" for reason, _ in FAILING.values()),
    }
    assert {"", "bad-json", "claim-kept", "id-missing", "id-reused", "input-missing"} <= reasons


# The model is that of the definition


def test_the_choice_after_the_guard_is_that_of_the_definition() -> None:
    text = definition()
    choice = text[text.index('"Claimed?" = {') : text.index("Effect = local")]
    assert re.findall(r'Condition = "{% (.*) %}", Next = "(.*)"', choice) == [
        ("$states.input.proceed", "Effect"),
        ("$states.input.reason = 'gone'", "Guard"),
        ("$states.input.reason = 'conflict'", "Conflict"),
        ("${local.is_letter} and $not($states.input.status = 'COMPLETED')", "Claim kept"),
    ]
    assert one(r'Default += "(.*)"', choice) == "Skipped"
    assert one(r'is_letter += "(.*)"', text) == "$exists(${local.given}.attributes.dead_letter_key)"


def test_the_failing_states_are_those_of_the_definition() -> None:
    found = re.findall(r'^ +"([A-Z][a-z ]+)" += \["([a-z-]+)", .*, "([A-Z][a-z ]+)"\]$', definition(), re.MULTILINE)
    assert {name: (reason, following) for name, reason, following in found} == FAILING


@pytest.mark.parametrize(
    ("name", "following", "caught"),
    [
        ("Guard", "Effect", ["Look up claim", "Guard failed"]),
        ("Look up claim", "Claimed?", ["Guard failed"]),
        ("Complete", None, ["Outcome not recorded"]),
        ("Release", "Dead letter", ["Dead letter"]),
        ("Park", "Dead letter", ["Dead letter"]),
        ("Extend claim", "Dead letter", ["Dead letter"]),
        ("Dead letter", "Failed", []),
    ],
)
def test_what_follows_a_task_is_that_of_the_definition(name: str, following: str | None, caught: list[str]) -> None:
    text = state_text(name)
    assert re.findall(r'^ +Next += "(.*)"$', text, re.MULTILINE) == ([] if following is None else [following])
    catch = "".join(re.findall(r"^ +Catch += (.*)$", text, re.MULTILINE))
    guard_failed = one(r"^ +guard_failed += (.*)$", definition())
    assert re.findall(r'Next = "(.*?)"', catch.replace("local.guard_failed", guard_failed)) == caught


def test_what_follows_the_effect_is_that_of_the_definition() -> None:
    text = definition()
    outcome = text[text.index("effect_outcome = {") : text.index("effect_states = {")]
    assert re.findall(r'ErrorEquals = (.*), Next = "(.*)" }', outcome) == [
        ("errors", "Not applied"),
        ("[error]", "Outcome unknown"),
    ]
    assert one(r'^ +Next = "(.*)"', outcome) == "Complete"
    assert "RedriveCount > 0 ? $error('redriven in the effect')" in text


def test_what_a_letter_carries_is_that_of_the_definition() -> None:
    text = definition()
    assert one(r'^ +is_full += "(.*)"$', text) == "$count($keys(${local.producers})) > 6"
    own = text[text.index("letter_attributes = ") :]
    assert re.findall(r"^ +(dead_letter_\w+) += ", own, re.MULTILINE) == [
        "dead_letter_detail",
        "dead_letter_execution",
        "dead_letter_key",
        "dead_letter_reason",
    ]
