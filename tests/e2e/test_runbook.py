"""The runbook's commands, run as they stand there on a consumer in trouble."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from local.operating import Operator
from local.terraform import CHECKOUT
from local.waiting import wait_for
from tests.e2e.pipeline import Pipeline, attributes
from tests.e2e.test_reconciler import HOUR_MS, store_pending


def runbook_commands() -> list[str]:
    """The commands of the pipeline `orders` in the shell blocks, in order, each once.

    Those of the operation `payments` are in tests/cli/test_resolve.py; those of the workflow `ingestion` need one.
    """
    text = (CHECKOUT / "docs" / "runbook.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = (line for block in blocks for line in block.splitlines())
    return list(dict.fromkeys(line for line in lines if not re.search(r"--name (payments|ingestion)\b", line)))


def test_each_command_of_the_runbook_runs_and_together_they_put_a_consumer_right(
    outage: Pipeline, new_id: Callable[[], str]
) -> None:
    operator = Operator(outage)
    good, first, unannounced, nameless = new_id(), new_id(), new_id(), {"total": 5}
    outage.send({"id": first, "total": 1})
    outage.wait_until_sent(first)
    other = {"id": first, "total": 2}
    outage.send(other, nameless)
    outage.wait_until_drained()
    outage.put_dead_letters([{"id": good}])
    store_pending(outage, unannounced, age_ms=HOUR_MS)
    wait_for(lambda: outage.dead_letter_count() >= 3, "the trouble is there")

    for line in runbook_commands():
        program, command, *options = shlex.split(line)
        assert (program, options[:2]) == ("idempotent-consumer", ["--name", "orders"]), line
        answer = operator.run(command, *options[2:])
        assert answer.status in (0, 1), f"{line}: {answer.errors}"
        assert answer.output.strip(), line
        assert "Traceback" not in answer.errors, line

    assert outage.statuses([good, unannounced]) == {"sent": 2}
    assert len(outage.steady_notifications(unannounced)) == 1
    reasons = [attributes(letter)["dead_letter_reason"] for letter in outage.dead_letters(other, nameless)]
    assert sorted(reasons) == ["id-missing", "id-reused"]
    # The unannounced event was made up: it has no business row, and verify says so.
    verified = operator.json("verify")
    assert (verified.status, verified.lines[0]["event_id"]) == (1, unannounced)
    outage.delete_ledger_row(unannounced)
    assert operator.json("verify").status == 0
