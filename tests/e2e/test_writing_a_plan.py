"""The shortest program of docs/writing-a-plan.md as it stands there: built, applied, and right though it is killed."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.consumer import Sending
from local.emulator import Emulator
from local.terraform import CHECKOUT, Root
from local.waiting import wait_for
from local.watching import Queue, Tables

GUIDE = (CHECKOUT / "docs" / "writing-a-plan.md").read_text(encoding="utf-8")
PAGES = ["home", "prices", "größe"]
EVENTS, DUPLICATES, KILLS = 1_000, 300, 5

# As in the guide, but for the time that a killed process costs, and to be able to take it down.
OVERRIDE = """
module "visits" {
  deletion_protection = false

  function = {
    handler         = "visits.handler"
    package         = "${path.module}/visits.zip"
    table_arns      = [aws_dynamodb_table.visit_counts.arn]
    timeout_seconds = 15
  }

  queue = {
    backoff_max_seconds        = 0
    max_receive_count          = 20
    visibility_timeout_seconds = 15
  }
}
"""


def block(language: str, number: int = 0) -> str:
    """A block of code of the guide."""
    return str(re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S)[number])


def command(beginning: str) -> list[str]:
    """A command of the guide, with the Python that runs the tests."""
    line = next(line for line in GUIDE.splitlines() if line.startswith(beginning))
    return [sys.executable if word == "python" else word for word in shlex.split(line)]


@dataclass(frozen=True)
class Program:
    emulator: Emulator
    root: Root
    outputs: dict[str, Any]
    tables: Tables

    def depth_of(self, name: str) -> int:
        depth = Queue(self.emulator, self.outputs[name]).depth()
        return depth.waiting + depth.in_flight

    def counts(self) -> dict[str, int]:
        return {row["page"]: int(row["visits"]) for row in self.tables.rows("visit_counts")}

    def wait_for_events(self, number: int) -> None:
        wait_for(lambda: len(self.statuses()) >= number, f"{number} events are in the ledger", seconds=120)

    def statuses(self) -> dict[str, str]:
        return {row["event_id"]: row["status"] for row in self.tables.rows(self.outputs["ledger_table_name"])}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("guide")
    work = folder / "program"
    (work / "visits").mkdir(parents=True)
    (work / "visits" / "visits.py").write_text(block("python"), encoding="utf-8")
    (work / "main.tf").write_text(re.sub(r'source = "git::[^"]*"', 'source = "../"', block("hcl")), encoding="utf-8")
    subprocess.run(command("python -m idempotent_consumer_build"), cwd=work, check=True, timeout=300)
    with Emulator(folder / "emulator.log") as emulator:
        root = Root("program", folder, emulator.endpoint, override=OVERRIDE)
        root.init()
        root.apply()
        yield Program(emulator, root, root.output()["visits"], Tables(emulator))
        root.destroy()
        assert root.resources() == []


def test_the_counter_is_the_number_of_unique_events_though_processes_are_killed(program: Program) -> None:
    dice = random.Random(5)
    events = [{"id": f"visit-{number}", "page": dice.choice(PAGES)} for number in range(EVENTS)]
    stream = events + dice.choices(events, k=DUPLICATES)
    dice.shuffle(stream)
    bodies = [json_text(event) for event in stream]
    intake = Queue(program.emulator, program.outputs["queue_url"])
    sending = Sending(intake, [bodies[start : start + 10] for start in range(0, len(bodies), 10)])
    sending.start()
    function = program.outputs["function_name"]
    for number in range(1, KILLS + 1):
        program.wait_for_events(number * EVENTS // (KILLS + 2))
        assert wait_for(lambda: program.emulator.kill_workers(function), "a process to kill", interval=0.01)
    sending.join()
    wait_for(lambda: not program.depth_of("queue_url"), "the queue is empty", seconds=180)

    assert sending.refused == 0
    assert program.depth_of("dead_letter_queue_url") == 0
    assert program.statuses() == {event["id"]: "sent" for event in events}
    assert program.counts() == {page: sum(event["page"] == page for event in events) for page in PAGES}
    assert sum(program.counts().values()) == EVENTS
    assert {row["id"] for row in program.tables.rows("visit_records")} == {event["id"] for event in events}


def test_the_message_of_the_guide_counts_once_however_often_it_is_sent(program: Program) -> None:
    before = program.counts().get("home", 0)
    body = re.search(r"Send `(\{.*?\})`", GUIDE)
    assert body is not None
    message = body[1].replace("visit-1", "once")
    Queue(program.emulator, program.outputs["queue_url"]).send_batch([message] * 3)
    wait_for(lambda: not program.depth_of("queue_url"), "the queue is empty", seconds=60)
    assert program.counts()["home"] == before + 1


def json_text(event: dict[str, str]) -> str:
    return f'{{"id":"{event["id"]}","page":"{event["page"]}"}}'
