"""A bench.json with round numbers."""

from __future__ import annotations

from typing import Any


def report() -> dict[str, Any]:
    def pair(name: str, ours: float, peer: float) -> dict[str, float]:
        return {f"ours_{name}": ours, f"peer_{name}": peer}

    sizes = ("1", "10", "100", "1000", "10000")
    details: dict[str, Any] = {
        "calls": {
            **pair("new_calls", 3, 40),
            **pair("redelivered_calls", 1, 10),
            **pair("mixed_calls", 4, 25),
            **pair("resent_calls", 5, 25),
            **pair("new_write_units_per_event", 5.0, 3.0),
            **pair("new_read_units_per_event", 0.0, 0.0),
            **pair("large_write_units_per_event", 13.0, 4.0),
            **pair("large_read_units_per_event", 0.0, 0.0),
            **pair("redelivered_write_units_per_event", 0.0, 1.0),
            **pair("redelivered_read_units_per_event", 1.0, 0.0),
        },
        "zip": {**pair("bytes", 512_000, 1_024_000), "ours_ships_bytecode": True},
        "cold": {
            **pair("milliseconds", 180.0, 250.0),
            "peer_observed_milliseconds": 300.0,
            "ratio_to_peer_observed": 0.6,
        },
        "cpu": {
            **pair("new_records_per_second", 4000, 700),
            **pair("new_milliseconds_per_batch", 2.5, 14.3),
            **pair("redelivered_records_per_second", 10_000, 2500),
            **pair("redelivered_milliseconds_per_batch", 1.0, 4.0),
        },
        "latency": pair("new_milliseconds_per_batch", 18.0, 234.0),
        "batch": {
            "ours": {size: {"records_per_second": 4000, "peak_megabytes": 12.0} for size in sizes},
            "peer": {size: {"records_per_second": 700, "peak_megabytes": 1.5} for size in sizes},
        },
        "e2e": pair("messages_per_second", 800, 200),
    }
    return {
        "calls_new": 3,
        "calls_redelivered": 1,
        "cpu_ratio_new": 5.72,
        "cpu_ratio_redelivered": 4.0,
        "e2e_ratio": 4.0,
        "latency_ratio": 13.0,
        "cold_start_ratio": 0.72,
        "zip_bytes": 512_000,
        "growth": 1.02,
        "machine": {
            "python": "3.13.0",
            "cpus": 2,
            "date": "2026-11-30",
            "load_1_minute": 0.5,
            "boto3": "1.43.106",
            "botocore": "1.43.106",
            "peer_version": "3.37.0",
            "emulator": "ministack 1.5.33",
        },
        "details": details,
    }
