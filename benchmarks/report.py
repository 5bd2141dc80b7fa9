"""The tables of the README, as Markdown, from what bench.json holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PUBLISHED = re.compile(r"(?<=<!-- make bench -->\n).*?(?=<!-- end of make bench -->)", re.DOTALL)

Details = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """One line of the comparison. times: ours in proportion to the peer's, in words."""

    what: str
    ours: str
    peer: str
    times: str = ""


def markdown(report: Mapping[str, Any]) -> str:
    """Both tables, with a sentence on how they were made."""
    rows, sizes, machine = comparison(report), by_batch_size(report["details"]), report["machine"]
    lines = [
        f"| | this module | Powertools {machine['peer_version']} | |",
        "|---|---:|---:|---:|",
        *(f"| {row.what} | {row.ours} | {row.peer} | {row.times} |" for row in rows),
    ]
    if sizes:
        lines += [
            "",
            "| new events in a batch of | records per CPU second | the peer's | peak memory | the peer's |",
            "|---:|---:|---:|---:|---:|",
            *("| " + " | ".join(cells) + " |" for cells in sizes),
        ]
    lines += [
        "",
        f"`make bench` on {machine['date']}: medians on {machine['cpus']} cores, in the first table of interleaved "
        f"runs, Python {machine['python']}, boto3 {machine['boto3']}, botocore {machine['botocore']}; ratios are "
        "medians of each turn's ratio.",
        *_price(report["details"]),
    ]
    return "\n".join(lines) + "\n"


def published(page: str, report: Mapping[str, Any]) -> str:
    """A page with both tables between its marks."""
    return _PUBLISHED.sub(lambda _: markdown(report), page)


def comparison(report: Mapping[str, Any]) -> list[Row]:
    """The lines of the comparison, as far as their parts were run."""
    details: Details = report["details"]
    rows: list[Row] = []
    for part, lines in _LINES.items():
        if part in details:
            rows += lines(details[part], report)
    return rows


def by_batch_size(details: Details) -> list[Sequence[str]]:
    """The cells of the second table: size, ours, the peer's, our memory, the peer's."""
    if "batch" not in details:
        return []
    ours, peer = details["batch"]["ours"], details["batch"]["peer"]
    return [
        (
            f"{int(size):,}",
            f"{ours[size]['records_per_second']:,}",
            f"{peer[size]['records_per_second']:,}",
            f"+{ours[size]['peak_megabytes']:.1f} MB",
            f"+{peer[size]['peak_megabytes']:.1f} MB",
        )
        for size in ours
    ]


def _price(details: Details) -> list[str]:
    """What is paid for atomicity."""
    if "calls" not in details:
        return []
    part = details["calls"]
    new = f"{_units(part, 'ours_new')} instead of {_units(part, 'peer_new')}"
    large = f"{_units(part, 'ours_large')} instead of {_units(part, 'peer_large')}"
    redelivered = f"{_units(part, 'ours_redelivered')} instead of {_units(part, 'peer_redelivered')}"
    return [
        "",
        "The peer writes its idempotency record, the row and the notification one after the other, and keeps the "
        "notification nowhere: where a process dies in between, a row is there that nobody hears of, until the message "
        "comes back and all is done again. This module writes all three in one transaction, whose writes count twice: "
        f"in DynamoDB units {new} for a new event of 0.3 KB, {large} for one of 2 KB (two for each KB of the row, "
        "three for each KB of the ledger row, which holds the notification, and two for the reconciler's index), "
        f"{redelivered} for a redelivered one.",
    ]


def _calls(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    kinds = {
        "new": "10 new events",
        "redelivered": "10 redelivered",
        "mixed": "5 new, 5 redelivered",
        "resent": "5 new, 5 sent twice",
    }
    rows = []
    for kind, text in kinds.items():
        ours, peer = part[f"ours_{kind}_calls"], part[f"peer_{kind}_calls"]
        rows.append(Row(f"AWS calls, {text}", str(ours), str(peer), f"{peer / ours:.1f}× fewer"))
    for kind, text in _EVENTS.items():
        rows.append(Row(f"DynamoDB units, {text}", _units(part, f"ours_{kind}"), _units(part, f"peer_{kind}")))
    return rows


def _cpu(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    return [
        Row(
            f"records per CPU second, {kind}, batches of 10",
            f"{part[f'ours_{kind}_records_per_second']:,}",
            f"{part[f'peer_{kind}_records_per_second']:,}",
            f"{report[f'cpu_ratio_{kind}']:.1f}× more",
        )
        for kind in ("new", "redelivered")
    ]


def _latency(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    ours, peer = (f"{part[f'{side}_new_milliseconds_per_batch']:.0f} ms" for side in ("ours", "peer"))
    return [Row("a batch of 10 new events at 5 ms a call", ours, peer, f"{report['latency_ratio']:.1f}× faster")]


def _cold(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    ours, peer, observed = (f"{part[f'{side}_milliseconds']:.0f} ms" for side in ("ours", "peer", "peer_observed"))
    return [
        Row("cold start: imports and clients", ours, peer, f"{report['cold_start_ratio']:.2f} of it"),
        Row(
            "the same, the peer with metrics and traces", ours, observed, f"{part['ratio_to_peer_observed']:.2f} of it"
        ),
    ]


def _zip(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    label = "zip, with bytecode for the default runtime" if part["ours_ships_bytecode"] else "zip"
    ours, peer = (f"{part[f'{side}_bytes'] / 1000:,.0f} KB" for side in ("ours", "peer"))
    return [Row(label, ours, peer)]


def _drained(part: Mapping[str, Any], report: Mapping[str, Any]) -> list[Row]:
    ours, peer = (f"{part[f'{side}_messages_per_second']:,}" for side in ("ours", "peer"))
    return [Row("messages drained per second, on the emulator", ours, peer, f"{report['e2e_ratio']:.1f}× more")]


_EVENTS = {"new": "new event of 0.3 KB", "large": "new event of 2 KB", "redelivered": "redelivered event"}
_LINES = {"calls": _calls, "cpu": _cpu, "latency": _latency, "e2e": _drained, "cold": _cold, "zip": _zip}


def _units(part: Mapping[str, Any], prefix: str) -> str:
    parts = [f"{amount:g} {kind}" for kind in ("write", "read") if (amount := part[f"{prefix}_{kind}_units_per_event"])]
    return " + ".join(parts) or "0"
