"""The parts of the benchmark. Each returns the keys that are judged, and the details they come from.

A detail's name ends with its unit; what is measured in turns is a median.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from benchmarks import drain, units
from benchmarks.cold_start import cold_start
from benchmarks.sides import Runtime, Side, run_worker, ships_bytecode
from benchmarks.turns import median_ratio, take_turns
from benchmarks.worker import BATCH
from local.screen import Screen

SIZES = (1, 10, 100, 1000, 10_000)
PAUSE_SECONDS = 0.005


@dataclass(frozen=True)
class Effort:
    """How often things are measured."""

    turns: int
    cold_starts: int
    large_batch_turns: int
    drain_rounds: int
    batches: int = 60
    records: int = 2000
    messages: int = 1000


FULL = Effort(turns=11, cold_starts=21, large_batch_turns=5, drain_rounds=6)
QUICK = Effort(turns=3, cold_starts=5, large_batch_turns=1, drain_rounds=2, batches=20, records=1000, messages=300)


@dataclass(frozen=True)
class Bench:
    """What is measured, and where progress is shown. observed: the peer with metrics and traces."""

    runtime: Runtime
    ours: Side
    peer: Side
    observed: Side
    effort: Effort
    screen: Screen

    @property
    def sides(self) -> Mapping[str, Side]:
        return {"ours": self.ours, "peer": self.peer}


@dataclass(frozen=True)
class Result:
    """keys: what has a bound, by its name in bench.json. summary: for the screen."""

    keys: Mapping[str, float]
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)


Part = Callable[[Bench], Result]


def calls(bench: Bench) -> Result:
    """AWS calls for ten records, and the units of DynamoDB that they cost."""
    step = bench.screen.step("Counting AWS calls", len(bench.sides))
    seen: dict[str, dict[str, Any]] = {}
    for number, (name, side) in enumerate(bench.sides.items(), 1):
        seen[name] = run_worker(bench.runtime, side, "calls")
        step.update(number)
    details: dict[str, Any] = {}
    for name, kinds in seen.items():
        for kind, found in kinds.items():
            details[f"{name}_{kind}_calls"] = sum(found["calls"].values())
            details[f"{name}_{kind}_calls_by_operation"] = found["calls"]
        for kind in ("new", "redelivered", "large"):
            spent = units.total(kinds[kind]["accesses"]).per(BATCH)
            details[f"{name}_{kind}_write_units_per_event"] = spent.write
            details[f"{name}_{kind}_read_units_per_event"] = spent.read
        details[f"{name}_largest_row_bytes"] = _largest_row(kinds["new"]["accesses"])
    keys = {f"calls_{kind}": details[f"ours_{kind}_calls"] for kind in ("new", "redelivered")}
    summary = ", ".join(
        f"{details[f'ours_{kind}_calls']} for ten {kind} (peer {details[f'peer_{kind}_calls']})"
        for kind in ("new", "redelivered")
    )
    step.finish(summary)
    return Result(keys, summary, details)


def cpu(bench: Bench) -> Result:
    """CPU time of a batch of ten, new and redelivered."""
    effort = bench.effort
    turns = _turns(bench, "Measuring CPU time", effort.turns, _jobs(bench, "cpu", batches=effort.batches))
    details: dict[str, Any] = {}
    keys: dict[str, float] = {}
    for kind in ("new", "redelivered"):
        seconds = {name: [value[f"{kind}_seconds"] for value in values] for name, values in turns.items()}
        for name, values in seconds.items():
            details[f"{name}_{kind}_milliseconds_per_batch"] = round(median(values) * 1000, 3)
            details[f"{name}_{kind}_records_per_second"] = round(BATCH / median(values))
        keys[f"cpu_ratio_{kind}"] = round(median_ratio(seconds["peer"], seconds["ours"]), 2)
    summary = f"{keys['cpu_ratio_new']}× for new events, {keys['cpu_ratio_redelivered']}× for redelivered ones"
    return Result(keys, summary, details)


def latency(bench: Bench) -> Result:
    """How long a batch of ten new events takes where each call takes 5 ms."""
    jobs = _jobs(bench, "latency", batches=BATCH, pause_seconds=PAUSE_SECONDS)
    turns = _turns(bench, "Measuring a batch at 5 ms a call", bench.effort.large_batch_turns, jobs)
    seconds = {name: [value["new_seconds"] for value in values] for name, values in turns.items()}
    details = {f"{name}_new_milliseconds_per_batch": round(median(v) * 1000, 1) for name, v in seconds.items()}
    ratio = round(median_ratio(seconds["peer"], seconds["ours"]), 2)
    return Result({"latency_ratio": ratio}, f"{ratio}×", details)


def cold(bench: Bench) -> Result:
    """The cold start of both, and of the peer with metrics and traces, which ours has."""
    sides = {**bench.sides, "peer_observed": bench.observed}
    measures = {name: partial(cold_start, bench.runtime, side) for name, side in sides.items()}
    turns = _turns(bench, "Measuring cold starts", bench.effort.cold_starts, measures)
    wall = {name: [start.wall for start in starts] for name, starts in turns.items()}
    details: dict[str, Any] = {f"{name}_milliseconds": round(median(values), 1) for name, values in wall.items()}
    details["ratio_to_peer_observed"] = round(median_ratio(wall["ours"], wall["peer_observed"]), 2)
    ratio = round(median_ratio(wall["ours"], wall["peer"]), 2)
    return Result({"cold_start_ratio": ratio}, f"{ratio} of the peer's", details)


def size(bench: Bench) -> Result:
    """The sizes of the zips."""
    sizes = {side.name: side.zip.stat().st_size for side in (bench.ours, bench.peer, bench.observed)}
    details = {f"{name}_bytes": number for name, number in sizes.items()}
    shipped = {"ours_ships_bytecode": ships_bytecode(bench.ours.zip)}
    return Result({"zip_bytes": sizes["ours"]}, f"{sizes['ours']:,} bytes", {**details, **shipped})


def batch_sizes(bench: Bench) -> Result:
    """Records a second of CPU time and peak memory, by the size of the batch."""
    effort = bench.effort
    details: dict[str, Any] = {}
    growth = 0.0
    for name, side in bench.sides.items():
        # What is judged is ours; the peer's figures take a minute a turn.
        turns = effort.large_batch_turns if name == "ours" else max(1, effort.large_batch_turns // 2)
        measures = {
            str(size): partial(run_worker, bench.runtime, side, "batch", size=size, records=max(size, effort.records))
            for size in SIZES
        }
        values = _turns(bench, f"Measuring batches of 1 to 10,000, {name}", turns, measures)
        seconds = {number: [value["seconds_per_record"] for value in found] for number, found in values.items()}
        details[name] = {
            number: {
                "records_per_second": round(1 / median(seconds[number])),
                "peak_megabytes": round(median(value["peak_bytes"] for value in found) / 1e6, 1),
            }
            for number, found in values.items()
        }
        if name == "ours":
            growth = round(median_ratio(seconds["10000"], seconds["10"]), 3)
    return Result({"growth": growth}, f"{growth}× the time a record at 10,000 as at 10", details)


def drained(bench: Bench) -> Result:
    """Messages drained per second on the emulator."""
    effort = bench.effort
    step = bench.screen.step("terraform apply of both pipelines", 0)
    applied = {"resources": 0}

    def show(done: int, planned: int) -> None:
        applied["resources"] = done
        step.update(done, planned, "the provider waits 25 s for each queue")

    with drain.pipelines(bench.peer, show) as both:
        step.finish(f"{applied['resources']} resources")
        for _ in range(drain.WARM_UP_ROUNDS):
            for pipeline in both.values():
                pipeline.messages_per_second(effort.messages)
        measures = {name: partial(pipeline.messages_per_second, effort.messages) for name, pipeline in both.items()}
        turns = _turns(bench, "Draining queues", effort.drain_rounds, measures)
    details = {f"{name}_messages_per_second": round(median(values)) for name, values in turns.items()}
    ratio = round(median_ratio(turns["ours"], turns["peer"]), 2)
    return Result({"e2e_ratio": ratio}, f"{ratio}×", details)


# In the order they are run and reported.
PARTS: Mapping[str, Part] = {
    "calls": calls,
    "zip": size,
    "cold": cold,
    "cpu": cpu,
    "latency": latency,
    "batch": batch_sizes,
    "e2e": drained,
}


def _jobs(bench: Bench, job: str, **parameters: Any) -> dict[str, Callable[[], dict[str, Any]]]:
    return {name: partial(run_worker, bench.runtime, side, job, **parameters) for name, side in bench.sides.items()}


def _turns(bench: Bench, title: str, turns: int, measures: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
    step = bench.screen.step(title, turns * len(measures))
    values = take_turns(turns, measures, step.update)
    step.finish(f"{turns} turns of {', '.join(measures)}")
    return values


def _largest_row(accesses: Sequence[Mapping[str, Any]]) -> int:
    return max(units.item_bytes(access[side] or {}) for access in accesses for side in ("before", "after"))
