"""`make import-budget`: ends 1 if the function's cold start has grown beyond its budget.

Takes some seconds: fresh processes import the handler from the committed zip, with the clients that it makes, in turns
with plain boto3 and the three clients that the function can need. The budget is a ratio, so that it holds on any
machine, and of CPU time, which a busy machine disturbs less.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median

from benchmarks.cold_start import cold_start
from benchmarks.sides import CannotMeasure, find_runtime, our_side, ships_bytecode, unpacked
from benchmarks.turns import median_ratio, take_turns
from local.screen import Screen

TURNS = 11
# Where the zip's bytecode is for the Python that runs, and where it is for another one. Measured, on two busy cores:
# 0.89 to 0.92, and 0.96 (Python 3.11) to 1.20 (3.12). Runs differ by less than a third of what is left.
BUDGET, BUDGET_WITHOUT_BYTECODE = 1.0, 1.3


def main() -> int:
    """0: within the budget. 1: over it. 2: cannot be measured."""
    try:
        return check()
    except KeyboardInterrupt:
        return 130
    except CannotMeasure as error:
        print(error, file=sys.stderr)
        return 2


def check() -> int:
    with Screen() as screen:
        runtime = find_runtime()
        with unpacked(our_side()) as ours:
            measures = {
                "the function": partial(cold_start, runtime, ours),
                "plain boto3": partial(cold_start, runtime, ours, "plain_boto3"),
            }
            step = screen.step(f"Importing on Python {runtime.version}", TURNS * len(measures))
            turns = take_turns(TURNS, measures, step.update)
            cpu = {name: [start.cpu for start in starts] for name, starts in turns.items()}
            step.finish(", ".join(f"{name} {median(values):.0f} ms of CPU time" for name, values in cpu.items()))
            has_bytecode = runtime.is_default and ships_bytecode(ours.zip)
        status, sentence = verdict(median_ratio(*cpu.values()), has_bytecode=has_bytecode)
        screen.say(f"[bold {'red' if status else 'green'}]{sentence}[/]")
        return status


def verdict(ratio: float, *, has_bytecode: bool) -> tuple[int, str]:
    """The exit code and the sentence for a ratio to plain boto3."""
    budget = BUDGET if has_bytecode else BUDGET_WITHOUT_BYTECODE
    if ratio > budget:
        return 1, f"Over the budget: {ratio:.2f} times plain boto3, allowed are {budget}."
    return 0, f"Within the budget: {ratio:.2f} times plain boto3, allowed are {budget}."


if __name__ == "__main__":
    sys.exit(main())
