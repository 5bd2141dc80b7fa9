"""The soak itself: sends events to a pipeline while everything around it fails, puts it right, and audits it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.audit import Report, audit
from local.consumer import Consumer, Sending, everything, read
from local.faults import Faults
from local.operating import Operator
from local.soak_faults import Disturber, Kind, topic_down, usual
from local.traffic import POISON, Traffic, orders
from local.watching import REDELIVERED, Notification, announced, reported_outcomes

# More would only wait: the emulator is one process.
MOST_WAITING = 500
# The topic is down until so many letters are dead of it, or for so long.
LETTERS_OF_OUTAGE = 20
LONGEST_OUTAGE_SECONDS = 180.0
# Given up when nothing has moved for so long.
STALLED_SECONDS = 300.0
QUIET_SECONDS = 2.0
Show = Callable[[int, str], None]  # messages done, what else there is to say


@dataclass(frozen=True)
class Plan:
    """What is done. The same seed sends the same messages and kills at the same points; chance does the rest."""

    events: int
    seed: int
    kills: int
    outage_seconds: float
    prefix: str = "soak"

    def traffic(self) -> Traffic:
        """A fifth of the events is sent twice."""
        twins = self.events // 20
        return orders(
            self.events,
            self.events // 5 - twins,
            twins,
            self.seed,
            prefix=self.prefix,
            poison=max(len(POISON), self.events // 100),
            impostors=max(1, self.events // 500),
        )


@dataclass(frozen=True)
class Result:
    """What came of it.

    fired: how often each kind of fault has befallen which call. killed: processes. redelivered: records that the
    function was given not for the first time, of those that it has told of. replayed, reconciled: by the command line.
    reported: the function's own counts. problems: what went wrong beside what the audit has found.
    """

    report: Report
    fired: Mapping[tuple[Kind, str], int]
    killed: int
    redelivered: int
    replayed: int
    reconciled: int
    reported: Mapping[str, int]
    problems: Sequence[str] = ()

    @property
    def is_passed(self) -> bool:
        return self.report.is_clean and not self.problems and not self.missing

    @property
    def kinds(self) -> dict[Kind, int]:
        """How often each kind of fault has fired."""
        return {kind: sum(n for (fired, _), n in self.fired.items() if fired is kind) for kind in Kind}

    @property
    def missing(self) -> list[str]:
        """What has not happened, and has to in a soak that proves anything."""
        unfired = [f"no fault of the kind {kind.value} has fired" for kind, count in self.kinds.items() if not count]
        return unfired if self.killed else [*unfired, "no process was killed"]

    def as_dict(self) -> dict[str, Any]:
        report = self.report.as_dict()
        problems = [*self.problems, *self.missing, *report.pop("problems")]
        fired: dict[str, dict[str, int]] = {kind.value: {} for kind in Kind}
        for (kind, call), count in sorted(self.fired.items(), key=lambda entry: entry[0][1]):
            fired[kind.value][call] = count
        return {
            "verdict": "passed" if self.is_passed else "failed",
            **report,
            "published_duplicates": self.report.notifications_total - self.report.notifications_unique,
            "faults": {kind.value: count for kind, count in self.kinds.items()},
            "faults_by_call": fired,
            "killed_processes": self.killed,
            "redelivered": self.redelivered,
            "replayed": self.replayed,
            "reconciled": self.reconciled,
            "reported_outcomes": dict(sorted(self.reported.items())),
            "problems": problems,
        }


def soak(
    consumer: Consumer,
    faults: Faults,
    plan: Plan,
    show: Show = lambda done, note: None,
    *,
    owns: Callable[[str], bool] = everything,
    since_ms: int = 0,
) -> Result:
    """Run it on a pipeline whose function's AWS calls go through `faults`, and whose change streams are on.

    owns, since_ms: where others use the pipeline too, before or after, what is looked at, by an event id or a body, and
    from when on the function's log is read.
    """
    traffic = plan.traffic()
    run = _Run(consumer, Disturber(faults), plan, show)
    try:
        run.send(traffic.batches, first=True)
        run.replay()
        run.send(traffic.late)
        run.replay()
    finally:
        run.disturber.bring([])
    run.reconcile()
    found = read(consumer, run.notifications, owns)
    reported = reported_outcomes(consumer.emulator, consumer.outputs["log_group_name"], since_ms)
    return Result(
        report=audit(traffic, found),
        fired=run.disturber.fired(),
        killed=run.killed,
        redelivered=reported.pop(REDELIVERED, 0),
        replayed=run.replayed,
        reconciled=run.reconciled,
        reported={name: count for name, count in reported.items() if count},
        problems=run.problems,
    )


@dataclass
class _Run:
    """What has been done so far."""

    consumer: Consumer
    disturber: Disturber
    plan: Plan
    show: Show
    notifications: list[Notification] = field(default_factory=list)
    done: int = 0
    killed: int = 0
    replayed: int = 0
    reconciled: int = 0
    problems: list[str] = field(default_factory=list)

    def send(self, batches: Sequence[Sequence[str]], *, first: bool = False) -> None:
        """Send these under faults, and wait until the queue is empty. first: with kills and an outage."""
        total, before = sum(map(len, batches)), self.done
        chance = random.Random(self.plan.seed)
        # Not at the very end: what a killed process had in hand waits for its visibility timeout.
        kills = sorted(chance.sample(range(total // 10, total * 4 // 5), self.plan.kills)) if first else []
        outage = _Outage(self, total // 2) if first else None
        sending = Sending(self.consumer.intake, batches, MOST_WAITING)
        self.disturber.bring(usual())
        sending.start()
        moved, moved_at = (-1, -1), time.monotonic()
        while True:
            # Before the depth is read: what is sent in between would look done.
            sent, is_sending = sending.sent, sending.is_alive()
            depth = self.consumer.intake.depth()
            done = max(0, sent - depth.waiting - depth.in_flight)
            if outage is not None:
                outage.follow(done)
            if kills and done >= kills[0] and depth.in_flight:
                killed = self.consumer.emulator.kill_workers(self.consumer.function, chance.choice((1, 1, 2)))
                self.killed += killed
                kills = kills[1 if killed else 0 :]
            self._listen()
            self.show(before + done, f"{depth.in_flight} in work, {self.killed} killed")
            if depth.is_empty and not is_sending:
                break
            if (done, len(self.notifications)) != moved:
                moved, moved_at = (done, len(self.notifications)), time.monotonic()
            elif time.monotonic() - moved_at > STALLED_SECONDS:
                self.problems.append(f"nothing has moved for {STALLED_SECONDS:g} s with {depth} in the queue")
                break
            time.sleep(0.1)
        self.done = before + done
        if sending.sent != total:
            self.problems.append(f"the queue took {sending.sent} of {total} messages")

    def replay(self) -> None:
        """End the faults, and send back what is dead of them: all letters that have no reason."""
        self.disturber.bring([])
        self.show(self.done, "replaying dead letters")
        answer = Operator(self.consumer).json("replay", "--reason", "none", "--wait", "--quiet")
        # 1: a letter is refused again, which those of the producer's own fault are.
        if answer.status not in (0, 1):
            self.problems.append(f"replay ended with {answer.status}: {answer.errors}")
        else:
            self.replayed += answer.last["sent"]

    def reconcile(self) -> None:
        """Announce what is committed and has no message any more, and wait until all is quiet."""
        answer = Operator(self.consumer).json("reconcile", "--older-than", "0s")
        if answer.status:
            self.problems.append(f"reconcile ended with {answer.status}: {answer.errors}")
        else:
            self.reconciled += answer.last["published"]
        began = quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < QUIET_SECONDS:
            if self._listen() or not self.consumer.intake.depth().is_empty:
                quiet_since = time.monotonic()
            if time.monotonic() - began > STALLED_SECONDS:
                self.problems.append(f"not quiet {STALLED_SECONDS:g} s after the faults were over")
                break
            time.sleep(0.1)

    def _listen(self) -> bool:
        """Take what has come to the subscriber; whether there was anything."""
        fresh = [announced(message) for message in self.consumer.subscriber.take(most=100)]
        self.notifications += fresh
        return bool(fresh)


class _Outage:
    """The topic goes down when `begin` messages are done, and is back once enough letters are dead of it."""

    def __init__(self, run: _Run, begin: int) -> None:
        self._run = run
        self._begin = begin
        self._since: float | None = None
        self._letters = 0
        self._is_over = False

    def follow(self, done: int) -> None:
        if self._is_over or done < self._begin:
            return
        if self._since is None:
            self._since, self._letters = time.monotonic(), self._count()
            self._run.disturber.bring(topic_down())
            return
        seconds = time.monotonic() - self._since
        is_felt = self._count() >= self._letters + LETTERS_OF_OUTAGE
        if seconds >= LONGEST_OUTAGE_SECONDS or (is_felt and seconds >= self._run.plan.outage_seconds):
            self._run.disturber.bring(usual())
            self._is_over = True

    def _count(self) -> int:
        depth = self._run.consumer.dead_letters.depth()
        return depth.waiting + depth.in_flight
