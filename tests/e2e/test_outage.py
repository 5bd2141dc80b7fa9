"""An outage, and what operators do about it: by the command line alone, nothing is lost and nothing is doubled."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from local.emulator import Emulator
from local.faults import Faults
from local.operating import Operator
from local.waiting import wait_for
from tests.e2e.pipeline import Pipeline, attributes
from tests.e2e.test_faults import denied
from tests.e2e.test_reconciler import invoke

NewId = Callable[[], str]
MEGABYTE = 2**20


@pytest.fixture
def operator(outage: Pipeline) -> Operator:
    return Operator(outage)


@pytest.mark.case("C58", "C62")
def test_two_thousand_events_of_an_outage_are_brought_back_by_command_line(
    outage: Pipeline, operator: Operator, faults: Faults, new_id: NewId, tmp_path: Path
) -> None:
    prefix = new_id()
    event_ids = [f"{prefix}-{number}" for number in range(2_000)]
    # No refused right: the poller slows down where whole calls fail, and this would take a quarter of an hour.
    with faults.rules({"service": "sns", "error": {"code": "ServiceUnavailable", "status": 503}}):
        outage.send_all({"id": event_id, "total": number} for number, event_id in enumerate(event_ids))
        wait_for(lambda: outage.dead_letter_count() >= 2_000, "all is in the dead-letter queue", seconds=240)
        outage.wait_until_drained()
    assert outage.statuses(event_ids) == {"pending": 2_000}

    # The cause.
    status = operator.json("status")
    assert status.status == 1
    assert (status.last["dead_letter_queue"]["visible"], status.last["pending"]["count"]) == (2_000, 2_000)
    inspected = operator.json("inspect")
    letters, summary = inspected.lines[:-1], inspected.last
    assert inspected.status == 1
    assert Counter(letter["event_ids"][0] for letter in letters) == Counter(event_ids)
    assert {(letter["reason"], letter["ledger"], letter["replay"]) for letter in letters} == {
        (None, "pending", "publish")
    }
    assert [(why["reason"], why["detail"], why["letters"]) for why in summary["why"]] == [
        ("unavailable", "PublishBatch: ServiceUnavailable", 2_000)
    ]

    # A part of the letters is gone: their notifications have nobody but the ledger.
    gone = tmp_path / "gone.txt"
    gone.write_text("\n".join(event_ids[:500]))
    dropped = operator.json("drop", "--file", str(gone), "--output", str(tmp_path / "dropped.jsonl"))
    assert (dropped.status, len((tmp_path / "dropped.jsonl").read_text().splitlines())) == (0, 500)

    # The repair.
    replayed = operator.json("replay", "--all", "--wait")
    assert (replayed.status, replayed.last["sent"], replayed.last["outcomes"]) == (0, 1_500, {"published": 1_500})
    reconciled = operator.json("reconcile")
    assert (reconciled.status, reconciled.last["published"], reconciled.last["left"]) == (0, 500, [])

    verified = operator.json("verify")
    assert verified.status == 0
    assert operator.run("status").status == 0
    assert outage.statuses(event_ids) == {"sent": 2_000}
    assert Counter(outage.business_writes(*event_ids)) == Counter(event_ids)
    heard = {attributes(message)["event_id"] for message in outage.steady_notifications(*event_ids)}
    assert heard == set(event_ids)


def test_a_purged_dead_letter_queue_still_gets_its_notifications(
    outage: Pipeline, emulator: Emulator, new_id: NewId
) -> None:
    event_ids = [new_id() for _ in range(5)]
    with denied(emulator, outage.role, "sns:Publish"):
        outage.send(*({"id": event_id} for event_id in event_ids))
        wait_for(lambda: outage.dead_letter_count() >= 5, "all is in the dead-letter queue", seconds=120)
        outage.purge_dead_letters()
    # They are older than the threshold by now: three receives take longer.
    assert invoke(outage) == {"published": 5, "still_stale": 0}
    assert outage.statuses(event_ids) == {"sent": 5}
    assert sorted(attributes(m)["event_id"] for m in outage.steady_notifications(*event_ids)) == sorted(event_ids)


def test_ten_thousand_letters_are_replayed_in_little_memory_and_a_killed_replay_goes_on(
    outage: Pipeline, operator: Operator, new_id: NewId
) -> None:
    prefix = new_id()
    event_ids = [f"{prefix}-{number}" for number in range(10_000)]
    # 80 MB in all, far more than the bound below.
    outage.put_dead_letters({"id": event_id, "text": "x" * 8_000} for event_id in event_ids)

    # What it has in hand comes back after so long; the next run waits for it.
    killed = Terminal(operator, "replay", "--all", "--quiet", "--visibility", "20s")
    wait_for(lambda: outage.dead_letter_count() < 8_000, "a part is replayed", seconds=120, interval=0.05)
    killed.end(signal.SIGKILL)
    assert outage.dead_letter_count() > 0

    again = Terminal(operator, "replay", "--all", "--wait", "--quiet")
    assert again.wait(seconds=400) == 0, again.text
    assert again.growth < 60 * MEGABYTE
    # A live bar: it has shown how far it was, and more than once.
    assert len(set(again.counts())) > 10
    assert outage.dead_letter_count() == 0
    assert outage.statuses(event_ids) == {"sent": 10_000}
    assert Counter(outage.business_writes(*event_ids)) == Counter(event_ids)
    assert operator.run("verify").status == 0


class Terminal:
    """A command in a terminal of its own. growth: how much memory it has taken since it began to work, in bytes."""

    def __init__(self, operator: Operator, *arguments: str) -> None:
        self._screen, program = pty.openpty()
        self._process = subprocess.Popen(
            operator.command(*arguments),
            stdin=program,
            stdout=program,
            stderr=program,
            env={**operator.environment, "TERM": "xterm"},
        )
        os.close(program)
        self.text = ""
        self.growth = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, *, seconds: float) -> int:
        status = self._process.wait(seconds)
        self._reader.join()
        return status

    def end(self, number: int) -> None:
        self._process.send_signal(number)
        self.wait(seconds=10)

    def counts(self) -> list[str]:
        """What the bar has shown as done, each time that it was drawn."""
        return re.findall(r"\d+/\d+", self.text)

    def _read(self) -> None:
        program = psutil.Process(self._process.pid)
        begun = 0
        while True:
            try:
                part = os.read(self._screen, 65_536)
            except OSError:
                break  # the program has ended
            if not part:
                break
            self.text += part.decode(errors="replace")
            try:
                size = program.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            begun = begun or size
            self.growth = max(self.growth, size - begun)
        os.close(self._screen)
